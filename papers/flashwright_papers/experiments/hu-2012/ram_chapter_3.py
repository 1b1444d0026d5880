"""Chapter 3, GC-ARM: the judges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from flashwright_papers import Answer, Found, Line, Plot, Verdict, claim

from .ram_judge import (
    KEEPS_UP,
    NAMES,
    Row,
    Rule,
    Runs,
    absolute,
    apply_rule,
    by_scheme,
    magnitude,
    mostly,
    near,
    orderings,
    ratio,
    shares_plot,
    span,
    writes_plot,
)
from .ram_play import (
    EXCHANGE,
    FINANCIAL_1,
    FINANCIAL_2,
    HEAD_1,
    HEAD_MSN,
    IN_ORDER,
    MSN,
    TPC_E,
    TPC_E_DESCRIBED,
    WHOLE_MAP,
    WINDOW,
)

SCHEMES = ("gc-arm", "bplru", "dftl", "ap")
PAGE_BLOCKED = ("dftl", "ap")
ALL = (FINANCIAL_1, FINANCIAL_2, EXCHANGE, MSN, TPC_E_DESCRIBED)
BASES = ("financial-1", "financial-2", "exchange", "msn", "told")
PARTITIONS = tuple(f"{name}-partition" for name in BASES)
FIGURES = dict(zip(ALL, ("3.6", "3.7", "3.8", "3.9", "3.10"), strict=True))
WRITES = dict(zip(ALL, ("3.11", "3.12", "3.13", "3.14", "3.15"), strict=True))
# TPC-E as described decides; beside it, its stand-in, and the other state of the drive.
OTHERS = ((TPC_E, ""), (TPC_E_DESCRIBED, IN_ORDER))
OTHER_PARTS = ("tpc-e", "tpc-e-partition", "told-in-order")
HEADS_1 = ("head-financial-1", "head-financial-1-partition")


def figure(runs: Runs) -> list[Plot]:
    """The three plots of figures 3.6 to 3.10; service time where a drive does not keep up with the arrivals."""
    name = f"Figure {FIGURES[runs.trace]}"
    late = any(row["load"] >= KEEPS_UP for row in runs.rows.values() if row["scheme"] in SCHEMES)
    metric, kind = ("service_ms", "service") if late else ("response_ms", "response")
    return [
        absolute(runs, name, "erases", "erases", SCHEMES),
        absolute(runs, name, metric, f"mean {kind} time (ms)", SCHEMES),
        absolute(runs, name, "gc_efficiency_pages", "GC efficiency (pages)", SCHEMES, log=False),
    ]


def erases_figure(runs: Runs) -> list[Plot]:
    """The first of these plots."""
    return figure(runs)[:1]


def shares_figure(*parts: tuple[str, str]) -> Callable[[Runs], list[Plot]]:
    """Figures 3.11 to 3.15: the writes by what they are for, and the shares that a claim is on."""

    def plots(runs: Runs) -> list[Plot]:
        name = f"Figure {WRITES[runs.trace]}"
        shares = [shares_plot(runs, name, what, label, SCHEMES) for what, label in parts]
        return [writes_plot(runs, name, SCHEMES), *shares]

    return plots


DATA, GC = ("data", "data"), ("gc", "cleaning, merging and padding")
TRANSLATION = ("translation", "translation pages")


# ---- the example, figure 3.3 and sizes


@claim("D3.2", needs="figure-3.2")
def d3_2(found: Found) -> Answer:
    """Pages one at a time against groups."""
    single, grouped = found["figure-3.2"]
    fewer = grouped["erases"] < single["erases"] and grouped["copies"] < single["copies"]

    def describe_cleaning(row: Row) -> str:
        return f"{row['erases']:,} erases and {row['copies']:,} copies for {row['written']:,} pages"

    return Answer(
        Verdict.of(False, direction=fewer),
        f"On a drive of 64 blocks of 4 pages: page at a time {describe_cleaning(single)}, "
        f"GC-ARM's groups {describe_cleaning(grouped)}",
    )


@claim("D3.3", needs="distinct-blocks")
def d3_3(found: Found) -> Answer:
    """Distinct blocks of each 500 requests along real traces."""
    rows = {row["trace"]: row for row in found["distinct-blocks"]}
    one = rows.get(FINANCIAL_1) or rows.get(HEAD_1)
    msn = rows.get(HEAD_MSN)
    if one is None or msn is None:
        return Answer(
            Verdict.UNTESTABLE,
            "no real trace of both was given",
            why="A stand-in draws its addresses by the same rule from its first request to its last, so it has "
            "no curve to show.",
        )
    grows, more = one["second_half_to_first"] > 1.5, msn["mean"] > one["mean"]
    text = "; ".join(
        f"{row['trace']}: {row['mean']:.0f} blocks on average ({row['least']} to {row['most']}), second half "
        f"{row['second_half_to_first']:.2f} times the first"
        for row in (one, msn)
    )
    lines = []
    for row in (one, msn):
        step = row["requests"] / len(row["counts"])
        lines.append(
            Line(row["trace"], [i * step for i in range(len(row["counts"]))], row["counts"])
        )
    plot = Plot(
        f"Figure 3.3: distinct blocks in {WINDOW} requests",
        "request",
        "blocks",
        lines,
        x_format="count",
        x_log=False,
    )
    return Answer(
        Verdict.of(grows and more, direction=grows or more),
        text,
        ", ".join(row["trace"] for row in (one, msn)),
        plots=[plot],
    )


@claim("D3.4", needs="tables")
def d3_4(found: Found) -> Answer:
    """The whole table at 8 B an entry."""
    row = found["tables"][0]
    size, share = row["page_8"], row["page_8"] / row["logical_bytes"]
    return Answer(
        Verdict.of(size == 64 << 20 and f"{100 * share:.1f}" == "0.2"),
        f"{size >> 20} MiB, {100 * share:.3f} % of {row['logical_bytes'] >> 30} GiB",
    )


# ---- figures 3.6 to 3.10


def with_efficiency(pairs: Sequence[tuple[str, str]], efficient: Sequence[tuple[str, str]]) -> Rule:
    """Orderings of erases and time, and of GC efficiency the other way."""
    return orderings(
        *((a, b, metric) for a, b in pairs for metric in ("erases", "time")),
        *((a, b, "-gc_efficiency_pages") for a, b in efficient),
    )


@claim("D3.5", needs=("financial-1", "financial-1-partition", *HEADS_1))
def d3_5(found: Found) -> Answer:
    """GC-ARM, then BPLRU, then DFTL and AP."""
    far = [(a, b) for a in ("gc-arm", "bplru") for b in PAGE_BLOCKED]
    rule = with_efficiency([("gc-arm", "bplru"), *far], far)
    return apply_rule(found, rule, [FINANCIAL_1], plots=figure)


@claim("D3.6", needs=("financial-2", "financial-2-partition"))
def d3_6(found: Found) -> Answer:
    """GC-ARM, then DFTL and AP, then BPLRU; the gain over DFTL largest at small RAM."""
    pairs = [("gc-arm", "dftl"), ("gc-arm", "ap"), ("dftl", "bplru"), ("ap", "bplru")]
    ordered = with_efficiency(pairs, pairs)

    def rule(runs: Runs) -> tuple[str, Verdict]:
        text, verdict = ordered(runs)
        gains = list(runs.ratios("gc-arm", "dftl", "erases").values())
        if verdict is Verdict.REPRODUCED and gains[0] > min(gains):
            verdict = Verdict.DIRECTION
        return text, verdict

    return apply_rule(found, rule, [FINANCIAL_2], plots=figure)


@claim("D3.7", needs=("exchange", "exchange-partition"))
def d3_7(found: Found) -> Answer:
    """GC-ARM barely before BPLRU, both before DFTL and AP."""
    before = [(a, b) for a in ("gc-arm", "bplru") for b in PAGE_BLOCKED]

    def rule(runs: Runs) -> tuple[str, Verdict]:
        text, _ = orderings(
            *((a, b, m) for a, b in [("gc-arm", "bplru"), *before] for m in ("erases", "time"))
        )(runs)
        behind = [runs.below(a, b, m) for a, b in before for m in ("erases", "time")]
        fewer = runs.below("gc-arm", "bplru", "erases")
        equal = near(runs, "gc-arm", "bplru", "time", 0.05)
        return text, Verdict.of(all(behind) and fewer and equal, direction=sum(behind) >= 7)

    return apply_rule(found, rule, [EXCHANGE], plots=figure)


@claim("D3.8", needs=("msn", "msn-partition", "head-msn"))
def d3_8(found: Found) -> Answer:
    """BPLRU worst but at small RAM, with the same GC efficiency at all sizes."""

    def rule(runs: Runs) -> tuple[str, Verdict]:
        sizes = runs.sizes(*SCHEMES)
        large = [ram for ram in sizes if ram > 16]
        worst = all(
            runs.below(other, "bplru", metric, large)
            for other in ("gc-arm", "dftl", "ap")
            for metric in ("erases", "time")
        )
        at_first = [
            runs.ratios(other, "bplru", "erases", [sizes[0]])[sizes[0]] for other in PAGE_BLOCKED
        ]
        efficiency = [runs.of("bplru", ram, "gc_efficiency_pages") for ram in sizes]
        flat = max(efficiency) <= 1.1 * min(efficiency)
        text = "; ".join(
            f"{NAMES[other]} over BPLRU: erases {span(runs.ratios(other, 'bplru', 'erases'))}"
            for other in ("gc-arm", "dftl", "ap")
        )
        text += f"; BPLRU's GC efficiency {efficiency[0]:.1f} to {efficiency[-1]:.1f} pages"
        met = worst and flat and min(at_first) > 1
        return text, Verdict.of(met, direction=worst)

    return apply_rule(found, rule, [MSN], plots=figure)


@claim("D3.9", needs=("msn", "msn-partition", "head-msn"))
def d3_9(found: Found) -> Answer:
    """GC-ARM before DFTL and AP at small RAM, the same at large."""

    def rule(runs: Runs) -> tuple[str, Verdict]:
        sizes = runs.sizes(*SCHEMES)
        small, large = [ram for ram in sizes if ram < 48], [ram for ram in sizes if ram >= 64]
        pairs = [("gc-arm", b, metric) for b in PAGE_BLOCKED for metric in ("erases", "time")]
        text, _ = orderings(*pairs)(runs)
        better = all(runs.below(a, b, metric, small) for a, b, metric in pairs)
        equal = all(near(runs, "gc-arm", b, "erases", 0.05, large) for b in PAGE_BLOCKED)
        return text, Verdict.of(better and equal, direction=better)

    return apply_rule(found, rule, [MSN], plots=figure)


@claim("D3.10", needs=("told", "told-partition", *OTHER_PARTS))
def d3_10(found: Found) -> Answer:
    """GC-ARM, then BPLRU, then DFTL and AP; whole blocks of both."""
    pairs = [("gc-arm", "bplru"), ("bplru", "dftl"), ("bplru", "ap")]
    ordered = orderings(*((a, b, metric) for a, b in pairs for metric in ("erases", "time")))

    def rule(runs: Runs) -> tuple[str, Verdict]:
        text, verdict = ordered(runs)
        sizes = runs.sizes(*SCHEMES)
        pages = [runs.of(s, ram, "gc_efficiency_pages") for s in SCHEMES[:2] for ram in sizes]
        text += f"; GC efficiency of GC-ARM and BPLRU {min(pages):.0f} to {max(pages):.0f} pages"
        if min(pages) < 120:
            verdict = Verdict.of(False, direction=verdict is Verdict.REPRODUCED)
        return text, verdict

    return apply_rule(found, rule, [TPC_E_DESCRIBED], OTHERS, figure)


@claim("D3.11", needs=("financial-1", "exchange", "whole-map"))
def d3_11(found: Found) -> Answer:
    """DFTL with its whole table in RAM against page mapping."""

    def rule(runs: Runs) -> tuple[str, Verdict]:
        page = runs.get("page", 0)
        row = next(
            row for row in runs.all if row["scheme"] == "dftl" and row["varied"] == WHOLE_MAP
        )
        equal = all(row[key] == page[key] for key in ("erases", "programs", "programs_gc"))
        off = abs(row["erases"] / page["erases"] - 1) if page["erases"] else 0.0
        text = f"erases {row['erases']:,} and {page['erases']:,}, writes {row['programs']:,} and {page['programs']:,}"
        return text, Verdict.of(equal, direction=off <= 0.01)

    return apply_rule(found, rule, [FINANCIAL_1, EXCHANGE])


@claim("D3.12", needs=(*BASES, *PARTITIONS, "head-msn"))
def d3_12(found: Found) -> Answer:
    """GC-ARM before DFTL at 80 MiB, and equal on MSN."""

    def rule(runs: Runs) -> tuple[str, Verdict]:
        e, t = (runs.ratios("gc-arm", "dftl", metric, [80])[80] for metric in ("erases", "time"))
        text = f"erases {ratio(e)}, time {ratio(t)}"
        if runs.trace == MSN:
            return text, Verdict.of(max(abs(e - 1), abs(t - 1)) <= 0.05)
        return text, Verdict.of(e < 1 and t < 1, direction=e < 1 or t < 1)

    answer = apply_rule(found, rule, ALL, plots=erases_figure)
    return replace(answer, ours=f"GC-ARM over DFTL: {answer.ours}")


# ---- figures 3.11 to 3.15


@claim("D3.13", needs=("financial-1", "financial-1-partition", *HEADS_1))
def d3_13(found: Found) -> Answer:
    """Nine tenths of GC-ARM's writes are data on Financial 1."""

    def rule(runs: Runs) -> tuple[str, Verdict]:
        shares = runs.shares("data", *SCHEMES)
        top = mostly(mine > max(rest) for mine, *rest in zip(*shares.values(), strict=True))
        met = mostly(share >= 0.8 for share in shares["gc-arm"]) and top
        return f"data: {by_scheme(shares)}", magnitude(runs, met, top)

    def plots(runs: Runs) -> list[Plot]:
        writes, plot = shares_figure(DATA)(runs)
        return [writes, replace(plot, levels=[("dissertation, GC-ARM", 0.9)])]

    return apply_rule(found, rule, [FINANCIAL_1], plots=plots)


@claim("D3.14", needs=BASES)
def d3_14(found: Found) -> Answer:
    """BPLRU over BAST has no translation pages."""

    def rule(runs: Runs) -> tuple[str, Verdict]:
        most = max(r["programs_translation"] for r in runs.all if r["scheme"] == "bplru")
        return f"{most:,} translation writes", Verdict.of(most == 0)

    return apply_rule(found, rule, ALL)


@claim("D3.15", needs=("financial-2", "financial-2-partition"))
def d3_15(found: Found) -> Answer:
    """Less cleaning and padding than BPLRU, fewer translation writes than DFTL and AP."""

    def rule(runs: Runs) -> tuple[str, Verdict]:
        gc, table = runs.shares("gc", *SCHEMES), runs.shares("translation", *SCHEMES)
        low = mostly(a < b / 2 for a, b in zip(gc["gc-arm"], gc["bplru"], strict=True))
        fewer = all(runs.below("gc-arm", other, "programs_translation") for other in PAGE_BLOCKED)
        text = (
            f"cleaning, merging and padding: {by_scheme(gc)}; translation pages: {by_scheme(table)}"
        )
        return text, Verdict.of(low and fewer, direction=low or fewer)

    return apply_rule(found, rule, [FINANCIAL_2], plots=shares_figure(GC, TRANSLATION))


def data_above(runs: Runs) -> list[bool]:
    """Whether GC-ARM and BPLRU have larger shares of data than DFTL and AP, pair by pair."""
    shares = runs.shares("data", *SCHEMES)
    return [
        mostly(x > y for x, y in zip(shares[a], shares[b], strict=True))
        for a in SCHEMES[:2]
        for b in PAGE_BLOCKED
    ]


@claim("D3.16", needs=("exchange", "exchange-partition"))
def d3_16(found: Found) -> Answer:
    """More of GC-ARM's and BPLRU's writes are data on Exchange."""

    def rule(runs: Runs) -> tuple[str, Verdict]:
        flags = data_above(runs)
        text = f"data: {by_scheme(runs.shares('data', *SCHEMES))}"
        return text, Verdict.of(all(flags), direction=sum(flags) > 2)

    return apply_rule(found, rule, [EXCHANGE], plots=shares_figure(DATA))


@claim("D3.17", needs=("msn", "msn-partition", "head-msn"))
def d3_17(found: Found) -> Answer:
    """Translation pages on MSN."""

    def rule(runs: Runs) -> tuple[str, Verdict]:
        shares = runs.shares("translation", *SCHEMES)
        flags = [
            mostly(a < b / 2 for a, b in zip(shares["gc-arm"], shares[other], strict=True))
            for other in PAGE_BLOCKED
        ]
        text = f"translation pages: {by_scheme(shares)}"
        return text, Verdict.of(all(flags), direction=any(flags))

    return apply_rule(found, rule, [MSN], plots=shares_figure(TRANSLATION))


@claim("D3.18", needs=("told", "told-partition", *OTHER_PARTS, "spare"))
def d3_18(found: Found) -> Answer:
    """Nearly only data of BPLRU and GC-ARM, nearly only copies of DFTL and AP, on TPC-E."""

    def rule(runs: Runs) -> tuple[str, Verdict]:
        data, gc = runs.shares("data", *SCHEMES), runs.shares("gc", *SCHEMES)
        high = all(share >= 0.95 for scheme in SCHEMES[:2] for share in data[scheme])
        low = all(share >= 0.9 for scheme in PAGE_BLOCKED for share in gc[scheme])
        copied = by_scheme({scheme: gc[scheme] for scheme in PAGE_BLOCKED})
        text = f"data: {by_scheme(data)}; cleaning, merging and padding: {copied}"
        return text, Verdict.of(high and low, direction=all(data_above(runs)))

    answer = apply_rule(found, rule, [TPC_E_DESCRIBED], OTHERS, shares_figure(DATA, GC))
    return replace(answer, ours=f"{answer.ours}. {by_spare(found)}")


def by_spare(found: Found) -> str:
    """Copies in all writes with less and more spare space than the norm."""
    texts = []
    for workload in (TPC_E, TPC_E_DESCRIBED):
        for share in (0.01, 0.07):
            rows = [
                row
                for row in found["spare"]
                if (row["workload"], row["spare"]) == (workload, share) and not row["error"]
            ]
            copies = {row["scheme"]: [row["programs_gc"] / max(1, row["programs"])] for row in rows}
            texts.append(f"{workload}, {100 * share:.0f} %: {by_scheme(copies)}")
    return f"Cleaning's share with other spare space, 16 MiB: {'; '.join(texts)}"


@claim("D3.19", needs=(*BASES, *PARTITIONS, *HEADS_1, "head-msn", *OTHER_PARTS))
def d3_19(found: Found) -> Answer:
    """The fewest writes to flash everywhere."""
    rule = orderings(*(("gc-arm", other, "programs") for other in SCHEMES[1:]))

    def plots(runs: Runs) -> list[Plot]:
        name = f"Figure {WRITES[runs.trace]}"
        return [absolute(runs, name, "programs", "writes to flash", SCHEMES)]

    return apply_rule(found, rule, ALL, OTHERS, plots)
