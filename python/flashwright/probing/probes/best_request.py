"""The request size and queue depth that give the peak's bandwidth with the least response time.

Hu 2012, dissertation, section 4.2.6, Figures 4.10 to 4.12; the measurement is that of ``characterize``.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from flashwright.characterization.base import Bench, too_small
from flashwright.characterization.depth_and_size import DepthAndSize, DepthAndSizeResult, Grid
from flashwright.drive.findings import Finding, Mark, Plot, Series, unknown
from flashwright.probing.probes.shared import verdicts
from flashwright.target.question import Context, Cost, kib

__all__ = ["BestRequest"]

# The highest bandwidth over the lowest, below which a grid has no best point. Chosen: bandwidths of repeated runs
# differ by less on an idle drive.
_FLAT = 1.05


class BestRequest:
    """Which requests a host should send."""

    NAME: ClassVar[str] = "best-request"
    ABOUT: ClassVar[str] = (
        "Random reads and writes over sizes and queue depths: the shortest response time at 90 % of the peak "
        "bandwidth (Hu 2012, "
        "section 4.2.6)."
    )
    PARAMETERS: ClassVar[tuple[str, ...]] = ("best-request",)

    def cost(self, context: Context) -> Cost:
        """What the experiment asks."""
        return DepthAndSize().estimate(_bench(context))

    def run(self, context: Context) -> list[Finding]:
        """Carry the experiment out and read the best pair from its grids."""
        small = too_small(context.target)
        if small is not None:
            return [unknown("best-request", f"the target is too small: {small}", "B")]
        bench = _bench(context)
        bench.begin(DepthAndSize().estimate(bench))
        result: DepthAndSizeResult | None = None
        for part in DepthAndSize().run(bench):
            result = part
        assert result is not None and len(result.grids) == 2, "reads and writes were carried out"
        return [_finding(result.grids)]


def _bench(context: Context) -> Bench:
    return Bench(context.target, context.mode, context.seed, context.known, context.progress)


def _finding(grids: tuple[Grid, ...]) -> Finding:
    plots = tuple(_plot(grid) for grid in grids)
    for grid in grids:
        if grid.bandwidth_bytes_per_s.max() < _FLAT * grid.bandwidth_bytes_per_s.min():
            why = f"{grid.kind}s have the same bandwidth at every size and depth"
            return unknown("best-request", why, "B", plots)
    # A host sends both kinds the same way: what the needier one needs.
    size = max(grid.best_size_bytes for grid in grids)
    depth = max(grid.best_depth for grid in grids)
    pairs = ", ".join(
        f"{grid.kind}s {kib(grid.best_size_bytes)} with {grid.best_depth} outstanding"
        for grid in grids
    )
    return verdicts.found(
        "best-request",
        size,
        "B",
        None,
        _sureness(grids),
        f"shortest response at 90 % of the highest bandwidth: {pairs}",
        plots,
        {"best_size_bytes": size, "best_depth_requests": depth} | _depths(grids),
    )


# Share of a size's own highest bandwidth from which on a depth is enough, as the experiment has it.
_NEAR_PEAK = 0.9


def _depths(grids: tuple[Grid, ...]) -> dict[str, float]:
    """The least depth at which requests of each kind and size reach nine tenths of what that size reaches at most.

    The best pair is about one size; small requests need more of them outstanding.
    """
    return {
        f"depth_of_{grid.kind}s_of_{size}_bytes": float(
            grid.depth[int((row >= _NEAR_PEAK * np.nanmax(row)).argmax())]
        )
        for grid in grids
        for size, row in zip(grid.size_bytes.tolist(), grid.bandwidth_bytes_per_s, strict=True)
    }


def _sureness(grids: tuple[Grid, ...]) -> float:
    """How far the chosen points are from the border of 90 %: a half if they lie on it, 1 from 95 % on."""
    surest = 1.0
    for grid in grids:
        i = int((grid.size_bytes == grid.best_size_bytes).argmax())
        j = int((grid.depth == grid.best_depth).argmax())
        share = grid.bandwidth_bytes_per_s[i, j] / grid.bandwidth_bytes_per_s.max()
        surest = min(surest, 0.5 + min((share - 0.9) / 0.05, 1.0) / 2)
    return float(surest)


def _plot(grid: Grid) -> Plot:
    series = tuple(
        Series(kib(size), grid.depth.astype(float), row, "line")
        for size, row in zip(grid.size_bytes.tolist(), grid.bandwidth_bytes_per_s, strict=True)
    )
    return Plot(
        f"Random {grid.kind}s: bandwidth by queue depth, one line per size",
        "requests outstanding [requests]",
        "bandwidth [B/s]",
        series,
        (Mark(float(grid.best_depth), f"{kib(grid.best_size_bytes)}"),),
        x_log=True,
    )
