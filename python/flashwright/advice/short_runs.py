"""Which requests suit a drive that is a model: short runs of the model itself, over sizes and queue depths.

What ``characterize`` and the probe best-request measure on a drive takes minutes there. A model can be asked in a
second: it is filled once, and each point begins with a copy of it. A large page-mapped drive is asked with fewer blocks
in each plane.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from flashwright.characterization.depth_and_size import SATURATED, Grid, judge_grid
from flashwright.drive.findings import Finding, unknown
from flashwright.errors import FlashwrightError
from flashwright.report import text
from flashwright.simulation.run import Run, RunSettings
from flashwright.simulation.ssd import Ssd
from flashwright.support.core import _core
from flashwright.target.arrays import Array
from flashwright.target.question import kib
from flashwright.traces import workloads
from flashwright.twin.description import write_buffers

__all__ = ["SOURCE", "best_request"]

SOURCE = "short runs of the model"
"""Where this finding comes from, for advice that rests on it."""

# Sizes of requests, KiB.
_SIZES_KIB = (4, 16, 64, 256)
# Queue depths.
_DEPTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
# Requests of a point, at most: between seeds rates differ by less than 3 %, where a depth is chosen by 5 %.
_REQUESTS = 32_000
# Bytes of a point, at most. Chosen: large requests move no more than small ones, and all points take seconds.
_BYTES_MOST = 512 << 20
# Requests of a point in times of the depth, at least. Chosen: the queue is full many times over.
_TIMES_DEPTH = 64
# Writes before those that are measured, in times of what RAM holds. Chosen: RAM is full then.
_FILLS = 1.5
# The same in requests, at most.
_WARMUP_MOST = 50_000
# Depths at which the rate is told, beside the one that is advised.
_SHOWN = (1, 8, 32, 128)
# Physical pages of the drive that is played, and blocks in each of its planes, at least. Dies, buses and the spare
# share decide which requests suit a drive, not how many blocks a plane has: of drives of 2012 and of today the depths
# and sizes are the same, and rates differ by less than 1 %.
_PAGES_PLAYED, _BLOCKS_PLAYED = 1 << 22, 256
# Requests, or pages of a fill, between two looks for Ctrl-C.
_STEP = 1 << 20

_Kind = Literal["read", "write"]
_KINDS: tuple[_Kind, ...] = ("read", "write")


def best_request(ssd: Ssd) -> Finding:
    """The least depth at which requests of each size come within 5 % of their highest rate, and the size to send.

    Parameters
    ----------
    ssd : Ssd
        The drive.

    Returns
    -------
    Finding
        Of the parameter ``best-request``, with the figures that the probe of that name has, and ``share_of_peak``;
        unknown on a drive without times.

    Examples
    --------
    >>> found = best_request(Ssd.named("default").with_(blocks_per_plane=32))
    >>> found.verdict, found.figures["depth_of_reads_of_4096_bytes"] > 8
    ('found', True)
    >>> best_request(Ssd.named("default").with_({"timing.model": "none"})).verdict
    'unknown'
    """
    if ssd.config["timing"]["model"] == "none":
        return unknown("best-request", "the drive has no times (timing.model = none)", "B")
    # Data lie as a host leaves them; where blocks are merged, filling in random order would take long.
    is_page_mapped = ssd.config["ftl"]["scheme"] in ("page", "dftl")
    base = _with_fewer_blocks(ssd).precondition("random" if is_page_mapped else "sequential")
    held = max(map(_core.size_read, write_buffers(ssd.config).values()))
    shared = _core.SharedDrive()
    figures: dict[str, float] = {"share_of_peak": SATURATED}
    grids, descriptions = [], []
    try:
        for kind in _KINDS:
            grid = _grid(base, kind, held if kind == "write" else 0, shared)
            grids.append(grid)
            rates = grid.bandwidth_bytes_per_s / grid.size_bytes[:, None]
            for size, depth in zip(grid.size_bytes, grid.saturation_depth, strict=True):
                figures[f"depth_of_{kind}s_of_{size}_bytes"] = float(depth)
            descriptions.append(_describe(grid, rates[0]))
    except FlashwrightError as error:
        return unknown(
            "best-request", f"the model can't be played: {str(error).splitlines()[0]}", "B"
        )
    figures["best_size_bytes"] = float(max(grid.best_size_bytes for grid in grids))
    figures["best_depth_requests"] = float(max(grid.best_depth for grid in grids))
    return Finding(
        "best-request",
        "found",
        int(figures["best_size_bytes"]),
        "B",
        confidence=1.0,
        why=f"{'; '.join(descriptions)} (by {SOURCE})",
        figures=figures,
    )


def _with_fewer_blocks(ssd: Ssd) -> Ssd:
    """The same dies and the same share of spare space, with fewer blocks in each plane; or the drive itself.

    Only where pages are mapped without a map cache and no block is written with one bit a cell: maps, logs and such
    caches would not shrink, or change what is measured if they do.
    """
    config = ssd.config
    blocks, capacity = config["geometry"]["blocks-per-plane"], config["capacity"]
    capacity_bytes, _, pages = _core.config_check(ssd.toml)
    fewer = max(blocks * _PAGES_PLAYED // pages, _BLOCKS_PLAYED)
    if config["ftl"]["scheme"] != "page" or config["slc"]["cache"] != "none" or fewer >= blocks:
        return ssd
    settings: dict[str, int | str] = {"geometry.blocks-per-plane": fewer}
    if capacity.get("logical") is not None:
        settings["capacity.logical"] = f"{capacity_bytes * fewer // blocks >> 20} MiB"
    return ssd.with_(settings)


def _grid(base: Ssd, kind: _Kind, held: int, shared: _core.SharedDrive) -> Grid:
    """Random requests of one kind at every size and depth; sizes too large for the drive are left out.

    `held` are the bytes that RAM holds, which is filled before.
    """
    capacity = _core.config_check(base.toml)[0]
    sizes: list[int] = []
    rates: list[list[float]] = []
    means: list[list[float]] = []
    for size in (each << 10 for each in _SIZES_KIB):
        if sizes and size > capacity // 8:
            break
        points = [_point(base, kind, size, depth, held, shared) for depth in _DEPTHS]
        sizes.append(size)
        rates.append([rate * size for rate, _ in points])
        means.append([mean for _, mean in points])
    return judge_grid(kind, np.array(sizes), np.array(_DEPTHS), np.array(rates), np.array(means))


def _point(
    base: Ssd, kind: _Kind, size: int, depth: int, held: int, shared: _core.SharedDrive
) -> tuple[float, float]:
    """Requests a second, and their mean response time in nanoseconds."""
    source = workloads.uniform(write=float(kind == "write"), size=f"{size}B")
    requests = max(min(_REQUESTS, _BYTES_MOST // size), _TIMES_DEPTH * depth)
    warmup = min(round(_FILLS * held) // size, _WARMUP_MOST)
    settings = RunSettings(requests=requests, warmup=warmup, depth=depth, window="off")
    run = Run.create(base.toml, base.preconditioning or "empty", source, settings, shared=shared)
    while not run.step(_STEP):
        pass
    result = run.result()
    assert result is not None, "what was played to its end was measured"
    rate, mean = result.json["throughput"]["iops"], result.json["response_time_ns"]["all"]["mean"]
    assert rate is not None and mean is not None, "the drive has times"
    return rate, mean


def _describe(grid: Grid, rates: Array) -> str:
    """The rate at some depths, and the response time at the last of them."""
    shown = [
        at
        for at, depth in enumerate(_DEPTHS)
        if depth in _SHOWN or depth == grid.saturation_depth[0]
    ]
    each = ", ".join(
        f"{rates[at]:,.0f} with {_DEPTHS[at]} ({text.time_ns(grid.response_mean_ns[0, at])})"
        for at in shown
    )
    return (
        f"{grid.kind}s of {kib(int(grid.size_bytes[0]))} a second, and their mean response: {each}"
    )
