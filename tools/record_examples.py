"""Run the examples and write what each prints beside it.

``python tools/record_examples.py`` records all of them, with names only those: ``python tools/record_examples.py 03``.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def main() -> int:
    """Record; 1 if an example fails, which then keeps its output of before."""
    wanted = tuple(sys.argv[1:])
    failed = 0
    for path in sorted(EXAMPLES.glob("[0-9]*.py")):
        if wanted and not path.stem.startswith(wanted):
            continue
        ran = subprocess.run(
            [sys.executable, "-W", "error", path],
            capture_output=True,
            text=True,
            check=False,
            cwd=EXAMPLES,
        )
        if ran.returncode:
            failed += 1
            print(f"{path.name}: {ran.stderr.strip()}", file=sys.stderr)
        else:
            path.with_suffix(".out").write_text(ran.stdout, encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
