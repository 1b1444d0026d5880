"""Chapter 4 of Hu's dissertation and the abstract of Hu, Jiang and Manden: what drives do as they fill, on the bundled
models of the four drives, claim by claim.

README.md beside this file says how the models were scaled and where they differ.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from flashwright import Ssd
from flashwright.characterize.base import Settings
from flashwright.characterize.depth_and_size import DepthAndSizeResult
from flashwright.characterize.fills import RANGES, FillsResult
from flashwright.characterize.session import characterize
from flashwright.characterize.unpredictability import UnpredictabilityResult
from flashwright.target import Target

HERE = Path(__file__).parent
Row = dict[str, Any]

PAGE_MAPPED = ("intel-320", "samsung-470", "fusion-iodrive")
LOG_BLOCK = "ocz-vertex-3"
# Drive fills: the dissertation's.
FILLS = dict.fromkeys(PAGE_MAPPED, 6) | {LOG_BLOCK: 3}
# Logical over physical size, to find the spare space at which each falls to what was published.
UTILIZATIONS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.92)
# A far read takes longer than so many of the first phase's 99th percentile.
FAR = 1.5
PUBLISHED = {"intel-320": 0.12, "fusion-iodrive": 0.30}
GOOD, PARTLY, BAD = "reproduced", "in part", "not"


def drive(name: str, per_cent: float, utilization: float | None = None) -> Ssd:
    """A bundled drive with fewer blocks a plane and the same share of spare space, or another share."""
    whole = Ssd.named(name)
    config = whole.config
    g = config["geometry"]
    blocks = int(g["blocks-per-plane"] * per_cent // 100)
    logical_kib = int(config["capacity"]["logical"].split()[0]) * per_cent // 100
    if utilization is not None:
        dies = g["channels"] * g["dies-per-channel"] * g["planes-per-die"]
        page_kib = int(g["page-size"].split()[0])
        logical_kib = int(
            dies * blocks * g["pages-per-block"] * page_kib * utilization // page_kib * page_kib
        )
    return whole.with_(
        {"geometry.blocks-per-plane": blocks, "capacity.logical": f"{int(logical_kib)} KiB"}
    )


def play(job: Row) -> list[Row]:
    """One experiment on one drive; a row for each of its curves, phases or points."""
    began = time.process_time()
    settings = Settings(fills=job["fills"], ranges=job["ranges"], prefill=job["prefill"])
    ssd = drive(job["drive"], job["per_cent"], job["utilization"])
    mode = "quick" if job["quick"] else "full"
    with Target(ssd, seed=job["seed"]) as target:
        found = characterize(
            target, [job["experiment"]], mode=mode, seed=job["seed"], settings=settings
        )
    result = found.result(job["experiment"])
    head = {"part": job["part"], "drive": job["drive"], "prefilled": int(job["prefill"])}
    if isinstance(result, FillsResult):
        rows = fill_rows(result)
    elif isinstance(result, UnpredictabilityResult):
        rows = read_rows(result)
    else:
        assert isinstance(result, DepthAndSizeResult)
        rows = grid_rows(result)
    seconds = time.process_time() - began
    more = {} if job["utilization"] is None else {"utilization": job["utilization"]}
    return [head | more | row | {"cpu_s": seconds / len(rows)} for row in rows]


def fill_rows(result: FillsResult) -> list[Row]:
    rows = []
    for curve in result.curves:
        before = int(0.95 * (100 if np.isnan(curve.knee) else 100 * curve.knee))
        share = curve.bandwidth_bytes_per_s / curve.peak_bytes_per_s
        rows.append(
            {
                "range": curve.range_share,
                "peak_mb_per_s": curve.peak_bytes_per_s / 1e6,
                "rho": curve.rho,
                "rho_third_capacity": float(np.median(share[250:300])),
                "knee_capacities": curve.knee,
                "deviation_before_knee": float(np.abs(share[:before] - 1).max()),
                "slow_share": curve.slow_share,
                "spike_share": curve.spike_share,
                "largest_over_mean": float(
                    curve.response_max_ns[-100:].max() / curve.response_mean_ns[-100:].mean()
                ),
                "in_order_mb_per_s": result.in_order_bytes_per_s / 1e6,
                "mapping": result.mapping,
            }
        )
    return rows


def read_rows(result: UnpredictabilityResult) -> list[Row]:
    rows = []
    for each in result.ranges:
        # Where hardly a read of the first phase is: slow ones are beyond.
        far_ns = FAR * each.p99_ns[0]
        outside = each.edges_ns[:-1] >= far_ns
        for phase in range(3):
            far = each.peaks[phase] >= far_ns
            rows.append(
                {
                    "range": each.range_share,
                    "phase": phase + 1,
                    "reads": int(each.reads[phase]),
                    "mean_ms": each.mean_ns[phase] / 1e6,
                    "deviation_ms": each.deviation_ns[phase] / 1e6,
                    "p99_ms": each.p99_ns[phase] / 1e6,
                    "distance": each.distance[phase],
                    "peaks": int(far.size),
                    "highest_per_ms": float(each.density[phase].max() * 1e6),
                    "far_peaks": int(far.sum()),
                    "far_peak_ms": float(each.peaks[phase][far][-1] / 1e6) if far.any() else 0.0,
                    "far_peak_per_ms": float(each.peak_heights[phase][far].max() * 1e6) if far.any() else 0.0,
                    "far_share": float((each.density[phase] * np.diff(each.edges_ns))[outside].sum()),
                    "verdict": each.verdict,
                }
            )  # fmt: skip
    return rows


def grid_rows(result: DepthAndSizeResult) -> list[Row]:
    rows = []
    for grid in result.grids:
        for i, size in enumerate(grid.size_bytes):
            for j, depth in enumerate(grid.depth):
                rows.append(
                    {
                        "kind": grid.kind,
                        "size_kib": int(size) // 1024,
                        "depth": int(depth),
                        "mb_per_s": grid.bandwidth_bytes_per_s[i, j] / 1e6,
                        "response_us": grid.response_mean_ns[i, j] / 1e3,
                        "saturation_depth": int(grid.saturation_depth[i]),
                        "slope_us": grid.slope_ns[i] / 1e3,
                        "linearity": grid.linearity[i],
                        "best": int(size == grid.best_size_bytes and depth == grid.best_depth),
                    }
                )
    return rows


def jobs(given: argparse.Namespace) -> list[Row]:
    """Every run there is to do."""
    common = {
        "per_cent": given.per_cent, "quick": given.quick, "seed": given.seed, "utilization": None, "prefill": False,
        "ranges": (0.1, 0.5, 1.0) if given.quick else RANGES,
    }  # fmt: skip
    listed = []
    for name in (*PAGE_MAPPED, LOG_BLOCK):
        fills = common | {
            "part": "fills",
            "experiment": "fills",
            "drive": name,
            "fills": FILLS[name],
        }
        if given.quick:
            fills["fills"] = 3
        listed.append(fills)
        if name == LOG_BLOCK:
            listed.append(fills | {"prefill": True})
            continue
        listed.append(fills | {"part": "reads", "experiment": "unpredictability"})
        listed.append(fills | {"part": "depth-and-size", "experiment": "depth-and-size"})
        if name in PUBLISHED:
            listed += [
                fills | {"part": "spare", "ranges": (1.0,), "utilization": u}
                for u in UTILIZATIONS[:: 3 if given.quick else 1]
            ]
    wanted = (given.only or [], given.drive or [])
    return [
        job
        for job in listed
        if (not wanted[0] or job["part"] in wanted[0])
        and (not wanted[1] or job["drive"] in wanted[1])
    ]


# Claims -------------------------------------------------------------------------------------------


def grade(*held: bool) -> str:
    """All, some or none of what a claim says."""
    return GOOD if all(held) else PARTLY if any(held) else BAD


def band(value: float, published: float) -> bool:
    """Within ten points, or a third, of a published share."""
    return abs(value - published) <= max(0.1, 0.3 * published)


def example(reserved: int) -> float:
    """Figure 4.2: 24 pages of flash in six blocks, `reserved` of them written once, then updates until it is full.

    The updates hit the first blocks one after the other; a victim is a block that holds invalid pages.
    """
    first, updates = reserved // 4, 24 - reserved
    invalid = [updates // first + (block < updates % first) for block in range(first)]
    victims = [count / 4 for count in invalid if count]
    return sum(victims) / len(victims)


def of(rows: Sequence[Row], part: str, drive: str, **where: object) -> list[Row]:
    """Rows of a part and a drive, in their order."""
    return [
        row
        for row in rows
        if row["part"] == part
        and row["drive"] == drive
        and all(row[key] == value for key, value in where.items())
    ]


def at(rows: Sequence[Row], share: float, key: str) -> list[Any]:
    """A column at one range."""
    return [row[key] for row in rows if row["range"] == share]


def per_cent(values: Sequence[float]) -> str:
    return ", ".join(f"{100 * value:.0f}" for value in values)


def short(name: str) -> str:
    return name.split("-")[0].capitalize()


def judge(rows: Sequence[Row]) -> list[Row]:
    """The claims with what was found."""
    claims: list[Row] = []

    def claim(name: str, what: str, found: str, verdict: str) -> None:
        claims.append({"claim": name, "source says": what, "found": found, "verdict": verdict})

    fills = {name: of(rows, "fills", name) for name in PAGE_MAPPED}
    reads = {name: of(rows, "reads", name) for name in PAGE_MAPPED}
    judge_fills(claim, rows, fills)
    judge_log_block(claim, rows, fills)
    judge_reads(claim, reads)
    judge_grids(claim, {name: of(rows, "depth-and-size", name) for name in PAGE_MAPPED})
    by_name = {each["claim"]: each["verdict"] for each in claims}
    order = (GOOD, PARTLY, BAD)
    for name, what, parts in (
        ("H2", "as D4.1 and D4.2, Intel and ioDrive", ("D4.1", "D4.2")),
        ("H4", "as D4.8 and D4.9, Intel and ioDrive", ("D4.8", "D4.9")),
    ):
        worst = max((by_name[part] for part in parts), key=order.index)
        claim(name, what, "; ".join(f"{part} {by_name[part]}" for part in parts), worst)
    claim("H1", "GC efficiency is the share of invalid pages in an erased block", "a definition, as D4.3 uses it",
          GOOD)  # fmt: skip
    return sorted(
        claims, key=lambda each: (each["claim"][0], int(each["claim"].lstrip("DH").split(".")[-1]))
    )


Claim = Callable[[str, str, str, str], None]


def judge_fills(claim: Claim, rows: Sequence[Row], fills: dict[str, list[Row]]) -> None:
    deviations = {
        name: max(row["deviation_before_knee"] for row in found) for name, found in fills.items()
    }
    peaks = {
        name: max(row["peak_mb_per_s"] for row in found) / min(row["peak_mb_per_s"] for row in found) - 1
        for name, found in fills.items()
    }  # fmt: skip
    claim(
        "D4.1", "bandwidth constant and equal for all P until one capacity is written",
        "; ".join(f"{short(name)}: {100 * deviations[name]:.1f} % at most before 95 % of the knee, peaks within "
                  f"{100 * peaks[name]:.1f} %" for name in fills),
        grade(*(each < 0.03 for each in (*deviations.values(), *peaks.values()))),
    )  # fmt: skip
    texts, held = [], []
    for name, found in fills.items():
        rho = [row["rho"] for row in found]
        knees = [row["knee_capacities"] for row in found if not np.isnan(row["knee_capacities"])]
        texts.append(
            f"{short(name)}: {per_cent(rho)} % of the peak (P = {per_cent([row['range'] for row in found])} %), "
            f"falling from {min(knees):.2f} to {max(knees):.2f} capacities on"
        )
        held += [rho == sorted(rho, reverse=True), rho[0] >= 0.95, max(knees) - min(knees) <= 0.05]
        if name in PUBLISHED:
            held.append(band(rho[-1], PUBLISHED[name]))
            spare = of(rows, "spare", name)
            found_at = crossing(
                [row["utilization"] for row in spare], [row["rho"] for row in spare], PUBLISHED[name]
            )  # fmt: skip
            own = Ssd.named(name).config
            texts.append(
                f"{short(name)} comes to {100 * PUBLISHED[name]:.0f} % with "
                + ("no utilization tried" if np.isnan(found_at) else f"utilization {found_at:.3f}")
                + f" (the model has {utilization(own):.3f})"
            )
            held.append(not np.isnan(found_at))
    claim(
        "D4.2", "then down to 12 % (Intel) and 30 % (ioDrive) at P = 100 %; 10 % flat; others between, fall together",
        "; ".join(texts), grade(*held),
    )  # fmt: skip
    two = [example(16), example(20)]
    claim("D4.3", "GC efficiency 50 % with 66 % of the range in use, 25 % with 83 %",
          f"{100 * two[0]:.0f} and {100 * two[1]:.0f} %", grade(two == [0.5, 0.25]))  # fmt: skip
    slow = {name: [row["slow_share"] for row in found] for name, found in fills.items()}
    more = all(each[-1] > max(each[:-1]) for each in slow.values())
    iodrive = fills["fusion-iodrive"][-1]
    claim(
        "D4.4", "write responses at P = 100 %: high for most requests; ioDrive mostly low with high spikes",
        "above five times the first median: " + "; ".join(f"{short(n)} {per_cent(s)} % by P" for n, s in slow.items())
        + f"; ioDrive at the end: {100 * iodrive['spike_share']:.1f} % above five times their own median, largest "
        f"{iodrive['largest_over_mean']:.1f} times their mean",
        grade(more, slow["intel-320"][-1] > 0.5, slow["fusion-iodrive"][-1] < 0.5 and iodrive["spike_share"] > 0),
    )  # fmt: skip


def utilization(config: Row) -> float:
    """Logical over physical size of a drive's description."""
    g = config["geometry"]
    dies = g["channels"] * g["dies-per-channel"] * g["planes-per-die"]
    flash_kib = dies * g["blocks-per-plane"] * g["pages-per-block"] * int(g["page-size"].split()[0])
    return float(int(config["capacity"]["logical"].split()[0]) / flash_kib)


def crossing(x: Sequence[float], y: Sequence[float], level: float) -> float:
    """Where a falling curve crosses a level, between two points; NaN where it does not."""
    for (x0, y0), (x1, y1) in pairwise(zip(x, y, strict=True)):
        if y0 >= level >= y1:
            return x0 + (y0 - level) / (y0 - y1) * (x1 - x0)
    return float("nan")


def judge_log_block(claim: Claim, rows: Sequence[Row], fills: dict[str, list[Row]]) -> None:
    texts, held = [], []
    for prefilled in (0, 1):
        found = of(rows, "fills", LOG_BLOCK, prefilled=prefilled)
        rho = [row["rho"] for row in found]
        texts.append(
            f"{'filled before' if prefilled else 'new'}: {per_cent(rho)} % of the peak (P = "
            f"{per_cent([row['range'] for row in found])} %), {found[-1]['peak_mb_per_s']:.1f} MB/s at P = 100 % and "
            f"{found[-1]['in_order_mb_per_s']:.0f} in order, named {found[-1]['mapping']}"
        )
        held += [min(rho) >= 0.9, found[-1]["mapping"] == "log-block"]
    claim(
        "D4.5",
        "OCZ: bandwidth flat for all P over three capacities, so log-block",
        "; ".join(texts),
        grade(*held),
    )
    named = {name: found[-1]["mapping"] for name, found in fills.items()}
    claim("D4.6", "Intel, Samsung, ioDrive are page-mapped",
          "; ".join(f"{short(n)} named {m}" for n, m in named.items()),
          grade(*(m == "page" for m in named.values())))  # fmt: skip


def judge_reads(claim: Claim, reads: dict[str, list[Row]]) -> None:
    least = {name: at(found, 0.1, "verdict")[0] for name, found in reads.items()}
    change = {
        name: (at(found, 0.1, "mean_ms"), at(found, 0.1, "deviation_ms"), at(found, 0.1, "distance"))
        for name, found in reads.items()
    }  # fmt: skip
    claim(
        "D4.8", "reads among writes at P = 10 %: mean, deviation and density the same in all three capacities",
        "; ".join(
            f"{short(n)} {least[n]}: mean {'/'.join(f'{v:.2f}' for v in m)} ms, deviation "
            f"{'/'.join(f'{v:.2f}' for v in d)} ms, distance {max(k):.2f}"
            for n, (m, d, k) in change.items()
        ),
        grade(*(v == "stable" for v in least.values())),
    )  # fmt: skip
    texts, held = [], []
    for name, found in reads.items():
        mean, deviation, high = (
            at(found, 1.0, key) for key in ("mean_ms", "deviation_ms", "highest_per_ms")
        )
        texts.append(
            f"{short(name)}: mean {'/'.join(f'{v:.1f}' for v in mean)} ms, deviation "
            f"{'/'.join(f'{v:.1f}' for v in deviation)} ms, highest {'/'.join(f'{v:.3f}' for v in high)} a ms, beyond "
            f"{FAR} times the first 99 %: {per_cent(at(found, 1.0, 'far_share'))} %"
        )
        held += [
            bool(np.all(np.diff(mean) > 0)),
            bool(np.all(np.diff(deviation) > 0)),
            high[2] < high[0],
        ]
    claim("D4.9", "at P = 100 %: mean and deviation rise with the phase; density lower and to the right",
          "; ".join(texts), grade(*held))  # fmt: skip
    mean = at(reads["intel-320"], 1.0, "mean_ms")
    claim("D4.10", "Intel, P = 100 %: mean in the third capacity five times that in the first",
          f"{mean[2] / mean[0]:.1f} times", grade(3 <= mean[2] / mean[0] <= 8))  # fmt: skip
    texts, held = [], []
    spikes = {}
    for share in (0.5, 0.7):
        found = [row for row in reads["intel-320"] if row["range"] == share and row["phase"] > 1]
        spikes[share] = found
        texts.append(
            f"{100 * share:.0f} %: "
            + ", ".join(
                f"{row['far_peaks']} at {row['far_peak_ms']:.0f} ms ({row['far_peak_per_ms']:.3f} a ms, "
                f"{100 * row['far_share']:.0f} % of reads beyond)"
                for row in found
            )
        )
    held = [
        all(row["far_peaks"] >= 1 for row in spikes[0.5]),
        all(
            b["far_peak_per_ms"] > a["far_peak_per_ms"]
            for a, b in zip(spikes[0.5], spikes[0.7], strict=True)
        ),
        all(b["far_share"] > a["far_share"] for a, b in zip(spikes[0.5], spikes[0.7], strict=True)),
    ]
    claim("D4.11", "Intel: two spikes in the second and third capacity at 50 %, much higher ones at 70 %",
          "; ".join(texts), grade(*held))  # fmt: skip


def judge_grids(claim: Claim, grids: dict[str, list[Row]]) -> None:
    saturated, at_64, lines, best = [], [], [], []
    held: dict[str, list[bool]] = {"D4.12": [], "D4.13": [], "D4.14": [], "D4.15": []}
    for name, found in grids.items():
        for kind in ("read", "write"):
            cells = [row for row in found if row["kind"] == kind]
            sizes = [row for row in cells if row["depth"] == 1]
            depths = [row["saturation_depth"] for row in sizes]
            saturated.append(f"{short(name)} {kind}s {'/'.join(map(str, depths))}")
            held["D4.12"] += [max(depths) <= 16]
            top = max(row["mb_per_s"] for row in cells)
            most = {
                row["size_kib"]: max(r["mb_per_s"] for r in cells if r["size_kib"] == row["size_kib"])
                for row in sizes
            }  # fmt: skip
            at_64.append(
                f"{short(name)} {kind}s {'/'.join(f'{100 * v / top:.0f}' for v in most.values())}"
            )
            held["D4.13"] += [most[64] >= 0.9 * top]
            fits = [row["linearity"] for row in sizes if not np.isnan(row["linearity"])]
            slopes = [row["slope_us"] for row in sizes if not np.isnan(row["slope_us"])]
            rising = all(a < b for a, b in pairwise(slopes))
            lines.append(
                f"{short(name)} {kind}s R2 {min(fits):.3f} or more, slopes {'/'.join(f'{v:.0f}' for v in slopes)} us"
            )
            held["D4.14"] += [min(fits) >= 0.98, rising]
            pair = next(row for row in cells if row["best"])
            eight = next(row for row in cells if row["size_kib"] == 64 and row["depth"] == 8)
            best.append(
                f"{short(name)} {kind}s {pair['size_kib']} KiB x {pair['depth']} (64 x 8 has "
                f"{100 * eight['mb_per_s'] / top:.0f} % of the highest bandwidth)"
            )
            # A step of the grid to each side.
            held["D4.15"] += [pair["size_kib"] in (16, 64, 128) and pair["depth"] in (4, 8, 16)]
    sizes_text = "by size 1 to 256 KiB: "
    claim("D4.12", "bandwidth saturates at about 8 outstanding",
          "saturated at, " + sizes_text + "; ".join(saturated), grade(*held["D4.12"]))  # fmt: skip
    claim("D4.13", "the highest bandwidth is set by the size; the peak is reached at 64 KiB",
          "per cent of the highest, " + sizes_text + "; ".join(at_64), grade(*held["D4.13"]))  # fmt: skip
    claim("D4.14", "response linear in queue length, steeper for larger sizes", "; ".join(lines),
          grade(*held["D4.14"]))  # fmt: skip
    claim("D4.15", "best pair 64 KiB x 8, random read and write, three drives", "; ".join(best),
          grade(*held["D4.15"]))  # fmt: skip


def write(folder: Path, name: str, rows: Sequence[Row]) -> None:
    """A table; numbers with four digits, nothing where there is none."""
    if not rows:
        return
    keys = [key for key in rows[0] if key not in ("part", "cpu_s")]
    with (folder / name).open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(keys)
        for row in rows:
            writer.writerow([_shown(row[key]) for key in keys])


def _shown(value: object) -> object:
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:.4g}"
    return value


def finish(folder: Path, rows: Sequence[Row], whole: bool) -> None:
    """Write a table a part, and judge where all parts are there."""
    for part in dict.fromkeys(row["part"] for row in rows):
        write(folder, f"{part}.csv", [row for row in rows if row["part"] == part])
    if whole:
        table = judge(rows)
        write(folder, "claims.csv", table)
        for row in table:
            print(
                f"\n{row['claim']}  {row['source says']}\n    found: {row['found']}\n    -> {row['verdict']}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="fewer ranges, fills, points; judges nothing"
    )
    parser.add_argument("--per-cent", type=float, default=5, help="of a drive's blocks (default 5)")
    parser.add_argument(
        "--only", action="append", choices=("fills", "reads", "depth-and-size", "spare")
    )
    parser.add_argument("--drive", action="append", choices=(*PAGE_MAPPED, LOG_BLOCK))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--out", type=Path, default=HERE, help="where the tables go")
    given = parser.parse_args()
    listed = jobs(given)
    began = time.monotonic()
    rows: list[Row] = []
    with ProcessPoolExecutor(given.jobs) as pool:
        for job, found in zip(listed, pool.map(play, listed, chunksize=1), strict=True):
            rows += found
            print(
                f"{job['part']:15}{job['drive']:15} {'prefilled ' if job['prefill'] else ''}"
                f"{job['utilization'] or '':6} {sum(row['cpu_s'] for row in found):7.1f} s",
                flush=True,
            )
    finish(given.out, rows, whole=not (given.quick or given.only or given.drive))
    cpu = sum(row["cpu_s"] for row in rows)
    print(f"\n{len(listed)} runs, {cpu:.0f} s of CPU, {time.monotonic() - began:.0f} s in all")


if __name__ == "__main__":
    main()
