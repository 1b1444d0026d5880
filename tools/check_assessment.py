#!/usr/bin/env python3
"""Each sentence of `flashwright assess`, recomputed from runs of `flashwright simulate` and from the trace's requests.

    tools/check_assessment.py ASSESSMENT.json DRIVE TRACE [OPTION...]

ASSESSMENT.json is what --json wrote, of a drive and a trace without SMART data; the options are those that say how the
trace is read, such as --addresses scale. Every run is played again by a command of its own, with the same digest.
Every sentence must be of a known form, and each of its numbers must be, to the last digit shown, what the runs say.
Prints what is not so; the exit status is 1 then.
"""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from flashwright import tracefiles, workloads

UNITS = {
    "%": 0.01, "ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9, "days": 1 / 365.25, "years": 1,
    "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
    "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "PB": 1e15,
}  # fmt: skip
NUMBER = r"[−+-]?[\d,]+(?:\.\d+)?(?: (?:%|[nµm]?s|days|years|[KMGT]iB|[kMGTP]?B)(?![\w]))?"
"""A number as pages show it, with its unit."""
VERDICTS = {
    "settled": "settled",
    "transient": "NOT settled: it still changed",
    "too-short": "settled, but measured too briefly to say it to 3 %",
    "never-cleaned": "no cleaning needed",
    "none": "nothing was written",
}
# Percentiles of runs lie in classes of times, which are this wide at most, as a share.
CLASS_WIDTH = 0.005
# Points of a distribution lie so far apart at most, as a share of what is above.
POINTS_APART = 0.1
# The depth that is advised reaches 95 % of the highest rate; between runs rates differ by 3 %.
DEPTH_SHARE, RATES_DIFFER = 0.95, 0.03
# Wear is left out of the runs.
NO_WEAR = {"wear.pe-cycles-max": 0, "wear.pe-cycles-spread": 0, "wear.pe-cycles-weibull": 0}
PRESENT = "as it is"


def simulate(*arguments: object) -> dict[str, Any]:
    """The figures of a run."""
    command = [sys.executable, "-m", "flashwright", "simulate", *map(str, arguments)]
    done = subprocess.run(
        [*command, "--quiet", "--json", "-"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@dataclass
class Fact:
    """What a sentence must say: its form, in which a # is a number, and these numbers; `slack` as a share."""

    form: str
    numbers: Sequence[float] = ()
    slack: float = 0.0


def number_of(shown: str) -> float:
    """A number as it is shown, with its unit."""
    digits, _, unit = shown.partition(" ")
    return float(digits.replace(",", "").replace("−", "-")) * UNITS.get(unit, 1)


def fits(shown: str, value: float, slack: float) -> bool:
    """Whether a number, as it is shown, is that value to its last digit."""
    digits, _, unit = shown.partition(" ")
    step = 10.0 ** -len(digits.partition(".")[2]) * UNITS.get(unit, 1)
    return abs(number_of(shown) - value) <= 0.501 * step + slack * abs(value)


def says(sentence: str, fact: Fact) -> str | None:
    """What a sentence says that is not so; None where all is."""
    pattern = re.escape(fact.form).replace(re.escape("#"), f"({NUMBER})")
    found = re.fullmatch(pattern, sentence)
    if found is None:
        return f"expected the form {fact.form!r}"
    for shown, value in zip(found.groups(), fact.numbers, strict=True):
        if not fits(shown, value, fact.slack):
            return f"{shown}: recomputed {value:.9g}"
    return None


@dataclass
class Evidence:
    """What was played again, and the requests of the trace."""

    document: Mapping[str, Any]
    drive: str
    trace: Path
    options: Sequence[str] = ()
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)
    reads_ns: Any = None
    known: dict[str, dict[str, Fact]] = field(default_factory=dict)
    odd: list[str] = field(default_factory=list)

    def play(self, *more: object) -> dict[str, Any]:
        """A run of the load."""
        return simulate(
            self.drive, "--trace", self.trace, *self.options, "--precondition", "workload",
            *(f"--set={key}={value}" for key, value in NO_WEAR.items()), *more,
        )  # fmt: skip

    def gather(self) -> None:
        """Play all runs of the document."""
        with tempfile.TemporaryDirectory() as room:
            for name, run in self.document["runs"].items():
                changes = dict(run["set"])
                more: list[object] = []
                if "time-scale" in changes:
                    more += ["--time-scale", changes.pop("time-scale")]
                more += [f"--set={key}={value}" for key, value in changes.items()]
                if name == PRESENT:
                    more += ["--requests-out", Path(room) / "requests.csv"]
                self.runs[name] = self.play(*more)
            with (Path(room) / "requests.csv").open(encoding="utf-8", newline="") as file:
                rows = csv.DictReader(file)
                self.reads_ns = np.sort(
                    [
                        int(row["completion_ns"]) - int(row["arrival_ns"])
                        for row in rows
                        if row["kind"] == "read"
                    ]
                )

    def percentile(self, share: float) -> float:
        """The response time of reads that a share of them does not exceed, from the requests themselves."""
        at = int(np.ceil(share * len(self.reads_ns))) - 1
        return float(self.reads_ns[min(max(at, 0), len(self.reads_ns) - 1)])


def page_bytes(config: Mapping[str, Any]) -> int:
    """What a write of less makes a page-mapped drive read and write again."""
    geometry = config["geometry"]

    def size(text: str) -> int:
        number, unit = text.split(" ")
        return round(float(number) * UNITS[unit])

    page: int = size(geometry["mapping-unit"]) or size(geometry["page-size"])
    return page * int(geometry["cluster-channels"]) * int(geometry["cluster-dies"])


def load_facts(evidence: Evidence) -> dict[str, Fact]:
    """What the requests of the trace say."""
    options = list(evidence.options)
    named = dict(zip(options[::2], options[1::2], strict=False))
    trace = workloads.trace(evidence.trace, format=named.get("--format"))
    table = tracefiles.columns(trace).to_pydict()
    kinds = np.array(table["kind"])
    first = np.array(table["first_sector"], dtype=np.int64) * 512
    size = np.array(table["sectors"], dtype=np.int64) * 512
    arrival = np.array(table["arrival_ns"], dtype=np.int64)
    moves = np.isin(kinds, ["read", "write"])
    reads, writes = kinds == "read", kinds == "write"
    span = float(arrival.max() - arrival.min())
    counts = {
        name: int((kinds == kind).sum())
        for name, kind in (
            ("reads", "read"),
            ("writes", "write"),
            ("trims", "trim"),
            ("flushes", "flush"),
        )
    }
    shown = {name: count for name, count in counts.items() if count}
    ends = (first + size)[moves]
    begins = [each["base_sector"] * 512 for each in tracefiles.info(trace)["devices"]]
    device = np.searchsorted(begins, first[moves], side="right")
    follows = 0
    for each in np.unique(device):
        follows += int((first[moves][device == each][1:] == ends[device == each][:-1]).sum())
    touched: dict[int, int] = {}
    pages = set()
    for begin, end, is_write in zip(first[moves], ends, writes[moves], strict=True):
        for page in range(begin // 4096, -(-end // 4096)):
            pages.add(page)
            if is_write:
                touched[page] = touched.get(page, 0) + 1
    times = np.array(list(touched.values()) or [0])
    means = [("reads", reads), ("writes", writes)]
    sized = [(name, size[which].mean()) for name, which in means if which.any()]
    model = evidence.document["capacity_bytes"]
    is_fitted = named.get("--addresses") not in (None, "wrap", "reject")
    facts = {
        "requests": Fact(
            "# in #: " + ", ".join(f"# {name}" for name in shown),
            (len(kinds), span, *shown.values()),
        ),
        "reads": Fact("# of reads and writes", (counts["reads"] / moves.sum(),)),
        "sizes": Fact(
            f"{' and '.join(f'{name} of #' for name, _ in sized)} in the mean; # begin where the one before"
            + (" of their device" if len(begins) > 1 else "")
            + " ended",
            (*(mean for _, mean in sized), follows / moves.sum()),
        ),
        "a day": Fact(
            "# written and # read, at the recorded pace",
            tuple(float(size[which].sum()) / span * 86400e9 for which in (writes, reads)),
        ),
        "footprint": Fact(
            "# touched, up to address #: # of the model's #"
            + (", to which its addresses are fitted" if is_fitted else ""),
            (len(pages) * 4096, ends.max(), len(pages) * 4096 / model, model),
        ),
    }
    if touched:
        facts["hot addresses"] = Fact(
            "# of the # pages written are written twice or more, # three times or more",
            (float(np.mean(times >= 2)), 4096, float(np.mean(times >= 3))),
        )
    config = evidence.runs[PRESENT]["config"]
    unit = page_bytes(config)
    odd = (first % unit != 0) | ((first + size) % unit != 0)
    parts = " and ".join(f"# of the {name}" for name, which in means if which.any())
    facts["alignment"] = Fact(
        "begin and end requests at multiples of #: a write of part of a clustered page makes the drive read and write "
        f"the whole [the drive's description]; {parts} are not aligned",
        (unit, *(odd[which].mean() for _, which in means if which.any())),
    )
    facts["written a day"] = Fact("# a day, at the recorded pace", facts["a day"].numbers[:1])
    return facts


def by_bytes(run: Mapping[str, Any]) -> tuple[str, tuple[float, ...]]:
    """How write amplification by bytes is told, where it is another than by pages."""
    pages, value = run["write_amplification"], run["write_amplification_bytes"]
    return (", # by bytes", (value,)) if value and abs(value / pages - 1) > 0.005 else ("", ())


def amplification_fact(run: Mapping[str, Any]) -> Fact:
    """Write amplification of a run."""
    verdict = VERDICTS[run["settled"]["verdict"]].replace("3 %", "#")
    constant = (0.03,) if "#" in verdict else ()
    reserved = 1 - run["drive"]["logical_pages"] / run["drive"]["physical_pages"]
    if run["write_amplification"] is None:
        return Fact(f"none: {verdict}; # reserved", (*constant, reserved))
    # While it changes, an interval says nothing.
    is_known = run["settled"]["verdict"] != "transient"
    interval = (run["settled"]["interval"] or ()) if is_known else ()
    within = " (# to #)" if interval else ""
    also, value = by_bytes(run)
    return Fact(
        f"#{within}{also}, {verdict}; # reserved",
        (run["write_amplification"], *interval, *value, *constant, reserved),
    )


def life_fact(evidence: Evidence, per_day: float) -> Fact:
    """Even wear: each block takes its cycles."""
    run, cycles = evidence.runs[PRESENT], evidence.document["life"]["pe_cycles_max"]
    drive, settled = run["drive"], run["settled"]
    flash = drive["physical_pages"] / drive["logical_pages"]
    also, value = by_bytes(run)
    per_page = run["write_amplification_bytes"] / run["write_amplification"]

    def drive_writes(amplification: float) -> float:
        return float(flash * cycles / (amplification * per_page))

    def years(amplification: float) -> float:
        size: float = evidence.document["capacity_bytes"]
        return drive_writes(amplification) * size / per_day / 365.25

    amplification = run["write_amplification"]
    low, high = settled["interval"] or (amplification, amplification)
    ends = [years(high), years(low)]
    # As pages show them: in days of two digits where it is short, with a decimal below 100 years.
    shown = {
        f"{each * 365.25:.2g} days" if each < 0.05 else f"{each:.{1 if each < 100 else 0}f}"
        for each in ends
    }
    differs = len(shown) > 1 and settled["verdict"] != "transient"
    verdict = VERDICTS[settled["verdict"]].replace("3 %", "#")
    constant = (0.03,) if "#" in verdict else ()
    return Fact(
        f"# of a new drive{' (# to #)' if differs else ''}, # drive writes: # cycles, write amplification #{also}, "
        f"{verdict}; if all blocks wear evenly",
        (
            years(amplification), *(ends if differs else ()), drive_writes(amplification), cycles,
            amplification, *value, *constant,
        ),
        5e-4,
    )  # fmt: skip


def change(before: float, after: float) -> tuple[str, tuple[float, ...]]:
    """How a change of a time is told."""
    share = after / before - 1
    if abs(share) < 0.005:
        return "no change", ()
    if not 0.1 < after / before < 10:
        ratio = max(after, before) / min(after, before)
        return f"# times {'longer' if share > 0 else 'shorter'}", (ratio,)
    return "#", (share,)


def of_reads(run: Mapping[str, Any], percentile: str) -> float:
    """A percentile of the reads of a run, by the name that its JSON has for it."""
    return float(run["response_time_ns"]["read"][percentile])


def p99_9(run: Mapping[str, Any]) -> float:
    """Of the reads of a run."""
    return of_reads(run, "p99_9")


def reads_facts(evidence: Evidence) -> dict[str, Fact]:
    """The tail of reads, by the requests themselves, and what limits it."""
    run = evidence.runs[PRESENT]
    if not len(evidence.reads_ns):
        return {}
    width = 1.96 * (0.999 * 0.001 / len(evidence.reads_ns)) ** 0.5
    shares = 0.999 - width, min(0.999 + width, 1.0)
    ends = [evidence.percentile(share) for share in shares]
    # Where both ends are shown alike, which differences within a class may do, they are left out.
    said = next(
        line["text"]
        for part in evidence.document["answer"]
        for line in part["lines"]
        if (part["part"], line["topic"]) == ("Reads", "response")
    )
    interval = re.search(rf"\(({NUMBER}) to ({NUMBER}) if reads", said)
    has_equal_ends = interval is None and ends[1] <= ends[0] * (1 + CLASS_WIDTH)
    if interval is not None:
        # The distribution that they are read off has points so far apart, so that each may lie further out.
        widest = [
            evidence.percentile(share + sign * POINTS_APART * (1 - share))
            for share, sign in zip(shares, (-1, 1), strict=True)
        ]
        read_off = [number_of(each) for each in interval.groups()]
        for at, (least, most) in enumerate(((widest[0], ends[0]), (ends[1], widest[1]))):
            if least * (1 - CLASS_WIDTH) <= read_off[at] <= most * (1 + CLASS_WIDTH):
                ends[at] = read_off[at]
    facts = {
        "response": Fact(
            f"p99 #, p99.9 #{'' if has_equal_ends else ' (# to # if reads were independent)'}, at the recorded pace "
            "on the model; half of the reads take up to #",
            (
                evidence.percentile(0.99),
                evidence.percentile(0.999),
                *(() if has_equal_ends else ends),
                evidence.percentile(0.5),
            ),
            CLASS_WIDTH,
        )
    }
    best, shortest = None, p99_9(run)
    for name in ("half the pace", "programs and erases in no time"):
        if name in evidence.runs:
            other = p99_9(evidence.runs[name])
            form, numbers = change(p99_9(run), other)
            facts[f"p99.9, {name}"] = Fact(f"#, {form}", (other, *numbers))
            if other < shortest:
                best, shortest = name, other
    counts = shortest < min(0.9 * p99_9(run), ends[0] * (1 + CLASS_WIDTH))
    behind = (
        "; requests arrive faster than the drive completes them, so that they queue"
        if any(each["code"] == "falls-behind" for each in run["warnings"])
        else ""
    )
    programs = run["flash"]["programs"]
    if not counts or best is None:
        limit = Fact(
            f"neither of these: none shortens p99.9 by a tenth and by more than chance{behind}"
        )
    elif best == "half the pace":
        limit = Fact(f"the pace: reads wait for the requests before them{behind}")
    else:
        limit = Fact(
            f"programs and erases, which reads wait for; # of the programs are cleaning's{behind}",
            (programs["gc"] / programs["total"],),
        )
    facts["limited by"] = limit
    return facts


def gain(evidence: Evidence, other: str, names: tuple[str, str], *, is_advised: bool) -> Fact:
    """What a setting changes."""
    pair = [evidence.runs[PRESENT], evidence.runs[other]]
    before, after = pair if is_advised else pair[::-1]
    parts: list[str] = []
    numbers: list[float] = []
    shown = [each["write_amplification"] for each in (before, after)]
    if f"{shown[0]:.3f}" != f"{shown[1]:.3f}":
        parts.append(f"write amplification # {names[0]}, # {names[1]}")
        numbers += shown
    changes = [
        (name, times, *change(*times))
        for name, key in (("p99", "p99"), ("p99.9", "p99_9"))
        for times in [(of_reads(before, key), of_reads(after, key))]
    ]
    if all(share == () for *_, share in changes):
        parts.append("p99 and p99.9 of reads do not change")
    else:
        for name, times, how, share in changes:
            parts.append(f"{name} of reads # {names[0]}, # {names[1]} ({how})")
            numbers += [*times, *share]
    unsettled = {each["settled"]["verdict"] for each in pair} & {"transient", "too-short"}
    return Fact(
        f"; on the model: {'; '.join(parts)}{'; NOT settled' if unsettled else ''}", numbers
    )


def setting_facts(evidence: Evidence) -> dict[str, Fact]:
    """Settings whose ground is the drive's description, with their gain on the model."""
    config, runs = evidence.runs[PRESENT]["config"], evidence.runs
    page, own = page_bytes(config), "[the drive's description]"
    facts: dict[str, Fact] = {}
    if page <= 4096:
        advice, name = (
            "none",
            "none: each block of # is whole for the drive, so that merging gains little",
        )
        numbers: tuple[float, ...] = (4096,)
    else:
        advice = "mq-deadline"
        name = (
            "mq-deadline: adjoining requests meet in its queue and merge, and blocks of # are parts of a clustered "
            "page of #"
        )
        numbers = (4096, page)
    is_own = config["host"]["scheduler"] == advice
    other = f"scheduler {('mq-deadline' if advice == 'none' else 'none') if is_own else advice}"
    words = (f"with {other}", "as advised") if is_own else ("without", "with")
    effect = gain(evidence, other, words, is_advised=not is_own) if other in runs else Fact("")
    facts["scheduler"] = Fact(f"{name} {own}{effect.form}", (*numbers, *effect.numbers))
    if config["controller"]["read-buffer"]["size"] == "0 B":
        facts["read_ahead_kb"] = Fact(f"as it is: there is no read buffer to fit {own}")
    if config["ftl"]["scheme"] in ("page", "dftl"):
        name = "all beyond the load discarded"
        effect = (
            gain(evidence, name, ("without", "with"), is_advised=True) if name in runs else Fact("")
        )
        facts["discard"] = Fact(
            "run fstrim now and then: under a page map, each page that is given back serves as spare space "
            f"{own}{effect.form}",
            effect.numbers,
        )
    return facts


def depth_fact(evidence: Evidence) -> Fact:
    """The queue depth, by runs at that depth, half of it and the largest; what speaks against it becomes odd."""
    (advice,) = (
        each["advice"] for each in evidence.document["settings"] if each["topic"] == "queue depth"
    )
    load = evidence.document["load"]
    depth, unit = int(advice.partition(":")[0]), f"({NUMBER}) is the nearest"
    nearest = re.search(unit, advice)
    size = (
        4096
        if nearest is None
        else round(float(nearest[1].split()[0]) * UNITS[nearest[1].split()[1]])
    )
    kinds = [kind for kind in ("read", "write") if load[f"{kind}s"]]
    reaches, below = [], []
    for kind in kinds:
        rates = {}
        for each in sorted({max(depth // 2, 1), depth, 256}):
            run = simulate(
                evidence.drive, "--workload", f"uniform:write={int(kind == 'write')},size={size}B,depth={each}",
                "--requests", 32_000, "--warmup", 4000, "--precondition", "random",
            )  # fmt: skip
            rates[each] = run["throughput"]["iops"]
        most = max(rates.values())
        reaches.append(rates[depth] / most)
        below.append(rates[max(depth // 2, 1)] / most)
    if min(reaches) < DEPTH_SHARE - RATES_DIFFER:
        evidence.odd.append(f"queue depth: {depth} reaches {min(reaches):.3f} of the highest rate")
    if depth > 1 and min(below) > DEPTH_SHARE + RATES_DIFFER:
        evidence.odd.append(f"queue depth: half of {depth} reaches {min(below):.3f} already")
    effect = (
        gain(evidence, f"queue depth {depth}", ("without", "with"), is_advised=True)
        if f"queue depth {depth}" in evidence.runs
        else Fact("")
    )
    near = "" if nearest is None else " (# is the nearest size measured)"
    return Fact(
        f"#: for {' and '.join(f'{kind}s' for kind in kinds)} of #, as played{near}: # of their highest rate; more "
        f"wait longer [short runs of the model]{effect.form}",
        (
            depth, load["bytes_mean"], *((size,) if near else ()), DEPTH_SHARE, *effect.numbers,
        ),
    )  # fmt: skip


def unknown_facts(document: Mapping[str, Any]) -> dict[str, Fact]:
    """What is said not to be known, where it is not."""
    facts = {}
    if document["smart"] is None:
        facts["counters"] = Fact(
            "write amplification and wear by the drive itself; --smart FILE gives them"
        )
    if document["life"]["pe_cycles_max"] is None:
        facts["life by the model"] = Fact("the erases that a block takes; --cycles N says them")
    if document["life"]["rating_bytes"] is None:
        facts["life by the rating"] = Fact(
            "what the drive is rated to take; --endurance says it, such as 600TB"
        )
    reasons = {
        "read_ahead_kb": "the model has no page cache of the kernel",
        "alignment": "requests lie where the load has them",
        "discard": "the load reaches to the end of the drive, or is fitted to it",
    }
    for each in document["settings"]:
        topic = each["topic"].replace("linux ", "")
        if each["gain"] is None:
            why = reasons.get(topic, "the model has it already, or nothing is advised")
            facts[f"gain of {topic}"] = Fact(f"not played: {why}")
    return facts


def evidence_of(
    document: Mapping[str, Any], drive: str, trace: Path, options: Sequence[str] = ()
) -> Evidence:
    """Play again what an assessment rests on, and say what each of its sentences must say.

    Parameters
    ----------
    document : mapping
        What ``flashwright assess --json`` wrote.
    drive : str
        The model.
    trace : Path
        The load.
    options : sequence of str
        How the trace is read, as options of ``simulate`` with their values.
    """
    evidence = Evidence(document, drive, trace, options)
    evidence.gather()
    load = load_facts(evidence)
    settings = {**setting_facts(evidence), "alignment": load["alignment"]}
    if any(each["topic"] == "queue depth" for each in document["settings"]):
        settings["queue depth"] = depth_fact(evidence)
    evidence.known = {
        "The load": load,
        "Write amplification": {
            "by counters": Fact("not known: no SMART data given"),
            **{
                f"by the model, {each['name']}": amplification_fact(evidence.runs[each["name"]])
                for each in document["write_amplification"]["model"]
            },
        },
        "Life": {"written": load["written a day"]},
        "Reads": reads_facts(evidence),
        "Settings of Linux": settings,
        "Not known": unknown_facts(document),
    }
    if document["life"]["model"] is not None:
        evidence.known["Life"]["by the model"] = life_fact(evidence, load["a day"].numbers[0])
    return evidence


def faults(document: Mapping[str, Any], evidence: Evidence) -> Iterator[str]:
    """What an assessment says that is not so.

    Parameters
    ----------
    document : mapping
        What ``flashwright assess --json`` wrote.
    evidence : Evidence
        What it must say.
    """
    for name, run in document["runs"].items():
        again = evidence.runs[name]["digest"]
        if again != run["digest"]:
            yield f"run {name!r}: digest {run['digest']}, played again {again}"
    yield from evidence.odd
    yield from sentences(document, evidence.known)
    warned = {each["text"] for run in evidence.runs.values() for each in run["warnings"]}
    for each in document["warnings"]:
        if each["runs"] and each["text"] not in warned:
            yield f"warning of no run: {each['text']}"


def sentences(
    document: Mapping[str, Any], known: Mapping[str, Mapping[str, Fact]]
) -> Iterator[str]:
    """What sentences say that is not so, and those that nothing speaks for."""
    for part in document["answer"]:
        for line in part["lines"]:
            fact = known[part["part"]].get(line["topic"])
            wrong = "nothing speaks for it" if fact is None else says(line["text"], fact)
            if wrong is not None:
                yield f"{part['part']}, {line['topic']}: {line['text']!r}: {wrong}"


def main() -> int:
    """Check what the command line names."""
    if len(sys.argv) < 4:
        raise SystemExit(__doc__)
    file, drive, trace, *options = sys.argv[1:]
    document = json.loads(Path(file).read_text(encoding="utf-8"))
    found = list(faults(document, evidence_of(document, drive, Path(trace), options)))
    print(*found, sep="\n", end="\n" if found else "")
    total = sum(len(part["lines"]) for part in document["answer"])
    print(f"{file}: {total} sentences, {len(document['runs'])} runs, {len(found)} faults")
    return int(bool(found))


if __name__ == "__main__":
    raise SystemExit(main())
