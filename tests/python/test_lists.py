"""What can be chosen by name is listed once: no other file names all members of a list, so a new member is one line."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from flashwright.characterization import EXPERIMENTS
from flashwright.drive.catalogue import catalogue
from flashwright.drive.description import devices
from flashwright.probing.probes import PROBES

ROOT = Path(__file__).parents[2]
FOLDERS = ("crates", "python", "tests", "docs", "examples", "tools")
SUFFIXES = {".rs", ".py", ".toml", ".md"}

HOMES = {
    "ftl.scheme": "crates/ftl/src/schemes/mod.rs",
    "gc.victim": "crates/ftl/src/policies/victim/mod.rs",
    "gc.schedule": "crates/ftl/src/policies/schedule/mod.rs",
    "placement.policy": "crates/ftl/src/policies/placement/mod.rs",
    "wear.policy": "crates/ftl/src/policies/wear/mod.rs",
    "ftl.dftl.replacement": "crates/ftl/src/policies/map_cache/mod.rs",
    "ram.manager": "crates/ram/src/managers/mod.rs",
    "host.scheduler": "crates/host/src/schedulers/mod.rs",
    "--workload": "crates/workload/src/generate/mod.rs",
    "--format": "crates/workload/src/trace/formats/mod.rs",
    "device": "crates/config/src/devices.rs",
    "probe": "python/flashwright/probing/probes/__init__.py",
    "experiment": "python/flashwright/characterization/__init__.py",
}
"""Each list with its home."""

GENERATED = "docs/reference/"
"""What `make generate` writes from the lists."""

MEASURED = {
    "crates/bench/src/table.rs": "bounds and digests by scheme",
    "crates/bench/src/host.rs": "digests by scheduler",
    "crates/ssd/tests/schedules.rs": "a worked example of each schedule",
    "tests/python/test_characterize.py": "a test of each experiment",
    "tests/python/test_schedules_experiment.py": "what the study found of each schedule",
    "docs/explanation/speed.md": "recorded figures",
    "docs/explanation/validation.md": "recorded figures",
    "docs/how-to/choose-when-to-clean.md": "recorded figures",
}
"""Figures and tests that belong to one member each: nothing asks for those of a new one."""


def members() -> dict[str, set[str]]:
    found = {
        key: {item.name for item in items if re.fullmatch(r"[\w-]+", item.name)}
        for key, items in catalogue().items()
        if key in HOMES
    }
    found["gc.victim"] -= {"default"}
    found["device"] = set(devices())
    found["probe"] = {probe.NAME for probe in PROBES}
    found["experiment"] = {experiment.NAME for experiment in EXPERIMENTS}
    return found


@cache
def texts() -> dict[str, str]:
    """The files that people write for the tool, by path; not those of papers and studies."""
    paths = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))
    found = {path.relative_to(ROOT).as_posix(): path for path in paths if path.suffix in SUFFIXES}
    return {
        name: path.read_text(encoding="utf-8")
        for name, path in found.items()
        if not name.startswith(GENERATED)
    }


def spellings(name: str) -> tuple[str, str, str]:
    return name, name.replace("-", "_"), "".join(part.capitalize() for part in name.split("-"))


def named(text: str, names: set[str]) -> set[str]:
    """The names that a text writes as names: quoted, as a value, as a path, or beside another of them."""
    known = {word: name for name in names for word in spellings(name)}
    found, last = set(), ""
    for before, word, after in re.findall(r"([^\w-]*)([\w-]+)(?=(\W?))", text):
        name = known.get(word, "")
        if name and last not in ("", name) and "." not in before:
            found |= {last, name}
        # Words of two parts mean nothing else.
        if name and (
            re.search(r"[-_]|\w[A-Z]", word) or before[-1:] in set("\"'`=:") or after == ":"
        ):
            found.add(name)
        last = name
    return found


def test_a_list_in_another_file_is_found() -> None:
    names = {"greedy", "fifo", "d-choices"}
    assert named("[Greedy, Fifo, DChoices]", names) == names
    assert named("expected greedy, fifo, d-choices", names) == names
    assert named('gc.victim=greedy or "fifo"', names) == {"greedy", "fifo"}
    assert named("A greedy policy, unlike a fifo. Greedy", names) == set()


@pytest.mark.parametrize("key", HOMES)
def test_one_file_names_all_members(key: str) -> None:
    names = members()[key]
    assert len(names) > 3
    # Most texts lack a name altogether, which is quicker to see.
    near = {
        path: text
        for path, text in texts().items()
        if all(any(word in text for word in spellings(name)) for name in names)
    }
    found = {path for path, text in near.items() if named(text, names) >= names}
    assert found - set(MEASURED) == {HOMES[key]}
