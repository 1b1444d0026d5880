"""The tables that `simulate` and `compare` print."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from flashwright.cli.render import flash, units
from flashwright.cli.render.fit import TEXT_MAX, Column, Grid, Table, wrap
from flashwright.simulation.parts import amplifications_differ
from flashwright.simulation.results import RunResult
from flashwright.simulation.warnings import gathered
from flashwright.support.printable import printable

if TYPE_CHECKING:
    # Loaded only for a terminal: it takes as long as a short run.
    from rich.console import Console, RenderableType

__all__ = [
    "Column",
    "Piped",
    "console",
    "grid",
    "host_layers",
    "pace",
    "plain_table",
    "precondition",
    "show_run",
    "tenants",
    "times",
    "warned_rows",
    "warnings",
]

_CAUSES = ("host", "gc", "merge", "padding", "translation", "wear")
# Without a terminal and COLUMNS, no column is left out: what reads the lines can cut them.
_WIDTH_PIPED = 1000
_WIDTH_LEAST = 20
# Variables of the environment by which people ask Rich for the style of a terminal where there is none.
_WANT_STYLE = ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")


class Piped:
    """Standard output that is no terminal: lines without style, for which nothing need be loaded.

    Attributes
    ----------
    width : int
        Characters of a line.
    """

    def __init__(self, width: int) -> None:
        self.width = width

    def print(self, *objects: Any, soft_wrap: bool | None = None, **style: Any) -> None:
        """Print text and tables of our own, or have Rich print what is its own."""
        lines: Sequence[str]
        if len(objects) == 1 and isinstance(objects[0], str) and not soft_wrap:
            lines = wrap(objects[0], min(self.width, TEXT_MAX))
        elif len(objects) == 1 and isinstance(objects[0], Grid | Table):
            lines = objects[0].lines(self.width)
        else:
            _styled(self.width).print(*objects, soft_wrap=soft_wrap, **style)
            return
        sys.stdout.writelines(f"{printable(line)}\n" for line in lines)
        sys.stdout.flush()


def console() -> Console | Piped:
    """The current standard output.

    It is as wide as the terminal, or as ``COLUMNS`` says; piped without that, as wide as any table needs.
    """
    given = os.environ.get("COLUMNS", "")
    if sys.stdout.isatty() or (given.isdecimal() and int(given) > 0):
        width = max(shutil.get_terminal_size().columns, _WIDTH_LEAST)
    else:
        width = _WIDTH_PIPED
    wants_style = any(os.environ.get(name) for name in _WANT_STYLE)
    return _styled(width) if sys.stdout.isatty() or wants_style else Piped(width)


def _styled(width: int) -> Console:
    """Standard output by Rich."""
    from flashwright.cli.render.styled import Styled

    return Styled(file=sys.stdout, width=width, highlight=False, markup=False, emoji=False)


def plain_table(
    *columns: str | Column, right: Sequence[str] = (), elsewhere: str = "--json"
) -> Table:
    """A table with a line below its head and nothing more, which fits the terminal.

    Parameters
    ----------
    *columns : str or Column
        From left to right. Of those given by name alone, the first stays, and the others leave from the last on.
    right : sequence of str
        Names of columns that hold numbers; of columns given by name alone.
    elsewhere : str
        The option that has what a narrow terminal leaves out; empty where there is none.
    """
    made = [
        each
        if isinstance(each, Column)
        else Column(each, 100 if at == 0 else 50, number=each in right)
        for at, each in enumerate(columns)
    ]
    return Table(made, elsewhere)


def grid(rows: Sequence[tuple[str, str]]) -> Grid:
    """Names and what they have, a row each."""
    return Grid(rows)


def show_run(result: RunResult) -> None:
    """Print one run."""
    out = console()
    for part in (
        _head(result),
        _figures(result),
        _operations(result),
        _times(result),
        *tenants([result]),
        host_layers(result.json["host_layers"]),
        _foot(result),
    ):
        if part is not None:
            out.print(part)


def show_served(served: Mapping[str, Any]) -> None:
    """Print what a server did, beside its drive."""
    connections = served["connections"]
    talked = f"{units.count(connections['total'])} in {units.seconds(served['wall_s'])}"
    if connections["broken"]:
        talked += f", {units.count(connections['broken'])} ended by errors of the client"
    rows = [("", ""), ("connections", talked)]
    if served["commands_failed"]:
        rows.append(("commands failed", units.count(served["commands_failed"])))
    if served["recorded"] is not None:
        rows.append(("recorded", f"{units.count(served['recorded'])} requests"))
    late = served["lateness_ns"]
    if late is not None and late["count"]:
        text = f"p50 {units.time(late['p50'])}, p99 {units.time(late['p99'])}, max {units.time(late['max'])}"
        if served["seconds_behind"]:
            text += f"; behind the model for {units.count(served['seconds_behind'])} s"
        rows.append(("replies late by", text))
    console().print(grid(rows))


def _drive(config: Mapping[str, Any], drive: Mapping[str, Any]) -> str:
    g = config["geometry"]
    logical, page = drive["logical_bytes"], drive["logical_bytes"] / max(1, drive["logical_pages"])
    return (
        f"{config['name']}: {units.size(logical)} of {units.size(drive['physical_pages'] * page)} flash, "
        f"{g['channels']} x {g['dies-per-channel']} dies, {config['ftl']['scheme']} mapping, "
        f"victim {config['gc']['victim']}, timing {config['timing']['model']}"
    )


def _head(result: RunResult) -> RenderableType:
    j: Mapping[str, Any] = result.json
    rows = [("drive", _drive(j["config"], j["drive"])), ("workload", j["workload"])]
    rows.extend(("", note) for note in j["workload_notes"])
    rows.extend(
        ("policy", f"{policy['name']} of {policy['file'] or policy['module']} for {policy['key']}")
        for policy in j["policies"]
    )
    is_served = j["pace"] == "interactive" and j["application"] is None
    rows.append(("pace", "the clients' own" if is_served else pace(j["pace"])))
    rows.append(("precondition", precondition(j["precondition"])))
    measured = f"{units.count(j['measured']['requests'])} requests"
    if j["measured"]["duration_ns"] is not None:
        measured += f" in {units.time(j['measured']['duration_ns'])} of the drive's time"
    if j["measured"]["warmup_requests"]:
        measured += f", after {units.count(j['measured']['warmup_requests'])} of warm-up"
    rows.append(("measured", f"{measured}; seed {j['seed']}"))
    if j["application"]:
        rows.append(("program", _program(j["application"])))
    if j["ended"] != "complete":
        rows.append(("ended early", f"{j['ended']}{': ' + j['note'] if j['note'] else ''}"))
    rows.extend(warnings([result]))
    return grid(rows)


def warnings(results: Sequence[RunResult]) -> list[tuple[str, str]]:
    """What runs warn of, a row each; of several runs each text once, with the labels of those that it concerns."""
    return warned_rows((result.label, result.json["warnings"]) for result in results)


def warned_rows(runs: Iterable[tuple[str, Iterable[Mapping[str, Any]]]]) -> list[tuple[str, str]]:
    """The same from labels and warnings as the JSON of a run has them."""
    return [("warning", str(each)) for each in gathered(runs)]


def _program(figures: dict[str, float]) -> str:
    """What a program above a file system did, on one line."""
    parts = [f"{figures['seconds']:.3f} s ({figures['seconds_with_sync']:.3f} s with sync)"]
    parts += [
        f"{units.count(round(figures[name]))} {name}"
        for name in ("transactions", "operations")
        if name in figures
    ]
    parts += [
        f"{kind} {units.size(figures[f'bytes_{done}'])}, {units.size(figures[f'{kind}_bytes_per_s'])}/s"
        for kind, done in (("read", "read"), ("write", "written"))
    ]
    parts.append(f"{figures['cache_hit_ratio']:.1%} of pages read were in memory")
    return "; ".join(parts)


def pace(pace: Mapping[str, Any] | str) -> str:
    """When requests were issued."""
    if pace == "tenants":
        return "each tenant's own"
    if isinstance(pace, str):
        return "the program's own: its threads wait for the drive"
    if "closed" in pace:
        return f"closed loop, {units.count(pace['closed']['depth'])} outstanding"
    scale = pace["open"]["time_scale"]
    return "open loop, at arrival times" + ("" if scale == 1 else f" multiplied by {scale:g}")


def precondition(done: Mapping[str, Any]) -> str:
    """What was done to the drive before the run."""
    text = str(done["spec"])
    if done["pages_written"]:
        text += f" ({units.count(done['pages_written'])} pages written)"
    if (small := done.get("scaled")) is not None:
        text += (
            f"; a fill in order, since {small['refused']}"
            if small["refused"] is not None
            else f"; a copy of a drive {small['times_smaller']:.3g} times smaller "
            f"after {small['capacities']:.2f} capacities"
        )
    if (by := done.get("workload")) is not None:
        times = f", {units.count(by['passes'])} passes" if by["passes"] else ""
        text += (
            f", then {units.count(by['requests'])} requests{times} ({by['capacities']:.2f} capacities written), "
            f"{_SEARCH[by['ended']]}"
        )
    if done["steady"] is not None:
        rounds = len(done["write_amplification_rounds"])
        text += (
            f"; steady after {rounds} rounds"
            if done["steady"]
            else f"; NOT steady after {rounds} rounds"
        )
    return text


_SEARCH = {
    "settled": "until settled",
    "gave-up": "NOT settled: gave up",
    "nothing-written": "which wrote nothing",
    "ended": "NOT settled: the workload ended",
    "under-way": "not settled yet",
}


def _amplification(figures: Mapping[str, Any]) -> str:
    """Write amplification with its interval, and whether it is of a settled drive."""
    text = units.number(figures["write_amplification"])
    if amplifications_differ(figures):
        text += " by pages"
    settled = figures["settled"]
    if settled is None or settled["verdict"] == "none":
        return text
    if settled["verdict"] == "transient":
        return f"{text}, TRANSIENT: not the figure of a settled drive"
    within = (
        "" if settled["interval"] is None else f" (95 %: {units.interval(settled['interval'])})"
    )
    if settled["verdict"] == "never-cleaned":
        return f"{text}{within}, NO CLEANING: it moved no page under this load"
    if settled["verdict"] == "too-short":
        return f"{text}{within}; {settled['why']}"
    return f"{text}{within}, settled"


def by_bytes(figures: Mapping[str, Any]) -> list[tuple[str, str]]:
    """A row for write amplification by bytes, where it is not that by pages."""
    if not amplifications_differ(figures):
        return []
    found = units.number(figures["write_amplification_bytes"])
    return [("by bytes", f"{found}, as drives count it: NAND writes over host writes")]


def _figures(result: RunResult) -> RenderableType:
    j = result.json
    wear = j["wear"]["erases_per_block"]
    rows = [("", ""), ("write amplification", _amplification(j)), *by_bytes(j)]
    if (into := j["host"]["pages_into_flash"]) != j["host"]["pages_written"]:
        of_those = units.number(j["write_amplification_into_flash"])
        rows.append(
            (
                "into flash",
                f"{units.count(into)} host pages, write amplification {of_those} of those",
            )
        )
    throughput = j["throughput"]
    if throughput["iops"] is not None:
        rows.append(
            (
                "throughput",
                f"{units.count(throughput['iops'])} IOPS, {units.rate(throughput['bytes_per_s'])}",
            )
        )
    host = j["host"]
    rows.append(
        (
            "host pages",
            f"{units.count(host['pages_read'])} read, {units.count(host['pages_written'])} written, "
            f"{units.count(host['pages_trimmed'])} trimmed",
        )
    )
    rows.append(("cleaning", _cleaning(j)))
    if j["merges"]["full"] is not None:
        merges = (
            f"{units.count(j['merges'][kind])} {kind}" for kind in ("switch", "partial", "full")
        )
        rows.append(("merges", ", ".join(merges)))
    if j["mapping_cache"]["lookups"] is not None:
        cache = j["mapping_cache"]
        found = f"{units.share(cache['hit_ratio'])} of {units.count(cache['lookups'])} found"
        if cache["prefetched"]:
            found += (
                f", {units.count(cache['prefetched'])} entries prefetched, "
                f"{units.share(cache['prefetch_accuracy'])} of them used"
            )
        rows.append(("mapping cache", found))
    rows += _handles(j["handles"])
    rows += _groups(j["groups"])
    if j["zones"] is not None:
        rows += _zones(j["zones"])
    if (folded := _slc_cache(j)) is not None:
        rows.append(("SLC cache", folded))
    if (used := j["gc"]["block_utilization"]) is not None:
        rows.append(("block utilization", f"{units.share(used)} of a block's pages at its erase"))
    if j["controller"] is not None:
        rows.append(("controller", _controller(j["controller"])))
    if j["buffer"]["writes"] is not None:
        rows.append(("buffer", _buffer(j["buffer"])))
    if j["chips"] is not None:
        rows.append(("chips", flash.chips(j["chips"])))
    if (errors := j["errors"]) is not None:
        rows.append(("bit errors", flash.errors(errors)))
    if (energy := j["energy"]) is not None:
        rows.append(("energy", flash.energy(energy)))
    worn = j["wear"]["blocks_worn_out"]
    erases = f"{units.count(wear['min'])} to {units.count(wear['max'])}"
    spread = f"mean {units.number(wear['mean'], 2)}, stdev {units.number(wear['stdev'], 2)}"
    end = f"; {units.count(worn)} blocks worn out" if worn else ""
    rows.append(("erases per block", f"{erases}, {spread}{end}"))
    return grid(rows)


def _handles(handles: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """A line for each handle that wrote, or whose pages were moved: its own cost, and whose writes it was for."""
    for handle in handles:
        written, moved = handle["pages_written"], handle["pages_moved"]
        if not written and not moved:
            continue
        line = f"{units.count(written)} pages written"
        if (amplification := handle["write_amplification"]) is not None:
            line += f", {units.number(amplification)} programmed for each"
        line += f"; {units.count(moved)} moved"
        if moved:
            causes = enumerate(handle["pages_moved_for"])
            others = [f"{units.share(of / moved)} for writes of {by}" for by, of in causes if of]
            line += f", of these {', '.join(others)}"
        yield f"handle {handle['handle']}", line


def _groups(groups: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """A line for each reclaim group: what it took and programmed, and how many of its units are erased."""
    for group in groups:
        line = f"{units.count(group['pages_written'])} pages written"
        if (amplification := group["write_amplification"]) is not None:
            line += f", {units.number(amplification)} programmed for each"
        line += (
            f"; {units.count(group['pages_moved'])} moved, {units.count(group['erases'])} erases"
        )
        free = f"{units.count(group['units_free'])} of {units.count(group['units'])} units free"
        yield f"group {group['group']}", f"{line}; {free}"


def _zones(zones: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What became of the zones, and what was refused."""
    named = (
        f"{units.count(count)} {state.replace('_', ' ')}"
        for state, count in zones["states"].items()
        if count
    )
    size = units.size(zones["capacity_bytes"])
    yield "zones", f"{units.count(zones['zones'])} of {size}: {', '.join(named)}"
    yield "zones reset", units.count(zones["resets"])
    if zones["finishes"]:
        padding = f"{units.count(zones['pages_padded'])} pages of padding"
        yield "zones finished", f"{units.count(zones['finishes'])}, with {padding}"
    refused = [
        f"{units.count(count)} {rule.replace('_', ' ')}"
        for rule, count in zones["refusals"].items()
        if count
    ]
    if refused:
        yield "requests refused", ", ".join(refused)


def _controller(figures: Mapping[str, Any]) -> str:
    """What stands between the interface and the flash did; parts that did nothing are left out."""
    parts = []
    if figures["write_buffer_bytes"]:
        parts.append(
            f"{units.size(figures['write_buffer_bytes'])} through the write buffer in "
            f"{units.count(figures['flushes'])} flushes, {units.count(figures['flushes_forced'])} of them forced"
        )
    if figures["write_through_bytes"]:
        parts.append(f"{units.size(figures['write_through_bytes'])} past it")
    if figures["read_buffer_hits"]:
        parts.append(f"{units.count(figures['read_buffer_hits'])} reads from the read buffer")
    if figures["prefetched_bytes"]:
        used = figures["prefetched_used_bytes"] / figures["prefetched_bytes"]
        parts.append(
            f"{units.size(figures['prefetched_bytes'])} read ahead, {units.share(used)} of it used"
        )
    if figures["turnarounds"]:
        parts.append(f"{units.count(figures['turnarounds'])} turns between reading and writing")
    return "; ".join(parts) or "no buffer was used"


def _cleaning(figures: Mapping[str, Any]) -> str:
    victims = figures["gc"]["collections"]
    if victims == 0 and figures["scheme"]["extra"].get("slc_pages_folded"):
        return "no victims: folding the SLC cache made room"
    if victims == 0 and figures["precondition"]["spec"] == "empty":
        return "none: the drive began empty and had room for all of it (see --precondition)"
    of_pages = units.share(figures["gc"]["efficiency"])
    return f"{units.count(victims)} victims, {of_pages} of their pages invalid"


def _slc_cache(figures: Mapping[str, Any]) -> str | None:
    """What the SLC cache did; None without one."""
    extra = figures["scheme"]["extra"]
    if "slc_pages_written" not in extra:
        return None
    written, folded, blocks, used = (
        units.count(extra[f"slc_{name}"])
        for name in ("pages_written", "pages_folded", "blocks_folded", "blocks_in_use")
    )
    return f"{written} pages written, {folded} folded from {blocks} blocks; {used} blocks in use"


def _buffer(figures: Mapping[str, Any]) -> str:
    parts = []
    for kind in ("write", "read"):
        if figures[f"{kind}s"]:
            parts.append(
                f"{units.share(figures[f'{kind}_hit_ratio'])} of {units.count(figures[f'{kind}s'])} "
                f"pages {'written' if kind == 'write' else 'read'} found"
            )
    if figures["destages"]:
        mean = units.number(figures["pages_per_destage_mean"], 2)
        parts.append(f"{units.count(figures['destages'])} destages of {mean} pages")
    if figures["pages_padded"]:
        parts.append(f"{units.count(figures['pages_padded'])} pages padded")
    return ", ".join(parts) or "never used"


def _operations(result: RunResult) -> RenderableType:
    counts: Mapping[str, Any] = result.json["flash"]
    used = [
        cause
        for cause in _CAUSES
        if any(counts[kind][cause] for kind in ("reads", "programs", "erases"))
    ]
    kept = {"host": 90, "gc": 80, "merge": 70}
    table = plain_table(
        Column("flash operations", 100, number=False),
        *(Column(cause, kept.get(cause, 50)) for cause in used),
        Column("total", 100),
    )
    for kind in ("reads", "programs", "erases"):
        table.add_row(kind, *(units.count(counts[kind][cause]) for cause in [*used, "total"]))
    if counts["oob_reads"]["total"]:
        table.add_row(
            "spare reads", *(units.count(counts["oob_reads"][cause]) for cause in [*used, "total"])
        )
    return table


def _times(result: RunResult) -> RenderableType | None:
    response: Mapping[str, Any] = result.json["response_time_ns"]
    if not response["all"]["count"]:
        return None
    return times("response time", [(kind, response[kind]) for kind in ("all", "read", "write")])


def tenants(results: Sequence[RunResult]) -> Iterator[RenderableType]:
    """What each of several workloads had, and what it cost; then, of one run, its times by kind of request."""
    several = len(results) > 1
    rows: list[tuple[str, Mapping[str, Any], int]] = [
        (result.label, tenant, result.json["drive"]["logical_pages"])
        for result in results
        if result.json["drive"] is not None
        for tenant in result.json["tenants"]
    ]
    if not rows:
        return
    table = plain_table(
        *([Column("run", 100, number=False)] if several else []),
        Column("tenant", 99, number=False),
        *([] if several else [Column("pace", 60, number=False), Column("share", 50)]),
        Column("requests", 75),
        Column("IOPS", 95),
        Column("WA", 90),
        Column("moved", 55),
        Column("mean/alone", 97),
        Column("p99/alone", 98),
        Column("alone/IOPS", 96),
    )
    for label, tenant, logical in rows:
        slowdown = tenant["slowdown"] or dict.fromkeys(("mean_ratio", "p99_ratio", "iops_ratio"))
        kinds = ("read", "write", "trim", "flush")
        table.add_row(
            *([label] if several else []),
            tenant["name"],
            *([] if several else [_tenant_pace(tenant), units.share(tenant["pages"] / logical)]),
            units.count(sum(tenant["requests"][kind] for kind in kinds)),
            units.count(tenant["throughput"]["iops"]),
            units.number(tenant["write_amplification"]),
            units.count(tenant["pages_moved"]),
            *(
                units.number(slowdown[name], 2)
                for name in ("mean_ratio", "p99_ratio", "iops_ratio")
            ),
        )
    yield table
    by_kind = [
        (f"{tenant['name']}, {kind}s", tenant["response_time_ns"][kind])
        for _, tenant, _ in rows
        for kind in ("read", "write")
    ]
    if not several and any(found["count"] for _, found in by_kind):
        yield times("tenant", by_kind)


def _tenant_pace(tenant: Mapping[str, Any]) -> str:
    """When a tenant issued requests, in a word or two."""
    if "closed" in tenant["pace"]:
        return f"{units.count(tenant['pace']['closed']['depth'])} outstanding"
    return "at arrival times"


# Figures of times by how much they are missed, in the order in which they stand.
_TIMES = {"mean": 95, "p50": 70, "p90": 60, "p99": 90, "p99_9": 65, "max": 80}


def times(head: str, rows: Sequence[tuple[str, Mapping[str, Any]]]) -> Table:
    """Times of requests: a row for each kind that there was.

    Parameters
    ----------
    head : str
        What the rows are.
    rows : sequence of (str, dict)
        Name, and ``count``, ``mean`` and percentiles in nanoseconds.
    """
    table = plain_table(
        Column(head, 100, number=False),
        Column("requests", 75),
        *(Column(name.replace("_", "."), importance) for name, importance in _TIMES.items()),
    )
    for name, found in rows:
        if found["count"]:
            shown = (units.time(found[figure]) for figure in _TIMES)
            table.add_row(name, units.count(found["count"]), *shown)
    return table


def host_layers(layers: Sequence[Mapping[str, Any]]) -> RenderableType | None:
    """What the schedulers before a drive did, a row a scheduler and direction, from the host down."""
    if not layers:
        return None
    table = plain_table(
        Column("host", 100, number=False),
        Column("taken", 70),
        Column("merged", 85),
        Column("handed on", 90),
        Column("mean size", 95),
        Column("aligned", 60),
        Column("within buffer", 50),
        Column("mean wait", 80),
        Column("longest", 55),
    )
    for layer in layers:
        first = (
            layer["scheduler"],
            units.count(layer["requests"]),
            units.count(layer["back_merges"] + layer["front_merges"] + layer["joined"]),
        )
        for kind, waits in (("reads", "read_waits"), ("writes", "write_waits")):
            counts = layer[kind]
            if not counts["requests"]:
                continue

            def part(name: str, counts: Mapping[str, Any] = counts) -> str:
                found = counts[name]
                return units.share(None if found is None else found / counts["requests"])

            table.add_row(
                f"{first[0]}, {kind}",
                *first[1:],
                units.count(counts["requests"]),
                units.size(counts["bytes_mean"]),
                part("aligned_at_start"),
                part("within_buffer"),
                units.time(layer[waits]["mean_ns"]),
                units.time(layer[waits]["longest_ns"]),
            )
            first = (layer["scheduler"], "", "")
    return table


def _foot(result: RunResult) -> RenderableType:
    j = result.json
    rows = []
    if j["verify"]["enabled"]:
        wrong = j["verify"]["violations"]
        rows.append(
            (
                "verify",
                f"{units.count(wrong)} VIOLATIONS"
                if wrong
                else "every read and the final state are correct",
            )
        )
    cost = j["run"]
    speed = cost["requests_per_cpu_s"]
    text = f"{units.seconds(cost['cpu_s'])} of processor time"
    if speed is not None:
        text += f", {units.count(speed)} requests per second"
    if cost["peak_rss_bytes"] is not None:
        text += f", {units.size(cost['peak_rss_bytes'])} of memory at most"
    rows.extend([("simulator", text), ("digest", str(j["digest"]))])
    return grid(rows)
