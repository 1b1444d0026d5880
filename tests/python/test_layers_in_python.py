"""Translation layers written in Python: the same as their native twins in every count, and refused where they err."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import flashwright
from conftest import Cli
from flashwright import RunResult, Ssd, compare
from flashwright.drive.policies import FlashInfo, TranslationLayer, load
from flashwright.errors import (
    ConfigError,
    FlashwrightError,
    OutOfSpaceError,
    PolicyError,
    SavedStateError,
)
from flashwright.simulation.run import Run, RunSettings

LAYERS = Path(__file__).parents[2] / "examples" / "layers.py"
PageMap: Any = load(f"{LAYERS}:PageMap")
Dftl: Any = load(f"{LAYERS}:Dftl")

# What the layers of the examples decide by.
SIMPLE = Ssd.named("default").with_(
    {
        "placement.allocation": "dynamic",
        "placement.policy": "single",
        "gc.victim": "greedy",
        "geometry.blocks-per-plane": 64,
        "capacity.utilization": 0.75,
    }
)
SMALL = SIMPLE.with_({"geometry.channels": 1, "geometry.dies-per-channel": 2})


def figures_of(run: RunResult) -> Iterator[tuple[str, object]]:
    """Every figure that does not say who ran it, or how long that took."""

    def flat(value: object, name: str) -> Iterator[tuple[str, object]]:
        if isinstance(value, dict):
            for key, each in value.items():
                yield from flat(each, f"{name}.{key}")
        else:
            yield name, value

    leave = (".config.ftl", ".policies", ".run", ".warnings")
    return (pair for pair in flat(run.json, "") if not pair[0].startswith(leave))


def expect_equal(own: RunResult, native: RunResult) -> None:
    """Every figure is the same, times and the digest of all requests included."""
    figures: Any = own.json
    assert figures["gc"]["collections"] > 100, "it must clean to show anything"
    assert dict(figures_of(own)) == dict(figures_of(native))


@pytest.mark.parametrize("model", ["none", "serial", "parallel"])
@pytest.mark.parametrize(
    "workload", ["uniform:write=0.8", "zipf:write=0.7,trim=0.05,size=16KiB", "sequential:write=1"]
)
def test_a_page_map_equals_the_native_one(model: str, workload: str) -> None:
    ssd = SMALL.with_({"timing.model": model}).precondition("random")
    own = ssd.play(workload, requests=20_000, policies=[PageMap], verify=True)
    native = ssd.with_({"ftl.scheme": "page"}).play(workload, requests=20_000, verify=True)
    expect_equal(own, native)


@pytest.mark.parametrize("model", ["none", "parallel"])
@pytest.mark.parametrize("workload", ["uniform:write=0.8", "zipf:write=0.7,trim=0.05,size=16KiB"])
@pytest.mark.parametrize("ssd", [SMALL, SIMPLE.with_({"geometry.planes-per-die": 2})])
def test_dftl_equals_the_native_one(ssd: Ssd, workload: str, model: str) -> None:
    ssd = ssd.with_({"timing.model": model, "geometry.pages-per-block": 32}).precondition("random")
    of_native = {"ftl.scheme": "dftl", "ftl.dftl.cmt-entries": 256, "ftl.dftl.replacement": "lru"}
    own = ssd.play(workload, requests=20_000, policies=[Dftl(256)], verify=True)
    expect_equal(own, ssd.with_(of_native).play(workload, requests=20_000, verify=True))


def test_behind_a_write_buffer() -> None:
    ssd = SMALL.with_({"ram.size": "1 MiB", "ram.manager": "fab"}).precondition("random")
    own = ssd.play("zipf:write=0.8", requests=20_000, policies=[PageMap], verify=True)
    native = ssd.play("zipf:write=0.8", requests=20_000, verify=True)
    expect_equal(own, native)


def test_to_the_end_of_life() -> None:
    ssd = SMALL.with_({"wear.pe-cycles-max": 6, "timing.model": "none"})
    own = ssd.play("uniform:write=1", requests=400_000, policies=[PageMap])
    native = ssd.play("uniform:write=1", requests=400_000)
    expect_equal(own, native)
    assert "124 retired of 128" in str(own.json["note"])


class Steps(PageMap):  # type: ignore[misc]
    """Cleans one block where there is time."""

    def begin(self, drive: FlashInfo) -> None:
        super().begin(drive)
        self.cleans = 0

    def clean(self, plane: int, budget: int) -> None:
        assert budget >= 1
        self.cleans += self.clean_block(self.planes[plane])

    def figures(self) -> dict[str, float]:
        return {"cleans_ahead": self.cleans}


def test_cleaning_while_no_write_waits() -> None:
    ssd = SMALL.with_({"gc.schedule": "background"}).precondition("random")
    run = ssd.play("uniform:write=1,rate=150", requests=10_000, policies=[Steps], verify=True)
    figures: Any = run.json
    assert figures["scheme"]["extra"]["cleans_ahead"] > 100
    with pytest.raises(
        ConfigError, match=r"gc\.schedule.*python:PageMap, which has no method clean"
    ):
        ssd.play("uniform", requests=10, policies=[PageMap])


# --- steps that are refused ---


# A plane of one block that is open: the flash, its last programmed page, the owner of a table, pages of a block.
Mistake = Callable[[Any, int, int, int], object]
MISTAKES: list[tuple[Mistake, str]] = [
    (lambda flash, last, table, _: flash.program(last, table, "translation"),
     r"program of page \d+ of block \d+, which is programmed: it holds logical page \d+"),
    (lambda flash, last, table, _: flash.program(last + 2, table, "translation"),
     r"program of page \d+ of block \d+ out of order: the next is \d+"),
    (lambda flash, last, *_: flash.program(last + 1, 3),
     "program of logical page 3, which the host does not write now"),
    (lambda flash, last, *_: flash.program(last + 1, 3, "gc"), "copy moves a page and keeps its content"),
    (lambda flash, *_: flash.program(-1, 3), "found page -1, expected 0 to"),
    (lambda flash, last, *_: flash.program(last + 1, 2**31), "as the owner of a page"),
    (lambda flash, last, table, per: flash.program(last + per, table, "translation"),
     "1 blocks of plane 0 are open, and open_blocks is 1"),
    (lambda flash, last, _, per: flash.erase(last // per),
     r"erase of block \d+, which holds \d+ valid pages; copy moves them"),
    (lambda flash, *_: flash.erase(10**6), "found block 1000000, expected 0 to"),
    (lambda flash, last, *_: flash.copy([last + 1], last + 1), r"copy of page \d+, which is erased"),
    (lambda flash, last, *_: flash.copy([last] * 2, last + 1), r"copy of page \d+ twice"),
    (lambda flash, last, *_: flash.copy([last], last + 1, "host"), 'copy for the cause "host"'),
    (lambda flash, last, *_: flash.read(last, 3),
     "answer of logical page 3, which the host does not read now"),
    (lambda flash, last, *_: flash.read_internal(last + 1, "gc"), r"read of page \d+, which is erased"),
    (lambda flash, last, *_: flash.read_internal(last, "tidying"),
     'cause: found "tidying", expected one of host, gc'),
    (lambda flash, last, *_: flash.read_internal(last, "gc", 99),
     "after: found 99, expected a mark of this request"),
    (lambda flash, *_: flash.forget(3), "forget of logical page 3, which the host does not trim now"),
]  # fmt: skip


@pytest.mark.parametrize(("mistake", "said"), MISTAKES)
def test_steps_that_are_refused(mistake: Mistake, said: str) -> None:
    class Own(PageMap):  # type: ignore[misc]
        def begin(self, drive: FlashInfo) -> None:
            super().begin(drive)
            self.table, self.writes = drive.logical_pages, 0

        def write(self, first: int, pages: int) -> None:
            super().write(first, pages)
            self.writes += 1
            if self.writes == 50:
                last = self.planes[0].next[0] - 1
                if "open_blocks" in said:
                    last -= last % self.pages_per_block
                mistake(self.flash, last, self.table, self.pages_per_block)

    ssd = SMALL.with_({"geometry.dies-per-channel": 1})
    with pytest.raises(PolicyError, match=said) as refused:
        ssd.play("uniform:write=1", requests=200, policies=[Own])
    line = str(refused.value)
    assert line.startswith("python:Own: host page write ") and "\n" not in line
    assert "write raised PolicyError" in line and "(test_layers_in_python.py, line " in line


class Stale(PageMap):  # type: ignore[misc]
    """Reads where a page was first."""

    def write(self, first: int, pages: int) -> None:
        before = self.where[first]
        super().write(first, pages)
        self.where[first] = self.where[first] if before is None else before


class Silent(PageMap):  # type: ignore[misc]
    def read(self, first: int, pages: int) -> None:
        pass


class Lost(PageMap):  # type: ignore[misc]
    def write(self, first: int, pages: int) -> None:
        pass


class Forgetful(PageMap):  # type: ignore[misc]
    """Keeps what was trimmed."""

    def trim(self, first: int, pages: int) -> None:
        pass


@pytest.mark.parametrize(
    ("layer", "said"),
    [
        (
            Stale,
            r"read of page \d+ for logical page \d+: it holds an old copy; the newest is in page",
        ),
        (Silent, r"read returned without an answer for logical page \d+"),
        (Lost, r"write returned without a program of logical page \d+"),
        (Forgetful, r"it holds an old copy; it was trimmed"),
    ],
)
@pytest.mark.parametrize("verify", [True, False])
def test_reads_give_what_was_written_last(layer: Any, said: str, *, verify: bool) -> None:
    with pytest.raises(PolicyError, match=said):
        SMALL.play("zipf:write=0.5,trim=0.2", requests=20_000, policies=[layer], verify=verify)


def test_the_audit_compares_the_map() -> None:
    """Nothing is read, so only the audit can find it."""
    run = SMALL.play("zipf:write=1", requests=2_000, policies=[Stale], verify=True)
    assert re.fullmatch(
        r"python:Stale: lookup answered page \d+ for logical page \d+, whose newest copy is in page \d+",
        run.violations[0],
    )


def test_a_layer_that_gives_up_is_out_of_space() -> None:
    class Full(PageMap):  # type: ignore[misc]
        def write(self, first: int, pages: int) -> None:
            if self.flash.now > 100:
                raise OutOfSpaceError
            super().write(first, pages)

    run = SMALL.play("uniform:write=1", requests=500, policies=[Full])
    assert run.json["requests"]["write"] == 100
    assert str(run.json["note"]).startswith("no reclaimable space: ")


def test_what_is_no_layer() -> None:
    class Half(TranslationLayer):
        def write(self, first: int, pages: int) -> None:
            pass

    with pytest.raises(PolicyError, match=r"python:Half: found no method trim, expected one"):
        SMALL.play("uniform", requests=1, policies=[Half])

    class Broken(PageMap):  # type: ignore[misc]
        def begin(self, drive: FlashInfo) -> None:
            raise ValueError("no")

    with pytest.raises(
        PolicyError, match=r"python:Broken: begin raised ValueError: no \(test_layers"
    ):
        SMALL.play("uniform", requests=1, policies=[Broken])

    class Greedy(PageMap):  # type: ignore[misc]
        kept: Any = None

        def begin(self, drive: FlashInfo) -> None:
            super().begin(drive)
            Greedy.kept = self.flash

    SMALL.play("uniform", requests=10, policies=[Greedy])
    with pytest.raises(PolicyError, match="flash answers only while the drive calls the layer"):
        Greedy.kept.valid(0)


def test_settings_that_a_layer_does_not_take(tmp_path: Path) -> None:
    for key, value in {"wear.policy": "threshold", "slc.cache": "static"}.items():
        with pytest.raises(ConfigError, match=key):
            SMALL.with_({key: value, "geometry.bits-per-cell": 3}).play(
                "uniform", requests=1, policies=[PageMap]
            )
    run = Run.create(
        SMALL.toml, "empty", flashwright.workloads.uniform(),
        RunSettings(policies=[PageMap]),
    )  # fmt: skip
    with pytest.raises(SavedStateError):
        run.save(tmp_path / "run.fws")


# --- where layers go ---


def test_compared_with_native_layers() -> None:
    ssd = SMALL.with_({"ftl.dftl.replacement": "lru"})
    runs = compare(
        ssd, "uniform:write=1", {"ftl.scheme": ["page", PageMap, Dftl(64), Dftl(512)]},
        requests=8_000,
    )  # fmt: skip
    assert [run.label for run in runs] == [
        "ftl.scheme=page",
        "ftl.scheme=python:PageMap",
        "ftl.scheme=python:Dftl (entries=64)",
        "ftl.scheme=python:Dftl (entries=512)",
    ]
    assert runs[0].json["digest"] == runs[1].json["digest"]
    assert [run.json["config"]["ftl"]["scheme"] for run in runs[1:3]] == [
        "python:PageMap",
        "python:Dftl",
    ]
    assert runs[3].json["policies"][0]["settings"]["entries"] == 512


@pytest.fixture
def simple(tmp_path: Path) -> str:
    path = tmp_path / "simple.toml"
    path.write_text(SMALL.toml, encoding="utf-8")
    return str(path)


def test_the_command_line(command: Cli, simple: str) -> None:
    common = [simple, "--workload", "uniform:write=1", "--requests", "5000", "--verify"]
    done = command("simulate", *common, "--policy", f"{LAYERS}:Dftl(entries=300)", "--json", "-")
    result = json.loads(done.out)
    assert result["scheme"]["extra"]["cmt_entries"] == 300
    varied = f"ftl.scheme=page,{LAYERS}:Dftl(entries=64),{LAYERS}:Dftl(64)"
    done = command("compare", *common[:-1], "--vary", varied, "--json", "-")
    assert [run["label"] for run in json.loads(done.out)["runs"]] == [
        "ftl.scheme=page",
        "ftl.scheme=python:Dftl",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Dftl(entries=)", "expected plain values in the brackets"),
        ("Dftl(entries=open('x'))", "expected plain values in the brackets"),
        ("Dftl(size=3)", "unexpected keyword argument 'size'"),
        ("Nothing(1)", "found no policy Nothing, expected Planes or PageMap or Dftl"),
    ],
)
def test_objects_that_the_command_line_refuses(text: str, said: str) -> None:
    with pytest.raises(PolicyError) as refused:
        load(f"{LAYERS}:{text}")
    assert said in str(refused.value)


def test_served(tmp_path: Path) -> None:
    with flashwright.serve(SMALL, policies=[PageMap]) as drive:
        for pattern in ("0x11", "0x22"):
            write = ["-c", f"write -P {pattern} 64k 128k", "-c", f"read -P {pattern} 64k 128k"]
            done = subprocess.run(
                ["qemu-io", "-f", "raw", *write, drive.uri],
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0 and "failed" not in done.stdout, done
    assert drive.result is not None
    assert drive.result.json["config"]["ftl"]["scheme"] == "python:PageMap"
    assert drive.result.json["policies"][0]["calls"] > 0
    assert not drive.result.violations
    with pytest.raises(FlashwrightError, match="image: found one with python:PageMap"):
        flashwright.serve(
            SMALL.with_(mount_by="scan"), policies=[PageMap], image=tmp_path / "drive.img"
        )


def test_a_layer_draws_by_the_seed() -> None:
    drawn: list[float] = []

    class Drawing(PageMap):  # type: ignore[misc]
        def begin(self, drive: FlashInfo) -> None:
            drawn.append(self.rng.random())
            super().begin(drive)

    for seed in (1, 1, 2):
        SMALL.play("uniform:write=1", requests=100, seed=seed, policies=[Drawing])
    assert drawn[0] == drawn[1] != drawn[2]
