"""Models of heads of published traces, which the bundled stand-ins take their locality from.

    python experiments/trace-models/stand_ins.py

Each head is put on the 64 KiB chunks that it touches, as in the experiment beside this script, and fitted with
``flashwright trace fit``; the models are written where the stand-ins are built from. Traces are looked for in
``FLASHWRIGHT_TRACES``; all must be there.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import halves

from flashwright import fit_trace

HEADS = ("financial1", "financial1-asu9", "websearch1", "msn-fs")
"""Names of models, and of their traces in ``halves.TRACES``."""
FOLDER = Path(__file__).parents[2] / "crates/workload/src/generate/stand_in/heads"


def main() -> int:
    """Fits and writes them all."""
    known = {trace.name: trace for trace in halves.TRACES}
    for name in HEADS:
        requests = halves.read(known[name])
        with tempfile.TemporaryDirectory() as folder:
            model = fit_trace(requests.save(Path(folder) / "head.mqsim"), kind="statistics")
        target = FOLDER / f"{name}.toml"
        model.save(target)
        print(f"{target.name}: {len(requests):,} requests, {target.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
