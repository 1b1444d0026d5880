"""Chapters 2 and 3 of Hu's dissertation (2012): PUD-LRU and GC-ARM against BPLRU, DFTL, AP and page mapping.

`run.py figure-2.3` plays one figure and prints it, `run.py claims` plays all of them and judges every claim by its
rule (claims.py). Results go to results.csv; `--reuse` plays only what is not there yet. README.md beside this file
says what was assumed and what came out.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from flashwright import Ssd, workloads
from flashwright.catalogue import catalogue

HERE = Path(__file__).parent
MIB = 1 << 20
BLOCK_PAGES = 128
PAGE_KIB = 4
BLOCKS = 65_536  # 32 GiB of 512 KiB blocks: 64 MiB of table at 8 B a page
LOGS = 655  # 1 % of the blocks, rounded down
KEPT_ERASED = 4  # blocks that cleaning and merging keep erased, beside the spare space
SIZES = (8, 16, 24, 32, 48, 64)
SIZES_3 = (8, 16, 32, 48, 64, 80)  # chapter 3 looks beyond the 64 MiB of the whole table
FEW = (8, 16, 32, 64)
QUICK = 16  # by what --quick divides drive, RAM and requests
THRESHOLDS = (0.1, 0.01, 0.001, 0.0001, 0.00001)

# Stand-ins: what is played, and requests before measuring and measured.
STAND_INS = {
    "Financial1": ("stand-in:trace=financial1", 500_000, 1_000_000),
    "Financial2": ("stand-in:trace=financial2,variant=hu12", 1_500_000, 1_500_000),
    "Exchange": ("stand-in:trace=exchange,variant=hu12", 200_000, 300_000),
    "Build": ("stand-in:trace=build,variant=hu12", 400_000, 600_000),
    "MSN": ("stand-in:trace=msn,variant=hu12", 200_000, 400_000),
    "TPC-E": ("stand-in:trace=tpc-e,variant=hu12", 500_000, 700_000),
}
# Heads of real traces: file, requests, how often they are played before measuring and measured.
HEADS = {
    "Financial1 head 10k": ("financial1-first10k.spc.zst", "spc", 10_000, 60, 60),
    "Financial1 head 50k": ("financial1-first50k.flashsim.zst", "flashsim", 50_000, 12, 12),
    "MSN head": ("msn-fs-150k.disksim.zst", "disksim", 149_999, 4, 4),
}
# They write 14, 33 and 169 MiB, so the first two call for less RAM.
HEAD_SIZES = (2, 4, 8, 16, 24, 32)  # chapter 3: the first four
# The TPC-E trace as section 3.3.2 tells of it: writes fill a block in random order, almost wholly, then go to the next.
TOLD = "TPC-E as told"
# The same on a drive that was filled in random order; added after the fill had turned out to decide (figure `spare`).
TOLD_RANDOM = f"{TOLD}, random fill"
SHORT = ", short"  # a tenth: caches that let single pages go merge for each of them
CHAPTER_2 = ("Financial1", "Financial2", "Exchange", "Build", "TPC-E")
CHAPTER_3 = ("Financial1", "Financial2", "Exchange", "MSN", "TPC-E")
FIGURES_2 = dict(zip(("2.3", "2.4", "2.5", "2.6", "2.7"), CHAPTER_2, strict=True))
FIGURES_3 = dict(zip(("3.6", "3.7", "3.8", "3.9", "3.10"), CHAPTER_3, strict=True))
WRITES_3 = dict(zip(("3.11", "3.12", "3.13", "3.14", "3.15"), CHAPTER_3, strict=True))
ALSO = {
    "Financial1": ["Financial1 head 10k", "Financial1 head 50k"],
    "MSN": ["MSN head"],
    "TPC-E": [TOLD, TOLD_RANDOM],
}

Job = dict[str, Any]
Row = dict[str, Any]


def known_managers() -> set[str]:
    """Managers that this build has."""
    return {item.name for item in catalogue()["ram.manager"]}


def settings_of(job: Job, scale: int) -> dict[str, Any]:
    """The drive: hu-2012 with 32 GiB of logical space (or that over `scale`) and the spare space beside it."""
    blocks = BLOCKS // scale
    logs = max(1, LOGS // scale)
    spare = max(round(job["op"] * blocks), logs)
    kib = round(job["ram"] * 1024) // scale
    scheme = job["scheme"]
    found: dict[str, Any] = {
        "geometry.blocks-per-plane": blocks + spare + KEPT_ERASED + job.get("extra_blocks", 0),
        "capacity.logical": f"{blocks * BLOCK_PAGES * PAGE_KIB} KiB",
        "ftl.entry-bytes": 8,
        "gc.victim": job.get("victim", "greedy"),
        "gc.free-blocks-min": 3,
    }
    if scheme == "page":
        return found | {"ftl.scheme": "page"}
    if scheme == "dftl":
        return found | {
            "ftl.scheme": "dftl",
            "ftl.dftl.cmt-entries": min(kib * 1024 // 8, blocks * BLOCK_PAGES),
        }
    manager = scheme.split()[0]
    found |= {"ram.manager": manager, "ram.size": f"{kib} KiB"}
    if manager in ("gc-arm", "ap"):
        found |= {"ftl.scheme": "dftl"}
        found |= {"ftl.dftl.replacement": "grouped" if manager == "gc-arm" else "lru"}
    else:
        found |= {"ftl.scheme": "bast", "ftl.bast.log-blocks": logs}
    return found | job.get("set", {})


def play(job: Job) -> Row:
    """One run, boiled down to a row."""
    scale = job["scale"]
    row = {key: job[key] for key in KEYS}
    source: Any = job["spec"]
    if "path" in job:
        source = workloads.trace(job["path"], format=job["format"], repeat=job["repeat"])
    began = time.monotonic()
    try:
        ssd = Ssd.named("hu-2012").with_(settings_of(job, scale)).precondition(job["state"])
        run = ssd.play(source, requests=job["requests"], warmup=job["warmup"], seed=1, window="off")
    except Exception as error:  # a drive that can't hold the scheme is a finding, not a crash
        return row | {"error": str(error).splitlines()[0]}
    j = run.json
    flash, ram = j["flash"], j["buffer"]
    programs = flash["programs"]
    service = j["service_time_ns"]["all"]["mean"]
    span = j["measured"]["duration_ns"]
    pages_mapped = job["scheme"] in ("page", "dftl") or job["scheme"].startswith(("gc-arm", "ap"))
    efficiency = j["gc"]["efficiency"]
    partition = ram["partition"]
    return row | {
        "error": "",
        "requests": j["measured"]["requests"],
        "pages_written": j["host"]["pages_written"],
        "pages_read": j["host"]["pages_read"],
        "erases": flash["erases"]["total"],
        "response_ms": j["response_time_ns"]["all"]["mean"] / 1e6,
        "service_ms": service / 1e6,
        # One operation at a time: at 1 the drive does not keep up, and the response tells how long was played.
        "load": service * j["measured"]["requests"] / span,
        "write_amplification": j["write_amplification"],
        "programs": programs["total"],
        "programs_data": programs["host"],
        "programs_gc": programs["gc"] + programs["merge"] + programs["padding"] + programs["wear"],
        "programs_padding": programs["padding"],
        "programs_translation": programs["translation"],
        # Chapter 3: invalid pages of a victim, or pages of the host in a destage.
        "gc_efficiency_pages": efficiency * BLOCK_PAGES
        if pages_mapped and efficiency is not None
        else ram["pages_per_destage_mean"],
        "map_hit_ratio": j["mapping_cache"]["hit_ratio"],
        "write_hit_ratio": ram["write_hit_ratio"],
        "destages": ram["destages"],
        "block_destages": ram["block_destages"],
        "pages_per_destage": ram["pages_per_destage_mean"],
        "merges_switch": j["merges"]["switch"],
        "merges_full": j["merges"]["full"],
        "buffer_share_end": partition["buffer_pages"][-1]
        * PAGE_KIB
        * 1024
        / (partition["buffer_pages"][-1] * PAGE_KIB * 1024 + partition["map_entries"][-1] * 8)
        if partition
        else None,
        "wall_s": round(time.monotonic() - began, 1),
    }


KEYS = ("workload", "scheme", "ram", "op", "state", "victim", "extra_blocks", "scale")


def job(workload: str, scheme: str, ram: float, sources: dict[str, Job], **given: Any) -> Job:
    """A run by what it varies."""
    plain = {"op": 0.03, "state": "sequential", "victim": "greedy", "extra_blocks": 0}
    found = plain | sources[workload] | given | {"workload": workload, "scheme": scheme}
    found["ram"] = 0 if scheme == "page" else ram
    if scheme.startswith("pud-lru "):
        word = scheme.split()[1]
        found["set"] = (
            {"ram.pud-lru.adaptive": True}
            if word == "adaptive"
            else {"ram.pud-lru.threshold": float(word)}
        )
    if scheme == "gc-arm measured":
        found["set"] = {"ram.gc-arm.randomness": "measured"}
    return found


def sources_of(folder: Path | None, scratch: Path, quick: bool) -> dict[str, Job]:
    """Workloads by name: how each is played."""
    scale = QUICK if quick else 1
    found: dict[str, Job] = {}
    for name, (spec, warmup, requests) in STAND_INS.items():
        found[name] = {"spec": spec, "warmup": warmup // scale, "requests": requests // scale}
    path = scratch / "told.mqsim"
    warmup, requests = (500_000 // scale, 700_000 // scale)
    tell(path, BLOCKS // scale, warmup + requests)
    played = {"path": str(path), "format": "mqsim", "repeat": 1, "spec": None}
    found[TOLD] = played | {"warmup": warmup, "requests": requests}
    found[TOLD_RANDOM] = found[TOLD] | {"state": "random"}
    for name, (file, kind, length, before, measured) in HEADS.items():
        if folder is not None and (folder / file).exists():
            before, measured = (1, 1) if quick else (before, measured)
            found[name] = {
                "path": str(folder / file),
                "format": kind,
                "repeat": before + measured,
                "warmup": before * length,
                "requests": measured * length,
                "spec": None,
            }
    for name in ("Financial1", "Financial1 head 10k", "Exchange", "TPC-E"):
        if name in found:
            shorter = {k: max(1, found[name][k] // 10) for k in ("warmup", "requests")}
            found[name + SHORT] = found[name] | shorter
    return {name: source | {"scale": scale} for name, source in found.items()}


def tell(path: Path, blocks: int, requests: int) -> None:
    """Write the TPC-E trace as the dissertation tells of it: 308 requests a second of 12 KiB, 16.1 % of them writes.

    A block takes 42 writes of 3 pages in random order, then the next block has its turn: 126 of 128 pages, none
    twice. Reads go anywhere. Only the words of section 3.3.2 and the row of Table 2.2 went into this.
    """
    rng = np.random.default_rng(1)
    arrival = np.cumsum(rng.exponential(1e9 / 308, requests)).astype(np.int64)
    reads = rng.random(requests) < 0.839
    pieces = BLOCK_PAGES // 3
    writes = int(requests - reads.sum())
    turns = -(-writes // pieces)
    order = rng.permuted(np.tile(np.arange(pieces), (turns, 1)), axis=1).ravel()[:writes]
    page = rng.integers(0, blocks * BLOCK_PAGES - 3, requests)
    page[~reads] = np.repeat(np.arange(turns) % blocks, pieces)[:writes] * BLOCK_PAGES + 3 * order
    zeros = np.zeros(requests, np.int64)
    table = pa.table(
        [arrival, zeros, page * 8, zeros + 24, reads.astype(np.int64)], names=list("abcde")
    )
    plain = pyarrow.csv.WriteOptions(include_header=False, delimiter=" ")
    pyarrow.csv.write_csv(table, path, plain)


def jobs(figure: str, sources: dict[str, Job], quick: bool) -> list[Job]:
    """The runs of a figure."""
    sizes = FEW if quick else SIZES
    larger = FEW if quick else SIZES_3
    few = (8, 32) if quick else FEW
    made: list[Job] = []

    def add(
        names: Iterable[str], schemes: Iterable[str], ram: Iterable[float], **given: Any
    ) -> None:
        made.extend(
            job(name, scheme, size, sources, **given)
            for name in names
            if name in sources
            for scheme in schemes
            for size in sizes_for(name, ram)
        )

    def sizes_for(name: str, ram: Iterable[float]) -> Iterable[float]:
        if name == TOLD_RANDOM:
            return (16, 64) if ram in (sizes, larger) else ram  # each takes minutes
        if quick or not name.startswith("Financial1 head"):
            return ram
        if ram == sizes:
            return HEAD_SIZES
        if ram in (few, larger):
            return (2, 4, 8, 16)
        if ram == few[::2]:
            return (2, 8)
        return (4,) if ram == (16,) and "10k" in name else ram

    also = [name for names in ALSO.values() for name in names if name != TOLD_RANDOM]

    def both(name: str) -> list[str]:
        return [name, *ALSO.get(name, [])]

    if figure == "table-2.1":
        names = ["Financial1", "Financial1 head 50k"]
        add(names, ["bplru"], [31.4375])
        add(names, ["page"], [0])
    elif figure in FIGURES_2:
        names = both(FIGURES_2[figure])
        add(names, ["page"], [0])
        add(names, ["bplru", "pud-lru", "dftl"], sizes)
    elif figure == "2.8":
        names = [*CHAPTER_2, *also]
        add(names, ["bplru", *(f"pud-lru {t}" for t in THRESHOLDS if t != 0.001), "pud-lru"], (16,))
    elif figure == "2.9":
        add([*CHAPTER_2, *also], ["bplru", "pud-lru"], sizes)
    elif figure in FIGURES_3 or figure in WRITES_3:
        names = both((FIGURES_3 | WRITES_3)[figure])
        add(names, ["page"], [0])
        add(names, ["bplru", "dftl", "ap", "gc-arm"], larger)
    elif figure == "adaptive":
        add([*STAND_INS, *also], ["pud-lru", "pud-lru adaptive"], few)
        add([*CHAPTER_3, *also], ["gc-arm", "gc-arm measured"], few[::2])
        add([TOLD_RANDOM], ["gc-arm", "gc-arm measured"], [16])
    elif figure == "spare":
        schemes = ["bplru", "pud-lru", "dftl", "gc-arm"]
        for given in SPARE:
            told = TOLD_RANDOM if given.get("state") == "random" else TOLD
            names = ["Financial1", "TPC-E", told]
            add(names, ["page"], [0], **given)
            add(names, schemes, [16], **given)
    elif figure == "caches":  # D1.8 and D1.9
        add([name for name in sources if name.endswith(SHORT)], ["cflru", "fab", "bplru"], (16,))
    elif (
        figure == "whole-map"
    ):  # D3.11: the blocks of the table beside, so that both have the same spare space
        add(["Financial1", "Exchange"], ["page"], [0])
        blocks = BLOCKS * 8 * BLOCK_PAGES // 4096 // BLOCK_PAGES // (QUICK if quick else 1)
        add(["Financial1", "Exchange"], ["dftl"], [64], extra_blocks=blocks)
    else:
        raise SystemExit(f"{figure}: no such figure; there are {', '.join(FIGURES)}")
    managers = known_managers()
    plain = {"page", "dftl"}
    made = [m for m in made if m["scheme"].split()[0] in managers | plain]
    return list({key_of(m): m for m in made}.values())


# Fill state and spare space, beside the norm (filled in order, 3 %).
SPARE: tuple[dict[str, Any], ...] = (
    {"op": 0.01},
    {"op": 0.03},
    {"op": 0.07},
    {"op": 0.03, "state": "random"},
    {"op": 0.03, "state": "empty"},
)
FIGURES = (
    "table-2.1",
    *FIGURES_2,
    "2.8",
    "2.9",
    *FIGURES_3,
    *WRITES_3,
    "adaptive",
    "spare",
    "caches",
    "whole-map",
)


def key_of(row: Row) -> tuple[str, ...]:
    """What tells a run from all others, also when it comes from a file."""
    return tuple(
        f"{float(row[key]):g}" if key in ("ram", "op", "extra_blocks", "scale") else str(row[key])
        for key in KEYS
    )


def read(path: Path) -> dict[tuple[str, ...], Row]:
    """Rows that an earlier call wrote."""
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    texts = {"workload", "scheme", "state", "victim", "error"}
    made = [
        {k: v if k in texts else (float(v) if v not in ("", None) else None) for k, v in r.items()}
        for r in rows
    ]
    return {key_of(row): row for row in made if not row["error"]}


def write(path: Path, rows: Iterable[Row]) -> None:
    """All rows, in the order of workload, scheme and size."""
    rows = sorted(rows, key=lambda r: (r["workload"], r["scheme"], key_of(r)[2:], float(r["ram"])))
    columns = [c for c in next(r for r in rows if not r["error"]) if c != "wall_s"]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: plain(v) for k, v in row.items()})


def plain(value: Any) -> Any:
    """Counts whole, the rest to six digits."""
    if not isinstance(value, float):
        return value
    return int(value) if value.is_integer() else f"{value:.6g}"


def run_all(listed: list[Job], out: Path, processes: int, reuse: bool) -> list[Row]:
    """Play what is not there yet, and keep each result as it comes."""
    path = out / "results.csv"
    rows = read(path) if reuse else {}
    wanted = [j for j in {key_of(j): j for j in listed}.values() if key_of(j) not in rows]
    began = saved = time.monotonic()
    with ProcessPoolExecutor(processes) as pool:
        futures = [pool.submit(play, j) for j in wanted]
        for done, future in enumerate(as_completed(futures), 1):
            row = future.result()
            rows[key_of(row)] = row
            if row["error"]:
                print(f"could not run: {row['workload']}, {row['scheme']}: {row['error']}")
            if time.monotonic() - saved > 20 or done == len(futures):
                saved = time.monotonic()
                write(path, rows.values())
                print(f"{done} of {len(futures)} runs, {saved - began:.0f} s", file=sys.stderr)
    asked = {key_of(j) for j in listed}
    return [row for key, row in rows.items() if key in asked]


def show(figure: str, rows: list[Row], path: Path) -> None:
    """The figure as a table, normalized to page mapping where the dissertation does so; also as CSV."""
    out: list[list[str]] = []
    shares = figure in WRITES_3
    order = ("page", "dftl", "ap", "gc-arm", "bplru", "pud-lru")
    names = sorted({r["workload"] for r in rows})
    for row in sorted(
        rows,
        key=lambda r: (
            names.index(r["workload"]),
            r["state"],
            r["op"],
            next((i for i, o in enumerate(order) if r["scheme"] == o), 9),
            r["scheme"],
            r["ram"],
        ),
    ):
        base = next(
            (
                r
                for r in rows
                if r["scheme"] == "page"
                and all(r[k] == row[k] for k in ("workload", "op", "state"))
            ),
            None,
        )
        if row["error"]:
            continue
        line = [
            row["workload"],
            row["scheme"],
            f"{row['ram']:g}",
            f"{row['op']:g}",
            row["state"],
            f"{row['erases']:.0f}",
            f"{row['erases'] / base['erases']:.3f}" if base and base["erases"] else "",
            f"{row['response_ms']:.4g}" if row["load"] < 0.98 else "does not keep up",
            f"{row['service_ms']:.4g}",
            f"{row['service_ms'] / base['service_ms']:.3f}" if base else "",
            f"{row['gc_efficiency_pages'] or 0:.1f}",
        ]
        if shares:
            total = row["programs"] or 1
            line[5:] = [
                f"{row['programs']:.0f}",
                *(
                    f"{100 * row['programs_' + c] / total:.1f}"
                    for c in ("data", "gc", "translation")
                ),
            ]
        out.append(line)
    head = [
        "workload",
        "scheme",
        "ram_mib",
        "spare",
        "filled",
        "erases",
        "erases_to_page",
        "response_ms",
        "service_ms",
        "service_to_page",
        "pages_freed_or_destaged",
    ]
    if shares:
        head[5:] = ["programs", "data_%", "gc_%", "translation_%"]
    widths = [max(len(line[i]) for line in [head, *out]) for i in range(len(head))]
    print(f"\n{figure}")
    for line in [head, *out]:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)))
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(out)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = [
        f if f.startswith("table") else f"figure-{f}"
        for f in FIGURES
        if f[0].isdigit() or f.startswith("table")
    ]
    known += [f for f in FIGURES if not f[0].isdigit() and not f.startswith("table")]
    options.add_argument(
        "what", nargs="?", default="claims", help=f"claims, figure-3.3, {', '.join(known)}"
    )
    options.add_argument(
        "--traces", default=os.environ.get("FLASHWRIGHT_TRACES"), help="folder of real trace heads"
    )
    options.add_argument(
        "--quick", action="store_true", help="a 16th of drive, RAM and requests: shapes only"
    )
    options.add_argument("--jobs", type=int, default=2, help="processes")
    options.add_argument("--out", default=str(HERE), help="folder for the CSV files")
    options.add_argument("--reuse", action="store_true", help="play only what results.csv lacks")
    given = options.parse_args()
    folder = Path(given.traces) if given.traces else None
    out = Path(given.out)
    out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    import claims

    if given.what in ("figure-3.3", "3.3"):
        claims.distinct_blocks(folder, out)
        return
    with tempfile.TemporaryDirectory() as scratch:
        sources = sources_of(folder, Path(scratch), given.quick)
        if given.what == "claims":
            wanted = {f: jobs(f, sources, given.quick) for f in FIGURES}
        else:
            figure = given.what.removeprefix("figure-")
            wanted = {figure: jobs(figure, sources, given.quick)}
        listed = [j for made in wanted.values() for j in made]
        rows = run_all(listed, out, given.jobs, given.reuse)
    by_key = {key_of(row): row for row in rows}
    for figure, made in wanted.items():
        found = [by_key[key_of(m)] for m in made if key_of(m) in by_key]
        name = f"figure-{figure}" if figure[0].isdigit() else figure
        show(name.removeprefix("figure-"), found, out / f"{name}.csv")
    if given.what in ("claims", "adaptive"):
        claims.adaptive(rows, out)
    if given.what == "claims":
        claims.tell(rows, folder, out)
    print(
        f"\n{len(rows)} runs, {time.monotonic() - began:.0f} s in all with {given.jobs} processes"
    )


if __name__ == "__main__":
    main()
