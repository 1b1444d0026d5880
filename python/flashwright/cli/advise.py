"""``flashwright advise``: how much space to reserve for a workload on a drive, and what its host should do."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from flashwright._core import __version__
from flashwright.blackbox.hostadvice import BlockDevice, HostAdvice
from flashwright.blackbox.hostfiles import prepare, write_files
from flashwright.blackbox.hosting import host_advice
from flashwright.blackbox.profile import Profile
from flashwright.cli.options import DEFAULT_TRACE, RunOptions, add_options
from flashwright.cli.outputs import OutputOptions
from flashwright.cli.render import Shown, errors, page, put_json, put_page, units
from flashwright.drive.description import devices
from flashwright.drive.profilefile import is_profile
from flashwright.errors import ConfigError, WorkloadError
from flashwright.life import lifetime
from flashwright.life.advise import UTILIZATIONS, Advice, Point, Target
from flashwright.life.advise import advise as find
from flashwright.run.ssd import Ssd
from flashwright.support.bars import Bar
from flashwright.support.core import _core
from flashwright.support.progress import Progress
from flashwright.traces.workloads import Workload

__all__ = ["advise"]


@dataclass
class HostOptions:
    """What is said about the drive's host."""

    host: Annotated[
        bool | None,
        typer.Option(
            "--host/--no-host",
            help="Say what follows for the drive's host: requests, queue, scheduler, layout. Default with a profile.",
        ),
    ] = None
    write_to: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Write files for a Linux machine: a udev rule, apply.sh, layout.sh, jobs of fio.",
        ),
    ] = None
    force: Annotated[
        bool, typer.Option("--force", help="Let --write-to replace files that are there.")
    ] = False
    block_device: Annotated[
        str | None,
        typer.Option(
            metavar="/dev/X", help="The disk that commands and files name; default the one probed."
        ),
    ] = None

    def disk(self) -> BlockDevice | None:
        """The disk, if one is named."""
        return None if self.block_device is None else BlockDevice.parse(self.block_device)

    def wanted(self, profile: Profile | None) -> bool:
        """Whether advice for the host is wanted; refuse what has no effect without it."""
        wanted = profile is not None if self.host is None else self.host
        for option, given in (
            ("--write-to", self.write_to is not None),
            ("--block-device", self.block_device is not None),
        ):
            if given and not wanted:
                raise ConfigError(
                    f"{option}: found it without advice for a host, expected --host beside it", ""
                )
        if self.force and self.write_to is None:
            raise ConfigError("--force: found it without --write-to, expected both", "")
        return wanted


@add_options
def advise(
    device: Annotated[
        str,
        typer.Argument(
            metavar="DEVICE",
            help="A bundled drive (`flashwright devices`), a TOML file, or a profile of a probed drive.",
        ),
    ],
    run: RunOptions,
    output: OutputOptions,
    about_host: HostOptions,
    target: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIGURE<=LIMIT",
            help="Meet this target: write-amplification<=2, mean, p99 or p99.9<=5ms, iops>=9000, throughput>=90MB/s, "
            "life>=5y. Repeatable.",
        ),
    ] = None,
    utilizations: Annotated[
        str | None,
        typer.Option(
            metavar="U,U,...",
            help="Try these values of capacity.utilization; default 0.5 to 0.95 in steps of 0.05.",
        ),
    ] = None,
    write_rate: Annotated[
        str | None,
        typer.Option(metavar="RATE", help="For years of life: 20MB/s, 2TB/day or 0.5dwpd."),
    ] = None,
    cycles: Annotated[
        int | None,
        typer.Option(metavar="N", help="Erases that a block takes; by default wear.pe-cycles-max."),
    ] = None,
    seeds: Annotated[
        int,
        typer.Option(
            metavar="N", help="Play each point with N seeds; figures are means over them."
        ),
    ] = 1,
    jobs: Annotated[
        int | None, typer.Option(metavar="N", help="Play N runs at a time; by default one a core.")
    ] = None,
) -> int:
    """Say how much spare space a workload needs: what it costs, where it turns steep, the least that meets a target.

    For a profile of a probed drive, say what its host should do, and the spare space too if a workload or a target is
    given.
    """
    output.check()
    profile = _profile(device)
    host_wanted, disk = about_host.wanted(profile), about_host.disk()
    for option in run.given(["closeup", "snapshots"]):
        raise WorkloadError(f"{option}: found it with advise, expected it with simulate", "")
    if jobs is not None and not 1 <= jobs <= 256:
        raise ConfigError(f"--jobs: found {jobs}, expected 1 to 256", "")
    if cycles is not None and cycles < 1:
        raise ConfigError(f"--cycles: found {cycles}, expected 1 or more", "")
    targets = [Target.parse(text) for text in target or []]
    about_space = [targets, utilizations, write_rate, cycles, jobs, run.given()]
    if profile is not None and host_wanted and not any(about_space):
        return _host_alone(host_advice(profile, device=disk), about_host, output)
    notes = []
    if run.workload is None and run.trace is None:
        notes.append(f"neither --trace nor --workload: playing {DEFAULT_TRACE}")
    if seeds < 1:
        raise ConfigError(f"--seeds: found {seeds}, expected 1 or more", "")
    ssd, source, settings = run.drive(device).settling(), run.source(), run.settings()
    known = Profile.described(ssd) if profile is None else replace(profile, twin=_plain(ssd))
    if host_wanted and about_host.write_to is not None:
        # Before the runs, so that none is in vain.
        prepare(host_advice(known, device=disk), about_host.write_to, force=about_host.force)
    rate = None
    if write_rate is not None:
        rate = lifetime.parse_rate(write_rate, _core.config_check(ssd.toml)[0], "write_rate")
    if ssd.config["capacity"]["logical"] != "0 B":
        notes.append("capacity.logical is left out of the runs: utilization says the size")
    if not output.quiet:
        for note in notes:
            errors.note(note)
    with Bar(output.bar, "advise", "runs/s") as bar:
        found = find(
            ssd,
            source,
            utilizations=_utilizations(utilizations),
            targets=targets,
            settings=settings,
            cycles=cycles,
            write_rate=rate,
            seeds=seeds,
            jobs=jobs or os.cpu_count() or 1,
            progress=lambda done, total: bar.update(Progress("measured", done, total, None, 0)),
        )
    hosted = host_advice(known, found, device=disk) if host_wanted else None
    document = _document(found, run, source.spec if isinstance(source, Workload) else source.path)
    document["notes"] = notes
    document["host_advice"] = None if hosted is None else hosted.document()
    written = _write(hosted, about_host)
    put_json(document, output.json)
    if found.points:
        put_page(lambda: _page(found, document, hosted), output)
        if not output.silent:
            _show(found, document)
    if hosted is not None and not output.silent:
        _show_host(hosted)
    if not output.quiet:
        for path in written:
            errors.note(f"wrote {path}")
        for u, why in found.failures.items():
            errors.note(f"utilization {u:g} left out: {why.splitlines()[0]}")
    if not found.finished:
        errors.note(f"interrupted; {len(found.points)} runs were finished")
        return 130
    if targets and found.recommended is None:
        errors.fault(_unmet(found))
        return 1
    return 1 if any(point.result.violations for point in found.points) else 0


def _profile(device: str) -> Profile | None:
    """The profile in the file of that name; None if that is no file or none of a profile."""
    path = Path(device)
    if device in devices() or not path.is_file():
        return None
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        # Whoever reads it as a drive says so.
        return None
    return Profile.from_text(text, device) if is_profile(text) else None


def _plain(ssd: Ssd) -> Ssd:
    return replace(ssd, preconditioning=None)


def _write(hosted: HostAdvice | None, options: HostOptions) -> list[Path]:
    if hosted is None or options.write_to is None:
        return []
    return write_files(hosted, options.write_to, force=options.force)


def _host_alone(hosted: HostAdvice, options: HostOptions, output: OutputOptions) -> int:
    """Advice for the host from a profile, without a run."""
    twin = hosted.profile.twin
    document: dict[str, Any] = {
        "version": __version__,
        "config": None if twin is None else twin.config,
        "workload": None,
        "precondition": None,
        "seed": None,
        "targets": [],
        "points": [],
        "knee": None,
        "knee_rule": None,
        "recommended": None,
        "nearest": [],
        "undecided": [],
        "failures": {},
        "notes": [],
        "host_advice": hosted.document(),
    }
    written = _write(hosted, options)
    put_json(document, output.json)

    def shown() -> Shown:
        from flashwright.blackbox.hostpages import host_advice_page

        return host_advice_page(hosted, document)

    put_page(shown, output)
    if not output.silent:
        page.console().print(page.grid([("advise", hosted.profile.target.name)]))
        _show_host(hosted)
    if not output.quiet:
        for path in written:
            errors.note(f"wrote {path}")
    return 0


def _show_host(hosted: HostAdvice) -> None:
    out = page.console()
    table = page.plain_table(
        page.Column("for the host", 100, number=False),
        page.Column("advice", 100, number=False),
        page.Column("rests on", 50, number=False),
        page.Column("confidence", 60),
    )
    for line in hosted.lines:
        sure = "" if line.confidence is None else units.share(line.confidence)
        table.add_row(line.topic, line.text, ", ".join(line.rests_on), sure)
    out.print(table)
    commands = [command for line in hosted.lines for command in line.commands]
    if commands:
        out.print("commands, which nobody has run:")
        for command in commands:
            # Unfolded, so that they can be copied.
            out.print(f"  {command}", soft_wrap=True)


def _utilizations(text: str | None) -> list[float]:
    if text is None:
        return list(UTILIZATIONS)
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ConfigError(
            f"--utilizations: found {text!r}, expected shares above 0 and below 1",
            "such as 0.6,0.7,0.8",
        ) from None


def _document(found: Advice, run: RunOptions, workload: str) -> dict[str, Any]:
    return {
        "version": __version__,
        "config": found.points[0].result.json["config"] if found.points else None,
        "workload": found.points[0].result.json["workload"] if found.points else workload,
        "precondition": run.precondition or "auto",
        "seed": run.seed,
        "targets": [target.text for target in found.targets],
        "points": [point.figures() for point in found.points],
        "knee": None if found.knee is None else found.knee.figures(),
        "knee_rule": "write amplification farthest below the chord, both axes scaled to 0-1 (Kneedle)",
        "recommended": None if found.recommended is None else found.recommended.figures(),
        "nearest": [
            {"target": target.text, "value": value, "utilization": at}
            for target, value, at in found.nearest
        ],
        "undecided": [point.utilization for point in found.undecided],
        "failures": {f"{u:g}": why for u, why in found.failures.items()},
    }


def _shown(metric: str, value: float | None) -> str:
    if metric in ("mean", "p99", "p99.9"):
        return units.time(value)
    if metric == "throughput":
        return units.rate(value)
    if metric == "iops":
        return units.count(value)
    text = units.number(value)
    return f"{text} years" if metric == "life" and value is not None else text


def _unmet(found: Advice) -> str:
    if not any(point.is_settled for point in found.points):
        return "no reservation can be recommended: no run had settled, and what is met in a transient is not met"
    parts = []
    for target, value, at in found.nearest:
        if value is None:
            parts.append(f"{target.text}: no run has that figure")
        else:
            parts.append(
                f"{target.text}: the best comes to {_shown(target.metric, value)}, at utilization {at:g}"
            )
    together = "" if len(found.nearest) != len(found.targets) or len(found.targets) == 1 else "all "
    return f"no reservation meets {together}{'; '.join(parts)}"


def _page(found: Advice, document: Mapping[str, Any], hosted: HostAdvice | None) -> Shown:
    from flashwright.blackbox.hostpages import advice_page

    return advice_page(found, document, hosted)


def _show(found: Advice, document: dict[str, Any]) -> None:
    out = page.console()
    config = document["config"]
    rows = [
        ("advise", f"{config['name']}, {document['workload']}"),
        ("precondition", f"{document['precondition']}; seed {document['seed']}"),
    ]
    out.print(page.grid(rows))
    table = page.plain_table(
        page.Column("reserved", 100),
        page.Column("utilization", 95),
        page.Column("WA", 99),
        page.Column("95 % of WA", 62),
        page.Column("settled", 98, number=False),
        page.Column("IOPS", 80),
        page.Column("mean", 70),
        page.Column("p99", 75),
        page.Column("p99.9", 50),
        page.Column("data till end", 60),
        page.Column("years", 65),
        page.Column("", 90, number=False),
    )
    for point in found.points:
        table.add_row(
            units.share(point.reserved),
            f"{point.utilization:g}",
            _shown("write-amplification", point.value("write-amplification")),
            units.interval(point.interval("write-amplification")),
            units.VERDICTS[point.verdict],
            *(_shown(metric, point.value(metric)) for metric in ("iops", "mean", "p99", "p99.9")),
            units.size(point.life_bytes) if point.life_bytes is not None else "-",
            units.number(point.life_years, 2),
            _marks(found, point),
        )
    out.print(table)
    rows = [("knee", _knee(found))]
    if found.recommended is not None:
        best = found.recommended
        figures = ", ".join(
            f"{t.metric} {_shown(t.metric, best.value(t.metric))}" for t in found.targets
        )
        rows.append(
            (
                "reserve",
                f"{units.share(best.reserved)} (capacity.utilization={best.utilization:g}), the least that meets "
                f"{', '.join(t.text for t in found.targets)}: {figures} in a settled drive; "
                f"{_confirmed(found)} once more under another seed",
            )
        )
        if found.undecided:
            least = min(point.reserved for point in found.undecided)
            rows.append(
                (
                    "undecided",
                    f"down to {units.share(least)}, runs kept the targets but had not settled; "
                    "--precondition workload:capacities=N with N above 64 may tell",
                )
            )
    out.print(page.grid(rows))


def _confirmed(found: Advice) -> str:
    assert found.recommended is not None and found.recommended.confirmation is not None
    again = found.recommended.confirmation
    return ", ".join(f"{t.metric} {_shown(t.metric, again.value(t.metric))}" for t in found.targets)


def _marks(found: Advice, point: Point) -> str:
    marks = []
    if point is found.knee:
        marks.append("knee")
    if point is found.recommended:
        marks.append("meets the target" if len(found.targets) == 1 else "meets the targets")
    return ", ".join(marks)


def _knee(found: Advice) -> str:
    if found.knee is None:
        return "none: write amplification does not turn steep in this range"
    return (
        f"{units.share(found.knee.reserved)} reserved (capacity.utilization={found.knee.utilization:g}): "
        "beyond it write amplification turns steep"
    )
