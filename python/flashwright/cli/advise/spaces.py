"""``flashwright advise space``: reservations are played, and the least that meets the targets is found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from flashwright._core import __version__
from flashwright.advice.files import prepare
from flashwright.advice.host import host_advice, profile_of_model
from flashwright.advice.lines import HostAdvice
from flashwright.advice.space import UTILIZATIONS, Advice, Target
from flashwright.advice.space import advise as find
from flashwright.characterization.reserves import USED, asked_at_most
from flashwright.cli.advise.hosts import read_profile, show_host, write
from flashwright.cli.advise.options import BothOptions, SpaceOptions
from flashwright.cli.advise.tables import show, unmet
from flashwright.cli.options import DEFAULT_TRACE, RunOptions
from flashwright.cli.outputs import ResultOptions
from flashwright.cli.render import Shown, errors, put_json, put_page, units
from flashwright.drive.trust import MEAN_BOUND, P99_BOUND
from flashwright.endurance import lifetime
from flashwright.errors import ConfigError
from flashwright.probing.costs import Bill
from flashwright.simulation.ssd import Ssd
from flashwright.simulation.warnings import gathered_json
from flashwright.support.bars import Bar
from flashwright.support.core import _core
from flashwright.support.cores import cores
from flashwright.traces.workloads import Workload
from flashwright.twin.profile import Profile

__all__ = ["by_runs"]


def by_runs(
    device: str,
    run: RunOptions,
    output: ResultOptions,
    about_host: BothOptions,
    asked: SpaceOptions,
) -> int:
    """Play reservations, show what was found, and give the exit status."""
    output.check()
    profile = read_profile(device)
    if profile is not None and profile.twin_doubts and not asked.despite_doubts:
        raise ConfigError(
            f"{device}: don't rely on its twin, on which the runs would be played: {'; '.join(profile.twin_doubts)}",
            measured_instead(profile),
        )
    host_wanted, disk = about_host.wanted(profile), about_host.disk()
    jobs, cycles, seeds, write_rate = asked.jobs, asked.cycles, asked.seeds, asked.write_rate
    if jobs is not None and not 1 <= jobs <= 256:
        raise ConfigError(f"--jobs: found {jobs}, expected 1 to 256", "")
    if cycles is not None and cycles < 1:
        raise ConfigError(f"--cycles: found {cycles}, expected 1 or more", "")
    targets = [Target.parse(text) for text in asked.targets or []]
    notes = []
    if targets and profile is not None and profile.twin_record:
        # A twin within its bounds may still be off by them.
        targets = [
            each.with_margin(P99_BOUND if each.metric.startswith("p99") else MEAN_BOUND)
            for each in targets
        ]
        notes.append(
            f"the runs are of a twin, which may be off by {MEAN_BOUND:.0%} ({P99_BOUND:.0%} at p99): targets are met "
            "with as much to spare"
        )
    if run.workload is None and run.trace is None:
        notes.append(f"neither --trace nor --workload: playing {DEFAULT_TRACE}")
    if seeds < 1:
        raise ConfigError(f"--seeds: found {seeds}, expected 1 or more", "")
    ssd, source, settings = run.drive(device).settling(), run.source(), run.settings()
    if profile is not None:
        known = replace(profile, twin=_plain(ssd))
    else:
        known = profile_of_model(ssd) if host_wanted else Profile.described(ssd)
    if host_wanted and about_host.write_to is not None:
        # Before the runs, so that none is in vain.
        prepare(host_advice(known, device=disk), about_host.write_to, force=about_host.force)
    rate = None
    if write_rate is not None:
        rate, years = lifetime.parse_rating(
            write_rate, _core.config_check(ssd.toml)[0], "write_rate"
        )
        if years is not None and not any(each.metric == "life" for each in targets):
            targets.append(Target.parse(f"life>={years:g}y"))
    if ssd.config["capacity"]["logical"] != "0 B":
        notes.append("capacity.logical is left out of the runs: utilization says the size")
    tried = _utilizations(asked.utilizations)
    twice = sorted({u for u in tried if tried.count(u) > 1})
    if twice:
        notes.append(
            f"--utilizations: found {', '.join(f'{u:g}' for u in twice)} more than once; each is played once"
        )
    if not output.quiet:
        for note in notes:
            errors.note(note)
    with Bar(output.bar) as bar:
        found = find(
            ssd,
            source,
            utilizations=tried,
            targets=targets,
            settings=settings,
            cycles=cycles,
            write_rate=rate,
            seeds=seeds,
            jobs=jobs or cores(),
            progress=lambda label, now: bar.update(now, label=label),
        )
    hosted = host_advice(known, found, device=disk) if host_wanted else None
    document = _document(found, run, source.spec if isinstance(source, Workload) else source.path)
    document["notes"] = notes
    document["warnings"] = gathered_json(found.warnings)
    document["host_advice"] = None if hosted is None else hosted.document()
    written = write(hosted, about_host)
    put_json(document, output.json)
    if found.points:
        put_page(lambda: _page(found, document, hosted), output)
        if not output.silent:
            show(found, document)
    if hosted is not None and not output.silent:
        show_host(hosted)
    if not output.quiet:
        for path in written:
            errors.note(f"wrote {path}")
        for u, why in found.failures.items():
            errors.note(f"utilization {u:g} left out: {why.splitlines()[0]}")
    if not found.finished:
        errors.note(f"interrupted; {len(found.points)} runs were finished")
        return 130
    if targets and found.recommended is None:
        errors.fault(unmet(found))
        return 1
    return 1 if any(point.result.violations for point in found.points) else 0


def measured_instead(profile: Profile) -> str:
    """What would tell the same without a twin, and what it costs the drive."""
    target = profile.target
    asked = asked_at_most(target.capacity_bytes)
    bill = Bill(asked.bytes_read, asked.bytes_written, target.capacity_bytes, None, "")
    least, most = (f"{1 - used:.0%}".replace("%", " %") for used in (USED[-1], USED[0]))
    destroys = "" if target.kind == "simulated" else " --destroys-data"
    return (
        f"measure it: `flashwright characterize {target.name} --only reserves{destroys}` reserves {least} to {most} in "
        f"turn, destroys all data, and writes up to {units.size(bill.bytes_written)}, {bill.fills:.0f} drive fills, in "
        f"{units.count(asked.requests)} requests; `--plan` adds the time, and with --rated-endurance the wear. "
        "`flashwright advise host` needs no twin; --despite-doubts plays it all the same"
    )


def _plain(ssd: Ssd) -> Ssd:
    return replace(ssd, preconditioning=None)


def _utilizations(text: str | None) -> list[float]:
    if text is None:
        return list(UTILIZATIONS)
    try:
        return [lifetime.parse_share(part) for part in text.split(",")]
    except ConfigError:
        raise ConfigError(
            f"--utilizations: found {text!r}, expected shares above 0 and below 1",
            "such as 0.6,0.7,0.8 or 60%,70%,80%",
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


def _page(found: Advice, document: Mapping[str, Any], hosted: HostAdvice | None) -> Shown:
    from flashwright.advice.pages import advice_page

    return advice_page(found, document, hosted)
