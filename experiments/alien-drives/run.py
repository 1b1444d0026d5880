"""Probe drives of other makes than the simulator's, and hold what the probes say against what was drawn.

python experiments/alien-drives/run.py                                   # the tables of a set of findings.parquet
python experiments/alien-drives/run.py --drives 3 --make development     # probe three drives of each of these makes
python experiments/alien-drives/run.py --drives 10 --make card --make raid --mode full --jobs 2
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import heldout_truths
import numpy as np
import truths as development_truths
from aliens import DEVELOPMENT, HELD_OUT, MAKES, Alien
from cache_truths import cache_truths
from data_truths import data_truths
from load_truths import load_truths
from truths import Truth, judge

from flashwright.drive.findings import Finding
from flashwright.probing.confidence import capped
from flashwright.probing.drive_time import LIMITS_S
from flashwright.probing.session import probe
from flashwright.target.target import Target

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))

from studies import load, save, sets  # noqa: E402

GROUPS = {"development": DEVELOPMENT, "held-out": HELD_OUT, "all": MAKES}
SURE = 0.9
"""Confidence from which a false claim is worst."""
TRUTHS = development_truths.TRUTHS | heldout_truths.TRUTHS
BINS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
"""Lower ends of the bins of confidence; the last ends at 1."""
# Of the writes by which a make's own count of stalls is read.
_SYNCED = 16 << 10


def cleaning_of(make: str, seed: int) -> dict[str, float]:
    """What a drive itself counts while random writes, each flushed, go to it in steady state.

    Returns
    -------
    mapping
        ``stalls``; ``interval_bytes`` from one to the next; ``stall_ns``, their mean.
    """
    alien = Alien(make, seed)
    unit = int(alien.facts.get("unit", 4096))
    size = -(-_SYNCED // unit) * unit
    with Target(alien) as target:
        target.fill()
        slots = target.capacity_bytes // size
        rng = np.random.default_rng(seed)
        places = rng.integers(0, slots, 2 * slots) * size
        kinds = np.tile(np.array([1, 3], np.uint8), slots // 2)
        target.play("write", places[: places.size - slots // 2], size)
        before = alien.counters()
        last = places[places.size - slots // 2 :][: kinds.size // 2]
        target.play(kinds[: 2 * last.size], np.repeat(last, 2), size)
        after = alien.counters()
    stalls = after["stalls"] - before["stalls"]
    return {
        "stalls": stalls,
        "interval_bytes": last.size * size / max(stalls, 1),
        "stall_ns": (after["stalled_ns"] - before["stalled_ns"]) / max(stalls, 1),
    }


def truths_of(make: str, seed: int) -> dict[str, Truth]:
    """The truth of each parameter of a drive."""
    alien = Alien(make, seed)
    facts = dict(alien.facts) | {"capacity": alien.capacity_bytes, "sector": alien.block_bytes}
    alien.close()
    return truths_by(make, facts, cleaning_of(make, seed))


def truths_by(
    make: str, facts: Mapping[str, float], cleaning: Mapping[str, float]
) -> dict[str, Truth]:
    """The truth of each parameter, from what was drawn and what its cleaning did."""
    return {
        **TRUTHS[make](facts, cleaning),
        **cache_truths(make, facts),
        **load_truths(make, facts),
        **data_truths(make, facts),
    }


def _row(finding: Mapping[str, Any], truth: Truth) -> dict[str, Any]:
    return {
        "judgement": judge(finding, truth),
        "verdict": finding["verdict"],
        "value": finding["value"],
        "confidence": round(finding["confidence"], 4),
        "evidence": round(_evidence(finding), 4),
        "why": finding["why"],
        "truth": {
            "values": truth.values,
            "ranges": truth.ranges,
            "answerable": truth.answerable,
            "why": truth.why,
        },
    }


def _evidence(finding: Mapping[str, Any]) -> float:
    """How sure a finding was before its cap."""
    figures = finding.get("figures", {})
    raw = finding.get("evidence", figures.get("evidence_share", finding["confidence"]))
    return float(raw)


def capped_again(row: Mapping[str, Any], parameter: str) -> dict[str, Any]:
    """A row with the confidence that today's caps leave of its evidence."""
    found = Finding(parameter, row["verdict"], row["value"], confidence=_evidence(row))
    return {**row, "confidence": capped(found).confidence}


def judged_again(drives: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same findings, held against the truths as they are stated now."""
    found = []
    for drive in drives:
        truths = truths_of(drive["make"], drive["seed"])
        rows = {
            name: _row(capped_again(row, name), truths[name]) for name, row in drive["rows"].items()
        }
        found.append({**drive, "rows": rows})
    return found


def ask(work: tuple[str, int, str, tuple[str, ...]]) -> dict[str, Any]:
    """Probes a drive and judges each finding."""
    make, seed, mode, only = work
    truths = truths_of(make, seed)
    began = time.monotonic()
    with Target(Alien(make, seed)) as target:
        found = probe(
            target,
            mode="quick" if mode == "quick" else "full",
            only=only,
            # Rules are judged here, not what quick mode has time for.
            drive_time=LIMITS_S["full"],
            seed=seed,
        )
    rows = {
        finding["parameter"]: _row(finding, truths[finding["parameter"]])
        for finding in found.json["findings"]
    }
    return {
        "make": make,
        "seed": seed,
        "doubts": list(found.doubts),
        "seconds": round(time.monotonic() - began, 1),
        "rows": rows,
    }


def play(
    makes: Sequence[str], seeds: Sequence[int], mode: str, jobs: int, only: tuple[str, ...]
) -> Iterator[dict[str, Any]]:
    """Probes drives, several at a time."""
    work = [(make, seed, mode, only) for make in makes for seed in seeds]
    if jobs == 1:
        yield from map(ask, work)
        return
    with multiprocessing.Pool(jobs) as pool:
        yield from pool.imap(ask, work)


def counts(drives: Sequence[Mapping[str, Any]]) -> Counter[str]:
    """How many findings there are of each judgement, and how many false ones are sure."""
    rows = [row for drive in drives for row in drive["rows"].values()]
    tally = Counter(row["judgement"] for row in rows)
    tally["sure and false"] = sum(
        row["judgement"] == "false" and row["confidence"] >= SURE for row in rows
    )
    return tally


def by_make(drives: Sequence[Mapping[str, Any]], out: Callable[[str], object] = print) -> None:
    """A row for each make, and the sums of both groups; a table of Markdown."""
    heads = ("right", "rightly untold", "unknown", "false", "sure and false")
    out("| make | drives | " + " | ".join(heads) + " |")
    out("| --- " * (2 + len(heads)) + "|")
    for name, group in (("development", DEVELOPMENT), ("held out", HELD_OUT)):
        present = [make for make in group if any(drive["make"] == make for drive in drives)]
        for make in [*present, *([group] if len(present) > 1 else [])]:
            chosen = (make,) if isinstance(make, str) else make
            these = [drive for drive in drives if drive["make"] in chosen]
            tally = counts(these)
            label = f"`{make}`" if isinstance(make, str) else f"**{name}**"
            out(f"| {label} | {len(these)} | " + " | ".join(str(tally[h]) for h in heads) + " |")


def by_parameter(drives: Sequence[Mapping[str, Any]], out: Callable[[str], object] = print) -> None:
    """A row for each parameter; a table of Markdown."""
    heads = ("right", "rightly untold", "unknown", "false", "sure and false", "not judged")
    out("| parameter | " + " | ".join(heads) + " |")
    out("| --- " * (1 + len(heads)) + "|")
    for parameter in drives[0]["rows"]:
        tally = counts(
            [{"rows": {parameter: d["rows"][parameter]}} for d in drives if parameter in d["rows"]]
        )
        out(f"| {parameter} | " + " | ".join(str(tally[head]) for head in heads) + " |")


def calibration(drives: Sequence[Mapping[str, Any]]) -> list[tuple[float, float, int, int]]:
    """For each bin of confidence: its ends, how many claims it has, and how many of them are right."""
    claims = [
        (row["confidence"], row["judgement"] == "right")
        for drive in drives
        for row in drive["rows"].values()
        if row["judgement"] in ("right", "false")
    ]
    found = []
    for low, high in zip(BINS, (*BINS[1:], 1.0 + 1e-9), strict=True):
        inside = [right for confidence, right in claims if low <= confidence < high]
        found.append((low, min(high, 1.0), len(inside), sum(inside)))
    return found


def calibration_table(
    drives: Sequence[Mapping[str, Any]], out: Callable[[str], object] = print
) -> None:
    """Confidence against the share of claims that are right; a table of Markdown."""
    out("| confidence | claims | right | share right |")
    out("| --- | --- | --- | --- |")
    for low, high, claims, right in calibration(drives):
        share = f"{right / claims:.0%}" if claims else ""
        out(f"| {low:.2f} to {high:.2f} | {claims} | {right} | {share} |")


def draw_calibration(drives: Sequence[Mapping[str, Any]], path: Path) -> None:
    """The same as a drawing: shares with intervals of 95 % (Wilson), and the line of honest confidence."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    # Text stays text, and the same results give the same file.
    pyplot.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "alien-drives"})
    figure, axes = pyplot.subplots(figsize=(7.2, 4.4))
    ends = list(zip(BINS, (*BINS[1:], 1.0), strict=True))
    for at, (low, high) in enumerate(ends):
        label = "as sure as it is right" if at == 0 else None
        axes.fill_between([at - 0.4, at + 0.4], low, high, color="0.8", label=label, linewidth=0)
    groups = (("development", DEVELOPMENT, -0.16), ("held out", HELD_OUT, 0.16))
    for (name, makes, aside), color, marker in zip(
        groups, ("#1f6f8b", "#c2571a"), "os", strict=True
    ):
        bins = calibration([drive for drive in drives if drive["make"] in makes])
        rows = [(at, n, right) for at, (_, _, n, right) in enumerate(bins) if n]
        if not rows:
            continue
        n = np.array([row[1] for row in rows], float)
        p = np.array([row[2] for row in rows], float) / n
        middle = (p + 1.92 / n) / (1 + 3.84 / n)
        half = 1.96 * np.sqrt(p * (1 - p) / n + 0.96 / n**2) / (1 + 3.84 / n)
        x = np.array([row[0] for row in rows]) + aside
        bars = np.clip(np.array([p - middle + half, middle + half - p]), 0, None)
        axes.errorbar(x, p, yerr=bars, fmt=marker, color=color, capsize=3, label=name)
        for at, claims in zip(x, n, strict=True):
            axes.text(at, -0.02, f"{claims:.0f}", color=color, ha="center", va="top", fontsize=9)
    axes.set(
        xlabel="confidence of the claim",
        ylabel="share of claims that are right",
        title="Findings on drives of other makes; below the points: claims",
        xlim=(-0.6, len(BINS) - 0.4),
        ylim=(-0.1, 1.05),
        xticks=range(len(BINS)),
        xticklabels=[f"{low:g} to {high:g}" for low, high in ends],
        yticks=np.linspace(0, 1, 6),
    )
    axes.legend(loc="lower left", bbox_to_anchor=(0.27, 0.08), frameon=False, fontsize=9)
    axes.grid(axis="y", alpha=0.25)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def report(drives: Sequence[Mapping[str, Any]]) -> None:
    """All tables, and each false claim with the truth."""
    by_make(drives)
    print()
    by_parameter(drives)
    print()
    calibration_table(drives)
    for drive in drives:
        for parameter, row in drive["rows"].items():
            if row["judgement"] == "false":
                value = row["value"] if row["verdict"] == "found" else "none"
                truth = row["truth"]
                said = [*truth["values"], *(f"{a:.4g} to {b:.4g}" for a, b in truth["ranges"])]
                print(
                    f"  false: {drive['make']}-{drive['seed']} {parameter}: {value} "
                    f"({row['confidence']:.2f}); {truth['why']}: "
                    f"{', '.join(map(str, said)) or 'nothing to tell'}"
                )


def _makes(names: Sequence[str]) -> list[str]:
    chosen: list[str] = []
    for name in names:
        if name not in GROUPS and name not in MAKES:
            sys.exit(f"--make: found {name!r}, expected one of {', '.join([*GROUPS, *MAKES])}")
        chosen += GROUPS.get(name, (name,))
    return [make for make in MAKES if make in chosen]


def main() -> None:
    """Read the command line, probe, print."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--drives", type=int, help="probe this many drives of each make")
    arguments.add_argument("--first", type=int, default=0, help="the first drive's seed")
    arguments.add_argument(
        "--make", action="append", metavar="NAME",
        help=f"a make, or one of {', '.join(GROUPS)} (default)",
    )  # fmt: skip
    arguments.add_argument("--mode", choices=("quick", "full"), default="quick")
    arguments.add_argument("--jobs", type=int, default=1)
    arguments.add_argument(
        "--only", action="append", default=[], metavar="PROBE", help="ask only these probes"
    )
    arguments.add_argument(
        "--judge-again",
        action="store_true",
        help="hold the findings of --out against today's truths",
    )
    arguments.add_argument("--out", type=Path, default=HERE / "findings.parquet")
    arguments.add_argument("--set", default="today", help="the set of drives in --out")
    arguments.add_argument("--plot", type=Path, help="draw the calibration (SVG)")
    given = arguments.parse_args()
    makes = _makes(given.make or ["all"])
    if given.drives is None:
        if given.set not in sets(given.out):
            sys.exit(f"{given.out}: no set {given.set!r}; --drives N makes one")
        kept = load(given.out, given.set)
        if given.judge_again:
            kept["drives"] = judged_again(kept["drives"])
            save(given.out, given.set, kept)
        drives = [drive for drive in kept["drives"] if drive["make"] in makes]
    else:
        seeds = range(given.first, given.first + given.drives)
        drives = []
        for drive in play(makes, seeds, given.mode, given.jobs, tuple(given.only)):
            drives.append(drive)
            tally = dict(counts([drive]))
            name = f"{drive['make']}-{drive['seed']}"
            print(name, f"{drive['seconds']} s", tally, file=sys.stderr, flush=True)
        result = {"mode": given.mode, "drives": drives}
        save(given.out, given.set, result)
    if not drives:
        sys.exit(f"{given.out}: found no drive of these makes")
    report(drives)
    if given.plot is not None:
        draw_calibration(drives, given.plot)


if __name__ == "__main__":
    main()
