"""From what logs say to what can be believed: which of several fields, in which unit, and what is impossible."""

from __future__ import annotations

from collections.abc import Sequence

from flashwright.endurance.pages import decimal
from flashwright.endurance.smart.facts import Facts, Figure, SmartError
from flashwright.endurance.smart.reading import HOURS_A_YEAR, Smart, Source

__all__ = ["judge"]

_HOURS_MOST = 40 * HOURS_A_YEAR
"""Hours under power that no flash drive can have: SMART is younger."""
_AMPLIFICATION_LEAST = 0.9
"""Below this, counts of the host and of the flash contradict each other; counters in GiB may be a few percent apart."""
_AMPLIFICATION_MOST = 100.0
_RATES_MOST = {"ATA": 600e6, "SCSI": 4.5e9, "NVMe": 16e9}
"""Bytes a second of the fastest links: SATA 6 Gb/s, SAS 24G with two ports, four lanes of PCIe 5."""
_UNITS = (
    (512, "sectors of 512 B"),
    (2**20, "MiB"),
    (2**25, "32 MiB"),
    (10**9, "GB"),
    (2**30, "GiB"),
)
_WRAP = 2**32
"""Some drives count sectors in 32 bits, in a field that has room for 48."""
_FIELDS = (
    ("power-on hours", "power_on_hours"),
    ("data written", "bytes_written"),
    ("percentage used or a wear attribute", "used"),
)


def judge(facts: Facts) -> Smart:
    """What can be believed of what the logs of a drive say.

    Raises
    ------
    SmartError
        If they say nothing about wear.
    """
    notes = list(dict.fromkeys(facts.notes))
    hours = _hours(facts.hours, notes)
    used = _used(facts.used, notes)
    written = _written(facts, used, hours, notes)
    flash = facts.flash[0] if facts.flash else None
    amplification = _amplification(facts, written, flash, notes)
    if (
        written is not None
        and used is not None
        and facts.capacity is not None
        and used.value >= 0.01
        and written.value / used.value < facts.capacity
    ):
        notes.append(
            f"{used.field} says {_percent(used)} used and {written.field} {decimal(written.value)} written: a whole "
            f"life of less than one fill of the drive is impossible, so one of them is wrong"
        )
    figures = {
        "power_on_hours": hours,
        "bytes_written": written,
        "flash_bytes_written": flash,
        "used": used,
        "write_amplification": amplification,
    }
    if used is None and written is None and flash is None:
        why = f" ({notes[0]})" if notes else ""
        raise SmartError(
            f"says neither how much was written nor how worn it is, expected one of them{why}",
            f"as root: `{facts.command}`",
        )
    pages = None
    if amplification is not None and amplification is facts.amplification and amplification.raw:
        pages = (amplification.raw, amplification.raw * amplification.value)
    return Smart(
        facts.model,
        facts.protocol,
        _value(hours),
        _value(written),
        _value(used),
        None if used is None else used.field,
        None if facts.capacity is None else int(facts.capacity),
        _value(amplification),
        tuple((label, facts.command) for label, name in _FIELDS if figures[name] is None),
        facts.serial,
        _value(flash),
        pages,
        facts.taken_at,
        tuple(
            Source(name, figure.field, figure.rule)
            for name, figure in figures.items()
            if figure is not None
        ),
        tuple(notes),
    )


def _value(figure: Figure | None) -> float | None:
    return None if figure is None else float(figure.value)


def _percent(figure: Figure) -> str:
    return f"{figure.value * 100:.3g} %"


def _by_rank(figures: Sequence[Figure]) -> list[Figure]:
    return sorted(figures, key=lambda figure: figure.rank)


def _hours(figures: Sequence[Figure], notes: list[str]) -> Figure | None:
    possible = []
    for figure in _by_rank(figures):
        if figure.value <= _HOURS_MOST:
            possible.append(figure)
        else:
            notes.append(f"{figure.field}: {figure.value:,.0f} power-on hours are impossible")
    if not possible:
        return None
    first = possible[0]
    for other in possible[1:]:
        if abs(other.value - first.value) > max(48, 0.05 * first.value):
            notes.append(
                f"{first.field} says {first.value:,.0f} hours, {other.field} {other.value:,.0f}: "
                "they contradict each other"
            )
    return first


def _used(figures: Sequence[Figure], notes: list[str]) -> Figure | None:
    """The plainest figure; one that has moved goes before one that never did."""
    if not figures:
        return None
    ranked = _by_rank(figures)
    first = ranked[0]
    if first.value < 0.01:
        moved = next((each for each in ranked if each.value - first.value > 0.02), None)
        if moved is not None:
            notes.append(
                f"{first.field} says {_percent(first)} used, {moved.field} {_percent(moved)}: "
                "the one that has moved is taken"
            )
            first = moved
    for other in ranked:
        if other.value >= 0.01 and abs(other.value - first.value) > 0.05:
            notes.append(
                f"{first.field} says {_percent(first)} used, {other.field} {_percent(other)}: "
                "they contradict each other"
            )
    return first


def _written(
    facts: Facts, used: Figure | None, hours: Figure | None, notes: list[str]
) -> Figure | None:
    """The first counter in a unit that is possible; a unit that is a guess needs a witness where it looks wrong."""
    ranked = _by_rank(facts.written)
    wrapped = _unwrapped(ranked)
    if wrapped is not None:
        notes.append(
            f"{ranked[0].field}: {decimal(ranked[0].value)} are what is left after counting past 2^32 sectors, "
            f"by {wrapped.field}"
        )
        ranked = [wrapped, *(each for each in ranked[1:] if each.field != wrapped.field)]
    chosen: Figure | None = None
    for figure in sorted(ranked, key=lambda each: each.assumed):
        doubt = _doubt(figure, facts, used, hours)
        if chosen is not None:
            if _same(chosen, figure) or _same(figure, chosen):
                continue
            units = "" if not figure.assumed else " in any usual unit"
            notes.append(
                f"{chosen.field} says {decimal(chosen.value)} written, {figure.field} {decimal(figure.value)}"
                f"{units and ' as ' + figure.rule.removeprefix('raw value in ')}: they contradict each other{units}"
            )
        elif doubt is None:
            chosen = figure
        elif not figure.assumed:
            notes.append(f"{figure.field}: {decimal(figure.value)} written are impossible: {doubt}")
        else:
            notes.append(_unknown_unit(figure, facts, used, hours, doubt))
    return chosen


def _unknown_unit(
    figure: Figure, facts: Facts, used: Figure | None, hours: Figure | None, doubt: str
) -> str:
    others = []
    for unit, name in _UNITS[1:]:
        other = Figure((figure.raw or 0) * unit, figure.field, name, figure.raw)
        if _doubt(other, facts, used, hours) is None:
            others.append(f"{decimal(other.value)} in {name}")
    message = f"{figure.field}: its unit is not known: {decimal(figure.value)} in sectors is hardly right ({doubt})"
    return message if not others else f"{message}; it would be {', '.join(others)}"


def _doubt(figure: Figure, facts: Facts, used: Figure | None, hours: Figure | None) -> str | None:
    """Why an amount of data written is impossible, or for an assumed unit unlikely; None if it is neither."""
    amount, capacity = figure.value, facts.capacity
    if hours is not None:
        most = _RATES_MOST.get(facts.protocol, 16e9) * (hours.value + 1) * 3600
        if amount > most:
            return f"more than the link moves in {hours.value:,.0f} hours"
    if capacity:
        if (
            figure.assumed
            and used is not None
            and used.value >= 0.01
            and amount / used.value < capacity
        ):
            return "a whole life of less than one fill of the drive"
        if figure.assumed and hours is not None and hours.value > 100 and amount < 0.01 * capacity:
            return f"less than 1 % of the drive in {hours.value:,.0f} hours"
        if facts.erases is not None and facts.erases.value >= 5:
            erased = facts.erases.value * capacity
            if amount > 3 * erased and not facts.compresses:
                return f"{facts.erases.field} is too low for that"
            if amount * _AMPLIFICATION_MOST < erased:
                return f"{facts.erases.field} is too high for that"
    if figure.assumed and facts.flash and not facts.compresses:
        ratio = facts.flash[0].value / amount if amount else 0.0
        if amount and not _AMPLIFICATION_LEAST <= ratio <= _AMPLIFICATION_MOST:
            return (
                f"{facts.flash[0].field} says {decimal(facts.flash[0].value)} written to the flash"
            )
    return None


def _same(figure: Figure, other: Figure) -> bool:
    """Whether another counter, of which the unit is a guess, says the same in some usual unit."""
    if abs(figure.value - other.value) <= 0.05 * figure.value:
        return True
    return other.assumed and any(
        abs((other.raw or 0) * unit - figure.value) <= max(0.02 * figure.value, 2 * unit)
        for unit, _ in _UNITS
    )


def _unwrapped(ranked: Sequence[Figure]) -> Figure | None:
    """A counter that says the same as device statistics of 32 bits, but for what they lost."""
    if len(ranked) < 2 or ranked[0].rank or ranked[0].raw is None or not 0 < ranked[0].raw < _WRAP:
        return None
    first = ranked[0]
    assert first.raw is not None
    whole = first.value / first.raw * _WRAP
    for other in ranked[1:]:
        units = _UNITS[2:] if other.assumed else ((other.value / (other.raw or 1), ""),)
        for unit, name in units:
            total = (other.raw or 0) * unit
            apart = (total - first.value) % whole
            if total > whole / 2 + first.value and min(apart, whole - apart) <= 2 * unit:
                rule = f"raw value in {name}, as {first.field} confirms" if name else other.rule
                return Figure(total, other.field, rule, other.raw)
    return None


def _amplification(
    facts: Facts, written: Figure | None, flash: Figure | None, notes: list[str]
) -> Figure | None:
    if facts.amplification is not None:
        return facts.amplification
    if written is None or flash is None or not written.value:
        return None
    ratio = flash.value / written.value
    least = 0.0 if facts.compresses else _AMPLIFICATION_LEAST
    if least <= ratio <= _AMPLIFICATION_MOST:
        return Figure(
            ratio,
            f"{flash.field} over {written.field}",
            "bytes to the flash over bytes from the host",
        )
    notes.append(
        f"{flash.field} says {decimal(flash.value)} to the flash, {written.field} {decimal(written.value)} from the "
        f"host: a write amplification of {ratio:.2g} is impossible, so one of the units is wrong"
    )
    return None
