"""Twins of drives drawn at random: how well do they predict a pattern that they were not fitted to?

    python experiments/truth-recovery/twins.py --seeds 1000-1019
    python experiments/truth-recovery/twins.py --seeds 1000-1019 --probed
    python experiments/truth-recovery/twins.py --family wide --seeds 300-319 --probed
    python experiments/truth-recovery/twins.py --family alien --seeds 0-0

Each drive is calibrated as a black box, a twin is fitted, and both play the pattern that was held back. Its record
marks the twin or not, as a profile does. Then both play it again under another seed, and that says whether the twin
is within the bounds. By default the fit receives the true structure of a drive of the family ``drawn`` and nothing of
others; with --probed, what the probes found.
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import drives
from wide import draw_wide

from flashwright.drive.findings import Finding
from flashwright.drive.trust import doubts_of_twin
from flashwright.errors import FlashwrightError
from flashwright.probing.session import probe
from flashwright.simulation.ssd import Ssd
from flashwright.target.target import Target
from flashwright.twin import calibrate, check, fitted

PROBES = (
    "clustered-page",
    "slc-cache",
    "mapping",
    "clustered-block",
    "parallelism",
    "read-buffer",
    "prefetch",
    "write-buffer",
    "buffer-kind",
    "map-reach",
)
"""What a fit goes by."""
DRIVE_S = 28_800.0
"""What probes may take of the drive's own time, seconds: as the truth recovery of the widened family."""
DRIVE_SEED = 1_000
"""Added to the number of a drive: the seed of its noise."""


@dataclass(frozen=True)
class Asked:
    """How twins are made.

    Attributes
    ----------
    family : str
        ``drawn``, ``wide`` or ``alien``.
    probed : bool
        Whether the fit goes by what probes found.
    budget_s : float
        Processor time of a fit, seconds.
    kept : Path, optional
        Folder that twins and what came of them are kept in, and taken from where they are there.
    """

    family: str = "drawn"
    probed: bool = False
    budget_s: float = 300.0
    kept: Path | None = None


def true_findings(ssd: Ssd) -> dict[str, Finding]:
    """What perfect probes would find."""
    truth = drives.truth(ssd)
    controller = ssd.config["controller"]
    ahead = drives.size(controller["read-buffer"]["prefetch"]) if truth.prefetch else None
    drain = controller["write-buffer"]["drain"] if truth.write_buffer else None
    values: dict[str, int | str | None] = {
        "clustered-block": truth.clustered_block,
        "read-buffer": truth.read_buffer,
        "read-buffer-least": truth.read_buffer_least or None,
        "write-buffer": truth.write_buffer,
        "buffer-kind": truth.kind,
        "write-buffer-drain": drain,
        "prefetch": "yes" if truth.prefetch else "no",
        "prefetch-size": ahead,
        "mapping": truth.mapping,
        "parallel-units": truth.units,
        "slc-cache": None,
    }
    found = {
        name: Finding(name, "absent" if value is None else "found", value)
        for name, value in values.items()
    }
    page = truth.clustered_page
    # Partial writes that cost nothing do not show the page.
    found["clustered-page"] = Finding(
        "clustered-page", "unknown" if page is None else "found", page
    )
    return found


def mechanisms(ssd: Ssd) -> str:
    """What a drive of the wide family is made of."""
    config = ssd.config
    parts = [config["ftl"]["scheme"], f"SLC {config['slc']['cache']}", config["gc"]["schedule"]]
    if config["geometry"]["mapping-unit"] != "0 B":
        parts.append("two units")
    return "; ".join(parts).replace("SLC none", "no SLC")


def aliens() -> Any:
    """The module of the drives of other makes."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "alien-drives"))
    return importlib.import_module("aliens")


def twin_of(work: tuple[str, int], asked: Asked) -> dict[str, Any]:
    """Makes the drive, fits its twin, checks it twice; what came of it."""
    return made(work, asked)[0]


def made(work: tuple[str, int], asked: Asked) -> tuple[dict[str, Any], Ssd | None]:
    """The same, with the twin."""
    if asked.kept is None:
        return fitted_to(work, asked)
    row_file, twin_file = (asked.kept / f"{work[0]}-{work[1]}.{kind}" for kind in ("json", "toml"))
    if not row_file.exists():
        row, twin = fitted_to(work, asked)
        if twin is not None:
            twin_file.write_text(twin.toml)
        row_file.write_text(json.dumps(row, indent=1))
    row = json.loads(row_file.read_text())
    return row, Ssd.from_text(twin_file.read_text()) if twin_file.exists() else None


def fitted_to(work: tuple[str, int], asked: Asked) -> tuple[dict[str, Any], Ssd | None]:
    """A drive's twin, made anew."""
    make, seed = work
    began = time.process_time()
    row: dict[str, Any] = {"drive": f"{make}-{seed}"}
    findings: Mapping[str, Finding] = {}
    if asked.family == "alien":
        opened = Target(aliens().Alien(make, seed))
        row["made of"] = make
    else:
        ssd = draw_wide(seed, small=True) if asked.family == "wide" else drives.draw(seed)
        # Nothing random in the drive is what is random in candidates.
        opened = Target(ssd, seed=DRIVE_SEED + seed)
        row["made of"] = mechanisms(ssd) if asked.family == "wide" else drives.truth(ssd).scheme
        if asked.family == "drawn":
            findings = true_findings(ssd)
    with opened as target:
        if asked.probed:
            probed = probe(target, mode="quick", only=PROBES, seed=seed, drive_time=DRIVE_S)
            findings = probed.findings
        row["probe s"] = time.process_time() - began
        try:
            fit = fitted(
                target, findings, calibrate(target, findings), processor_limit=asked.budget_s
            )
            first, second = (check(target, fit.ssd, seed=each) for each in (2, 3))
        except FlashwrightError as error:
            return row | {"verdict": "refused", "why": str(error).splitlines()[0]}, None
    doubts = doubts_of_twin(fit.to_dict() | {"check": first.record()})
    verdict = "marked" if doubts else "within" if second.within else "UNMARKED WRONG"
    row |= {
        "verdict": verdict,
        "within": second.within,
        **{name: second.all.ratio[name] for name in ("mean", "p50", "p90", "p99", "p99.9")},
        "reads": second.reads.ratio["mean"],
        "writes": second.writes.ratio["mean"],
        "distance": second.all.distance,
        "error": fit.error,
        "evaluations": fit.evaluations,
        "stopped": bool(fit.stopped),
        "seconds": time.process_time() - began,
        "twin": fit.tried[-1][0],
        "doubts": "; ".join(doubts),
    }
    return row, fit.ssd


def _shown(cell: object) -> str:
    return f"{cell:.3f}" if isinstance(cell, float) else str(cell).replace(",", ";")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="1000-1019", help="first-last")
    parser.add_argument("--family", default="drawn", choices=("drawn", "wide", "alien"))
    parser.add_argument(
        "--make", action="append", help="of alien drives; repeatable; default all of them"
    )
    parser.add_argument("--probed", action="store_true", help="what probes find, not the truth")
    parser.add_argument("--budget", type=float, default=300.0, help="processor seconds of a fit")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--kept", type=Path, help="folder of twins: taken from it, else kept in it")
    options = parser.parse_args()
    first, last = (int(part) for part in options.seeds.split("-"))
    makes = [options.family]
    if options.family == "alien":
        makes = options.make or list(aliens().MAKES)
    works = [(make, seed) for make in makes for seed in range(first, last + 1)]
    asked = Asked(options.family, options.probed, options.budget, options.kept)
    if options.kept:
        options.kept.mkdir(parents=True, exist_ok=True)
    verdicts: list[dict[str, Any]] = []
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        for row in pool.imap_unordered(partial(twin_of, asked=asked), works):
            verdicts.append(row)
            print(*(f"{name}={_shown(cell)}" for name, cell in row.items()), sep=",", flush=True)
    counts = {
        name: sum(row["verdict"] == name for row in verdicts)
        for name in ("within", "marked", "refused", "UNMARKED WRONG")
    }
    inside = sum(bool(row.get("within")) for row in verdicts)
    print(f"within the bounds: {inside} of {len(verdicts)}; {counts}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
