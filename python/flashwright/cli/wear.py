"""What a session costs its drive: shown before anything is written, confirmed if it is much, counted at the end."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from flashwright.cli.render import errors
from flashwright.cli.render.bill import endurance, writes
from flashwright.errors import TargetError
from flashwright.probing.costs import HEAVY_FILLS, HEAVY_SHARE, Bill, Endurance
from flashwright.target.target import Target

__all__ = ["WearOptions"]


@dataclass
class WearOptions:
    """What is known of a drive's endurance, and whether so much may be used up."""

    accept_wear: Annotated[
        bool,
        typer.Option(
            "--accept-wear",
            help=f"Continue without asking if more than {HEAVY_SHARE * 100:.0f} % of the rated endurance is written, "
            f"or, where that is unknown, more than {HEAVY_FILLS:.0f} drive fills.",
            rich_help_panel="Scope",
        ),
    ] = False
    rated_endurance: Annotated[
        str | None,
        typer.Option(
            metavar="RATING",
            help="The drive's, such as 600TB (TBW) or 0.3dwpd,5y.",
            rich_help_panel="Scope",
        ),
    ] = None
    smart_file: Annotated[
        Path | None,
        typer.Option(
            "--smart",
            metavar="FILE",
            help="Output of `smartctl -j -x` or `nvme smart-log -o json`: how worn the drive is already.",
            rich_help_panel="Scope",
        ),
    ] = None

    def endurance(self, drive_bytes: int) -> Endurance:
        """What is said of the endurance of a drive of this size."""
        found = Endurance.of(self.rated_endurance, self.smart_file, drive_bytes)
        for doubt in found.doubts:
            errors.note(f"{self.smart_file}: {doubt}")
        return found

    def consent(self, drive: Target, bill: Bill) -> None:
        """Ask whether so much may be written to a real drive, if it is much; refuse unless the answer is yes."""
        if drive.kind != "block-device" or not bill.heavy or self.accept_wear:
            return
        what = f"{drive.name}: {writes(bill)}, {endurance(bill)}"
        if sys.stdin.isatty() and sys.stderr.isatty():
            errors.note(what)
            print("Write that much? Type yes to continue: ", end="", file=sys.stderr, flush=True)
            if sys.stdin.readline().strip() == "yes":
                return
            raise TargetError(
                f"{drive.name}: nothing was written, because the answer was not yes", ""
            )
        raise TargetError(
            f"{what}: that is a lot for a drive, so nothing was written",
            "--accept-wear consents; --quick, --only and --range START:LENGTH write less"
            if drive.part is None
            else "--accept-wear consents; --quick and --only write less",
        )
