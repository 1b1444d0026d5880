"""How far a start by construction shortens the way to the settled state.

    python experiments/settling/construction.py

Under uniform writes and FIFO cleaning the valid share of a block falls exponentially with its age, from one to the
share v at which it is cleaned, and the utilisation is (1 - v) / -ln v (Desnoyers, SYSTOR 2012; greedy cleaning comes
close). Host writes alone can build that state, without any cleaning: stripe after stripe, oldest first, each holds as
many pages that stay valid as its age says, and the rest of it is pages that a later stripe writes again. Then uniform
writes follow. The figures say how much of the capacity they wrote until write amplification stayed within 3 % of its
settled value, for starts in order, at random and by construction; windows are a quarter of the capacity.
"""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

from flashwright import Ssd, workloads

GEOMETRY = {
    "geometry.channels": 2,
    "geometry.dies-per-channel": 2,
    "geometry.blocks-per-plane": 256,
    "geometry.pages-per-block": 64,
    "timing.model": "none",
}
PLANES, BLOCKS, BLOCK_PAGES = 4, 256, 64
# Blocks of each plane that the construction leaves erased.
FREE = 4
Pages = npt.NDArray[np.int64]


def cleaned_at(utilization: float) -> float:
    """The valid share at which a block is cleaned."""
    low, high = 1e-6, 1 - 1e-9
    for _ in range(200):
        middle = (low + high) / 2
        if (1 - middle) / -math.log(middle) < utilization:
            low = middle
        else:
            high = middle
    return low


def constructed(logical: int, rng: np.random.Generator) -> Pages:
    """Host writes that leave the stationary distribution of valid pages behind."""
    stripe = PLANES * BLOCK_PAGES
    stripes = BLOCKS - FREE
    age = (stripes - np.arange(stripes)) / stripes
    valid = stripe * cleaned_at(logical / (stripes * stripe)) ** age
    stays = np.clip(np.round(valid * logical / valid.sum()).astype(int), 0, stripe)
    order, at, written = rng.permutation(logical), 0, []
    for count in stays:
        own, at = order[at : at + count], at + int(count)
        later = order[at:]
        again = rng.choice(later, stripe - len(own)) if len(later) else later
        part = np.concatenate([own, again])
        rng.shuffle(part)
        written.append(part)
    return np.concatenate([*written, order[at:]])


def needed(ssd: Ssd, head: Pages, tail: Pages, settled: float, folder: Path) -> float:
    """Host pages after the start until write amplification stays within 3 %, over the logical pages."""
    path = folder / "start.spc"
    pages = np.concatenate([head, tail])
    path.write_text(
        "".join(f"0,{page * 8},4096,w,{n * 1e-6:.6f}\n" for n, page in enumerate(pages))
    )
    logical = len(tail) // 4
    run = ssd.play(
        workloads.trace(path, addresses="wrap"), window=f"requests={logical // 16}", depth=1
    )
    programs = np.cumsum(run.windows["programs"].to_numpy())
    host = np.cumsum(run.windows["pages_written"].to_numpy())
    found = (programs[4:] - programs[:-4]) / (host[4:] - host[:-4])
    off = np.flatnonzero(np.abs(found / settled - 1) > 0.03)
    return float(max(0, host[4:][off[-1]] - len(head)) / logical) if len(off) else 0.0


def main() -> None:
    """A line for each victim policy and utilisation."""
    rng = np.random.default_rng(1)
    print("victim  utilization  WA     start: capacities of the start + needed after it")
    with tempfile.TemporaryDirectory() as folder:
        for victim in ("greedy", "fifo"):
            for utilization in (0.7, 0.8, 0.9):
                settings = {"capacity.utilization": utilization, "gc.victim": victim}
                ssd = Ssd.named("default").with_(GEOMETRY | settings)
                logical = int(PLANES * BLOCKS * BLOCK_PAGES * utilization)
                settled = (
                    ssd.precondition("workload")
                    .play("uniform:write=1", requests=10 * logical, seed=9)
                    .write_amplification
                )
                assert settled is not None
                tail = rng.integers(0, logical, 4 * logical)
                starts = {
                    "in order": np.arange(logical),
                    "random": rng.permutation(logical),
                    "constructed": constructed(logical, rng),
                }
                costs = ", ".join(
                    f"{name} {len(head) / logical:.2f} + {needed(ssd, head, tail, settled, Path(folder)):.2f}"
                    for name, head in starts.items()
                )
                print(f"{victim:6}  {utilization:11}  {settled:.3f}  {costs}", flush=True)


if __name__ == "__main__":
    main()
