"""What chapters 2 and 3 play: the drive, the workloads, and jobs that boil a run down to a row.

Parts that list these jobs are in ram_runs.py, so that changing those plays nothing again.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from flashwright import RunResult, Ssd, fit_trace, tracefiles, workloads
from flashwright.errors import FlashwrightError

BLOCK_PAGES = 128
PAGE_KIB = 4
BLOCKS = 65_536  # 32 GiB of 512 KiB blocks: 64 MiB of table at 8 B a page
LOGS = 655  # 1 % of the blocks, rounded down
KEPT_ERASED = 4  # blocks that cleaning and merging keep erased, beside the spare space
SPARE = 0.03
QUICK = 16  # by what quick runs divide drive, RAM and requests
WINDOW = 500  # requests a window of figure 3.3

FINANCIAL_1, FINANCIAL_2, EXCHANGE = "Financial 1", "Financial 2", "Exchange"
BUILD, MSN, TPC_E = "Build", "MSN", "TPC-E"
TPC_E_DESCRIBED = "TPC-E as described"
HEAD_1, HEAD_MSN = "first 10,000 requests of Financial 1", "first 149,999 requests of MSN"

# What is played, and requests before measuring and measured.
STAND_INS = {
    FINANCIAL_1: ("stand-in:trace=financial1,variant=whole", 500_000, 1_000_000),
    FINANCIAL_2: ("stand-in:trace=financial2,variant=hu12", 1_500_000, 1_500_000),
    EXCHANGE: ("stand-in:trace=exchange,variant=hu12", 200_000, 300_000),
    BUILD: ("stand-in:trace=build,variant=hu12", 400_000, 600_000),
    MSN: ("stand-in:trace=msn,variant=hu12", 200_000, 400_000),
    TPC_E: ("stand-in:trace=tpc-e,variant=hu12", 500_000, 700_000),
}
# What sets runs apart; a head by its model is its own requests in segments drawn anew (`flashwright trace fit`).
IN_ORDER, WHOLE_MAP, BY_MODEL = "filled in order", "the whole map in RAM", "by a model of it"
TPC_E_DESCRIBED_REQUESTS = (500_000, 700_000)
# Table 2.2's write/read ratio where it may be one, or per cent.
TABLE_2_2 = {BUILD: 41.0, MSN: 66.7, TPC_E: 83.9, TPC_E_DESCRIBED: 83.9}
# Of real traces: format, requests, how often they are played before measuring and measured.
HEADS = {HEAD_1: ("spc", 10_000, 60, 60), HEAD_MSN: ("disksim", 149_999, 4, 4)}
# Whole ones: format and requests, of which the first half is not measured.
WHOLE = {FINANCIAL_1: ("spc", 5_334_987), FINANCIAL_2: ("spc", 3_699_194)}


def drive(
    scheme: str, ram: float, spare: float = SPARE, scale: int = 1, more_blocks: int = 0
) -> dict[str, Any]:
    """Settings of hu-2012 with 32 GiB of logical space (or that over `scale`) and the spare space beside it.

    `scheme` is page, dftl or a manager of RAM; after a manager's name stands the threshold of PUD-LRU.
    """
    blocks, logs = BLOCKS // scale, max(1, LOGS // scale)
    kib = round(ram * 1024) // scale
    found: dict[str, Any] = {
        "geometry.blocks-per-plane": blocks
        + max(round(spare * blocks), logs)
        + KEPT_ERASED
        + more_blocks,
        "capacity.logical": f"{blocks * BLOCK_PAGES * PAGE_KIB} KiB",
        "ftl.entry-bytes": 8,
        "gc.victim": "greedy",
        "gc.free-blocks-min": 3,
    }
    if scheme == "page":
        return found | {"ftl.scheme": "page"}
    if scheme == "dftl":
        entries = min(kib * 1024 // 8, blocks * BLOCK_PAGES)
        return found | {"ftl.scheme": "dftl", "ftl.dftl.cmt-entries": entries}
    manager, *threshold = scheme.split()
    found |= {"ram.manager": manager, "ram.size": f"{kib} KiB"}
    if manager in ("gc-arm", "ap"):
        replacement = "grouped" if manager == "gc-arm" else "lru"
        found |= {"ftl.scheme": "dftl", "ftl.dftl.replacement": replacement}
    else:
        found |= {"ftl.scheme": "bast", "ftl.bast.log-blocks": logs}
    if threshold:
        found["ram.pud-lru.threshold"] = float(threshold[0])
    return found


def play(
    workload: str,
    scheme: str,
    ram: float,
    *,
    spare: float = SPARE,
    state: str = "sequential",
    scale: int = 1,
    more_blocks: int = 0,
    path: str | None = None,
    locality: str = "head",
    manager: Mapping[str, str] | None = None,
    varied: str = "",
    table_2_2: str = "reads",
) -> dict[str, Any]:
    """One run on the large drive, boiled down to a row; with `path`, a real trace.

    `table_2_2` says what the table's ratios above 40 are: see :func:`write_share`.
    `varied` is what sets the run apart from those by which claims are decided, such as another state of the drive.
    """
    row = {"workload": workload, "scheme": scheme, "ram": ram, "spare": spare, "state": state}
    row |= {"locality": locality, "varied": varied, "real": path is not None, "error": ""}
    given = drive(scheme, ram, spare, scale, more_blocks)
    name = scheme.split()[0]
    given |= {f"ram.{name}.{key}": value for key, value in (manager or {}).items()}
    ssd = Ssd.named("hu-2012").with_(given)
    with tempfile.TemporaryDirectory() as folder:
        source, warmup, requests = _source(
            workload, scale, path, Path(folder), locality, varied, table_2_2
        )
        try:
            run = ssd.precondition(state).play(
                source, requests=requests, warmup=warmup, seed=1, window="off"
            )
        except FlashwrightError as error:  # a drive that can't hold the scheme is a finding
            return row | {"error": str(error).splitlines()[0]}
    return row | _row(run, scheme)


def _source(
    workload: str,
    scale: int,
    path: str | None,
    folder: Path,
    locality: str,
    varied: str,
    table_2_2: str,
) -> tuple[workloads.Source | str, int, int | None]:
    """What is played, and requests before measuring and measured."""
    if path is not None and workload in HEADS:
        kind, length, before, measured = HEADS[workload]
        trace = workloads.trace(path, format=kind, addresses="wrap", repeat=before + measured)
        if varied == BY_MODEL:
            model = folder / "head.toml"
            fit_trace(workloads.trace(path, format=kind, addresses="wrap")).save(model)
            trace = workloads.parse(f"model:{model}")
        return trace, before * length, measured * length
    if path is not None:
        kind, length = WHOLE[workload]
        return workloads.trace(path, format=kind, addresses="wrap"), length // 2, None
    if workload == TPC_E_DESCRIBED:
        before, measured = (count // scale for count in TPC_E_DESCRIBED_REQUESTS)
        file = folder / "told.mqsim"
        tell(file, BLOCKS // scale, before + measured, write_share(workload, table_2_2))
        return workloads.trace(file, format="mqsim", addresses="wrap"), before, measured
    spec, before, measured = STAND_INS[workload]
    if locality != "head" and workload != TPC_E:
        spec = f"{spec}-{locality}".replace("whole-", "")
    if table_2_2 != "reads" and workload in TABLE_2_2:
        spec += f",write={write_share(workload, table_2_2):.4f}"
    return spec, before // scale, measured // scale


def _row(run: RunResult, scheme: str) -> dict[str, Any]:
    j = run.json
    flash, ram, programs = j["flash"], j["buffer"], j["flash"]["programs"]
    service = j["service_time_ns"]["all"]["mean"]
    efficiency = j["gc"]["efficiency"]
    page_mapped = scheme in ("page", "dftl", "gc-arm", "ap")
    return {
        "requests": j["measured"]["requests"],
        "erases": flash["erases"]["total"],
        "response_ms": j["response_time_ns"]["all"]["mean"] / 1e6,
        "service_ms": service / 1e6,
        # One operation at a time: at 1 the drive does not keep up, and the response tells how long was played.
        "load": service * j["measured"]["requests"] / j["measured"]["duration_ns"],
        "programs": programs["total"],
        "programs_data": programs["host"],
        "programs_gc": programs["gc"] + programs["merge"] + programs["padding"] + programs["wear"],
        "programs_translation": programs["translation"],
        # Chapter 3: invalid pages of a victim, or pages of the host in a destage.
        "gc_efficiency_pages": efficiency * BLOCK_PAGES
        if page_mapped and efficiency is not None
        else ram["pages_per_destage_mean"],
        "map_hit_ratio": j["mapping_cache"]["hit_ratio"],
        "destages": ram["destages"],
        "pages_per_destage": ram["pages_per_destage_mean"],
        "merges_switch": j["merges"]["switch"],
    }


def write_share(workload: str, table_2_2: str) -> float:
    """The share of writes of a trace for which table 2.2 prints a write/read ratio above 40.

    It is one (``ratio``), or per cent of all requests that read (``reads``) or write (``writes``).

    Examples
    --------
    >>> [round(write_share(BUILD, reading), 3) for reading in ("reads", "ratio", "writes")]
    [0.59, 0.976, 0.41]
    """
    printed = TABLE_2_2[workload]
    return {
        "reads": 1 - printed / 100,
        "ratio": printed / (1 + printed),
        "writes": printed / 100,
    }[table_2_2]


def tell(path: Path, blocks: int, requests: int, writes_share: float) -> None:
    """Write the TPC-E trace as the dissertation tells of it: 308 requests per second of 12 KiB, so many of them writes.

    A block takes 42 writes of 3 pages in random order, then the next block has its turn: 126 of 128 pages, none
    twice. Reads go anywhere. Only the words of section 3.3.2 and the row of table 2.2 went into this.
    """
    rng = np.random.default_rng(1)
    arrival = np.cumsum(rng.exponential(1e9 / 308, requests)).astype(np.int64)
    reads = rng.random(requests) < 1 - writes_share
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


# ---- what whole traces and heads hold


DOTS = (150, 100)  # spots of figure 2.1 across and up: as fine as a column of print


def statistics(trace: str, path: str, whole: bool) -> dict[str, Any]:
    """The columns of table 2.2 of a real trace."""
    kind = (WHOLE[trace] if whole else HEADS[trace])[0]
    found = tracefiles.info(workloads.trace(path, format=kind))
    return {
        "trace": trace,
        "whole": whole,
        "kib": found["bytes_mean"] / 1024,
        "writes_a_read": found["writes"] / max(1, found["reads"]),
        "a_second": found["requests_per_second"],
        "written_twice": found["pages_written_twice_percent"],
        "written_thrice": found["pages_written_thrice_percent"],
    }


def clusters(trace: str, path: str) -> dict[str, Any]:
    """How the writes among the first 5,000 requests gather in few blocks (figure 2.1)."""
    kind = (HEADS.get(trace) or WHOLE[trace])[0]
    table = tracefiles.columns(workloads.trace(path, format=kind), requests=5_000)
    writes = table.filter(np.array([kind == "write" for kind in table["kind"].to_pylist()]))
    blocks = writes["first_sector"].to_numpy() // (BLOCK_PAGES * 8)
    counts = np.sort(np.unique(blocks, return_counts=True)[1])[::-1]
    shares = np.cumsum(counts) / counts.sum()
    # Figure 2.1 has a dot a request; here those that fall on the same spot of the drawing are one.
    sectors = table["first_sector"].to_numpy().astype(np.float64)
    across, up = (
        np.arange(len(sectors)) * DOTS[0] // len(sectors),
        sectors * DOTS[1] // (sectors.max() + 1),
    )
    dots = np.unique(np.column_stack([across, up]), axis=0)
    at = np.unique(np.linspace(1, len(counts), 60).round().astype(int))
    top = max(1, round(len(counts) / 100))
    return {
        "trace": trace,
        "blocks": len(counts),
        "top": top,
        "share_of_top": float(shares[top - 1]),
        "share_of_ten": float(shares[min(10 * top, len(counts)) - 1]),
        "share_of_blocks": [float(n / len(counts)) for n in at],
        "share_of_writes": [float(shares[n - 1]) for n in at],
        "requests": (dots[:, 0] * len(sectors) / DOTS[0]).round().tolist(),
        "gib": (dots[:, 1] * sectors.max() * 512 / 2**30 / DOTS[1]).round(3).tolist(),
    }


def distinct_blocks(trace: str, path: str, whole: bool) -> dict[str, Any]:
    """Distinct blocks of 512 KiB touched by each 500 requests along a trace (figure 3.3)."""
    kind = (WHOLE[trace] if whole else HEADS[trace])[0]
    table = tracefiles.columns(workloads.trace(path, format=kind))
    sectors = BLOCK_PAGES * 8
    start = table["first_sector"].to_numpy().astype(np.int64)
    first, last = start // sectors, (start + table["sectors"].to_numpy() - 1) // sectors
    counts = [
        len(_blocks_of(first[at : at + WINDOW], last[at : at + WINDOW]))
        for at in range(0, len(first) - WINDOW + 1, WINDOW)
    ]
    half = len(counts) // 2
    drawn = np.array_split(np.array(counts), min(len(counts), 60))
    return {
        "trace": trace,
        "whole": whole,
        "mean": float(np.mean(counts)),
        "least": min(counts),
        "most": max(counts),
        "second_half_to_first": float(np.mean(counts[half:]) / np.mean(counts[:half])),
        "requests": len(first),
        "counts": [float(np.mean(each)) for each in drawn],
    }


def _blocks_of(first: np.ndarray, last: np.ndarray) -> np.ndarray:
    spans = [np.arange(a, b + 1) for a, b in zip(first, last, strict=True)]
    return np.unique(np.concatenate(spans))


# ---- worked examples and sizes

SEQUENCE_2_3 = (0, 4, 1, 8, 2, 12, 3, 4, 0, 16, 1, 17)
SEQUENCE_2_2_1 = "ABXAXAXBXAXXXXB"


def _replay(
    settings: dict[str, Any], steps: Iterable[tuple[str, int, int]], warmup: int
) -> RunResult:
    """Play requests (what, first page, pages) a second apart; WF is a write that passes the RAM by, F a flush."""
    lines = [
        f"8,0 0 {i} {i}.000000000 1 Q {what} {page * 8} + {pages * 8} [hand]\n"
        for i, (what, page, pages) in enumerate(steps, 1)
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "steps.blkparse"
        path.write_text("".join(lines))
        trace = workloads.trace(path, format="blkparse", addresses="reject")
        ssd = Ssd.named("hu-2012").with_({"geometry.pages-per-block": 4} | settings)
        return ssd.play(trace, warmup=warmup, keep_requests=True, window="off")


def _example(manager: str, **given: Any) -> dict[str, Any]:
    """Settings of the drive of table 2.3: blocks of 4 pages, RAM for 6."""
    return {
        "geometry.blocks-per-plane": 9,
        "capacity.logical": "80 KiB",
        "ftl.scheme": "bast",
        "ftl.bast.log-blocks": 2,
        "ram.manager": manager,
        "ram.size": "24 KiB",
    } | {f"ram.{manager}.{key}": value for key, value in given.items()}


def table_2_3(manager: str) -> dict[str, Any]:
    """Table 2.3 on a full drive: what leaves the RAM at each write.

    What is in the RAM after a write is found by reading every page written so far: only those on flash take time.
    """
    given = {"threshold": 0.01} if manager == "pud-lru" else {}
    settings, fill = _example(manager, **given), ("WF", 0, 20)
    before: set[int] = set()
    victims, found = [], {}
    for count in range(1, len(SEQUENCE_2_3) + 1):
        written = SEQUENCE_2_3[:count]
        reads = [("R", page, 1) for page in sorted(set(written))]
        run = _replay(settings, [fill, *(("W", page, 1) for page in written), *reads], 1)
        table = run.requests()
        rows = zip(*(table[name].to_pylist() for name in ("lpn", "flash_ops")), strict=True)
        held = {page for page, operations in list(rows)[count:] if not operations}
        left = sorted((before | {written[-1]}) - held)
        if written[-1] not in held:
            raise AssertionError("a page just written is not in the RAM")
        if left:
            victims.append(left)
        before = held
        found = run.json
    row = {
        "manager": manager,
        "destages": found["buffer"]["destages"],
        "erases": found["flash"]["erases"]["total"],
        "switch": found["merges"]["switch"],
        "victims": victims,
    }
    if manager == "pud-lru":
        row["puds"] = _puds([("W", page, 1) for page in SEQUENCE_2_3[:7]], 6, 2.0, 0.5)
        row["frequent"] = _frequent([("W", page, 1) for page in SEQUENCE_2_3[:7]], 6, 0.01)
    return row


def example_2_2_1() -> dict[str, Any]:
    """The sequence of section 2.2.1, each X another block; then a write that makes a block leave.

    Each letter's writes go to different pages of its block, so that A holds most pages and leaves while it counts
    as infrequently updated: the victim tells which PUD is A's.
    """
    others = iter(range(2, 20))
    seen: dict[int, int] = {}
    steps = []
    for letter in SEQUENCE_2_2_1:
        block = {"A": 0, "B": 1}.get(letter)
        block = next(others) if block is None else block
        steps.append(("W", 4 * block + seen.get(block, 0), 1))
        seen[block] = seen.get(block, 0) + 1
    steps.append(("W", 4 * next(others), 1))
    pages = len(SEQUENCE_2_2_1)
    span = 5.5  # from 0.5 of the last X to 6 of the first
    return {
        "puds": _puds(steps, pages, span, 0.25),
        # A's four pages leave as long as its PUD is not below the threshold's share of the range.
        "left_below": _destaged(steps, pages, 3.49 / span),
        "left_above": _destaged(steps, pages, 3.51 / span),
        "frequent_below_b": _frequent(steps, pages, 2.74 / span),
        "frequent_above_b": _frequent(steps, pages, 2.76 / span),
    }


def _one_departure(steps: list[tuple[str, int, int]], pages: int, threshold: float) -> Any:
    settings = _example("pud-lru", threshold=threshold)
    settings |= {"geometry.blocks-per-plane": 24, "capacity.logical": "320 KiB"}
    settings |= {"ram.size": f"{pages * PAGE_KIB} KiB"}
    return _replay(settings, [("WF", 0, 80), *steps], 1).json["buffer"]


def _frequent(steps: list[tuple[str, int, int]], pages: int, threshold: float) -> float:
    """Blocks that counted as frequently updated when the only departure was decided."""
    return float(_one_departure(steps, pages, threshold)["extra"]["fug_mean_blocks"])


def _destaged(steps: list[tuple[str, int, int]], pages: int, threshold: float) -> int:
    return int(_one_departure(steps, pages, threshold)["pages_destaged"])


def _puds(steps: list[tuple[str, int, int]], pages: int, span: float, step: float) -> list[float]:
    """PUDs at the only departure, in order, as far as thresholds below 1 tell: where a block joins the frequent ones.

    `span` is the range of PUDs, `step` what all PUDs are multiples of.
    """
    found: list[float] = []
    for number in range(round(span / step)):
        joined = _frequent(steps, pages, (number + 0.5) * step / span)
        found += [number * step] * round(joined - len(found))
    return found


def tables() -> dict[str, Any]:
    """Bytes of mapping tables of a drive of 32 GiB, as the schemes count them."""

    def ram_bytes(**given: Any) -> int:
        settings = drive("page", 0) | given
        run = Ssd.named("hu-2012").with_(settings).play("uniform", requests=1, window="off")
        return int(run.json["scheme"]["ram_bytes"])

    bast = {"ftl.scheme": "bast", "ftl.bast.log-blocks": LOGS}
    return {
        "logical_bytes": BLOCKS * BLOCK_PAGES * PAGE_KIB << 10,
        "page_4": ram_bytes(**{"ftl.entry-bytes": 4}),
        "page_8": ram_bytes(),
        "bast_4": ram_bytes(**bast, **{"ftl.entry-bytes": 4}),
    }


def counters() -> dict[str, Any]:
    """How many single pages of different blocks 16 MiB hold under PUD-LRU, without and with its counters in it."""
    blocks, requests = 5_000, 4_300
    held = []
    for charged in (False, True):
        settings = {
            "geometry.blocks-per-plane": blocks + 1_000,
            "capacity.logical": f"{blocks * BLOCK_PAGES * PAGE_KIB} KiB",
            "ftl.scheme": "bast",
            "ftl.bast.log-blocks": blocks // 100,
            "ram.manager": "pud-lru",
            "ram.size": "16 MiB",
            "ram.charge-metadata": charged,
        }
        walk = workloads.strided(step="512KiB", write=1, size="4KiB")
        run = Ssd.named("hu-2012").with_(settings).play(walk, requests=requests, window="off")
        held.append(requests - run.json["buffer"]["pages_destaged"])
    return {"held": held[0], "held_with_counters": held[1], "ram_bytes": 16 << 20}


def figure_3_2(manager: str) -> dict[str, Any]:
    """Pages of the same blocks written in no order to a nearly full page-mapped drive, through RAM for 16 pages.

    A `Ssd` keeps a block more than the figure has, so the figure itself can't be played through it.
    """
    rng = np.random.default_rng(1)
    blocks = 58
    steps: list[tuple[str, int, int]] = [("WF", page, 1) for page in range(4 * blocks)]
    for _ in range(300):
        pages = [4 * int(b) + i for b in rng.choice(blocks, 4, replace=False) for i in range(3)]
        pages += [4 * int(b) + 3 for b in rng.choice(blocks, 4, replace=False)]
        steps += [("W", int(page), 1) for page in rng.permutation(pages)]
    settings = {
        "geometry.blocks-per-plane": 64,
        "capacity.logical": f"{4 * blocks * PAGE_KIB} KiB",
        "ftl.scheme": "page",
        "gc.free-blocks-min": 1,
        "gc.invalidate": "before-gc",
        "ram.manager": manager,
        "ram.size": "64 KiB",
    }
    if manager == "gc-arm":
        settings["ram.gc-arm.block-destage"] = "append"
    j = _replay(settings, steps, 4 * blocks).json
    return {
        "manager": manager,
        "erases": j["flash"]["erases"]["total"],
        "copies": j["flash"]["programs"]["gc"],
        "written": j["flash"]["programs"]["host"],
    }
