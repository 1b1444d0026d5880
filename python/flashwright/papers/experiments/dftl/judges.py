"""The rules of the DFTL paper's claims.

The drive is full and cleaned greedily where a claim is decided; what came out with cost-benefit cleaning, with the
trace written once first and on an erased drive is told beside it. Stand-ins support orders only: a magnitude that they
meet is *direction only*.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flashwright import Ssd
from flashwright.papers import Answer, Found, Line, Plot, Verdict, claim

from .runs import (
    CELLO,
    FINANCIAL,
    FINANCIAL_HEAD,
    PLAIN,
    SHARES,
    TPCH,
    VICTIMS,
    WEBSEARCH,
    WEBSEARCH_HEAD,
)

Row = Mapping[str, Any]
DECIDES = ("full", "greedy")
TOLD = {"full": "full drive", "replayed": "trace written once first", "erased": "erased drive"}
STAND_IN = "Stand-in for {}, made from published statistics"
NAMES = {"page": "baseline", "fast": "FAST", "dftl": "DFTL"}


def within(met: bool, direction: bool) -> Verdict:
    """The verdict of a magnitude that only stand-ins were played for."""
    return Verdict.of(False, direction=met or direction)


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
        raise LookupError(f"{workload} was not played on {scheme}, {TOLD[self.state]}")

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
    """The answer of the deciding drive, with what the others gave."""
    rows = [*found["comparison"], *found["replayed"]]
    told = {(s, v): rule(View(rows, s, v)) for s in TOLD for v in VICTIMS}
    return answer(told, what, workload, plots=plots, more=more)


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
    return View(found["comparison"], *DECIDES)


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
    title = "Figure 6(a): merges by kind (full drive, greedy; none where there is no point)"
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


@claim("G10", needs=("comparison", "replayed"))
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
    title = "Figure 6(b): block erases (full drive, greedy)"
    plots = [bars(title, "erases", groups, y_format="count", y_log=True)]
    what = "FAST's erases over DFTL's on Financial, Cello99, TPC-H"
    workload = STAND_IN.format("Financial, Cello99 and TPC-H")
    return decided(found, what, rule, workload, plots=plots)


@claim("G11", needs=("comparison", "replayed"))
def g11(found: Found) -> Answer:
    """Operations beyond the host's."""
    three = (FINANCIAL, CELLO, TPCH)

    def rule(view: View) -> tuple[str, Verdict]:
        shares = [view.run(w, "dftl")["translation_share"] for w in (*three, WEBSEARCH)]
        fewer = [view.fewer(workload, "extra_operations") for workload in three]
        told = ["none" if s is None else f"{100 * s:.0f} %" for s in shares]
        value = f"{', '.join(told)} and {', '.join(f'{ratio:.2f}' for ratio in fewer)}"
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
    title = "Figure 6(c): extra reads and writes over FAST's (full drive, greedy)"
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
        share = of(deciding(found), WEBSEARCH_HEAD)
        more = f"The real {WEBSEARCH_HEAD}: {100 * share:.4f} % (full drive, greedy)"
    what = "Merges and erases over requests, the larger of FAST and DFTL"
    return decided(found, what, rule, STAND_IN.format("WebSearch"), more=more)


def cumulated(histogram: Sequence[int]) -> tuple[list[float], list[float]]:
    """How many data blocks full merges take, and the share that takes at most as many."""
    counts = [0, *histogram[1:]]
    whole = max(1, sum(counts))
    shares = [total / whole for total in itertools.accumulate(counts)]
    return [float(x) for x in range(len(counts))], shares


@claim("G13", needs=("comparison", "replayed"))
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
        "Figure 7: data blocks in a full merge of FAST (full drive)",
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
        return value, within(abs(dftl["hit_ratio"] - 0.63) <= 0.10, False)

    return decided(found, "Hits", rule, STAND_IN.format("Financial of Table 3"))


@claim("G15", needs=("comparison", "replayed"))
def g15(found: Found) -> Answer:
    """Evictions that cost nothing."""

    def rule(view: View) -> tuple[str, Verdict]:
        free = view.run(TPCH, "dftl")["clean_evictions"] or 0
        return f"{100 * free:.1f} %", within(free >= 0.93, free >= 0.5)

    return decided(found, "Evictions of clean entries", rule, STAND_IN.format("TPC-H"))


def gain_rule(workload: str, low: float, high: float) -> Rule:
    """A gain of response time within a band."""

    def rule(view: View) -> tuple[str, Verdict]:
        gain = view.gain(workload)
        return (
            f"{100 * gain:+,.0f} %{view.unwritten(workload)}",
            within(low <= gain <= high, gain > 0),
        )

    return rule


@claim("G16", needs=("comparison", "replayed", "extra-space"))
def g16(found: Found) -> Answer:
    """The headline."""
    gain = gain_rule(FINANCIAL, 0.6, 0.9)

    def rule(view: View) -> tuple[str, Verdict]:
        text, verdict = gain(view)
        fewer = [view.fewer(FINANCIAL, what) for what in ("erases", "extra_operations")]
        return f"{text}, {fewer[0]:.2f}, {fewer[1]:.2f}", verdict

    parts = []
    if any(row["workload"] == FINANCIAL_HEAD for row in found["comparison"]):
        for state in PLAIN:
            fast, dftl = View(found["comparison"], state, "greedy").pair(FINANCIAL_HEAD)
            parts.append(
                f"DFTL {dftl['response_ms']:,.2f} ms, FAST {fast['response_ms']:,.2f} ms ({TOLD[state]}, greedy)"
            )
    return decided(
        found,
        "Mean response better by, and FAST's erases and extra operations over DFTL's",
        rule,
        STAND_IN.format("Financial of Table 3"),
        plots=[space_plot(found)],
        more=f"The real {FINANCIAL_HEAD}: {'; '.join(parts)}" if parts else "",
    )


def space_plot(found: Found) -> Plot:
    """Response on Financial by the space beside the active region; not in the paper."""
    lines: dict[str, list[tuple[float, float]]] = {}

    def add(name: str, at: float, run: Row) -> None:
        if not run["error"]:
            lines.setdefault(name, []).append((at, run["response_ms"]))

    def name_of(run: Row, state: str) -> str:
        by = f" {run['victim']}" if run["scheme"] == "dftl" else ""
        return f"{NAMES[run['scheme']]}{by}, {TOLD[state]}"

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
        add(f"FAST with logs of 3 %, {TOLD[row['state']]}", row["extra"], few)
    return Plot(
        "Financial: mean response by the space beside the active region (the paper has 3 % only)",
        "space beside the active region",
        "mean response (ms)",
        [Line(name, *map(list, zip(*points, strict=True))) for name, points in lines.items()],
        x_format="share",
        y_log=True,
    )


@claim("G17", needs=("comparison", "replayed"))
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
        f"Figure 8({panel}): response times, {workload} (full drive, greedy)",
        "response time (ms)",
        "share of requests",
        lines,
        y_format="share",
        x_log=True,
    )


@claim("G18", needs=("comparison", "replayed"))
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


@claim("G19", needs=("comparison", "replayed"))
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


Points = Sequence[tuple[float, float]]


def knee(points: Points) -> float | None:
    """The rate at which the mean response reaches five times that of the lowest rate, between points by the log."""
    limit = 5 * points[0][1]
    for (low, before), (high, after) in itertools.pairwise(points):
        if after >= limit:
            return float(
                low * (high / low) ** (math.log(limit / before) / math.log(after / before))
            )
    return None


def curves(found: Found, workload: str, state: str, victim: str) -> dict[str, Points]:
    """Rate and mean response by scheme."""
    taken: dict[str, Points] = {}
    for row in found["rates"]:
        chosen = row["scheme"] != "dftl" or row["victim"] == victim
        if row["workload"] == workload and row["state"] == state and chosen:
            taken[row["scheme"]] = [
                (point["rate"], point["response_ms"])
                for point in row["points"]
                if not point["error"]
            ]
    return taken


def knees(found: Found, workload: str, state: str, victim: str) -> tuple[dict[str, float], str]:
    """The knees of all schemes, and them as text."""
    at = {scheme: knee(points) for scheme, points in curves(found, workload, state, victim).items()}
    told = ["none" if at[s] is None else f"{at[s]:.1f}" for s in ("fast", "dftl", "page")]
    return {s: math.inf if rate is None else rate for s, rate in at.items()}, ", ".join(told)


def rates_plot(found: Found, workload: str, panel: str, what: str) -> Plot:
    """A panel of Figure 9."""
    lines = [
        Line(f"{NAMES[scheme]}, {TOLD[state]}", *map(list, zip(*points, strict=True)))
        for state in PLAIN
        for scheme, points in curves(found, workload, state, "greedy").items()
    ]
    return Plot(
        f"Figure 9({panel}): workload {what} (greedy)",
        "arrivals a second",
        "mean response (ms)",
        lines,
        x_log=True,
        y_log=True,
    )


@claim("G21", needs="rates")
def g21(found: Found) -> Answer:
    """Random writes at growing rates."""
    told = {}
    for state, victim in itertools.product(PLAIN, VICTIMS):
        at, text = knees(found, "dftl-a", state, victim)
        # A lead of less than 5 % is none.
        told[state, victim] = (text, Verdict.of(at["dftl"] > 1.05 * at["fast"]))
    what = "Knees of FAST, DFTL and the baseline, requests per second"
    return answer(told, what, "", plots=[rates_plot(found, "dftl-a", "a", "A, random writes")])


@claim("G22", needs="rates")
def g22(found: Found) -> Answer:
    """Sequential writes at growing rates."""
    told = {}
    for state, victim in itertools.product(PLAIN, VICTIMS):
        random, _ = knees(found, "dftl-a", state, victim)
        at, text = knees(found, "dftl-b", state, victim)
        by_rate: dict[float, dict[str, float]] = {}
        for scheme, points in curves(found, "dftl-b", state, victim).items():
            for rate, response in points:
                by_rate.setdefault(rate, {})[scheme] = response
        below = [
            row for rate, row in by_rate.items() if rate < at["dftl"] and len(row) == len(NAMES)
        ]
        better = sum(row["dftl"] < row["fast"] for row in below) / max(1, len(below))
        near = sum(row["dftl"] <= 1.3 * row["page"] for row in below) / max(1, len(below))
        text += f" and {random['fast']:.1f}, {100 * better:.0f} % and {100 * near:.0f} %"
        lasts = at["fast"] > random["fast"] and better >= 0.8
        told[state, victim] = (text, Verdict.of(lasts and near >= 0.8, direction=lasts))
    what = (
        "Knees of FAST, DFTL and the baseline and FAST's on random writes, requests a second, and the shares of rates "
        "below DFTL's knee at which it is better than FAST and within 30 % of the baseline"
    )
    plots = [rates_plot(found, "dftl-b", "b", "B, many sequential writes")]
    return answer(told, what, "", plots=plots)


@claim("G23", needs="window")
def g23(found: Found) -> Answer:
    """Spikes of service and queueing."""
    told = {}
    plots = []
    for row in found["window"]:
        if row["error"]:
            raise ValueError(row["error"])
        runs = {(run["scheme"], run["victim"]): run for run in row["runs"]}
        fast = runs["fast", ""]
        for victim in VICTIMS:
            dftl = runs["dftl", victim]
            texts = [
                f"{name} none"
                if run["service_ms"] is None
                else f"{name} {run['service_ms']:.0f}, {run['next_waits_ms']:.1f}, {run['others_wait_ms']:.1f} and "
                f"{run['service_p999_ms']:.0f} ms"
                for name, run in (("FAST", fast), ("DFTL", dftl))
            ]
            waits = (
                fast["service_ms"] is not None and fast["next_waits_ms"] > fast["others_wait_ms"]
            )
            shorter = dftl["service_p999_ms"] < 0.5 * fast["service_p999_ms"]
            told[row["state"], victim] = (
                ", ".join(texts),
                Verdict.of(waits and shorter, direction=waits),
            )
        if row["state"] == "full":
            number = [float(row["first"] + i) for i in range(100)]
            for name, run in (("FAST", fast), ("DFTL", runs["dftl", "greedy"])):
                plots.append(
                    Plot(
                        f"Figure 10: a hundred requests on {name} (full drive, greedy)",
                        "request",
                        "time (ms)",
                        [
                            Line("device service time", number, run["window_service_ms"]),
                            Line("time in the queue", number, run["window_queue_ms"]),
                        ],
                        x_format="index",
                    )
                )
    what = (
        "Service of a request that merges fully (DFTL: cleans), wait of the next one, wait of others, and 99.9 % "
        "of all services"
    )
    return answer(told, what, STAND_IN.format("Financial of Table 3"), plots=plots)


@claim("G24", needs="sram")
def g24(found: Found) -> Answer:
    """A growing cache of the mapping."""
    told = {}
    hits: list[Line] = []
    responses: list[Line] = []
    for state, victim in itertools.product(PLAIN, VICTIMS):
        texts, fine, direction = [], True, True
        for row in found["sram"]:
            if (row["state"], row["victim"]) != (state, victim):
                continue
            runs = [run for run in (row["baseline"], *row["runs"]) if run["error"]]
            if runs:
                raise ValueError(f"{row['workload']}: {runs[0]['error']}")
            runs = sorted(row["runs"], key=lambda run: run["cmt_entries"])
            entries = [float(run["cmt_entries"]) for run in runs]
            ratio = [run["hit_ratio"] for run in runs]
            response = [run["response_ms"] / row["baseline"]["response_ms"] for run in runs]
            rising = all(b >= a - 1e-9 for a, b in itertools.pairwise(ratio))
            falling = all(b <= a * 1.02 for a, b in itertools.pairwise(response))
            texts.append(
                f"{row['workload']} {100 * ratio[0]:.0f} to {100 * ratio[-1]:.0f} % and {response[0]:.2f} to "
                f"{response[-1]:.3f}"
            )
            direction &= rising and response[-1] < response[0]
            fine &= rising and falling and abs(response[-1] - 1) <= 0.03
            if victim == "greedy":
                name = f"{row['workload']}, {TOLD[state]}"
                hits.append(Line(name, [8 * count for count in entries], ratio))
                responses.append(Line(name, [8 * count for count in entries], response))
        told[state, victim] = (", ".join(texts), Verdict.of(fine, direction=direction))
    size = "cache of mapping entries, 8 B each"
    plots = [
        Plot("Figure 11: hits (greedy)", size, "hits", hits, "bytes", "share", x_log=True),
        Plot(
            "Figure 11: response over the baseline's (greedy)",
            size,
            "mean response over the baseline's",
            responses,
            "bytes",
            x_log=True,
            levels=[("baseline", 1.0)],
        ),
    ]
    what = "Hits, and response over the baseline's, from the smallest cache to the largest"
    return answer(told, what, STAND_IN.format("Financial of Table 3 and TPC-H"), plots=plots)


@claim("G1")
def g1(found: Found) -> Answer:
    """Table 1."""
    texts, fine = [], True
    for name, printed in (
        ("dftl-small-block", ("512 B", "16 B", 16, "41.75 us", "226.75 us", "2 ms")),
        ("dftl-large-block", ("2 KiB", "64 B", 128, "130.9 us", "405.9 us", "2 ms")),
    ):
        geometry, timing = (Ssd.named(name).config[key] for key in ("geometry", "timing"))
        page = 512 if geometry["page-size"] == "512 B" else 2048
        ours = (
            geometry["page-size"],
            geometry["spare-size"],
            geometry["pages-per-block"] * page // 1024,
            timing["read"],
            timing["program"],
            timing["erase"],
        )
        fine &= ours == printed
        texts.append(
            f"{name}: {ours[0]} + {ours[1]}, {ours[2]} KiB, {ours[3]}, {ours[4]}, {ours[5]}"
        )
    return Answer(Verdict.of(fine), "; ".join(texts) + ".")


@claim("G2", needs="maps")
def g2(found: Found) -> Answer:
    """Tables of page and block maps."""
    ram = {row["scheme"]: row["ram_bytes"] for row in found["maps"]}
    times = ram["page"] / ram["block"]
    return Answer(
        Verdict.of(ram["page"] == 32 << 20 and times == 64),
        f"For 16 GiB, page map {ram['page'] / 2**20:g} MiB, block map {times:g} times smaller.",
    )


@claim("G3", needs="table-on-flash")
def g3(found: Found) -> Answer:
    """DFTL's table on flash."""
    config = Ssd.named("dftl-large-block").config
    entry = config["ftl"]["entry-bytes"]
    spare = int(config["geometry"]["spare-size"].removesuffix(" B"))
    pages = int(found["table-on-flash"][0]["translation_pages"])
    in_page, in_spare = 2048 // entry, spare // entry
    return Answer(
        Verdict.of((in_page, in_spare, pages, pages * entry) == (512, 16, 1024, 4096)),
        f"{in_page} entries of {entry} B in a page, {in_spare} in its spare area; 1 GiB has {pages:,} translation "
        f"pages, {pages * 2 >> 10} MiB ({pages * 2048 / 2**30:.1%}), and a directory of {pages * entry >> 10} KiB.",
    )


@claim("G4", needs="figure-5")
def g4(found: Found) -> Answer:
    """The worked example."""
    row = found["figure-5"][0]
    # A miss with a dirty victim: the victim's page of the table is read and written elsewhere, then the page of the
    # miss is read, and the data.
    printed = "2Rt 1Pt 1R"
    fine = row["costs"][-1] == printed and row["cache"]["dirty_evictions"] == 3
    counts = {word.lstrip("0123456789"): word for word in row["costs"][-1].split()}
    told = ", ".join(
        f"{counts[kind].removesuffix(kind) if kind in counts else 0} {what}"
        for kind, what in (
            ("Rt", "translation pages read"),
            ("Pt", "written"),
            ("R", "data page read"),
        )
    )
    return Answer(
        Verdict.of(fine and not row["violations"]),
        f"Read of page 1280 that misses, with page 1 as dirty victim: {told}. The whole state was checked after each "
        "step.",
        "The golden trace dftl-figure-5, five requests",
    )


@claim("G5", needs=("comparison", "one-page"))
def g5(found: Found) -> Answer:
    """What a miss costs at worst."""
    runs = [
        run
        for row in found["comparison"]
        for run in row["runs"]
        if run["scheme"] == "dftl" and not run["error"]
    ]
    fine = all(
        run["miss_reads"] <= 2 * run["misses"] and run["miss_programs"] <= run["misses"]
        for run in runs
    )
    reads, programs = (
        max(run[f"miss_{kind}"] / run["misses"] for run in runs if run["misses"])
        for kind in ("reads", "programs")
    )
    most = found["one-page"][0]["operations_max"]
    return Answer(
        Verdict.of(fine and most <= 4),
        f"Over {len(runs)} runs at most {reads:.2f} reads and {programs:.2f} programs of translation pages a miss "
        f"(means of runs); at most {most} flash operations for a request of one page that cleans nothing.",
        "The comparison's workloads; uniform requests of one page",
    )


@claim("G6", needs="schemes")
def g6(found: Found) -> Answer:
    """Table 2."""
    printed = {
        "replacement": True,
        "bast": True,
        "fast": True,
        "superblock": True,
        "last": True,
        "dftl": False,
        "page": False,
    }
    ours = {row["scheme"]: bool(row["full"] or row["folds"]) for row in found["schemes"]}
    copied = {row["scheme"]: row["merge_programs"] for row in found["schemes"]}
    ram = {row["scheme"]: row["ram_bytes"] for row in found["schemes"]}
    other = [name for name, yes in printed.items() if ours[name] != yes]
    hybrids = max(ram[name] for name in ("bast", "fast", "superblock", "last"))
    value = (
        "Full merges in "
        + ", ".join(name for name, yes in ours.items() if yes)
        + "; none in "
        + ", ".join(name for name, yes in ours.items() if not yes)
        + f"; tables of 64 MiB: page map {ram['page'] / 1024:.0f} KiB, hybrids at most {hybrids / 1024:.1f} KiB, "
        f"replacement blocks {ram['replacement'] / 1024:.1f} KiB."
    )
    none = ours["dftl"] is ours["page"] is False and copied["dftl"] == copied["page"] == 0
    smaller = hybrids < ram["page"]
    return Answer(
        Verdict.of(not other and none and smaller, direction=none and smaller and len(other) == 1),
        value,
        "20,000 uniform overwrites of one page, full drive",
    )


@claim("G7", needs="heads")
def g7(found: Found) -> Answer:
    """Table 3."""
    told = [
        f"{row['workload']}: {row['kib']:.2f} KiB, {row['read_percent']:.1f} % reads, "
        f"{row['sequential_percent']:.1f} % sequential, {row['inter_arrival_ms']:.2f} ms between arrivals"
        for row in found["heads"]
    ]
    return Answer(
        Verdict.UNTESTABLE,
        (f"Heads: {'; '.join(told)}" if told else "No trace given")
        + ". The whole traces are not at hand.",
        "Heads of real traces" if told else "",
    )


@claim("G25", needs="comparison")
def g25(found: Found) -> Answer:
    """No merges in DFTL."""
    runs = [
        run
        for row in found["comparison"]
        for run in row["runs"]
        if run["scheme"] == "dftl" and not run["error"]
    ]
    merges = sum(run["merge_operations"] for run in runs)
    whole = sum(run["full"] for run in runs)
    return Answer(
        Verdict.of(merges == 0),
        f"{merges:,.0f} operations of merges in {len(runs)} runs of DFTL; {whole:,.0f} cleans of a block without an "
        "invalid page.",
        "The comparison's workloads",
    )


@claim("G27")
def g27(found: Found) -> Answer:
    """Writes over reads."""

    def us(text: str) -> float:
        return float(text.removesuffix(" us"))

    times = []
    for name in ("dftl-large-block", "dftl-small-block"):
        timing = Ssd.named(name).config["timing"]
        times.append(us(timing["program"]) / us(timing["read"]))
    return Answer(
        Verdict.of(4 <= max(times) <= 5, direction=min(times) > 1),
        f"{times[0]:.1f} times (large blocks) and {times[1]:.1f} times (small blocks), by Table 1.",
    )
