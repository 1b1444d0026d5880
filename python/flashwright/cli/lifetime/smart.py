"""How long a drive lasts by its own account: ``flashwright lifetime smart``."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from flashwright._core import __version__
from flashwright.cli.outputs import Json
from flashwright.cli.render import errors, page, put_json, units
from flashwright.life import lifetime as life
from flashwright.life.pages import decimal
from flashwright.life.smart import HOURS_A_YEAR, Smart, SmartError, read
from flashwright.support.files import check_writable

__all__ = ["from_smart", "in_years", "smart"]


def in_years(years: float) -> str:
    """A time of life, in years."""
    return (
        f"{units.number(years, 1 if years < 100 else 0)} years"
        if years >= 0.05
        else f"{years * 365.25:.2g} days"
    )


def smart(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Output of `smartctl -j -a` or `nvme smart-log -o json`; - is standard input.",
        ),
    ],
    endurance: Annotated[
        str | None, typer.Option(metavar="SIZE", help="The drive's rating (TBW), such as 600TB.")
    ] = None,
    json: Json = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no table.")] = False,
) -> int:
    """Say from SMART data how long a drive in use still lasts, at the rate at which it has been written."""
    return from_smart(file, endurance, json, quiet=quiet)


def from_smart(path: Path, endurance: str | None, json: Path | None, *, quiet: bool) -> int:
    """Say how long a drive lasts by its SMART data, and give the exit status."""
    to_stdout = json == Path("-")
    if json is not None and not to_stdout:
        check_writable(json)
    rating = None if endurance is None else life.parse_size(endurance, "endurance")
    found = _read(path)
    in_range = found.years_left_range
    document = {
        "version": __version__,
        "method": "smart",
        "model": found.model,
        "protocol": found.protocol,
        "capacity_bytes": found.capacity,
        "power_on_hours": found.power_on_hours,
        "host_bytes_written": found.bytes_written,
        "write_rate_bytes_per_s": found.bytes_per_s,
        "used": found.used,
        "used_from": found.used_from,
        "write_amplification": found.write_amplification,
        "endurance_bytes": found.endurance_bytes,
        "years_left": found.years_left,
        "years_left_min": None if in_range is None else in_range[0],
        "years_left_max": None if in_range is None else in_range[1],
        "rating_bytes": rating,
        "years_to_rating": None if rating is None else found.years_to(rating),
        "missing": [{"field": name, "run": command} for name, command in found.missing],
    }
    put_json(document, json)
    if not (quiet or to_stdout):
        page.console().print(page.grid(_smart_rows(found, rating)))
    if not quiet:
        for name, command in found.missing:
            errors.note(
                f"{name}: not in the file; `{command}` as root prints it if the drive reports it"
            )
    return 0


def _read(path: Path) -> Smart:
    if path != Path("-"):
        return read(path)
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        file.write(typer.get_binary_stream("stdin").read())
        file.flush()
        try:
            return read(Path(file.name))
        except SmartError as error:
            raise SmartError(str(error).replace(file.name, "standard input"), error.hint) from None


def _smart_rows(found: Smart, rating: float | None) -> list[tuple[str, str]]:
    rows = [("drive", found.model or f"a drive over {found.protocol}")]
    if found.power_on_hours is not None:
        years = found.power_on_hours / HOURS_A_YEAR
        rows.append(
            ("power-on time", f"{units.count(found.power_on_hours)} hours, {years:.2f} years")
        )
    if found.bytes_written is not None:
        text = decimal(found.bytes_written)
        if found.bytes_per_s is not None:
            text += f", {decimal(found.bytes_per_s * 86400)} a day under power"
        rows.append(("written by the host", text))
    if found.write_amplification is not None:
        rows.append(("write amplification", units.number(found.write_amplification, 2)))
    if found.used is not None:
        rows.append(("life used", f"{units.share(found.used)} ({found.used_from})"))
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
