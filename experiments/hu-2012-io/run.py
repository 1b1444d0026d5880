"""Chapter 5 of Hu's dissertation: schedulers before a drive, what mixing reads and writes costs, and the SSD-friendly
scheduler on five workloads, claim by claim.

README.md beside this file says what the drives and workloads stand for and what was left out.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from flashwright import Ssd

HERE = Path(__file__).parent
Row = dict[str, Any]

CLASSIC = ("noop", "deadline", "anticipatory", "cfq")
SIZES_KIB = (4, 16, 64, 256)
ZONES = (1, 2, 4, 8, 16)
OUTSTANDING = (8, 16, 32, 64, 128, 256)
STAND_INS = ("financial1", "financial2", "exchange", "msn", "build")
HEADS = {
    "first 10,000 of Financial1": "financial1-first10k.spc.zst",
    "first 149,999 of MSN": "msn-fs-150k.disksim.zst",
}


def schedule(job: Row) -> Row:
    """One bar of Figures 5.1 and 5.2."""
    ssd = (
        Ssd.named(job["drive"])
        .with_({"host.scheduler": job["scheduler"]})
        .precondition("sequential")
    )
    load = f"{job['pattern']}:write={int(job['kind'] == 'write')},size={job['size_kib']}KiB"
    run = ssd.play(load, requests=job["requests"], depth=job["depth"], window="off", seed=1)
    return job | {"mb_per_s": run.json["throughput"]["bytes_per_s"] / 1e6}


def mix(job: Row) -> Row:
    """One point of Figure 5.3."""
    ssd = Ssd.named(job["drive"]).precondition("sequential")
    load = f"mixed:write={job['write']},size=4KiB"
    run = ssd.play(load, requests=job["requests"], depth=64, window="off", seed=1)
    return job | {"mb_per_s": run.json["throughput"]["bytes_per_s"] / 1e6}


def zone(job: Row) -> Row:
    """One bar of Figures 5.6 to 5.10."""
    settings: dict[str, object] = {"host.scheduler": job["scheduler"]}
    if job["zones"]:
        settings["host.ssd-friendly.zones"] = job["zones"]
        settings["host.ssd-friendly.per-zone"] = job["per_zone"]
    ssd = Ssd.named("intel-320").with_(settings).precondition("sequential")
    source: Any = f"stand-in:{job['workload']}"
    if job["trace"]:
        from flashwright import workloads

        source = workloads.trace(job["trace"], addresses="dense")
    run = ssd.play(source, requests=job["requests"], depth=job["outstanding"], window="off", seed=1)
    layer = run.json["host_layers"][0]
    handed = layer["reads"]["requests"] + layer["writes"]["requests"]
    size = (layer["reads"]["bytes"] + layer["writes"]["bytes"]) / handed
    return job | {
        "mb_per_s": run.json["throughput"]["bytes_per_s"] / 1e6,
        "response_ms": run.json["response_time_ns"]["all"]["mean"] / 1e6,
        "size_kib": size / 1024,
        "back_merges": layer["back_merges"],
        "front_merges": layer["front_merges"],
    }


def schedule_jobs(requests: int) -> Iterable[Row]:
    for drive in ("fusion-iodrive", "samsung-470"):
        for pattern in ("uniform", "sequential"):
            for kind in ("read", "write"):
                for size in SIZES_KIB:
                    for scheduler in CLASSIC:
                        yield {
                            "drive": drive, "pattern": pattern, "kind": kind, "size_kib": size,
                            "scheduler": scheduler, "depth": 32, "requests": requests,
                        }  # fmt: skip


def mix_jobs(requests: int) -> Iterable[Row]:
    for drive in ("samsung-470", "intel-320", "fusion-iodrive"):
        for tenth in range(11):
            yield {"drive": drive, "write": tenth / 10, "requests": requests}


def zone_jobs(requests: int, traces: Path | None) -> Iterable[Row]:
    sources = [(name, None) for name in STAND_INS]
    if traces:
        sources += [
            (name, str(traces / file)) for name, file in HEADS.items() if (traces / file).exists()
        ]
    for name, trace in sources:
        for outstanding in OUTSTANDING:
            common = {
                "workload": name, "trace": trace, "outstanding": outstanding, "requests": requests,
            }  # fmt: skip
            yield common | {"scheduler": "noop", "zones": 0, "per_zone": ""}
            # Deadline alone looks for front merges; it counts them for D5.10.
            yield common | {"scheduler": "deadline", "zones": 0, "per_zone": ""}
            for per_zone in ("one", "all"):
                for zones in ZONES:
                    yield common | {
                        "scheduler": "ssd-friendly",
                        "zones": zones,
                        "per_zone": per_zone,
                    }


def spread(rows: Sequence[Row]) -> float:
    """Largest minus least over the mean of a cell's bandwidths."""
    values = [row["mb_per_s"] for row in rows]
    return (max(values) - min(values)) / (sum(values) / len(values))


def cells(rows: Sequence[Row], *keys: str) -> list[list[Row]]:
    """Rows that agree in all keys, in order of first use."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[key] for key in keys), []).append(row)
    return list(found.values())


def gains(rows: Sequence[Row], workload: str, per_zone: str) -> list[Row]:
    """Each zone count against noop at the same number outstanding, as changes in per cent."""
    found = []
    for cell in cells([row for row in rows if row["workload"] == workload], "outstanding"):
        noop = next(row for row in cell if row["scheduler"] == "noop")
        for row in cell:
            if row["scheduler"] == "ssd-friendly" and row["per_zone"] == per_zone:
                change = {
                    key: 100 * (row[key] / noop[key] - 1)
                    for key in ("mb_per_s", "response_ms", "size_kib")
                }
                found.append({"outstanding": row["outstanding"], "zones": row["zones"]} | change)
    return found


def ranks(values: Sequence[float]) -> list[float]:
    """Average ranks."""
    return [
        sum(other < value for other in values) + (sum(other == value for other in values) + 1) / 2
        for value in values
    ]


def rank_correlation(a: Sequence[float], b: Sequence[float]) -> float:
    """Spearman's coefficient."""
    x, y = ranks(a), ranks(b)
    mean = (len(x) + 1) / 2
    cov = sum((p - mean) * (q - mean) for p, q in zip(x, y, strict=True))
    var = sum((p - mean) ** 2 for p in x) * sum((q - mean) ** 2 for q in y)
    return cov / var**0.5 if var else 0.0


def judge(schedules: list[Row], mixes: list[Row], zones: list[Row]) -> list[Row]:
    """The claims with what was found."""
    claims: list[Row] = []

    def claim(name: str, what: str, found: str, verdict: str) -> None:
        claims.append({"claim": name, "source says": what, "found": found, "verdict": verdict})

    if schedules:
        by_cell = cells(schedules, "drive", "pattern", "kind", "size_kib")
        worst = max(by_cell, key=spread)
        idle = [
            [row for row in cell if row["scheduler"] in ("noop", "deadline")] for cell in by_cell
        ]
        within = sum(spread(cell) <= 0.05 for cell in by_cell)
        row = worst[0]
        claim(
            "D5.1", "bandwidth nearly the same under four schedulers; request size decides",
            f"spread at most 5 % in {within} of {len(by_cell)} cells, largest {100 * spread(worst):.1f} % "
            f"({row['drive']}, {row['pattern']} {row['kind']} {row['size_kib']} KiB); without the two that idle "
            f"at most {100 * max(map(spread, idle)):.1f} %",
            "reproduced" if within == len(by_cell) else "in part",
        )  # fmt: skip
    for number, name, drives in (
        ("D5.2", "lowest at half", None),
        ("D5.3", "Intel drops by up to 60 %", "intel-320"),
    ):
        if not mixes:
            break
        texts, good = [], []
        for cell in cells(mixes, "drive"):
            drive = cell[0]["drive"]
            if drives and drive != drives:
                continue
            low = min(cell, key=lambda row: row["mb_per_s"])
            ends = max(cell[0]["mb_per_s"], cell[-1]["mb_per_s"])
            drop = 100 * (1 - low["mb_per_s"] / ends)
            texts.append(
                f"{drive}: lowest at {100 * low['write']:.0f} % writes, {drop:.0f} % below the higher end"
            )
            if drives:
                good.append(42 <= drop <= 78)
            else:
                good.append(0.4 <= low["write"] <= 0.6)
        claim(
            number,
            name,
            "; ".join(texts),
            "reproduced" if all(good) else "in part" if any(good) else "not",
        )
    if not zones:
        return claims
    for number, workload, paper in (
        ("D5.5", "financial1", (20, -20, 54)),
        ("D5.6", "financial2", (50, -30, 30)),
    ):
        texts = []
        for per_zone in ("one", "all"):
            found = gains(zones, workload, per_zone)
            best = max(found, key=lambda row: row["mb_per_s"])
            grown = max(row["size_kib"] for row in found)
            texts.append(
                f"per zone {per_zone}: bandwidth up to {best['mb_per_s']:+.0f} % ({best['outstanding']} outstanding, "
                f"{best['zones']} zones), response down to {min(row['response_ms'] for row in found):+.0f} %, "
                f"size up to {grown:+.0f} %"
            )
        sizes = [row["size_kib"] for way in ("one", "all") for row in gains(zones, workload, way)]
        widths = [row["mb_per_s"] for way in ("one", "all") for row in gains(zones, workload, way)]
        band = (
            (paper[2] - 20, paper[2] + 20) if number == "D5.5" else (paper[2] - 10, paper[2] + 10)
        )
        fits = band[0] <= max(sizes) <= band[1], max(widths) > 0
        claim(
            number, f"{workload}: up to {paper[0]:+} % bandwidth, {paper[1]} % response, size {paper[2]:+} %",
            "; ".join(texts), "reproduced" if all(fits) else "in part" if any(fits) else "not",
        )  # fmt: skip
    spreads = [
        spread(
            [row for row in cell if row["scheduler"] == "ssd-friendly" and row["per_zone"] == way]
        )
        for cell in cells(zones, "workload", "outstanding")
        for way in ("one", "all")
    ]
    claim(
        "D5.7", "the number of zones matters little",
        f"spread over 1 to 16 zones: largest {100 * max(spreads):.1f} %, at most 10 % in "
        f"{sum(s <= 0.1 for s in spreads)} of {len(spreads)} cells",
        "reproduced" if max(spreads) <= 0.1 else "in part",
    )  # fmt: skip
    texts, good = [], []
    for workload in ("exchange", "msn", "build"):
        found = [row for way in ("one", "all") for row in gains(zones, workload, way)]
        low, high = min(row["mb_per_s"] for row in found), max(row["mb_per_s"] for row in found)
        grown = max(row["size_kib"] for row in found)
        texts.append(
            f"{workload}: bandwidth {low:+.0f} to {high:+.0f} %, size up to {grown:+.0f} %"
        )
        good.append(high <= 5 and grown <= 5)
    claim("D5.8", "Exchange, MSN, Build: no gain, size not increased", "; ".join(texts),
          "reproduced" if all(good) else "in part" if any(good) else "not")  # fmt: skip
    every = [row for name in STAND_INS for way in ("one", "all") for row in gains(zones, name, way)]
    rho = rank_correlation([row["size_kib"] for row in every], [row["mb_per_s"] for row in every])
    claim("D5.9", "the gain follows the merged size", f"rank correlation {rho:.2f} over {len(every)} cells",
          "reproduced" if rho > 0.8 else "not")  # fmt: skip
    merges = [row for row in zones if row["scheduler"] == "deadline"]
    shares = {
        cell[0]["workload"]: (
            sum(row["front_merges"] for row in cell),
            sum(row["back_merges"] for row in cell),
        )
        for cell in cells(merges, "workload")
    }
    text = "; ".join(
        f"{name}: {front} front, {back} back" for name, (front, back) in shares.items()
    )
    few = all(front <= 0.05 * (front + back) for front, back in shares.values())
    claim("D5.10", "front merges are very rare", text, "reproduced" if few else "not")
    return claims


def write(name: str, rows: Sequence[Row]) -> None:
    """A table beside this file; numbers with four digits."""
    if not rows:
        return
    with (HERE / name).open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow(
                {
                    k: f"{v:.4g}" if isinstance(v, float) else v
                    for k, v in row.items()
                    if k in rows[0]
                }
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=Path, help="folder with the heads of real traces")
    parser.add_argument("--requests", type=int, default=20_000, help="requests of a run")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--only", choices=("schedulers", "mixing", "zones"))
    arguments = parser.parse_args()
    started = time.monotonic()
    tables: dict[str, list[Row]] = {"schedulers": [], "mixing": [], "zones": []}
    work: dict[str, tuple[Callable[[Row], Row], Iterable[Row]]] = {
        "schedulers": (schedule, schedule_jobs(arguments.requests // 4)),
        "mixing": (mix, mix_jobs(arguments.requests * 2)),
        "zones": (zone, zone_jobs(arguments.requests, arguments.traces)),
    }
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for name, (play, jobs) in work.items():
            if arguments.only in (None, name):
                tables[name] = list(pool.map(play, jobs, chunksize=4))
                for row in tables[name]:
                    row.pop("trace", None)
                write(f"{name}.csv", tables[name])
                print(f"{name}: {len(tables[name])} runs, {time.monotonic() - started:.0f} s")
    claims = judge(tables["schedulers"], tables["mixing"], tables["zones"])
    if arguments.only is None:
        write("claims.csv", claims)
    for row in claims:
        print(f"{row['claim']:6} {row['verdict']:11} {row['source says']}\n{'':18} {row['found']}")


if __name__ == "__main__":
    main()
