"""Options that say how a trace is read."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, get_args

import typer

from flashwright.errors import WorkloadError
from flashwright.support.core import _core
from flashwright.traces import workloads

__all__ = [
    "AddressRange",
    "ArchiveMember",
    "EventsOption",
    "OrderOption",
    "ScaleFootprint",
    "ScaledTraceOptions",
    "TableColumns",
    "TimeScale",
    "TimeUnitOption",
    "TraceOptions",
    "one_of",
    "pair",
    "trace_range",
]


TimeScale = Annotated[
    float | None,
    typer.Option(
        metavar="FACTOR",
        help="Multiply arrival times; 0.5 plays twice as fast.",
        rich_help_panel="Workload",
    ),
]
AddressRange = Annotated[
    str | None,
    typer.Option(
        "--range",
        metavar="START:LENGTH",
        help="Read only this part of the trace's addresses, such as 10GiB:1GiB, and count from its start.",
        rich_help_panel="Workload",
    ),
]
ScaleFootprint = Annotated[
    int,
    typer.Option(
        metavar="N",
        help="Lay N copies of the trace side by side, out of step. Sizes, mix, runs and hot sets of each stay; "
        "requests, rate, footprint and reuse distances grow N times.",
        rich_help_panel="Workload",
    ),
]


TableColumns = Annotated[
    str | None,
    typer.Option(
        metavar="SPEC",
        help="Read any table, such as time=1:us,op=2,lba=3:sectors,size=4:bytes: a column's number or its name in the "
        "header.",
        rich_help_panel="Workload",
    ),
]
ArchiveMember = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The file of an archive (tar, zip) to read.",
        rich_help_panel="Workload",
    ),
]
OrderOption = Annotated[
    str | None,
    typer.Option(
        "--order",
        metavar="as-is|sort|concatenate",
        help="What to do where the trace's times go back: play late requests with the one before, sort by time, or "
        "play recordings one after the other. By default what is certain, else an error.",
        rich_help_panel="Workload",
    ),
]
TimeUnitOption = Annotated[
    str | None,
    typer.Option(
        "--time-unit",
        metavar="ns|us|ms|s",
        help="The unit of the trace's times, if not that of its format.",
        rich_help_panel="Workload",
    ),
]
EventsOption = Annotated[
    str,
    typer.Option(
        "--events",
        metavar="auto|queue|issue",
        help="Which events of a block trace are the requests; auto: queue events, issue events where there are no "
        "others.",
        rich_help_panel="Workload",
    ),
]


def one_of(option: str, found: str | None, words: Any) -> Any:
    """A value that is one of the words of a ``Literal``, or None."""
    known = get_args(words)
    if found is not None and found not in known:
        raise WorkloadError(
            f"{option}: found {found!r}, expected {', '.join(known[:-1])} or {known[-1]}", ""
        )
    return found


def pair(option: str, text: str, metavar: str) -> tuple[int, int]:
    """Two whole numbers with a colon between them; the second is at least 1."""
    first, _, second = text.partition(":")
    if not (first.isdecimal() and second.isdecimal() and int(second) > 0):
        raise WorkloadError(
            f"{option}: found {text!r}, expected {metavar}",
            "such as 4920:100, the hundred requests from number 4920 on, counted from 0",
        )
    return int(first), int(second)


def trace_range(text: str) -> tuple[int, int]:
    """First byte and one past the last of a part of a trace, from START:LENGTH."""
    start, colon, length = text.partition(":")
    try:
        first, count = (_core.size_read(part) for part in (start, length))
    except WorkloadError:
        colon = ""
    if not colon:
        raise WorkloadError(
            f"--range: found {text!r}, expected START:LENGTH", "such as 100GiB:32GiB, or 0:1GiB"
        )
    return first, first + count


@dataclass
class TraceOptions:
    """How a trace is read."""

    format: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The trace's format; by default recognised from its content.",
            rich_help_panel="Workload",
        ),
    ] = None
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--device",
            metavar="NAME",
            help="Play only this device of the trace. Repeatable.",
            rich_help_panel="Workload",
        ),
    ] = None
    overlay: Annotated[
        bool,
        typer.Option(
            "--overlay",
            help="Overlay the trace's devices instead of concatenating them.",
            rich_help_panel="Workload",
        ),
    ] = False
    skip_bad_lines: Annotated[
        bool,
        typer.Option(
            "--skip-bad-lines",
            help="Skip and count unreadable lines instead of stopping.",
            rich_help_panel="Workload",
        ),
    ] = False
    range: AddressRange = None
    scale_footprint: ScaleFootprint = 1
    columns: TableColumns = None
    member: ArchiveMember = None
    order: OrderOption = None
    time_unit: TimeUnitOption = None
    events: EventsOption = "auto"

    def open(
        self, path: str, addresses: workloads.Addresses | None = None, repeat: int = 1
    ) -> workloads.Trace:
        """The trace at `path`."""
        return workloads.trace(
            path,
            format=self.format,
            addresses=addresses,
            devices=self.only or None,
            overlay=self.overlay,
            skip_bad_lines=self.skip_bad_lines,
            repeat=repeat,
            range=None if self.range is None else trace_range(self.range),
            scale_footprint=self.scale_footprint,
            columns=self.columns,
            member=self.member,
            order=one_of("--order", self.order, workloads.Order),
            time_unit=one_of("--time-unit", self.time_unit, workloads.TimeUnit),
            events=one_of("--events", self.events, workloads.Events),
        )


@dataclass
class ScaledTraceOptions(TraceOptions):
    """How a trace is read where it is not played, and so not scaled by the player."""

    time_scale: TimeScale = None

    def open(
        self, path: str, addresses: workloads.Addresses | None = None, repeat: int = 1
    ) -> workloads.Trace:
        """The trace at `path`."""
        trace = super().open(path, addresses, repeat)
        if self.time_scale is None:
            return trace
        # Checked as the other options are.
        return replace(workloads.trace(trace.path, time_scale=self.time_scale), **_of(trace))


def _of(trace: workloads.Trace) -> dict[str, Any]:
    """All that a trace says except its times."""
    return {f.name: getattr(trace, f.name) for f in fields(trace) if f.name != "time_scale"}
