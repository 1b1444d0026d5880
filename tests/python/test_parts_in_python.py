"""Victims by score and smaller parts written in Python: the same as their native twins, refused where they must be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pytest

from conftest import Cli
from flashwright import RunResult, Ssd, compare
from flashwright.drive.policies import (
    Buffer,
    BufferPolicy,
    CleaningSchedule,
    Given,
    Kinds,
    MapCacheInfo,
    MapCachePolicy,
    MapEntries,
    MapPrefetchPolicy,
    Occasion,
    PlaneWear,
    ScheduleInfo,
    ScoredMapCachePolicy,
    ScoredVictimPolicy,
    WearPolicy,
)
from flashwright.errors import ConfigError, PolicyError
from flashwright.sweeps.sweep import Sweep

SMALL = Ssd.named("default").with_(blocks_per_plane=32, utilization=0.8)
FULL = SMALL.precondition("random")
DFTL = FULL.with_({"ftl.scheme": "dftl", "ftl.dftl.cmt-entries": 256})
WORKLOADS = ["uniform:write=1,size=4KiB", "zipf:write=0.8,trim=0.05,size=16KiB"]
WEAR = {"wear.policy": "threshold", "wear.threshold.gap": 1}
Scores = npt.NDArray[np.float64]


class Greedy(ScoredVictimPolicy):
    def score(self, kinds: Kinds) -> Scores:
        return -kinds.valid


class CostBenefit(ScoredVictimPolicy):
    reads: tuple[Literal["age", "erases", "stream"], ...] = ("age",)

    def score(self, kinds: Kinds) -> Scores:
        return (kinds.pages_per_block - kinds.valid) * kinds.age / kinds.valid


class CostBenefitThatReadsAll(CostBenefit):
    """Takes another path to the same choice."""

    reads = ("age", "erases", "stream")

    def score(self, kinds: Kinds) -> Scores:
        assert len(kinds) == len(kinds.erases) == len(kinds.stream)
        return super().score(kinds)


class GreedyByErases(Greedy):
    reads = ("erases", "stream")


class Lru(MapCachePolicy):
    def begin(self, cache: MapCacheInfo) -> None:
        self.order: dict[int, int] = {}

    def loaded(self, slot: int, page: int) -> None:
        assert slot not in self.order
        self.order[slot] = page

    def used(self, slot: int) -> None:
        self.order[slot] = self.order.pop(slot)

    def left(self, slot: int) -> None:
        del self.order[slot]

    def evict(self) -> int:
        return next(iter(self.order))


class ScoredLru(ScoredMapCachePolicy):
    def score(self, entries: MapEntries) -> Scores:
        assert len(entries) == len(entries.page) == len(entries.dirty) == len(entries.uses)
        assert (entries.held_for >= entries.age).all()
        return entries.age


class ScoredLruByOne(ScoredLru):
    batch = 1


class Lfu(ScoredMapCachePolicy):
    """The least used entry, of equals the one used longest ago."""

    batch = 1

    def score(self, entries: MapEntries) -> Scores:
        return -np.minimum(entries.uses, 254)  # where the native one ends to count


class Request(MapPrefetchPolicy):
    """The rest of the request, or a share of it."""

    def __init__(self, share: float = 1.0) -> None:
        self.share = share

    def prefetch(self, lpn: int, rest: int, after: int, cached_before: int) -> int:
        return min(int(rest * self.share), after)


class Selective(MapPrefetchPolicy):
    threshold = 3

    def begin(self, cache: MapCacheInfo) -> None:
        self.change, self.is_on = 0, False

    def page_came(self, page: int) -> None:
        self._changed(1)

    def page_left(self, page: int) -> None:
        self._changed(-1)

    def _changed(self, by: int) -> None:
        self.change += by
        if abs(self.change) == self.threshold:
            self.is_on, self.change = self.change < 0, 0

    def prefetch(self, lpn: int, rest: int, after: int, cached_before: int) -> tuple[int, int]:
        return (min(cached_before, after) if self.is_on else 0), 0


class Oldest(BufferPolicy):
    by = "page"

    def choose(self, buffer: Buffer) -> int:
        return buffer.oldest


class OldestOfAll(Oldest):
    keeps_reads = True


class NoReads(OldestOfAll):
    def admit(self, first: int, pages: int, is_write: bool) -> bool:
        return is_write


class Nothing(OldestOfAll):
    def admit(self, first: int, pages: int, is_write: bool) -> bool:
        return False


class Threshold(WearPolicy):
    def __init__(self, gap: int = 1) -> None:
        self.gap = gap

    def recycle(self, plane: PlaneWear, nth: int) -> tuple[int, int] | None:
        if nth > 0 or not len(plane.sealed) or not len(plane.free):
            return None
        wear, sealed, free = plane.wear, plane.sealed, plane.free
        block, into = sealed[wear[sealed].argmin()], free[wear[free].argmax()]
        too_far = plane.wear_max - wear[block] > self.gap
        return (block, into) if too_far and wear[into] > wear[block] else None


class Preemptive(CleaningSchedule):
    one_at_a_time = True

    def steps(self, occasion: Occasion, pages: int, free_blocks: int, copies: int) -> int:
        return 1 if free_blocks < 4 else 0


class RateLimited(CleaningSchedule):
    def begin(self, plane: ScheduleInfo) -> None:
        self.plane, self.due = plane, 0.0

    def steps(self, occasion: Occasion, pages: int, free_blocks: int, copies: int) -> int:
        if occasion != "written":
            return 0
        if free_blocks >= 4:
            self.due = 0.0
            return 0
        least = self.plane.free_blocks_min
        gained = max(self.plane.pages_per_block - copies, 1)
        left = max(free_blocks - least, 1)
        self.due += pages * (copies + 1) / gained * ((4 - least) / left)
        whole = int(self.due)
        self.due -= whole
        return whole


class Background(CleaningSchedule):
    idle = True

    def begin(self, plane: ScheduleInfo) -> None:
        self.cleans = False

    def steps(self, occasion: Occasion, pages: int, free_blocks: int, copies: int) -> int:
        self.cleans = free_blocks < 4 or (self.cleans and free_blocks < 5)
        return 1 if self.cleans and occasion == "idle" else 0


TWINS: list[tuple[Given, dict[str, object], Ssd]] = [
    (Greedy, {"gc.victim": "greedy"}, FULL),
    (
        CostBenefitThatReadsAll,
        {"gc.victim": "cost-benefit"},
        FULL.with_({"placement.policy": "hot-cold"}),
    ),
    (GreedyByErases, {"gc.victim": "greedy"}, FULL.with_({"placement.policy": "hot-cold"})),
    (CostBenefit, {"gc.victim": "cost-benefit"}, FULL),
    (CostBenefit, {"gc.victim": "cost-benefit"}, DFTL.with_(WEAR)),
    (Lru, {"ftl.dftl.replacement": "lru"}, DFTL),
    (Lru, {"ftl.dftl.replacement": "lru"}, DFTL.with_({"ftl.dftl.batch-on-evict": False})),
    (ScoredLru, {"ftl.dftl.replacement": "lru"}, DFTL),
    (ScoredLru, {"ftl.dftl.replacement": "lru"}, DFTL.with_({"ftl.dftl.batch-on-evict": False})),
    (ScoredLruByOne, {"ftl.dftl.replacement": "lru"}, DFTL),
    (Lfu, {"ftl.dftl.replacement": "lfu"}, DFTL),
    (Request(), {"ftl.dftl.prefetch": "request"}, DFTL),
    (Selective, {"ftl.dftl.prefetch": "selective"}, DFTL),
    (Threshold(1), WEAR, FULL),
    (Threshold(1), WEAR, DFTL),
    (Preemptive, {"gc.schedule": "preemptive"}, FULL),
    (Background, {"gc.schedule": "background", "gc.background.stop-blocks": 5}, FULL),
    (RateLimited, {"gc.schedule": "rate-limited"}, FULL),
    (RateLimited, {"gc.schedule": "rate-limited"}, DFTL.with_({"timing.model": "none"})),
]


def equal(own: RunResult, native: RunResult) -> None:
    assert own.json["digest"] == native.json["digest"]
    for figures in ("host", "flash", "gc", "response_time_ns", "wear", "scheme", "mapping_cache"):
        assert own.json[figures] == native.json[figures], figures
    assert np.array_equal(own.erases_per_block, native.erases_per_block)


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize(("policy", "native", "ssd"), TWINS)
def test_a_part_equals_its_native_twin(
    policy: Given, native: dict[str, object], ssd: Ssd, workload: str
) -> None:
    play: dict[str, Any] = {
        "requests": 12_000,
        "depth": 4,
        "verify": True,
        "audit_every": 3_000,
    }
    own = ssd.play(workload, policies=[policy], **play)
    figures: Any = own.json
    assert figures["gc"]["collections"] > 100
    [used] = figures["policies"]
    assert used["calls"] > 0
    value: Any = figures["config"]
    for key in used["key"].split("."):
        value = value[key]
    assert value == used["name"]
    equal(own, ssd.with_(native).play(workload, **play))
    if used["key"] == "wear.policy":
        assert figures["flash"]["erases"]["wear"] > 0


@pytest.mark.parametrize(
    ("replacement", "evicts"), [("lru", "any"), ("lru", "one-page"), ("grouped", "any")]
)
@pytest.mark.parametrize(
    ("policy", "native"),
    [(Request(), "request"), (Selective, "selective")],
)
def test_what_is_prefetched_equals_the_native_twin(
    policy: Given, native: str, replacement: str, evicts: str
) -> None:
    """Streams and random pages in turn, of requests of several pages; behind RAM too, which asks page by page."""
    keys = {
        "ftl.dftl.replacement": replacement,
        "ftl.dftl.prefetch-evicts": evicts,
        "ftl.entry-bytes": 16,
    }
    ram = {"ram.size": "1 MiB", "ram.manager": "lru"}
    for more in ({}, ram):
        ssd = DFTL.with_({**keys, **more})
        for workload in ("sequential:write=0.5,size=16KiB", "uniform:write=0.5,size=32KiB"):
            play: dict[str, Any] = {
                "requests": 1_500,
                "depth": 4,
                "verify": True,
                "audit_every": 500,
            }
            own = ssd.play(workload, policies=[policy], **play)
            equal(own, ssd.with_({"ftl.dftl.prefetch": native}).play(workload, **play))
            cache: Any = own.json["mapping_cache"]
            assert 0 <= cache["prefetched_used"] <= cache["prefetched"]
            if workload.startswith("sequential") and not more:
                assert cache["prefetched"] > 500
                assert cache["prefetch_accuracy"] > 0.9


def test_the_rest_of_a_request_costs_one_lookup_a_translation_page() -> None:
    """Requests of 4 pages that begin at multiples of 4: one miss each, so 3 of 4 lookups hit."""
    ssd = DFTL.precondition("sequential").with_({"ftl.dftl.prefetch": "request"})
    run: Any = ssd.play("sequential:write=0,size=16KiB", requests=4_000, verify=True).json
    cache = run["mapping_cache"]
    assert (cache["hit_ratio"], cache["prefetched"]) == (0.75, 12_000)
    assert cache["prefetch_accuracy"] == 1.0
    none: Any = ssd.with_({"ftl.dftl.prefetch": "none"}).play(
        "sequential:write=0,size=16KiB", requests=4_000
    )
    assert none.json["mapping_cache"]["hit_ratio"] == 0.0
    assert none.json["mapping_cache"]["prefetch_accuracy"] is None
    times = [each["response_time_ns"]["all"]["mean"] for each in (run, none.json)]
    assert times[0] < times[1]


def test_classes_that_ignore_pages_are_not_told_of_them() -> None:
    calls = []
    for policy in (Request(), Selective):
        ssd = DFTL.precondition("empty")
        run: Any = ssd.play(WORKLOADS[1], requests=3_000, policies=[policy]).json
        misses = run["mapping_cache"]["lookups"] - run["mapping_cache"]["hits"]
        calls.append((run["policies"][0]["calls"], misses))
    assert calls[0][0] == calls[0][1]
    assert calls[1][0] > calls[1][1]


def test_ties_of_scores_go_to_the_block_sealed_first() -> None:
    """Whole requests of 16 pages on blocks of 16: many blocks with equal counts and ages, many without a valid page."""
    ssd = SMALL.with_({"geometry.pages-per-block": 16, "timing.model": "none"})
    load = "uniform:write=1,size=64KiB,align=64KiB"
    for policy, native in (
        (Greedy, "greedy"),
        (GreedyByErases, "greedy"),
        (CostBenefit, "cost-benefit"),
    ):
        own = ssd.play(load, requests=20_000, policies=[policy])
        equal(own, ssd.with_(victim=native).play(load, requests=20_000))


def test_scores_that_stay_are_asked_for_once() -> None:
    run: Any = FULL.play(WORKLOADS[0], requests=20_000, policies=[Greedy]).json
    planes = 8
    assert run["policies"][0]["calls"] == planes
    aged: Any = FULL.play(WORKLOADS[0], requests=20_000, policies=[CostBenefit]).json
    assert aged["policies"][0]["calls"] > planes


def test_one_rating_serves_many_evictions() -> None:
    calls: list[int] = []
    for policy in (ScoredLru, ScoredLruByOne):
        run: Any = DFTL.play(WORKLOADS[0], requests=8_000, policies=[policy]).json
        calls.append(run["policies"][0]["calls"])
        assert run["mapping_cache"]["evictions"] > 4_000
    # An eighth of 256 entries leaves by one rating, unless some of them are used meanwhile.
    assert calls[0] * 8 < calls[1]


def test_ratings_see_which_entries_are_dirty() -> None:
    """Loads alone make none dirty, writes alone make all but those that were just written back."""
    shares: list[float] = []

    class Sees(ScoredLru):
        def score(self, entries: MapEntries) -> Scores:
            shares.append(float(entries.dirty.mean()))
            return super().score(entries)

    for workload in ("uniform:write=0", "uniform:write=1"):
        shares.clear()
        DFTL.precondition("sequential").play(workload, requests=4_000, policies=[Sees])
        if workload.endswith("0"):
            assert shares[-1] == 0.0
    assert shares[-1] > 0.5


def test_what_a_buffer_does_not_admit() -> None:
    """No reads: as if none were kept. Nothing: as if there were no RAM."""
    ssd, load = FULL.with_({"ram.size": "4 MiB"}), "zipf:write=0.6,trim=0.02,size=8KiB"

    def played(ssd: Ssd, *policies: Given) -> Any:
        return ssd.play(
            load, requests=12_000, policies=policies, verify=True, audit_every=3_000
        ).json

    own, native = played(ssd, NoReads), played(ssd, Oldest)
    assert own["buffer"]["write_hits"] > 100 and own["policies"][0]["calls"] > 6_000
    assert own["flash"] == native["flash"]
    for figure in ("write_hits", "read_hits", "pages_destaged"):
        assert own["buffer"][figure] == native["buffer"][figure], figure
    own, native = played(ssd, Nothing), played(FULL)
    assert own["flash"] == native["flash"] and own["gc"] == native["gc"]
    assert own["buffer"]["pages_forced"] == own["buffer"]["writes"] > 0
    assert own["buffer"]["read_hits"] == own["buffer"]["write_hits"] == 0

    class Small(OldestOfAll):
        def admit(self, first: int, pages: int, is_write: bool) -> bool:
            return first % 3 > 0

    mixed = played(ssd, Small)["buffer"]
    assert 0 < mixed["pages_forced"] < mixed["writes"] and mixed["write_hits"] > 0


def test_parts_draw_by_the_seed() -> None:
    drawn: list[int] = []

    class Draws(Lru):
        def begin(self, cache: MapCacheInfo) -> None:
            super().begin(cache)
            drawn.append(int(self.rng.integers(2**60)))

    class DrawsToo(RateLimited):
        def begin(self, plane: ScheduleInfo) -> None:
            super().begin(plane)
            drawn.append(int(self.rng.integers(2**60)))

    class DrawsAhead(Request):
        def begin(self, cache: MapCacheInfo) -> None:
            drawn.append(int(self.rng.integers(2**60)))

    for policy, instances in ((Draws, 1), (DrawsToo, 8), (DrawsAhead, 1)):

        def draws(seed: int, policy: Given = policy) -> list[int]:
            drawn.clear()
            DFTL.precondition("empty").play("uniform", requests=10, seed=seed, policies=[policy])
            return [*drawn]

        assert len({*draws(1)}) == instances
        assert draws(1) == draws(1) and not {*draws(1)} & {*draws(2)}


def test_compared_and_on_the_command_line(command: Cli, tmp_path: Path) -> None:
    runs = compare(
        DFTL,
        WORKLOADS[0],
        {"ftl.dftl.replacement": ["lru", Lru, "lfu"]},
        requests=4_000,
    )
    digests = [run.json["digest"] for run in runs]
    assert digests[0] == digests[1] != digests[2]
    assert runs[1].label == "ftl.dftl.replacement=python:Lru"
    file = tmp_path / "mine.py"
    file.write_text(
        "from flashwright.drive.policies import ScoredVictimPolicy\n\n\n"
        "class Greedy(ScoredVictimPolicy):\n"
        "    def score(self, kinds):\n"
        "        return -kinds.valid\n"
    )
    drive = ("default", "--set", "geometry.blocks-per-plane=32", "--precondition", "random")
    load = ("--workload", "uniform:write=1", "--requests", "4000")
    report = command(
        "compare", *drive, *load, "--vary", f"gc.victim=greedy,{file}:Greedy", "--json", "-"
    ).json
    native, own = report["runs"]
    assert native["digest"] == own["digest"] and native["flash"] == own["flash"]


def test_a_prefetch_is_compared_and_swept(command: Cli, tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(
        "from flashwright.drive.policies import MapPrefetchPolicy\n\n\n"
        "class Request(MapPrefetchPolicy):\n"
        "    def __init__(self, share=1.0):\n"
        "        self.share = share\n\n"
        "    def prefetch(self, lpn, rest, after, cached_before):\n"
        "        return min(int(rest * self.share), after)\n"
    )
    drive = ("default", "--set", "geometry.blocks-per-plane=32", "--precondition", "random")
    dftl = (
        "--set",
        "capacity.utilization=0.8",
        "--set",
        "ftl.scheme=dftl",
        "--set",
        "ftl.dftl.cmt-entries=256",
    )
    load = ("--workload", "uniform:write=0.5,size=32KiB", "--requests", "2000")
    own = f"{mine}:Request(share=1.0)"
    report = command(
        "compare",
        *drive,
        *dftl,
        *load,
        "--vary",
        f"ftl.dftl.prefetch=none,request,{own}",
        "--json",
        "-",
    ).json
    none, native, python = report["runs"]
    assert native["digest"] == python["digest"] != none["digest"]
    assert python["config"]["ftl"]["dftl"]["prefetch"] == "python:Request"
    page = command("simulate", *drive, *dftl, *load, "--policy", f"{mine}:Request(share=0.5)").out
    assert "entries prefetched, " in page
    file = tmp_path / "prefetch.toml"
    file.write_text(
        'drive = "default"\nprecondition = "random"\nworkload = "uniform:write=0.5,size=32KiB"\n'
        'requests = 2_000\nseeds = 1\n[set]\ngeometry.blocks-per-plane = 32\nftl.scheme = "dftl"\n'
        f'capacity.utilization = 0.8\nftl.dftl.cmt-entries = 256\n[grid]\nftl.dftl.prefetch = ["request", "{own}"]\n'
    )
    found = Sweep.from_toml(file).run(tmp_path / "points", jobs=2)
    figures: list[Any] = [found.figures_of(nth) for nth in range(2)]
    assert found.failures == []
    assert figures[0]["digest"] == figures[1]["digest"] == native["digest"]


def test_parts_in_a_sweep(tmp_path: Path) -> None:
    """One process for each point; classes come from a file."""
    here = Path(__file__)
    grid = {
        "gc.victim": ["greedy", f"{here}:Greedy"],
        "gc.schedule": ["rate-limited", f"{here}:RateLimited"],
        "wear.policy": ["threshold", f"{here}:Threshold(gap=1)"],
    }
    lines = [f"{key} = {json.dumps(values)}" for key, values in grid.items()]
    file = tmp_path / "parts.toml"
    file.write_text(
        'drive = "default"\nprecondition = "random"\nworkload = "uniform:write=1"\n'
        "requests = 4_000\ndepth = 4\nseeds = 1\n[set]\ngeometry.blocks-per-plane = 32\n"
        "capacity.utilization = 0.8\nwear.threshold.gap = 1\n[grid]\n" + "\n".join(lines)
    )
    found = Sweep.from_toml(file).run(tmp_path / "points", jobs=2)
    assert found.failures == [] and len(found.cases) == 8
    figures: list[Any] = [found.figures_of(nth) for nth in range(8)]
    assert len({each["digest"] for each in figures}) == 1
    assert sorted(len(each["policies"]) for each in figures) == [0, 1, 1, 1, 2, 2, 2, 3]


def refused(policy: Given, ssd: Ssd = FULL) -> str:
    with pytest.raises(PolicyError) as caught:
        ssd.play(WORKLOADS[0], requests=60_000, policies=[policy])
    assert "\n" not in str(caught.value)
    # The process goes on being usable.
    assert SMALL.play("uniform", requests=100).json["ended"] == "complete"
    return str(caught.value)


def answers(base: type[Any], method: str, answer: object) -> Given:
    """A class whose method gives one answer, or what a function of its arguments gives."""

    def call(self: Any, *given: Any) -> object:
        return answer(*given) if callable(answer) else answer

    made: type[Any] = type("Answers", (base,), {method: call})
    return made


@pytest.mark.parametrize(
    ("policy", "ssd", "said"),
    [
        (answers(Greedy, "score", 3), FULL, "score answered 3 (int), expected an array of float64"),
        (answers(Greedy, "score", lambda kinds: kinds.age), FULL, "no 'age' in reads"),
        (
            answers(Greedy, "score", lambda kinds: kinds.valid[1:].copy()),
            FULL,
            "scores, expected one for each of the",
        ),
        (
            answers(Greedy, "score", lambda kinds: kinds.valid * np.nan),
            FULL,
            "score answered nan for blocks with 1 valid pages, expected a number",
        ),
        (
            answers(Greedy, "score", lambda kinds: kinds.valid + 0),
            FULL,
            "blocks in a row without an invalid page",
        ),
        (answers(Lru, "evict", 256), DFTL, "evict answered slot 256, which is empty; expected one"),
        (answers(Lru, "evict", None), DFTL, "evict answered None, expected a slot with an entry"),
        (answers(Lru, "used", lambda slot: {}[slot]), DFTL, "used raised KeyError"),
        (
            answers(Request, "prefetch", -1),
            DFTL,
            "prefetch answered -1 entries after it, expected 0 to ",
        ),
        (
            answers(Request, "prefetch", lambda lpn, rest, after, cached_before: after + 1),
            DFTL,
            "which its translation page has there",
        ),
        (
            answers(Request, "prefetch", (0, 2**40)),
            DFTL,
            "prefetch answered 1099511627776 entries before it, expected 0 to ",
        ),
        (
            answers(Request, "prefetch", (1, 2, 3)),
            DFTL,
            "prefetch answered (1, 2, 3) (tuple), expected how many entries after it, or a pair",
        ),
        (answers(Request, "prefetch", None), DFTL, "prefetch answered None, expected how many"),
        (answers(Request, "prefetch", lambda lpn, *_: {}[lpn]), DFTL, "prefetch raised KeyError"),
        (answers(Selective, "page_left", lambda page: {}[page]), DFTL, "page_left raised KeyError"),
        (answers(ScoredLru, "score", 3), DFTL, "score answered 3 (int), expected an array of"),
        (
            answers(ScoredLru, "score", lambda entries: entries.age[1:].copy()),
            DFTL,
            "score answered 255 scores, expected one for each of the 256 entries",
        ),
        (
            answers(ScoredLru, "score", lambda entries: entries.age * np.nan),
            DFTL,
            "score answered NaN, expected a number for each entry",
        ),
        (
            answers(OldestOfAll, "admit", "x"),
            FULL.with_({"ram.size": "4 MiB"}),
            "admit answered 'x' (str), expected a truth value",
        ),
        (answers(Threshold, "recycle", -1), FULL, "block -1, which is beyond the plane's 32"),
        (
            answers(Threshold, "recycle", lambda plane, nth: plane.free[0]),
            FULL,
            "which is free; expected one of the sealed blocks",
        ),
        (
            answers(Threshold, "recycle", lambda plane, nth: (plane.sealed[0], plane.sealed[1])),
            FULL,
            "to take its pages, which is sealed; expected one of the free blocks",
        ),
        (answers(Threshold, "recycle", "x"), FULL, "recycle answered 'x' (str), expected None, a"),
        (answers(RateLimited, "steps", -1), FULL, "steps answered -1, expected 0 to 4294967295"),
        (answers(RateLimited, "steps", "x"), FULL, "expected a number of steps"),
    ],
)
def test_answers_that_cannot_be(policy: Given, ssd: Ssd, said: str) -> None:
    assert said in refused(policy, ssd)


def test_drives_that_have_no_place_for_a_part() -> None:
    kinds = (
        (Lru, "replacement"),
        (Request, "prefetch"),
        (Threshold, "wear"),
        (RateLimited, "cleaning"),
    )
    for policy, kind in kinds:
        ssd = SMALL.with_({"ftl.scheme": "fast"})
        with pytest.raises(ConfigError, match=rf"fast., which asks no {kind} policy"):
            ssd.play("uniform", policies=[policy])
    for policy, kind in kinds[:2]:
        with pytest.raises(
            ConfigError, match=rf"page., which asks no {kind} policy.*; expected dftl"
        ):
            SMALL.play("uniform", policies=[policy])
    with pytest.raises(ConfigError, match=r"python:Preemptive.*depends on time"):
        SMALL.with_({"timing.model": "none"}).play("uniform", policies=[Preemptive])
    with pytest.raises(PolicyError, match=r"batch: found -1, expected 0 or more"):
        DFTL.play("uniform", policies=[type("Bad", (ScoredLru,), {"batch": -1})])
    with pytest.raises(PolicyError, match=r"reads: found .*, expected a tuple of 'age', 'erases'"):
        SMALL.play("uniform", policies=[type("Bad", (Greedy,), {"reads": ("valid",)})])
