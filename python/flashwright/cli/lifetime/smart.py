"""How long a drive lasts by its own account: ``flashwright lifetime smart``."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from flashwright._core import __version__
from flashwright.cli.outputs import Json
from flashwright.cli.render import errors, page, put_json, units
from flashwright.endurance import lifetime as life
from flashwright.endurance.pages import decimal, in_years
from flashwright.endurance.smart import (
    HOURS_A_YEAR,
    Interval,
    Smart,
    SmartError,
    figures,
    read_drives,
)
from flashwright.support.files import check_writable

__all__ = ["from_smart", "smart"]

_NOTES_MOST = 20
"""Notes on many drives that are printed."""


def smart(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Output of `smartctl -j -x` or `nvme smart-log -o json`; - is standard input. Logs of another kind, "
            "such as of `nvme ocp smart-add-log -o json`, add what they have; two of one kind give rates.",
        ),
    ],
    endurance: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE", help="The rating: 600TB (TBW) or 1dwpd,5y.", rich_help_panel="Scope"
        ),
    ] = None,
    json: Json = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print no table.", rich_help_panel="Output")
    ] = False,
) -> int:
    """Say from SMART data how long a drive in use still lasts, at the rate at which it has been written."""
    return from_smart(files, endurance, json, quiet=quiet)


def from_smart(
    paths: Sequence[Path], endurance: str | None, json: Path | None, *, quiet: bool
) -> int:
    """Say how long drives last by their SMART data, and give the exit status."""
    to_stdout = json == Path("-")
    if json is not None and not to_stdout:
        check_writable(json)
    drives = _read(paths)
    # Drive writes a day are of one size.
    sizes = {drive[-1].capacity for drive in drives}
    size = sizes.pop() if len(sizes) == 1 else None
    rating = None if endurance is None else life.parse_endurance(endurance, size)
    documents = [figures(drive, rating, alone=len(drives) == 1) for drive in drives]
    if len(drives) == 1:
        put_json({"version": __version__, "method": "smart", **documents[0]}, json)
    else:
        put_json({"version": __version__, "method": "smart", "drives": documents}, json)
    if not (quiet or to_stdout):
        _show(drives, rating)
    if not quiet:
        _say(drives)
    return 0


def _say(drives: Sequence[Sequence[Smart]]) -> None:
    if len(drives) > 1:
        notes = [f"{_name(drive[-1])}: {note}" for drive in drives for note in drive[-1].notes]
        for note in notes[:_NOTES_MOST]:
            errors.note(note)
        if len(notes) > _NOTES_MOST:
            errors.note(f"{len(notes) - _NOTES_MOST:,} more notes: --json has them all")
        return
    for note in drives[0][-1].notes:
        errors.note(note)
    for name, command in drives[0][-1].missing:
        errors.note(
            f"{name}: not in the file; `{command}` as root prints it if the drive reports it"
        )


def _read(paths: Sequence[Path]) -> list[tuple[Smart, ...]]:
    if Path("-") not in paths:
        return read_drives(list(paths))
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        file.write(typer.get_binary_stream("stdin").read())
        file.flush()
        try:
            return read_drives([Path(file.name) if path == Path("-") else path for path in paths])
        except SmartError as error:
            raise SmartError(str(error).replace(file.name, "standard input"), error.hint) from None


def _name(found: Smart) -> str:
    return found.serial or found.model or f"a drive over {found.protocol}"


def _show(drives: Sequence[Sequence[Smart]], rating: float | None) -> None:
    console = page.console()
    if len(drives) == 1:
        console.print(page.grid(_smart_rows(drives[0][-1], rating)))
        if len(drives[0]) > 1:
            console.print()
            console.print(page.grid(_interval_rows(drives[0])))
        return
    right = ("hours", "written", "WA", "used", "years left")
    table = page.plain_table("drive", "model", *right, right=right)
    for drive in drives:
        found = drive[-1]
        years = found.years_left
        table.add_row(
            _name(found),
            found.model or "-",
            "-" if found.power_on_hours is None else units.count(found.power_on_hours),
            "-" if found.bytes_written is None else decimal(found.bytes_written),
            "-"
            if found.write_amplification is None
            else units.number(found.write_amplification, 2),
            "-" if found.used is None else units.share(found.used),
            "-" if years is None else units.number(years, 1),
        )
    console.print(table)


def _by(found: Smart, figure: str) -> str:
    source = found.source(figure)
    return "" if source is None else f" ({source.field}: {source.rule})"


def _smart_rows(found: Smart, rating: float | None) -> list[tuple[str, str]]:
    rows = [("drive", found.model or f"a drive over {found.protocol}")]
    if found.power_on_hours is not None:
        years = found.power_on_hours / HOURS_A_YEAR
        rows.append(
            (
                "power-on time",
                f"{units.count(found.power_on_hours)} hours, {years:.2f} years{_by(found, 'power_on_hours')}",
            )
        )
    if found.bytes_written is not None:
        text = decimal(found.bytes_written)
        if found.bytes_per_s is not None:
            text += f", {decimal(found.bytes_per_s * 86400)} a day under power"
        rows.append(("written by the host", f"{text}{_by(found, 'bytes_written')}"))
    if found.flash_bytes_written is not None:
        text = decimal(found.flash_bytes_written)
        rows.append(("written to the flash", f"{text}{_by(found, 'flash_bytes_written')}"))
    if found.write_amplification is not None:
        text = units.number(found.write_amplification, 2)
        rows.append(("write amplification", f"{text}{_by(found, 'write_amplification')}"))
    else:
        rows.append(("write amplification", f"not known: {found.why_no_amplification}"))
    if found.used is not None:
        rows.append(("life used", f"{units.share(found.used)}{_by(found, 'used')}"))
    rows.extend(_life_left(found))
    if found.endurance_bytes is not None:
        rows.append(("whole life", f"{decimal(found.endurance_bytes)} at this wear"))
    if rating is not None:
        years_to = found.years_to(rating)
        rows.append(
            (
                "to the rating",
                "cannot be computed"
                if years_to is None
                else f"{in_years(years_to)} until {decimal(rating)}",
            )
        )
    return rows


def _interval_rows(readings: Sequence[Smart]) -> list[tuple[str, str]]:
    between = Interval.between(readings[0], readings[-1])
    spans = []
    if between.days is not None:
        spans.append(f"{between.days:,.1f} days")
    if between.hours is not None:
        spans.append(f"{units.count(between.hours)} hours under power")
    rows = [("between the readings", ", ".join(spans) or "an unknown time")]
    days = between.days or (None if not between.hours else between.hours / 24)
    if between.bytes_written is not None:
        rate = f", {decimal(between.bytes_written / days)} a day" if days else ""
        rows.append(("written by the host", f"{decimal(between.bytes_written)}{rate}"))
    if between.write_amplification is not None:
        rows.append(("write amplification", units.number(between.write_amplification, 2)))
    if between.used is not None:
        rows.append(("life used", f"{units.share(between.used)}, by two readings in whole %"))
    if between.years_left_range is not None:
        low, high = between.years_left_range
        if between.years_left is None:
            rows.append(("life left", f"more than {in_years(low)} at this rate"))
        else:
            upper = "more" if high is None else f"{high:.1f}"
            rows.append(
                (
                    "life left",
                    f"{in_years(between.years_left)} at this rate ({low:.1f} to {upper}: wear is reported in whole %)",
                )
            )
    return rows


def _life_left(found: Smart) -> list[tuple[str, str]]:
    in_range = found.years_left_range
    if in_range is None:
        return []
    low, high = in_range
    if found.used is not None and found.used >= 1:
        return [("life left", "none: the rated life is used up")]
    if found.years_left is None:
        return [("life left", f"more than {in_years(low)} of power-on time: less than 1 % is used")]
    upper = "more" if high is None else f"{high:.1f}"
    return [
        (
            "life left",
            f"{in_years(found.years_left)} of power-on time at this rate "
            f"({low:.1f} to {upper}: wear is reported in whole %)",
        )
    ]
