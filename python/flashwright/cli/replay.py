"""``flashwright replay``: a workload on a real device or file, or on a simulated drive by the same code."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType

from flashwright import workloads
from flashwright.cli.options import ResultOptions, TraceOptions, add_options
from flashwright.cli.progress import Bar
from flashwright.cli.render import errors, page, put_json, put_page, units
from flashwright.device import Ssd
from flashwright.errors import WorkloadError
from flashwright.replay import ReplayInterrupted, ReplayResult
from flashwright.replay import replay as play

__all__ = ["replay"]


@dataclass
class ReplayOptions(TraceOptions):
    """What makes a replay."""

    trace: Annotated[
        str | None, typer.Option(metavar="FILE", help="A trace file, or bundled:NAME.")
    ] = None
    workload: Annotated[
        str | None, typer.Option(metavar="SPEC", help="A generator, such as uniform:write=0.")
    ] = None
    depth: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Closed loop: so many requests outstanding, whatever the arrivals."
        ),
    ] = None
    speed: Annotated[
        float | None,
        typer.Option(
            metavar="X", help="Open loop, so many times as fast as the arrivals say; default 1."
        ),
    ] = None
    requests: Annotated[
        int | None,
        typer.Option(metavar="N", help="Requests at most, those left out included."),
    ] = None
    time_limit: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Issue no more requests after so long."),
    ] = None
    destroys_data: Annotated[
        bool,
        typer.Option(
            "--destroys-data",
            help="Play writes, trims and flushes too, over whatever is on the target. Without it "
            "they are left out and counted.",
        ),
    ] = False
    wrap: Annotated[
        bool,
        typer.Option("--wrap", help="Fold a trace's addresses beyond the target's end onto it."),
    ] = False
    set: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A setting of the host, such as host.deadline.fifo-batch=8, or of a sim: drive. Repeatable.",
        ),
    ] = None
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="I/O schedulers before the target, such as deadline; several joined by +.",
        ),
    ] = None
    profile: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="What is known of the drive, as TOML, for schedulers that go by it.",
        ),
    ] = None
    precondition: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="What is done to a sim: drive first: empty, sequential, random, random:capacities=N, "
            "steady.",
        ),
    ] = None
    queue_depth: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Requests that a device has at once, 1 to 4096; default --depth, or 128; 32 with a scheduler.",
        ),
    ] = None
    busy_poll: Annotated[
        bool,
        typer.Option("--busy-poll", help="Look for completions all along; takes a whole core."),
    ] = False
    seed: Annotated[
        int, typer.Option(metavar="N", help="Of the workload and of the data that is written.")
    ] = 1

    def source(self) -> workloads.Source:
        """What is played."""
        if (self.workload is None) == (self.trace is None):
            found = "neither" if self.trace is None else "both"
            raise WorkloadError(
                f"--workload and --trace: found {found}, expected one of them",
                "such as --workload uniform:write=0, or --trace bundled:pgbench",
            )
        if self.trace is not None:
            return self.open(self.trace)
        for field in fields(TraceOptions):
            if getattr(self, field.name) not in (field.default, []):
                name = "device" if field.name == "only" else field.name.replace("_", "-")
                raise WorkloadError(
                    f"--{name}: found it with --workload, expected it with --trace only", ""
                )
        assert self.workload is not None
        return workloads.parse(self.workload)

    @staticmethod
    def find(target: str) -> str | Ssd:
        """The target; a simulated drive as it is described."""
        simulated = target.startswith("sim:")
        return Ssd.find(target.removeprefix("sim:")) if simulated else target


@add_options
def replay(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="A block device or a file; or sim:DEVICE, a bundled drive or a TOML file.",
        ),
    ],
    run: ReplayOptions,
    output: ResultOptions,
) -> int:
    """Play a trace or a workload on a device or file, in real time and past the page cache.

    Only reads are played, and the target is opened for reading only, unless --destroys-data is given.
    """
    output.check()
    interrupted = False
    try:
        with Bar(output.bar) as bar:
            result = play(
                run.find(target),
                run.source(),
                depth=run.depth,
                speed=run.speed,
                requests=run.requests,
                time_limit=run.time_limit,
                destroys_data=run.destroys_data,
                wrap=run.wrap,
                scheduler=run.scheduler,
                settings=run.set or (),
                profile=run.profile,
                precondition=run.precondition,
                queue_depth=run.queue_depth,
                busy_poll=run.busy_poll,
                seed=run.seed,
                progress=bar.update,
            )
    except ReplayInterrupted as stop:
        interrupted = True
        if stop.result is None:
            errors.note("interrupted before anything was played")
            return 130
        result = stop.result
    put_json(result.json, output.json)
    put_page(lambda: result, output)
    if not output.silent:
        out = page.console()
        for part in _table(result):
            out.print(part)
    return _end(result, interrupted)


def _end(result: ReplayResult, interrupted: bool) -> int:
    """Say what nobody should miss; the exit status."""
    left_out = sum(result.json["left_out"].values())
    if left_out:
        errors.note(
            f"{units.count(left_out)} requests that would change the target were left out "
            "(--destroys-data plays them)"
        )
    if interrupted:
        errors.note("interrupted; the figures cover what was finished")
        return 130
    if result.ended == "failed":
        errors.fault(result.json["note"], "the figures cover what was finished before")
        return 1
    return 0


def _table(result: ReplayResult) -> list[RenderableType]:
    j = result.json
    target = j["target"]
    access = "reads and writes" if target["writes_allowed"] else "reads only"
    clock = "real time" if target["real_time"] else "simulated"
    rows = [
        (
            "target",
            f"{target['name']}: {units.size(target['capacity_bytes'])}, blocks of "
            f"{units.size(target['block_bytes'])}, {access}, {clock}",
        ),
        ("workload", j["workload"]),
        *(("", note) for note in j["workload_notes"]),
        ("pace", page.pace(j["pace"])),
        (
            "measured",
            f"{units.count(j['measured']['requests'])} requests in "
            f"{units.time(j['measured']['duration_ns'])}; seed {j['seed']}",
        ),
    ]
    if j["ended"] != "complete":
        rows.append(("ended early", f"{j['ended']}{': ' + j['note'] if j['note'] else ''}"))
    requests, left_out = j["requests"], j["left_out"]
    rows += [
        ("", ""),
        (
            "throughput",
            f"{units.count(j['throughput']['iops'])} IOPS, {units.rate(j['throughput']['bytes_per_s'])}",
        ),
        ("requests", _counts(requests, ("read", "write", "trim", "flush"))),
        (
            "bytes",
            f"{units.size(requests['bytes_read'])} read, {units.size(requests['bytes_written'])} written",
        ),
    ]
    if any(left_out.values()):
        rows.append(("left out", _counts(left_out, ("writes", "trims", "flushes"))))
    parts: list[RenderableType] = [page.grid(rows)]
    figures = ("mean", "p50", "p90", "p99", "p99_9", "max")
    names = [figure.replace("_", ".") for figure in figures]
    table = page.plain_table("time", "requests", *names, right=["requests", *names])
    times = [
        (f"{name} {kind}", j[f"{name}_time_ns"][kind])
        for name in ("response", "service")
        for kind in ("all", "read", "write")
    ]
    times.append(("late by", j["lateness_ns"] or {"count": 0}))
    for name, of_kind in times:
        if of_kind["count"]:
            shown = (units.time(of_kind[figure]) for figure in figures)
            table.add_row(name, units.count(of_kind["count"]), *shown)
    if table.row_count:
        parts.append(table)
    layers = page.host_layers(j["host_layers"])
    if layers is not None:
        parts.append(layers)
    cost = f"{units.seconds(j['run']['cpu_s'])} of processor time"
    if j["run"]["peak_rss_bytes"] is not None:
        cost += f", {units.size(j['run']['peak_rss_bytes'])} of memory at most"
    parts.append(page.grid([("player", cost)]))
    return parts


def _counts(counts: dict[str, int], kinds: tuple[str, ...]) -> str:
    found = [f"{units.count(counts[kind])} {kind}" for kind in kinds if counts[kind]]
    return ", ".join(found) or "none"
