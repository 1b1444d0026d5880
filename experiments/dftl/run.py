"""The comparison of the DFTL paper (Gupta, Kim, Urgaonkar, ASPLOS 2009), claim by claim.

Plays the workloads on page mapping (the paper's baseline), FAST and DFTL, and says for each claim what the paper
has, what comes out here, and whether that agrees by the claim's rule. README.md beside this file says which rules
and settings were chosen only after results had been seen.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import math
import os
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from flashwright import Ssd, workloads
from flashwright.tracefiles import info

HERE = Path(__file__).parent
PAGES_PER_BLOCK = 64
KIB_PER_PAGE = 2
EXTRA = 0.03  # section 5.1: "approximately 3% of the total active region"

FINANCIAL = "stand-in:trace=financial1,variant=gupta09"
STAND_INS = {
    "Financial1, Table 3 (stand-in)": FINANCIAL,
    "Financial1, whole (stand-in)": "stand-in:trace=financial1",
    "Cello99 (stand-in)": "stand-in:trace=cello99",
    "TPC-H (stand-in)": "stand-in:trace=tpc-h",
    "WebSearch1 (stand-in)": "stand-in:trace=websearch1",
}
HEADS = {
    "Financial1 (first 10,000 requests)": ("financial1-first10k.spc.zst", "spc"),
    "WebSearch1 (first 50,000 requests)": ("websearch1-first50k.flashsim.zst", "flashsim"),
}
F, FW, C, T, W = STAND_INS
HEAD = next(iter(HEADS))
# What is done to the drive before a run. `replayed` is what the published FlashSim code does: every request of the
# trace is written once, then counting begins; pages that the trace never touches stay free.
STATES = {"full": "sequential", "replayed": "empty", "erased": "empty"}
TOLD = {
    "full": "filled sequentially first",
    "replayed": "the trace written once first",
    "erased": "erased",
}
PLAIN = ("full", "erased")
VICTIMS = ("greedy", "cost-benefit")


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
    logs_used = spare if logs is None else math.ceil(logs * data)
    return (
        Ssd.named("dftl-large-block")
        .with_(
            {
                # One block more: FAST merges into it.
                "geometry.blocks-per-plane": data + spare + 1,
                "capacity.logical": f"{pages * KIB_PER_PAGE} KiB",
                "ftl.scheme": scheme,
                "ftl.fast.log-blocks": logs_used,
                "ftl.dftl.log-share": extra,
                "ftl.dftl.cmt-entries": cmt,
                "gc.victim": victim,
                "gc.free-blocks-min": 3,
            }
        )
        .precondition(STATES[state])
    )


def play(job: dict[str, Any]) -> dict[str, Any]:
    """One run, boiled down to what can be written as a row."""
    ssd = drive(
        job["scheme"],
        job["pages"],
        extra=job.get("extra", EXTRA),
        state=job.get("state", "full"),
        victim=job.get("victim", "greedy"),
        cmt=job.get("cmt", 0),
        logs=job.get("logs"),
    )
    source = (
        workloads.trace(job["path"], format=job["format"], addresses=job["addresses"])
        if "path" in job
        else job["spec"]
    )
    row = {
        "part": job["part"],
        "workload": job["workload"],
        "scheme": job["scheme"],
        "victim": job.get("victim", "greedy") if job["scheme"] != "fast" else "",
        "state": job.get("state", "full"),
        "extra_space": job.get("extra", EXTRA),
        "rate": job.get("rate", ""),
    }
    try:
        run = ssd.play(
            source,
            requests=job.get("requests"),
            warmup=job.get("warmup", 0),
            seed=1,
            keep_requests=job.get("keep", False),
        )
    except Exception as error:  # a drive that can't hold the scheme is a finding, not a crash
        return row | {"error": str(error).splitlines()[0]}
    j = run.json
    flash, extra, cache = j["flash"], j["scheme"]["extra"], j["mapping_cache"]
    reads, programs = flash["reads"], flash["programs"]
    extra_reads, extra_programs = (x["total"] - x["host"] for x in (reads, programs))
    extras = extra_reads + extra_programs
    translation = reads["translation"] + programs["translation"]
    histogram = j["merges"]["full_by_data_blocks"] or []
    reclaims = sum(histogram[1:])
    dftl = job["scheme"] == "dftl"
    row |= {
        "error": "",
        "requests": j["measured"]["requests"],
        "pages_written": j["host"]["pages_written"],
        "pages_read": j["host"]["pages_read"],
        "reads_unmapped": flash["reads_unmapped"],
        "write_amplification": j["write_amplification"],
        "erases": flash["erases"]["total"],
        "merge_switch": extra["cleans_switch"] if dftl else j["merges"]["switch"],
        "merge_partial": extra["cleans_partial"] if dftl else j["merges"]["partial"],
        "merge_full": extra["cleans_full"] if dftl else j["merges"]["full"],
        "cleans_translation": extra.get("cleans_translation"),
        "full_merge_reclaims": reclaims if job["scheme"] == "fast" else None,
        "share_20_or_more": sum(histogram[20:]) / reclaims if reclaims else None,
        "share_above_20": sum(histogram[21:]) / reclaims if reclaims else None,
        "data_blocks_mean": sum(i * n for i, n in enumerate(histogram)) / reclaims
        if reclaims
        else None,
        "extra_reads": extra_reads,
        "extra_programs": extra_programs,
        "extra_operations": extras,
        "translation_share": translation / extras if dftl and extras else None,
        "hit_ratio": cache["hit_ratio"],
        "clean_evictions": 1 - cache["dirty_evictions"] / cache["evictions"]
        if cache["evictions"]
        else None,
        "cmt_entries": extra.get("cmt_entries"),
        "response_ms": j["response_time_ns"]["all"]["mean"] / 1e6,
        "service_ms": j["service_time_ns"]["all"]["mean"] / 1e6,
        "kolmogorov_to_baseline": None,
        "cpu_s": round(j["run"]["cpu_s"], 2),
    }
    keep = {"_cdf": run.response_distribution["all"]}
    if dftl:
        misses = cache["lookups"] - cache["hits"]
        keep["_bound"] = (
            reads["translation"] - reads["translation_in_gc"],
            programs["translation"] - programs["translation_in_gc"],
            misses,
        )
    if job.get("keep"):
        t = run.requests()
        keep["_requests"] = {
            c: t[c].to_numpy() for c in ("arrival_ns", "start_ns", "completion_ns", "erases")
        }
    if dftl:
        keep["_translation_pages"] = extra["translation_pages"]
    return row | keep


def at(cdf: tuple[np.ndarray, np.ndarray], times: np.ndarray) -> np.ndarray:
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


def knee(rows: list[dict[str, Any]]) -> float | None:
    """The rate at which the mean response reaches five times that of the lowest rate, between points by the log."""
    rows = sorted(rows, key=lambda r: r["rate"])
    limit = 5 * rows[0]["response_ms"]
    for low, high in itertools.pairwise(rows):
        if high["response_ms"] >= limit:
            part = math.log(limit / low["response_ms"]) / math.log(
                high["response_ms"] / low["response_ms"]
            )
            return low["rate"] * (high["rate"] / low["rate"]) ** part
    return None


def replay(spec: str, pages: int, requests: int, path: Path) -> dict[str, Any]:
    """A workload as a trace that comes twice: first all of it as writes, much later as it is."""
    run = drive("page", pages).play(spec, requests=requests, seed=1, keep_requests=True)
    t = run.requests().sort_by("arrival_ns")
    arrival, lpn, count = (t[c].to_numpy().astype(np.int64) for c in ("arrival_ns", "lpn", "pages"))
    read = np.array([kind == "read" for kind in t["kind"].to_pylist()], dtype=np.int64)
    later = int(arrival[-1]) + 10**16  # whatever queue the writes built up is gone by then
    n = len(lpn)
    table = pa.table(
        [
            np.concatenate((arrival, arrival + later)),
            np.zeros(2 * n, np.int64),
            np.tile(lpn * 4, 2),
            np.tile(count * 4, 2),
            np.concatenate((np.zeros(n, np.int64), read)),
        ],
        names=list("abcde"),
    )
    pyarrow.csv.write_csv(
        table, path, pyarrow.csv.WriteOptions(include_header=False, delimiter=" ")
    )
    return {
        "path": str(path),
        "format": "mqsim",
        "addresses": "wrap",
        "pages": pages,
        "warmup": n,
        "touched": len(
            np.unique(
                np.concatenate([np.arange(a, a + b) for a, b in zip(lpn, count, strict=True)])
            )
        ),
    }


def jobs(folder: Path | None, pages: int, full: bool, scratch: Path) -> list[dict[str, Any]]:
    """Every run there is to do."""
    listed: list[dict[str, Any]] = []
    schemes = [
        ("page", "greedy"),
        ("page", "cost-benefit"),
        ("fast", "greedy"),
        ("dftl", "greedy"),
        ("dftl", "cost-benefit"),
    ]
    sources: list[tuple[str, dict[str, Any]]] = [
        (
            name,
            {"spec": spec, "pages": pages, "requests": None if full else 600_000, "steady": True},
        )
        for name, spec in STAND_INS.items()
    ]
    for name, (file, kind) in HEADS.items():
        path = None if folder is None else folder / file
        if path is not None and path.exists():
            # Dense addresses are packed in units of 4 KiB.
            found = info(workloads.trace(path, format=kind))
            sources.append(
                (
                    name,
                    {
                        "path": str(path),
                        "format": kind,
                        "addresses": "dense",
                        "pages": 2 * found["pages"],
                    },
                )
            )
    for name, source in sources:
        for state in PLAIN:
            for scheme, victim in schemes:
                warmup = 100_000 if source.get("steady") and state == "full" else 0
                listed.append(
                    source
                    | {
                        "part": "comparison",
                        "workload": name,
                        "scheme": scheme,
                        "victim": victim,
                        "state": state,
                        "warmup": warmup,
                    }
                )
    for name in (F, C, T, W):
        source = replay(STAND_INS[name], pages, 300_000, scratch / f"{len(listed)}.mqsim")
        print(
            f"{name}: {100 * source['touched'] / pages:.0f} % of the active region touched in 300,000 requests"
        )
        for scheme, victim in schemes:
            listed.append(
                source
                | {
                    "part": "comparison",
                    "workload": name,
                    "scheme": scheme,
                    "victim": victim,
                    "state": "replayed",
                }
            )
    for state in PLAIN:
        for extra in (0.07, 0.15, 0.30):
            for scheme, victim in schemes:
                listed.append(
                    {
                        "part": "extra-space",
                        "workload": F,
                        "spec": FINANCIAL,
                        "pages": pages,
                        "requests": 300_000,
                        "scheme": scheme,
                        "victim": victim,
                        "state": state,
                        "extra": extra,
                    }
                )
            listed.append(
                {
                    "part": "extra-space, FAST's logs 3 %",
                    "workload": F,
                    "spec": FINANCIAL,
                    "pages": pages,
                    "requests": 300_000,
                    "scheme": "fast",
                    "state": state,
                    "extra": extra,
                    "logs": EXTRA,
                }
            )
    for name in (F, T):
        for divisor in (256, 128, 64, 32, 16, 8, 4, 2, 1):
            for state in PLAIN:
                listed.append(
                    {
                        "part": "sram",
                        "workload": name,
                        "spec": STAND_INS[name],
                        "pages": pages,
                        "requests": 200_000,
                        "warmup": 200_000,
                        "scheme": "dftl",
                        "victim": "cost-benefit",
                        "state": state,
                        "cmt": int(pages / divisor),
                    }
                )
        for state in PLAIN:
            listed.append(
                {
                    "part": "sram",
                    "workload": name,
                    "spec": STAND_INS[name],
                    "pages": pages,
                    "requests": 200_000,
                    "warmup": 200_000,
                    "scheme": "page",
                    "victim": "cost-benefit",
                    "state": state,
                }
            )
    for name in ("dftl-a", "dftl-b"):
        for step in range(21):
            rate = round(2 * 2 ** (step / 2), 2)
            for state in PLAIN:
                for scheme, victim in schemes:
                    if (scheme, victim) != ("page", "cost-benefit"):
                        listed.append(
                            {
                                "part": "rate",
                                "workload": name,
                                "spec": f"{name}:rate={rate}",
                                "pages": pages // 4,
                                "requests": 60_000,
                                "rate": rate,
                                "scheme": scheme,
                                "victim": victim,
                                "state": state,
                                "warmup": 40_000,
                            }
                        )
    for state in PLAIN:
        for scheme in ("fast", "dftl"):
            listed.append(
                {
                    "part": "window",
                    "workload": F,
                    "spec": FINANCIAL,
                    "pages": pages,
                    "requests": 100_000,
                    "warmup": 50_000,
                    "scheme": scheme,
                    "victim": "cost-benefit",
                    "state": state,
                    "keep": True,
                }
            )
    return listed


GOOD, PARTLY, BAD, NOT = "reproduced", "direction only", "not reproduced", "not testable"


def judged(good: bool, direction: bool = False) -> str:
    """The verdict of a rule with a band."""
    return GOOD if good else PARTLY if direction else BAD


class Claims:
    """The claims against the rows of one state of the drive and one victim policy."""

    def __init__(self, rows: list[dict[str, Any]], state: str, victim: str) -> None:
        self.rows, self.state, self.victim = rows, state, victim
        self.heard: dict[str, tuple[str, str]] = {}

    def row(self, workload: str, scheme: str) -> dict[str, Any] | None:
        """The row of the comparison; FAST takes no victim policy."""
        for row in self.rows:
            if (
                row["part"] == "comparison"
                and row["workload"] == workload
                and row["scheme"] == scheme
                and row["state"] == self.state
                and (scheme == "fast" or row["victim"] == self.victim)
            ):
                return None if row["error"] else row
        return None

    def pair(self, workload: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """FAST and DFTL."""
        fast, dftl = self.row(workload, "fast"), self.row(workload, "dftl")
        assert fast is not None and dftl is not None
        return fast, dftl

    def gain(self, workload: str) -> float:
        """By how much DFTL's mean response is below FAST's, as a share of FAST's."""
        fast, dftl = self.pair(workload)
        return 1 - dftl["response_ms"] / fast["response_ms"]

    def tell(self, claim: str, value: str, verdict: str) -> None:
        """Note an outcome."""
        self.heard[claim] = (value, verdict)

    def all(self) -> dict[str, tuple[str, str]]:
        """Every claim that a comparison can decide."""
        f, d = self.pair(F)
        self.tell(
            "G8",
            f"switch merges: DFTL {d['merge_switch']:,.0f}, FAST {f['merge_switch']:,.0f}",
            judged(d["merge_switch"] > f["merge_switch"]),
        )
        f, d = self.pair(T)
        fast_total = f["merge_switch"] + f["merge_partial"] + f["full_merge_reclaims"]
        dftl_total = d["merge_switch"] + d["merge_partial"] + d["merge_full"]
        self.tell(
            "G9",
            f"DFTL {dftl_total:,.0f} ({d['merge_partial']:,.0f} partial, {d['merge_full']:,.0f} full), "
            f"FAST {fast_total:,.0f} ({f['merge_partial']:,.0f} partial, "
            f"{f['full_merge_reclaims']:,.0f} full)",
            judged(
                dftl_total > fast_total and d["merge_full"] < f["full_merge_reclaims"],
                d["merge_full"] < f["full_merge_reclaims"],
            ),
        )
        ratios = {
            w: self.pair(w)[0]["erases"] / max(1, self.pair(w)[1]["erases"]) for w in (F, C, T)
        }
        self.tell(
            "G10",
            "FAST/DFTL erases: "
            + ", ".join(f"{w.split(',')[0].split(' ')[0]} {r:.2f}" for w, r in ratios.items()),
            judged(all(r > 1 for r in ratios.values()), sum(r > 1 for r in ratios.values()) >= 2),
        )
        shares = {w: self.pair(w)[1]["translation_share"] for w in (F, C, T, W)}
        fewer = {
            w: self.pair(w)[0]["extra_operations"] / max(1, self.pair(w)[1]["extra_operations"])
            for w in (F, C, T)
        }
        most = sum(s is not None and 0.8 <= s <= 0.97 for s in shares.values()) >= 3
        self.tell(
            "G11",
            "translation share "
            + ", ".join(f"{'-' if s is None else f'{100 * s:.0f} %'}" for s in shares.values())
            + " (Financial, Cello99, TPC-H, WebSearch); FAST/DFTL extra operations "
            + ", ".join(f"{r:.2f}" for r in fewer.values()),
            judged(
                most and all(r > 1 for r in fewer.values()) and 2 <= fewer[F] <= 5,
                all(r > 1 for r in fewer.values()),
            ),
        )
        f, d = self.pair(W)
        share = (
            max(
                x["erases"]
                + (x["merge_switch"] or 0)
                + (x["merge_partial"] or 0)
                + (x["merge_full"] or 0)
                for x in (f, d)
            )
            / f["requests"]
        )
        self.tell("G12", f"{100 * share:.4f} % of the requests", judged(share < 0.01))
        if self.victim == "greedy":
            a, b = self.pair(F)[0]["share_20_or_more"] or 0, self.pair(T)[0]["share_above_20"] or 0
            self.tell(
                "G13",
                f"Financial {100 * a:.2f} %, TPC-H {100 * b:.2f} % (mean data blocks "
                f"{self.pair(F)[0]['data_blocks_mean'] or 0:.1f} and "
                f"{self.pair(T)[0]['data_blocks_mean'] or 0:.1f})",
                judged(0.1 <= a <= 0.35 and 0.4 <= b <= 0.8, 0.1 <= a <= 0.35 or 0.4 <= b <= 0.8),
            )
        _, d = self.pair(F)
        self.tell(
            "G14",
            f"{100 * d['hit_ratio']:.1f} % at {d['cmt_entries']:,.0f} entries",
            judged(abs(d["hit_ratio"] - 0.63) <= 0.10),
        )
        _, d = self.pair(T)
        self.tell(
            "G15",
            f"{100 * (d['clean_evictions'] or 0):.1f} %",
            judged((d["clean_evictions"] or 0) >= 0.93, (d["clean_evictions"] or 0) >= 0.5),
        )
        gain = self.gain(F)
        self.tell(
            "G16",
            f"{100 * gain:+.0f} % better; erases {ratios[F]:.2f} and extra operations {fewer[F]:.2f} "
            "times fewer",
            judged(0.6 <= gain <= 0.9, gain > 0),
        )
        gain = self.gain(T)
        self.tell("G17", f"{100 * gain:+.0f} % better", judged(0.3 <= gain <= 0.75, gain > 0))
        k = {w: self.pair(w)[1]["kolmogorov_to_baseline"] for w in (F, C, W)}
        order = self.gain(C) > self.gain(F)
        self.tell(
            "G18",
            f"distances {k[F]:.3f} and {k[C]:.3f}; gains: Cello99 {100 * self.gain(C):+.0f} %, Financial "
            f"{100 * self.gain(F):+.0f} %",
            judged(
                k[F] < 0.1 and k[C] < 0.1 and order and self.gain(F) > 0, order and self.gain(F) > 0
            ),
        )
        f, d = self.pair(T)
        cross = crossing(f["_cdf"], d["_cdf"])
        self.tell(
            "G19",
            "FAST is never ahead" if cross is None else f"FAST ahead up to {100 * cross:.1f} %",
            judged(cross is not None and 0.85 <= cross <= 0.99, cross is not None),
        )
        f, d = self.pair(W)
        base = self.row(W, "page")
        assert base is not None
        self.tell(
            "G20",
            f"mean response {base['response_ms']:.2f} (baseline), {f['response_ms']:.2f} (FAST), "
            f"{d['response_ms']:.2f} ms (DFTL)",
            judged(
                f["kolmogorov_to_baseline"] < 0.1 and d["response_ms"] > base["response_ms"] * 1.01
            ),
        )
        if self.state not in PLAIN:
            return self._reads_count()
        rate = {
            (w, s): [
                r
                for r in self.rows
                if r["part"] == "rate"
                and r["workload"] == w
                and r["scheme"] == s
                and r["state"] == self.state
                and (s != "dftl" or r["victim"] == self.victim)
                and not r["error"]
            ]
            for w in ("dftl-a", "dftl-b")
            for s in ("page", "fast", "dftl")
        }
        knees = {key: knee(found) for key, found in rate.items()}
        show = {key: f"{value:.1f}/s" if value else "none in range" for key, value in knees.items()}
        a_fast, a_dftl = (knees["dftl-a", s] or math.inf for s in ("fast", "dftl"))
        self.tell(
            "G21",
            f"knees on A: FAST {show['dftl-a', 'fast']}, DFTL {show['dftl-a', 'dftl']}, baseline "
            f"{show['dftl-a', 'page']}",
            judged(a_dftl > 1.05 * a_fast),
        )
        b_fast = knees["dftl-b", "fast"] or math.inf
        points = [
            (p, q, r)
            for p, q, r in zip(
                *(
                    sorted(rate["dftl-b", s], key=lambda x: x["rate"])
                    for s in ("page", "fast", "dftl")
                ),
                strict=True,
            )
            if r["rate"] < (knees["dftl-b", "dftl"] or math.inf)
        ]
        better = sum(r["response_ms"] < q["response_ms"] for _, q, r in points) / max(
            1, len(points)
        )
        near = sum(r["response_ms"] <= 1.3 * p["response_ms"] for p, _, r in points) / max(
            1, len(points)
        )
        self.tell(
            "G22",
            f"knees on B: FAST {show['dftl-b', 'fast']}, DFTL {show['dftl-b', 'dftl']}, baseline "
            f"{show['dftl-b', 'page']}; below DFTL's knee better than FAST at {100 * better:.0f} %, within "
            f"30 % of baseline at {100 * near:.0f} % of the rates",
            judged(
                b_fast > a_fast and better >= 0.8 and near >= 0.8, b_fast > a_fast and better >= 0.8
            ),
        )
        if self.victim == "cost-benefit":
            self._window()
            self._sram()
        return self._reads_count()

    def _reads_count(self) -> dict[str, tuple[str, str]]:
        """Where most reads find nothing written they cost nothing, so that times mean little."""
        for claim, workload in {"G17": T, "G19": T, "G20": W}.items():
            row = self.row(workload, "page")
            assert row is not None
            share = row["reads_unmapped"] / max(1, row["pages_read"])
            if share > 0.5:
                value, _ = self.heard[claim]
                self.tell(
                    claim, f"{value}; {100 * share:.0f} % of the pages read were never written", NOT
                )
        return self.heard

    def _window(self) -> None:
        told = []
        good = []
        for scheme in ("fast", "dftl"):
            row = next(
                r
                for r in self.rows
                if r["part"] == "window" and r["scheme"] == scheme and r["state"] == self.state
            )
            t = row["_requests"]
            queue = (t["start_ns"] - t["arrival_ns"]).astype(float) / 1e6
            service = (t["completion_ns"] - t["start_ns"]).astype(float) / 1e6
            # A reclaim by full merges erases the log block and at least one data block.
            hit = (
                np.flatnonzero(t["erases"][:-1] >= 2)
                if scheme == "fast"
                else np.flatnonzero(t["erases"][:-1] >= 1)
            )
            plain = np.setdiff1d(np.arange(1, len(queue)), hit + 1)
            if not len(hit):
                told.append(f"{scheme}: none")
                continue
            told.append(
                f"{scheme}: service {service[hit].mean():.0f} ms, next one waits {queue[hit + 1].mean():.1f} ms "
                f"(others {queue[plain].mean():.1f})"
            )
            good.append(queue[hit + 1].mean() > queue[plain].mean())
            row["_hit"] = hit
        fast = next(
            r
            for r in self.rows
            if r["part"] == "window" and r["scheme"] == "fast" and r["state"] == self.state
        )
        dftl = next(
            r
            for r in self.rows
            if r["part"] == "window" and r["scheme"] == "dftl" and r["state"] == self.state
        )
        spikes = [
            float(
                np.quantile(
                    (r["_requests"]["completion_ns"] - r["_requests"]["start_ns"]) / 1e6, 0.999
                )
            )
            for r in (fast, dftl)
        ]
        told.append(f"99.9 % of services: FAST {spikes[0]:.0f}, DFTL {spikes[1]:.0f} ms")
        self.tell(
            "G23",
            "; ".join(told),
            judged(bool(good and good[0]) and spikes[1] < 0.5 * spikes[0], bool(good and good[0])),
        )

    def _sram(self) -> None:
        told, fine, direction = [], True, True
        for name in (F, T):
            rows = [
                r
                for r in self.rows
                if r["part"] == "sram"
                and r["workload"] == name
                and r["state"] == self.state
                and not r["error"]
            ]
            base = next(r for r in rows if r["scheme"] == "page")["response_ms"]
            rows = sorted(
                (r for r in rows if r["scheme"] == "dftl"), key=lambda r: r["cmt_entries"]
            )
            hits = [r["hit_ratio"] for r in rows]
            norm = [r["response_ms"] / base for r in rows]
            rising = all(b >= a - 1e-9 for a, b in itertools.pairwise(hits))
            falling = all(b <= a * 1.02 for a, b in itertools.pairwise(norm))
            told.append(
                f"{name.split(',')[0].split(' (')[0]}: hits {100 * hits[0]:.0f} to {100 * hits[-1]:.0f} %, "
                f"response {norm[0]:.2f} to {norm[-1]:.3f} of baseline"
            )
            direction &= rising and norm[-1] < norm[0]
            fine &= rising and falling and abs(norm[-1] - 1) <= 0.03
        self.tell("G24", "; ".join(told), judged(fine, direction))


PAPER = {
    "G8": "Financial: DFTL has more switch merges than FAST",
    "G9": "TPC-H: DFTL merges more often, partially instead of fully",
    "G10": "FAST erases more on Financial, Cello99, TPC-H",
    "G11": "translation about 90 % of DFTL's extra operations; fewer than FAST's, 3 times on Financial",
    "G12": "WebSearch: merges and erases negligible",
    "G13": "20 % of FAST's full merges take 20 data blocks or more (Financial); 60 % above 20 (TPC-H)",
    "G14": "Financial: 63 % hits in the mapping cache",
    "G15": "TPC-H: 97 % of evictions free",
    "G16": "Financial: mean response 78 % better; erases and extra operations 3 times fewer",
    "G17": "TPC-H: mean response 56 % better",
    "G18": "Financial, Cello99: DFTL's CDF close to baseline; Cello99 gains much more",
    "G19": "TPC-H: FAST faster for 95 % of requests, then a long tail",
    "G20": "WebSearch: FAST close to baseline, DFTL worse",
    "G21": "random writes: FAST's knee at a lower rate",
    "G22": "sequential: FAST lasts longer than on random; DFTL close to baseline and better than FAST",
    "G23": "full merges give spikes of service, then of queueing; DFTL has none",
    "G24": "more RAM: more hits, response to baseline, no gain beyond the working set",
}


FULL = "On a drive that is full, 3 % of extra space leaves few invalid pages in any victim, for page mapping too"
WHY = {
    "G8": f"{FULL}, so that wholly invalid victims are rare.",
    "G9": "An erased drive has room for all that TPC-H writes, so DFTL cleans nothing.",
    "G10": f"{FULL}: the page-mapped baseline itself then erases more than FAST, and DFTL adds "
    "its table.",
    "G11": f"{FULL}, so copying takes a larger part of the extra operations than in the paper, and "
    "they outnumber FAST's; on read-mostly TPC-H each miss costs a read, which FAST never pays.",
    "G13": "In Financial, later full merges pull pages out of the older log blocks, so that some 18 "
    "of 64 pages are still valid when a block's turn comes; at a mean of 12.82 KB, TPC-H fills a log "
    "block with some ten requests, so more than 20 data blocks need writes far below the mean size.",
    "G14": "Hits are a matter of locality, which the published statistics leave open to the "
    "stand-in, and of the size of FAST's tables, which goes with the active region.",
    "G16": f"{FULL}: FAST is ahead even of the baseline in erases.",
    "G17": "Misses of reads cost DFTL more than the few merges cost FAST at this share of writes; "
    "FAST's tail does not outweigh what it saves.",
    "G18": "A miss adds at least one page read of 130.9 us, and misses are too many for the "
    "distributions to be close.",
    "G19": "The order is the paper's over most requests; where the curves cross depends on how many "
    "requests meet a merge.",
    "G20": "On an erased drive reads of what was never written cost nothing.",
    "G21": "Greedy cleaning gives up translation blocks early, which costs DFTL its lead on a full "
    "drive.",
    "G22": "Misses and the table's share of cleaning keep DFTL's mean above the baseline's.",
    "G23": "By the rule (the next request's queueing rises behind a full merge) this holds for FAST "
    "in both; on a full drive DFTL's cleaning has spikes too, against the claim's second half.",
    "G24": "Translation blocks take a part of the 3 % of extra space, which the baseline has for "
    "itself.",
    "G27": "Table 1 gives 5.4 for small blocks and 3.1 for large ones.",
}


def arithmetic(rows: list[dict[str, Any]]) -> list[tuple[str, str, str, str]]:
    """The claims that need no workload."""
    told = []
    c = Ssd.named("dftl-large-block").config
    small = Ssd.named("dftl-small-block").config if "dftl-small-block" in _names() else None
    ok = (c["geometry"]["page-size"], c["timing"]["read"], c["timing"]["program"]) == (
        "2 KiB",
        "130.9 us",
        "405.9 us",
    )
    ok &= small is not None and (small["timing"]["read"], small["timing"]["program"]) == (
        "41.75 us",
        "226.75 us",
    )
    told.append(
        (
            "G1",
            "Table 1: pages, blocks and times of two kinds of flash",
            "bundled drives dftl-small-block and dftl-large-block"
            if small
            else "dftl-large-block only",
            judged(ok, small is None),
        )
    )
    table, ratio = (16 << 30) // 2048 * 4 // (1 << 20), 128 // 2
    told.append(
        (
            "G2",
            "16 GB at 2 KB pages: 32 MB table; block map 64 times smaller",
            f"{table} MiB with entries of {c['ftl']['entry-bytes']} B; {ratio} times",
            judged(table == 32),
        )
    )
    made = play(
        {
            "part": "one",
            "workload": "1 GiB",
            "spec": "uniform",
            "requests": 10,
            "pages": 1 << 19,
            "scheme": "dftl",
        }
    )
    pages = int(made["_translation_pages"])
    told.append(
        (
            "G3",
            "512 mappings in a page, 16 in the spare area; 1 GB: 2 MB, 1,024 translation pages, GTD 4 KB",
            f"{2048 // 4}, {64 // 4}; {(1 << 19) * 4 >> 20} MiB, {pages:,} pages, GTD {pages * 4 >> 10} KiB",
            judged(pages == 1024),
        )
    )
    told.append(
        (
            "G4",
            "Figure 5: page 21 moves to 23 on a miss with a dirty victim",
            "worked example: the golden trace tests/golden/dftl-figure-5.toml holds it",
            GOOD + " (in the test suite)",
        )
    )
    bounds = [r["_bound"] for r in rows if "_bound" in r]
    one = drive("dftl", 1 << 16).play(
        "uniform:write=0.5,size=2KiB", requests=100_000, seed=1, keep_requests=True
    )
    t = one.requests()
    most = int(t["flash_ops"].to_numpy()[t["erases"].to_numpy() == 0].max())
    ok = all(reads <= 2 * misses and programs <= misses for reads, programs, misses in bounds)
    told.append(
        (
            "G5",
            "a miss costs 2 translation reads and 1 program at worst",
            f"at most {max(r / m for r, _, m in bounds if m):.2f} reads and "
            f"{max(p / m for _, p, m in bounds if m):.2f} programs a miss, over {len(bounds)} runs (means of runs); "
            f"at most {most} flash operations for a request of one page that cleans nothing",
            judged(ok and most <= 4),
        )
    )
    told.append(("G6", "Table 2: classes of schemes", "documentation", NOT))
    told.append(
        ("G7", "Table 3: statistics of four traces", "the whole traces are not at hand", NOT)
    )
    told.append(
        (
            "G25",
            "no full merges in DFTL, all blocks take updates",
            "there is no merge operation; cleans with no "
            "invalid page: "
            + f"{sum(r.get('merge_full') or 0 for r in rows if r['scheme'] == 'dftl'):,.0f}",
            GOOD,
        )
    )
    told.append(
        (
            "G26",
            "no tunable parameters",
            "text; cache size, segments, threshold are parameters",
            NOT,
        )
    )
    told.append(
        (
            "G27",
            "a write takes up to 4-5 times a read",
            f"{405.9 / 130.9:.1f} and {226.75 / 41.75:.1f} from Table 1",
            PARTLY,
        )
    )
    told.append(("G28", "market size, return rates", "cited by the paper", NOT))
    return told


def _names() -> list[str]:
    from flashwright.device import devices

    return list(devices())


def merged(verdicts: list[str]) -> str:
    """One verdict of both victim policies."""
    return verdicts[0] if len(set(verdicts)) == 1 else " / ".join(verdicts)


def main() -> None:
    """Run all, write results.csv, claims.csv and window.csv, print the table."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument(
        "--traces", default=os.environ.get("FLASHWRIGHT_TRACES"), help="folder of real trace heads"
    )
    options.add_argument(
        "--full", action="store_true", help="stand-ins at their natural length, on 1 GiB"
    )
    options.add_argument("--jobs", type=int, default=2, help="processes")
    options.add_argument("--out", default=str(HERE), help="folder for the CSV files")
    given = options.parse_args()
    folder = Path(given.traces) if given.traces else None
    pages = (1 << 19) if given.full else (1 << 18)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch, ProcessPoolExecutor(given.jobs) as pool:
        listed = jobs(folder, pages, given.full, Path(scratch))
        rows = list(pool.map(play, listed, chunksize=4))
    for row in rows:
        if row["part"] == "comparison" and "_cdf" in row:
            base = next(
                r
                for r in rows
                if r["part"] == "comparison"
                and r["workload"] == row["workload"]
                and r["scheme"] == "page"
                and r["state"] == row["state"]
                and r["victim"] == (row["victim"] or "greedy")
            )
            if "_cdf" in base:
                row["kolmogorov_to_baseline"] = distance(row["_cdf"], base["_cdf"])
    found = {(s, v): Claims(rows, s, v).all() for s in STATES for v in VICTIMS}
    table = []
    for claim, paper in PAPER.items():
        line = [claim, paper]
        for state in STATES:
            heard = [found[state, v][claim] for v in VICTIMS if claim in found[state, v]]
            if not heard:
                line += ["", ""]
                continue
            values = [value for value, _ in heard]
            line += [
                values[0] if len(set(values)) == 1 else " / ".join(values),
                merged([v for _, v in heard]),
            ]
        table.append(line)
    table += [
        [claim, paper, ours, verdict, "", "", "", ""]
        for claim, paper, ours, verdict in arithmetic(rows)
    ]
    table.sort(key=lambda line: int(line[0][1:]))

    out = Path(given.out)
    out.mkdir(parents=True, exist_ok=True)
    columns = list(next(r for r in rows if not r["error"]))
    columns = [c for c in columns if not c.startswith("_") and c != "cpu_s"]
    with (out / "results.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow(
                {
                    k: f"{v:.6g}" if isinstance(v, float) else v
                    for k, v in row.items()
                    if k != "cpu_s"
                }
            )
    with (out / "claims.csv").open("w", newline="") as file:
        writer2 = csv.writer(file, lineterminator="\n")
        writer2.writerow(
            [
                "claim",
                "paper",
                *(f"{what}_{state}" for state in STATES for what in ("ours", "verdict")),
            ]
        )
        writer2.writerows(table)
    windows(rows, out / "window.csv")
    for claim, paper, *rest in table:
        print(f"\n{claim}  paper: {paper}")
        for state, ours, verdict in zip(STATES, rest[::2], rest[1::2], strict=True):
            if ours:
                print(
                    f"    {TOLD[state] if claim in PAPER else 'ours'}: {ours}\n      -> {verdict}"
                )
        if claim in WHY and any(v not in ("", GOOD) for v in rest[1::2]):
            print(f"    {WHY[claim]}")
    overview(rows)
    if folder is None or not any((folder / file).exists() for file, _ in HEADS.values()):
        print("\nno real trace heads found (--traces or FLASHWRIGHT_TRACES)")
    faults = sorted({(r["workload"], r["scheme"], r["error"]) for r in rows if r["error"]})
    for workload, scheme, error in faults:
        print(f"\ncould not run: {workload}, {scheme}: {error}")
    print(
        f"\n{len(rows)} runs, {sum(r.get('cpu_s', 0) for r in rows):.0f} s of simulation, "
        f"{time.monotonic() - began:.0f} s in all with {given.jobs} processes"
    )


def overview(rows: list[dict[str, Any]]) -> None:
    """The runs behind the claims."""
    print(
        f"\n{'workload':36}{'drive':10}{'scheme':20}{'space':>6}{'erases':>10}{'WA':>7}{'service':>9}"
        f"{'response ms':>13}{'hits':>6}{'transl.':>8}{'K':>7}"
    )
    for r in rows:
        if r["part"].startswith(("comparison", "extra")) and not r["error"]:
            show = [
                f"{100 * v:.0f} %" if v is not None else ""
                for v in (r["hit_ratio"], r["translation_share"])
            ]
            k = r["kolmogorov_to_baseline"]
            scheme = f"{r['scheme']} {r['victim']}" + (" (logs 3 %)" if "logs" in r["part"] else "")
            print(
                f"{r['workload']:36}{r['state']:10}{scheme:20}{100 * r['extra_space']:>4.0f} %{r['erases']:>10,}"
                f"{r['write_amplification'] or 0:>7.2f}{r['service_ms']:>9.2f}{r['response_ms']:>13,.2f}{show[0]:>6}"
                f"{show[1]:>8}" + (f"{k:>7.3f}" if k is not None else "")
            )


def windows(rows: list[dict[str, Any]], path: Path) -> None:
    """The hundred requests around FAST's costliest one, on both schemes (the paper's figure 10)."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(
            [
                "state",
                "request",
                "fast_service_ms",
                "fast_queue_ms",
                "fast_erases",
                "dftl_service_ms",
                "dftl_queue_ms",
                "dftl_erases",
            ]
        )
        for state in PLAIN:
            pair = [
                next(
                    r
                    for r in rows
                    if r["part"] == "window" and r["scheme"] == s and r["state"] == state
                )["_requests"]
                for s in ("fast", "dftl")
            ]
            middle = int(np.argmax(pair[0]["completion_ns"] - pair[0]["start_ns"]))
            first = min(max(0, middle - 30), len(pair[0]["start_ns"]) - 100)
            for i in range(first, first + 100):
                line: list[object] = [state, i]
                for t in pair:
                    line += [
                        f"{(t['completion_ns'][i] - t['start_ns'][i]) / 1e6:.3f}",
                        f"{(t['start_ns'][i] - t['arrival_ns'][i]) / 1e6:.3f}",
                        int(t["erases"][i]),
                    ]
                writer.writerow(line)


if __name__ == "__main__":
    main()
