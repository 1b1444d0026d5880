"""What the rules of the DFTL paper's claims share.

README.md argues which drive decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flashwright_papers import Answer, Plot, Verdict

from .runs import VICTIMS

# The drive that decides, and the one that does where the first is not run.
DECIDES = (("replayed", "cost-benefit"), ("full", "cost-benefit"))


STATE_NAMES = {
    "replayed": "trace written once first",
    "full": "full drive",
    "erased": "erased drive",
}


STAND_IN = "Stand-in for {}"


NAMES = {"page": "baseline", "fast": "FAST", "dftl": "DFTL"}


def answer(
    by_reading: Mapping[tuple[str, str], tuple[str, Verdict]],
    what: str,
    workload: str,
    *,
    plots: Sequence[Plot] = (),
    more: str = "",
) -> Answer:
    """One answer from what each state and victim policy gave; what is the same for both policies is said once.

    The other states and the other policy stand beside it as readings.
    """
    parts = []
    for state in dict.fromkeys(state for state, _ in by_reading):
        values = [by_reading[state, victim][0] for victim in VICTIMS]
        if values[0] == values[1]:
            parts.append(f"{values[0]} ({STATE_NAMES[state]})")
        else:
            parts.append(f"{values[0]} ({STATE_NAMES[state]}, greedy), {values[1]} (cost-benefit)")
    ours = f"{what}: {'; '.join(parts)}." + (f" {more}." if more else "")
    decides = next(each for each in DECIDES if each in by_reading)
    readings = {
        each: f"{STATE_NAMES[state]}, {victim} victims"
        for each in by_reading
        for state, victim in [each]
    }
    also = {readings[each]: verdict for each, (_, verdict) in by_reading.items() if each != decides}
    used = readings[decides]
    return Answer(by_reading[decides][1], ours, workload, plots=plots, also=also, used=used)
