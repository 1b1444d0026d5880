"""Types of the arrays that measurements come in, and units of sizes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["GIB", "KIB", "MIB", "Array", "Flags", "Ints"]

# Binary units, bytes.
KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30

Array = npt.NDArray[np.float64]
"""Times in nanoseconds, rates, shares."""
Ints = npt.NDArray[np.int64]
"""Offsets in bytes, places, counts."""
Flags = npt.NDArray[np.bool_]
"""One truth for each request, or place."""
