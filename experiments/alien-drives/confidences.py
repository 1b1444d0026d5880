"""How sure each kind of verdict may be: the share that is right, on families of drives that are held out in turn.

python experiments/alien-drives/confidences.py      # from the sets `after` here and `quick` of truth-recovery

Families are the makes of `DEVELOPMENT` and the translation layers of our own drives. Drives of one family share what
fools a rule, so they count as fewer: n drives weigh n / (1 + (n - 1) r), where r is the correlation of errors within
a family, which is measured on rules that were new to the makes (the set ``before``). A cap is what these weights leave
by Jeffreys' rule: (right + 0.5) / (all + 1).
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from aliens import DEVELOPMENT

from flashwright.drive.findings import Finding
from flashwright.probing.confidence import claim_of

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))

from studies import load, sets  # noqa: E402

ALIENS = HERE / "findings.parquet"
OWN = HERE.parent / "truth-recovery" / "findings.parquet"
OUT = HERE.parents[1] / "python" / "flashwright" / "blackbox" / "confidences.toml"
HEAD = """\
# How sure each kind of verdict may be at most. Written by experiments/alien-drives/confidences.py.
# {drives}
"""


@dataclass(frozen=True)
class Claim:
    """A verdict on a drive whose answer is known."""

    kind: str
    family: str
    right: bool


def _kind(parameter: str, row: Mapping[str, Any]) -> str:
    return claim_of(Finding(parameter, row["verdict"], row["value"]))


def of_aliens(document: Mapping[str, Any]) -> Iterator[Claim]:
    """What the probes claimed of makes that rules may be tuned on; those that are held out stay out."""
    for drive in document["drives"]:
        if drive["make"] not in DEVELOPMENT:
            continue
        for parameter, row in drive["rows"].items():
            if row["judgement"] in ("right", "false"):
                right = row["judgement"] == "right"
                yield Claim(_kind(parameter, row), drive["make"], right)


def of_own(document: Mapping[str, Any]) -> Iterator[Claim]:
    """What they claimed of drives of our own simulator (truth recovery)."""
    for drive in document["drives"]:
        for parameter, row in drive["rows"].items():
            if row["verdict"] in ("right", "wrong"):
                found = Finding(
                    parameter, "absent" if row["found"] == "none" else "found", row["found"]
                )
                kind = claim_of(found)
                yield Claim(kind, f"own {drive['scheme']}", row["verdict"] == "right")


def counted(claims: Sequence[Claim]) -> dict[str, dict[str, tuple[int, int]]]:
    """By kind and family: how many claims, and how many of them right."""
    table: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0]))
    for claim in claims:
        cell = table[claim.kind][claim.family]
        cell[0] += 1
        cell[1] += claim.right
    return {k: {f: (n, r) for f, (n, r) in row.items()} for k, row in table.items()}


def cap(families: Mapping[str, tuple[int, int]], within: float, without: str = "") -> float:
    """The share right over families, each as much as its drives weigh, with half a claim added to either side.

    >>> round(cap({"a": (100, 100), "b": (1, 1)}, 0.5), 3)
    0.874
    >>> cap({"a": (4, 4)}, 0.0), cap({}, 0.5)
    (0.9, 0.5)
    """
    right = all_ = 0.0
    for family, (claims, correct) in families.items():
        if family != without:
            weight = claims / (1 + (claims - 1) * within)
            all_ += weight
            right += weight * correct / claims
    return (right + 0.5) / (all_ + 1)


def held_out(
    table: Mapping[str, Mapping[str, tuple[int, int]]], within: float
) -> list[tuple[float, int, int]]:
    """What the other families give for each family of each kind, and how it went there: cap, claims, right."""
    return [
        (cap(families, within, family), claims, right)
        for families in table.values()
        if len(families) > 1
        for family, (claims, right) in families.items()
    ]


def correlation(table: Mapping[str, Mapping[str, tuple[int, int]]]) -> float:
    """How much errors of a kind of verdict go together within a family: the analysis of variance of one factor.

    >>> correlation({"kind": {"a": (3, 3), "b": (3, 0)}}), correlation({"kind": {"a": (4, 2), "b": (4, 2)}})
    (1.0, 0.0)
    """
    cells = np.array([cell for row in table.values() for cell in row.values()], float)
    claims, shares = cells[:, 0], cells[:, 1] / cells[:, 0]
    middle = cells[:, 1].sum() / claims.sum()
    between = float((claims * (shares - middle) ** 2).sum()) / max(len(cells) - 1, 1)
    inside = float((claims * shares * (1 - shares)).sum()) / max(claims.sum() - len(cells), 1)
    usual = (claims.sum() - (claims**2).sum() / claims.sum()) / max(len(cells) - 1, 1)
    whole = between + (usual - 1) * inside
    return float(np.clip((between - inside) / whole, 0.0, 1.0)) if whole > 0 else 1.0


def report(rows: Sequence[tuple[float, int, int]]) -> None:
    """What was expected of families that were held out, and what came; a table of Markdown."""
    print("| cap from the other families | families of a verdict | expected right | right |")
    print("| --- | --- | --- | --- |")
    edges = (0.0, 0.8, 0.85, 0.9, 0.95, 1.0)
    for low, high in itertools.pairwise(edges):
        these = [row for row in rows if low <= row[0] < high]
        if these:
            expected = np.mean([row[0] for row in these])
            came = np.mean([right / claims for _, claims, right in these])
            print(f"| {low:.2f} to {high:.2f} | {len(these)} | {expected:.1%} | {came:.1%} |")


def main() -> None:
    """Read what was found, write the caps, print how held-out families came out."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--aliens", nargs="+", default=["after"], help="sets of drives here")
    arguments.add_argument("--own", nargs="+", default=["quick"], help="sets of truth-recovery")
    arguments.add_argument("--before", default="before", help="the set with rules that were new")
    arguments.add_argument("--out", type=Path, default=OUT)
    given = arguments.parse_args()
    for path, names in ((ALIENS, (*given.aliens, given.before)), (OWN, given.own)):
        for lacking in set(names) - set(sets(path)):
            sys.exit(f"{path}: no set {lacking!r}; run.py makes one")
    documents = [load(ALIENS, name) for name in given.aliens]
    own = [load(OWN, name) for name in given.own]
    claims = [claim for document in documents for claim in of_aliens(document)]
    claims += [claim for document in own for claim in of_own(document)]
    table = counted(claims)
    # Of rules that no drive of another make had been held against: how errors go together where a rule is new.
    within = correlation(counted(list(of_aliens(load(ALIENS, given.before)))))
    drives = (
        f"{sum(drive['make'] in DEVELOPMENT for each in documents for drive in each['drives'])} drives of "
        f"{len(DEVELOPMENT)} makes and {sum(len(each['drives']) for each in own)} of our own; {len(claims)} claims; "
        f"correlation within a family {within:.2f}"
    )
    lines = [HEAD.format(drives=drives), f"correlation = {within:.2f}\n", "[caps]"]
    for kind, families in sorted(table.items()):
        whole = [sum(column) for column in zip(*families.values(), strict=True)]
        lines.append(
            f'"{kind}" = {{ confidence = {cap(families, within):.3f}, claims = {whole[0]}, '
            f"right = {whole[1]}, families = {len(families)} }}"
        )
    given.out.write_text("\n".join(lines) + "\n")
    print(drives)
    report(held_out(table, within))


if __name__ == "__main__":
    main()
