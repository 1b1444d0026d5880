"""``flashwright probe``: the hidden parameters of a drive, from the outside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from flashwright.cli.options import add_options, open_target
from flashwright.cli.outputs import ResultOptions
from flashwright.cli.render import errors, page, put_json, put_page
from flashwright.cli.render import probe as render
from flashwright.cli.render.bill import asked
from flashwright.cli.settingsoption import settings_option
from flashwright.cli.wear import WearOptions
from flashwright.drive.findings import Finding
from flashwright.endurance.lifetime import parse_size
from flashwright.errors import TargetError, WorkloadError
from flashwright.probing.limits import rest_of
from flashwright.probing.pages import probe_page
from flashwright.probing.plan import bill, drive_bytes, planned
from flashwright.probing.session import Asked, ProbeInterrupted, ProbeResult, plan
from flashwright.probing.session import probe as ask
from flashwright.simulation.ssd import Ssd
from flashwright.support.bars import Bar
from flashwright.support.exports import TARGET_HELP
from flashwright.support.progress import Progress
from flashwright.target.question import Mode
from flashwright.target.target import Deadline, OutOfTimeError, Range, Target
from flashwright.twin.check import Check, check
from flashwright.twin.profile import Profile
from flashwright.twin.twin import FIT_LIMIT_S, Twin, twin_of

__all__ = ["probe"]

# Of a time limit, what the making of a twin may take if it is to be checked too.
_TWIN_SHARE = 2 / 3


@dataclass
class ProbeOptions:
    """How a drive is probed."""

    destroys_data: Annotated[
        bool,
        typer.Option(
            "--destroys-data",
            help="Let the probes overwrite the device or its --range. Without this and without --read-only, only the "
            "plan is shown.",
            rich_help_panel="The drive",
        ),
    ] = False
    read_only: Annotated[
        bool,
        typer.Option(
            "--read-only",
            help="Only read; write nothing. Finds the kind of device, parallel units, read buffer and prefetching, "
            "if there is data to read; everything else needs writes.",
            rich_help_panel="Scope",
        ),
    ] = False
    range: Annotated[
        str | None,
        typer.Option(
            "--range",
            metavar="START:LENGTH",
            help="Read and write only within this part of the device, such as 100GiB:32GiB; the rest is not touched. "
            "Spare space and cleaning cannot be found, and no twin is made. A partition counts as a part.",
            rich_help_panel="Scope",
        ),
    ] = None
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Half an hour of the drive's own time at most, at less certainty.",
            rich_help_panel="Scope",
        ),
    ] = False
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Run only this probe. Repeatable; --plan lists them.",
            rich_help_panel="Scope",
        ),
    ] = None
    plan: Annotated[
        bool,
        typer.Option(
            "--plan",
            help="Show what would be read and written and how long it takes; write nothing.",
            rich_help_panel="Scope",
        ),
    ] = False
    time_limit: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Stop after this time and keep the results so far: probes, twin and check together.",
            rich_help_panel="Workload",
        ),
    ] = None
    fit_limit: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            help="Stop fitting the twin after this much processor time and use the best model so far.",
            rich_help_panel="Scope",
        ),
    ] = FIT_LIMIT_S
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Save the findings here after every probe; continue from the file if it exists.",
            rich_help_panel="Saving and resuming",
        ),
    ] = None
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.toml",
            help="Write the profile, which other commands take as a DEVICE.",
            rich_help_panel="Output",
        ),
    ] = None
    twin: Annotated[
        bool | None,
        typer.Option(
            "--twin/--no-twin",
            help="Fit a model to the drive; by default with --save and --check.",
            rich_help_panel="Scope",
        ),
    ] = None
    check_twin: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Play a held-out pattern on drive and twin, and report how far they differ; always with --save.",
            rich_help_panel="Scope",
        ),
    ] = False
    against: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.toml",
            help="Probe nothing; check the twin of this profile against the target.",
            rich_help_panel="Scope",
        ),
    ] = None
    despite_doubts: Annotated[
        bool,
        typer.Option(
            "--despite-doubts",
            help="Report findings even if the device does not look like a flash drive.",
            rich_help_panel="Scope",
        ),
    ] = False
    set: Annotated[
        list[str] | None,
        settings_option("A setting of a sim: drive."),
    ] = None
    seed: Annotated[
        int, typer.Option(metavar="N", help="Random seed.", rich_help_panel="Scope")
    ] = 1

    def check(self, output: ResultOptions) -> None:
        """Refuse what makes no sense."""
        if self.time_limit is not None and self.time_limit <= 0:
            raise WorkloadError(
                f"--time-limit: found {self.time_limit}, expected seconds above 0", ""
            )
        if not self.fit_limit > 0:
            raise WorkloadError(
                f"--fit-limit: found {self.fit_limit}, expected seconds above 0", ""
            )
        if self.read_only and self.destroys_data:
            raise WorkloadError(
                "--read-only and --destroys-data: found both, expected one of them",
                "--range START:LENGTH limits what is written",
            )
        if self.read_only or self.range is not None:
            why = "--read-only" if self.read_only else "--range"
            for option, asked_for in (
                ("--twin", self.twin is True),
                ("--check", self.check_twin),
                ("--against", self.against is not None),
            ):
                if asked_for:
                    raise WorkloadError(
                        f"{option}: found with {why}, expected a whole drive that may be written",
                        "",
                    )
        if self.against is not None:
            given = [self.save, self.state, self.only, self.twin, output.report, output.figures]
            if any(one is not None for one in given) or self.quick or self.plan:
                raise WorkloadError(
                    "--against: found with options for probing, expected none",
                    "it checks an existing profile; only --seed, --set, --json and --destroys-data go with it",
                )
        if self.seed < 0:
            raise WorkloadError(f"--seed: found {self.seed}, expected 0 or more", "")

    def open(self, target: str) -> Target:
        """The target, open for writing only if that was allowed."""
        destroys = self.destroys_data and not self.plan
        part = None if self.range is None else _range(self.range)
        return open_target(
            target,
            self.set,
            destroys_data=destroys,
            seed=self.seed,
            part=part,
            read_only=self.read_only,
        )

    def checked(self, modelled: bool) -> bool:
        """Whether the twin is checked: always where it is kept, since others will rely on it."""
        return modelled and (self.check_twin or self.save is not None)

    def modelled(self, drive: Target) -> bool:
        """Whether a twin is to be made: by default where it is kept or checked, of all of a drive."""
        if self.twin is not None:
            return self.twin
        wanted = self.save is not None or self.check_twin
        return wanted and not (self.read_only or rest_of(drive) is not None)


def _range(text: str) -> Range:
    """A range, from START:LENGTH."""
    parts = text.split(":")
    if len(parts) != 2:
        raise WorkloadError(
            f"--range: found {text!r}, expected START:LENGTH", "such as 100GiB:32GiB, or 0:1GiB"
        )
    start, length = (
        int(part) if part.isdecimal() else int(parse_size(part, "--range")) for part in parts
    )
    return Range(start, length)


@add_options
def probe(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help=TARGET_HELP,
        ),
    ],
    options: ProbeOptions,
    wear: WearOptions,
    output: ResultOptions,
) -> int:
    """Find a drive's hidden parameters by timing requests, with the evidence for each.

    The probes write all over the target, or over its --range: a real one is written only with --destroys-data.
    --read-only asks without a write. What it costs the drive is said first, and asked about where it is much.
    """
    options.check(output)
    output.check(options.state, options.save)
    if options.against is not None:
        return _against(target, options, wear, output)
    if options.check_twin and options.twin is False:
        raise WorkloadError("--check: found with --no-twin, expected a twin to check", "")
    mode: Mode = "quick" if options.quick else "full"
    deadline = Deadline(options.time_limit)
    with options.open(target) as drive:
        modelled = options.modelled(drive)
        ahead = plan(
            drive,
            mode=mode,
            only=options.only or (),
            state=options.state,
            seed=options.seed,
            twin=modelled,
            check=options.checked(modelled),
        )
        cost = bill(drive, ahead, wear.endurance(drive_bytes(drive)))
        if options.plan or not (drive.writes_allowed or drive.read_only):
            if not output.silent:
                render.show_plan(drive, ahead, cost)
            if options.plan:
                put_json({"plan": render.plan_json(ahead), "costs": cost.to_dict()}, output.json)
                return 0
            raise TargetError(
                f"{target}: nothing was written, because its data would be lost",
                "--destroys-data lets the probes write; --read-only asks those that need no write",
            )
        if not output.quiet:
            render.announce(drive, ahead, cost)
        wear.consent(drive, cost)
        session = _Session(drive, options, output, deadline)
        session.ask(mode)
        if modelled and session.result.ended == "complete" and not session.interrupted:
            session.model(options.checked(modelled))
    result, twin, checked = session.result, session.twin, session.checked
    moved = {"bytes_read": drive.bytes_read, "bytes_written": drive.bytes_written}
    document = result.json | {
        "twin": None if twin is None else twin.fit.to_dict(),
        "check": None if checked is None else checked.to_dict(),
        "costs": cost.to_dict(moved),
    }
    put_json(document, output.json)
    residuals = None if twin is None else twin.fit.residuals
    put_page(lambda: probe_page(result, residuals, checked), output)
    if options.save is not None:
        profile = result.profile(twin, checked)
        profile.save(options.save)
        session.notes += [
            f"{options.save}: the twin is marked: {doubt}" for doubt in profile.twin_doubts
        ]
    if not output.silent:
        render.show(result)
        if twin is not None:
            render.show_twin(twin)
        if checked is not None:
            render.show_check(checked)
        page.console().print(page.grid([("cost", asked(drive, cost))]))
    for note in session.notes:
        errors.note(note)
    failed = options.check_twin and checked is not None and not checked.within
    return _end(result, session.interrupted) or int(failed)


class _Session:
    """The probes, the twin and its check, one after the other within one time limit."""

    def __init__(
        self, drive: Target, options: ProbeOptions, output: ResultOptions, deadline: Deadline
    ) -> None:
        self.drive, self.options, self.output, self.deadline = drive, options, output, deadline
        self.result: ProbeResult
        self.twin: Twin | None = None
        self.checked: Check | None = None
        self.interrupted = False
        self.notes: list[str] = []

    def ask(self, mode: Mode) -> None:
        """Ask the drive, and print each finding as it comes."""
        options = self.options
        with Bar(self.output.bar, "probe", "MB/s") as bar:

            def found(finding: Finding, spent: Asked) -> None:
                if not self.output.silent:
                    bar.line(render.line(finding, spent))

            try:
                self.result = ask(
                    self.drive,
                    mode=mode,
                    only=options.only or (),
                    time_limit=self.deadline.left_s,
                    state=options.state,
                    seed=options.seed,
                    despite_doubts=options.despite_doubts,
                    progress=lambda name, done, total: bar.update(
                        Progress("measured", done // 10**6, total // 10**6 + 1, None, 0), name
                    ),
                    found=found,
                )
            except ProbeInterrupted as stop:
                self.interrupted, self.result = True, stop.result

    def model(self, checks: bool) -> None:
        """Make the twin and check it if it is to be; what was found before stands however that ends."""
        step = "twin was made"
        with Bar(self.output.bar, "", "") as bar:
            steps = _steps(bar)
            left = self.deadline.left_s
            if left is not None and checks:
                left *= _TWIN_SHARE
            try:
                self.twin = twin_of(
                    self.drive,
                    self.result,
                    steps,
                    time_limit=left,
                    fit_limit=self.options.fit_limit,
                )
                if self.twin.fit.stopped:
                    self.notes.append(f"{self.twin.fit.stopped}; the best model so far is the twin")
                if checks:
                    step = "twin was checked"
                    self.checked = _checked(
                        self.drive,
                        self.twin.ssd,
                        self.options.seed + 1,
                        steps,
                        self.deadline.left_s,
                    )
            except OutOfTimeError:
                self.notes.append(f"the time limit was reached before the {step}")
            except KeyboardInterrupt:
                self.interrupted = True
                self.notes.append(f"interrupted before the {step}")


def _checked(
    drive: Target,
    twin: Ssd,
    seed: int,
    steps: Callable[[str, int, int], None],
    time_limit: float | None,
) -> Check:
    return check(
        drive,
        twin,
        seed=seed,
        progress=lambda share: steps("check", int(share * 1e6), 10**6),
        time_limit=time_limit,
    )


def _steps(bar: Bar) -> Callable[[str, int, int], None]:
    return lambda name, done, total: bar.update(Progress("measured", done, total, None, 0), name)


def _against(target: str, options: ProbeOptions, wear: WearOptions, output: ResultOptions) -> int:
    """Check the twin of a profile against a target."""
    assert options.against is not None
    twin = Profile.from_toml(options.against).drive()
    with options.open(target) as drive:
        cost = bill(
            drive,
            planned(drive, (), "full", options.seed, {}, (), check=True),
            wear.endurance(drive_bytes(drive)),
        )
        if not drive.writes_allowed:
            raise TargetError(
                f"{target}: nothing was written, because its data would be lost",
                "--destroys-data lets the check write",
            )
        wear.consent(drive, cost)
        with Bar(output.bar, "", "") as bar:
            try:
                checked = _checked(drive, twin, options.seed + 1, _steps(bar), options.time_limit)
            except OutOfTimeError:
                raise TargetError(
                    f"{target}: the time limit was reached before the twin was checked",
                    "a longer --time-limit",
                ) from None
    put_json({"target": target, "check": checked.to_dict()}, output.json)
    if not output.silent:
        render.show_check(checked)
    return 0 if checked.within else 1


def _end(result: ProbeResult, interrupted: bool) -> int:
    """Say what nobody should miss; the exit status."""
    if interrupted:
        errors.note(f"{result.note}; --state FILE continues from there")
        return 130
    if result.ended == "failed":
        errors.fault(result.note, "what was found before is kept")
        return 1
    if result.ended == "time-limit":
        errors.note(f"{result.note}; --state FILE continues from there")
    return 0
