"""The rules of the DFTL paper's claims about traces under all schemes (Figures 6 to 9).

A claim is decided on the drive on which the trace was written once first, cleaned by cost-benefit; what came out
on full and erased drives and with greedy cleaning is told beside it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from flashwright_papers import Answer, Found, Line, Plot, Verdict, claim

from .judging import DECIDES, NAMES, STAND_IN, STATE_NAMES, answer
from .play import CELLO, FINANCIAL, SHARES, TPCH, WEBSEARCH
from .runs import FINANCIAL_HEAD, PLAIN, VICTIMS, WEBSEARCH_HEAD

Row = Mapping[str, Any]


def within(met: bool, direction: bool, *, head: bool = False) -> Verdict:
    """The verdict of a magnitude; a stand-in shows one only with the locality of the trace's own `head`."""
    return Verdict.of(met and head, direction=met or direction)


@dataclass(frozen=True)
class View:
    """The comparison on drives of one state, under one victim policy."""

    rows: Sequence[Row]
    state: str
    victim: str

    def run(self, workload: str, scheme: str) -> Row:
        """The figures of a scheme on a workload; FAST takes no victim policy."""
        for row in self.rows:
            if row["workload"] == workload and row["state"] == self.state:
                for run in row["runs"]:
                    if run["scheme"] == scheme and run["victim"] in ("", self.victim):
                        if run["error"]:
                            raise ValueError(f"{workload} on {scheme}: {run['error']}")
                        return run
        raise LookupError(f"{workload} was not played on {scheme}, {STATE_NAMES[self.state]}")

    def pair(self, workload: str) -> tuple[Row, Row]:
        """FAST and DFTL."""
        return self.run(workload, "fast"), self.run(workload, "dftl")

    def gain(self, workload: str) -> float:
        """By how much DFTL's mean response is below FAST's, as a share of FAST's."""
        fast, dftl = self.pair(workload)
        return 1 - dftl["response_ms"] / fast["response_ms"]

    def fewer(self, workload: str, what: str) -> float:
        """How many times as many of something FAST has as DFTL."""
        fast, dftl = self.pair(workload)
        return fast[what] / max(1, dftl[what])

    def unwritten(self, workload: str) -> str:
        """A remark where most reads find nothing written: they cost nothing, so that times mean little."""
        row = self.run(workload, "page")
        share = row["reads_unmapped"] / max(1, row["pages_read"])
        return f" ({100 * share:.0f} % of the pages read were never written)" if share > 0.5 else ""


Rule = Callable[[View], tuple[str, Verdict]]


def decided(
    found: Found,
    what: str,
    rule: Rule,
    workload: str,
    *,
    plots: Sequence[Plot] = (),
    more: str = "",
) -> Answer:
    """The answer of the deciding drive, with what the others gave, and the release's FAST where it was played."""
    rows = [*found["comparison"], *found["replayed"]]
    by_reading = {(s, v): rule(View(rows, s, v)) for s in STATE_NAMES for v in VICTIMS}
    made = answer(by_reading, what, workload, plots=plots, more=more)
    if not found.get("fault"):
        return made
    text, verdict = rule(View(with_fault(found), *DECIDES[0]))
    ours = f"{made.ours} With the fault of the release's FAST: {text}."
    return replace(made, ours=ours, also={**made.also, FAULT: verdict})


FAULT = "FAST with the fault of the authors' release"


def with_fault(found: Found) -> list[Row]:
    """The rows of the drive that decides, with the release's FAST in place of ours."""
    faulty = {row["workload"]: row for row in found["fault"]}
    return [
        {**row, "runs": [_beside(run, faulty.get(row["workload"])) for run in row["runs"]]}
        for row in found["replayed"]
    ]


def _beside(run: Row, faulty: Row | None) -> Row:
    """A run, or what takes its place where FAST is the release's."""
    if faulty is None or run["scheme"] == "page":
        return run
    if run["scheme"] == "fast":
        return faulty
    pairs = zip(SHARES, faulty["quantiles_ms"], run["quantiles_ms"], strict=True)
    ahead = [share for share, fast, dftl in pairs if fast < dftl]
    return {**run, "fast_ahead_to": max(ahead, default=None)}


def bars(title: str, y: str, groups: Sequence[tuple[str, Mapping[str, float]]], **how: Any) -> Plot:
    """Values by category: a line of points for each name."""
    names = list(dict.fromkeys(name for _, values in groups for name in values))
    lines = [
        Line(name, list(range(len(groups))), [values.get(name) or None for _, values in groups])
        for name in names
    ]
    ticks = [(float(number), name) for number, (name, _) in enumerate(groups)]
    return Plot(title, "workload", y, lines, x_format="index", ticks=ticks, points=True, **how)


def deciding(found: Found) -> View:
    """The view that decides."""
    return View(found["replayed"], *DECIDES[0])


def merges_plot(found: Found) -> Plot:
    """Figure 6(a)."""
    view = deciding(found)
    groups = [
        (
            f"{workload}, {NAMES[scheme]}",
            {
                kind: float(view.run(workload, scheme)[kind])
                for kind in ("switch", "partial", "full")
            },
        )
        for workload in (FINANCIAL, CELLO, TPCH)
        for scheme in ("fast", "dftl")
    ]
    title = "Figure 6(a): merges by kind (none where there is no point)"
    return bars(title, "merges", groups, y_format="count", y_log=True)


@claim("G8", needs=("comparison", "replayed"))
def g8(found: Found) -> Answer:
    """Switch merges on Financial."""

    def rule(view: View) -> tuple[str, Verdict]:
        fast, dftl = view.pair(FINANCIAL)
        value = f"{dftl['switch']:,.0f} and {fast['switch']:,.0f}"
        return value, Verdict.of(dftl["switch"] > fast["switch"])

    what = "Switch merges of DFTL and FAST"
    workload = STAND_IN.format("Financial of Table 3")
    return decided(found, what, rule, workload, plots=[merges_plot(found)])


@claim("G9", needs=("comparison", "replayed"))
def g9(found: Found) -> Answer:
    """Merges on TPC-H."""

    def rule(view: View) -> tuple[str, Verdict]:
        fast, dftl = view.pair(TPCH)
        totals = [row["switch"] + row["partial"] + row["full"] for row in (fast, dftl)]
        value = f"{totals[1]:,.0f} with {dftl['full']:,.0f} and {totals[0]:,.0f} with {fast['full']:,.0f}"
        fine = dftl["full"] < fast["full"]
        return value, Verdict.of(totals[1] > totals[0] and fine, direction=fine)

    what = "Merges and full ones of DFTL and FAST"
    return decided(found, what, rule, STAND_IN.format("TPC-H"), plots=[merges_plot(found)])


@claim("G10", needs=("comparison", "replayed", "fault"))
def g10(found: Found) -> Answer:
    """Erases."""
    three = (FINANCIAL, CELLO, TPCH)

    def rule(view: View) -> tuple[str, Verdict]:
        ratios = [view.fewer(workload, "erases") for workload in three]
        value = ", ".join(f"{ratio:,.2f}" for ratio in ratios)
        more = sum(ratio > 1 for ratio in ratios)
        return value, Verdict.of(more == 3, direction=more == 2)

    view = deciding(found)
    groups = [
        (workload, {NAMES[s]: float(view.run(workload, s)["erases"]) for s in NAMES})
        for workload in three
    ]
    title = "Figure 6(b): block erases"
    plots = [bars(title, "erases", groups, y_format="count", y_log=True)]
    what = "FAST's erases over DFTL's on Financial, Cello99, TPC-H"
    workload = STAND_IN.format("Financial, Cello99 and TPC-H")
    return decided(found, what, rule, workload, plots=plots)


@claim("G11", needs=("comparison", "replayed", "fault"))
def g11(found: Found) -> Answer:
    """Operations beyond the host's."""
    three = (FINANCIAL, CELLO, TPCH)

    def rule(view: View) -> tuple[str, Verdict]:
        shares = [view.run(w, "dftl")["translation_share"] for w in (*three, WEBSEARCH)]
        fewer = [view.fewer(workload, "extra_operations") for workload in three]
        texts = ["none" if s is None else f"{100 * s:.0f} %" for s in shares]
        value = f"{', '.join(texts)} and {', '.join(f'{ratio:.2f}' for ratio in fewer)}"
        most = sum(s is not None and 0.8 <= s <= 0.97 for s in shares) >= 3
        below = all(ratio > 1 for ratio in fewer)
        return value, within(most and below and 2 <= fewer[0] <= 5, below)

    view = deciding(found)
    groups = []
    for workload in three:
        fast, dftl = view.pair(workload)
        copied = dftl["extra_operations"] - dftl["translation_reads"] - dftl["translation_programs"]
        parts = {
            "FAST": fast["extra_operations"],
            "DFTL, address translation (read)": dftl["translation_reads"],
            "DFTL, address translation (write)": dftl["translation_programs"],
            "DFTL, page copies": copied,
            "baseline": view.run(workload, "page")["extra_operations"],
        }
        base = fast["extra_operations"]
        groups.append((workload, {name: part / base for name, part in parts.items()}))
    title = "Figure 6(c): extra reads and writes over FAST's"
    plots = [bars(title, "extra operations over FAST's", groups, y_log=True)]
    what = (
        "Translation's share of DFTL's extra operations on Financial, Cello99, TPC-H, WebSearch, and FAST's extra "
        "operations over DFTL's on the first three"
    )
    workload = STAND_IN.format("Financial, Cello99, TPC-H and WebSearch")
    return decided(found, what, rule, workload, plots=plots)


@claim("G12", needs=("comparison", "replayed"))
def g12(found: Found) -> Answer:
    """Merges and erases on WebSearch."""

    def of(view: View, workload: str) -> float:
        fast, dftl = view.pair(workload)
        most = max(r["erases"] + r["switch"] + r["partial"] + r["full"] for r in (fast, dftl))
        return float(most / fast["requests"])

    def rule(view: View) -> tuple[str, Verdict]:
        share = of(view, WEBSEARCH)
        return f"{100 * share:.4f} %", Verdict.of(share < 0.01)

    more = ""
    if any(row["workload"] == WEBSEARCH_HEAD for row in found["comparison"]):
        share = of(View(found["comparison"], *DECIDES[1]), WEBSEARCH_HEAD)
        more = f"The real {WEBSEARCH_HEAD}: {100 * share:.4f} % (full drive, cost-benefit)"
    what = "Merges and erases over requests, the larger of FAST and DFTL"
    return decided(found, what, rule, STAND_IN.format("WebSearch"), more=more)


def cumulated(histogram: Sequence[int]) -> tuple[list[float], list[float]]:
    """How many data blocks full merges take, and the share that takes at most as many."""
    counts = [0, *histogram[1:]]
    whole = max(1, sum(counts))
    shares = [total / whole for total in itertools.accumulate(counts)]
    return [float(x) for x in range(len(counts))], shares


@claim("G13", needs=("comparison", "replayed", "fault"))
def g13(found: Found) -> Answer:
    """Data blocks in FAST's full merges."""

    def share(histogram: Sequence[int], least: int) -> float:
        return sum(histogram[least:]) / max(1, sum(histogram[1:]))

    def mean(histogram: Sequence[int]) -> float:
        return sum(i * n for i, n in enumerate(histogram)) / max(1, sum(histogram[1:]))

    def rule(view: View) -> tuple[str, Verdict]:
        blocks = [view.run(w, "fast")["full_by_data_blocks"] for w in (FINANCIAL, TPCH)]
        a, b = share(blocks[0], 20), share(blocks[1], 21)
        value = f"{100 * a:.2f} % and {100 * b:.2f} %, means {mean(blocks[0]):.1f} and {mean(blocks[1]):.1f}"
        fine = [0.1 <= a <= 0.35, 0.4 <= b <= 0.8]
        return value, within(all(fine), any(fine))

    view = deciding(found)
    lines = [
        Line(w, *cumulated(view.run(w, "fast")["full_by_data_blocks"])) for w in (FINANCIAL, TPCH)
    ]
    lines += [
        Line("paper, Financial", [19], [0.8], paper=True),
        Line("paper, TPC-H", [20], [0.4], paper=True),
    ]
    plot = Plot(
        "Figure 7: data blocks in a full merge of FAST",
        "data blocks",
        "share of full merges with at most so many",
        lines,
        x_format="count",
        y_format="share",
    )
    what = "Full merges of 20 data blocks or more on Financial, and of more than 20 on TPC-H"
    workload = STAND_IN.format("Financial and TPC-H")
    return decided(found, what, rule, workload, plots=[plot])


@claim("G14", needs=("comparison", "replayed"))
def g14(found: Found) -> Answer:
    """Hits in the mapping cache."""

    def rule(view: View) -> tuple[str, Verdict]:
        dftl = view.run(FINANCIAL, "dftl")
        value = f"{100 * dftl['hit_ratio']:.1f} % at {dftl['cmt_entries']:,.0f} entries"
        return value, within(abs(dftl["hit_ratio"] - 0.63) <= 0.10, False, head=True)

    return decided(found, "Hits", rule, STAND_IN.format("Financial of Table 3"))


@claim("G15", needs=("comparison", "replayed"))
def g15(found: Found) -> Answer:
    """Evictions that cost nothing."""

    def rule(view: View) -> tuple[str, Verdict]:
        free = view.run(TPCH, "dftl")["clean_evictions"] or 0
        return f"{100 * free:.1f} %", within(free >= 0.93, free >= 0.5)

    return decided(found, "Evictions of clean entries", rule, STAND_IN.format("TPC-H"))


def gain_rule(workload: str, low: float, high: float, *, head: bool = False) -> Rule:
    """A gain of response time within a band."""

    def rule(view: View) -> tuple[str, Verdict]:
        gain = view.gain(workload)
        return (
            f"{100 * gain:+,.0f} %{view.unwritten(workload)}",
            within(low <= gain <= high, gain > 0, head=head),
        )

    return rule


@claim("G16", needs=("comparison", "replayed", "replayed-seeds", "fault", "extra-space"))
def g16(found: Found) -> Answer:
    """The headline, with every seed."""
    gain = gain_rule(FINANCIAL, 0.6, 0.9, head=True)

    def rule(view: View) -> tuple[str, Verdict]:
        text, verdict = gain(view)
        fewer = [view.fewer(FINANCIAL, what) for what in ("erases", "extra_operations")]
        both = verdict is Verdict.REPRODUCED and all(2 <= each <= 5 for each in fewer)
        order = verdict is not Verdict.NOT and min(fewer) > 1
        return f"{text}, {fewer[0]:.2f}, {fewer[1]:.2f}", Verdict.of(both, direction=order)

    parts = []
    if any(row["workload"] == FINANCIAL_HEAD for row in found["comparison"]):
        for state in PLAIN:
            fast, dftl = View(found["comparison"], state, "greedy").pair(FINANCIAL_HEAD)
            parts.append(
                f"DFTL {dftl['response_ms']:,.2f} ms, FAST {fast['response_ms']:,.2f} ms ({STATE_NAMES[state]}, greedy)"
            )
    seeds = [rule(View([row], *DECIDES[0])) for row in found["replayed-seeds"]]
    more = [f"With four other seeds: {'; '.join(text for text, _ in seeds)}"]
    if parts:
        more.append(f"The real {FINANCIAL_HEAD}: {'; '.join(parts)}")
    found_with_one = decided(
        found,
        "Mean response better by, and FAST's erases and extra operations over DFTL's",
        rule,
        STAND_IN.format("Financial of Table 3"),
        plots=[space_plot(found)],
        more=". ".join(more),
    )
    order = (Verdict.REPRODUCED, Verdict.DIRECTION, Verdict.NOT)
    with_all = max(found_with_one.verdict, *(verdict for _, verdict in seeds), key=order.index)
    return replace(found_with_one, verdict=with_all)


def space_plot(found: Found) -> Plot:
    """Response on Financial by the space beside the active region; not in the paper."""
    lines: dict[str, list[tuple[float, float]]] = {}

    def add(name: str, at: float, run: Row) -> None:
        if not run["error"]:
            lines.setdefault(name, []).append((at, run["response_ms"]))

    def name_of(run: Row, state: str) -> str:
        by = f" {run['victim']}" if run["scheme"] == "dftl" else ""
        return f"{NAMES[run['scheme']]}{by}, {STATE_NAMES[state]}"

    for row in found["comparison"]:
        if row["workload"] == FINANCIAL:
            for run in row["runs"]:
                if run["scheme"] != "page":
                    add(name_of(run, row["state"]), 0.03, run)
    for row in found["extra-space"]:
        for run in row["runs"]:
            if run["scheme"] != "page":
                add(name_of(run, row["state"]), row["extra"], run)
        few = row["fast_with_few_logs"]
        add(f"FAST with logs of 3 %, {STATE_NAMES[row['state']]}", row["extra"], few)
    return Plot(
        "Financial: mean response by the space beside the active region (the paper has 3 % only)",
        "space beside the active region",
        "mean response (ms)",
        [Line(name, *map(list, zip(*points, strict=True))) for name, points in lines.items()],
        x_format="share",
        y_log=True,
    )


@claim("G17", needs=("comparison", "replayed", "fault"))
def g17(found: Found) -> Answer:
    """Response on TPC-H."""
    rule = gain_rule(TPCH, 0.3, 0.75)
    return decided(found, "Mean response better by", rule, STAND_IN.format("TPC-H"))


def cdf_plot(found: Found, workload: str, panel: str) -> Plot:
    """A panel of Figure 8."""
    view = deciding(found)
    lines = [
        Line(NAMES[scheme], view.run(workload, scheme)["quantiles_ms"], list(SHARES))
        for scheme in NAMES
    ]
    return Plot(
        f"Figure 8({panel}): response times, {workload}",
        "response time (ms)",
        "share of requests",
        lines,
        y_format="share",
        x_log=True,
    )


@claim("G18", needs=("comparison", "replayed", "fault"))
def g18(found: Found) -> Answer:
    """Distributions on the writing workloads."""

    def rule(view: View) -> tuple[str, Verdict]:
        apart = [view.run(workload, "dftl")["kolmogorov"] for workload in (FINANCIAL, CELLO)]
        gains = [view.gain(workload) for workload in (FINANCIAL, CELLO)]
        value = f"{apart[0]:.3f} and {apart[1]:.3f}, {100 * gains[0]:+,.0f} % and {100 * gains[1]:+,.0f} %"
        order = gains[1] > gains[0] > 0
        return value, within(order and max(apart) < 0.1, order)

    plots = [cdf_plot(found, FINANCIAL, "a"), cdf_plot(found, CELLO, "b")]
    what = "Distances to the baseline, and mean response better than FAST's by, on Financial and Cello99"
    return decided(found, what, rule, STAND_IN.format("Financial and Cello99"), plots=plots)


@claim("G19", needs=("comparison", "replayed", "fault"))
def g19(found: Found) -> Answer:
    """Where FAST's distribution crosses DFTL's on TPC-H."""

    def rule(view: View) -> tuple[str, Verdict]:
        to = view.run(TPCH, "dftl")["fast_ahead_to"]
        value = "never" if to is None else f"up to {100 * to:.1f} %"
        tail = to is not None and to < 1
        return value + view.unwritten(TPCH), within(tail and 0.85 <= to <= 0.99, tail)

    plots = [cdf_plot(found, TPCH, "c")]
    return decided(found, "FAST is ahead", rule, STAND_IN.format("TPC-H"), plots=plots)


@claim("G20", needs=("comparison", "replayed"))
def g20(found: Found) -> Answer:
    """WebSearch."""

    def rule(view: View) -> tuple[str, Verdict]:
        baseline = view.run(WEBSEARCH, "page")
        fast, dftl = view.pair(WEBSEARCH)
        value = ", ".join(f"{row['response_ms']:.2f}" for row in (baseline, fast, dftl)) + " ms"
        close = fast["kolmogorov"] < 0.1
        worse = dftl["response_ms"] > 1.01 * baseline["response_ms"]
        return value + view.unwritten(WEBSEARCH), Verdict.of(close and worse)

    plots = [cdf_plot(found, WEBSEARCH, "d")]
    what = "Mean response of the baseline, FAST and DFTL"
    return decided(found, what, rule, STAND_IN.format("WebSearch"), plots=plots)
