"""What the judges of chapters 2 and 3 share: runs of a workload, ratios, orderings, plots."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from flashwright_papers import Answer, Found, Line, Plot, Verdict

from .ram_play import BY_MODEL, FINANCIAL_1, HEAD_1, HEAD_MSN, HEADS, MSN, STAND_INS

Row = Mapping[str, Any]
Ratios = dict[float, float]
Rule = Callable[["Runs"], tuple[str, Verdict]]

NAMES = {
    "page": "page mapping",
    "bplru": "BPLRU",
    "pud-lru": "PUD-LRU",
    "dftl": "DFTL",
    "ap": "AP",
    "gc-arm": "GC-ARM",
}
METRICS = {
    "gc_efficiency_pages": "GC efficiency",
    "programs": "writes",
    "programs_translation": "translation writes",
}
# A trace of which only a head is public: that head, and the part whose runs are of it.
HEAD_OF = {FINANCIAL_1: (HEAD_1, "head-financial-1"), MSN: (HEAD_MSN, "head-msn")}
TRACE_OF = {head: trace for trace, (head, _) in HEAD_OF.items()}
KEEPS_UP = 0.98  # busy for a larger share of the time, a drive does not keep up with the arrivals


class Runs:
    """The runs of one workload that are set apart by `varied`, and what else the rows hold of it."""

    def __init__(self, found: Found, workload: str, varied: str = "") -> None:
        self.workload, self.varied = workload, varied
        self.trace = TRACE_OF.get(workload, workload)
        rows = [row for part in found.values() for row in part if row.get("workload") == workload]
        norm = [row for row in rows if row["varied"] == varied]
        self.errors = [row["error"] for row in norm if row["error"]]
        self.all = [row for row in rows if not row["error"]]
        self.rows = {(row["scheme"], float(row["ram"])): row for row in norm if not row["error"]}
        self.whole = workload not in HEADS and any(row["real"] for row in self.all)

    @property
    def label(self) -> str:
        """What was played, in words that promise no more than it is."""
        if self.workload in HEADS:
            return f"the {self.workload}, {self.varied or 'over and over'}"
        if self.whole:
            return f"{self.workload}, the whole trace"
        name = f"stand-in for {self.workload}" if self.workload in STAND_INS else self.workload
        return f"{name}, {self.varied}" if self.varied else name

    def get(self, scheme: str, ram: float) -> Row:
        """The run of a scheme; page mapping has the same at all sizes."""
        return self.rows[scheme, 0.0 if scheme == "page" else float(ram)]

    def sizes(self, *schemes: str) -> list[float]:
        """Sizes at which all the schemes were played and one of them erased anything; all sizes if none ever did."""
        played, erased = [], []
        for ram in sorted({ram for _, ram in self.rows if ram and ram == int(ram)}):
            rows = [self.rows.get((each, 0.0 if each == "page" else ram)) for each in schemes]
            if all(rows):
                played.append(ram)
                erased += [ram] if any(row["erases"] for row in rows if row) else []
        return erased or played

    def of(self, scheme: str, ram: float, metric: str) -> float:
        """A figure of a run; 0 where there is nothing to take a mean of."""
        return float(self.get(scheme, ram)[metric] or 0)

    def pair(self, a: str, b: str, ram: float, metric: str) -> tuple[float, float]:
        """A figure of two schemes. `time` is the mean response, or the mean service time where one does not keep up."""
        if metric == "time":
            late = max(self.of(a, ram, "load"), self.of(b, ram, "load")) >= KEEPS_UP
            metric = "service_ms" if late else "response_ms"
        return self.of(a, ram, metric), self.of(b, ram, metric)

    def ratios(self, a: str, b: str, metric: str, sizes: Sequence[float] | None = None) -> Ratios:
        """a over b by size."""
        found = {}
        for ram in self.sizes(a, b) if sizes is None else sizes:
            x, y = self.pair(a, b, ram, metric)
            found[ram] = x / y if y else (1.0 if x == y else float("inf"))
        if not found:
            raise LookupError(f"no runs of {NAMES[a]} and {NAMES[b]}")
        return found

    def below(self, a: str, b: str, metric: str, sizes: Sequence[float] | None = None) -> bool:
        """Whether a is below b at 80 % of the sizes or more."""
        return mostly(ratio < 1 for ratio in self.ratios(a, b, metric, sizes).values())

    def shares(self, what: str, *schemes: str) -> dict[str, list[float]]:
        """Share of programs that are `what`, by scheme and size."""
        sizes = self.sizes(*schemes)
        if not sizes:
            raise LookupError("no runs")
        return {
            scheme: [
                self.of(scheme, ram, f"programs_{what}")
                / max(1.0, self.of(scheme, ram, "programs"))
                for ram in sizes
            ]
            for scheme in schemes
        }


def deciding(found: Found, trace: str) -> list[Runs]:
    """What decides on a trace, first, and what is told beside it.

    The whole trace decides, else its head where the claim rests on that, else a stand-in. A stand-in never takes the
    place of a head that is not there: such models are known to turn orders round.
    """
    own = Runs(found, trace)
    head, part = HEAD_OF.get(trace, ("", ""))
    if own.whole or part not in found:
        return [own]
    beside = (Runs(found, head, BY_MODEL), own)
    return [Runs(found, head), *(each for each in beside if each.rows)]


def apply_rule(
    found: Found,
    rule: Rule,
    workloads: Sequence[str],
    beside: Sequence[tuple[str, str]] = (),
    plots: Callable[[Runs], Sequence[Plot]] | None = None,
) -> Answer:
    """The answer of one rule on the workloads that a claim names, and what it says of others beside them.

    Of several workloads all must meet the rule; the direction is met if it is on more than half of them. If the head
    that decides is not there, nothing is decided. `beside` are workloads and what sets their runs apart, told with
    what the rule would say of them.
    """
    every, others = [], []
    for name in workloads:
        first, *rest = deciding(found, name)
        every.append(first)
        others += rest
    others += [runs for each in beside if (runs := Runs(found, *each)).rows]
    errors = [f"{each.label}: {each.errors[0]}" for each in every if each.errors]
    if errors:
        return Answer(Verdict.UNTESTABLE, f"a drive could not be built: {errors[0]}")
    there = [runs for runs in every if runs.rows]
    one = len(every) == 1
    texts, verdicts = [], []
    for runs in every:
        text, verdict = (
            rule(runs)
            if runs.rows
            else (f"not among the traces: the {runs.workload}", Verdict.UNTESTABLE)
        )
        verdicts.append(verdict)
        texts.append(text if one else f"{runs.trace}: {text} ({verdict})")
    also = {}
    for runs in others:
        text, verdict = rule(runs)
        also[runs.label] = verdict
        texts.append(f"Beside it, {runs.label}: {f'{text}, ' if one else ''}would be {verdict}")
    shown = [*there, *(runs for runs in others if not runs.varied and runs.trace in workloads)]
    drawn = [plot for runs in shown for plot in plots(runs)] if plots else []
    used = workload = played(every)
    return Answer(together(verdicts), ". ".join(texts), workload, plots=drawn, also=also, used=used)


def played(every: Sequence[Runs]) -> str:
    """What decides: real traces, then stand-ins, then what is not there."""
    real = [runs for runs in every if runs.rows and (runs.whole or runs.workload in HEADS)]
    absent = [runs.workload for runs in every if not runs.rows]
    rest = [runs.workload for runs in every if runs.rows and runs not in real]
    labels = [runs.label for runs in real]
    if rest:
        labels.append(f"stand-in{'s' if len(rest) > 1 else ''} for {', '.join(rest)}")
    return "; ".join([*labels, *(f"not there: the {name}" for name in absent)])


def together(verdicts: Iterable[Verdict]) -> Verdict:
    """All must be reproduced, more than half at least in direction; one that can't be judged leaves all of it open."""
    listed = list(verdicts)
    if Verdict.UNTESTABLE in listed:
        return Verdict.UNTESTABLE
    pointed = sum(each in (Verdict.REPRODUCED, Verdict.DIRECTION) for each in listed)
    return Verdict.of(
        all(each is Verdict.REPRODUCED for each in listed), direction=pointed > len(listed) / 2
    )


def magnitude(runs: Runs, met: bool, direction: bool) -> Verdict:
    """The verdict on a magnitude, which only a whole trace can show."""
    return Verdict.of(met and runs.whole, direction)


def mostly(flags: Iterable[bool]) -> bool:
    """Whether it holds at 80 % of the points or more."""
    listed = list(flags)
    return bool(listed) and sum(listed) >= 0.8 * len(listed)


def within(share: float, published: float) -> bool:
    """The band of percentages: 10 points, or three tenths if that is more."""
    return abs(share - published) <= max(0.1, 0.3 * published)


def near(
    runs: Runs, a: str, b: str, metric: str, by: float, sizes: Sequence[float] | None = None
) -> bool:
    """Whether two schemes are as good as equal."""
    return mostly(abs(ratio - 1) <= by for ratio in runs.ratios(a, b, metric, sizes).values())


def saving(ratios: Ratios) -> float:
    """The largest saving, as a share."""
    return 1 - min(ratios.values())


def orderings(*wanted: tuple[str, str, str]) -> Rule:
    """Each (a, b, metric): a below b, or above it where the metric begins with a minus sign."""

    def rule(runs: Runs) -> tuple[str, Verdict]:
        by_pair: dict[tuple[str, str], list[tuple[str, bool]]] = {}
        for a, b, metric in wanted:
            higher = metric.startswith("-")
            metric = metric.removeprefix("-")
            held = runs.below(*((b, a) if higher else (a, b)), metric)
            by_pair.setdefault((a, b), []).append((metric, held))
        every = [held for metrics in by_pair.values() for _, held in metrics]
        text = "; ".join(_pair(runs, a, b, metrics) for (a, b), metrics in by_pair.items())
        return text, Verdict.of(all(every), direction=sum(every) > len(every) / 2)

    return rule


def _pair(runs: Runs, a: str, b: str, metrics: Sequence[tuple[str, bool]]) -> str:
    """Ratios of two schemes; those of the time only where it disagrees with erases on which is ahead."""
    agree = len({held for metric, held in metrics if metric in ("erases", "time")}) == 1
    texts = [
        f"{METRICS.get(metric, metric)} {span(runs.ratios(a, b, metric))}{'' if held else ' (missed)'}"
        for metric, held in metrics
        if not (metric == "time" and agree and len(metrics) > 1)
    ]
    return f"{NAMES[a]} over {NAMES[b]}: {', '.join(texts)}"


def ratio(value: float) -> str:
    """A ratio in as many digits as say something."""
    if abs(value) >= 10:
        return f"{value:,.0f}"
    return f"{value:.2f}" if value >= 0.1 or value == 0 else f"{value:.2g}"


def span(ratios: Ratios) -> str:
    """Ratios over the sizes of RAM, from the least to the largest."""
    first, last = ratio(min(ratios.values())), ratio(max(ratios.values()))
    return first if first == last else f"{first} to {last}"


def percent(values: Sequence[float]) -> str:
    """Shares over the sizes of RAM, from the least to the largest, in percent."""
    first, last = f"{100 * min(values):.0f}", f"{100 * max(values):.0f}"
    return f"{first} %" if first == last else f"{first} to {last} %"


def by_scheme(shares: Mapping[str, Sequence[float]]) -> str:
    """Shares of schemes."""
    return ", ".join(f"{NAMES[scheme]} {percent(each)}" for scheme, each in shares.items())


# ---- plots


def over_ram(
    runs: Runs, schemes: Sequence[str], value: Callable[[str, float], float | None]
) -> list[Line]:
    """A line a scheme over RAM."""
    made = []
    for scheme in schemes:
        sizes = sorted(ram for name, ram in runs.rows if name == scheme and ram == int(ram))
        made.append(Line(NAMES[scheme], sizes, [value(scheme, ram) for ram in sizes]))
    return made


def normalized(runs: Runs, figure: str, metric: str, schemes: Sequence[str]) -> Plot:
    """A plot of chapter 2: RAM, and a figure over that of page mapping."""

    def value(scheme: str, ram: float) -> float | None:
        return runs.ratios(scheme, "page", metric, [ram])[ram] or None

    what = "erases" if metric == "erases" else "mean response or service time"
    return Plot(
        f"{figure}: {what}, {runs.label}",
        "RAM (MiB)",
        f"{what} over page mapping's",
        over_ram(runs, schemes, value),
        y_log=True,
        levels=[("page mapping", 1.0)],
    )


def absolute(
    runs: Runs, figure: str, metric: str, label: str, schemes: Sequence[str], log: bool = True
) -> Plot:
    """A plot of chapter 3: RAM, and a figure as it is."""
    return Plot(
        f"{figure}: {label}, {runs.label}",
        "RAM (MiB)",
        label,
        over_ram(runs, schemes, lambda scheme, ram: runs.get(scheme, ram)[metric] or None),
        y_log=log,
    )


PURPOSES = {
    "data": "data",
    "gc": "cleaning, merging and padding",
    "translation": "translation pages",
}


def writes_plot(runs: Runs, figure: str, schemes: Sequence[str]) -> Plot:
    """Figures 3.11 to 3.15: a bar a scheme and size of RAM, of what the writes to flash are for."""
    bars = [
        (ram, scheme)
        for ram in runs.sizes(*schemes)
        for scheme in schemes
        if (scheme, ram) in runs.rows
    ]
    return Plot(
        f"{figure}: writes by purpose, {runs.label}",
        "RAM (MiB), scheme",
        "writes to flash (pages)",
        [
            Line(
                label,
                range(len(bars)),
                [runs.of(scheme, ram, f"programs_{what}") for ram, scheme in bars],
            )
            for what, label in PURPOSES.items()
        ],
        ticks=[(at, f"{ram:g} {NAMES[scheme]}") for at, (ram, scheme) in enumerate(bars)],
        stacked=True,
    )


def shares_plot(runs: Runs, figure: str, what: str, label: str, schemes: Sequence[str]) -> Plot:
    """Shares of the writes to flash over RAM."""

    def value(scheme: str, ram: float) -> float | None:
        total = runs.of(scheme, ram, "programs")
        return runs.of(scheme, ram, f"programs_{what}") / total if total else None

    return Plot(
        f"{figure}: {label}, {runs.label}",
        "RAM (MiB)",
        f"{label} in all writes to flash",
        over_ram(runs, schemes, value),
        y_format="share",
    )
