"""Twins of drives drawn at random: how well do they predict a pattern that they were not fitted to?

    python experiments/truth-recovery/twins.py --seeds 1000-1019
    python experiments/truth-recovery/twins.py --seeds 1000-1019 --probed

Each drive is calibrated as a black box, a twin is fitted, and both play the pattern that was held back. By default the
fit receives the drive's true structure; with --probed, what the probes found.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping
from typing import Any

import drives
from run import PROBES

from flashwright.blackbox.session import probe
from flashwright.blackbox.target import Target
from flashwright.blackbox.twin import calibrate, check, fitted
from flashwright.drive.findings import Finding
from flashwright.run.ssd import Ssd


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


def twin_of(seed: int, probed: bool) -> dict[str, Any]:
    """Draws a drive, fits its twin, checks it."""
    ssd = drives.draw(seed)
    began = time.process_time()
    with Target(ssd) as target:
        findings: Mapping[str, Finding]
        findings = probe(target, only=PROBES, seed=seed).findings if probed else true_findings(ssd)
        fit = fitted(target, findings, calibrate(target, findings))
        result = check(target, fit.ssd)
    return {
        "seed": seed,
        "scheme": drives.truth(ssd).scheme,
        "twin": fit.model.scheme,
        "within": result.within,
        **{name: result.all.ratio[name] for name in ("mean", "p50", "p90", "p99", "p99.9")},
        "distance": result.all.distance,
        "error": fit.error,
        "evaluations": fit.evaluations,
        "seconds": time.process_time() - began,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="1000-1019", help="first-last")
    parser.add_argument("--probed", action="store_true", help="what probes find, not the truth")
    options = parser.parse_args()
    first, last = (int(part) for part in options.seeds.split("-"))
    columns = None
    within = 0
    for seed in range(first, last + 1):
        row = twin_of(seed, options.probed)
        if columns is None:
            columns = list(row)
            print(*columns, sep=",")
        within += row["within"]
        cells = (f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in row.values())
        print(*cells, sep=",", flush=True)
    drawn = last - first + 1
    print(f"within the bounds: {within} of {drawn}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
