"""All verdicts on the papers' claims before and after the stand-ins took the locality of real heads, as a table.

    python experiments/trace-models/verdicts.py [--check]

Reads ``verdicts-before.json`` and ``docs/claims.json``, and writes ``verdicts.md``. With ``--check`` it writes nothing,
and fails if the table is not that of the two files.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TABLE = HERE / "verdicts.md"
BEFORE = HERE / "verdicts-before.json"
CLAIMS = HERE.parents[1] / "docs/claims.json"
OPEN = ("not reproduced", "direction only")
UNTESTED = ("fitted", "by construction", "not testable")
Claim = Mapping[str, Any]


def otherwise(claim: Claim) -> list[str]:
    """The readings under which a claim is reproduced that is not as taken."""
    also = [name for name, verdict in claim["also"].items() if verdict == "reproduced"]
    taken, *others = claim["searched"] or [{"verdict": "reproduced"}]
    searched = [
        f"{each['given']} (search)"
        for each in others
        if each["verdict"] == "reproduced" != taken["verdict"]
    ]
    return also + searched


def experiment(claim: Claim) -> str:
    """What was tried on a claim that is not reproduced: readings run in full, and settings of the search."""
    if claim["verdict"] not in OPEN:
        return ""
    also, searched = len(claim["also"]), max(0, len(claim["searched"]) - 1)
    counts = ((also, "other reading"), (searched, "setting"))
    parts = [f"{count} {what}{'s' * (count > 1)}" for count, what in counts if count]
    return ", ".join(parts) or "as taken alone"


def table(before: Mapping[str, str], claims: Sequence[Claim]) -> str:
    """The page."""
    rows = [claim for claim in claims if claim["id"] in before]
    now = {claim["id"]: claim["verdict"] for claim in rows}
    counts = {"before": Counter(before.values()), "now": Counter(now.values())}
    names = ["reproduced", "direction only", "not reproduced", *UNTESTED]
    tested = [claim for claim in rows if claim["verdict"] not in UNTESTED]
    met = [claim for claim in tested if claim["verdict"] == "reproduced"]
    with_reading = [claim for claim in tested if claim in met or otherwise(claim)]
    lines = [
        "<!-- Written by experiments/trace-models/verdicts.py. -->",
        "",
        "# All verdicts, before and after",
        "",
        f"Claims of the six papers but those on real drives: {len(rows)}. *Before* is with stand-ins from",
        "published statistics only, *now* is [docs/claims.json](../../docs/claims.json). What was tried on those that",
        "are not reproduced: readings of the source run in full, and settings of `flashwright reproduce --search`, one",
        "changed at a time on smaller drives. *As taken alone*: the source leaves nothing open that is declared, or no",
        "other value touches the claim.",
        "",
        f"| | {' | '.join(names)} |",
        "| --- " * (1 + len(names)) + "|",
    ]
    for when, found in counts.items():
        lines.append(f"| {when} | " + " | ".join(str(found[name]) for name in names) + " |")
    lines += [
        "",
        f"Of the {len(tested)} that test something, {len(met)} are reproduced as taken ({len(met) / len(tested):.0%}),",
        f"and {len(with_reading)} as taken or with another reading that was run "
        f"({len(with_reading) / len(tested):.0%}).",
        "",
        "| claim | class | before | now | reproduced with | tried |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for claim in rows:
        old, new = before[claim["id"]], claim["verdict"]
        verdict = new if old == new else f"**{new}**"
        readings = "; ".join(otherwise(claim)) if new in OPEN else ""
        name = f"[{claim['id']}](../../docs/explanation/claims/{claim['paper']}.md)"
        lines.append(
            f"| {name} | {claim['kind']} | {old} | {verdict} | {readings} | {experiment(claim)} |"
        )
    return "\n".join(lines) + "\n"


def main(words: Sequence[str] | None = None) -> int:
    """Write the table, or compare it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--check", action="store_true", help="write nothing, fail if it differs")
    options = parser.parse_args(words)
    before = json.loads(BEFORE.read_text())["verdicts"]
    text = table(before, json.loads(CLAIMS.read_text())["claims"])
    if not options.check:
        TABLE.write_text(text)
        return 0
    if TABLE.exists() and TABLE.read_text() == text:
        return 0
    print(f"{TABLE.name} is not that of {CLAIMS.name}: run {Path(__file__).name}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
