"""What a drive under test counts of itself while it is probed: bytes to its flash, heat, wear."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from flashwright.nvme.counters import Interval, Reader, Reading, between
from flashwright.nvme.passthrough import Nvme, NvmeError
from flashwright.target.target import Target

__all__ = ["Counters", "amplification", "counter_sentences"]


def amplification(laps: Sequence[Mapping[str, Any] | None]) -> float | None:
    """Bytes to the flash over bytes from the host, over several steps; None where nothing tells, or too few went there.

    Parameters
    ----------
    laps : sequence of mapping or None
        Of :meth:`Counters.lap`, one a step.
    """
    both = [lap for lap in laps if lap is not None and lap["media_written_bytes"] is not None]
    both = [lap for lap in both if lap["host_written_bytes"] is not None]
    host = sum(lap["host_written_bytes"] for lap in both)
    # Each count may be off by a step, so that the ratio is true within a hundredth.
    if not host or host < 100 * sum(lap["step_bytes"] for lap in both):
        return None
    return float(sum(lap["media_written_bytes"] for lap in both) / host)


def counter_sentences(laps: Sequence[Mapping[str, Any] | None]) -> list[str]:
    """What a drive counted over several steps, in sentences; none where it counted nothing.

    Parameters
    ----------
    laps : sequence of mapping or None
        Of :meth:`Counters.lap`, one a step.

    Examples
    --------
    >>> written = {"host_written_bytes": 10**9, "media_written_bytes": 3 * 10**9, "step_bytes": 1}
    >>> counter_sentences([written | {"throttled_s": 0, "contradictions": []}, None])
    ['1.00 GB from the host and 3.00 GB to its flash: write amplification 3.00 over all steps.']
    """
    known = [lap for lap in laps if lap is not None]
    if not known:
        return []
    ratio = amplification(known)
    if ratio is not None:
        host, media = (
            sum(lap[name] or 0 for lap in known) / 1e9
            for name in ("host_written_bytes", "media_written_bytes")
        )
        said = [
            f"{host:.2f} GB from the host and {media:.2f} GB to its flash: "
            f"write amplification {ratio:.2f} over all steps."
        ]
    else:
        said = ["Bytes to its flash: it does not count them, or too few were written."]
    throttled = sum(lap["throttled_s"] for lap in known)
    if throttled:
        said.append(
            f"Heat slowed it down for {throttled:,} s, so times of that while are not its usual ones."
        )
    return said + list(dict.fromkeys(line for lap in known for line in lap["contradictions"]))


class Counters:
    """The counters of an NVMe drive, read between steps; closed, or used in a ``with`` statement, they let go of it.

    Parameters
    ----------
    reader : Reader or None
        None for a drive without counters; `why` then says so.
    why : str, optional
        Why there are none.
    """

    def __init__(self, reader: Reader | None, why: str = "") -> None:
        self.why = why
        self._reader = reader
        self._last: Reading | None = None
        if reader is not None:
            self._last = self._read()

    @classmethod
    def of(cls, target: Target) -> Counters:
        """Those of a target. NVMe drives are asked, and models that count; one that refuses is probed without them.

        Parameters
        ----------
        target : Target
            The device under test.
        """
        if target.counted is not None:
            return _OfModel(target.counted)
        if target.kind != "block-device" or target.path is None:
            return cls(None)
        try:
            nvme = Nvme(target.path)
        except NvmeError as error:
            return cls(None, str(error))
        try:
            return cls(Reader(nvme))
        except NvmeError as error:
            nvme.close()
            return cls(None, str(error))

    def __enter__(self) -> Counters:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the drive's counters; later laps count nothing."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _read(self) -> Reading | None:
        assert self._reader is not None
        try:
            return self._reader.read()
        except NvmeError as error:
            self.close()
            self.why = str(error)
            return None

    def lap(self) -> dict[str, Any] | None:
        """What the drive counted since the last call, as plain values; None where it counts nothing, or no longer."""
        before = self._last
        self._last = None if self._reader is None else self._read()
        if before is None or self._last is None:
            return None
        return asdict(between(before, self._last))


class _OfModel(Counters):
    """Those of a model that counts bytes from the host and to its flash."""

    def __init__(self, counted: Callable[[], tuple[int, int]]) -> None:
        super().__init__(None)
        self._counted, self._before = counted, counted()

    def lap(self) -> dict[str, Any] | None:
        (host, media), now = self._before, self._counted()
        self._before = now
        wrote, programmed = now[0] - host, now[1] - media
        ratio = programmed / wrote if wrote else None
        why = "" if wrote else "the host wrote nothing"
        done = Interval(0.0, None, wrote, programmed, 1, ratio, why, None, None, 0, ())
        return asdict(done)
