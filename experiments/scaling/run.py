"""How a sweep scales from one process to several, and what a point costs beside the run itself.

    python experiments/scaling/run.py [--jobs 2] [--repeat 3] [--points 40] [--tiny 2000]

Scaling: the same points of about a second each on one process and on several, in turn, so that whatever else the
machine does hits both. Beside the ratio of wall-clock times stands the share of the processes' time that went into
runs. ``--repeat 0`` leaves this part out.
Overhead: points of some milliseconds each; processor time of everything, less that of the runs, over the points.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from flashwright import Ssd, SweepResult
from flashwright.simulation.run import RunSettings
from flashwright.sweeps.combinations import Description
from flashwright.sweeps.points import Outcome, Store
from flashwright.sweeps.sweep import Sweep
from flashwright.traces.workloads import uniform

SMALL = Ssd.named("default").with_(
    {
        "geometry.channels": 2,
        "geometry.dies-per-channel": 1,
        "geometry.blocks-per-plane": 64,
        "geometry.pages-per-block": 32,
        "capacity.utilization": 0.8,
    }
)


def described(ssd: Ssd, requests: int, seeds: int) -> Sweep:
    """So many runs that differ in their seed."""
    settings = RunSettings(requests=requests, depth=4)
    return Sweep.of(
        Description(ssd.precondition("random"), uniform(), settings, range(1, seeds + 1), [{}])
    )


def timed(sweep: Sweep, jobs: int) -> tuple[float, float, float, SweepResult]:
    """Seconds on the clock, of the runs, and of all processors."""
    ran = 0.0

    def note(outcome: Outcome, finished: int, total: int) -> None:
        nonlocal ran
        ran += outcome.seconds

    with TemporaryDirectory() as folder:
        store = Store(Path(folder))
        before, began = used(), time.monotonic()
        found = sweep.run(store, jobs=jobs, progress=note)
        return time.monotonic() - began, ran, used() - before, found


def used() -> float:
    """Processor seconds of this process and of those that have ended."""
    mine, theirs = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return mine.ru_utime + mine.ru_stime + theirs.ru_utime + theirs.ru_stime


def scaling(jobs: int, repeat: int, points: int) -> None:
    """Print the ratio of one process's time to several's."""
    sweep = described(SMALL, 5_000_000, points)
    ratios = []
    for _ in range(repeat):
        digests = set()
        walls = {}
        for count in (1, jobs):
            wall, ran, total, found = timed(sweep, count)
            walls[count] = wall
            digests.add(found.digest)
            print(
                f"{count} processes: {wall:.2f} s, runs {ran:.2f} s of processor time "
                f"({ran / points:.2f} s each), {ran / (count * wall):.1%} of the processes' time; "
                f"all else {total - ran:.2f} s of processor time"
            )
        assert len(digests) == 1, "the number of processes changed the result"
        ratios.append(walls[1] / walls[jobs])
        print(f"  {ratios[-1]:.2f} times as fast")
    print(
        f"1 to {jobs} processes: median {statistics.median(ratios):.2f}, best {max(ratios):.2f} of {repeat}"
    )


def overhead(jobs: int, points: int) -> None:
    """Print what a point costs beside its run."""
    starts = min(timed(described(SMALL, 100, jobs), jobs)[2] for _ in range(2))
    wall, ran, total, found = timed(described(SMALL, 1000, points), jobs)
    began = time.process_time()
    assert found.table.num_rows == points
    gathered = time.process_time() - began
    print(
        f"{points} points on {jobs} processes: {wall:.2f} s, of which runs took {ran:.2f} s of processor time "
        f"({ran / points * 1e3:.2f} ms each); all else {(total - ran) / points * 1e3:.2f} ms a point, without the "
        f"start of processes {(total - ran - starts) / points * 1e3:.2f} ms; the table {gathered / points * 1e3:.2f} ms"
    )
    print(
        f"  {(wall * jobs - ran) / points * 1e3:.2f} ms of each process's clock a point beside the run"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--points", type=int, default=40)
    parser.add_argument("--tiny", type=int, default=2000)
    chosen = parser.parse_args()
    overhead(chosen.jobs, chosen.tiny)
    if chosen.repeat > 0:
        scaling(chosen.jobs, chosen.repeat, chosen.points)
