"""What the claims of the DFTL paper rest on: page mapping (the paper's baseline), FAST and DFTL side by side.

README.md beside this file says which settings are readings, and which of them were chosen only after results had been
seen.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from flashwright import Ssd, tracefiles, workloads
from flashwright.errors import FlashwrightError

PAGES_PER_BLOCK = 64


KIB_PER_PAGE = 2


SECTORS_PER_PAGE = 4


EXTRA = 0.03  # section 5.1: "approximately 3% of the total active region"


FINANCIAL, WHOLE, CELLO, TPCH, WEBSEARCH = (
    "Financial",
    "Financial1, whole",
    "Cello99",
    "TPC-H",
    "WebSearch",
)


STAND_INS = {
    FINANCIAL: "stand-in:trace=financial1,variant=gupta09",
    WHOLE: "stand-in:trace=financial1",
    CELLO: "stand-in:trace=cello99",
    TPCH: "stand-in:trace=tpc-h",
    WEBSEARCH: "stand-in:trace=websearch1",
}


# The same without the locality of a head, where there is one.
WITHOUT_HEADS = STAND_INS | {
    FINANCIAL: "stand-in:trace=financial1,variant=gupta09-statistics-only",
    WHOLE: "stand-in:trace=financial1,variant=statistics-only",
    WEBSEARCH: "stand-in:trace=websearch1,variant=statistics-only",
}


# What is done to the drive before a run. `replayed` is what the published FlashSim code does: every request of the
# trace is written once, then counting begins; pages that the trace never touches stay free.
STATES = {"full": "sequential", "replayed": "empty", "erased": "empty"}


SCHEMES = (
    ("page", "greedy"),
    ("page", "cost-benefit"),
    ("fast", ""),
    ("dftl", "greedy"),
    ("dftl", "cost-benefit"),
)


# Shares of requests at which distributions of times are kept for drawing.
SHARES = (*(step / 40 for step in range(1, 40)), 0.985, 0.99, 0.995, 0.999)


def drive(
    scheme: str,
    pages: int,
    *,
    extra: float = EXTRA,
    state: str = "full",
    victim: str = "greedy",
    cmt: int = 0,
    logs: float | None = None,
) -> Ssd:
    """Large-block flash whose logical space is the active region, with the extra space beside it."""
    data = math.ceil(pages / PAGES_PER_BLOCK)
    spare = math.ceil(extra * data)
    return (
        Ssd.named("dftl-large-block")
        .with_(
            {
                # One block more: FAST merges into it.
                "geometry.blocks-per-plane": data + spare + 1,
                "capacity.logical": f"{pages * KIB_PER_PAGE} KiB",
                "ftl.scheme": scheme,
                "ftl.fast.log-blocks": spare if logs is None else math.ceil(logs * data),
                "ftl.dftl.log-share": extra,
                "ftl.dftl.cmt-entries": cmt,
                "gc.victim": victim or "greedy",
                "gc.free-blocks-min": 3,
            }
        )
        .precondition(STATES[state])
    )


def figures(run: Any, scheme: str, victim: str) -> dict[str, Any]:
    """A run, boiled down to what claims are judged by."""
    j = run.json
    flash, extra, cache = j["flash"], j["scheme"]["extra"], j["mapping_cache"]
    reads, programs = flash["reads"], flash["programs"]
    extra_reads, extra_programs = (x["total"] - x["host"] for x in (reads, programs))
    extras = extra_reads + extra_programs
    translation = reads["translation"] + programs["translation"]
    histogram = j["merges"]["full_by_data_blocks"] or []
    dftl = scheme == "dftl"
    row = {
        "scheme": scheme,
        "victim": victim,
        "error": "",
        "requests": j["measured"]["requests"],
        "pages_read": j["host"]["pages_read"],
        "reads_unmapped": flash["reads_unmapped"],
        "write_amplification": j["write_amplification"],
        "erases": flash["erases"]["total"],
        # A clean is called by its victim's valid pages, as in the paper's figure 6(a).
        "switch": extra["cleans_switch"] if dftl else j["merges"]["switch"],
        "partial": extra["cleans_partial"] if dftl else j["merges"]["partial"],
        # Figures 6 and 7 count the log blocks of FAST that full merges reclaim, not the data blocks they take.
        "full": extra["cleans_full"] if dftl else sum(histogram[1:]),
        "merge_operations": sum(
            flash[kind]["merge"] for kind in ("reads", "programs", "erases", "oob_reads")
        ),
        "full_by_data_blocks": histogram,
        "extra_operations": extras,
        "translation_reads": reads["translation"],
        "translation_programs": programs["translation"],
        "translation_share": translation / extras if dftl and extras else None,
        "hit_ratio": cache["hit_ratio"],
        "clean_evictions": 1 - cache["dirty_evictions"] / cache["evictions"]
        if cache["evictions"]
        else None,
        "cmt_entries": extra.get("cmt_entries"),
        "translation_pages": extra.get("translation_pages"),
        "response_ms": j["response_time_ns"]["all"]["mean"] / 1e6,
        "service_ms": j["service_time_ns"]["all"]["mean"] / 1e6,
    }
    if dftl:
        row["misses"] = cache["lookups"] - cache["hits"]
        row["miss_reads"] = reads["translation"] - reads["translation_in_gc"]
        row["miss_programs"] = programs["translation"] - programs["translation_in_gc"]
    return row


def play(
    source: Any, scheme: str, victim: str, pages: int, playing: Mapping[str, Any], **how: Any
) -> tuple[dict[str, Any], Any]:
    """One run: its figures and the run itself; a drive that can't hold a scheme is a row with the reason."""
    try:
        run = drive(scheme, pages, victim=victim, **how).play(source, seed=1, **playing)
    except FlashwrightError as error:
        return {"scheme": scheme, "victim": victim, "error": str(error).splitlines()[0]}, None
    return figures(run, scheme, victim), run


def at(cdf: Any, times: np.ndarray) -> np.ndarray:
    """The distribution at some times."""
    points, shares = cdf
    return np.concatenate(([0.0], shares))[np.searchsorted(points, times, side="right")]


def distance(a: Any, b: Any) -> float:
    """Kolmogorov's distance of two distributions."""
    times = np.union1d(a[0], b[0])
    return float(np.max(np.abs(at(a, times) - at(b, times))))


def crossing(fast: Any, dftl: Any) -> float | None:
    """The share of requests up to which FAST is ahead and behind which it is not; None if it is never ahead."""
    times = np.union1d(fast[0], dftl[0])
    ahead = at(fast, times) - at(dftl, times)
    # Differences below a tenth of a point are the grid of the distributions, not an order.
    where = np.flatnonzero(ahead > 0.001)
    return float(at(dftl, times)[where[-1]]) if len(where) else None


def side_by_side(
    source: Any, pages: int, state: str, playing: Mapping[str, Any], **how: Any
) -> list[dict[str, Any]]:
    """All schemes on one workload, with what compares their distributions of response times."""
    rows, cdfs = [], {}
    for scheme, victim in SCHEMES:
        row, run = play(source, scheme, victim, pages, playing, state=state, **how)
        if run is not None:
            cdf = run.response_distribution["all"]
            cdfs[scheme, victim] = cdf
            last = len(cdf[0]) - 1
            row["quantiles_ms"] = [
                float(cdf[0][min(last, np.searchsorted(cdf[1], share))]) / 1e6 for share in SHARES
            ]
        rows.append(row)
    for row in rows:
        own = cdfs.get((row["scheme"], row["victim"]))
        baseline = cdfs.get(("page", row["victim"] or "greedy"))
        fast = cdfs.get(("fast", ""))
        if own is not None and baseline is not None:
            row["kolmogorov"] = distance(own, baseline)
        if row["scheme"] == "dftl" and own is not None and fast is not None:
            row["fast_ahead_to"] = crossing(fast, own)
    return rows


def compare(
    workload: str,
    source: Mapping[str, Any],
    pages: int,
    state: str,
    playing: Mapping[str, Any],
    **how: Any,
) -> dict[str, Any]:
    """A stand-in or a trace on all schemes; `how` goes to the drive."""
    found = workloads.trace(**source) if "path" in source else source["spec"]
    return {
        "workload": workload,
        "state": state,
        "runs": side_by_side(found, pages, state, playing, **how),
    }


def compare_head(workload: str, path: str, format: str, state: str) -> dict[str, Any]:
    """The head of a real trace on a drive of the pages it touches."""
    # Dense addresses are packed in units of 4 KiB.
    pages = 2 * tracefiles.info(workloads.trace(path, format=format))["pages"]
    source = {"path": path, "format": format, "addresses": "dense"}
    return compare(workload, source, pages, state, {})


def compare_replayed(
    workload: str, spec: str, pages: int, requests: int, seed: int = 1, **how: Any
) -> dict[str, Any]:
    """A workload that comes twice: first all of it as writes, much later as it is, and only that counts."""
    run = drive("page", pages).play(spec, requests=requests, seed=seed, keep_requests=True)
    played = requests_of(run)
    touched = np.zeros(pages, bool)
    for first, length in zip(played["lpn"], played["pages"], strict=True):
        touched[first : first + length] = True
    with tempfile.TemporaryDirectory() as scratch:
        source = written_once(played, Path(scratch) / "twice.mqsim")
        row = compare(workload, source, pages, "replayed", {"warmup": len(played["lpn"])}, **how)
    return row | {"touched": float(touched.mean())}


def requests_of(run: Any) -> dict[str, np.ndarray]:
    """The requests of a run in order of arrival: ``arrival_ns``, ``lpn``, ``pages`` and ``read``, 0 or 1."""
    t = run.requests().sort_by("arrival_ns")
    columns = {c: t[c].to_numpy().astype(np.int64) for c in ("arrival_ns", "lpn", "pages")}
    read = [kind == "read" for kind in t["kind"].to_pylist()]
    return columns | {"read": np.array(read, dtype=np.int64)}


def written_once(played: Mapping[str, np.ndarray], path: Path) -> dict[str, str]:
    """A trace of requests that come twice, first all of them as writes and much later as they are; how to read it."""
    arrival = played["arrival_ns"]
    later = int(arrival[-1]) + 10**16  # whatever queue the writes built up is gone by then
    n = len(arrival)
    table = pa.table(
        [
            np.concatenate((arrival, arrival + later)),
            np.zeros(2 * n, np.int64),
            np.tile(played["lpn"] * SECTORS_PER_PAGE, 2),
            np.tile(played["pages"] * SECTORS_PER_PAGE, 2),
            np.concatenate((np.zeros(n, np.int64), played["read"])),
        ],
        names=list("abcde"),
    )
    options = pyarrow.csv.WriteOptions(include_header=False, delimiter=" ")
    pyarrow.csv.write_csv(table, path, options)
    return {"path": str(path), "format": "mqsim", "addresses": "wrap"}


def extra_space(
    spec: str, state: str, extra: float, pages: int, requests: int, **how: Any
) -> dict[str, Any]:
    """The Financial workload with more space beside the active region."""
    playing = {"requests": requests}
    rows = [
        play(spec, scheme, victim, pages, playing, state=state, extra=extra, **how)[0]
        for scheme, victim in SCHEMES
    ]
    few, _ = play(spec, "fast", "", pages, playing, state=state, extra=extra, logs=EXTRA)
    return {"state": state, "extra": extra, "runs": rows, "fast_with_few_logs": few}


def rates(
    workload: str,
    state: str,
    scheme: str,
    victim: str,
    pages: int,
    requests: int,
    warmup: int,
    steps: Sequence[int],
    **how: Any,
) -> dict[str, Any]:
    """One scheme at growing rates of arrival."""
    points = []
    for step in steps:
        rate = round(2 * 2 ** (step / 2), 2)
        playing = {"requests": requests, "warmup": warmup}
        row, _ = play(f"{workload}:rate={rate}", scheme, victim, pages, playing, state=state, **how)
        points.append({"rate": rate, "response_ms": row.get("response_ms"), "error": row["error"]})
    return {
        "workload": workload,
        "state": state,
        "scheme": scheme,
        "victim": victim,
        "points": points,
    }


def window(
    spec: str, state: str, pages: int, requests: int, warmup: int, **how: Any
) -> dict[str, Any]:
    """Service and queueing of single requests, and the hundred around the longest service of FAST."""
    kept = {}
    for scheme, victim in (("fast", ""), ("dftl", "greedy"), ("dftl", "cost-benefit")):
        playing = {"requests": requests, "warmup": warmup, "keep_requests": True}
        row, run = play(spec, scheme, victim, pages, playing, state=state, **how)
        if run is None:
            return {"state": state, "error": row["error"]}
        t = run.requests()
        arrival, start, end, erases = (
            t[c].to_numpy().astype(float)
            for c in ("arrival_ns", "start_ns", "completion_ns", "erases")
        )
        kept[scheme, victim] = ((end - start) / 1e6, (start - arrival) / 1e6, erases)
    middle = int(np.argmax(kept["fast", ""][0]))
    first = min(max(0, middle - 30), requests - 100)
    rows = []
    for (scheme, victim), (service, queue, erases) in kept.items():
        # A reclaim by full merges erases the log block and at least one data block.
        hit = np.flatnonzero(erases[:-1] >= (2 if scheme == "fast" else 1))
        plain = np.setdiff1d(np.arange(1, len(queue)), hit + 1)
        rows.append(
            {
                "scheme": scheme,
                "victim": victim,
                "service_ms": float(service[hit].mean()) if len(hit) else None,
                "next_waits_ms": float(queue[hit + 1].mean()) if len(hit) else None,
                "others_wait_ms": float(queue[plain].mean()),
                "service_p999_ms": float(np.quantile(service, 0.999)),
                "window_service_ms": [round(float(x), 3) for x in service[first : first + 100]],
                "window_queue_ms": [round(float(x), 3) for x in queue[first : first + 100]],
            }
        )
    return {"state": state, "error": "", "first": first, "runs": rows}


def sram(
    workload: str, spec: str, state: str, victim: str, pages: int, requests: int
) -> dict[str, Any]:
    """DFTL with a growing cache of the mapping, and the baseline."""
    playing = {"requests": requests, "warmup": requests}
    baseline, _ = play(spec, "page", victim, pages, playing, state=state)
    rows = [
        play(spec, "dftl", victim, pages, playing, state=state, cmt=pages // divisor)[0]
        for divisor in (256, 128, 64, 32, 16, 8, 4, 2, 1)
    ]
    return {
        "workload": workload,
        "state": state,
        "victim": victim,
        "baseline": baseline,
        "runs": rows,
    }


def map_bytes(scheme: str) -> dict[str, Any]:
    """RAM that a scheme's tables take for 16 GiB, as section 1 reckons."""
    pages = (16 << 30) // 2048
    run = drive(scheme, pages, state="erased").play("uniform", requests=1, seed=1)
    return {"scheme": scheme, "ram_bytes": run.json["scheme"]["ram_bytes"]}


def table_on_flash() -> dict[str, Any]:
    """The mapping table of 1 GiB on flash, as section 3.2 reckons."""
    row, _ = play("uniform", "dftl", "greedy", (1 << 30) // 2048, {"requests": 1}, state="erased")
    return {"translation_pages": row["translation_pages"]}


def random_overwrites(scheme: str) -> dict[str, Any]:
    """What cleaning is called in a scheme on a small full drive, for the row of Table 2 on full merges."""
    run = drive(scheme, 1 << 15, extra=0.1).play("uniform", requests=20_000, seed=1)
    j = run.json
    return {
        "scheme": scheme,
        "ram_bytes": j["scheme"]["ram_bytes"],
        "full": j["merges"]["full"],
        "folds": j["scheme"]["extra"].get("out_of_place_folds"),
        "merge_programs": j["flash"]["programs"]["merge"],
        "clean_programs": j["flash"]["programs"]["gc"],
    }


def golden(config: Mapping[str, Any], steps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A golden trace by the package: what each step costs, told from plays that end one step later each."""
    settings: dict[str, object] = {"ftl.scheme": "dftl"}
    queue = [("", config)]
    while queue:
        prefix, table = queue.pop()
        for key, value in table.items():
            if isinstance(value, Mapping):
                queue.append((f"{prefix}{key}.", value))
            else:
                settings[prefix + key] = value
    ssd = Ssd.named("dftl-large-block").with_(settings).precondition("empty")
    lines = [
        # A second between arrivals, pages of four sectors.
        f"{number * 10**9} 0 {4 * next(iter(step.values()))} 4 {int('read' in step)}\n"
        for number, step in enumerate(steps)
    ]
    costs, before, run = [], dict.fromkeys(("Rt", "Pt", "R", "P", "U"), 0), None
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "steps.mqsim"
        for count in range(1, len(lines) + 1):
            path.write_text("".join(lines[:count]))
            trace = workloads.trace(path, format="mqsim", addresses="wrap")
            run = ssd.play(trace, seed=1, verify=True, audit_every=1)
            flash = run.json["flash"]
            now = {
                "Rt": flash["reads"]["translation"],
                "Pt": flash["programs"]["translation"],
                "R": flash["reads"]["host"],
                "P": flash["programs"]["host"],
                "U": flash["reads_unmapped"],
            }
            parts = [f"{now[k] - before[k]}{k}" for k in now if now[k] != before[k]]
            costs.append(" ".join(parts))
            before = now
    cache = run.json["mapping_cache"]
    return {
        "costs": costs,
        "cache": {k: cache[k] for k in ("lookups", "hits", "evictions", "dirty_evictions")},
        "violations": list(run.violations),
    }


def one_page_requests() -> dict[str, Any]:
    """The costliest request of one page that cleans nothing."""
    run = drive("dftl", 1 << 16).play(
        "uniform:write=0.5,size=2KiB", requests=100_000, seed=1, keep_requests=True
    )
    t = run.requests()
    most = int(t["flash_ops"].to_numpy()[t["erases"].to_numpy() == 0].max())
    return {"operations_max": most}


def statistics(workload: str, path: str, format: str) -> dict[str, Any]:
    """What Table 3 lists, of a trace file."""
    found = tracefiles.info(workloads.trace(path, format=format))
    return {
        "workload": workload,
        "kib": found["bytes_mean"] / 1024,
        "read_percent": found["read_percent"],
        "sequential_percent": found["sequential_percent"],
        "inter_arrival_ms": found["inter_arrival_ms_mean"],
    }
