"""``flashwright probe``: the hidden parameters of a drive, from the outside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from flashwright.cli.options import ResultOptions, add_options, open_target
from flashwright.cli.progress import Bar
from flashwright.cli.render import errors, page, put_json, put_page, units
from flashwright.errors import TargetError, WorkloadError
from flashwright.probe import Planned, ProbeInterrupted, ProbeResult, Twin, plan, twin_of
from flashwright.probe import probe as ask
from flashwright.probes.base import Mode
from flashwright.profile import Profile
from flashwright.report.probe import interval, probe_page, value
from flashwright.run import Progress
from flashwright.target import Target
from flashwright.twin.check import MEAN_BOUND, P99_BOUND, Check, check

__all__ = ["probe"]


@dataclass
class ProbeOptions:
    """How a drive is probed."""

    destroys_data: Annotated[
        bool,
        typer.Option(
            "--destroys-data",
            help="Let the probes write, over whatever is on the target. Without it only the plan is shown.",
        ),
    ] = False
    quick: Annotated[
        bool, typer.Option("--quick", help="Minutes on a fast drive, at less certainty.")
    ] = False
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this probe. Repeatable; --plan lists them."),
    ] = None
    plan: Annotated[
        bool,
        typer.Option(
            "--plan", help="Say what would be read and written and for how long; write nothing."
        ),
    ] = False
    time_limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Ask no more after so long.")
    ] = None
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Keep the findings here after every probe, and go on from it if it exists.",
        ),
    ] = None
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.toml",
            help="Write the profile, which other commands take as a DEVICE.",
        ),
    ] = None
    twin: Annotated[
        bool | None,
        typer.Option(
            "--twin/--no-twin",
            help="Fit a model to the drive; by default with --save and --check.",
        ),
    ] = None
    check_twin: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Play a pattern that was held back on drive and twin, and say how far apart they are.",
        ),
    ] = False
    against: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.toml",
            help="Probe nothing; check the twin of this profile against the target.",
        ),
    ] = None
    despite_doubts: Annotated[
        bool,
        typer.Option(
            "--despite-doubts",
            help="Tell what was found even if the target looks like no drive of flash.",
        ),
    ] = False
    set: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting of a sim: drive. Repeatable."),
    ] = None
    seed: Annotated[int, typer.Option(metavar="N", help="Of all that is random.")] = 1

    def check(self, output: ResultOptions) -> None:
        """Refuse what makes no sense."""
        if self.time_limit is not None and self.time_limit <= 0:
            raise WorkloadError(
                f"--time-limit: found {self.time_limit}, expected seconds above 0", ""
            )
        if self.against is not None:
            given = [self.save, self.state, self.only, self.twin, output.report, output.figures]
            if any(one is not None for one in given) or self.quick or self.plan:
                raise WorkloadError(
                    "--against: found it with options of a probing, expected none",
                    "it checks a profile that there is; --seed, --set, --json and --destroys-data may stand with it",
                )
        if self.seed < 0:
            raise WorkloadError(f"--seed: found {self.seed}, expected 0 or more", "")

    def open(self, target: str) -> Target:
        """The target, open for writing only if that was allowed."""
        destroys = self.destroys_data and not self.plan
        return open_target(target, self.set, destroys_data=destroys, seed=self.seed)


@add_options
def probe(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="A block device or a file; or sim:DEVICE, a bundled drive or a TOML file.",
        ),
    ],
    options: ProbeOptions,
    output: ResultOptions,
) -> int:
    """Find out a drive's hidden parameters by timing requests; each verdict comes with its evidence.

    The probes write all over the target: a real one is touched only with --destroys-data.
    """
    options.check(output)
    output.check(options.state, options.save)
    if options.against is not None:
        return _against(target, options, output)
    interrupted = False
    twin = checked = None
    modelled = options.save is not None or options.check_twin
    modelled = modelled if options.twin is None else options.twin
    if options.check_twin and not modelled:
        raise WorkloadError("--check: found it with --no-twin, expected a twin to check", "")
    mode: Mode = "quick" if options.quick else "full"
    with options.open(target) as drive:
        planned = plan(
            drive, mode=mode, only=options.only or (), state=options.state, seed=options.seed
        )
        if options.plan or not drive.writes_allowed:
            _show_plan(drive, planned)
            if options.plan:
                return 0
            raise TargetError(
                f"{target}: nothing was written, for its data would be lost",
                "--destroys-data lets the probes write",
            )
        if not output.quiet:
            _announce(drive, planned)
        try:
            with Bar(output.bar, "probe", "MB/s") as bar:
                result = ask(
                    drive,
                    mode=mode,
                    only=options.only or (),
                    time_limit=options.time_limit,
                    state=options.state,
                    seed=options.seed,
                    despite_doubts=options.despite_doubts,
                    progress=lambda name, done, total: bar.update(
                        Progress("measured", done // 10**6, total // 10**6 + 1, None, 0), name
                    ),
                )
            if modelled and result.ended == "complete":
                with Bar(output.bar, "", "") as bar:
                    steps = _steps(bar)
                    twin = twin_of(drive, result, steps)
                    if options.check_twin:
                        checked = check(
                            drive,
                            twin.fit.ssd,
                            seed=options.seed + 1,
                            progress=lambda share: steps("check", int(share * 1e6), 10**6),
                        )
        except ProbeInterrupted as stop:
            interrupted = True
            result = stop.result
    document = result.json | {
        "twin": None if twin is None else twin.fit.to_dict(),
        "check": None if checked is None else checked.to_dict(),
    }
    put_json(document, output.json)
    residuals = None if twin is None else twin.fit.residuals
    put_page(lambda: probe_page(result, residuals, checked), output)
    if options.save is not None:
        result.profile(twin).save(options.save)
    if not output.silent:
        _show(result)
        if twin is not None:
            _show_twin(twin)
        if checked is not None:
            _show_check(checked)
    return _end(result, interrupted) or (0 if checked is None or checked.within else 1)


def _steps(bar: Bar) -> Callable[[str, int, int], None]:
    return lambda name, done, total: bar.update(Progress("measured", done, total, None, 0), name)


def _against(target: str, options: ProbeOptions, output: ResultOptions) -> int:
    """Check the twin of a profile against a target."""
    assert options.against is not None
    twin = Profile.from_toml(options.against).drive()
    with options.open(target) as drive:
        if not drive.writes_allowed:
            raise TargetError(
                f"{target}: nothing was written, for its data would be lost",
                "--destroys-data lets the check write",
            )
        with Bar(output.bar, "", "") as bar:
            steps = _steps(bar)
            checked = check(
                drive,
                twin,
                seed=options.seed + 1,
                progress=lambda share: steps("check", int(share * 1e6), 10**6),
            )
    put_json({"target": target, "check": checked.to_dict()}, output.json)
    if not output.silent:
        _show_check(checked)
    return 0 if checked.within else 1


def _announce(drive: Target, planned: list[Planned]) -> None:
    """Say what is about to be written, and for how long."""
    if not drive.real_time:
        return
    left = [item for item in planned if not item.done]
    seconds = sum(item.seconds or 0.0 for item in left)
    errors.note(
        f"{len(left)} probes will write about {units.size(sum(item.cost.bytes_written for item in left))} all over "
        f"{drive.name} and take about {units.seconds(seconds)}"
    )


def _show_plan(drive: Target, planned: list[Planned]) -> None:
    out = page.console()
    table = page.plain_table(
        "probe", "reads", "writes", "takes about", "asks", right=["reads", "writes", "takes about"]
    )
    for item in planned:
        takes = "–" if item.seconds is None else units.seconds(item.seconds)
        table.add_row(
            item.name,
            units.size(item.cost.bytes_read),
            units.size(item.cost.bytes_written),
            "done" if item.done else takes,
            item.about,
        )
    total = sum(item.seconds or 0.0 for item in planned if not item.done)
    out.print(table)
    if drive.real_time:
        out.print(f"about {units.seconds(total)} in all, by how fast it reads")


def _show(result: ProbeResult) -> None:
    out = page.console()
    target = result.target
    out.print(
        page.grid(
            [
                (
                    "target",
                    f"{target['name']}: {units.size(target['capacity_bytes'])}, "
                    f"{target['kind'].replace('-', ' ')}",
                ),
                ("mode", f"{result.mode}; seed {result.seed}"),
            ]
        )
    )
    table = page.plain_table(
        "parameter", "verdict", "95 % interval", "confidence", "why", right=["confidence"]
    )
    for finding in result.findings.values():
        sure = "–" if finding.verdict == "unknown" else f"{finding.confidence:.0%}"
        table.add_row(finding.parameter, value(finding), interval(finding), sure, finding.why)
    out.print(table)
    for name, sentences in (("doubt", result.doubts), ("declared", result.beside)):
        if sentences:
            out.print(page.grid([(name, sentence) for sentence in sentences]))
    spent = sum(asked.seconds for asked in result.asked)
    own = sum(asked.target_seconds for asked in result.asked)
    moved = [sum(getattr(asked, name) for asked in result.asked) for name in _MOVED]
    out.print(
        page.grid(
            [
                (
                    "asked",
                    f"{units.size(moved[0])} read, {units.size(moved[1])} written, "
                    f"{units.count(moved[2])} flushes, in {units.seconds(spent)} "
                    f"({units.seconds(own)} on the drive's clock)",
                )
            ]
        )
    )


def _show_twin(twin: Twin) -> None:
    """Print what the model is, and how near it comes to what it was fitted to."""
    apart = sorted(abs(np.log(max(r.ratio, 1e-9))) for r in twin.fit.residuals)
    half, most = apart[len(apart) // 2], apart[int(0.95 * (len(apart) - 1))]
    page.console().print(
        page.grid(
            [
                ("twin", twin.fit.tried[-1][0] if twin.fit.tried else twin.fit.ssd.name),
                (
                    "",
                    f"half of the {len(apart)} levels it was fitted to are within {np.expm1(half):.1%}, 95 % within "
                    f"{np.expm1(most):.0%}; {units.count(twin.fit.evaluations)} models tried",
                ),
            ]
        )
    )


def _show_check(checked: Check) -> None:
    """Print how far drive and twin are apart on the pattern that was held back."""
    figures = ("mean", "p50", "p90", "p99", "p99.9")
    table = page.plain_table("held back", "", *figures, right=figures)
    for name, of_kind in (
        ("all", checked.all),
        ("reads", checked.reads),
        ("writes", checked.writes),
    ):
        table.add_row(name, "drive", *(units.time(of_kind.drive_ns[f]) for f in figures))
        table.add_row("", "twin", *(units.time(of_kind.twin_ns[f]) for f in figures))
        table.add_row("", "apart", *(f"{of_kind.ratio[f] - 1:+.1%}" for f in figures))
    out = page.console()
    out.print(table)
    verdict = "within" if checked.within else "beyond"
    out.print(
        f"check: {verdict} {MEAN_BOUND:.0%} of the mean and {P99_BOUND:.0%} of the 99th percentile"
    )


_MOVED = ("bytes_read", "bytes_written", "flushes")


def _end(result: ProbeResult, interrupted: bool) -> int:
    """Say what nobody should miss; the exit status."""
    if interrupted:
        errors.note(f"{result.note}; --state FILE goes on from there")
        return 130
    if result.ended == "failed":
        errors.fault(result.note, "what was found before is kept")
        return 1
    if result.ended == "time-limit":
        errors.note(f"{result.note}; --state FILE goes on from there")
    return 0
