"""Tables fit the terminal: no line is longer than it, and no number is broken."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import Cli
from flashwright.cli.render.fit import Column, Grid, Table, wrap

RUN = ("--requests", 3000, "--workload")
LONG = "zipf:write=0.7,depth=8,accesses=0.9,space=0.1,chunk=64KiB,placement=identity"

Arguments = Callable[[str, Path], tuple[object, ...]]

COMMANDS: dict[str, Arguments] = {
    "simulate": lambda small, _: (
        "simulate", small, *RUN, LONG, "--precondition", "random", "--verify",
        "--set", "host.scheduler=deadline",
    ),
    "simulate dftl": lambda small, _: (
        "simulate", small, *RUN, LONG, "--set", "ftl.scheme=dftl", "--set", "ram.manager=lru",
        "--set", "ram.size=64KiB",
    ),
    "compare": lambda small, _: (
        "compare", small, *RUN, LONG, "--vary", "ftl.scheme=page,fast,dftl",
        "--vary", "gc.free-blocks-min=2,3", "--set", "host.scheduler=deadline",
    ),
    "advise": lambda small, _: (
        "advise", "space", small, *RUN, LONG, "--utilizations", "0.6,0.8", "--target",
        "write-amplification<=2.5", "--jobs", 1, "--write-rate", "20MB/s", "--cycles", 3000,
        "--host",
    ),
    "assess": lambda small, folder: (
        "assess", "--drive", small, "--trace", folder / "requests.spc", "--cycles", 3000, "--time-limit", 600,
    ),
    "lifetime": lambda small, _: ("lifetime", "formula", small, "--capacity", "100GB", "--cycles", 3000),
    "lifetime played": lambda small, _: (
        "lifetime", "simulate", small, "--workload", "uniform:write=1", "--cycles", 20,
        "--write-rate", "20MB/s",
    ),
    "replay": lambda small, _: (
        "replay", f"sim:{small}", *RUN, LONG, "--destroys-data", "--scheduler", "deadline",
    ),
    "characterize": lambda small, _: ("characterize", "sim:default", "--plan"),
    "trace info": lambda _, folder: ("trace", "info", folder / "requests.spc"),
    "policies": lambda _small, _folder: ("policies",),
    "devices": lambda _small, _folder: ("devices",),
    "reproduce list": lambda _small, _folder: ("reproduce", "--list", "dftl"),
    "sweep": lambda _, folder: ("sweep", folder / "sweep.toml", "--jobs", 1),
    "sweep plan": lambda _, folder: ("sweep", folder / "sweep.toml", "--plan"),
}  # fmt: skip

SWEEP = """
drive = "{small}"
workload = "uniform:write=1,depth=8"
requests = 2000
precondition = "random"
seeds = 2
[grid]
"gc.victim" = ["greedy", "fifo"]
"capacity.utilization" = [0.7, 0.8]
"""

# A number whose unit or whose rest stands in the next line.
_BROKEN = re.compile(r"\d( (?!\S)|[,.])?\n *(ns|us|ms|s|B|KiB|MiB|GiB|TiB|kB|MB|GB|TB|%)\b", re.M)


@pytest.mark.parametrize("name", COMMANDS)
def test_what_commands_print_fits(
    command: Cli,
    small: str,
    spc: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    (tmp_path / "sweep.toml").write_text(SWEEP.format(small=small))
    monkeypatch.setenv("COLUMNS", "1000")
    wide = _numbers(command(*COMMANDS[name](small, tmp_path)).out)
    for width in (80, 120):
        monkeypatch.setenv("COLUMNS", str(width))
        said = command(*COMMANDS[name](small, tmp_path))
        assert said.status in (0, 1), said.err
        assert len(said.out.splitlines()) > 3
        # Commands are to be copied, so they are not folded.
        shown = said.out.partition("commands, which nobody has run:")[0]
        assert [line for line in shown.splitlines() if len(line) > width] == []
        assert not _BROKEN.search(said.out)
        # What is there in a wide terminal is there whole in a narrow one.
        own = _numbers(f"{width} columns") | _timings(said.out)
        assert _numbers(said.out) - wide - own == set()


def _numbers(text: str) -> set[str]:
    return set(re.findall(r"\d[\d,.]*\d|\d", text))


def _timings(text: str) -> set[str]:
    """What differs from run to run: the simulator's own cost."""
    cost = [line for line in text.splitlines() if re.match("simulator|player|  |.*points: ", line)]
    return _numbers("\n".join(cost))


def test_a_pipe_without_columns_gets_every_column(
    command: Cli, small: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    said = command(*COMMANDS["compare"](small, Path()))
    assert "not shown" not in said.out
    assert {"WA", "max erases", "hit ratio"} <= set(re.split(r"  +|\n", said.out))


def test_what_leaves_is_said(command: Cli, small: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    said = command(*COMMANDS["compare"](small, Path())).out
    message = " ".join(said[said.index("not shown in 80 columns:") :].split())
    assert "max erases" in message and "(--json or a wider terminal shows them)" in message
    assert not re.search(r"\bWA\b", message)


def test_heads_fold_before_columns_leave() -> None:
    table = Table([Column("run", 100, number=False), Column("victim invalid"), Column("p99", 10)])
    table.add_row("greedy", "12.3 %", "1.02 ms")
    assert [line.rstrip() for line in table.lines(24)] == [
        "",
        "         victim",
        "run     invalid      p99",
        "────────────────────────",
        "greedy   12.3 %  1.02 ms",
        "",
    ]
    assert "not shown in 20 columns: p99" in " ".join(table.lines(20))


def test_a_number_is_whole_however_narrow() -> None:
    table = Table([Column("run", 100, number=False), Column("erases", 100)])
    table.add_row("a label of some length", "1,234,567,890")
    assert any("1,234,567,890" in line for line in table.lines(10))


@pytest.mark.parametrize("width", range(8, 60))
def test_text_folds_between_words(width: int) -> None:
    text = (
        "3.60 GiB of 4.00 GiB flash in 81.1 ms, 1,234.56 ± 0.05 us, /a/long/path/to/nothing,at,all"
    )
    lines = wrap(text, width)
    assert max(map(len, lines)) <= width
    assert "".join("".join(lines).split()) == "".join(text.split())
    if width >= 19:
        for whole in ("3.60 GiB", "4.00 GiB", "81.1 ms", "1,234.56 ± 0.05 us"):
            assert any(whole in line for line in lines), whole


def test_values_of_a_grid_stand_below_each_other() -> None:
    lines = Grid([("drive", "one two three four"), ("", "five")]).lines(18)
    assert lines == ["drive  one two", "       three four", "       five"]
