"""Chapter 2, PUD-LRU: the judges of traces under all schemes (D2.9 to D2.22)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from flashwright_papers import Answer, Found, Line, Plot, Verdict, claim

from .ram_judge import (
    NAMES,
    Ratios,
    Rule,
    Runs,
    apply_rule,
    magnitude,
    mostly,
    normalized,
    orderings,
    over_ram,
    saving,
    span,
    within,
)
from .ram_play import (
    BUILD,
    EXCHANGE,
    FINANCIAL_1,
    FINANCIAL_2,
    HEAD_1,
    IN_ORDER,
    TPC_E,
    TPC_E_DESCRIBED,
)

FIRST_FOUR = (FINANCIAL_1, FINANCIAL_2, EXCHANGE, BUILD)


ALL = (*FIRST_FOUR, TPC_E_DESCRIBED)


# TPC-E as described decides; beside it, its stand-in, and the other state of the drive.
OTHERS = ((TPC_E, ""), (TPC_E_DESCRIBED, IN_ORDER))
OTHER_PARTS = ("tpc-e", "tpc-e-pud-lru", "told-in-order")


FOUR = ("financial-1", "financial-2", "exchange", "build")
BASES = (*FOUR, "told")


PUD_LRUS = tuple(f"{name}-pud-lru" for name in FOUR)


FIGURES = dict(zip(ALL, ("2.3", "2.4", "2.5", "2.6", "2.7"), strict=True))


SCHEMES = ("bplru", "pud-lru", "dftl")


def both(runs: Runs, base: str) -> tuple[Ratios, Ratios]:
    """Erases and time of PUD-LRU over those of another."""
    return runs.ratios("pud-lru", base, "erases"), runs.ratios("pud-lru", base, "time")


def figure(runs: Runs, schemes: Sequence[str] = SCHEMES) -> list[Plot]:
    """Both plots of figures 2.3 to 2.7."""
    name = f"Figure {FIGURES[runs.trace]}"
    return [normalized(runs, name, metric, schemes) for metric in ("erases", "time")]


def erases_figure(runs: Runs) -> list[Plot]:
    """The first plot of figures 2.3 to 2.7."""
    return figure(runs)[:1]


# ---- tables and worked examples


def up_to(base: str, erases: float, time: float) -> Rule:
    """PUD-LRU saves up to so much against another."""

    def rule(runs: Runs) -> tuple[str, Verdict]:
        e, t = both(runs, base)
        met = within(saving(e), erases) and within(saving(t), time)
        below = all(runs.below("pud-lru", base, metric) for metric in ("erases", "time"))
        return f"{saved(e, t)} against {NAMES[base]}", magnitude(runs, met, below)

    return rule


def saved(erases: Ratios, time: Ratios) -> str:
    """The largest savings with the ratios that they come from."""
    most = [
        f"up to {100 * saving(each):.0f} %" if saving(each) > 0 else "nothing"
        for each in (erases, time)
    ]
    return f"{most[0]} of erases and {most[1]} of the time saved (ratios {span(erases)} and {span(time)})"


@claim("D2.9", needs=("financial-1", "financial-1-pud-lru", "head-financial-1"))
def d2_9(found: Found) -> Answer:
    """Four maxima on Financial 1."""
    rules = (up_to("bplru", 0.30, 0.56), up_to("dftl", 0.33, 0.32))

    def rule(runs: Runs) -> tuple[str, Verdict]:
        answers = [each(runs) for each in rules]
        verdicts = {verdict for _, verdict in answers}
        worst = next(
            each
            for each in (Verdict.NOT, Verdict.DIRECTION, Verdict.REPRODUCED)
            if each in verdicts
        )
        return ", ".join(text for text, _ in answers), worst

    return apply_rule(found, rule, [FINANCIAL_1], plots=figure)


@claim("D2.10", needs=("financial-1", "financial-1-pud-lru", "head-financial-1"))
def d2_10(found: Found) -> Answer:
    """Where PUD-LRU and page mapping cross."""

    def rule(runs: Runs) -> tuple[str, Verdict]:
        e, t = both(runs, "page")
        above = {ram for ram, value in e.items() if value < 1}
        first = min(above, default=math.inf)
        stays = all(ram in above for ram in e if ram >= first)
        met = bool(above) and stays and 16 <= first <= 32 and all(r < 1 for r in t.values())
        where = f"fewer erases from {first:g} MiB on" if above else "never fewer erases"
        text = f"{where}; over page mapping's, erases {span(e)}, time {span(t)}"
        below = runs.below("pud-lru", "page", "time") and bool(above)
        return text, magnitude(runs, met, below)

    return apply_rule(found, rule, [FINANCIAL_1], plots=figure)


@claim("D2.11", needs=("financial-2", "financial-2-pud-lru"))
def d2_11(found: Found) -> Answer:
    """Two maxima on Financial 2."""
    return apply_rule(found, up_to("bplru", 0.42, 0.39), [FINANCIAL_2], plots=figure)


@claim("D2.12", needs="financial-2")
def d2_12(found: Found) -> Answer:
    """Hits in DFTL's table at 16 MiB."""

    def rule(runs: Runs) -> tuple[str, Verdict]:
        hits = runs.of("dftl", 16, "map_hit_ratio")
        return f"{100 * hits:.1f} % hits", magnitude(runs, abs(hits - 0.53) <= 0.1, False)

    def plots(runs: Runs) -> list[Plot]:
        lines = over_ram(runs, ["dftl"], lambda scheme, ram: runs.of(scheme, ram, "map_hit_ratio"))
        return [
            Plot(
                f"Section 2.3.2: hits in DFTL's table, {runs.label}",
                "RAM (MiB)",
                "hits in lookups",
                [*lines, Line("dissertation", [16], [0.53], paper=True)],
                y_format="share",
            )
        ]

    return apply_rule(found, rule, [FINANCIAL_2], plots=plots)


def small_gain(runs: Runs) -> tuple[str, Verdict]:
    """A gain between nothing and 20 %."""
    e, t = both(runs, "bplru")
    met = all(0 <= saving(each) <= 0.2 for each in (e, t))
    return saved(e, t), magnitude(runs, met, max(saving(e), saving(t)) > 0)


@claim("D2.13", needs=("exchange", "exchange-pud-lru"))
def d2_13(found: Found) -> Answer:
    """A small gain on Exchange."""
    return apply_rule(found, small_gain, [EXCHANGE], plots=figure)


@claim("D2.14", needs=("exchange", "exchange-pud-lru"))
def d2_14(found: Found) -> Answer:
    """DFTL falls steeply at about 40 MiB on Exchange."""

    def rule(runs: Runs) -> tuple[str, Verdict]:
        e, t = both(runs, "dftl")
        small = [{ram: r for ram, r in each.items() if ram < 40} for each in (e, t)]
        large = {ram: r for ram, r in e.items() if ram > 40}
        comparable = all(0.8 <= r <= 1.25 for r in large.values())
        met = within(saving(small[0]), 0.73) and within(saving(small[1]), 0.75) and comparable
        falls = min(small[0].values()) < 0.8 * max(large.values())
        gains = all(saving(each) > 0 for each in small)
        return (
            f"below 40 MiB {saved(*small)} against DFTL; above, {span(large)} of its erases",
            magnitude(runs, met, gains and falls),
        )

    return apply_rule(found, rule, [EXCHANGE], plots=figure)


@claim("D2.15", needs=("build", "build-pud-lru"))
def d2_15(found: Found) -> Answer:
    """A small gain on Build."""
    return apply_rule(found, small_gain, [BUILD], plots=figure)


@claim("D2.16", needs=("told", *OTHER_PARTS))
def d2_16(found: Found) -> Answer:
    """No difference on TPC-E."""

    def rule(runs: Runs) -> tuple[str, Verdict]:
        e, t = both(runs, "bplru")
        off = max(abs(value - 1) for each in (e, t) for value in each.values())
        return f"PUD-LRU over BPLRU: erases {span(e)}, time {span(t)}", Verdict.of(off <= 0.03)

    return apply_rule(found, rule, [TPC_E_DESCRIBED], OTHERS, figure)


@claim("D2.17", needs=("build", "build-pud-lru", "told", *OTHER_PARTS))
def d2_17(found: Found) -> Answer:
    """Page mapping far behind both on Build and TPC-E."""

    def rule(runs: Runs) -> tuple[str, Verdict]:
        played = {scheme for scheme, _ in runs.rows}
        schemes = [each for each in ("pud-lru", "bplru") if each in played]
        ratios = {s: [runs.ratios(s, "page", m) for m in ("erases", "time")] for s in schemes}
        every = [value for pair in ratios.values() for each in pair for value in each.values()]
        text = "; ".join(
            f"{NAMES[scheme]} over page mapping: erases {span(e)}, time {span(t)}"
            for scheme, (e, t) in ratios.items()
        )
        clearly, below = (mostly(value < limit for value in every) for limit in (0.8, 1))
        return text, Verdict.of(clearly, direction=below)

    return apply_rule(found, rule, [BUILD, TPC_E_DESCRIBED], OTHERS, erases_figure)


# ---- figures 2.8 and 2.9


def size_2_8(runs: Runs) -> int:
    """MiB of RAM of figure 2.8, a quarter on the head of Financial 1 as at all its sizes."""
    return 4 if runs.workload == HEAD_1 else 16


def over_bplru(runs: Runs, metric: str) -> Ratios:
    """PUD-LRU over BPLRU by threshold, at the size of figure 2.8."""
    at = size_2_8(runs)
    found = {0.001: runs.ratios("pud-lru", "bplru", metric, [at])[at]}
    for scheme, ram in runs.rows:
        if scheme.startswith("pud-lru ") and ram == at:
            x, y = runs.pair(scheme, "bplru", at, metric)
            found[float(scheme.split()[1])] = x / y
    return dict(sorted(found.items()))


def figure_2_8(runs: Runs) -> list[Plot]:
    """Both plots of figure 2.8, for a workload."""
    return [
        Plot(
            f"Figure 2.8: {what}, {size_2_8(runs)} MiB, {runs.label}",
            "threshold",
            f"{what} over BPLRU's",
            [Line("PUD-LRU", list(values), list(values.values()))],
            x_log=True,
            levels=[("BPLRU", 1.0)],
        )
        for metric, what in (("erases", "erases"), ("time", "mean response or service time"))
        for values in [over_bplru(runs, metric)]
    ]


@claim("D2.18", needs=(*BASES[:2], *PUD_LRUS[:2], "head-financial-1"))
def d2_18(found: Found) -> Answer:
    """Better than BPLRU at every threshold."""

    def rule(runs: Runs) -> tuple[str, Verdict]:
        e, t = (over_bplru(runs, metric) for metric in ("erases", "time"))
        every = [value for each in (e, t) for value in each.values()]
        text = f"over BPLRU's, erases {min(e.values()):.2f} to {max(e.values()):.2f}, "
        text += f"time {min(t.values()):.2f} to {max(t.values()):.2f} at {len(e)} thresholds"
        return text, Verdict.of(max(every) < 1)

    return apply_rule(found, rule, [FINANCIAL_1, FINANCIAL_2], plots=figure_2_8)


@claim("D2.19", needs=(*BASES[:4], *PUD_LRUS[:4], "head-financial-1"))
def d2_19(found: Found) -> Answer:
    """The threshold with the fewest erases."""

    def rule(runs: Runs) -> tuple[str, Verdict]:
        e = over_bplru(runs, "erases")
        least = min(e.values())
        best = [threshold for threshold, value in e.items() if value == least]
        spread = max(e.values()) / least - 1
        near = min(abs(math.log10(threshold / 0.001)) for threshold in best) <= 1.01
        text = f"best at {', '.join(f'{each:g}' for each in best)}, {100 * spread:.1f} % between best and worst"
        return text, Verdict.of(near and spread > 0, direction=near)

    def plots(runs: Runs) -> list[Plot]:
        return figure_2_8(runs)[:1]

    return apply_rule(found, rule, FIRST_FOUR, plots=plots)


@claim("D2.20", needs=("told", *OTHER_PARTS))
def d2_20(found: Found) -> Answer:
    """The threshold makes no difference on TPC-E."""

    def rule(runs: Runs) -> tuple[str, Verdict]:
        values = [over_bplru(runs, metric).values() for metric in ("erases", "time")]
        erases, time = (max(each) / min(each) - 1 for each in values)
        text = f"worst over best: erases {100 * erases:.1f} %, time {100 * time:.1f} % apart"
        return text, Verdict.of(max(erases, time) < 0.03)

    return apply_rule(found, rule, [TPC_E_DESCRIBED], OTHERS[:1], figure_2_8)


@claim("D2.21", needs=(*BASES, *PUD_LRUS, "head-financial-1", *OTHER_PARTS))
def d2_21(found: Found) -> Answer:
    """Pages a destage over RAM."""
    schemes = ("bplru", "pud-lru")

    def rule(runs: Runs) -> tuple[str, Verdict]:
        sizes = runs.sizes(*schemes)
        b, p = ([runs.of(s, ram, "pages_per_destage") for ram in sizes] for s in schemes)
        text = f"BPLRU {b[0]:.1f} to {b[-1]:.1f}, PUD-LRU {p[0]:.1f} to {p[-1]:.1f} pages"
        if runs.workload in (TPC_E, TPC_E_DESCRIBED):
            return text, Verdict.of(min(*b, *p) >= 120)
        rising = all(y >= 0.98 * x for each in (b, p) for x, y in pairwise(each))
        ahead = mostly(y >= x for x, y in zip(b, p, strict=True))
        return text, Verdict.of(rising and ahead, direction=ahead)

    def plots(runs: Runs) -> list[Plot]:
        lines = over_ram(
            runs, schemes, lambda scheme, ram: runs.of(scheme, ram, "pages_per_destage")
        )
        levels = [("dissertation, about", 128.0)] if runs.workload == TPC_E_DESCRIBED else []
        title = f"Figure 2.9: pages of the host in a destage, {runs.label}"
        return [Plot(title, "RAM (MiB)", "pages", lines, levels=levels)]

    return apply_rule(found, rule, ALL, OTHERS, plots)


@claim("D2.22", needs=(*BASES, *PUD_LRUS, "head-financial-1", *OTHER_PARTS))
def d2_22(found: Found) -> Answer:
    """PUD-LRU before BPLRU everywhere, and before DFTL but on Financial 2."""

    def rule(runs: Runs) -> tuple[str, Verdict]:
        bases = ["bplru"] if runs.trace == FINANCIAL_2 else ["bplru", "dftl"]
        return orderings(*(("pud-lru", b, m) for b in bases for m in ("erases", "time")))(runs)

    return apply_rule(found, rule, ALL, OTHERS, erases_figure)
