"""Sections 5 and 6 of Kim et al. (2011): Postmark and Filebench on four drives below a block layer and a scheduler that
know the drive, claim by claim.

README.md beside this file says how the paper was read and what was left out.
"""

from __future__ import annotations

import argparse
import csv
import math
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from flashwright import FlashwrightError, Ssd

HERE = Path(__file__).parent
Row = dict[str, Any]

DRIVES = ("ssd-a", "ssd-b", "ssd-c", "ssd-d")
# A block layer, which merges and may cut, and a scheduler below it; NOOP is the block layer's merging and no more.
CONFIGURATIONS = {
    "NoPAS-NOOP": "noop",
    "NoPAS-PAI": "noop+pai",
    "PAS-PAI": "pas+pai",
    "PASA-PAI": "pasa+pai",
}
NOOP, PAI, PAS, PASA = CONFIGURATIONS
# No block layer above PAI: it gets the file system's blocks one by one.
ALONE = "PAI alone"
CHAINS = CONFIGURATIONS | {ALONE: "pai"}
SIZES_KIB = (256, 512, 1024, 2048, 4096, 8192)
MERGES = ("well-formed", "pending")
# Memory that may be dirty before writers wait, in MB; write-back begins at half. 64-bit: 10 % of 4 GiB (vm.dirty_ratio
# of 2.6.24). low: 10 % of what a 32-bit kernel counts, near 900 MB. fitted: to the 3,197 requests of NoPAS in Table 4.
LIMITS_MB = {"fitted": 56, "low": 94, "64-bit": 429}
# Which requests PAI merges, under each of the limits that claims are judged by; the first is the main reading.
READINGS = {"fitted": MERGES, "64-bit": MERGES[:1]}
MEMORY_MB = 4096 * 1.048576
TIMEOUTS_MS = (1, 3, 5, 10)
PROFILES = ("webserver", "fileserver", "oltp")
# Table 4: all requests, aligned, at most 256 KB.
TABLE_4 = {
    (8192, PAI): (34788, 13310, 8121),
    (8192, PAS): (59348, 20906, 59348),
    (8192, PASA): (64834, 57371, 64834),
    (256, PAI): (3197, 858, 3148),
    (256, PAS): (2972, 1288, 2972),
    (256, PASA): (4587, 2541, 4587),
}
LITTLE = 0.05  # a change that counts as none
GOOD, PARTLY, BAD = "reproduced", "in part", "not"


def load_of(job: Row) -> str:
    """The workload's text."""
    dirty = LIMITS_MB[job["limits"]] / MEMORY_MB
    # 1,024 blocks: what write-back of 2.6.24 takes at a time (MAX_WRITEBACK_PAGES).
    host = f"request-unit=block,in-flight=1024,dirty={dirty:.5f},dirty-background={dirty / 2:.5f}"
    if job["load"] == "postmark":
        # One size a point; 300 transactions on the two slow drives.
        return (
            f"postmark:files=200,subdirectories=200,transactions={job['transactions']},size={job['size_kib']}KiB,"
            f"seed=712,{host}"
        )
    program = {
        "webserver": f"files={100 if job['drive'] in ('ssd-b', 'ssd-d') else 1000},size=16MiB,threads=16",
        "fileserver": "files=10000,size=1MiB,threads=50",
        "oltp": "size=10MiB,threads=200",
    }[job["load"]]
    if job["io"]:
        program += f",io={job['io']}"
    return f"filebench-{job['load']}:{program},prepare=placed,duration={job['duration_s']}s,{host}"


def play(job: Row) -> Row:
    """One run."""
    settings: dict[str, object] = {"host.scheduler": CHAINS[job["configuration"]]}
    if job["configuration"] != NOOP:
        settings["host.pai.merge"] = job["merge"]
        settings["host.pai.timeout"] = f"{job['timeout_ms']} ms"
    if job["write_buffer"]:
        settings["host.profile.write-buffer"] = job["write_buffer"]
    if job["part"] == "entry":
        settings["controller.write-buffer.entry"] = "4 KiB"
    ssd = Ssd.named(job["drive"]).with_(settings).precondition(job["precondition"])
    row = job | {"error": ""}
    try:
        run = ssd.play(load_of(job), window="off", seed=1)
    except FlashwrightError as error:  # a drive that can't is a finding
        return row | {"error": str(error).splitlines()[0]}
    told = run.json["application"]
    layer = run.json["host_layers"][-1]
    ways = layer["reads"], layer["writes"]
    requests = sum(way["requests"] for way in ways)
    written, read = told["bytes_written"], told["bytes_read"]
    return row | {
        "write_mb_per_s": written / told["seconds"] / 1e6,
        "overall_mb_per_s": (written + read) / told["seconds"] / 1e6,
        "write_mb_per_s_with_sync": written / told["seconds_with_sync"] / 1e6,
        "drive_mb_per_s": run.json["throughput"]["bytes_per_s"] / 1e6,
        "drive_mb": sum(way["bytes"] for way in ways) / 1e6,
        "requests": requests,
        "aligned_at_start": sum(way["aligned_at_start"] for way in ways),
        "aligned_at_both_ends": sum(way["aligned_at_both_ends"] for way in ways),
        # Nothing where a drive has no buffer in a direction.
        "within_buffer": sum(way["within_buffer"] or 0 for way in ways),
        "above_buffer": sum(way["above_buffer"] or 0 for way in ways),
        "kib_mean": sum(way["bytes"] for way in ways) / max(1, requests) / 1024,
        "pending_ms_mean": layer["extra"].get("pending_mean_ns", 0) / 1e6,
        "write_amplification": run.json["write_amplification"] or math.nan,
        "cpu_s": run.json["run"]["cpu_s"],
    }


def configured(job: Row, merges: Sequence[str]) -> Iterable[Row]:
    """A job under each configuration; without PAI there is nothing to read in two ways."""
    for configuration in CONFIGURATIONS:
        for merge in ("",) if configuration == NOOP else merges:
            yield job | {"configuration": configuration, "merge": merge}


def jobs(quick: bool) -> Iterable[Row]:
    """Every run there is to do, part by part."""
    sizes = (256, 1024) if quick else SIZES_KIB
    plain = {
        "load": "postmark", "timeout_ms": 5, "write_buffer": "", "precondition": "sequential", "duration_s": 0,
        "io": "",
    }  # fmt: skip

    def postmark(part: str, drive: str, size_kib: int, **more: object) -> Row:
        slow = drive in ("ssd-b", "ssd-d")
        transactions = (30 if slow else 60) if quick else 300 if slow else 3000
        return (
            plain
            | {"part": part, "drive": drive, "size_kib": size_kib, "transactions": transactions, "limits": "fitted"}
            | more
        )  # fmt: skip

    for drive in DRIVES:
        for size_kib in sizes:
            for limits, merges in READINGS.items():
                yield from configured(postmark("figure-9", drive, size_kib, limits=limits), merges)
            yield from configured(
                postmark("empty", drive, size_kib, precondition="empty"), MERGES[:1]
            )
    for size_kib in (sizes[0], sizes[-1]):
        for merge in MERGES:
            yield postmark("alone", "ssd-a", size_kib, configuration=ALONE, merge=merge)
        yield from configured(postmark("low", "ssd-a", size_kib, limits="low"), MERGES)
        yield from configured(
            postmark("buffer", "ssd-a", size_kib, write_buffer="256 KiB"), MERGES[:1]
        )
        for timeout_ms in (1, 10) if quick else TIMEOUTS_MS:
            for job in configured(
                postmark("timeout", "ssd-a", size_kib, timeout_ms=timeout_ms), MERGES[:1]
            ):
                if job["configuration"] != NOOP:
                    yield job
    for size_kib in sizes if quick else (256, 1024, 8192):
        # SSD-C's buffer by pages rather than by whole requests.
        yield from configured(postmark("entry", "ssd-c", size_kib), MERGES[:1])
    for load in PROFILES:
        for drive in DRIVES:
            filebench = plain | {
                "part": "figure-10", "drive": drive, "load": load, "size_kib": 0, "transactions": 0,
                "duration_s": 2 if quick else 60 if load == "oltp" else 20,
            }  # fmt: skip
            for limits, merges in READINGS.items():
                yield from configured(filebench | {"limits": limits}, merges)
            if load == "oltp" and drive in ("ssd-a", "ssd-d"):
                # The paper has "relatively large request sizes" and prints none; the profile's are 2 KiB.
                for io in ("1MiB",) if quick else ("64KiB", "256KiB", "1MiB"):
                    yield from configured(
                        filebench | {"part": "oltp-io", "limits": "fitted", "io": io}, MERGES[:1]
                    )


class Found:
    """The bandwidths of one reading: which requests merge, and how much may be dirty."""

    def __init__(
        self, rows: Sequence[Row], merge: str, limits: str, part: str = "figure-9"
    ) -> None:
        kept = [
            row
            for row in rows
            if row["merge"] in ("", merge) and row["limits"] == limits and not row["error"]
        ]
        self.postmark = {
            (row["drive"], row["size_kib"], row["configuration"]): row
            for row in kept
            if row["part"] == part
        }
        self.filebench = {
            (row["drive"], row["load"], row["configuration"]): row
            for row in kept
            if row["part"] == "figure-10" and part == "figure-9"
        }
        self.sizes = sorted({size for _, size, _ in self.postmark})

    def gain(self, drive: str, size: int, configuration: str, over: str = NOOP) -> float:
        """Change of Postmark's write bandwidth."""
        one, other = (
            self.postmark[drive, size, which]["write_mb_per_s"] for which in (configuration, over)
        )
        return float(one / other - 1)

    def bench(self, drive: str, load: str, configuration: str, over: str = NOOP) -> float:
        """Change of Filebench's bandwidth."""
        one, other = (
            self.filebench[drive, load, which]["overall_mb_per_s"]
            for which in (configuration, over)
        )
        return float(one / other - 1)


def per_cent(values: Iterable[float]) -> str:
    return ", ".join(f"{100 * value:+.0f}" for value in values)


def grade(*held: bool) -> str:
    """All, some or none of what a claim says."""
    return GOOD if all(held) else PARTLY if any(held) else BAD


def mostly(held: Sequence[bool]) -> bool:
    """An ordering holds at 80 % of the points."""
    return sum(held) >= 0.8 * len(held)


def judge(found: Found) -> list[tuple[str, str, str, str]]:
    """The claims under one reading: claim, what the source says, what was found, verdict."""
    table: list[tuple[str, str, str, str]] = []
    three = ("ssd-a", "ssd-b", "ssd-d")
    both = (PAS, PASA)
    large, small = found.sizes[-2:], found.sizes[:2]
    signs = [found.gain(d, s, c) > 0 for d in three for s in large for c in both]

    def mean_gain(drive: str, sizes: Sequence[int], configuration: str) -> float:
        return sum(found.gain(drive, size, configuration) for size in sizes) / len(sizes)

    growth = [mean_gain(d, large, c) > mean_gain(d, small, c) for d in three for c in both]
    table.append((
        "K9", "Postmark, A, B, D: PAS and PASA with PAI above NoPAS-NOOP at 4 and 8 MB, little at small sizes",
        "; ".join(
            f"{d[-1].upper()} {c} {per_cent(found.gain(d, s, c) for s in found.sizes)} %" for d in three for c in both
        )
        + f" (by size); above at {sum(signs)} of {len(signs)} points, gain grows in {sum(growth)} of {len(growth)}",
        grade(mostly(signs), mostly(growth)),
    ))  # fmt: skip
    top = found.sizes[-1]
    a = [found.postmark["ssd-a", top, c]["write_mb_per_s"] for c in (PAI, PAS, PASA)]
    table.append((
        "K10", "A, 8 MB: PASA-PAI 5 % above PAS-PAI, 20 % above NoPAS-PAI",
        f"NoPAS-PAI, PAS-PAI, PASA-PAI {a[0]:.1f}, {a[1]:.1f}, {a[2]:.1f} MB/s: PASA {100 * (a[2] / a[1] - 1):+.0f} % "
        f"and {100 * (a[2] / a[0] - 1):+.0f} %",
        grade(a[2] > a[1] > a[0], 0.05 <= a[2] / a[0] - 1 <= 0.35),
    ))  # fmt: skip
    every = {
        (d, s, c): found.gain(d, s, c) for d in DRIVES for s in found.sizes for c in (PAI, *both)
    }
    best = max(every, key=lambda at: every[at])
    table.append((
        "K11", "Postmark improves by up to 24 %",
        f"{100 * every[best]:+.0f} % ({best[0]}, {best[1]} KiB, {best[2]})",
        GOOD if 0 < every[best] < 0.6 else BAD,
    ))  # fmt: skip
    alone = [every[d, s, PAI] for d in DRIVES for s in found.sizes]
    table.append((
        "K12", "NoPAS-PAI mixed: gains and losses",
        f"{100 * min(alone):+.1f} to {100 * max(alone):+.1f} %, a gain at {sum(g > 0 for g in alone)}, a loss at "
        f"{sum(g < 0 for g in alone)} of {len(alone)}",
        GOOD if min(alone) < 0 < max(alone) or max(map(abs, alone)) <= LITTLE else BAD,
    ))  # fmt: skip
    c_large = [found.gain("ssd-c", s, c) for s in large for c in both]
    c_small = [found.gain("ssd-c", s, c) for s in found.sizes[:3] for c in both]
    table.append((
        "K13", "C: little change for large files, modest gains at 256 KB to 1 MB",
        "; ".join(f"{c} {per_cent(found.gain('ssd-c', s, c) for s in found.sizes)} %" for c in both) + " (by size)",
        grade(max(map(abs, c_large)) <= 2 * LITTLE, mostly([g > 0 for g in c_small])),
    ))  # fmt: skip
    rows = {c: found.postmark["ssd-a", top, c] for c in (PAI, *both)}
    ratios = [rows[c]["requests"] / rows[PAI]["requests"] for c in both]
    shares = [rows[c]["aligned_at_start"] / rows[c]["requests"] for c in rows]
    published = [TABLE_4[8192, c][0] / TABLE_4[8192, PAI][0] for c in both]
    table.append((
        "K14", "A, 8 MB: PAS 1.71 and PASA 1.86 times the requests; aligned 38, 35 and 88 %",
        f"x{ratios[0]:.2f} and x{ratios[1]:.2f} of {rows[PAI]['requests']}; aligned {100 * shares[0]:.0f}, "
        f"{100 * shares[1]:.0f} and {100 * shares[2]:.0f} %",
        grade(
            *(abs(ours / theirs - 1) <= 0.25 for ours, theirs in zip(ratios, published, strict=True)),
            shares[2] >= 0.8,
            *(0.3 <= share <= 0.45 for share in shares[:2]),
        ),
    ))  # fmt: skip
    table.append((
        "K15", "\"increase by 171 and 186 percent\"",
        f"the table's counts are {published[0]:.3f} and {published[1]:.3f} times NoPAS: ratios, not increases",
        GOOD if [round(100 * p) for p in published] == [171, 186] else BAD,
    ))  # fmt: skip
    slopes = {d: found.gain(d, top, PASA) > found.gain(d, found.sizes[0], PASA) for d in three}
    losses = [
        (d, s) for d in DRIVES for s in found.sizes if all(found.gain(d, s, c) < -LITTLE for c in both)
    ]  # fmt: skip
    k19 = (
        "K19", "the benefit grows with the request size; few consistent losses",
        f"largest above smallest size with PASA-PAI on {', '.join(d[-1].upper() for d in three if slopes[d]) or 'none'}"
        f" of A, B, D; PAS and PASA both lose more than 5 % at {len(losses)} of "
        f"{len(DRIVES) * len(found.sizes)} points",
        grade(all(slopes.values()), len(losses) <= 0.2 * len(DRIVES) * len(found.sizes)),
    )  # fmt: skip
    if not found.filebench:
        return [*table, k19]
    points = [(d, load) for d in DRIVES for load in PROFILES]
    over = {c: {at: found.bench(*at, c) for at in points} for c in (PAI, *both)}
    table.append((
        "K16", "Filebench: NoPAS-PAI above NoPAS-NOOP on all drives",
        "; ".join(
            f"{load} {per_cent(over[PAI][d, load] for d in DRIVES)} %" for load in PROFILES
        ) + " (A to D)",
        grade(*(g > 0 for g in over[PAI].values())) if not mostly([g > 0 for g in over[PAI].values()]) else GOOD,
    ))  # fmt: skip
    further = [
        max(found.bench(d, load, c, PAI) for c in both) > 0 for d in three for load in PROFILES
    ]
    still = [
        max(found.bench("ssd-c", load, c, PAI) for c in both) <= 2 * LITTLE for load in PROFILES
    ]
    peaks = {d: max(PROFILES, key=lambda load: max(over[c][d, load] for c in both)) for d in three}
    table.append((
        "K17", "PAS or PASA improve further, but not on C; gains largest in OLTP",
        "; ".join(
            f"{load} {c} {per_cent(over[c][d, load] for d in DRIVES)} %" for load in PROFILES for c in both
        )
        + f" (over NOOP, A to D); further at {sum(further)} of {len(further)}; largest in "
        + ", ".join(f"{peaks[d]} ({d[-1].upper()})" for d in three),
        grade(mostly(further), mostly(still), all(load == "oltp" for load in peaks.values())),
    ))  # fmt: skip
    most = max(((c, at) for c in both for at in points), key=lambda key: over[key[0]][key[1]])
    table.append((
        "K18", "up to 321 % (D, OLTP, PASA-PAI)",
        f"D, OLTP, PASA-PAI {100 * over[PASA]['ssd-d', 'oltp']:+.0f} %; most {100 * over[most[0]][most[1]]:+.0f} % "
        f"({most[1][0]}, {most[1][1]}, {most[0]})",
        "recorded",
    ))  # fmt: skip
    return [*table, k19]


def claims(rows: Sequence[Row]) -> list[Row]:
    """The claims under the main reading, with the verdicts of the others beside."""
    readings: list[tuple[str, ...]] = [
        (merge, limits) for limits, merges in READINGS.items() for merge in merges
    ]
    readings.append((MERGES[0], "fitted", "empty"))
    judged = {
        reading: {row[0]: row for row in judge(Found(rows, *reading))} for reading in readings
    }
    table = []
    for claim, says, found, verdict in judged[readings[0]].values():
        row = {"claim": claim, "source says": says, "found": found, "verdict": verdict}
        for reading in readings[1:]:
            # Filebench is not played on an erased drive: its files would be there without data.
            other = judged[reading].get(claim)
            row[", ".join(reading)] = other[3] if other else ""
        table.append(row)
    return table


def compositions(rows: Sequence[Row]) -> list[Row]:
    """Table 4, the paper's lines and ours."""
    table = [
        {
            "source": "paper", "size_kib": size, "configuration": c, "merge": "", "limits": "", "write_buffer": "",
            "requests": counts[0], "aligned_percent": 100 * counts[1] / counts[0], "aligned_both_percent": "",
            "within_percent": 100 * counts[2] / counts[0],
        }
        for (size, c), counts in TABLE_4.items()
    ]  # fmt: skip
    parts = ("figure-9", "alone", "low", "buffer")
    ends = sorted({row["size_kib"] for row in rows if row["part"] == "low"})
    for row in rows:
        if row["part"] in parts and row["drive"] == "ssd-a" and row["size_kib"] in ends:
            share = 100 / max(1, row["requests"])
            table.append({
                "source": "model", "size_kib": row["size_kib"], "configuration": row["configuration"],
                "merge": row["merge"], "limits": row["limits"], "write_buffer": row["write_buffer"] or "255 KiB",
                "requests": row["requests"], "aligned_percent": share * row["aligned_at_start"],
                "aligned_both_percent": share * row["aligned_at_both_ends"],
                "within_percent": share * row["within_buffer"],
            })  # fmt: skip
    return table


def write(folder: Path, name: str, rows: Sequence[Row]) -> None:
    """A table; numbers with four digits."""
    if not rows:
        return
    folder.mkdir(parents=True, exist_ok=True)
    columns = list(max(rows, key=len))
    with (folder / name).open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()})


def main() -> None:
    """Run all, write the tables, print the claims."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two sizes, few transactions")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parts = (
        "figure-9",
        "empty",
        "alone",
        "low",
        "buffer",
        "timeout",
        "entry",
        "figure-10",
        "oltp-io",
    )
    parser.add_argument("--only", choices=parts, help="one part, without claims")
    parser.add_argument("--out", type=Path, default=HERE, help="folder for the CSV files")
    given = parser.parse_args()
    began = time.monotonic()
    listed = [job for job in jobs(given.quick) if given.only in (None, job["part"])]
    rows = []
    with ProcessPoolExecutor(given.jobs) as pool:
        for row in pool.map(play, listed, chunksize=1):
            rows.append(row)
            told = row["error"] or (
                f"{row['write_mb_per_s']:8.1f} MB/s written {row['overall_mb_per_s']:8.1f} overall "
                f"{row['requests']:7} requests"
            )
            print(
                f"{row['part']:10}{row['drive']:6} {row['load']:10} {row['size_kib']:5} KiB {row['limits']:7}"
                f"{row['configuration']:11}{row['merge']:12}{told}",
                flush=True,
            )
    cpu = sum(row.pop("cpu_s", 0) for row in rows)
    for part in parts:
        write(given.out, f"{part}.csv", [row for row in rows if row["part"] == part])
    if given.only is None:
        write(given.out, "table-4.csv", compositions(rows))
        table = claims(rows)
        write(given.out, "claims.csv", table)
        for row in table:
            print(
                f"\n{row['claim']}  {row['source says']}\n    found: {row['found']}\n    -> {row['verdict']}"
            )
    print(
        f"\n{len(rows)} runs, {cpu:.0f} s of CPU, {time.monotonic() - began:.0f} s in all with {given.jobs} processes"
    )


if __name__ == "__main__":
    main()
