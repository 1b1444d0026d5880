"""What readings of a drive say, as JSON documents have it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flashwright.endurance.smart.facts import SmartError
from flashwright.endurance.smart.reading import Interval, Smart

__all__ = ["figures"]


def figures(
    readings: Sequence[Smart], rating: float | None, *, alone: bool = True
) -> dict[str, Any]:
    """What the readings of a drive say, as JSON documents have it.

    Parameters
    ----------
    readings : sequence of Smart
        Of one drive, from the oldest to the newest.
    rating : float or None
        Bytes that it is rated to take.
    alone : bool, optional
        Whether readings that contradict each other are an error; otherwise they are a note.

    Returns
    -------
    dict
        Sizes in bytes, shares 0-1, times in hours and years. With two readings or more, ``interval`` says what the
        drive did between the first and the last.

    Raises
    ------
    SmartError
        If there is no reading, or a counter is lower in a newer reading, and `alone`.

    Examples
    --------
    >>> from flashwright import smart
    >>> log = {"power_on_hours": 10_000, "data_units_written": 40_000_000, "percent_used": 4}
    >>> figures([smart.parse(log)], None)["host_bytes_written"]
    20480000000000.0
    """
    if not readings:
        raise SmartError("figures: readings: found none, expected one or more")
    found = readings[-1]
    in_range = found.years_left_range
    document: dict[str, Any] = {
        "model": found.model,
        "serial": found.serial,
        "protocol": found.protocol,
        "capacity_bytes": found.capacity,
        "power_on_hours": found.power_on_hours,
        "host_bytes_written": found.bytes_written,
        "flash_bytes_written": found.flash_bytes_written,
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
        "sources": {
            each.figure: {"field": each.field, "rule": each.rule} for each in found.sources
        },
        "notes": list(found.notes),
        "missing": [{"field": name, "run": command} for name, command in found.missing],
    }
    if len(readings) > 1:
        try:
            between = Interval.between(readings[0], found)
        except SmartError as error:
            # One drive of many does not stop the others.
            if alone:
                raise
            document["notes"].append(str(error))
            return document
        in_range = between.years_left_range
        document["interval"] = {
            "readings": len(readings),
            "power_on_hours": between.hours,
            "days": between.days,
            "host_bytes_written": between.bytes_written,
            "flash_bytes_written": between.flash_bytes_written,
            "used": between.used,
            "write_amplification": between.write_amplification,
            "years_left": between.years_left,
            "years_left_min": None if in_range is None else in_range[0],
            "years_left_max": None if in_range is None else in_range[1],
        }
    return document
