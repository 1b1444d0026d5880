"""What the rules of the DFTL paper's claims share.

Stand-ins support orders only: a magnitude that they meet is *direction only*.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flashwright.papers import Answer, Plot, Verdict

from .runs import VICTIMS

DECIDES = ("full", "greedy")


TOLD = {"full": "full drive", "replayed": "trace written once first", "erased": "erased drive"}


STAND_IN = "Stand-in for {}, made from published statistics"


NAMES = {"page": "baseline", "fast": "FAST", "dftl": "DFTL"}


def answer(
    told: Mapping[tuple[str, str], tuple[str, Verdict]],
    what: str,
    workload: str,
    *,
    plots: Sequence[Plot] = (),
    more: str = "",
) -> Answer:
    """One answer from what each state and victim policy gave; what is the same for both policies is said once."""
    parts = []
    for state in dict.fromkeys(state for state, _ in told):
        values = [told[state, victim][0] for victim in VICTIMS]
        if values[0] == values[1]:
            parts.append(f"{values[0]} ({TOLD[state]})")
        else:
            parts.append(f"{values[0]} ({TOLD[state]}, greedy), {values[1]} (cost-benefit)")
    ours = f"{what}: {'; '.join(parts)}." + (f" {more}." if more else "")
    return Answer(told[DECIDES][1], ours, workload, plots=plots)
