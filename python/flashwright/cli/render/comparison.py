"""Several runs side by side, as tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flashwright.cli.render import units
from flashwright.cli.render.fit import Column, Table
from flashwright.cli.render.page import (
    console,
    grid,
    pace,
    plain_table,
    precondition,
    tenants,
    warnings,
)
from flashwright.simulation.over_seeds import groups_of
from flashwright.simulation.parts import amplifications_differ
from flashwright.simulation.results import RunResult, Runs

__all__ = ["seed_notes", "show_comparison", "show_over_seeds"]


@dataclass(frozen=True, kw_only=True)
class _Figure(Column):
    """A column of a comparison; one that is not always there is where any run has its figure."""

    show: Callable[[float | None], str]
    of: Callable[[Mapping[str, Any]], float | None]
    always: bool = True
    where: Callable[[Mapping[str, Any]], bool] | None = None

    def wanted(self, runs: Sequence[Mapping[str, Any]]) -> bool:
        """Whether it is there for these runs."""
        if self.where is not None:
            return any(self.where(run) for run in runs)
        return self.always or any(self.of(run) is not None for run in runs)


def _path(path: str) -> Callable[[Mapping[str, Any]], float | None]:
    def of(figures: Mapping[str, Any]) -> float | None:
        found: Any = figures
        for key in path.split("/"):
            found = found[key]
        return None if found is None else float(found)

    return of


def _cleaning_programs(figures: Mapping[str, Any]) -> float:
    programs = figures["flash"]["programs"]
    return float(programs["gc"] + programs["merge"])


def _size_to_drive(figures: Mapping[str, Any]) -> float | None:
    """Mean size of reads and writes that the lowest scheduler handed on; None without one."""
    if not figures["host_layers"]:
        return None
    lowest = figures["host_layers"][-1]
    requests = sum(lowest[kind]["requests"] for kind in ("reads", "writes"))
    size = sum(lowest[kind]["bytes"] for kind in ("reads", "writes"))
    return float(size) / requests if requests else None


_VERDICTS = tuple(units.VERDICTS)


def _verdict_number(figures: Mapping[str, Any]) -> float | None:
    settled = figures["settled"]
    return None if settled is None else float(_VERDICTS.index(settled["verdict"]))


def _verdict(number: float | None) -> str:
    return units.VERDICTS["none" if number is None else _VERDICTS[int(number)]]


def _comparison(table_ram: bool) -> list[_Figure]:
    def figure(
        name: str,
        importance: int,
        show: Callable[[float | None], str],
        of: str | Callable[[Mapping[str, Any]], float | None],
        *,
        always: bool = True,
        where: Callable[[Mapping[str, Any]], bool] | None = None,
    ) -> _Figure:
        found = _path(of) if isinstance(of, str) else of
        return _Figure(name, importance, show=show, of=found, always=always, where=where)

    response = "response_time_ns/all"
    columns = [
        figure("requests", 60, units.count, "measured/requests"),
        figure("WA", 99, units.number, "write_amplification"),
        figure(
            "WA(bytes)",
            98,
            units.number,
            "write_amplification_bytes",
            where=amplifications_differ,
        ),
        figure("settled", 98, _verdict, _verdict_number, always=False),
        figure("IOPS", 97, units.count, "throughput/iops"),
        figure("mean", 95, units.time, f"{response}/mean"),
        figure("p99", 93, units.time, f"{response}/p99"),
        figure("p99.9", 50, units.time, f"{response}/p99_9"),
        figure("gc programs", 40, units.count, _cleaning_programs),
        figure("erases", 80, units.count, "flash/erases/total"),
        figure("victim invalid", 65, units.share, "gc/efficiency"),
        figure("max erases", 30, units.count, "wear/erases_per_block/max"),
    ]
    if table_ram:
        columns += [
            figure("block use", 55, units.share, "gc/block_utilization", always=False),
            figure("table RAM", 85, units.size, "scheme/ram_bytes", always=False),
        ]
    columns += [
        figure(f"{kind} merges", importance, units.count, f"merges/{kind}", always=False)
        for kind, importance in (("switch", 62), ("partial", 61), ("full", 83))
    ]
    return [
        *columns,
        figure("size to drive", 72, units.size, _size_to_drive, always=False),
        figure("hit ratio", 82, units.share, "mapping_cache/hit_ratio", always=False),
        figure("prefetch used", 69, units.share, "mapping_cache/prefetch_accuracy", always=False),
        figure("write hits", 71, units.share, "buffer/write_hit_ratio", always=False),
        figure(
            "pages/destage",
            70,
            lambda mean: units.number(mean, 2),
            "buffer/pages_per_destage_mean",
            always=False,
        ),
    ]


def _common(texts: Sequence[str]) -> str:
    """What all runs have in common, or that they differ."""
    return texts[0] if len(set(texts)) == 1 else "varied"


def _side_by_side(results: Sequence[RunResult], columns: Sequence[_Figure]) -> Table:
    table = plain_table(Column("run", 100, number=False), *columns)
    for result in results:
        j = result.json
        label = result.label if j["ended"] == "complete" else f"{result.label} ({j['ended']})"
        table.add_row(label, *(column.show(column.of(j)) for column in columns))
    return table


def _group_identical(results: Sequence[RunResult]) -> list[list[str]]:
    """Labels of runs that no setting distinguishes, such as those of a scheme that uses no victim policy."""
    by_digest: dict[str, list[str]] = {}
    for result in results:
        by_digest.setdefault(str(result.json["digest"]), []).append(result.label)
    return [labels for labels in by_digest.values() if len(labels) > 1]


def _ram_note(runs: Sequence[Mapping[str, Any]]) -> str | None:
    """Where DFTL's RAM comes from, which it has as a setting and other schemes don't."""
    of_dftl = [
        run["config"]["ftl"]["dftl"] for run in runs if run["config"]["ftl"]["scheme"] == "dftl"
    ]
    if not any(dftl["ram"] == "0 B" and dftl["cmt-entries"] == 0 for dftl in of_dftl):
        return None
    return (
        "table RAM: with ftl.dftl.ram = 0 B, DFTL's cache takes as much as FAST's tables would (log blocks by "
        "ftl.dftl.log-share), plus its directory; other schemes take what their tables need"
    )


def show_comparison(results: Sequence[RunResult], title: str, *, table_ram: bool = False) -> None:
    """Print runs side by side."""
    out = console()
    runs: list[Mapping[str, Any]] = [result.json for result in results]
    head = [("compare", title), ("workload", _common([run["workload"] for run in runs]))]
    notes = dict.fromkeys(note for run in runs for note in run["workload_notes"])
    head.extend(("", note) for note in notes)
    head.append(("pace", _common([pace(run["pace"]) for run in runs])))
    head.append(("precondition", precondition(runs[0]["precondition"])))
    out.print(grid([*head, ("seed", str(runs[0]["seed"])), *warnings(results)]))
    wanted = [column for column in _comparison(table_ram) if column.wanted(runs)]
    out.print(_side_by_side(results, wanted))
    for table in tenants(results):
        out.print(table)
    if table_ram and (note := _ram_note(runs)):
        out.print(note)
    for labels in _group_identical(results):
        out.print(f"identical in every request and in the final state: {'; '.join(labels)}")
    for result in results:
        if result.json["note"]:
            out.print(f"{result.label}: {result.json['note']}")
    wrong = sum(len(result.violations) for result in results)
    if any(result.json["verify"]["enabled"] for result in results):
        out.print(
            f"verify: {wrong:,} VIOLATIONS"
            if wrong
            else "verify: every read and the final states are correct"
        )


def show_over_seeds(runs: Runs) -> None:
    """Print means over seeds, each with half the width of its 95 % interval where there is one."""
    figures: dict[str, tuple[str, Callable[[float | None], str]]] = {
        "write_amplification": ("WA", units.number),
        "write_amplification_bytes": ("WA(bytes)", units.number),
        "throughput.iops": ("IOPS", units.count),
        "response_time_ns.all.mean": ("mean", units.time),
        "response_time_ns.all.p99": ("p99", units.time),
    }
    groups = groups_of(runs)
    if not any(
        amplifications_differ({name: each.mean for name, each in group.figures.items()})
        for group in groups
    ):
        del figures["write_amplification_bytes"]
    table = plain_table(
        Column("mean over seeds", 100, number=False),
        Column("seeds", 60),
        Column("settled", 90),
        *(Column(f"{name} ± 95 %", 99 - at) for at, (name, _) in enumerate(figures.values())),
    )
    for group in groups:
        shown = []
        for name, (_, show) in figures.items():
            found = group.figures.get(name)
            within = None if found is None else found.ci95
            text = "-" if found is None else show(found.mean)
            shown.append(text if within is None else f"{text} ± {show(within)}")
        count = len(group.runs)
        same = count > 1 and group.different < count
        table.add_row(
            group.label,
            f"{count} ({group.different} different)" if same else str(count),
            f"{group.settled} of {count}",
            *shown,
        )
    out = console()
    out.print(table)
    for note in seed_notes(
        [(group.label, len(group.runs), group.interval) for group in groups if group.different == 1]
    ):
        out.print(note)


def seed_notes(equal_digests: Sequence[tuple[str, int, str | None]]) -> list[str]:
    """What to say where the seed changes nothing: each has its label, its seeds, and what its interval is over."""
    said: dict[str | None, list[str]] = {}
    for label, count, interval in equal_digests:
        if count > 1:
            said.setdefault(interval, []).append(label)
    return [
        f"the seed changes nothing in {'; '.join(filter(None, labels)) or 'this run'} (equal digests): one run, played "
        "again. "
        + (
            "Its ± is over parts of the run, by a block bootstrap of the time series; of p99 there is none"
            if interval
            else "No interval: nothing in the run tells one"
        )
        for interval, labels in said.items()
    ]
