"""What an assessment says, in sentences: the same on the screen, on the page and in JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from flashwright.advice.assessment import HALF_PACE, Assessment, Gain, is_fitted
from flashwright.advice.curve import Point
from flashwright.endurance.pages import decimal, in_years
from flashwright.report import text

__all__ = ["Part", "parts", "setting_gain"]


class Part(NamedTuple):
    """One part of the answer: its heading, and what it says of each topic."""

    title: str
    lines: list[tuple[str, str]]


# What a verdict means for write amplification.
_VERDICTS = {
    "settled": "settled",
    "transient": "NOT settled: it still changed",
    "too-short": "settled, but measured too briefly to say it to 3 %",
    "never-cleaned": "no cleaning needed",
    "none": "nothing was written",
}
_NO_CHANGE = "no change"
# The ratio from which on a change of a time is told as one, and not as a share. Chosen: a share of two digits tells no
# more than this.
_TIMES_FROM = 10
# What is not played, by the topic of the advice.
_NOT_PLAYED = {
    "read_ahead_kb": "the model has no page cache of the kernel",
    "alignment": "requests lie where the load has them",
}


def parts(made: Assessment) -> list[Part]:
    """The answer, part by part.

    Parameters
    ----------
    made : Assessment
        What was assessed.

    Returns
    -------
    list of Part
        Parts that have nothing to say are left out. Warnings are no part of it: ``made.warnings``.
    """
    found = [
        Part("The load", list(_load(made))),
        Part("Write amplification", list(_amplification(made))),
        Part("Life", list(_life(made))),
        Part("Reads", list(_tails(made))),
        Part("Settings of Linux", list(_settings(made))),
        Part("Not known", list(_unknown(made))),
    ]
    return [part for part in found if part.lines]


def _load(made: Assessment) -> Iterator[tuple[str, str]]:
    if made.load is None:
        yield from _generated(made)
        return
    load, info = made.load, made.load.info
    span = f" in {text.time_ns(info['span_ns'])}" if info["span_ns"] else ""
    kinds = [
        f"{info[kind]:,} {kind}" for kind in ("reads", "writes", "trims", "flushes") if info[kind]
    ]
    yield "requests", f"{info['requests']:,}{span}: {', '.join(kinds)}"
    if info["reads"] + info["writes"]:
        yield "reads", f"{info['read_percent']:.1f} % of reads and writes"
        means = [
            f"{kind} of {text.size_bytes(info[figure])}"
            for kind, figure in (("reads", "read_bytes_mean"), ("writes", "write_bytes_mean"))
            if info[figure]
        ]
        device = " of their device" if len(info["devices"]) > 1 else ""
        yield (
            "sizes",
            f"{' and '.join(means)} in the mean; "
            f"{info['sequential_percent']:.1f} % begin where the one before{device} ended",
        )
    if load.written_a_day is None or load.read_a_day is None:
        yield "a day", "not known: the trace has no arrival times"
    else:
        yield (
            "a day",
            f"{decimal(load.written_a_day)} written and {decimal(load.read_a_day)} read, at the recorded pace",
        )
    if info["pages_written"]:
        yield (
            "hot addresses",
            f"{info['pages_written_twice_percent']:.1f} % of the 4 KiB pages written are written twice or more, "
            f"{info['pages_written_thrice_percent']:.1f} % three times or more",
        )
    yield (
        "footprint",
        f"{decimal(load.touched_bytes)} touched, up to address {decimal(info['end_byte'])}"
        f"{_of_drive(made)}",
    )


def _of_drive(made: Assessment) -> str:
    """Which share of the drive the load touches."""
    if made.load is None or made.capacity_bytes is None:
        return ""
    touched = made.load.touched_bytes
    shares = [
        f"{text.share(touched / made.capacity_bytes)} of the drive's {decimal(made.capacity_bytes)}"
    ]
    if made.capacity_from == "the model":
        shares = [
            f"{text.share(touched / made.capacity_bytes)} of the model's {decimal(made.capacity_bytes)}"
        ]
    elif made.is_other_size and made.model_bytes is not None:
        shares.append(
            f"{text.share(touched / made.model_bytes)} of the model's {decimal(made.model_bytes)}"
        )
    fitted = ", to which its addresses are fitted" if is_fitted(made.source) else ""
    return f": {', '.join(shares)}{fitted}"


def _generated(made: Assessment) -> Iterator[tuple[str, str]]:
    """A load that no trace recorded, by the run that played it."""
    if made.present is None:
        return
    figures = made.present.json
    asked = figures["requests"]
    reads, writes = asked["read"] or 0, asked["write"] or 0
    yield (
        "generated",
        f"{figures['workload']}: no recording, so it has no bytes a day and no footprint",
    )
    if reads + writes:
        yield (
            "requests",
            f"{reads + writes:,} played, {text.share(reads / (reads + writes))} of them reads",
        )


def _amplification(made: Assessment) -> Iterator[tuple[str, str]]:
    yield "by counters", _counted(made)
    if made.ssd is not None and made.source is not None and made.present is None:
        yield "by the model", "not known: the run of the drive as it is was not played to its end"
    for name, point in made.points:
        yield f"by the model, {name}", _modelled(point)
    if made.over_counted is not None:
        yield "model over counters", f"{text.significant(made.over_counted, 3)}, by bytes"


def _counted(made: Assessment) -> str:
    if made.counters is None:
        return "not known: no SMART data given"
    found = made.counters.write_amplification
    if found is None:
        return f"not known: {made.counters.now.why_no_amplification}"
    value, over = found
    between = made.counters.between
    if over == "between the readings" and between is not None:
        bytes_moved = (
            f": {decimal(between.flash_bytes_written)} to the flash for {decimal(between.bytes_written)} from the host"
            if between.flash_bytes_written and between.bytes_written
            else ""
        )
        return f"{text.significant(value, 3)} between the readings{bytes_moved}"
    why = (
        "one reading does not say how it is now"
        if between is None
        else "too little was written between the readings"
    )
    return f"{text.significant(value, 3)} since the drive was new; {why}"


def _modelled(point: Point) -> str:
    value, interval = point.value("write-amplification"), point.interval("write-amplification")
    reserved = f"{text.share(point.reserved)} reserved"
    if value is None:
        return f"none: {_VERDICTS[point.verdict]}; {reserved}"
    # While it changes, an interval of it says nothing.
    is_known = interval is not None and point.verdict != "transient"
    within = f" ({_wa(interval[0])} to {_wa(interval[1])})" if interval and is_known else ""
    bytes_too = _by_bytes(value, point.value("write-amplification-bytes"))
    return f"{_wa(value)}{within}{bytes_too}, {_VERDICTS[point.verdict]}; {reserved}"


def _by_bytes(pages: float, by_bytes: float | None) -> str:
    """Write amplification by bytes, where that by pages is another."""
    differs = by_bytes is not None and abs(by_bytes / pages - 1) > 0.005
    return f", {_wa(by_bytes)} by bytes" if differs else ""


def _life(made: Assessment) -> Iterator[tuple[str, str]]:
    rate = made.rate
    if rate is not None:
        yield "written", f"{decimal(rate.bytes_per_s * 86400)} a day, {rate.whence}"
    if made.counters is not None:
        yield "by counters", _counted_life(made)
    years = made.years_to_rating
    if made.rating_bytes is not None:
        counts = made.counters is not None and made.counters.now.bytes_written is not None
        whose = "" if counts else " to a new drive"
        answer = (
            "not known: nobody says what is written"
            if years is None
            else f"{in_years(years)} until {decimal(made.rating_bytes)} are written{whose}"
        )
        yield "to the rating", answer
    even = made.even
    if even is not None and made.present is not None:
        takes = f"{text.significant(even.end.drive_writes, 3)} drive writes"
        if made.model_years is not None:
            middle, low, high = map(in_years, made.model_years)
            within = "" if low == high or even.settled == "transient" else f" ({low} to {high})"
            takes = f"{middle} of a new drive{within}, {takes}"
        bytes_too = _by_bytes(even.write_amplification, made.present.write_amplification_bytes)
        yield (
            "by the model",
            f"{takes}: {even.end.cycles:,} cycles, write amplification {_wa(even.write_amplification)}{bytes_too}, "
            f"{_VERDICTS[even.settled]}; if all blocks wear evenly",
        )


def _counted_life(made: Assessment) -> str:
    assert made.counters is not None
    now, found = made.counters.now, made.counters.years_left
    if now.used is not None and now.used >= 1:
        return "none left: the rated life is used up"
    if found is None:
        return "not known: the drive does not say its wear, or since when"
    years, (low, high), over = found
    if years is None:
        return f"more than {in_years(low)} left, at the wear {over}: less than 1 % of it"
    upper = "more" if high is None else in_years(high)
    used = "" if now.used is None else f"; {text.share(now.used)} is used"
    return f"{in_years(years)} left ({in_years(low)} to {upper}: wear is in whole %), at the wear {over}{used}"


def _tails(made: Assessment) -> Iterator[tuple[str, str]]:
    tail = made.tail
    if tail is None:
        return
    pace = (
        "at the recorded pace"
        if made.load is not None and made.load.info["span_ns"]
        else "at the load's own pace"
    )
    low, high = text.time_ns(tail.low), text.time_ns(tail.high)
    within = "" if low == high else f" ({low} to {high} if reads were independent)"
    yield (
        "response",
        f"p99 {text.time_ns(tail.p99)}, p99.9 {text.time_ns(tail.p99_9)}{within}, {pace} on the model; "
        f"half of the reads take up to {text.time_ns(tail.p50)}",
    )
    for name, other in made.what_ifs:
        yield f"p99.9, {name}", f"{text.time_ns(other.p99_9)}, {_change(tail.p99_9, other.p99_9)}"
    yield "limited by", _limit(made)


def _limit(made: Assessment) -> str:
    behind = (
        "; requests arrive faster than the drive completes them, so that they queue"
        if made.falls_behind
        else ""
    )
    if not made.what_ifs:
        return f"not known: no run tells{behind}"
    best = made.limited_by
    if best is None:
        return f"neither of these: none shortens p99.9 by a tenth and by more than chance{behind}"
    if best == HALF_PACE:
        return f"the pace: reads wait for the requests before them{behind}"
    return f"programs and erases, which reads wait for{_of_cleaning(made)}{behind}"


def _of_cleaning(made: Assessment) -> str:
    """Which share of the programs are cleaning's."""
    if made.present is None:
        return ""
    programs = made.present.json["flash"]["programs"]
    cleaning, total = programs["gc"], programs["total"]
    if cleaning is None or not total:
        return ""
    return f"; {text.share(cleaning / total)} of the programs are cleaning's"


def _settings(made: Assessment) -> Iterator[tuple[str, str]]:
    for line in made.advised:
        # Figures behind a line follow its first sentence; the page has them all.
        advice = line.text.partition(". ")[0] if line.given else line.text
        ground = f" [{line.source}]" if line.source else ""
        gain = made.gain(line.topic)
        played = f"; {setting_gain(gain)}" if gain is not None else ""
        if line.topic == "alignment" and made.load is not None and made.load.unaligned:
            shares = [
                f"{text.share(odd)} of the {kind}" for kind, odd in made.load.unaligned.items()
            ]
            played = f"; {' and '.join(shares)} are not aligned"
        yield line.topic.replace("linux ", ""), f"{advice}{ground}{played}"


def setting_gain(gain: Gain) -> str:
    """What a setting changes on the model.

    Parameters
    ----------
    gain : Gain
        The two runs.
    """
    names = (
        ("without", "with") if gain.trial.is_advised else (f"with {gain.trial.name}", "as advised")
    )
    runs = gain.without, gain.advised
    parts = []
    amplifications = [_wa(run.write_amplification) for run in runs]
    if amplifications[0] != amplifications[1]:
        parts.append(
            "write amplification "
            + ", ".join(
                f"{value} {name}" for value, name in zip(amplifications, names, strict=True)
            )
        )
    old, new = gain.tails
    if old is not None and new is not None:
        percentiles = ("p99", old.p99, new.p99), ("p99.9", old.p99_9, new.p99_9)
        if all(_change(before, after) == _NO_CHANGE for _, before, after in percentiles):
            parts.append("p99 and p99.9 of reads do not change")
        else:
            parts += [
                f"{percentile} of reads {text.time_ns(before)} {names[0]}, {text.time_ns(after)} {names[1]} "
                f"({_change(before, after)})"
                for percentile, before, after in percentiles
            ]
    unsettled = {run.settled.verdict for run in runs} & {"transient", "too-short"}
    return f"on the model: {'; '.join(parts) or 'nothing changes'}{'; NOT settled' if unsettled else ''}"


def _unknown(made: Assessment) -> Iterator[tuple[str, str]]:
    if made.counters is None:
        yield (
            "counters",
            "write amplification and wear by the drive itself; --smart FILE gives them",
        )
    else:
        for name, command in made.counters.now.missing:
            yield (
                name,
                f"not in the SMART data; `{command}` as root prints it if the drive reports it",
            )
    if made.ssd is None or made.source is None:
        options = [("--drive", made.ssd), ("--trace", made.source)]
        missing = " and ".join(name for name, value in options if value is None)
        yield "by the model", f"write amplification with more reserve, and reads; {missing} missing"
    if made.present is not None and made.cycles is None:
        yield "life by the model", "the erases that a block takes; --cycles N says them"
    if made.rating_bytes is None:
        yield (
            "life by the rating",
            "what the drive is rated to take; --endurance says it, such as 600TB",
        )
    if made.load is not None and made.load.written_a_day is None:
        yield "the pace", "the trace has no arrival times"
    for line in made.advised:
        if line.topic in _NOT_PLAYED:
            yield f"gain of {line.topic}", f"not played: {_NOT_PLAYED[line.topic]}"
        elif made.gain(line.topic) is None and made.present is not None:
            yield f"gain of {line.topic.replace('linux ', '')}", _why_no_gain(made, line.topic)
    if made.ssd is not None and made.hosted is None:
        yield "settings", "the short runs for them were not finished"
    of_settings = {trial.name for trial in made.trials if trial.topic}
    missed = [name for name in made.left_out if name not in of_settings]
    if missed:
        why = "interrupted" if made.interrupted else "the time was over"
        yield "runs not played", f"{'; '.join(missed)}: {why}"


def _why_no_gain(made: Assessment, topic: str) -> str:
    if any(trial.topic == topic for trial in made.trials):
        return "its run was not finished"
    if topic == "discard":
        return "not played: the load reaches to the end of the drive, or is fitted to it"
    return "not played: the model has it already, or nothing is advised"


def _wa(value: float | None) -> str:
    """Write amplification."""
    return text.ABSENT if value is None else f"{value:.3f}"


def _change(before: float, after: float) -> str:
    if not before:
        # Reads of what was never written take no time on some drives.
        return _NO_CHANGE if not after else "from nothing"
    share = after / before - 1
    if abs(share) < 0.005:
        return _NO_CHANGE
    if after and not 1 / _TIMES_FROM < after / before < _TIMES_FROM:
        # As a share, rounded, it would read as if nothing were left.
        times = text.significant(max(after, before) / min(after, before), 2)
        return f"{times} times {'longer' if after > before else 'shorter'}"
    return f"{share * 100:+.0f} %".replace("-", "−")
