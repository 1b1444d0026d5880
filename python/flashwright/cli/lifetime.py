"""``flashwright lifetime``: by formula, played to the end of life, or from SMART data."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from flashwright._core import __version__
from flashwright.cli.options import (
    DEFAULT_TRACE,
    RunOptions,
    add_options,
    check_snapshots,
    refuse_passing,
)
from flashwright.cli.outputs import OutputOptions, SavingOptions
from flashwright.cli.render import errors, page, put_json, put_page, units
from flashwright.cli.smartlife import from_smart, in_years
from flashwright.errors import ConfigError, WorkloadError
from flashwright.life import lifetime as life
from flashwright.life.pages import decimal, formula_page
from flashwright.run.results import RunResult
from flashwright.run.run import Run, RunInterrupted
from flashwright.run.ssd import Ssd
from flashwright.support.bars import Bar
from flashwright.support.core import _core

__all__ = ["lifetime"]

_RESERVED = "0.5,0.6,0.7,0.8,0.9,0.95"
_WRITTEN_SHARES = (0.01, 0.05, 0.1, 0.25, 0.5)


@add_options
def lifetime(
    run: RunOptions,
    output: OutputOptions,
    saving: SavingOptions,
    device: Annotated[
        str | None,
        typer.Argument(
            metavar="[DEVICE]", help="A bundled drive (`flashwright devices`) or a TOML file."
        ),
    ] = None,
    capacity: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="S, such as 100GB; by default DEVICE's."),
    ] = None,
    cycles: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="M, erases that a block takes; by default DEVICE's wear.pe-cycles-max.",
        ),
    ] = None,
    reserved: Annotated[
        str | None,
        typer.Option(metavar="P,P,...", help=f"Shares of the space in use; default {_RESERVED}."),
    ] = None,
    written: Annotated[
        str | None,
        typer.Option(metavar="SIZE,...", help="Data written so far, such as 50TB,100TB."),
    ] = None,
    effective: Annotated[
        bool,
        typer.Option(
            "--effective",
            help="Count over-provisioning: S is the flash, P times logical over physical size.",
        ),
    ] = False,
    physical: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE", help="With --effective: size of the flash; by default DEVICE's."
        ),
    ] = None,
    simulate: Annotated[
        bool, typer.Option("--simulate", help="Play the workload until the drive can't be written.")
    ] = False,
    write_rate: Annotated[
        str | None,
        typer.Option(
            metavar="RATE", help="For years: 20MB/s, 2TB/day or 0.5dwpd (drive writes a day)."
        ),
    ] = None,
    fast_forward: Annotated[
        bool,
        typer.Option(
            "--fast-forward",
            help="With --simulate: stop once cleaning is steady, and extrapolate to the end.",
        ),
    ] = False,
    measure_share: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help="With --fast-forward: share of the erase budget to play at least.",
        ),
    ] = 0.1,
    against_full: Annotated[
        bool,
        typer.Option(
            "--against-full", help="With --fast-forward: play on to the end and say the error."
        ),
    ] = False,
    smart_file: Annotated[
        Path | None,
        typer.Option(
            "--smart",
            metavar="FILE",
            help="Output of `smartctl -j -a` or `nvme smart-log -o json`; - is standard input.",
        ),
    ] = None,
    endurance: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="With --smart: the drive's rating (TBW), such as 600TB."),
    ] = None,
) -> int:
    """Say how long a drive lasts: by formula, by playing it to its end (--simulate), or from SMART data (--smart)."""
    _refuse(
        {
            "--smart": smart_file is not None,
            "--simulate": simulate or saving.resume is not None,
            "the formula": smart_file is None and not simulate and saving.resume is None,
        },
        {
            "--simulate": {
                "--fast-forward": fast_forward,
                "--against-full": against_full,
                "--checkpoint": saving.checkpoint,
                "--checkpoint-every": saving.checkpoint_every,
                "--stop-after": saving.stop_after,
                "--write-rate": write_rate,
            },
            "--smart": {"--endurance": endurance},
            "the formula": {
                "--capacity": capacity,
                "--reserved": reserved,
                "--written": written,
                "--effective": effective,
                "--physical": physical,
            },
        },
    )
    saving.check()
    output.check(saving.checkpoint)
    if smart_file is not None or (not simulate and saving.resume is None):
        _refuse_run(run, device, cycles, output, smart_file is not None)
    if smart_file is not None:
        return from_smart(smart_file, endurance, output)
    if not simulate and saving.resume is None:
        return _by_formula(
            run, output, device, capacity, cycles, reserved, written, physical, effective
        )
    if fast_forward:
        for name, value in (
            ("--checkpoint", saving.checkpoint),
            ("--resume", saving.resume),
            ("--stop-after", saving.stop_after),
        ):
            if value is not None:
                raise WorkloadError(
                    f"{name}: found it with --fast-forward, expected it without",
                    "a fast-forward plays a part of the life only",
                )
    elif against_full:
        raise WorkloadError(
            "--against-full: found it without --fast-forward, expected both",
            "without it the whole life is played anyway",
        )
    if write_rate is not None:
        life.parse_rate(write_rate, 1.0, "write_rate")
    made = _begin(run, output, saving, device, cycles)
    rate = None
    if write_rate is not None:
        rate = life.parse_rate(write_rate, _core.config_check(made.toml)[0], "write_rate")
    if fast_forward:
        return _fast_forward(made, output, rate, measure_share, against_full)
    return _to_the_end(made, output, rate, saving)


def _refuse(chosen: dict[str, bool], own: dict[str, dict[str, object]]) -> None:
    """Refuse two ways at once, and options of a way that was not chosen."""
    ways = [way for way, wanted in chosen.items() if wanted]
    if len(ways) > 1:
        raise WorkloadError(f"{' and '.join(ways)}: found both, expected one of them", "")
    for way, options in own.items():
        for option, value in options.items():
            if value not in (None, False) and not chosen[way]:
                raise WorkloadError(
                    f"{option}: found it with {ways[0]}, expected it with {way} only", ""
                )


def _refuse_run(
    run: RunOptions, device: str | None, cycles: int | None, output: OutputOptions, smart: bool
) -> None:
    """Refuse what makes a run where nothing is played; a formula takes a drive with its settings."""
    given = [option for option in run.given() if smart or option != "--set"]
    if smart:
        others = {
            "DEVICE": device,
            "--cycles": cycles,
            "--report": output.report,
            "--figures": output.figures,
        }
        given += [name for name, value in others.items() if value is not None]
    for option in given:
        way = "--smart" if smart else "the formula"
        raise WorkloadError(
            f"{option}: found it with {way}, expected it without", "--simulate plays a drive"
        )


# By formula ---------------------------------------------------------------------------------------


def _by_formula(
    run: RunOptions,
    output: OutputOptions,
    device: str | None,
    capacity: str | None,
    cycles: int | None,
    reserved: str | None,
    written: str | None,
    physical: str | None,
    effective: bool,
) -> int:
    logical, flash = (
        None if text is None else life.parse_size(text, name)
        for text, name in ((capacity, "capacity"), (physical, "physical"))
    )
    if device is not None:
        ssd = run.drive(device)
        drive_bytes, drive_pages, flash_pages = _core.config_check(ssd.toml)
        logical = drive_bytes if logical is None else logical
        flash = flash_pages * (drive_bytes / drive_pages) if flash is None else flash
        cycles = cycles or ssd.config["wear"]["pe-cycles-max"] or None
    for name, value, hint in (
        ("--capacity", logical, "name a DEVICE, or give --capacity 100GB"),
        ("--cycles", cycles, "erases that a block takes, such as --cycles 3000"),
    ):
        if value is None:
            raise ConfigError(f"{name}: found nothing, expected it or a DEVICE that has it", hint)
    assert logical is not None and cycles is not None
    factor, s = 1.0, logical
    if effective:
        if flash is None:
            raise ConfigError(
                "--physical: found nothing, expected the size of the flash with --effective",
                "name a DEVICE, or give --physical 128GiB",
            )
        factor, s = float(life.effective_range(1.0, logical, flash)), flash
    shares = [_share(text) for text in (reserved or _RESERVED).split(",")]
    amounts = (
        [share * s * cycles for share in _WRITTEN_SHARES]
        if written is None
        else [life.parse_size(text, "written") for text in written.split(",")]
    )
    document: dict[str, Any] = {
        "version": __version__,
        "method": "formula",
        "capacity_bytes": s,
        "pe_cycles_max": cycles,
        "effective": effective,
        "reserved_factor": factor,
        "written_bytes": amounts,
        "rows": [
            {
                "reserved": p,
                "writable_bytes": life.writable(s, p * factor, cycles),
                "residual": [life.residual(a, s, p * factor, cycles) for a in amounts],
            }
            for p in shares
        ],
    }
    put_json(document, output.json)
    put_page(
        lambda: formula_page(document, capacity=s, cycles=cycles, written=amounts, factor=factor),
        output,
    )
    if not output.silent:
        names = [f"left after {decimal(amount)}" for amount in amounts]
        table = page.plain_table("reserved", "writable", *names, right=["writable", *names])
        for row in document["rows"]:
            table.add_row(
                units.share(row["reserved"]),
                decimal(row["writable_bytes"]),
                *(units.share(left) for left in row["residual"]),
            )
        out = page.console()
        of = f"S = {decimal(s)}, M = {cycles:,}" + (f", P times {factor:.4f}" if effective else "")
        out.print(f"Equation 1 of Hu, Jiang, Manden (2012), {of}")
        out.print(table)
    return 0


def _share(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigError(
            f"--reserved: found {text!r}, expected shares above 0 and below 1", "such as 0.5,0.9"
        ) from None


# Played to the end --------------------------------------------------------------------------------


def _begin(
    run: RunOptions,
    output: OutputOptions,
    saving: SavingOptions,
    device: str | None,
    cycles: int | None,
) -> Run:
    if saving.resume is not None:
        made = saving.load([*run.given(), *([] if cycles is None else ["--cycles"])], device)
        if Ssd(made.toml).config["wear"]["pe-cycles-max"] == 0:
            raise WorkloadError(
                f"{saving.resume}: the saved run's drive has no limit of erases, "
                "expected one of `flashwright lifetime`",
                "",
            )
        return made
    if device is None:
        raise WorkloadError(
            "DEVICE: found nothing, expected a drive",
            "such as `flashwright lifetime default --simulate`",
        )
    for option in run.given(["requests", "closeup"]):
        raise WorkloadError(
            f"{option}: found it with --simulate, expected it without: the drive's end ends the run",
            "--stop-after with --checkpoint stops on the way",
        )
    check_snapshots(run, output)
    ssd = run.drive(device)
    if cycles is not None:
        ssd = ssd.with_({"wear.pe-cycles-max": cycles})
    source = run.source()
    refuse_passing(source, saving)
    made = life.begin(ssd, source, run.settings())
    if run.workload is None and run.trace is None and not output.quiet:
        errors.note(f"neither --trace nor --workload: playing {DEFAULT_TRACE}, again and again")
    return made


def _to_the_end(
    made: Run,
    output: OutputOptions,
    rate: float | None,
    saving: SavingOptions,
) -> int:
    interrupted = False
    try:
        with Bar(output.bar, "life", "erases/s") as bar:
            result = life.play_to_end(
                made,
                progress=bar.update,
                stop_after=saving.stop_after,
                checkpoint=saving.checkpoint,
                checkpoint_every=saving.checkpoint_every,
            )
    except RunInterrupted as stop:
        interrupted = True
        if stop.result is None:
            errors.note("interrupted before anything was measured")
            return 130
        result = stop.result
    end = life.Endurance.of(result)
    ended = result.json["ended"] == "worn-out"
    used = _used(result, end)
    document = {
        "version": __version__,
        "method": "simulated",
        "ended": result.json["ended"],
        "budget_used": used,
        **life.figures(end, rate),
        "run": result.json,
    }
    put_json(document, output.json)
    put_page(lambda: result, output)
    if not output.silent:
        head = "until its end" if ended else f"so far ({units.share(used)} of its erases)"
        _show(result, end, rate, [("written", head)])
    if interrupted:
        errors.note("interrupted; the figures cover what was finished")
        return 130
    return 1 if result.violations else 0


def _used(result: RunResult, end: life.Endurance) -> float:
    """Share of the erase budget that is used up."""
    return float(result.erases_per_block.mean()) / end.cycles


def _show(
    result: RunResult,
    end: life.Endurance,
    rate: float | None,
    head: list[tuple[str, str]],
) -> None:
    wear = result.json["wear"]["erases_per_block"]
    rows = [
        ("drive", f"{result.json['config']['name']}, {end.cycles:,} erases a block"),
        ("workload", result.json["workload"]),
        *head,
        ("data endurance", f"{decimal(end.host_bytes)} of host writes"),
        ("drive writes", units.number(end.drive_writes, 1)),
        ("endurance efficiency", units.number(end.efficiency)),
        ("write amplification", units.number(result.write_amplification)),
        (
            "erases per block",
            f"{units.count(wear['min'])} to {units.count(wear['max'])}, mean {units.number(wear['mean'], 1)}, "
            f"stdev {units.number(wear['stdev'], 1)}; {units.count(result.json['wear']['blocks_worn_out'])} worn out",
        ),
    ]
    if rate is not None:
        rows.append(("life", f"{in_years(end.years(rate))} at {decimal(rate)}/s"))
    page.console().print(page.grid(rows))


def _fast_forward(
    made: Run, output: OutputOptions, rate: float | None, share: float, against_full: bool
) -> int:
    if not 0 <= share < 1:
        raise WorkloadError(f"--measure-share: found {share}, expected 0 to below 1", "")
    quiet = output.bar
    try:
        with Bar(quiet, "life", "erases/s") as bar:
            found = life.forecast(made, progress=bar.update, share_min=share)
        result = made.result()
        assert result is not None
        full = None
        if against_full:
            with Bar(quiet, "to the end", "erases/s") as bar:
                full = life.Endurance.of(life.play_to_end(made, progress=bar.update))
    except KeyboardInterrupt:
        errors.note("interrupted before there was a forecast")
        return 130
    if found is None:
        errors.note(
            "the drive came to its end before its cleaning was steady: this is no extrapolation"
        )
    end = life.Endurance.of(result, None if found is None else found.host_pages)
    error = None if full is None else end.host_pages / full.host_pages - 1
    document = {
        "version": __version__,
        "method": "simulated" if found is None else "extrapolated",
        **life.figures(end, rate),
        "forecast": None if found is None else asdict(found),
        "full": None if full is None else life.figures(full, rate),
        "error": error,
        "run": result.json,
    }
    put_json(document, output.json)
    put_page(lambda: result, output)
    if not output.silent:
        head = []
        if found is not None:
            steady = "steady" if found.steady else "NOT steady"
            head = [
                (
                    "extrapolated",
                    f"from {units.share(found.share)} of its erases; cleaning {steady}",
                ),
                (
                    "by",
                    f"write amplification {units.number(found.write_amplification)}, erases' stdev "
                    f"{units.number(found.spread, 2)}, its square growing as their mean to the "
                    f"{units.number(found.growth, 2)}: {units.number(found.unused, 1)} erases a block unused",
                ),
            ]
        if full is not None and error is not None:
            head.append(
                (
                    "played to the end",
                    f"{decimal(full.host_bytes)}: the forecast is off by {error * 100:+.1f} %",
                )
            )
        _show(result, end, rate, head)
    return 0
