"""The rules of the claims about speeds, latencies and SLC caches, as code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flashwright_papers import Answer, Found, Line, Plot, Verdict, claim

from .measured import Figure, figures, measured
from .models import CACHED, MAX, P5520, PE8110, Model

Row = Mapping[str, Any]

# Tolerances: where each comes from is said in claims.toml.
SPEED_MAX, SPEED_OTHERS = 0.10, 0.15
READS, WRITES = 1.5, 2.0
PERCENTILES = ("p50", "p90", "p95", "p99", "p99.9")
SLC_AT, SLC_RATE = 0.05, 0.10
# Of the judged percentiles, the share that counts as the direction.
MOST = 0.75


@dataclass(frozen=True)
class Pair:
    """A figure of a model beside the measured one."""

    what: str
    ours: float
    figure: Figure

    @property
    def off(self) -> float:
        return self.ours / self.figure.value - 1

    @property
    def factor(self) -> float:
        return max(self.ours / self.figure.value, self.figure.value / self.ours)

    def __str__(self) -> str:
        fitted = ", fitted" if self.figure.use == "fitted" else ""
        return (
            f"{self.what} {self.ours:,.4g} ({self.figure.value:g}, {100 * self.off:+.0f} %{fitted})"
        )


# The names of a run's figures, and of those that the table has.
SPEEDS = {"mib_s": "steady", "mib_s_before": "before the break", "mib_s_lowest": "lowest"}


def speeds_of(model: Model, rows: Sequence[Row], protocols: Sequence[str]) -> Iterator[Pair]:
    """All speeds of these protocols that the table has, each with its run."""
    runs = {row["load"]: row for row in rows}
    names = {figure: name for name, figure in SPEEDS.items()} | {"mean": "mib_s"}
    for each in figures():
        if (each.drive, each.unit) != (model.name, "MiB/s") or each.protocol not in protocols:
            continue
        # The fill of the PE8110 is none of the runs.
        if each.load in runs:
            what = f"{each.load}, {each.figure}" if each.figure != "mean" else each.load
            yield Pair(what, runs[each.load][names[each.figure]], each)


def of_speeds(
    model: Model, found: Sequence[Row], protocols: Sequence[str], within: float
) -> Answer:
    """All within the tolerance; or all within twice that, which is the direction."""
    pairs = list(speeds_of(model, found, protocols))
    # Two patterns chose a policy by their order; no constant rests on a steady speed.
    judged_pairs = [
        pair for pair in pairs if pair.figure.use != "fitted" or pair.figure.figure == "steady"
    ]
    held = sum(abs(pair.off) <= within for pair in judged_pairs)
    rough = all(abs(pair.off) <= 2 * within for pair in judged_pairs)
    said = (
        f"{held} of {len(judged_pairs)} within {100 * within:.0f} %: {'; '.join(map(str, pairs))}."
    )
    plot = Plot(
        f"{model.name}: speeds",
        "drive, MiB/s",
        "model, MiB/s",
        [
            Line(
                "each figure",
                [p.figure.value for p in judged_pairs],
                [p.ours for p in judged_pairs],
            ),
            Line("the same", *(2 * [[0.0, max(p.figure.value for p in judged_pairs)]]), paper=True),
        ],
        points=True,
    )
    return Answer(Verdict.of(held == len(judged_pairs), rough), said, plots=[plot])


@claim("R8", needs="max-times")
def speeds_of_max(found: Found) -> Answer:
    """Speeds of the 7450 MAX."""
    return of_speeds(MAX, found["max-times"], ("P1", "P2", "P3"), SPEED_MAX)


@claim("R15", needs="p5520-times")
def speeds_of_p5520(found: Found) -> Answer:
    """Speeds of patterns on the P5520."""
    return of_speeds(P5520, found["p5520-times"], ("P1", "P1 again"), SPEED_OTHERS)


@claim("R25", needs="p5520-times")
def zone_speeds_of_p5520(found: Found) -> Answer:
    """Speeds of zones on the P5520."""
    return of_speeds(P5520, found["p5520-times"], ("P3",), SPEED_OTHERS)


@claim("R20", needs="pe8110-times")
def speeds_of_pe8110(found: Found) -> Answer:
    """Speeds of patterns on the PE8110."""
    return of_speeds(PE8110, found["pe8110-times"], ("P1",), SPEED_OTHERS)


@claim("R26", needs="pe8110-times")
def zone_speeds_of_pe8110(found: Found) -> Answer:
    """Speeds of zones on the PE8110."""
    return of_speeds(PE8110, found["pe8110-times"], ("P3",), SPEED_OTHERS)


def latencies_of(model: Model, rows: Sequence[Row], of: str) -> Iterator[Pair]:
    """Percentiles that a run resolves, each beside the measured one."""
    for row in rows:
        if "asked" not in row:
            continue
        load = f"{row['asked'] // 1000} k asked, {of}"
        for percentile in PERCENTILES:
            ours = row["read_us" if of == "reads" else "write_us"][percentile]
            if ours is not None:
                what = f"{load} {percentile}"
                yield Pair(what, ours, measured(model.name, "P4", load, percentile))


def of_latencies(model: Model, rows: Sequence[Row], of: str, within: float) -> Answer:
    """All within the factor; or most of them, which is the direction."""
    pairs = list(latencies_of(model, rows, of))
    judged_pairs = [pair for pair in pairs if pair.figure.use != "fitted"]
    held = sum(pair.factor <= within for pair in judged_pairs)
    loads = dict.fromkeys(pair.what.rpartition(" ")[0] for pair in pairs)
    each = []
    for load in loads:
        mine = [pair for pair in pairs if pair.what.startswith(load)]
        text = ", ".join(
            f"{pair.what.rpartition(' ')[2]} {pair.ours:,.0f} ({pair.figure.value:g}"
            + (", fitted)" if pair.figure.use == "fitted" else ")")
            for pair in mine
        )
        each.append(f"{load}: {text}")
    closed = [row for row in rows if "asked" in row and not row["open"]]
    beyond = ", ".join(f"{row['asked'] // 1000} k" for row in closed)
    said = f"{held} of {len(judged_pairs)} within a factor of {within:g}. In us: {'; '.join(each)}."
    if closed:
        said += f" At {beyond} a thread had 64 requests out, where that of the records waits and ours does not."
    for row in rows:
        if "iops" in row:
            said += f" Saturated: {row['iops']:,.0f} requests a second."
    lines = []
    for load in loads:
        mine = [pair for pair in pairs if pair.what.startswith(load)]
        where = [float(PERCENTILES.index(pair.what.rpartition(" ")[2])) for pair in mine]
        lines.append(Line(f"{load}, model", where, [pair.ours for pair in mine]))
        lines.append(Line(load, where, [pair.figure.value for pair in mine], paper=True))
    ticks = [(float(at), name) for at, name in enumerate(PERCENTILES)]
    plot = Plot(f"{model.name}: {of}", "percentile", "us", lines, ticks=ticks, y_log=True)
    return Answer(
        Verdict.of(held == len(judged_pairs), held >= MOST * len(judged_pairs)), said, plots=[plot]
    )


@claim("R9", needs="max-latency")
def reads_of_max(found: Found) -> Answer:
    """Reads of the 7450 MAX under load."""
    return of_latencies(MAX, found["max-latency"], "reads", READS)


@claim("R27", needs="max-latency")
def writes_of_max(found: Found) -> Answer:
    """Writes of the 7450 MAX under load."""
    return of_latencies(MAX, found["max-latency"], "writes", WRITES)


@claim("R16", needs="p5520-latency")
def reads_of_p5520(found: Found) -> Answer:
    """Reads of the P5520 under load."""
    return of_latencies(P5520, found["p5520-latency"], "reads", READS)


@claim("R28", needs="p5520-latency")
def writes_of_p5520(found: Found) -> Answer:
    """Writes of the P5520 under load."""
    return of_latencies(P5520, found["p5520-latency"], "writes", WRITES)


@claim("R21", needs="pe8110-latency")
def reads_of_pe8110(found: Found) -> Answer:
    """Reads of the PE8110 under load."""
    return of_latencies(PE8110, found["pe8110-latency"], "reads", READS)


@claim("R29", needs="pe8110-latency")
def writes_of_pe8110(found: Found) -> Answer:
    """Writes of the PE8110 under load."""
    return of_latencies(PE8110, found["pe8110-latency"], "writes", WRITES)


RATES = ("first rate", "second rate", "third rate")


def phases_of(model: Model, row: Row) -> Iterator[Pair]:
    """Rates of a fill and where each ends, beside those of the review."""
    known = {each.figure: each for each in figures() if each.drive == model.name}
    levels = row["levels"]
    for rate, level in zip(RATES, levels, strict=False):
        if rate in known:
            yield Pair(f"{rate}, GB/s", level["gb_s"], known[rate])
        if (until := f"{rate} until") in known:
            yield Pair(
                "until, GB", level["until_share"] * model.capacity_gib * 2**30 / 1e9, known[until]
            )
    if "whole drive" in known:
        yield Pair("whole drive, GB/s", row["mean_gb_s"], known["whole drive"])


@claim("R22", needs="slc")
def phases(found: Found) -> Answer:
    """The fill of an erased drive with an SLC cache."""
    held = judged_count = 0
    said = []
    for model in CACHED:
        (row,) = (each for each in found["slc"] if each["drive"] == model.name and "levels" in each)
        pairs = list(phases_of(model, row))
        mine = [pair for pair in pairs if pair.figure.use != "fitted"]
        judged_count += len(mine)
        held += sum(
            abs(pair.off) <= (SLC_AT if pair.what.startswith("until") else SLC_RATE)
            for pair in mine
        )
        said.append(f"{model.name}: {', '.join(map(str, pairs))}")
    ours = f"{held} of {judged_count} judged figures: {'; '.join(said)}."
    # What all of them show, fitted or not: each phase is slower than the one before.
    slower = all(
        row["levels"][0]["gb_s"] > 1.25 * row["levels"][1]["gb_s"]
        for row in found["slc"]
        if len(row.get("levels", ())) > 1
    )
    return Answer(Verdict.of(held == judged_count, held * 2 > judged_count and slower), ours)


@claim("R30", needs="slc")
def recovery(found: Found) -> Answer:
    """What a pause gives back."""
    said, fine, rough = [], True, True
    for model in CACHED:
        (row,) = (
            each for each in found["slc"] if each["drive"] == model.name and "gb_s_after" in each
        )
        first = measured(model.name, "P7", "fill", "first rate")
        share = row["gb_s_after"] / first.value
        fine &= share >= 1 - SLC_RATE
        rough &= row["gb_s_after"] > 1.5 * row["gb_s_before"]
        said.append(
            f"{model.name} {row['gb_s_before']:.2f} before, {row['gb_s_after']:.2f} after it ({first.value:g})"
        )
    return Answer(Verdict.of(fine, rough), f"In GB/s: {'; '.join(said)}.")
