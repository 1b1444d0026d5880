"""What a drive reports about its wear at one moment, and between two."""

from __future__ import annotations

from dataclasses import dataclass

from flashwright.endurance.smart.facts import SmartError

__all__ = ["HOURS_A_YEAR", "Interval", "Smart", "Source"]

HOURS_A_YEAR = 365.25 * 24


@dataclass(frozen=True)
class Source:
    """Where a figure comes from.

    Attributes
    ----------
    figure : str
        Such as ``used``.
    field : str
        The field of the log.
    rule : str
        How it was read.
    """

    figure: str
    field: str
    rule: str


@dataclass(frozen=True)
class Smart:
    """What a drive reports about its wear; None where it reports nothing that can be believed.

    Attributes
    ----------
    model : str or None
        Its name.
    protocol : {"ATA", "NVMe", "SCSI"}
        How it was asked.
    power_on_hours : float or None
        Hours under power.
    bytes_written : float or None
        Bytes that the host has written.
    used : float or None
        Share of the rated life that is used up, 0 and more.
    used_from : str or None
        The field that says so.
    capacity : int or None
        Bytes of the logical space.
    write_amplification : float or None
        Bytes written to the flash per byte from the host, where the drive counts both.
    missing : tuple of (str, str)
        What is missing and needed, and what to run for it.
    serial : str or None
        Its serial number.
    flash_bytes_written : float or None
        Bytes written to the flash.
    pages : tuple of (float, float) or None
        Pages programmed for the host, and in all, of drives that count pages.
    taken_at : float or None
        When it was read, in seconds since 1970.
    sources : tuple of Source
        Which field each figure comes from, and by which rule.
    notes : tuple of str
        What is doubtful: fields that contradict each other, figures that are impossible.

    Examples
    --------
    A drive that used 4 % of its life in 10,000 hours has 24 times as long before it:

    >>> from flashwright import smart
    >>> log = {"power_on_hours": 10_000, "data_units_written": 40_000_000, "percent_used": 4}
    >>> found = smart.parse(log)
    >>> round(found.years_left, 1), found.bytes_written, found.missing
    (27.4, 20480000000000.0, ())
    """

    model: str | None
    protocol: str
    power_on_hours: float | None
    bytes_written: float | None
    used: float | None
    used_from: str | None
    capacity: int | None
    write_amplification: float | None
    missing: tuple[tuple[str, str], ...]
    serial: str | None = None
    flash_bytes_written: float | None = None
    pages: tuple[float, float] | None = None
    taken_at: float | None = None
    sources: tuple[Source, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def bytes_per_s(self) -> float | None:
        """The drive's own write rate: host bytes over time under power."""
        if self.bytes_written is None or not self.power_on_hours:
            return None
        return self.bytes_written / (self.power_on_hours * 3600)

    @property
    def endurance_bytes(self) -> float | None:
        """Host bytes of the whole life at the wear seen so far.

        None below one percent of wear, and where it would be less than one fill of the drive, which is impossible.
        """
        if self.bytes_written is None or self.used is None or self.used < 0.01:
            return None
        whole = self.bytes_written / self.used
        return None if self.capacity is not None and whole < self.capacity else whole

    @property
    def years_left(self) -> float | None:
        """Years until the rated life is used up, at the wear seen so far; None below one percent of wear."""
        return None if self.used is None or self.used < 0.01 else self._years(self.used)

    @property
    def years_left_range(self) -> tuple[float, float | None] | None:
        """The years that a step of one percent up or down would give; the upper is None where it is unbounded."""
        if self.used is None or not self.power_on_hours:
            return None
        low = self._years(self.used + 0.01)
        assert low is not None
        return low, self._years(self.used - 0.01) if self.used >= 0.02 else None

    def _years(self, used: float) -> float | None:
        if not self.power_on_hours:
            return None
        return max(0.0, 1 - used) / used * self.power_on_hours / HOURS_A_YEAR

    def years_to(self, endurance: float) -> float | None:
        """Years until this many bytes are written (a rating in TBW), at the drive's own write rate.

        Parameters
        ----------
        endurance : float
            Bytes of the rating.
        """
        rate = self.bytes_per_s
        if self.bytes_written is None or not rate:
            return None
        return max(0.0, endurance - self.bytes_written) / rate / (HOURS_A_YEAR * 3600)

    @property
    def why_no_amplification(self) -> str:
        """Why the drive's counters tell no write amplification, and which log may; empty where they do."""
        if self.write_amplification is not None:
            return ""
        if self.flash_bytes_written is not None and self.bytes_written is not None:
            return "what was written to the flash and by the host contradict each other"
        if self.protocol != "NVMe":
            return "the drive does not say what it wrote to the flash"
        log = "ocp smart-add-log" if self.flash_bytes_written is None else "smart-log"
        return f"add the output of `nvme {log} DEVICE -o json` as a second file"

    def source(self, figure: str) -> Source | None:
        """Where a figure comes from, None if the drive does not say it.

        Parameters
        ----------
        figure : str
            ``power_on_hours``, ``bytes_written``, ``flash_bytes_written``, ``used`` or ``write_amplification``.
        """
        return next((each for each in self.sources if each.figure == figure), None)


@dataclass(frozen=True)
class Interval:
    """What a drive did between two moments; None where it does not say.

    Attributes
    ----------
    hours : float or None
        Under power.
    days : float or None
        By the clock.
    bytes_written, flash_bytes_written : float or None
        By the host, and to the flash.
    used : float or None
        Share of the rated life.
    write_amplification : float or None
        Of what was written between the two.
    years_left : float or None
        Years until the rest of the life is used up at this rate of wear, by the clock if it is known and under power
        otherwise; None if wear did not move by a percent.
    years_left_range : tuple of (float, float or None) or None
        The years that a step of one percent up or down would give, the upper None where it is unbounded.
    """

    hours: float | None
    days: float | None
    bytes_written: float | None
    flash_bytes_written: float | None
    used: float | None
    write_amplification: float | None
    years_left: float | None
    years_left_range: tuple[float, float | None] | None

    @classmethod
    def between(cls, old: Smart, new: Smart) -> Interval:
        """What was done between an older and a newer reading of one drive.

        Parameters
        ----------
        old, new : Smart
            The readings.

        Raises
        ------
        SmartError
            If they are of two drives, or a counter is lower in the newer one.

        Examples
        --------
        >>> from flashwright import smart
        >>> log = {"power_on_hours": 1000, "data_units_written": 10_000_000, "percent_used": 1}
        >>> later = {"power_on_hours": 2000, "data_units_written": 30_000_000, "percent_used": 4}
        >>> between = smart.Interval.between(smart.parse(log), smart.parse(later))
        >>> between.hours, between.bytes_written, round(between.used, 3), round(between.years_left, 2)
        (1000.0, 10240000000000.0, 0.03, 3.65)
        """
        for name, was, now in (
            ("serial numbers", old.serial, new.serial),
            ("models", old.model, new.model),
        ):
            if was is not None and now is not None and was != now:
                raise SmartError(f"found the {name} {was} and {now}, expected one drive", "")
        hours = _grown("power-on hours", old.power_on_hours, new.power_on_hours)
        written = _grown("data written", old.bytes_written, new.bytes_written)
        flash = _grown(
            "data written to the flash", old.flash_bytes_written, new.flash_bytes_written
        )
        used = _grown("life used", old.used, new.used)
        days = None
        if old.taken_at is not None and new.taken_at is not None and new.taken_at > old.taken_at:
            days = (new.taken_at - old.taken_at) / 86400
        amplification = flash / written if flash is not None and written else None
        if old.pages is not None and new.pages is not None and new.pages[0] > old.pages[0]:
            host, everything = (new.pages[at] - old.pages[at] for at in (0, 1))
            amplification = everything / host if everything >= host else None
        years = hours / HOURS_A_YEAR if hours else None
        if days:
            years = days / 365.25
        left, in_range = None, None
        if used is not None and new.used is not None and years is not None:
            rest = max(0.0, 1 - new.used) * years
            # The reading before and the one after are each known to the percent.
            upper = rest / (used - 0.01) if used >= 0.02 - 1e-9 else None
            in_range = (rest / (used + 0.01), upper)
            left = rest / used if used >= 0.01 - 1e-9 else None
        return cls(hours, days, written, flash, used, amplification, left, in_range)


def _grown(what: str, was: float | None, now: float | None) -> float | None:
    if was is None or now is None:
        return None
    if now < was:
        raise SmartError(
            f"{what}: found {now:,.4g} after {was:,.4g}, expected no less",
            "the older file goes first, and both have to be of one drive",
        )
    return now - was
