"""``flashwright trace``: what a trace holds, from one format to another, merging, and recording one."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, cast, get_args

import typer

from flashwright.cli.help import Command, Group
from flashwright.cli.options import OLD, add_options, renamed
from flashwright.cli.outputs import Json, refuse_stdout
from flashwright.cli.render import errors, page, put_json, units
from flashwright.cli.tracecompare import compare, say_reading
from flashwright.cli.traceoptions import (
    AddressRange,
    ArchiveMember,
    EventsOption,
    OrderOption,
    ScaledTraceOptions,
    ScaleFootprint,
    TableColumns,
    TimeScale,
    TimeUnitOption,
)
from flashwright.errors import OutputError, WorkloadError
from flashwright.support.core import _core
from flashwright.support.files import check_writable, reason
from flashwright.support.printable import printable
from flashwright.traces import tracefiles, workloads

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["app"]

app = typer.Typer(
    cls=Group,
    help="Summarise, compare, convert, scale, merge and record traces.",
    rich_markup_mode=None,
    add_completion=False,
)

File = Annotated[
    str,
    typer.Argument(
        metavar="FILE", help="A trace file; - is standard input, bundled:NAME a bundled one."
    ),
]


Label = Annotated[
    str,
    typer.Option(
        metavar="TEXT", help="The trace's name (flashwright only).", rich_help_panel="Output"
    ),
]
Note = Annotated[
    str,
    typer.Option(metavar="TEXT", help="Free text (flashwright only).", rich_help_panel="Output"),
]


class _Command(Command):
    titles: ClassVar[Mapping[str, str]] = {"Workload": "The trace"}


@app.command("info", cls=_Command)
@add_options
def info(file: File, options: ScaledTraceOptions, json: Json = None) -> int:
    """Summarise a trace: requests, sizes, times, pages touched, devices."""
    if json is not None and json != Path("-"):
        check_writable(json)
    found = tracefiles.info(options.open(file))
    if put_json(found, json):
        return 0
    out = page.console()
    out.print(_summary(found))
    if len(found["devices"]) > 1:
        out.print(_devices(found["devices"]))
    return 0


def _summary(found: dict[str, Any]) -> RenderableType:
    kinds = ", ".join(
        f"{units.count(found[kind])} {kind}" for kind in ("reads", "writes", "trims", "flushes")
    )
    rows = [
        ("format", found["format"]),
        ("label", found["label"]),
        ("note", found["note"]),
        ("requests", f"{units.count(found['requests'])}: {kinds}"),
        ("reads", f"{found['read_percent']:.1f} % of reads and writes"),
        (
            "sizes",
            f"mean {units.size(found['bytes_mean'])}; read {units.size(found['read_bytes_mean'])}, "
            f"write {units.size(found['write_bytes_mean'])}",
        ),
        (
            "volume",
            f"{units.size(found['read_bytes'])} read, {units.size(found['written_bytes'])} written",
        ),
        ("time", _span(found)),
        (
            "pages of 4 KiB",
            f"{units.count(found['pages'])} touched, {units.count(found['pages_written'])} written, "
            f"{found['pages_written_twice_percent']:.1f} % of these again",
        ),
        ("sequential", f"{found['sequential_percent']:.1f} % of reads and writes"),
        ("reaches to", units.size(found["end_byte"])),
    ]
    stats = found["stats"]
    for name, text in (
        ("bad_lines", "lines that can't be read, skipped"),
        ("empty_requests", "requests of length 0, skipped"),
        ("filtered_out", "requests of other devices or addresses, skipped"),
        ("reordered", "requests out of order, sorted into their place"),
        ("out_of_order", "requests out of order, given the time of the previous one"),
    ):
        if stats[name]:
            rows.append(("", f"{units.count(stats[name])} {text}"))
    rows.extend(("", f"skipped: {line}") for line in stats["first_bad_lines"])
    rows.extend(("read", note) for note in found["notes"])
    rows.extend(
        ("doubtful", f"{doubt['text']}; {doubt['mend']}" if doubt["mend"] else doubt["text"])
        for doubt in found["doubts"]
    )
    return page.grid([(name, text) for name, text in rows if text])


def _span(found: dict[str, Any]) -> str:
    if not found["span_ns"]:
        return "no arrival times"
    gap = units.time(found["inter_arrival_ms_mean"] * 1e6)
    return f"{units.time(found['span_ns'])}, a request every {gap} on average"


def _devices(devices: list[dict[str, Any]]) -> RenderableType:
    table = page.plain_table("device", "requests", "size", right=["requests", "size"])
    for device in devices:
        table.add_row(
            device["name"], units.count(device["requests"]), units.size(device["sectors"] * 512)
        )
    return table


@app.command("convert", cls=_Command)
def convert(
    source: Annotated[
        str,
        typer.Argument(
            metavar="IN", help="A trace file; - is standard input, bundled:NAME a bundled one."
        ),
    ],
    target: Annotated[
        Path, typer.Argument(metavar="OUT", help="The file to write; - is standard output.")
    ],
    to_format: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="NAME",
            help="The format of OUT; by default what its name ends in, or flashwright.",
            rich_help_panel="Output",
        ),
    ] = None,
    from_format: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="NAME",
            help="The format of IN; by default recognised from its content.",
            rich_help_panel="Workload",
        ),
    ] = None,
    device: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Read only this device of the trace. Repeatable.",
            rich_help_panel="Workload",
        ),
    ] = None,
    overlay: Annotated[
        bool,
        typer.Option(
            "--overlay",
            help="Overlay the trace's devices instead of concatenating them.",
            rich_help_panel="Workload",
        ),
    ] = False,
    skip_bad_lines: Annotated[
        bool,
        typer.Option(
            "--skip-bad-lines",
            help="Skip and count unreadable lines instead of stopping.",
            rich_help_panel="Workload",
        ),
    ] = False,
    range: AddressRange = None,
    time_scale: TimeScale = None,
    scale_footprint: ScaleFootprint = 1,
    columns: TableColumns = None,
    member: ArchiveMember = None,
    order: OrderOption = None,
    time_unit: TimeUnitOption = None,
    events: EventsOption = "auto",
    label: Label = "",
    note: Note = "",
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print nothing.", rich_help_panel="Output")
    ] = False,
    format: Annotated[str | None, OLD] = None,
) -> int:
    """Convert a trace to another format."""
    to_format = renamed("--format", format, "--to", to_format, quiet=quiet)
    to_stdout = target == Path("-")
    if not to_stdout:
        check_writable(target)
    elif sys.stdout.isatty() and (to_format or "flashwright") == "flashwright":
        raise OutputError(
            "OUT: found a terminal, expected a file or a pipe for the format flashwright",
            "--to spc writes text; trace info shows what is in a trace",
        )
    trace = ScaledTraceOptions(
        format=from_format,
        only=device,
        overlay=overlay,
        skip_bad_lines=skip_bad_lines,
        range=range,
        scale_footprint=scale_footprint,
        columns=columns,
        member=member,
        order=order,
        time_unit=time_unit,
        events=events,
        time_scale=time_scale,
    ).open(source)
    with _target(target) as file:
        done = tracefiles.convert(trace, file, format=to_format, label=label, note=note)
    _say_written(done, target, quiet=quiet)
    return 0


def _say_written(done: dict[str, Any], target: Path, *, quiet: bool) -> None:
    if quiet:
        return
    to_stdout = target == Path("-")
    # Standard output has nothing but the trace.
    where = sys.stderr if to_stdout else sys.stdout
    name = "standard output" if to_stdout else target
    print(printable(f"{name}: {done['written']:,} requests, format {done['format']}"), file=where)
    _say_losses(done)


@app.command("merge", cls=_Command)
def merge(
    sources: Annotated[
        list[str],
        typer.Argument(metavar="IN...", help="Trace files; bundled:NAME is a bundled one."),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The merged trace.", rich_help_panel="Output"
        ),
    ],
    start: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TIME",
            help="When a trace begins, such as 10s, in the order of the traces; 0 for those left out. Repeatable.",
            rich_help_panel="Workload",
        ),
    ] = None,
    to_format: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="NAME",
            help="The format of FILE; by default what its name ends in, or flashwright.",
            rich_help_panel="Output",
        ),
    ] = None,
    label: Label = "",
    note: Note = "",
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print nothing.", rich_help_panel="Output")
    ] = False,
) -> int:
    """Merge traces as tenants of one drive, each with addresses of its own.

    To scale or split a tenant first, write it with `flashwright trace convert`. The format flashwright keeps the
    tenants as devices, which --device takes out again.
    """
    refuse_stdout("--output", output)
    check_writable(output)
    starts = _starts(start or [])
    if len(sources) < 2:
        raise WorkloadError("IN: found one trace, expected two or more", "")
    if len(starts) > len(sources):
        raise WorkloadError(
            f"--start: found {len(starts)} for {len(sources)} traces, expected at most one each", ""
        )
    done = tracefiles.merge(
        sources, output, starts=starts, format=to_format, label=label, note=note
    )
    _say_written(done, output, quiet=quiet)
    if not quiet:
        print(printable(f"tenants: {', '.join(done['tenants'])}"))
    return 0


def _starts(texts: list[str]) -> list[float]:
    """Seconds, from times with a unit."""
    try:
        return [_core.time_read(text) / 1e9 for text in texts]
    except WorkloadError as error:
        raise WorkloadError(f"--start: {error}", "such as 10s, 500ms or 0s") from None


app.command("compare", cls=_Command)(compare)


@contextlib.contextmanager
def _target(path: Path) -> Iterator[Path]:
    """The file to write; for standard output one that is copied there once it is whole."""
    if path != Path("-"):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="flashwright-") as folder:
        part = Path(folder) / "standard output"
        yield part
        with part.open("rb") as content:
            shutil.copyfileobj(content, sys.stdout.buffer)
            sys.stdout.buffer.flush()


def _say_losses(done: dict[str, Any]) -> None:
    for name, text in (
        ("dropped_trims", "trims left out: the format has none"),
        ("dropped_flushes", "flushes left out: the format has none"),
        ("rounded_times", "arrival times rounded down: the format's times are coarser"),
        ("lost_fua", "forced writes are plain writes now"),
        ("lost_process", "requests lost their process or stream"),
    ):
        if done[name]:
            errors.note(f"{done[name]:,} {text}")
    if done["read"]["bad_lines"]:
        errors.note(f"{done['read']['bad_lines']:,} lines that can't be read, skipped")
    if done["read"]["reordered"] and not done["notes"]:
        errors.note(f"{done['read']['reordered']:,} requests out of order, sorted into their place")
    say_reading(done)


@app.command("fit", cls=_Command)
@add_options
def fit(
    file: File,
    options: ScaledTraceOptions,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="MODEL",
            help="The model to write; - is standard output.",
            rich_help_panel="Output",
        ),
    ],
    requests: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Fit to the first N requests only.", rich_help_panel="Workload"
        ),
    ] = None,
    kind: Annotated[
        str,
        typer.Option(
            metavar="KIND",
            help="What the model holds: sequence (the trace's own requests) or statistics (no address of it).",
            rich_help_panel="Output",
        ),
    ] = "sequence",
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print nothing.", rich_help_panel="Output")
    ] = False,
) -> int:
    """Fit a workload model to a trace, to play it at any length with another course for each seed.

    Play it with --workload model:MODEL. By default it holds the trace's own requests. --kind statistics makes a small
    file to share, without the trace's addresses; what it plays is further from the trace.
    """
    to_stdout = output == Path("-")
    if not to_stdout:
        check_writable(output)
    from flashwright.traces.models import Kind, fit_trace

    if kind not in get_args(Kind):
        raise WorkloadError(f"--kind: found {kind!r}, expected sequence or statistics", "")
    found = fit_trace(options.open(file), requests=requests, kind=cast(Kind, kind))
    if to_stdout:
        sys.stdout.write(found.text)
        return 0
    found.save(output)
    if not quiet:
        fitted, footprint = found.figures["fitted"], found.figures["footprint"]
        kinds = ", ".join(
            f"{units.count(fitted[kind])} {kind}"
            for kind in ("reads", "writes", "trims", "flushes")
        )
        print(
            f"{printable(str(output))}: {units.size(len(found.text.encode()))}, fitted to "
            f"{units.count(fitted['requests'])} requests: {kinds}; "
            f"{units.count(footprint['blocks'])} blocks of 64 KiB"
        )
        for line in fitted["borrowed"]:
            errors.note(line)
        say_reading(found.figures["reading"])
    return 0


@app.command("record", cls=_Command)
def record(
    device: Annotated[
        str, typer.Argument(metavar="DEVICE", help="A disk, partition or loop device.")
    ],
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- COMMAND...]", help="A program to run while it is recorded."),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", help="Record no longer than this.", rich_help_panel="Workload"
        ),
    ] = None,
    requests: Annotated[
        int | None,
        typer.Option(metavar="N", help="Record at most N requests.", rich_help_panel="Workload"),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The trace; default DEVICE's name with .fwt.",
            rich_help_panel="Output",
        ),
    ] = None,
    label: Annotated[
        str, typer.Option(metavar="TEXT", help="The trace's name.", rich_help_panel="Output")
    ] = "",
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print nothing.", rich_help_panel="Output")
    ] = False,
    seconds: Annotated[float | None, OLD] = None,
) -> int:
    """Record the requests to a block device, while a command runs or until Ctrl-C. Needs root.

    Ctrl-C ends a recording in order, and what was recorded is kept.
    """
    time_limit = renamed("--seconds", seconds, "--time-limit", time_limit, quiet=quiet)
    target = output or Path(Path(device).name + ".fwt")
    refuse_stdout("--output", target)
    check_writable(target)
    try:
        folder = tempfile.TemporaryDirectory(prefix=".record-", dir=target.parent)
    except OSError as error:
        raise OutputError(f"{target}: can't be written: {reason(error)}") from None
    from rich.console import Console

    from flashwright.traces.record import record as record_device

    with folder as place:
        raw = Path(place) / "recording.blktrace"
        with Console(stderr=True).status("recording") as status:

            def show(done: int, elapsed_s: float) -> None:
                status.update(f"recording: {done:,} requests in {elapsed_s:.0f} s; Ctrl-C ends it")

            found = record_device(
                device,
                raw,
                seconds=time_limit,
                requests=requests,
                command=command,
                progress=None if quiet or not sys.stderr.isatty() else show,
            )
        if found.requests == 0:
            errors.note(f"{device}: no request in {found.span_ns / 1e9:.1f} s; nothing is written")
            return 0
        label = label or "recorded: " + (" ".join(command) if command else device)
        tracefiles.convert(
            workloads.trace(raw, format="blktrace"), target, format="flashwright", label=label
        )
    if not quiet:
        print(
            f"{printable(str(target))}: {found.requests:,} requests in {found.span_ns / 1e9:.1f} s: "
            f"{found.reads:,} reads, {found.writes:,} writes, {found.trims:,} trims, {found.flushes:,} flushes"
        )
    if found.events_lost:
        errors.note(f"{found.events_lost:,} events were lost: the trace has holes")
    if found.command_status:
        errors.note(f"the command ended with status {found.command_status}")
    return 0
