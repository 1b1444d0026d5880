"""``flashwright probe``: the hidden parameters of a drive, from the outside."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from flashwright.cli.options import ResultOptions, add_options
from flashwright.cli.progress import Bar
from flashwright.cli.render import errors, page, put_json, units
from flashwright.device import Ssd
from flashwright.errors import TargetError, WorkloadError
from flashwright.probe import Planned, ProbeInterrupted, ProbeResult, plan
from flashwright.probe import probe as ask
from flashwright.probes.base import Mode
from flashwright.report.probe import interval, value
from flashwright.run import Progress
from flashwright.target import Target

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
    set: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting of a sim: drive. Repeatable."),
    ] = None
    seed: Annotated[int, typer.Option(metavar="N", help="Of all that is random.")] = 1

    def check(self) -> None:
        """Refuse what makes no sense."""
        if self.time_limit is not None and self.time_limit <= 0:
            raise WorkloadError(
                f"--time-limit: found {self.time_limit}, expected seconds above 0", ""
            )
        if self.seed < 0:
            raise WorkloadError(f"--seed: found {self.seed}, expected 0 or more", "")

    def open(self, target: str) -> Target:
        """The target, open for writing only if that was allowed."""
        destroys = self.destroys_data and not self.plan
        if target.startswith("sim:"):
            ssd = Ssd.find(target.removeprefix("sim:")).with_settings(self.set or ())
            opened = Target(ssd, seed=self.seed)
            opened.name = target
            return opened
        if self.set:
            raise WorkloadError(
                "--set: found it with a real target, expected it with sim:DEVICE", ""
            )
        return Target(target, destroys_data=destroys, seed=self.seed)


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
    options.check()
    output.check(options.state)
    interrupted = False
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
                    progress=lambda name, done, total: bar.update(
                        Progress("measured", done // 10**6, total // 10**6 + 1, None, 0), name
                    ),
                )
        except ProbeInterrupted as stop:
            interrupted = True
            result = stop.result
    put_json(result.json, output.json)
    if output.report is not None:
        result.report(output.report)
    if not output.silent:
        _show(result)
    return _end(result, interrupted)


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
