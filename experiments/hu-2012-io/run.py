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

from flashwright import Ssd, workloads

HERE = Path(__file__).parent
Row = dict[str, Any]

CLASSIC = ("noop", "deadline", "anticipatory", "cfq")
SIZES_KIB = (4, 16, 64, 256)
# Volume of a run of figures 5.1 and 5.2. The warm-up of as much covers the first second, when CFQ (2.6.38) lets few
# writes through.
SCHEDULE_MB = 600
ZONES = (1, 2, 4, 8, 16)
OUTSTANDING = (8, 32, 64, 128, 256)
# Of the drive's blocks a plane, in per cent: enough for the footprint, and soon filled.
STAND_INS = {"financial1": 10, "financial2": 10, "exchange": 40, "msn": 25, "build": 60}
# File, format, how addresses are fitted, per cent of the drive.
HEADS = {
    "financial1 head": ("financial1-first10k.spc.zst", "spc", "reject", 10),
    "financial1 head, in pages": ("financial1-first50k.flashsim.zst", "flashsim", "reject", 10),
    "msn head": ("msn-fs-150k.disksim.zst", "disksim", "wrap", 100),
}
# What is changed one at a time to see what the scheduler's loss hangs on; 8 zones, all of each zone.
CHANGES: dict[str, Row] = {
    "as it is": {},
    "no barrier": {"host.ssd-friendly.barrier": False},
    "turns by what waits": {"host.ssd-friendly.share": "adaptive"},
    "requests up to 128 KiB": {"host.ssd-friendly.max-merge": "128 KiB"},
    "no turnaround": {"controller.turnaround": "0 ns"},
}


def drive(name: str, per_cent: int, settings: Row | None = None) -> Ssd:
    """A bundled drive with fewer blocks a plane and the same share of spare space, filled in order."""
    whole = Ssd.named(name)
    config = whole.config
    parts = {
        "geometry.blocks-per-plane": config["geometry"]["blocks-per-plane"] * per_cent // 100,
        "capacity.logical": f"{int(config['capacity']['logical'].split()[0]) * per_cent // 100} KiB",
    }
    return whole.with_(parts | (settings or {})).precondition("sequential")


def schedule(job: Row) -> Row:
    """One bar of Figures 5.1 and 5.2."""
    settings = {"host.scheduler": job["scheduler"], "host.block-layer.queue-requests": 512}
    ssd = drive(job["drive"], 10, settings)
    load = f"{job['pattern']}:write={int(job['kind'] == 'write')},size={job['size_kib']}KiB"
    requests = SCHEDULE_MB * 1000 // job["size_kib"]
    run = ssd.play(
        load, requests=requests, warmup=requests, depth=job["outstanding"], window="off", seed=1
    )
    layer = run.json["host_layers"][0]
    return job | {
        "mb_per_s": run.json["throughput"]["bytes_per_s"] / 1e6,
        "handed_on_kib": handed_kib(layer),
    }


def mix(job: Row) -> Row:
    """One point of Figure 5.3."""
    settings = {} if job["turnaround"] == "as described" else {"controller.turnaround": "0 ns"}
    ssd = drive(job["drive"], 10, settings)
    load = f"mixed:write={job['write']},size=4KiB"
    run = ssd.play(load, requests=40_000, warmup=10_000, depth=64, window="off", seed=1)
    return job | {"mb_per_s": run.json["throughput"]["bytes_per_s"] / 1e6}


def handed_kib(layer: Row) -> float:
    """Mean size of the requests that a scheduler handed on."""
    sides = layer["reads"], layer["writes"]
    size = sum(side["bytes"] for side in sides) / sum(side["requests"] for side in sides)
    return float(size / 1024)


def source(job: Row) -> Any:
    """The workload of a job."""
    if job["trace"] is None:
        return f"stand-in:{job['workload']}"
    return workloads.trace(job["trace"], format=job["format"], addresses=job["addresses"])


def reach(job: Row) -> Row:
    """The job with the range that its workload uses, which the dissertation takes as known."""
    ssd = drive("intel-320", job["per_cent"]).precondition("empty")
    run = ssd.play(
        source(job), requests=job["requests"], depth=32, window="off", keep_requests=True
    )
    table = run.requests()
    ends = (
        first + pages
        for first, pages in zip(table["lpn"].to_pylist(), table["pages"].to_pylist(), strict=True)
    )
    capacity = int(ssd.config["capacity"]["logical"].split()[0])
    # The drive's size is no multiple of a page.
    return job | {"span": f"{min(4 * max(ends), capacity)} KiB"}


def zone(job: Row) -> Row:
    """One bar of Figures 5.6 to 5.10."""
    settings: Row = {"host.scheduler": job["scheduler"]}
    if job["scheduler"] == "ssd-friendly":
        settings |= {
            "host.ssd-friendly.zones": job["zones"],
            "host.ssd-friendly.per-zone": job["per_zone"],
            "host.ssd-friendly.span": job["span"],
            # It queues in user space, which Linux's 128 requests a direction do not bound.
            "host.block-layer.queue-requests": 256,
        }
    ssd = drive("intel-320", job["per_cent"], settings | CHANGES[job["change"]])
    run = ssd.play(
        source(job), requests=job["requests"], depth=job["outstanding"], window="off", seed=1
    )
    layers, measured = run.json["host_layers"], run.json["measured"]
    bytes_per_s = run.json["throughput"]["bytes_per_s"]
    unmerged_kib = bytes_per_s * measured["duration_ns"] / 1e9 / measured["requests"] / 1024
    return job | {
        "mb_per_s": bytes_per_s / 1e6,
        "response_ms": run.json["response_time_ns"]["all"]["mean"] / 1e6,
        "size_kib": handed_kib(layers[0]) if layers else unmerged_kib,
        "back_merges": layers[0]["back_merges"] if layers else 0,
        "front_merges": layers[0]["front_merges"] if layers else 0,
    }


def schedule_jobs() -> Iterable[Row]:
    # Twice what the drive takes at once, so that a scheduler has as many to choose from; its queue holds 512, as
    # Linux's 128 a direction would leave it none on the ioDrive.
    for name, outstanding in (("fusion-iodrive", 256), ("samsung-470", 64)):
        for pattern in ("uniform", "sequential"):
            for kind in ("read", "write"):
                for size in SIZES_KIB:
                    for scheduler in CLASSIC:
                        yield {
                            "drive": name, "outstanding": outstanding, "pattern": pattern, "kind": kind,
                            "size_kib": size, "scheduler": scheduler,
                        }  # fmt: skip


def mix_jobs() -> Iterable[Row]:
    for turnaround in ("as described", "none"):
        for name in ("samsung-470", "intel-320", "fusion-iodrive"):
            for tenth in range(11):
                yield {"drive": name, "turnaround": turnaround, "write": tenth / 10}


def workload_jobs(requests: int, traces: Path | None) -> Iterable[Row]:
    """The workloads of Figures 5.6 to 5.10."""
    for name, per_cent in STAND_INS.items():
        yield {
            "workload": name, "trace": None, "format": None, "addresses": None,
            "per_cent": per_cent, "requests": requests,
        }  # fmt: skip
    for name, (file, form, addresses, per_cent) in HEADS.items():
        if traces and (traces / file).exists():
            yield {
                "workload": name, "trace": str(traces / file), "format": form, "addresses": addresses,
                "per_cent": per_cent, "requests": requests,
            }  # fmt: skip


def zone_jobs(loads: Sequence[Row]) -> Iterable[Row]:
    for load in loads:
        for outstanding in OUTSTANDING:
            common = load | {"outstanding": outstanding, "change": "as it is"}
            # Deadline alone of these looks for front merges; it counts them for D5.10.
            for scheduler in ("none", "noop", "deadline"):
                yield common | {"scheduler": scheduler, "zones": 0, "per_zone": ""}
            for per_zone in ("one", "all"):
                for zones in ZONES:
                    yield common | {
                        "scheduler": "ssd-friendly",
                        "zones": zones,
                        "per_zone": per_zone,
                    }


def reason_jobs(loads: Sequence[Row]) -> Iterable[Row]:
    for load in loads:
        if load["workload"] not in ("financial1", "financial2", "financial1 head"):
            continue
        for outstanding in (64, 256):
            for change, settings in CHANGES.items():
                # Noop has none of the scheduler's settings.
                ours = any(key.startswith("host.ssd-friendly") for key in settings)
                for scheduler in ("ssd-friendly",) if ours else ("noop", "ssd-friendly"):
                    yield load | {
                        "outstanding": outstanding, "change": change, "scheduler": scheduler,
                        "zones": 8, "per_zone": "all",
                    }  # fmt: skip


def spread(rows: Sequence[Row]) -> float:
    """Largest minus least over the mean of a cell's bandwidths."""
    values = [row["mb_per_s"] for row in rows]
    return float((max(values) - min(values)) / (sum(values) / len(values)))


def cells(rows: Sequence[Row], *keys: str) -> list[list[Row]]:
    """Rows that agree in all keys, in order of first use."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[key] for key in keys), []).append(row)
    return list(found.values())


def gains(rows: Sequence[Row], workload: str, per_zone: str, base: str = "noop") -> list[Row]:
    """Each zone count against `base` at the same number outstanding, as changes in per cent."""
    found = []
    for cell in cells([row for row in rows if row["workload"] == workload], "outstanding"):
        before = next(row for row in cell if row["scheduler"] == base)
        for row in cell:
            if row["scheduler"] == "ssd-friendly" and row["per_zone"] == per_zone:
                change = {
                    key: 100 * (row[key] / before[key] - 1)
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
    return float(cov / var**0.5) if var else 0.0


def lowest(cell: Sequence[Row]) -> float:
    """Where the parabola through the three lowest points is least, or the least point where that is no share."""
    points = sorted(cell, key=lambda row: row["mb_per_s"])[:3]
    (x0, y0), (x1, y1), (x2, y2) = sorted((row["write"], row["mb_per_s"]) for row in points)
    first = (y1 - y0) / (x1 - x0)
    bend = ((y2 - y1) / (x2 - x1) - first) / (x2 - x0)
    least = (x0 + x1) / 2 - first / (2 * bend) if bend > 0 else -1
    return least if 0 <= least <= 1 else float(points[0]["write"])


def verdict(good: Sequence[bool]) -> str:
    """In words."""
    return "reproduced" if all(good) else "in part" if any(good) else "not reproduced"


def best(rows: Sequence[Row]) -> str:
    """The largest gains of a workload, in words."""
    top = max(rows, key=lambda row: row["mb_per_s"])
    quick = min(row["response_ms"] for row in rows)
    grown = max(rows, key=lambda row: row["size_kib"])
    return (
        f"{top['mb_per_s']:+.0f} % bandwidth ({top['outstanding']} outstanding, {top['zones']} zones), "
        f"{quick:+.0f} % response, size {grown['size_kib']:+.0f} % ({grown['outstanding']}, {grown['zones']})"
    )


def judge(schedules: list[Row], mixes: list[Row], zones: list[Row]) -> list[Row]:
    """The claims with what was found."""
    claims: list[Row] = []

    def claim(name: str, what: str, found: str, verdict: str) -> None:
        claims.append({"claim": name, "dissertation": what, "ours": found, "verdict": verdict})

    if schedules:
        by_cell = cells(schedules, "drive", "pattern", "kind", "size_kib")
        worst = max(by_cell, key=spread)
        within = sum(spread(cell) <= 0.05 for cell in by_cell)
        row = worst[0]
        claim(
            "D5.1", "bandwidth nearly the same under four schedulers; request size decides",
            f"spread at most 5 % in {within} of {len(by_cell)} cells, largest {100 * spread(worst):.1f} % "
            f"({row['drive']}, {row['pattern']} {row['kind']} {row['size_kib']} KiB)",
            verdict([spread(cell) <= 0.05 for cell in by_cell]),
        )  # fmt: skip
    if mixes:
        texts, good = [], []
        for cell in cells(mixes, "turnaround", "drive"):
            name, turnaround = cell[0]["drive"], cell[0]["turnaround"]
            low = lowest(cell)
            ends = cell[0]["mb_per_s"], cell[-1]["mb_per_s"]
            drop = 100 * (1 - min(row["mb_per_s"] for row in cell) / max(ends))
            if turnaround == "as described":
                high = max(cell, key=lambda row: row["mb_per_s"])["write"]
                good += [0.4 <= low <= 0.6, high in (0, 1)]
                texts.append(
                    f"{name}: lowest at {100 * low:.0f} % writes, {drop:.0f} % below the higher end, "
                    f"highest at {100 * high:.0f} %"
                )
                if name == "intel-320":
                    fitted = drop
            else:
                texts.append(
                    f"{name} without turnaround: lowest at {100 * low:.0f} %, {drop:.0f} %"
                )
                if name == "intel-320":
                    without = drop
        claim("D5.2", "highest at both ends, lowest at half", "; ".join(texts), verdict(good))
        claim(
            "D5.3", "Intel drops by up to 60 %", f"{fitted:.0f} % (without turnaround {without:.0f} %)",
            "fitted" if 42 <= fitted <= 78 else "not reproduced",
        )  # fmt: skip
    if not zones:
        return claims
    there = list(dict.fromkeys(row["workload"] for row in zones))
    for number, names, paper in (
        ("D5.5", ("financial1", "financial1 head", "financial1 head, in pages"), (20, -20, 54, 20)),
        ("D5.6", ("financial2",), (50, -30, 30, 10)),
    ):
        texts, good = [], []
        for name in (name for name in names if name in there):
            for way in ("one", "all"):
                for base in ("noop", "none"):
                    texts.append(
                        f"{name}, {way}, against {base}: {best(gains(zones, name, way, base))}"
                    )
            # The real head tells of merging; a stand-in only where there is no head.
            if name == names[min(1, len(names) - 1)] or names[-1] not in there:
                found = [row for way in ("one", "all") for row in gains(zones, name, way)]
                sizes = [row["size_kib"] for row in found if row["zones"] == 16 or number == "D5.6"]
                good += [
                    any(abs(size - paper[2]) <= paper[3] for size in sizes),
                    max(row["mb_per_s"] for row in found) > 0,
                ]
        claim(
            number, f"up to {paper[0]:+} % bandwidth, {paper[1]} % response, size {paper[2]:+} %",
            "; ".join(texts), verdict(good),
        )  # fmt: skip
    small = [row for row in zones if row["workload"].startswith("financial")]
    spreads = {
        way: [
            spread([r for r in cell if r["scheduler"] == "ssd-friendly" and r["per_zone"] == way])
            for cell in cells(small, "workload", "outstanding")
        ]
        for way in ("one", "all")
    }
    claim(
        "D5.7", "the number of zones matters little",
        "; ".join(f"{way}: spread over 1 to 16 zones at most {100 * max(found):.0f} %, within 10 % in "
                  f"{sum(s <= 0.1 for s in found)} of {len(found)} cells" for way, found in spreads.items()),
        verdict([max(found) <= 0.1 for found in spreads.values()]),
    )  # fmt: skip
    texts, good = [], []
    for name in ("exchange", "msn", "build", "msn head"):
        if name not in there:
            continue
        for way in ("one", "all"):
            found = gains(zones, name, way)
            low, high = min(row["mb_per_s"] for row in found), max(row["mb_per_s"] for row in found)
            grown = max(row["size_kib"] for row in found)
            texts.append(
                f"{name}, {way}: bandwidth {low:+.0f} to {high:+.0f} %, size up to {grown:+.1f} %"
            )
            good += [grown <= 5, low >= -5 and high <= 5]
    claim(
        "D5.8", "Exchange, MSN, Build: no gain, size not increased", "; ".join(texts), verdict(good)
    )
    texts, good = [], []
    for way in ("one", "all"):
        for base in ("noop", "none"):
            every = [row for name in there for row in gains(zones, name, way, base)]
            rho = rank_correlation(
                [row["size_kib"] for row in every], [row["mb_per_s"] for row in every]
            )
            texts.append(f"{way} against {base}: {rho:.2f}")
            good.append(rho > 0.8)
    claim("D5.9", "the gain follows the merged size", f"rank correlation, all cells: {'; '.join(texts)}",
          verdict(good))  # fmt: skip
    shares = {
        cell[0]["workload"]: tuple(
            sum(row[key] for row in cell) for key in ("front_merges", "back_merges")
        )
        for cell in cells([row for row in zones if row["scheduler"] == "deadline"], "workload")
    }
    # What adjoins in a stand-in without runs does so by chance, in front as often as behind.
    real = [name for name in shares if name.endswith(("head", "pages"))] or list(shares)
    claim(
        "D5.10", "front merges are very rare",
        "; ".join(f"{name}: {front} of {front + back}" for name, (front, back) in shares.items()),
        verdict([shares[name][0] <= 0.05 * sum(shares[name]) for name in real]),
    )  # fmt: skip
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


def read(name: str) -> list[Row]:
    """A table as an earlier run left it; empty if there is none."""

    def value(text: str) -> Any:
        for kind in (int, float):
            try:
                return kind(text)
            except ValueError:
                continue
        return text

    if not (HERE / name).exists():
        return []
    with (HERE / name).open(newline="") as file:
        return [{key: value(text) for key, text in row.items()} for row in csv.DictReader(file)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=Path, help="folder with the heads of real traces")
    parser.add_argument("--requests", type=int, default=10_000, help="requests of a workload")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument(
        "--only",
        choices=("schedulers", "mixing", "zones", "reasons"),
        help="one table; the claims take the others from their files",
    )
    arguments = parser.parse_args()
    started = time.monotonic()
    tables: dict[str, list[Row]] = {}
    with ProcessPoolExecutor(arguments.jobs) as pool:
        loads: list[Row] = []
        if arguments.only in (None, "zones", "reasons"):
            loads = list(pool.map(reach, workload_jobs(arguments.requests, arguments.traces)))
        work: dict[str, tuple[Callable[[Row], Row], Iterable[Row]]] = {
            "schedulers": (schedule, schedule_jobs()),
            "mixing": (mix, mix_jobs()),
            "reasons": (zone, reason_jobs(loads)),
            "zones": (zone, zone_jobs(loads)),
        }
        for name, (play, jobs) in work.items():
            if arguments.only not in (None, name):
                tables[name] = read(f"{name}.csv")
            else:
                tables[name] = list(pool.map(play, jobs, chunksize=4))
                for row in tables[name]:
                    for key in ("trace", "format", "addresses"):
                        row.pop(key, None)
                write(f"{name}.csv", tables[name])
                print(
                    f"{name}: {len(tables[name])} runs, {time.monotonic() - started:.0f} s",
                    flush=True,
                )
    claims = judge(tables["schedulers"], tables["mixing"], tables["zones"])
    write("claims.csv", claims)
    for row in claims:
        print(f"{row['claim']:6} {row['verdict']:11} {row['dissertation']}\n{'':18} {row['ours']}")


if __name__ == "__main__":
    main()
