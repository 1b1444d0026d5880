"""What a session costs its drive: told before anything is written, asked about where it is much, counted in the end."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from flashwright.cli.render import errors, units
from flashwright.costs import HEAVY_FILLS, HEAVY_SHARE, Bill, Endurance
from flashwright.errors import TargetError
from flashwright.target import Target

__all__ = ["WearOptions", "asked", "rows"]


@dataclass
class WearOptions:
    """What is known of a drive's endurance, and whether so much may be used up."""

    accept_wear: Annotated[
        bool,
        typer.Option(
            "--accept-wear",
            help=f"Go on without a question if more than {HEAVY_SHARE * 100:.0f} % of the rated endurance is written, "
            f"or, where that is unknown, more than {HEAVY_FILLS:.0f} drive fills.",
        ),
    ] = False
    rated_endurance: Annotated[
        str | None,
        typer.Option(metavar="RATING", help="The drive's, such as 600TB (TBW) or 0.3dwpd,5y."),
    ] = None
    smart_file: Annotated[
        Path | None,
        typer.Option(
            "--smart",
            metavar="FILE",
            help="Output of `smartctl -j -a` or `nvme smart-log -o json`: how worn the drive is already.",
        ),
    ] = None

    def endurance(self, drive_bytes: int) -> Endurance:
        """What is said of the endurance of a drive of this size."""
        return Endurance.of(self.rated_endurance, self.smart_file, drive_bytes)

    def consent(self, drive: Target, bill: Bill) -> None:
        """Ask whether so much may be written to a real drive, if it is much; refuse unless the answer is yes."""
        if drive.kind != "block-device" or not bill.heavy or self.accept_wear:
            return
        what = f"{drive.name}: {_writes(bill)}, {_endurance(bill)}"
        if sys.stdin.isatty() and sys.stderr.isatty():
            errors.note(what)
            print("Write that much? Type yes to go on: ", end="", file=sys.stderr, flush=True)
            if sys.stdin.readline().strip() == "yes":
                return
            raise TargetError(f"{drive.name}: nothing was written, for the answer was not yes", "")
        raise TargetError(
            f"{what}: that is much for a drive, so nothing was written",
            "--accept-wear consents; --quick, --only and --range START:LENGTH write less"
            if drive.part is None
            else "--accept-wear consents; --quick and --only write less",
        )


def _writes(bill: Bill) -> str:
    fills = f"{bill.fills:.0f}" if bill.fills >= 9.95 else f"{bill.fills:.2g}"
    return f"up to {units.volume(bill.bytes_written)} written, {fills} fills of the drive"


def _endurance(bill: Bill) -> str:
    told = bill.endurance
    if bill.share is None or told.bytes_rated is None:
        text = "share of rated endurance unknown: give --rated-endurance"
    else:
        share = f"{bill.share * 100:.2g}" if bill.share < 0.0995 else f"{bill.share * 100:.0f}"
        text = f"{share} % of an endurance of {units.volume(told.bytes_rated)} ({told.source})"
    return text if told.used is None else f"{text}; {told.used * 100:.0f} % used before"


def rows(drive: Target, bill: Bill) -> list[tuple[str, str]]:
    """A bill, a name and a text each."""
    told = [("reads", f"up to {units.volume(bill.bytes_read)}"), ("writes", _writes(bill))]
    if not bill.bytes_written:
        told = [told[0], ("writes", "nothing")]
    elif drive.kind == "block-device" or bill.endurance != Endurance():
        told.append(("endurance", _endurance(bill)))
    if bill.seconds is not None:
        told.append(("takes", f"up to about {units.lasts(bill.seconds)}: {bill.basis}"))
    return told


def asked(drive: Target, bill: Bill) -> str:
    """What was moved in the end, beside what was planned."""
    return (
        f"{units.volume(drive.bytes_written)} written of up to {units.volume(bill.bytes_written)} planned, "
        f"{units.volume(drive.bytes_read)} read of up to {units.volume(bill.bytes_read)}"
    )
