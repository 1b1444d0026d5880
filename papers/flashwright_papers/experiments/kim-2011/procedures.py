"""Procedures 3 to 6 of Kim et al. (2011), line by line as they are printed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flashwright import Ssd
from flashwright.target.target import Target

Row = dict[str, Any]


KIB = 1024


MIB = 1 << 20


def buffers(drive: str, way: str, sizes_kib: Sequence[int], again: int) -> Row:
    """Procedures 3 and 4 (reads) or 5 and 6 (writes) as printed: latencies served by the buffer and by the flash.

    Before each read the buffer is filled by reading 16 MiB from afar, as in lines 5 to 7; for Buffer the read comes
    twice and the second counts. Before each write the drive is flushed, and for NAND 16 MiB are written elsewhere.
    """
    far, rng = 16 * MIB, np.random.default_rng(13)
    curves: dict[str, list[float]] = {"nand": [], "buffer": []}

    def one(target: Target, kind: str, offset: int, size: int) -> float:
        times = target.play(kind, [offset], size)  # type: ignore[arg-type]
        return float(times.ended_ns[-1] - times.submitted_ns[0])

    with Target(Ssd.named(drive)) as target:
        target.fill()
        for size in np.array(sizes_kib) * KIB:
            for name, curve in curves.items():
                taken = []
                for _ in range(again):
                    if way == "read":
                        one(target, "read", 1024 * MIB + int(rng.integers(0, 1024)) * far, far)
                        place = int(rng.integers(0, 63)) * far
                        if name == "buffer":
                            one(target, "read", place, int(size))
                        taken.append(one(target, "read", place, int(size)))
                    else:
                        target.flush()
                        if name == "nand":
                            one(target, "write", far, far)
                        taken.append(one(target, "write", 0, int(size)))
                curve.append(float(np.mean(taken)))
        seconds = target.elapsed_ns * 1e-9
    return {"drive": drive, "way": way, "size_kib": list(sizes_kib), "drive_s": seconds} | curves
