"""Which data to place by which handle: addresses grouped by how soon they are written again, and what that saves.

Groups are learned from the first half of a trace and played with its second half, so that what is said of them is a
prediction. Flash blocks that hold pages of one lifetime become invalid together; pages of a place that is written again
after `n` bytes of the host live that long.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from flashwright.errors import ConfigError, FlashwrightError, WorkloadError
from flashwright.simulation.played import played
from flashwright.simulation.results import RunResult
from flashwright.simulation.run import RunSettings
from flashwright.simulation.ssd import Ssd
from flashwright.simulation.variant import Maker
from flashwright.simulation.warnings import Gathered, gathered
from flashwright.support.core import SECTOR_BYTES, _core
from flashwright.support.progress import Progress
from flashwright.traces import tracefiles
from flashwright.traces.workloads import Trace, trace

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

__all__ = ["HANDLES", "Choice", "Group", "Placement", "Run", "advise_placement", "groups_of"]

HANDLES = (2, 4, 8)
"""Numbers of handles that are tried by default: 8 is what today's drives and Linux offer."""

ISOLATIONS = ("persistent", "initial")
"""What becomes of pages that cleaning moves, as ``placement.fdp.isolation`` takes it."""

_DEPTH = 32
"""Requests in flight where nothing is said: write amplification hangs on the order of requests, not on their times."""

_HANDLES_MAX = 64
# Regions of the address space, at most: beyond it a list of what goes where is of no use to a host.
_REGIONS_MAX = 4096
# The least region: what a file system allocates together.
_REGION_MIN = 64 << 10
# Bins of the logarithm of the interval between writes, from which groups are cut: a sixteenth of an octave apart over
# 32 octaves.
_BINS_PER_OCTAVE = 16
_BINS = 32 * _BINS_PER_OCTAVE
# What a figure must differ by to matter, as a share. The settled verdict says figures to 3 %.
_MATTERS = 0.03
# Writes below which half of a trace says nothing of lifetimes.
_WRITES_MIN = 1000


@dataclass(frozen=True)
class Group:
    """Addresses that share a handle.

    Attributes
    ----------
    handle : int
        Counted from 1, that of what is written again soonest; 0 is for what no handle is named for.
    place_bytes : int
        Bytes of the addresses that the first half of the trace wrote.
    share : float
        Their share of the bytes written, 0 to 1.
    interval_bytes : float or None
        Bytes that the host writes, anywhere, from one write of a place to the next, in the median over these places;
        None where they were written once.
    ranges : tuple of (int, int)
        First byte and length of each range, in the trace's addresses.
    """

    handle: int
    place_bytes: int
    share: float
    interval_bytes: float | None
    ranges: tuple[tuple[int, int], ...]

    def document(self) -> dict[str, Any]:
        """The documented figures."""
        return {
            "handle": self.handle,
            "place_bytes": self.place_bytes,
            "share_of_writes": self.share,
            "interval_bytes": self.interval_bytes,
            "ranges": [list(each) for each in self.ranges],
        }


@dataclass(frozen=True)
class Choice:
    """One way to place.

    Attributes
    ----------
    handles : int
        Groups with a handle of their own; 0 for the drive as it is, without handles.
    isolation : str
        ``persistent`` or ``initial``; empty without handles.
    unit : str
        What a reclaim unit is: ``block`` or ``drive``, a block of every plane (``geometry.superblock``).
    """

    handles: int
    isolation: str
    unit: str

    @property
    def text(self) -> str:
        """In words.

        Examples
        --------
        >>> Choice(4, "initial", "drive").text
        '4 handles, initial, unit drive'
        """
        handles = f"{self.handles} handles, {self.isolation}" if self.handles else "no handles"
        return f"{handles}, unit {self.unit}"


@dataclass(frozen=True)
class Run:
    """One way to place, played.

    Attributes
    ----------
    choice : Choice
        What was played.
    result : RunResult
        Its run, of the second half of the trace.
    """

    choice: Choice
    result: RunResult

    @property
    def amplification(self) -> float | None:
        """Pages programmed per page written, where the drive had settled; else None."""
        return self.result.write_amplification if self.result.settled.verdict == "settled" else None

    @property
    def width(self) -> float:
        """Half of the 95 % interval of that; 0 where it is not known."""
        interval = self.result.settled.interval
        return 0.0 if interval is None else (interval[1] - interval[0]) / 2

    @property
    def erases(self) -> int | None:
        """Blocks that the measured requests had erased."""
        return self.result.json["flash"]["erases"]["total"]

    def document(self) -> dict[str, Any]:
        """The documented figures."""
        result = self.result
        return {
            "handles": self.choice.handles,
            "isolation": self.choice.isolation or None,
            "unit": self.choice.unit,
            "write_amplification": result.write_amplification,
            "interval": None if result.settled.interval is None else list(result.settled.interval),
            "verdict": result.settled.verdict,
            "iops": result.iops,
            "erases": self.erases,
        }


@dataclass(frozen=True)
class Placement:
    """What placement by handle is worth for a load on a drive.

    Attributes
    ----------
    runs : tuple of Run
        All that were played, those without handles first.
    best : Run or None
        Of the drive's own reclaim unit, the fewest handles whose write amplification is within 3 % of the least, if
        that is less than without handles by more than 3 % and than the intervals of both; None where placement gains
        nothing.
    groups : tuple of Group
        What goes where with that many handles; empty without.
    unknown_share : float
        Share of the second half's written bytes at places that the first half did not write: they have handle 0.
    failures : dict of Choice to str
        What the drive can't do, and why.
    why : str
        The verdict as a sentence.
    finished : bool
        False where Ctrl-C cut it short.
    """

    runs: tuple[Run, ...]
    best: Run | None
    groups: tuple[Group, ...]
    unknown_share: float
    failures: dict[Choice, str] = field(default_factory=dict)
    why: str = ""
    finished: bool = True

    @property
    def warnings(self) -> list[Gathered]:
        """Where the figures of the runs do not mean what one would think."""
        return gathered((run.choice.text, run.result.json["warnings"]) for run in self.runs)


def groups_of(requests: pa.Table, handles: int, page_bytes: int = 4096) -> tuple[Group, ...]:
    """Group the addresses that a trace writes by how soon they are written again.

    The address space is cut into regions, 64 KiB or larger, of which there are at most 4,096 between the lowest and the
    highest address. The interval of a region is the number of pages that the host writes in the whole table, divided by
    the times that a page of the region was written. Regions are cut into groups where the variance of its logarithm
    within groups, by pages, is least (the exact optimum, by dynamic programming).

    Parameters
    ----------
    requests : pyarrow.Table
        As :func:`flashwright.traces.tracefiles.columns` returns them.
    handles : int
        Groups, 1 to 64; fewer are made where there are fewer intervals.
    page_bytes : int, optional
        What counts as a place: the drive's page.

    Returns
    -------
    tuple of Group
        That which is written again soonest first.

    Examples
    --------
    >>> import pyarrow as pa
    >>> hot = [(k % 32) * 128 for k in range(960)]
    >>> cold = [1 << 20 | k * 128 for k in range(40)]
    >>> table = pa.table({"kind": ["write"] * 1000, "first_sector": hot + cold, "sectors": [8] * 1000})
    >>> [(g.handle, g.place_bytes, g.share, g.interval_bytes, len(g.ranges)) for g in groups_of(table, 2)]
    [(1, 131072, 0.96, 136533.3..., 1), (2, 163840, 0.04, None, 1)]
    """
    return _grouped(_regions(requests, page_bytes), handles, page_bytes)


@dataclass(frozen=True)
class _Regions:
    """What was written of the regions that were, each an entry of every column."""

    numbers: npt.NDArray[Any]
    places: npt.NDArray[Any]
    """Pages that were written."""
    writes: npt.NDArray[Any]
    """Times that pages were written."""
    pages: int
    """Pages of a region."""
    written: npt.NDArray[Any]
    """All pages that were written, in order."""


def _regions(requests: pa.Table, page_bytes: int) -> _Regions:
    first, pages = _written(requests, page_bytes)
    place, counts = np.unique(_each_page(first, pages), return_counts=True)
    size = (
        1
        if len(first) == 0
        else _region_pages(int(first.min()), int((first + pages).max()), page_bytes)
    )
    numbers, begins = np.unique(place // size, return_index=True)
    places = np.diff(np.append(begins, len(place)))
    writes = np.add.reduceat(counts, begins) if len(begins) else counts
    return _Regions(numbers, places, writes, size, place)


def _grouped(regions: _Regions, handles: int, page_bytes: int) -> tuple[Group, ...]:
    places, writes = regions.places, regions.writes
    if len(writes) == 0:
        return ()
    total = int(writes.sum())
    interval = total / (writes / places)
    bins = np.clip(np.round(np.log2(interval) * _BINS_PER_OCTAVE).astype(np.int64), 0, _BINS - 1)
    group = _cut(bins, places, handles)
    found = []
    for handle in range(1, int(group.max()) + 2):
        mine = group == handle - 1
        again = interval[mine & (writes > places)]
        found.append(
            Group(
                handle=handle,
                place_bytes=int(places[mine].sum()) * page_bytes,
                share=float(writes[mine].sum() / total),
                interval_bytes=float(np.median(again)) * page_bytes if len(again) else None,
                ranges=_ranges(regions.numbers, group, handle - 1, regions.pages * page_bytes),
            )
        )
    return tuple(found)


def _written(requests: pa.Table, page_bytes: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """First page and pages of each write."""
    import pyarrow.compute as pc

    writes = pc.equal(requests["kind"], "write").to_numpy()
    sector = requests["first_sector"].to_numpy()[writes].astype(np.int64)
    sectors = requests["sectors"].to_numpy()[writes].astype(np.int64)
    per_page = page_bytes // SECTOR_BYTES
    first = sector // per_page
    return first, (sector + sectors + per_page - 1) // per_page - first


def _each_page(first: npt.NDArray[Any], pages: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Every page that requests touch, once for each time."""
    begins = np.cumsum(pages) - pages
    return np.asarray(np.arange(int(pages.sum())) + np.repeat(first - begins, pages))


def _region_pages(low: int, high: int, page_bytes: int) -> int:
    """Pages of a region: the least power of two that is large enough."""
    region = max(1, _REGION_MIN // page_bytes)
    while (high - low) / region > _REGIONS_MAX:
        region *= 2
    return region


def _cut(bins: npt.NDArray[Any], weights: npt.NDArray[Any], parts: int) -> npt.NDArray[Any]:
    """The group of each value, such that the variance within groups is least; groups in rising order."""
    values, where = np.unique(bins, return_inverse=True)
    weight = np.bincount(where, weights=weights.astype(np.float64))
    parts = min(parts, len(values))
    x = values.astype(np.float64)
    sums = [np.concatenate(([0.0], np.cumsum(weight * x**power))) for power in (0, 1, 2)]

    def cost(begins: npt.NDArray[Any], end: int) -> npt.NDArray[Any]:
        """Weighted sum of squares of the values from each of `begins` up to before `end`."""
        w, wx, wxx = (part[end] - part[begins] for part in sums)
        return np.asarray(wxx - wx**2 / w)

    count = len(values)
    least = np.full((parts + 1, count + 1), np.inf)
    from_ = np.zeros((parts + 1, count + 1), dtype=np.int64)
    least[0, 0] = 0.0
    for part in range(1, parts + 1):
        for end in range(part, count + 1):
            begins = np.arange(part - 1, end)
            costs = least[part - 1, begins] + cost(begins, end)
            chosen = int(np.argmin(costs))
            least[part, end], from_[part, end] = costs[chosen], begins[chosen]
    group = np.zeros(count, dtype=np.int64)
    end = count
    for part in range(parts, 0, -1):
        begin = int(from_[part, end])
        group[begin:end] = part - 1
        end = begin
    return group[where]


def _ranges(
    at: npt.NDArray[Any], group: npt.NDArray[Any], mine: int, region_bytes: int
) -> tuple[tuple[int, int], ...]:
    """Ranges of bytes of a group. Regions that nobody wrote do not part those on their two sides."""
    turns = np.flatnonzero(np.diff(group, prepend=-1, append=-1))
    return tuple(
        (int(at[begin]) * region_bytes, int(at[end - 1] + 1 - at[begin]) * region_bytes)
        for begin, end in itertools.pairwise(turns)
        if group[begin] == mine
    )


def handle_table(groups: Sequence[Group]) -> list[tuple[int, int]]:
    """First bytes in rising order, each with the handle from there on, as :func:`tracefiles.convert` takes them.

    Examples
    --------
    >>> handle_table([Group(1, 0, 0, None, ((4096, 4096),)), Group(2, 0, 0, None, ((16384, 4096),))])
    [(0, 0), (4096, 1), (8192, 0), (16384, 2), (20480, 0)]
    """
    ranges = sorted((first, size, group.handle) for group in groups for first, size in group.ranges)
    table = [(0, 0)]
    for first, size, handle in ranges:
        if table[-1][0] == first:
            table.pop()
        table += [(first, handle), (first + size, 0)]
    return table


def advise_placement(
    ssd: Ssd,
    source: Trace,
    *,
    handles: Sequence[int] = HANDLES,
    settings: RunSettings | None = None,
    jobs: int | None = None,
    progress: Callable[[str, Progress], None] | None = None,
) -> Placement:
    """Play a trace with and without placement by handle, and say how many handles pay and what goes where.

    What pays is played with reclaim units of another size too.

    Parameters
    ----------
    ssd : Ssd
        The drive. Without a :meth:`Ssd.precondition` of its own it is preconditioned with the trace (``auto``).
    source : Trace
        The load.
    handles : sequence of int, optional
        Numbers of handles to try, 1 to 64.
    settings : RunSettings, optional
        All else that makes the runs.
    jobs : int, optional
        Runs at a time.
    progress : callable, optional
        Called with the label of a run and where it stands.

    Raises
    ------
    ConfigError
        If the drive can't place by handle, such as one whose RAM keeps none.
    WorkloadError
        If one half of the trace has fewer than 1,000 writes.

    Examples
    --------
    >>> ssd = Ssd.named("default").with_({"timing.model": "none"}, blocks_per_plane=128)
    >>> found = advise_placement(ssd, trace("bundled:postmark", addresses="scale"), handles=[2])
    >>> found.best.choice.handles, found.runs[0].amplification > 1.05 * found.best.amplification
    (2, True)
    """
    wrong = [count for count in handles if not 1 <= count <= _HANDLES_MAX]
    if wrong or not handles:
        raise ConfigError(
            f"handles: found {wrong[0] if wrong else 'none'}, expected 1 to {_HANDLES_MAX}",
            "such as 2, 4 and 8",
            parameters=["handles"],
        )
    if ssd.config["ram"]["manager"] != "none":
        raise ConfigError(
            f'{ssd.config["name"]}: ram.manager = "{ssd.config["ram"]["manager"]}" keeps no handles',
            "without it (none), the drive would place by handle",
        )
    ssd = ssd.settling()
    given = settings or RunSettings()
    if given.depth is None and given.time_scale is None:
        given = replace(given, depth=_DEPTH)
    requests = tracefiles.columns(source)
    half = requests.num_rows // 2
    page_bytes = _core.size_read(ssd.config["geometry"]["page-size"])
    learned = requests.slice(0, half)
    for part, which in ((learned, "first"), (requests.slice(half), "second")):
        writes = len(_written(part, page_bytes)[0])
        if writes < _WRITES_MIN:
            raise WorkloadError(
                f"{source.path}: the {which} half has {writes:,} writes, expected {_WRITES_MIN:,} or more",
                "lifetimes are learned from the first half and played with the second; record for longer",
            )
    regions = _regions(learned, page_bytes)
    grouped = {count: _grouped(regions, count, page_bytes) for count in sorted(set(handles))}
    config = ssd.config
    own = config["geometry"]["superblock"]
    play = _Play(ssd, given, jobs, progress)
    with tempfile.TemporaryDirectory(prefix="flashwright-placement-") as folder:
        sources = {
            count: _second_half(source, Path(folder) / f"{count}.fwt", half, groups)
            for count, groups in [(0, ()), *grouped.items()]
        }
        play.all([Choice(0, "", own)], sources)
        play.all([Choice(n, kind, own) for n in grouped for kind in ISOLATIONS], sources)
        best, why = _verdict(play.runs, play.failures)
        if best is not None:
            others = [unit for unit in ("block", "drive") if unit != own]
            play.all(
                [
                    replace(choice, unit=unit)
                    for unit in others
                    for choice in (Choice(0, "", own), best.choice)
                ],
                sources,
            )
    return Placement(
        runs=tuple(play.runs),
        best=best,
        groups=() if best is None else grouped[best.choice.handles],
        unknown_share=_unknown(regions.written, requests.slice(half), page_bytes),
        failures=play.failures,
        why=why,
        finished=not play.interrupted,
    )


def _second_half(source: Trace, target: Path, half: int, groups: Sequence[Group]) -> Trace:
    """The trace from its middle on, with handles."""
    tracefiles.convert(source, target, skip=half, handles=handle_table(groups) if groups else ())
    return replace(
        trace(target, addresses=source.addresses), repeat=source.repeat, name=source.name
    )


class _Play:
    """Plays choices, and keeps what became of them."""

    def __init__(
        self,
        ssd: Ssd,
        settings: RunSettings,
        jobs: int | None,
        progress: Callable[[str, Progress], None] | None,
    ) -> None:
        self.runs: list[Run] = []
        self.failures: dict[Choice, str] = {}
        self.interrupted = False
        self._ssd, self._settings, self._jobs, self._progress = ssd, settings, jobs, progress

    def all(self, choices: Sequence[Choice], sources: Mapping[int, Trace]) -> None:
        """Play choices; a drive that can't do one is a failure."""
        made = []
        for choice in choices:
            try:
                variant = Maker(self._ssd, sources[choice.handles], self._settings).make(
                    self._set(choice)
                )
                variant.ssd.check()
            except FlashwrightError as error:
                self.failures[choice] = str(error)
                continue
            made.append((choice, variant))
        if self.interrupted or not made:
            return
        found = played([variant for _, variant in made], jobs=self._jobs, progress=self._progress)
        self.interrupted = found.interrupted
        for number, (choice, _) in enumerate(made):
            if number in found.errors:
                self.failures[choice] = str(found.errors[number])
            elif number in found.results and not found.interrupted:
                self.runs.append(Run(choice, found.results[number]))

    def _set(self, choice: Choice) -> dict[str, object]:
        """Settings of the drive for a choice."""
        config = self._ssd.config
        asked: dict[str, object] = {"placement.policy": config["placement"]["policy"]}
        if choice.unit != config["geometry"]["superblock"]:
            asked["geometry.superblock"] = choice.unit
        if choice.unit == "drive" and config["placement"]["order"] != "CWDP":
            asked["placement.order"] = "CWDP"  # units of all dies leave no order
        if choice.handles:
            # Handle 0 is for places that are not known.
            asked["placement.policy"] = "fdp"
            asked["placement.fdp.handles"] = choice.handles + 1
            asked["placement.fdp.isolation"] = choice.isolation
        elif asked["placement.policy"] == "fdp":
            asked["placement.policy"] = "single"
        return asked


def _verdict(runs: Sequence[Run], failures: Mapping[Choice, str]) -> tuple[Run | None, str]:
    """The run to recommend, and the verdict as a sentence."""
    bare = [run for run in runs if not run.choice.handles]
    placed = [run for run in runs if run.choice.handles and run.amplification is not None]
    if bare and all(run.result.settled.verdict == "never-cleaned" for run in bare):
        return None, (
            "cleaning moves no page of this load on this drive, so there is nothing to gain; if the load was to fill "
            "the drive, fit its addresses to it (scale), or take a smaller drive"
        )
    # Without cleaning, write amplification is 1, and that is as good as it gets.
    placed += [
        run for run in runs if run.choice.handles and run.result.settled.verdict == "never-cleaned"
    ]
    known = [run for run in bare if run.amplification is not None]
    if failures and not any(run.choice.handles for run in runs):
        return None, "nothing is known: the drive can't do any of it (notes)"
    if not known or not placed:
        return (
            None,
            "nothing is known: not both a run with handles and the one without had settled",
        )

    def of(run: Run) -> float:
        return run.amplification if run.amplification is not None else 1.0

    least = min(map(of, placed))
    best = min(
        (run for run in placed if of(run) <= least * (1 + _MATTERS)),
        key=lambda run: (run.choice.handles, of(run)),
    )
    reference = known[0]
    gain = of(reference) - of(best)
    state = "settled" if best.amplification is not None else "without cleaning"
    figures = f"write amplification {of(best):.3f} instead of {of(reference):.3f}, {state}"
    if gain <= max(_MATTERS * of(reference), reference.width + best.width):
        so = "which is more" if gain < 0 else "which is within what runs differ by"
        return (
            None,
            f"gains nothing for this load on this drive: {best.choice.handles} handles have {figures}, {so}",
        )
    return best, f"{best.choice.text}: {figures}"


def _unknown(known: npt.NDArray[Any], requests: pa.Table, page_bytes: int) -> float:
    """Share of the pages written that are not among those known."""
    after = _each_page(*_written(requests, page_bytes))
    return float(np.count_nonzero(~np.isin(after, known)) / max(1, len(after)))
