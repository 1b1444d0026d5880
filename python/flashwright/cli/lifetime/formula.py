"""``flashwright lifetime formula``: Equation 1 of Hu, Jiang and Manden (2012)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from flashwright._core import __version__
from flashwright.cli.options import add_options
from flashwright.cli.outputs import ResultOptions
from flashwright.cli.render import page, put_json, put_page, units
from flashwright.cli.settingsoption import settings_option
from flashwright.endurance import lifetime as life
from flashwright.endurance.pages import decimal, formula_page
from flashwright.errors import ConfigError, WorkloadError
from flashwright.simulation.ssd import Ssd
from flashwright.support.core import _core

__all__ = ["FormulaOptions", "by_formula", "formula"]

_USED = "0.5,0.6,0.7,0.8,0.9,0.95"
_WRITTEN_SHARES = (0.01, 0.05, 0.1, 0.25, 0.5)


@dataclass
class FormulaOptions:
    """What the formula is of."""

    capacity: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE", help="S, such as 100GB; by default DEVICE's.", rich_help_panel="Scope"
        ),
    ] = None
    cycles: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="M, erases that a block takes; by default DEVICE's wear.pe-cycles-max.",
            rich_help_panel="Scope",
        ),
    ] = None
    used: Annotated[
        str | None,
        typer.Option(
            metavar="P,P,...",
            help=f"Shares of the space in use; default {_USED}.",
            rich_help_panel="Scope",
        ),
    ] = None
    reserved: Annotated[str | None, typer.Option(metavar="P,P,...", hidden=True)] = None
    written: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE,...",
            help="Data written so far, such as 50TB,100TB.",
            rich_help_panel="Scope",
        ),
    ] = None
    effective: Annotated[
        bool,
        typer.Option(
            "--effective",
            help="Count over-provisioning: S is the flash, P times logical over physical size.",
            rich_help_panel="Scope",
        ),
    ] = False
    physical: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="With --effective: size of the flash; by default DEVICE's.",
            rich_help_panel="Scope",
        ),
    ] = None


@add_options
def formula(
    of: FormulaOptions,
    output: ResultOptions,
    device: Annotated[
        str | None,
        typer.Argument(
            metavar="[DEVICE]", help="A bundled drive (`flashwright devices`) or a TOML file."
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        settings_option("Change a setting of DEVICE, such as wear.pe-cycles-max=3000."),
    ] = None,
) -> int:
    """Say by formula how much a drive takes, and what is left after some of it: Equation 1 of Hu et al. (2012)."""
    if device is None and settings:
        raise WorkloadError("--set: found without DEVICE, expected both", "")
    return by_formula(device, settings or (), of, output)


def by_formula(
    device: str | None, settings: Sequence[str], of: FormulaOptions, output: ResultOptions
) -> int:
    """Say what Equation 1 says, and give the exit status."""
    output.check()
    capacity, cycles, physical, effective = of.capacity, of.cycles, of.physical, of.effective
    logical, flash = (
        None if text is None else life.parse_size(text, name)
        for text, name in ((capacity, "capacity"), (physical, "physical"))
    )
    if device is not None:
        ssd = Ssd.find(device).with_settings(settings)
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
    if of.reserved is not None:
        raise ConfigError(
            f"--reserved: found {of.reserved}, expected --used {of.reserved}",
            "the option said which share is in use; reserved is now what the host may not use, as in `advise space`",
        )
    shares = _shares(of.used or _USED, "--used")
    amounts = (
        [share * s * cycles for share in _WRITTEN_SHARES]
        if of.written is None
        else [life.parse_size(text, "written") for text in of.written.split(",")]
    )
    document: dict[str, Any] = {
        "version": __version__,
        "method": "formula",
        "capacity_bytes": s,
        "pe_cycles_max": cycles,
        "effective": effective,
        "used_factor": factor,
        "written_bytes": amounts,
        "rows": [
            {
                "used": p,
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
        table = page.plain_table(
            "in use", "reserved", "writable", *names, right=["reserved", "writable", *names]
        )
        for row in document["rows"]:
            table.add_row(
                units.share(row["used"]),
                units.share(1 - row["used"] * factor),
                decimal(row["writable_bytes"]),
                *(units.share(left) for left in row["residual"]),
            )
        out = page.console()
        what = f"S = {decimal(s)}, M = {cycles:,}" + (
            f", P times {factor:.4f}" if effective else ""
        )
        out.print(f"Equation 1 of Hu, Jiang, Manden (2012), {what}")
        out.print(table)
    return 0


def _shares(text: str, name: str) -> list[float]:
    try:
        return [life.parse_share(part) for part in text.split(",")]
    except ConfigError:
        raise ConfigError(
            f"{name}: found {text!r}, expected shares above 0 and below 1",
            "such as 0.5,0.9 or 50%,90%",
        ) from None
