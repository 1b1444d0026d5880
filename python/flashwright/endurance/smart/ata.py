"""SATA drives: attributes and device statistics, as smartctl prints them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flashwright.endurance.smart import names
from flashwright.endurance.smart.facts import Facts, Figure, count, dig, rows, text
from flashwright.endurance.smart.left import left_by, used_by

__all__ = ["attribute", "read_ata"]

ALL = "smartctl -j -x DEVICE"

_TEMPERATURES = (190, 194)
# Where a drive has several counters of the same, the one that most makers use goes first.
_COUNTERS = (241, 246, 225, 199, 235, 175)


@dataclass(frozen=True)
class _Row:
    """An attribute: its number and name, what that means, the normalised value, and the raw one."""

    number: int
    name: str
    means: names.Meaning | None
    value: float | None
    count: float | None
    shown: str | None

    @property
    def field(self) -> str:
        return f"{self.number} {self.name}"

    @property
    def percent(self) -> float | None:
        """The raw value if it is one number, and not several packed into one."""
        if self.shown is None:
            return self.count
        alone = re.fullmatch(r"\s*([0-9]{1,20})\s*(\(.*\))?\s*", self.shown)
        return None if alone is None else float(alone[1])


def attribute(
    number: int, name: str, value: float | None, raw: float | None, shown: str | None
) -> dict[str, Any]:
    """An attribute in the shape of smartctl's JSON."""
    return {
        "id": number,
        "name": name,
        "value": value,
        "raw": {"value": raw} | ({} if shown is None else {"string": shown}),
    }


def read_ata(value: Mapping[str, Any]) -> Facts:
    """What a SATA drive says, from smartctl's JSON."""
    model, family = text(value.get("model_name")), text(value.get("model_family")) or ""
    maker = f"{family} {model or ''}"
    table = _named(value, model, maker)
    sector = count(value.get("logical_block_size")) or 512
    facts = Facts(
        "smartctl",
        ALL,
        "ATA",
        model,
        text(value.get("serial_number")),
        count(dig(value, "user_capacity.bytes")),
        count(dig(value, "local_time.time_t")),
        hours=_hours(value, table),
        compresses=names.compresses(maker),
    )
    _add_erases(facts, table)
    _add_used(facts, value, table, maker)
    _add_written(facts, value, table, sector)
    _add_flash(facts, table, sector)
    return facts


def _named(value: Mapping[str, Any], model: str | None, maker: str) -> list[_Row]:
    """The attributes with their meanings; the table of models names those that smartctl does not know."""
    found = {}
    for row in rows(value, "ata_smart_attributes.table"):
        number = count(row.get("id"))
        if number is not None and 0 < number < 256:
            found[int(number)] = row
    known = value.get("in_smartctl_database") is True or "model_family" in value
    by_model = names.is_known(model) and not known
    inferred = {} if known or by_model else _silicon_motion(found) | _name_equal_counts(found)
    table = []
    for number, row in found.items():
        name = text(row.get("name")) or ""
        unnamed = not name or name.lower().startswith("unknown_")
        if by_model or unnamed:
            name = names.name_of(model, number) or ("" if by_model else name)
        name = inferred.get(number, name)
        shown = dig(row, "raw.string")
        raw = count(dig(row, "raw.value"))
        if raw is None and isinstance(shown, str):
            raw = count(shown.split(" ")[0])
        table.append(
            _Row(
                number,
                name,
                names.meaning(name, number, maker),
                count(row.get("value")),
                raw,
                shown if isinstance(shown, str) else None,
            )
        )
    return table


def _silicon_motion(found: Mapping[int, Mapping[str, Any]]) -> dict[int, str]:
    """Names of the layout of Silicon Motion's controllers, where its three counts of wear confirm each other."""
    mean, rated, left = (count(dig(found.get(number), "raw.value")) for number in (167, 168, 169))
    unnamed = all(
        str(dig(found.get(number), "name")).lower().startswith("unknown_")
        for number in (161, 164, 167, 168, 169)
    )
    if not unnamed or mean is None or left is None or not rated or mean < 1 or left > 100:
        return {}
    if abs(100 - 100 * mean / rated - left) > 1.5:
        return {}
    return {
        167: "Average_Erase_Count",
        168: "Max_Erase_Count_of_Spec",
        169: "Remaining_Lifetime_Perc",
    }


def _name_equal_counts(found: Mapping[int, Mapping[str, Any]]) -> dict[int, str]:
    """Names of 225 and 241 where both have one count: every family of the data base that has both counts 32 MiB."""
    older, newer = (count(dig(found.get(number), "raw.value")) for number in (225, 241))
    unnamed = str(dig(found.get(225), "name")).lower().startswith("unknown_")
    if not unnamed or not older or newer is None or abs(older - newer) > 0.001 * older:
        return {}
    return {225: "Host_Writes_32MiB", 241: "Host_Writes_32MiB"}


def _of(table: Sequence[_Row], *kinds: str) -> list[_Row]:
    found = [row for row in table if row.means is not None and row.means.kind in kinds]
    order = {number: at for at, number in enumerate(_COUNTERS)}
    return sorted(found, key=lambda row: order.get(row.number, len(order)))


def _hours(value: Mapping[str, Any], table: Sequence[_Row]) -> list[Figure]:
    figures = []
    whole = count(dig(value, "power_on_time.hours"))
    if whole is not None:
        minutes = count(dig(value, "power_on_time.minutes")) or 0
        figures.append(Figure(whole + minutes / 60, "power_on_time", "hours and minutes"))
    reset = _statistic(value, "Power-on Hours")
    if reset is not None:
        figures.append(Figure(reset, "Power-on Hours", "device statistics"))
    for row in _of(table, "hours"):
        hours, rule = _hours_of(row)
        if hours is not None:
            figures.append(Figure(hours, row.field, rule, rank=1))
    return figures


def _hours_of(row: _Row) -> tuple[float | None, str]:
    shown = re.match(r"\s*([0-9]{1,20})h\+([0-9]{1,2})m", row.shown or "")
    if shown:
        return int(shown[1]) + int(shown[2]) / 60, "as text"
    raw = row.count
    if raw is None:
        return None, ""
    name = row.name.lower()
    units = (("half_minutes", 120), ("minutes", 60), ("seconds", 3600))
    for unit, in_hour in units:
        if name.endswith(unit):
            return raw / in_hour, f"raw value in {unit.replace('_', ' ')}"
    if name.endswith("msec"):
        return float(
            int(raw) % 2**32
        ), "lower 32 bits of the raw value; above them are milliseconds"
    if row.percent is not None and row.shown is not None:
        return row.percent, "raw value"
    return float(int(raw) % 2**24), "lower 24 bits of the raw value"


def _statistic(value: Mapping[str, Any], name: str) -> float | None:
    """A figure of the device statistics log, which smartctl prints with ``-x`` or ``-l devstat``."""
    for page in rows(value, "ata_device_statistics.pages"):
        for row in rows(page, "table"):
            if row.get("name") == name and dig(row, "flags.valid") is not False:
                return count(row.get("value"))
    return None


def _add_erases(facts: Facts, table: Sequence[_Row]) -> None:
    for row in _of(table, "erases", "erases-packed"):
        mean = row.count
        if row.means is not None and row.means.kind == "erases-packed":
            shown = re.search(r"Average ([0-9]{1,10})", row.shown or "")
            packed = None if row.count is None else float(int(row.count) >> 16 & 0xFFFF)
            mean = float(shown[1]) if shown else packed
        if mean is not None and 0 < mean < 2**20 and facts.erases is None:
            facts.erases = Figure(mean, row.field, "mean erases of a block")
    for row in _of(table, "cycles"):
        if row.count is not None and 50 <= row.count <= 200_000 and facts.cycles is None:
            facts.cycles = Figure(row.count, row.field, "erases that a block is rated for")


def _add_used(facts: Facts, value: Mapping[str, Any], table: Sequence[_Row], maker: str) -> None:
    name = "Percentage Used Endurance Indicator"
    percent = _statistic(value, name)
    if percent is not None and percent <= 255:
        facts.used.append(Figure(percent / 100, name, "device statistics, % used"))
    still = not any(
        row.value is not None and 1 <= row.value <= 99
        for row in table
        if row.number not in _TEMPERATURES
    )
    rated = None
    if facts.erases is not None and facts.cycles is not None:
        rated = facts.erases.value / facts.cycles.value
    silent = []
    for row in _of(table, "left", "left-used", "left-fine", "used", "wear", "erases"):
        assert row.means is not None
        if row.means.kind in ("left", "left-used"):
            of_used = row.means.kind == "left-used"
            estimate = left_by(row.value, row.percent, of_used=of_used, still=still, rated=rated)
        elif row.means.kind == "left-fine":
            fine = row.percent
            estimate = (
                (None, "")
                if fine is None or fine > 10_000
                else (1 - fine / 10_000, "raw value, 0.01 % left")
            )
        elif row.means.kind == "used":
            estimate = used_by(row.value, row.percent)
        else:
            estimate = _worn(row, maker, still=still)
        used, rule = estimate
        if used is not None:
            # The plainest names first, then conventions.
            rank = 1 if row.means.kind in ("left", "left-used", "left-fine", "used") else 2
            facts.used.append(Figure(used, row.field, rule, rank=rank))
        elif rule:
            silent.append(f"{row.field}: {rule}")
    if rated is not None and facts.erases is not None and facts.cycles is not None:
        both = f"{facts.erases.field} over {facts.cycles.field}"
        facts.used.append(Figure(rated, both, "mean over rated erases", rank=3))
    # smartctl fills this in from normalised values, so that it is no witness beside them.
    guessed = count(dig(value, "endurance_used.current_percent"))
    if guessed is not None and guessed <= 255 and not (facts.used or silent):
        facts.used.append(Figure(guessed / 100, "endurance_used", "% used", rank=4))
    silent += [
        f"{row.field}: not read: {row.means.why}"
        for row in _of(table, "none")
        if row.means is not None and row.number in (177, 230, 233)
    ]
    if not facts.used:
        facts.notes.extend(silent)


def _worn(row: _Row, maker: str, *, still: bool) -> tuple[float | None, str]:
    """Share of the life that is used by a normalised value that counts down by convention; or why not."""
    value, raw = row.value, row.count or 0
    if row.means is not None and row.means.kind == "erases":
        if "micron" not in maker.lower() or value is None or not 1 <= value <= 99:
            return None, ""
        return (100 - value) / 100, "normalised value, which counts down from 100"
    if value is None or value > 100:
        return None, ""
    if 1 <= value <= 99:
        return (100 - value) / 100, "normalised value, which counts down from 100"
    if names.counts_down(maker):
        return (100 - value) / 100, "normalised value, which counts down from 100"
    if value == 0 or still:
        return (
            None,
            f"its normalised value stands at {value:.0f}, which says nothing: no other moved either",
        )
    if raw > 100 and "wearout" in row.name.lower():
        return None, "its raw value is no percentage, so its name may be wrong for this drive"
    return 0.0, "normalised value, which counts down from 100"


def _add_written(
    facts: Facts, value: Mapping[str, Any], table: Sequence[_Row], sector: float
) -> None:
    name = "Logical Sectors Written"
    sectors = _statistic(value, name)
    if sectors is not None:
        facts.written.append(
            Figure(sectors * sector, name, f"device statistics, sectors of {sector:.0f} B", sectors)
        )
    units, each = (count(dig(value, f"host_writes.{key}")) for key in ("units", "bytes_per_unit"))
    if sectors is None and units is not None and each:
        facts.written.append(Figure(units * each, "host_writes", f"units of {each:,.0f} B", units))
    if any((row.count or 0) > 0 for row in _of(table, "upper")):
        facts.notes.append("data written: its upper part is above 0, which no known drive has")
        return
    for row in _of(table, "written"):
        assert row.means is not None
        if row.count is None:
            continue
        if row.means.unit is None:
            facts.notes.append(f"{row.field}: the unit of its raw value is not known")
            continue
        unit = row.means.unit or sector
        rule = f"raw value in {_unit_name(unit)}"
        facts.written.append(
            Figure(row.count * unit, row.field, rule, row.count, row.means.assumed, rank=1)
        )


def _add_flash(facts: Facts, table: Sequence[_Row], sector: float) -> None:
    if any((row.count or 0) > 0 for row in _of(table, "upper")):
        return
    parts: dict[str, list[_Row]] = {}
    for row in _of(table, "flash"):
        assert row.means is not None
        if row.count is None:
            continue
        if row.means.unit is None:
            facts.notes.append(f"{row.field}: the unit of its raw value is not known")
        elif row.means.part_of is not None:
            parts.setdefault(row.means.part_of, []).append(row)
        elif row.count > 0:
            unit = row.means.unit or sector
            rule = f"raw value in {_unit_name(unit)}"
            facts.flash.append(Figure(row.count * unit, row.field, rule, row.count))
    for together in parts.values():
        fields = " and ".join(row.field for row in together)
        single = [row for row in together if "slc" in row.name.lower()]
        caches = any("slc" in row.name.lower() and row.count for row in table)
        if len(single) == len(together):
            why = "writes to single-level cells alone are neither the host's nor all"
            facts.notes.append(f"{fields}: not read: {why}")
        elif caches and not single:
            why = "writes to single-level cells, which this drive has too, are not counted in it"
            facts.notes.append(f"{fields}: not read: {why}")
        else:
            total = sum((row.count or 0) * (row.means.unit or 0) for row in together if row.means)
            rule = "raw values, added" if single else "raw value in 32 MiB"
            facts.flash.append(Figure(total, fields, rule))
    host, own = _of(table, "host-pages"), _of(table, "own-pages")
    if host and own and host[0].count and own[0].count is not None:
        facts.amplification = Figure(
            (host[0].count + own[0].count) / host[0].count,
            f"{host[0].field} and {own[0].field}",
            "pages programmed in all over pages of the host",
        )


def _unit_name(unit: float) -> str:
    known = {2**30: "GiB", 2**25: "32 MiB", 2**20: "MiB", 10**9: "GB"}
    return known.get(int(unit), f"sectors of {unit:.0f} B")
