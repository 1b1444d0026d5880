"""The tables that `simulate` and `compare` print."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table

from flashwright.cli.render import units
from flashwright.results import RunResult

__all__ = [
    "console",
    "grid",
    "host_layers",
    "pace",
    "plain_table",
    "show_comparison",
    "show_run",
]

_CAUSES = ("host", "gc", "merge", "padding", "translation", "wear")
# Without a terminal, lines are as long as they need to be: what reads them can cut.
_WIDTH_PIPED = 240


def console() -> Console:
    """Standard output as it is now."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDTH_PIPED
    return Console(file=sys.stdout, width=width, highlight=False, markup=False, emoji=False)


def plain_table(*columns: str, right: Sequence[str] = ()) -> Table:
    """A table with a line below its head and nothing more."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for name in columns:
        table.add_column(name, justify="right" if name in right else "left", overflow="fold")
    return table


def show_run(result: RunResult) -> None:
    """Print one run."""
    out = console()
    for part in (
        _head(result),
        _figures(result),
        _operations(result),
        _times(result),
        host_layers(result.json["host_layers"]),
        _foot(result),
    ):
        if part is not None:
            out.print(part)


def grid(rows: Sequence[tuple[str, str]]) -> Table:
    """Names and what they have, a row each."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, text in rows:
        grid.add_row(name, text)
    return grid


def _drive(config: dict[str, Any], drive: dict[str, Any]) -> str:
    g = config["geometry"]
    logical, page = drive["logical_bytes"], drive["logical_bytes"] / max(1, drive["logical_pages"])
    return (
        f"{config['name']}: {units.size(logical)} of {units.size(drive['physical_pages'] * page)} flash, "
        f"{g['channels']} x {g['dies-per-channel']} dies, {config['ftl']['scheme']} mapping, "
        f"victim {config['gc']['victim']}, timing {config['timing']['model']}"
    )


def _head(result: RunResult) -> RenderableType:
    j = result.json
    rows = [("drive", _drive(j["config"], j["drive"])), ("workload", j["workload"])]
    rows.extend(("", note) for note in j["workload_notes"])
    rows.extend(
        ("policy", f"{policy['name']} of {policy['file'] or policy['module']} for {policy['key']}")
        for policy in j["policies"]
    )
    rows.append(("pace", pace(j["pace"])))
    rows.append(("precondition", _precondition(j["precondition"])))
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
    rows.extend(_warnings([result]))
    return grid(rows)


def _warnings(results: Sequence[RunResult]) -> list[tuple[str, str]]:
    """What runs warn of, a row each; of several runs each text once, with the labels of those that it concerns."""
    concerned: dict[str, list[str]] = {}
    for result in results:
        for warned in result.warnings:
            concerned.setdefault(str(warned), []).append(result.label)
    return [
        ("warning", text if len(labels) == len(results) else f"{'; '.join(labels)}: {text}")
        for text, labels in concerned.items()
    ]


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


def pace(pace: dict[str, Any] | str) -> str:
    """When requests were issued."""
    if isinstance(pace, str):
        return "the program's own: its threads wait for the drive"
    if "closed" in pace:
        return f"closed loop, {units.count(pace['closed']['depth'])} outstanding"
    scale = pace["open"]["time_scale"]
    return "open loop, at arrival times" + ("" if scale == 1 else f" multiplied by {scale:g}")


def _precondition(done: dict[str, Any]) -> str:
    text = str(done["spec"])
    if done["pages_written"]:
        text += f" ({units.count(done['pages_written'])} pages written)"
    if done["steady"] is not None:
        rounds = len(done["write_amplification_rounds"])
        text += (
            f"; steady after {rounds} rounds"
            if done["steady"]
            else f"; NOT steady after {rounds} rounds"
        )
    return text


def _figures(result: RunResult) -> RenderableType:
    j = result.json
    wear = j["wear"]["erases_per_block"]
    rows = [("", ""), ("write amplification", units.number(j["write_amplification"]))]
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
        rows.append(
            (
                "mapping cache",
                f"{units.share(cache['hit_ratio'])} of {units.count(cache['lookups'])} found",
            )
        )
    if (used := j["gc"]["block_utilization"]) is not None:
        rows.append(("block utilization", f"{units.share(used)} of a block's pages at its erase"))
    if j["controller"] is not None:
        rows.append(("controller", _controller(j["controller"])))
    if j["buffer"]["writes"] is not None:
        rows.append(("buffer", _buffer(j["buffer"])))
    worn = j["wear"]["blocks_worn_out"]
    erases = f"{units.count(wear['min'])} to {units.count(wear['max'])}"
    spread = f"mean {units.number(wear['mean'], 2)}, stdev {units.number(wear['stdev'], 2)}"
    end = f"; {units.count(worn)} blocks worn out" if worn else ""
    rows.append(("erases per block", f"{erases}, {spread}{end}"))
    return grid(rows)


def _controller(figures: dict[str, Any]) -> str:
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


def _cleaning(figures: dict[str, Any]) -> str:
    victims = figures["gc"]["collections"]
    if victims == 0 and figures["precondition"]["spec"] == "empty":
        return "none: the drive began empty and had room for all of it (see --precondition)"
    of_pages = units.share(figures["gc"]["efficiency"])
    return f"{units.count(victims)} victims, {of_pages} of their pages invalid"


def _buffer(figures: dict[str, Any]) -> str:
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
    flash = result.json["flash"]
    used = [
        cause
        for cause in _CAUSES
        if any(flash[kind][cause] for kind in ("reads", "programs", "erases"))
    ]
    table = plain_table("flash operations", *used, "total", right=[*used, "total"])
    for kind in ("reads", "programs", "erases"):
        table.add_row(kind, *(units.count(flash[kind][cause]) for cause in [*used, "total"]))
    if flash["oob_reads"]["total"]:
        table.add_row(
            "spare reads", *(units.count(flash["oob_reads"][cause]) for cause in [*used, "total"])
        )
    return table


def _times(result: RunResult) -> RenderableType | None:
    response = result.json["response_time_ns"]
    if not response["all"]["count"]:
        return None
    figures = ("mean", "p50", "p90", "p99", "p99_9", "max")
    names = [figure.replace("_", ".") for figure in figures]
    table = plain_table("response time", "requests", *names, right=["requests", *names])
    for kind in ("all", "read", "write"):
        of_kind = response[kind]
        if of_kind["count"]:
            table.add_row(
                kind,
                units.count(of_kind["count"]),
                *(units.time(of_kind[figure]) for figure in figures),
            )
    return table


def host_layers(layers: Sequence[dict[str, Any]]) -> RenderableType | None:
    """What the schedulers before a drive did, a row a scheduler and direction, from the host down."""
    if not layers:
        return None
    columns = (
        "merged",
        "handed on",
        "mean size",
        "aligned",
        "within buffer",
        "mean wait",
        "longest",
    )
    table = plain_table("host", "taken", *columns, right=["taken", *columns])
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

            def part(name: str, counts: dict[str, Any] = counts) -> str:
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
                else "every read and the final state are right",
            )
        )
    cost = j["run"]
    speed = cost["requests_per_cpu_s"]
    text = f"{units.seconds(cost['cpu_s'])} of processor time"
    if speed is not None:
        text += f", {units.count(speed)} requests a second"
    if cost["peak_rss_bytes"] is not None:
        text += f", {units.size(cost['peak_rss_bytes'])} of memory at most"
    rows.extend([("simulator", text), ("digest", j["digest"])])
    return grid(rows)


@dataclass(frozen=True)
class _Column:
    """A column of a comparison; one that is not always there is where any run has its figure."""

    name: str
    show: Callable[[float | None], str]
    of: Callable[[dict[str, Any]], float | None]
    always: bool = True

    def extra(self, runs: Sequence[dict[str, Any]]) -> bool:
        """Whether it is there only because some run has its figure."""
        return not self.always and any(self.of(run) is not None for run in runs)


def _path(path: str) -> Callable[[dict[str, Any]], float | None]:
    def of(figures: dict[str, Any]) -> float | None:
        found: Any = figures
        for key in path.split("/"):
            found = found[key]
        return None if found is None else float(found)

    return of


def _cleaning_programs(figures: dict[str, Any]) -> float:
    programs = figures["flash"]["programs"]
    return float(programs["gc"] + programs["merge"])


def _size_to_drive(figures: dict[str, Any]) -> float | None:
    """Mean size of reads and writes that the lowest scheduler handed on; None without one."""
    if not figures["host_layers"]:
        return None
    lowest = figures["host_layers"][-1]
    requests = sum(lowest[kind]["requests"] for kind in ("reads", "writes"))
    size = sum(lowest[kind]["bytes"] for kind in ("reads", "writes"))
    return float(size) / requests if requests else None


def _comparison(table_ram: bool) -> list[_Column]:
    times = {"mean": "mean", "p99": "p99", "p99.9": "p99_9"}
    return [
        _Column("requests", units.count, _path("measured/requests")),
        _Column("WA", units.number, _path("write_amplification")),
        _Column("IOPS", units.count, _path("throughput/iops")),
        *(
            _Column(name, units.time, _path(f"response_time_ns/all/{figure}"))
            for name, figure in times.items()
        ),
        _Column("gc programs", units.count, _cleaning_programs),
        _Column("erases", units.count, _path("flash/erases/total")),
        _Column("victim invalid", units.share, _path("gc/efficiency")),
        _Column("max erases", units.count, _path("wear/erases_per_block/max")),
        *(
            [
                _Column("block use", units.share, _path("gc/block_utilization"), always=False),
                _Column("table RAM", units.size, _path("scheme/ram_bytes"), always=False),
            ]
            if table_ram
            else []
        ),
        *(
            _Column(f"{kind} merges", units.count, _path(f"merges/{kind}"), always=False)
            for kind in ("switch", "partial", "full")
        ),
        _Column("size to drive", units.size, _size_to_drive, always=False),
        _Column("hit ratio", units.share, _path("mapping_cache/hit_ratio"), always=False),
        _Column("write hits", units.share, _path("buffer/write_hit_ratio"), always=False),
        _Column(
            "pages/destage",
            lambda mean: units.number(mean, 2),
            _path("buffer/pages_per_destage_mean"),
            always=False,
        ),
    ]


def _common(texts: Sequence[str]) -> str:
    """What all runs have in common, or that they differ."""
    return texts[0] if len(set(texts)) == 1 else "varied"


def _side_by_side(results: Sequence[RunResult], columns: Sequence[_Column]) -> Table:
    names = [column.name for column in columns]
    table = plain_table("run", *names, right=names)
    for result in results:
        j = result.json
        label = result.label if j["ended"] == "complete" else f"{result.label} ({j['ended']})"
        table.add_row(label, *(column.show(column.of(j)) for column in columns))
    return table


def _alike(results: Sequence[RunResult]) -> list[list[str]]:
    """Labels of runs that no setting told apart, such as those of a scheme that uses no victim policy."""
    by_digest: dict[str, list[str]] = {}
    for result in results:
        by_digest.setdefault(result.json["digest"], []).append(result.label)
    return [labels for labels in by_digest.values() if len(labels) > 1]


def _ram_note(runs: Sequence[dict[str, Any]]) -> str | None:
    """Where DFTL's RAM comes from, which it has as a setting and other schemes don't."""
    of_dftl = [
        run["config"]["ftl"]["dftl"] for run in runs if run["config"]["ftl"]["scheme"] == "dftl"
    ]
    if not any(dftl["ram"] == "0 B" and dftl["cmt-entries"] == 0 for dftl in of_dftl):
        return None
    return (
        "table RAM: where ftl.dftl.ram is 0 B, DFTL's cache takes what FAST's tables would (log blocks by "
        "ftl.dftl.log-share), and its directory comes on top; other schemes take what their tables need"
    )


def _natural_width(out: Console, table: Table) -> int:
    return out.measure(table, options=out.options.update(width=10_000)).maximum


def show_comparison(results: Sequence[RunResult], title: str, *, table_ram: bool = False) -> None:
    """Print runs side by side."""
    out = console()
    runs = [result.json for result in results]
    head = [("compare", title), ("workload", _common([run["workload"] for run in runs]))]
    notes = dict.fromkeys(note for run in runs for note in run["workload_notes"])
    head.extend(("", note) for note in notes)
    head.append(("pace", _common([pace(run["pace"]) for run in runs])))
    head.append(("precondition", _precondition(runs[0]["precondition"])))
    out.print(grid([*head, ("seed", str(runs[0]["seed"])), *_warnings(results)]))
    always = [column for column in _comparison(table_ram) if column.always]
    extra = [column for column in _comparison(table_ram) if column.extra(runs)]
    table = _side_by_side(results, [*always, *extra])
    if extra and _natural_width(out, table) > out.width:
        # Two tables that can be read rather than one that is folded to bits.
        out.print(_side_by_side(results, always))
        table = _side_by_side(results, extra)
    out.print(table)
    if table_ram and (note := _ram_note(runs)):
        out.print(note)
    for labels in _alike(results):
        out.print(f"alike in every request and in the end: {'; '.join(labels)}")
    for result in results:
        if result.json["note"]:
            out.print(f"{result.label}: {result.json['note']}")
    wrong = sum(len(result.violations) for result in results)
    if any(result.json["verify"]["enabled"] for result in results):
        out.print(
            f"verify: {wrong:,} VIOLATIONS"
            if wrong
            else "verify: every read and the final states are right"
        )
