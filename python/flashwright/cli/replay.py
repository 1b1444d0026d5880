"""``flashwright replay``: a workload on a real device or file, or on a simulated drive by the same code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flashwright.cli.options import (
    OLD,
    TimeScale,
    TraceOptions,
    add_options,
    renamed,
)
from flashwright.cli.outputs import ResultOptions
from flashwright.cli.render import errors, page, put_json, put_page, units
from flashwright.cli.settingsoption import settings_option
from flashwright.errors import WorkloadError
from flashwright.simulation.replay import ReplayInterrupted, ReplayResult
from flashwright.simulation.replay import expect_factor as _expect
from flashwright.simulation.replay import replay as play
from flashwright.simulation.ssd import Ssd
from flashwright.support.bars import Bar
from flashwright.support.exports import TARGET_HELP
from flashwright.traces import workloads
from flashwright.traces.sources import expect_addresses

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["replay"]


@dataclass
class ReplayOptions(TraceOptions):
    """What makes a replay."""

    trace: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Play a trace file; - is standard input, bundled:NAME a bundled one.",
            rich_help_panel="Workload",
        ),
    ] = None
    workload: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="Play a generated workload, such as uniform:write=0.",
            rich_help_panel="Workload",
        ),
    ] = None
    depth: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Closed loop: keep N requests outstanding, and ignore arrival times.",
            rich_help_panel="Workload",
        ),
    ] = None
    time_scale: TimeScale = None
    requests: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Play at most N requests, skipped ones included.",
            rich_help_panel="Workload",
        ),
    ] = None
    time_limit: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Issue no more requests after this time.",
            rich_help_panel="Workload",
        ),
    ] = None
    destroys_data: Annotated[
        bool,
        typer.Option(
            "--destroys-data",
            help="Also play writes, trims and flushes, overwriting the device. Without this they are skipped and "
            "counted.",
            rich_help_panel="The drive",
        ),
    ] = False
    addresses: Annotated[
        str | None,
        typer.Option(
            metavar="HOW",
            help="Fit a trace's addresses to the target, as `flashwright simulate` does; default reject.",
            rich_help_panel="Workload",
        ),
    ] = None
    set: Annotated[
        list[str] | None,
        settings_option(
            "Change a setting of the host, such as host.deadline.fifo-batch=8, or of a sim: drive."
        ),
    ] = None
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="Put I/O schedulers in front of the device, such as deadline; join several with +.",
            rich_help_panel="The host",
        ),
    ] = None
    profile: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A TOML file of the drive's sizes, for schedulers that use them.",
            rich_help_panel="The host",
        ),
    ] = None
    precondition: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="Precondition a sim: drive first: empty, sequential, random, random:capacities=N, steady or "
            "steady:laid-out.",
            rich_help_panel="The drive",
        ),
    ] = None
    queue_depth: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Requests outstanding at the device, 1 to 4096; by default --depth or 128, and 32 with a scheduler.",
            rich_help_panel="The host",
        ),
    ] = None
    busy_poll: Annotated[
        bool,
        typer.Option(
            "--busy-poll",
            help="Poll for completions instead of sleeping; this takes a whole core.",
            rich_help_panel="The host",
        ),
    ] = False
    seed: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Seed of the workload and of the data that is written.",
            rich_help_panel="Workload",
        ),
    ] = 1
    speed: Annotated[float | None, OLD] = None
    wrap: Annotated[bool, typer.Option("--wrap", hidden=True)] = False

    def under_new_names(self, quiet: bool) -> ReplayOptions:
        """The same, with what was given under old names under the new ones."""
        scale = None
        if self.speed is not None:
            _expect("--speed", self.speed)
            scale = 1 / self.speed
        wrap = "wrap" if self.wrap else None
        return replace(
            self,
            time_scale=renamed(
                "--speed",
                scale,
                "--time-scale",
                self.time_scale,
                quiet=quiet,
                so=f"--time-scale {scale or 1:g}, its inverse",
            ),
            addresses=renamed(
                "--wrap", wrap, "--addresses", self.addresses, quiet=quiet, so="--addresses wrap"
            ),
            speed=None,
            wrap=False,
        )

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
                    f"--{name}: found with --workload, expected only with --trace", ""
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
            help=TARGET_HELP,
        ),
    ],
    run: ReplayOptions,
    output: ResultOptions,
) -> int:
    """Play a trace or a workload on a real device or file, in real time, bypassing the page cache.

    Only reads are played, and the target is opened for reading only, unless --destroys-data is given.
    """
    output.check()
    run = run.under_new_names(output.quiet)
    expect_addresses(run.addresses, "--addresses")
    interrupted = False
    try:
        with Bar(output.bar) as bar:
            result = play(
                run.find(target),
                run.source(),
                depth=run.depth,
                time_scale=run.time_scale,
                requests=run.requests,
                time_limit=run.time_limit,
                destroys_data=run.destroys_data,
                addresses=run.addresses,
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
        for part in table_of(result):
            out.print(part)
    return _end(result, interrupted)


def _end(result: ReplayResult, interrupted: bool) -> int:
    """Say what nobody should miss; the exit status."""
    j: Mapping[str, Any] = result.json
    left_out = sum(j["left_out"].values())
    if left_out:
        errors.note(
            f"{units.count(left_out)} requests that would change the device were skipped "
            "(--destroys-data plays them)"
        )
    if interrupted:
        errors.note("interrupted; the figures cover what was finished")
        return 130
    if result.ended == "failed":
        errors.fault(j["note"], "the figures cover what was finished before")
        return 1
    return 0


def table_of(result: ReplayResult) -> list[RenderableType]:
    """What a terminal shows of a replay, or of a device that was served."""
    j: Mapping[str, Any] = result.json
    target = j["target"]
    access = "reads and writes" if target["writes_allowed"] else "reads only"
    clock = "real time" if target["real_time"] else "simulated"
    is_served = j["pace"] == "interactive" and j["application"] is None and target["real_time"]
    rows = [
        (
            "target",
            f"{target['name']}: {units.size(target['capacity_bytes'])}, blocks of "
            f"{units.size(target['block_bytes'])}, {access}, {clock}",
        ),
        ("workload", j["workload"]),
        *(("", note) for note in j["workload_notes"]),
        ("pace", "the clients' own" if is_served else page.pace(j["pace"])),
        (
            "measured",
            f"{units.count(j['measured']['requests'])} requests in "
            f"{units.time(j['measured']['duration_ns'])}{'' if is_served else '; seed ' + str(j['seed'])}",
        ),
    ]
    if j["ended"] != "complete":
        rows.append(("ended early", f"{j['ended']}{': ' + j['note'] if j['note'] else ''}"))
    rows += page.warned_rows([(result.label, j["warnings"])])
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
    times = [
        (f"{name} {kind}", j[f"{name}_time_ns"][kind])
        for name in ("response", "service")
        for kind in ("all", "read", "write")
    ]
    times.append(("late by", j["lateness_ns"] or {"count": 0}))
    table = page.times("time", times)
    if table.row_count:
        parts.append(table)
    layers = page.host_layers(j["host_layers"])
    if layers is not None:
        parts.append(layers)
    cost = f"{units.seconds(j['run']['cpu_s'])} of processor time"
    if j["run"]["peak_rss_bytes"] is not None:
        cost += f", {units.size(j['run']['peak_rss_bytes'])} of memory at most"
    parts.append(page.grid([("server" if is_served else "player", cost)]))
    return parts


def _counts(counts: Mapping[str, int], kinds: tuple[str, ...]) -> str:
    found = [f"{units.count(counts[kind])} {kind}" for kind in kinds if counts[kind]]
    return ", ".join(found) or "none"
