"""What a session costs a drive, in words."""

from __future__ import annotations

from flashwright.cli.render import units
from flashwright.probing.costs import Bill, Endurance
from flashwright.target.target import Target

__all__ = ["asked", "endurance", "rows", "writes"]


def writes(bill: Bill) -> str:
    """What is written at most."""
    fills = f"{bill.fills:.0f}" if bill.fills >= 9.95 else f"{bill.fills:.2g}"
    return f"up to {units.volume(bill.bytes_written)} written, {fills} fills of the drive"


def endurance(bill: Bill) -> str:
    """Which share of the drive's endurance that is, as far as it is known."""
    rating = bill.endurance
    if bill.share is None or rating.bytes_rated is None:
        text = "share of rated endurance unknown: give --rated-endurance"
    else:
        share = f"{bill.share * 100:.2g}" if bill.share < 0.0995 else f"{bill.share * 100:.0f}"
        text = f"{share} % of an endurance of {units.volume(rating.bytes_rated)} ({rating.source})"
    return text if rating.used is None else f"{text}; {rating.used * 100:.0f} % used before"


def rows(drive: Target, bill: Bill) -> list[tuple[str, str]]:
    """A bill, a name and a text each."""
    lines = [("reads", f"up to {units.volume(bill.bytes_read)}"), ("writes", writes(bill))]
    if not bill.bytes_written:
        lines = [lines[0], ("writes", "nothing")]
    elif drive.kind == "block-device" or bill.endurance != Endurance():
        lines.append(("endurance", endurance(bill)))
    if bill.seconds is not None:
        lines.append(("takes", f"up to about {units.lasts(bill.seconds)}: {bill.basis}"))
    return lines


def asked(drive: Target, bill: Bill) -> str:
    """What was moved in the end, beside what was planned."""
    return (
        f"{units.volume(drive.bytes_written)} written of up to {units.volume(bill.bytes_written)} planned, "
        f"{units.volume(drive.bytes_read)} read of up to {units.volume(bill.bytes_read)}"
    )
