"""The rules of the DFTL paper's claims about growing load and RAM (Figures 10 to 12)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from flashwright_papers import Answer, Found, Line, Plot, Verdict, claim

from .judging import NAMES, STAND_IN, STATE_NAMES, answer
from .runs import PLAIN, VICTIMS

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
    texts = ["none" if at[s] is None else f"{at[s]:.1f}" for s in ("fast", "dftl", "page")]
    return {s: math.inf if rate is None else rate for s, rate in at.items()}, ", ".join(texts)


def rates_plot(found: Found, workload: str, panel: str, what: str) -> Plot:
    """A panel of Figure 9."""
    lines = [
        Line(f"{NAMES[scheme]}, {STATE_NAMES[state]}", *map(list, zip(*points, strict=True)))
        for state in PLAIN
        for scheme, points in curves(found, workload, state, "cost-benefit").items()
    ]
    return Plot(
        f"Figure 9({panel}): workload {what} (cost-benefit)",
        "arrivals a second",
        "mean response (ms)",
        lines,
        x_log=True,
        y_log=True,
    )


@claim("G21", needs="rates")
def g21(found: Found) -> Answer:
    """Random writes at growing rates."""
    by_reading = {}
    for state, victim in itertools.product(PLAIN, VICTIMS):
        at, text = knees(found, "dftl-a", state, victim)
        # A lead of less than 5 % is none.
        by_reading[state, victim] = (text, Verdict.of(at["dftl"] > 1.05 * at["fast"]))
    what = "Knees of FAST, DFTL and the baseline, requests a second"
    return answer(
        by_reading, what, "", plots=[rates_plot(found, "dftl-a", "a", "A, random writes")]
    )


@claim("G22", needs="rates")
def g22(found: Found) -> Answer:
    """Sequential writes at growing rates."""
    by_reading = {}
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
        by_reading[state, victim] = (text, Verdict.of(lasts and near >= 0.8, direction=lasts))
    what = (
        "Knees of FAST, DFTL and the baseline and FAST's on random writes, requests a second, and the shares of rates "
        "below DFTL's knee at which it is better than FAST and within 30 % of the baseline"
    )
    plots = [rates_plot(found, "dftl-b", "b", "B, many sequential writes")]
    return answer(by_reading, what, "", plots=plots)


@claim("G23", needs="window")
def g23(found: Found) -> Answer:
    """Spikes of service and queueing."""
    by_reading = {}
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
            by_reading[row["state"], victim] = (
                ", ".join(texts),
                Verdict.of(waits and shorter, direction=waits),
            )
        if row["state"] == "full":
            number = [float(row["first"] + i) for i in range(100)]
            for name, run in (("FAST", fast), ("DFTL", runs["dftl", "cost-benefit"])):
                plots.append(
                    Plot(
                        f"Figure 10: a hundred requests on {name} (full drive, cost-benefit)",
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
    return answer(by_reading, what, STAND_IN.format("Financial of Table 3"), plots=plots)


@claim("G24", needs="sram")
def g24(found: Found) -> Answer:
    """A growing cache of the mapping."""
    by_reading = {}
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
            if victim == "cost-benefit":
                name = f"{row['workload']}, {STATE_NAMES[state]}"
                hits.append(Line(name, [8 * count for count in entries], ratio))
                responses.append(Line(name, [8 * count for count in entries], response))
        by_reading[state, victim] = (", ".join(texts), Verdict.of(fine, direction=direction))
    size = "cache of mapping entries, 8 B each"
    plots = [
        Plot("Figure 11: hits (cost-benefit)", size, "hits", hits, "bytes", "share", x_log=True),
        Plot(
            "Figure 11: response over the baseline's (cost-benefit)",
            size,
            "mean response over the baseline's",
            responses,
            "bytes",
            x_log=True,
            levels=[("baseline", 1.0)],
        ),
    ]
    what = "Hits, and response over the baseline's, from the smallest cache to the largest"
    return answer(by_reading, what, STAND_IN.format("Financial of Table 3 and TPC-H"), plots=plots)
