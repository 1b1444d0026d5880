"""``flashwright lifetime`` as it was typed before it had a command for each way, hidden; it says what to type now."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flashwright.cli.lifetime.formula import FormulaOptions, by_formula
from flashwright.cli.lifetime.simulate import by_forecast, to_the_end
from flashwright.cli.lifetime.smart import from_smart
from flashwright.cli.options import RunOptions, add_options
from flashwright.cli.outputs import OutputOptions, SavingOptions
from flashwright.cli.render import errors
from flashwright.errors import WorkloadError

__all__ = ["old"]


@add_options
def old(
    run: RunOptions,
    output: OutputOptions,
    saving: SavingOptions,
    of: FormulaOptions,
    device: Annotated[
        str | None,
        typer.Argument(
            metavar="[DEVICE]", help="A bundled drive (`flashwright devices`) or a TOML file."
        ),
    ] = None,
    simulate: Annotated[
        bool,
        typer.Option(
            "--simulate",
            help="Play the workload until the drive can't be written.",
            rich_help_panel="Scope",
        ),
    ] = False,
    write_rate: Annotated[
        str | None,
        typer.Option(
            metavar="RATE",
            help="For years: 20MB/s, 2TB/day or 0.5dwpd (drive writes a day).",
            rich_help_panel="Scope",
        ),
    ] = None,
    fast_forward: Annotated[
        bool,
        typer.Option(
            "--fast-forward",
            help="With --simulate: stop once cleaning is steady, and extrapolate to the end.",
            rich_help_panel="Scope",
        ),
    ] = False,
    measure_share: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help="With --fast-forward: share of the erase budget to play at least.",
            rich_help_panel="Scope",
        ),
    ] = 0.1,
    against_full: Annotated[
        bool,
        typer.Option(
            "--against-full",
            help="With --fast-forward: play on to the end and say the error.",
            rich_help_panel="Scope",
        ),
    ] = False,
    smart_file: Annotated[
        Path | None,
        typer.Option(
            "--smart",
            metavar="FILE",
            help="Output of `smartctl -j -x` or `nvme smart-log -o json`; - is standard input.",
            rich_help_panel="Scope",
        ),
    ] = None,
    endurance: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="With --smart: the drive's rating (TBW), such as 600TB.",
            rich_help_panel="Scope",
        ),
    ] = None,
) -> int:
    """Say how long a drive lasts, as before there was a command for each way."""
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
                "--capacity": of.capacity,
                "--used": of.used,
                "--reserved": of.reserved,
                "--written": of.written,
                "--effective": of.effective,
                "--physical": of.physical,
            },
        },
    )
    if smart_file is not None or (not simulate and saving.resume is None):
        _refuse_run(run, device, of.cycles, output, smart_file is not None)
    if smart_file is not None:
        _say("--smart FILE", "smart FILE", output)
        return from_smart([smart_file], endurance, output.json, quiet=output.quiet)
    if not simulate and saving.resume is None:
        _say("", "formula", output)
        return by_formula(device, run.set or (), of, output)
    for option in run.given(["requests", "closeup"]):
        raise WorkloadError(
            f"{option}: found with --simulate, expected without: the drive's end ends the run",
            "--stop-after with --checkpoint stops on the way",
        )
    if fast_forward:
        for name, value in (
            ("--checkpoint", saving.checkpoint),
            ("--resume", saving.resume),
            ("--stop-after", saving.stop_after),
        ):
            if value is not None:
                raise WorkloadError(
                    f"{name}: found with --fast-forward, expected without",
                    "a fast-forward plays a part of the life only",
                )
        _say("--simulate --fast-forward", "forecast", output)
        return by_forecast(run, output, device, of.cycles, write_rate, measure_share, against_full)
    if against_full:
        raise WorkloadError(
            "--against-full: found without --fast-forward, expected both",
            "without it the whole life is played anyway",
        )
    _say("--simulate" if simulate else "--resume", "simulate", output)
    return to_the_end(run, output, saving, device, of.cycles, write_rate)


def _say(options: str, command: str, output: OutputOptions) -> None:
    """What to type instead."""
    if not output.quiet:
        old_form = f"lifetime {options}".strip()
        errors.note(f"`{old_form}` is an old form; write `flashwright lifetime {command}`")


def _refuse(chosen: dict[str, bool], own: dict[str, dict[str, object]]) -> None:
    """Refuse two ways at once, and options of a way that was not chosen."""
    ways = [way for way, wanted in chosen.items() if wanted]
    if len(ways) > 1:
        raise WorkloadError(f"{' and '.join(ways)}: found both, expected one of them", "")
    for way, options in own.items():
        for option, value in options.items():
            if value not in (None, False) and not chosen[way]:
                raise WorkloadError(f"{option}: found with {ways[0]}, expected only with {way}", "")


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
            f"{option}: found with {way}, expected without", "--simulate plays a drive"
        )
