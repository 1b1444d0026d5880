"""Options that several commands take, each written once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import typer

from flashwright.cli import completion
from flashwright.cli.outputs import OutputOptions, ResultOptions, SavingOptions
from flashwright.cli.render import errors
from flashwright.cli.runflags import RunFlags
from flashwright.cli.settingsoption import settings_option
from flashwright.cli.traceoptions import (
    ScaledTraceOptions,
    TimeScale,
    TraceOptions,
    trace_range,
)
from flashwright.errors import WorkloadError
from flashwright.simulation.run import RunSettings
from flashwright.simulation.ssd import Ssd
from flashwright.traces import workloads
from flashwright.traces.sources import expect_addresses
from flashwright.traces.tenants import Load, Tenants

if TYPE_CHECKING:
    from flashwright.target.target import Range, Target

__all__ = [
    "OLD",
    "Device",
    "LeftOut",
    "PolicyFiles",
    "RunOptions",
    "ScaledTraceOptions",
    "TimeScale",
    "TraceOptions",
    "add_options",
    "check_closeup",
    "check_snapshots",
    "open_target",
    "refuse_passing",
    "renamed",
    "trace_range",
]

Device = Annotated[
    str,
    typer.Argument(
        metavar="DEVICE",
        help="A bundled drive (`flashwright devices`) or a TOML file.",
        autocompletion=completion.devices,
    ),
]

PolicyFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--policy",
        metavar="FILE.py:CLASS",
        help="Use this policy or translation layer, written in Python, instead of the drive's own; CLASS(alpha=5) "
        "sets parameters. Repeatable.",
        rich_help_panel="The drive",
    ),
]

OLD = typer.Option(hidden=True)
"""An option under its old name, which is no longer listed."""


def renamed(old: str, given: Any, new: str, value: Any, *, quiet: bool, so: str = "") -> Any:
    """What an option has that was renamed, under either name; using the old one prints a note.

    Parameters
    ----------
    old, new : str
        The names.
    given : object
        What was given under the old name, as the new one takes it; None or False if nothing was.
    value : object
        What was given under the new name.
    quiet : bool
        Whether to print nothing.
    so : str, optional
        What to write instead, where it is not just the new name.
    """
    if given is None or given is False:
        return value
    if value is not None:
        raise WorkloadError(f"{old} and {new}: found both, expected {new} only", "")
    if not quiet:
        errors.note(f"{old} is an old name; write {so or new}")
    return given


@dataclass
class RunOptions(RunFlags, TraceOptions):
    """What makes a run: drive, workload, and all else."""

    set: Annotated[
        list[str] | None,
        settings_option("Change a setting of the drive, such as gc.victim=fifo."),
    ] = None
    workload: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="Play a generated workload, such as zipf:write=0.7,depth=32.",
            rich_help_panel="Workload",
        ),
    ] = None
    trace: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Play a trace file; - is standard input, bundled:NAME a bundled one.",
            rich_help_panel="Workload",
        ),
    ] = None
    tenant: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SPEC",
            help="Play several workloads at once, each with a queue and a part of the drive of its own: 'WORKLOAD @ "
            "KEY=VALUE,…' with share (of the drive, such as 25%), pages, handle, priority, depth, time-scale, name, "
            "addresses. WORKLOAD is as --workload takes it, bundled:NAME or trace:FILE. Repeatable.",
            rich_help_panel="Workload",
        ),
    ] = None
    no_alone: Annotated[
        bool,
        typer.Option(
            "--no-alone",
            help="Do not play each tenant alone too, which says how much slower it is among the others.",
            rich_help_panel="Workload",
        ),
    ] = False
    addresses: Annotated[
        str | None,
        typer.Option(
            metavar="HOW",
            help="Fit a trace's addresses to the drive: wrap (modulo its size), reject (an error beyond it), dense or "
            "compact (packed in order of first use or of address), scale[:SHARE] (onto it). Default wrap; an error if "
            "over 5 % of the requests lie beyond.",
            rich_help_panel="Workload",
        ),
    ] = None
    repeat: Annotated[
        int, typer.Option(metavar="N", help="Play the trace N times.", rich_help_panel="Workload")
    ] = 1

    def drive(self, name: str) -> Ssd:
        """The drive, with its settings laid over."""
        ssd = Ssd.find(name)
        if self.set:
            ssd = ssd.with_settings(self.set)
        return ssd if self.precondition is None else ssd.precondition(self.precondition)

    def source(self) -> workloads.Source:
        """What is played; the bundled trace where nothing is named."""
        if self.workload is not None:
            if self.trace is not None:
                raise WorkloadError(
                    "--workload and --trace: found both, expected one of them",
                    "leave one of them out",
                )
            self.refuse_trace_options("--workload")
            return workloads.parse(self.workload)
        addresses = expect_addresses(self.addresses, "--addresses")
        return self.open(self.trace or DEFAULT_TRACE, addresses, self.repeat)

    def played(self) -> Load:
        """What is played, tenants included."""
        if not self.tenant:
            if self.no_alone:
                raise WorkloadError("--no-alone: found without --tenant, expected both", "")
            return self.source()
        for option in self.given(["workload", "trace"]):
            raise WorkloadError(
                f"--tenant and {option}: found both, expected one of them",
                "a workload beside the others is one more --tenant",
            )
        self.refuse_trace_options("--tenant")
        return Tenants.of(self.tenant, compared=not self.no_alone)

    def refuse_trace_options(self, beside: str, but: Sequence[str] = ()) -> None:
        """Refuse what is for traces only, beside an option that names what is played."""
        for_traces = [f.name for f in fields(TraceOptions)] + ["addresses", "repeat"]
        for option in self.given([name for name in for_traces if name not in but]):
            raise WorkloadError(f"{option}: found with {beside}, expected only with --trace", "")

    def settings(self, *, keep_requests: bool = False) -> RunSettings:
        """All else that makes a run."""
        return RunSettings(**self.options(), keep_requests=keep_requests)

    def given(self, names: Sequence[str] | None = None) -> list[str]:
        """The options, of these fields or of all, that were given a value other than their default."""
        return [
            "--device" if f.name == "only" else "--" + f.name.replace("_", "-")
            for f in fields(self)
            if (names is None or f.name in names) and getattr(self, f.name) not in (f.default, [])
        ]


DEFAULT_TRACE = "bundled:pgbench"
DEFAULT_DRIVE = "default"


def refuse_passing(source: Load, saving: SavingOptions) -> None:
    """Refuse to save a run of a trace that is gone when the run continues."""
    if saving.checkpoint is not None and isinstance(source, workloads.Trace) and not source.lasts:
        raise WorkloadError(
            "--checkpoint: found with a trace from a pipe, expected a trace file",
            "a saved run reads its trace again; save the trace to a file first",
        )


def check_closeup(run: RunOptions, output: OutputOptions) -> None:
    """Refuse to look closely without a place for it, and a place without a look."""
    run.options()
    if run.closeup is not None and output.closeup_out is None and output.report is None:
        raise WorkloadError("--closeup: found alone, expected with --report or --closeup-out", "")
    if run.closeup is None and output.closeup_out is not None:
        raise WorkloadError(
            "--closeup-out: found without --closeup, expected both",
            "say which requests, such as --closeup 4920:100",
        )


def check_snapshots(run: RunOptions, output: ResultOptions) -> None:
    """Refuse to look at all blocks without a page that shows them."""
    if run.snapshots is not None and output.report is None and output.figures is None:
        raise WorkloadError("--snapshots: found alone, expected with --report", "")


def open_target(
    name: str,
    settings: Sequence[str] | None,
    *,
    destroys_data: bool,
    seed: int,
    part: Range | None = None,
    read_only: bool = False,
) -> Target:
    """A target for probes and experiments: a simulated drive with its settings, or a real one, which has none."""
    from flashwright.target.target import Target

    if name.startswith("sim:"):
        ssd = Ssd.find(name.removeprefix("sim:")).with_settings(settings or ())
        drive = Target(ssd, seed=seed, part=part, read_only=read_only)
        drive.name = name if drive.part is None else f"{name}[{drive.part}]"
        return drive
    if settings:
        raise WorkloadError("--set: found with a real target, expected only with a sim: drive", "")
    return Target(name, destroys_data=destroys_data, seed=seed, part=part, read_only=read_only)


class LeftOut:
    """Marks a dataclass of options, of which a command leaves some out: ``Annotated[RunOptions, LeftOut("requests")]``.

    Parameters
    ----------
    *names : str
        The fields, which keep their defaults.
    """

    def __init__(self, *names: str) -> None:
        self.names = names


def _group(hint: Any) -> tuple[type, tuple[str, ...]] | None:
    """The dataclass of options that a parameter is, and the fields that are left out; None if it is none."""
    left_out: tuple[str, ...] = ()
    if get_origin(hint) is Annotated:
        hint, *more = get_args(hint)
        left_out = tuple(name for each in more if isinstance(each, LeftOut) for name in each.names)
    return (hint, left_out) if isinstance(hint, type) and is_dataclass(hint) else None


def add_options(command: Callable[..., int]) -> Callable[..., int]:
    """Turn each parameter that is a dataclass of options into the options themselves.

    Parameters
    ----------
    command : callable
        Takes arguments of its own and dataclasses of options.

    Returns
    -------
    callable
        The same with a flat signature, as typer reads it.
    """
    hints = get_type_hints(command, include_extras=True)
    own: list[inspect.Parameter] = []
    groups: dict[str, tuple[type, list[str]]] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        hint = hints[name]
        group = _group(hint)
        if group is not None:
            made, left_out = group
            taken = [f for f in fields(made) if f.name not in left_out]
            groups[name] = made, [f.name for f in taken]
            extras = get_type_hints(made, include_extras=True)
            own.extend(
                inspect.Parameter(
                    f.name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=f.default,
                    annotation=extras[f.name],
                )
                for f in sorted(taken, key=lambda f: f.name not in made.__annotations__)
            )
        else:
            own.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hint))

    @functools.wraps(command)
    def flat(**values: Any) -> int:
        for name, (made, taken) in groups.items():
            values[name] = made(**{each: values.pop(each) for each in taken})
        return command(**values)

    flat.__signature__ = inspect.Signature(own)  # type: ignore[attr-defined]
    flat.__annotations__ = {parameter.name: parameter.annotation for parameter in own}
    del flat.__wrapped__
    return flat
