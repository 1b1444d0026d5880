"""Truth recovery: probe drives with known ground truth as black boxes, and compare the findings with it.

python experiments/truth-recovery/run.py                      # the table of a set of findings.parquet
python experiments/truth-recovery/run.py --drives 200 --jobs 2  # probe them again
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from drives import Truth, draw, truth
from wide import Answer, answers, draw_wide

from flashwright import probes
from flashwright.probing.session import probe
from flashwright.simulation.ssd import Ssd
from flashwright.target.target import Target

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))

from studies import load, save, sets  # noqa: E402

PROBES = (
    "plausible",
    "clustered-page",
    "slc-cache",
    "mapping",
    "clustered-block",
    "parallelism",
    "read-buffer",
    "prefetch",
    "write-buffer",
    "buffer-kind",
    "flush",
    "map-reach",
    "pauses",
    "throttling",
    "data-reduction",
    "suspension",
    "volumes",
)
"""Parameters whose findings can be compared with the ground truth."""
FAMILIES: dict[str, Callable[[int], Ssd]] = {"old": draw, "wide": draw_wide}
"""What is drawn from."""
NONE = "none"
HIDDEN = "hidden"
"""Parameters that nobody can see from outside; the right answer is "cannot tell"."""


def expected(built: Truth) -> dict[str, object]:
    """The right answer for each parameter that is judged."""

    def there(value: object) -> object:
        return NONE if value is None else value

    # Pages that follow each other lie on one unit where blocks have logs.
    striped = built.units > 1 and built.mapping == "page"
    answers: dict[str, object] = {
        "kind-of-device": "flash",
        "clustered-page": built.clustered_page or HIDDEN,
        "clustered-block": built.clustered_block,
        "read-buffer": there(built.read_buffer),
        "write-buffer": there(built.write_buffer),
        "buffer-kind": there(built.kind),
        "write-buffer-drain": there(built.drain),
        "flush-honoured": "yes" if built.write_buffer else NONE,
        "prefetch": "yes" if built.prefetch else "no",
        "prefetch-size": there(built.prefetch),
        "read-buffer-least": there(built.read_buffer_least or None),
        "slc-cache": NONE,
        "map-reach": NONE,
        "pause-period": NONE,
        "throttled-share": NONE,
        "compression": NONE,
        "deduplication": NONE,
        # The engine of clusters suspends nothing.
        "program-suspension": "no",
        "erase-suspension": "no",
        "program-unit": HIDDEN
        if built.clustered_page is None or not striped
        else built.clustered_page,
        "stripe": HIDDEN
        if built.clustered_page is None
        else built.clustered_page * built.units
        if striped
        else NONE,
        "mapping": built.mapping,
        # With one command at a time and neighbouring pages on one unit, no two units ever work at once.
        "parallel-units": HIDDEN
        if built.mapping == "log-block" and not built.queued
        else built.units,
    }
    return answers


def judge(finding: dict[str, Any], right: object) -> str:
    """``right``, ``unknown`` or ``wrong``; of what is hidden, ``hidden`` if it was left untold."""
    if isinstance(right, Answer):
        return right.judge(finding["verdict"], finding["value"])
    if finding["verdict"] == "unknown":
        return HIDDEN if right == HIDDEN else "unknown"
    found = NONE if finding["verdict"] == "absent" else finding["value"]
    return "right" if found == right else "wrong"


def ask(
    seed: int,
    mode: str,
    family: str = "old",
    drive_time_s: float | None = None,
    only: Sequence[str] = PROBES,
) -> dict[str, Any]:
    """Probes a drawn drive and judges each answer."""
    ssd = FAMILIES[family](seed)
    began = time.monotonic()
    with Target(ssd) as target:
        found = probe(
            target,
            mode="quick" if mode == "quick" else "full",
            only=only,
            drive_time=drive_time_s,
            seed=seed,
        )
    findings = {finding["parameter"]: finding for finding in found.json["findings"]}
    rows = {}
    right_answers = answers(ssd) if family == "wide" else expected(truth(ssd))
    for parameter, right in right_answers.items():
        finding = findings.get(parameter)
        if finding is None:
            continue
        rows[parameter] = {
            "true": right.text if isinstance(right, Answer) else right,
            "found": NONE if finding["verdict"] == "absent" else finding["value"],
            "verdict": judge(finding, right),
            "confidence": finding["confidence"],
            "why": finding["why"],
        }
    return {
        "drive": ssd.name,
        "scheme": ssd.config["ftl"]["scheme"],
        "noise": ssd.config["controller"]["noise"],
        "rows": rows,
        "drive_seconds": round(sum(asked.target_seconds for asked in found.asked), 1),
        "seconds": round(time.monotonic() - began, 2),
    }


def table(drives: list[dict[str, Any]], out: Callable[[str], object] = print) -> None:
    """Shares by parameter, and what went wrong."""
    out(f"{len(drives)} drives")
    head = ("parameter", "drives", "right", "unknown", "wrong", "right if given", "given", "hidden")
    out(" | ".join(head))
    for parameter in drives[0]["rows"]:
        counts = Counter(drive["rows"][parameter]["verdict"] for drive in drives)
        total = counts["right"] + counts["unknown"] + counts["wrong"]
        given = counts["right"] + counts["wrong"]
        out(
            f"{parameter} | {total} | {counts['right'] / max(total, 1):.1%} | "
            f"{counts['unknown'] / max(total, 1):.1%} | {counts['wrong'] / max(total, 1):.1%} | "
            f"{counts['right'] / max(given, 1):.1%} | {given / max(total, 1):.1%} | "
            f"{counts[HIDDEN] or ''}"
        )
    for drive in drives:
        for parameter, row in drive["rows"].items():
            if row["verdict"] == "wrong":
                out(
                    f"  wrong: {drive['drive']} ({drive['scheme']}, noise {drive['noise']}) {parameter}: "
                    f"found {row['found']}, true {row['true']}, confidence {row['confidence']:.2f}"
                )


def play(
    seeds: Sequence[int], jobs: int, asking: Callable[[int], dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Probes drives, several at a time."""
    if jobs == 1:
        yield from map(asking, seeds)
        return
    with multiprocessing.Pool(jobs) as pool:
        yield from pool.imap(asking, seeds)


def again(path: Path, which: str, names: Sequence[str], jobs: int) -> None:
    """Asks some probes of the drives of a result again, after those they build on, and replaces their rows."""
    kept = load(path, which)
    parameters = {p for probe in probes.PROBES if probe.NAME in names for p in probe.PARAMETERS}
    only = [name for name in PROBES if name in names or name in ("clustered-page", "mapping")]
    seeds = [int(drive["drive"].split("-")[-1]) for drive in kept["drives"]]
    asking = partial(
        ask,
        mode=kept["mode"],
        family=kept.get("family", "old"),
        drive_time_s=kept.get("drive_time_s"),
        only=only,
    )
    for drive, new in zip(kept["drives"], play(seeds, jobs, asking), strict=True):
        drive["rows"] |= {name: row for name, row in new["rows"].items() if name in parameters}
        print(drive["drive"], f"{new['seconds']} s", file=sys.stderr, flush=True)
    save(path, which, kept)


def main() -> None:
    """Read the command line, play, print."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--drives", type=int, help="probe this many drives again")
    arguments.add_argument("--first", type=int, default=0, help="the first drive's number")
    arguments.add_argument("--mode", choices=("quick", "full"), default="full")
    arguments.add_argument("--family", choices=tuple(FAMILIES), default="old")
    arguments.add_argument(
        "--drive-time", type=float, help="seconds of the drive's own time, whatever the mode"
    )
    arguments.add_argument("--resume", action="store_true", help="go on with what --out has")
    arguments.add_argument("--jobs", type=int, default=1)
    arguments.add_argument("--again", nargs="+", metavar="PROBE", help="ask only these again")
    arguments.add_argument("--out", type=Path, default=HERE / "findings.parquet")
    arguments.add_argument("--set", default="results", help="the set of drives in --out")
    given = arguments.parse_args()
    if given.again:
        again(given.out, given.set, given.again, given.jobs)
    if given.drives is None:
        if given.set not in sets(given.out):
            sys.exit(f"{given.out}: no set {given.set!r}; --drives N makes one")
        table(load(given.out, given.set)["drives"])
        return
    whole = {"mode": given.mode, "family": given.family, "drive_time_s": given.drive_time}
    drives = []
    if given.resume and given.set in sets(given.out):
        kept = load(given.out, given.set)
        if {name: kept.get(name) for name in whole} != whole:
            sys.exit(
                f"{given.out}: {given.set!r} is of another family, mode or drive time; leave out --resume"
            )
        drives = kept["drives"]
    done = {int(drive["drive"].split("-")[-1]) for drive in drives}
    seeds = [seed for seed in range(given.first, given.first + given.drives) if seed not in done]
    asking = partial(ask, mode=given.mode, family=given.family, drive_time_s=given.drive_time)
    for drive in play(seeds, given.jobs, asking):
        drives.append(drive)
        verdicts = {name: row["verdict"] for name, row in drive["rows"].items()}
        print(drive["drive"], f"{drive['seconds']} s", verdicts, file=sys.stderr, flush=True)
        # After each drive, so that what was interrupted can go on.
        save(given.out, given.set, whole | {"drives": drives})
    table(drives)


if __name__ == "__main__":
    main()
