"""The patterns that a calibration plays."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from flashwright.drive.findings import Finding
from flashwright.target.arrays import KIB, MIB, Ints
from flashwright.target.guard import CODES
from flashwright.target.question import Mode

__all__ = [
    "FLUSH",
    "KIB",
    "LEAST_BYTES",
    "MIB",
    "READ",
    "WRITE",
    "Kinds",
    "Pattern",
    "Stage",
    "number",
    "patterns",
    "unit_of",
    "word",
]

READ, WRITE, FLUSH = (CODES[kind] for kind in ("read", "write", "flush"))
"""Kinds of requests, as :meth:`Target.play` takes them."""


Stage = Literal["clean", "used"]
Order = Literal["random", "sequential", "again"]
Kinds = Literal["read", "write", "flush"]


LEAST_BYTES = 64 << 20
"""Bytes of the smallest drive. Chosen: on smaller ones addresses meet."""


@dataclass(frozen=True)
class Pattern:
    """Requests as they are made, without the drive.

    Attributes
    ----------
    name : str
        Unique in a calibration.
    stage : {"clean", "used"}
        What comes before: a purge and a sequential fill, or those and overwriting at random.
    requests : int
        How many, flushes not counted.
    sizes_bytes : tuple of int
        Each request takes one of these, all equally often.
    reads : float, optional
        Share of reads; the rest writes.
    order : {"random", "sequential", "again"}, optional
        Addresses: anywhere; one after the other; or anywhere and then the same once more.
    align_bytes : int, optional
        Addresses are multiples of this.
    shift_bytes : int, optional
        Added to each address.
    unaligned : float, optional
        Share of the requests that begin at any block instead.
    depth : int, optional
        Requests outstanding.
    flush : bool, optional
        A flush follows each request; then the depth is 1.
    hot_share, hot_range : float, optional
        This share of the random requests goes to the first `hot_range` of the capacity.
    overwrites : float, optional
        If above 0, the number of requests is this many capacities of data.
    seed : int, optional
        Of the requests.
    """

    name: str
    stage: Stage
    requests: int
    sizes_bytes: tuple[int, ...]
    reads: float = 0.0
    order: Order = "random"
    align_bytes: int = 4096
    shift_bytes: int = 0
    unaligned: float = 0.0
    depth: int = 1
    flush: bool = False
    hot_share: float = 0.0
    hot_range: float = 1.0
    overwrites: float = 0.0
    seed: int = 1

    def make(
        self, capacity_bytes: int, block_bytes: int
    ) -> tuple[npt.NDArray[np.uint8], Ints, Ints]:
        """The requests.

        Parameters
        ----------
        capacity_bytes, block_bytes : int
            Of the drive.

        Returns
        -------
        codes : array of uint8
            0 read, 1 write, 3 flush, as :meth:`Target.play` takes them.
        offsets_bytes, sizes_bytes : array of int64
            One a request.

        Examples
        --------
        >>> pattern = Pattern("p", "clean", 4, (4096,), order="sequential")
        >>> np.diff(pattern.make(1 << 20, 512)[1]).tolist()
        [4096, 4096, 4096]
        """
        rng = np.random.default_rng([self.seed, zlib.crc32(self.name.encode())])
        count = self.requests
        if self.overwrites > 0:
            count = max(int(self.overwrites * capacity_bytes / np.mean(self.sizes_bytes)), 1)
        sizes = rng.choice(np.array(self.sizes_bytes, np.int64), count)
        largest = max(self.sizes_bytes)
        if self.order == "sequential":
            # A run from a random place on, so that two patterns do not meet the same data.
            ends = np.cumsum(sizes)
            room = capacity_bytes - self.shift_bytes
            first = rng.integers(0, room) // self.align_bytes * self.align_bytes
            offsets = (first + ends - sizes) % room
            offsets = np.where(offsets + sizes > room, 0, offsets) + self.shift_bytes
        else:
            slots = (capacity_bytes - largest - self.shift_bytes) // self.align_bytes + 1
            hot = rng.random(count) < self.hot_share
            span = np.where(hot, max(int(slots * self.hot_range), 1), slots)
            offsets = (rng.random(count) * span).astype(np.int64) * self.align_bytes
            blocks = rng.integers(0, max(self.align_bytes // block_bytes, 1), count) * block_bytes
            loose = rng.random(count) < self.unaligned
            offsets = offsets + np.where(loose, blocks, 0) + self.shift_bytes
            offsets = np.minimum(offsets, capacity_bytes - sizes)
        codes = np.where(rng.random(count) < self.reads, READ, WRITE).astype(np.uint8)
        if self.order == "again":
            codes, offsets, sizes = (np.repeat(part, 2) for part in (codes, offsets, sizes))
        if self.flush:
            codes = np.stack([codes, np.full_like(codes, FLUSH)], 1).ravel()
            offsets, sizes = (
                np.stack([part, np.zeros_like(part)], 1).ravel() for part in (offsets, sizes)
            )
        return codes, offsets, sizes


def number(findings: Mapping[str, Finding], parameter: str) -> float | None:
    """What was found of a parameter that is a number; None unless found."""
    finding = findings.get(parameter)
    if finding is None or finding.verdict != "found" or isinstance(finding.value, str):
        return None
    return None if finding.value is None else float(finding.value)


def word(findings: Mapping[str, Finding], parameter: str) -> str | None:
    """What was found of a parameter that is a word; None unless found."""
    finding = findings.get(parameter)
    found = finding is not None and finding.verdict == "found"
    return finding.value if found and finding and isinstance(finding.value, str) else None


def patterns(
    findings: Mapping[str, Finding],
    *,
    capacity_bytes: int,
    block_bytes: int = 512,
    mode: Mode = "full",
    seed: int = 1,
) -> tuple[Pattern, ...]:
    """The patterns of a calibration.

    Parameters
    ----------
    findings : mapping of str to Finding
        What is known: of ``clustered-page`` and ``write-buffer`` sizes and alignments are made.
    capacity_bytes, block_bytes : int
        Of the drive.
    mode : {"quick", "full"}, optional
        How many requests; quick overwrites half of the capacity at random, full one and a half capacities.
    seed : int, optional
        Of addresses and sizes.

    Returns
    -------
    tuple of Pattern
        In the order in which they are to be played.
    """
    unit = unit_of(findings, block_bytes)
    small = max(4 * KIB, block_bytes)
    buffer = int(number(findings, "write-buffer") or 0)
    share = 1.0 if mode == "full" else 0.25
    made: list[Pattern] = []

    def add(
        name: str, stage: Stage, requests: int, size: int | tuple[int, ...], **more: Any
    ) -> None:
        sizes = size if isinstance(size, tuple) else (size,)
        whole = tuple(max(int(s) // block_bytes, 1) * block_bytes for s in sizes)
        count = max(int(requests * share), 16)
        # No pattern of a stage may go through more than a tenth of a small drive.
        count = min(count, max(capacity_bytes // 10 // max(whole), 16))
        more.setdefault("align_bytes", unit)
        made.append(Pattern(name, stage, count, whole, seed=seed, **more))

    # Reads: what one costs, what more pages cost, what side by side works.
    add("read-block", "clean", 400, block_bytes, reads=1.0)
    for pages in (1, 2, 3, 4, 8, 16, 32):
        if pages * unit <= 2 * MIB:
            add(f"read-{pages}-units", "clean", _few(pages * unit), pages * unit, reads=1.0)
    for size in (4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, 1 * MIB):
        add(f"read-{size // KIB}k", "clean", _few(size), size, reads=1.0, align_bytes=small)
    for depth in (4, 16, 64):
        add(f"read-block-{depth}-deep", "clean", 1000, block_bytes, reads=1.0, depth=depth)
    add("read-64k-16-deep", "clean", 600, 64 * KIB, reads=1.0, depth=16, align_bytes=small)
    add("read-block-again", "clean", 100, block_bytes, reads=1.0, order="again")
    add("read-64k-again", "clean", 100, 64 * KIB, reads=1.0, order="again", align_bytes=small)
    add("read-64k-sequential", "clean", 400, 64 * KIB, reads=1.0, order="sequential")
    add("read-1m-sequential", "clean", 48, MIB, reads=1.0, order="sequential", depth=4)
    # Writes that flash has before the next: array time, the part of a page that is read first.
    add("write-unit-flush", "clean", 100, unit, flush=True)
    add("write-4-units-flush", "clean", 60, 4 * unit, flush=True)
    add("write-unit-flush-sequential", "clean", 100, unit, flush=True, order="sequential")
    add("write-block-flush", "clean", 100, block_bytes, flush=True)
    add(
        "write-unit-off-flush",
        "clean",
        60,
        unit,
        flush=True,
        shift_bytes=max(unit // 2 // block_bytes, 1) * block_bytes,
    )
    add("write-64k-flush", "clean", 60, 64 * KIB, flush=True, align_bytes=small)
    add("write-1m-flush", "clean", 30, MIB, flush=True, align_bytes=small)
    # Writes as they come: the link, and the buffer until it is full.
    add("write-few", "clean", 16, min(small, max(buffer // 32, block_bytes)), align_bytes=small)
    add("write-4k-again", "clean", 60, small, order="again", align_bytes=small)
    for size in (small, 64 * KIB, MIB):
        enough = int(min(max(3 * buffer, 8 * MIB), 128 * MIB) / size)
        burst = max(min(enough, 1200), 60)
        add(f"write-{size // KIB}k-burst", "clean", burst, size, align_bytes=small)
        burst = max(min(enough, 600), 60)
        add(f"write-{size // KIB}k-sequential", "clean", burst, size, order="sequential", depth=4)
    # Longer than any RAM: what the flash takes.
    add("write-1024k-long", "clean", 128, MIB, order="sequential", depth=4)
    if buffer:
        larger = -(-(buffer + buffer // 2) // unit) * unit
        if larger <= capacity_bytes // 64:
            add("write-over-buffer", "clean", 16, larger)
    # Overwriting: cleaning begins, and grows as the spare space is used up.
    # A log-block drive merges as soon as its logs are full, and takes long for it.
    shares = (0.2, 0.05, 0.05) if word(findings, "mapping") == "log-block" else (0.5, 0.5, 0.5)
    for part, overwrites in enumerate(shares if mode == "full" else shares[:1]):
        made.append(
            Pattern(
                f"overwrite-{part + 1}",
                "used",
                0,
                (64 * KIB,),
                depth=8,
                overwrites=overwrites,
                align_bytes=max(4 * KIB, block_bytes),
                seed=seed,
            )
        )
    add("used-write-4k", "used", 3000, small, align_bytes=small)
    add("used-write-4k-16-deep", "used", 3000, small, align_bytes=small, depth=16)
    add("used-write-unit", "used", 2000, unit)
    add("used-write-256k", "used", 500, 256 * KIB, align_bytes=small, depth=4)
    add("used-read-4k", "used", 600, small, reads=1.0, align_bytes=small)
    add("used-read-64k-16-deep", "used", 600, 64 * KIB, reads=1.0, align_bytes=small, depth=16)
    sizes = (small, 16 * KIB, 64 * KIB)
    add("used-mixed", "used", 4000, sizes, reads=0.5, align_bytes=small, depth=4)
    add("used-mixed-16-deep", "used", 4000, sizes, reads=0.5, align_bytes=small, depth=16)
    add("used-mixed-single", "used", 2000, sizes, reads=0.7, align_bytes=small)
    add("used-write-64k-flush", "used", 300, 64 * KIB, align_bytes=small, flush=True)
    add("used-write-1m-sequential", "used", 200, MIB, order="sequential", depth=2)
    return tuple(made)


def _few(size_bytes: int) -> int:
    """How many requests of a size show what one takes: long ones meet all units, so that few do."""
    return min(max(16 * MIB // size_bytes, 40), 200)


def unit_of(findings: Mapping[str, Finding], block_bytes: int) -> int:
    """The clustered page, or 4 KiB where it is not known, in whole blocks."""
    unit = int(number(findings, "clustered-page") or number(findings, "stripe") or 4 * KIB)
    return max(unit // block_bytes, 1) * block_bytes
