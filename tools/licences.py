"""Licences and versions of what the wheel links, without a network: what it may not take is told, notices are kept.

``python tools/licences.py`` writes THIRD-PARTY-LICENCES.txt; with ``--check`` it only says whether that is as it should
be. What is allowed stands in deny.toml, which ``cargo deny`` reads too where it is installed.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
NOTICES = ROOT / "THIRD-PARTY-LICENCES.txt"
LINKED_FROM = "flashwright-py"
_DENY = tomllib.loads((ROOT / "deny.toml").read_text(encoding="utf-8"))
ALLOWED: list[str] = _DENY["licenses"]["allow"]
# Packages of which two versions are linked, since others need them.
TWICE = {each["crate"].partition("@")[0] for each in _DENY["bans"]["skip"]}
_FILES = re.compile(r"(un)?licen[cs]e|copying|notice|copyright", re.IGNORECASE)


def main(arguments: list[str]) -> int:
    """Write the notices, or check them; the exit status."""
    linked = packages_linked()
    faults = [
        f"{each['name']} {each['version']}: found licence {each['license']!r}, expected one of {', '.join(ALLOWED)}"
        for each in linked
        if chosen(each["license"] or "") is None
    ]
    names = [each["name"] for each in linked]
    faults += [
        f"{name}: found two versions, expected one"
        for name in sorted({name for name in names if names.count(name) > 1} - TWICE)
    ]
    text = notices(linked)
    if "--check" not in arguments:
        NOTICES.write_text(text, encoding="utf-8")
    elif not NOTICES.exists() or NOTICES.read_text(encoding="utf-8") != text:
        faults.append(f"{NOTICES.name}: found an old one, expected that of `{Path(__file__).name}`")
    print(*faults, sep="\n", file=sys.stderr, end="\n" if faults else "")
    return 1 if faults else 0


def packages_linked() -> list[dict[str, Any]]:
    """The packages of others whose code is in the wheel, by name."""
    said = subprocess.run(
        [
            *("cargo", "metadata", "--format-version", "1", "--locked"),
            *("--filter-platform", "x86_64-unknown-linux-gnu"),
        ],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    found = json.loads(said.stdout)
    packages = {each["id"]: each for each in found["packages"]}
    needs = {each["id"]: each["deps"] for each in found["resolve"]["nodes"]}
    left = [each["id"] for each in found["packages"] if each["name"] == LINKED_FROM]
    seen = set(left)
    while left:
        for need in needs[left.pop()]:
            # What builds code, or derives it, is not in the result.
            is_linked = any(kind["kind"] is None for kind in need["dep_kinds"])
            kinds = {kind for target in packages[need["pkg"]]["targets"] for kind in target["kind"]}
            if is_linked and "proc-macro" not in kinds and need["pkg"] not in seen:
                seen.add(need["pkg"])
                left.append(need["pkg"])
    linked = [packages[each] for each in seen if packages[each]["source"]]
    return sorted(linked, key=lambda each: (each["name"], each["version"]))


def chosen(expression: str) -> list[str] | None:
    """The licences under which we take a package; None if there are none among those allowed."""
    alternatives = re.split(r" OR |/", expression.replace("(", "").replace(")", ""))
    if " AND " in expression:
        # Those of a part in brackets, and the rest.
        first, _, rest = expression.partition(" AND ")
        both = [chosen(first.strip("()")), chosen(rest)]
        return None if None in both else [name for each in both if each for name in each]
    found = [name for name in ALLOWED if name in (each.strip() for each in alternatives)]
    return found[:1] or None


def notices(linked: list[dict[str, Any]]) -> str:
    """The text of all notices; one that many share stands once."""
    by_text: dict[str, list[str]] = {}
    for package in linked:
        folder = Path(package["manifest_path"]).parent
        files = sorted(
            each for each in folder.iterdir() if _FILES.match(each.name) and each.is_file()
        )
        names = chosen(package["license"] or "") or []
        wanted = [each for each in files if names == ["MIT"] and "mit" in each.name.lower()]
        for each in wanted or files:
            text = each.read_text(encoding="utf-8", errors="replace").strip()
            by_text.setdefault(text, []).append(f"{package['name']} {package['version']}")
        if not files:
            said = f"Licence: {package['license']}. Authors: {', '.join(package['authors'])}"
            by_text.setdefault(said, []).append(f"{package['name']} {package['version']}")
    parts = ["Flashwright links these packages of others.\n"]
    for text, whose in sorted(by_text.items(), key=lambda each: each[1]):
        parts.append(f"{'-' * 72}\n{', '.join(whose)}\n\n{text}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
