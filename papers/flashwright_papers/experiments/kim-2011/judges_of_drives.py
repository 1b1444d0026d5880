"""The claims of Kim et al. (2011) about their drives: Table 1, what probes find (section 4), Table 2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from flashwright_papers import Answer, Line, Plot, Table, Verdict, claim
from flashwright_papers import Found as Rows

from .judging import KIB, LITTLE, THREE, Row, letter, mostly, title
from .play import DRIVES

WAYS = ("sequential read", "sequential write", "random read", "random write")


# Table 1, MB/s.
TABLE_1 = {
    "ssd-a": (110.0, 85.0, 10.73, 0.28),
    "ssd-b": (117.0, 81.0, 5.68, 0.01),
    "ssd-c": (254.0, 78.0, 23.59, 11.25),
    "ssd-d": (142.0, 91.0, 9.22, 0.01),
}


# Sections 4.2.3 to 4.2.6, KB: clustered page, clustered block, read buffer and its least request, write buffer.
PAGES = {"ssd-a": 16, "ssd-b": 128, "ssd-c": 4, "ssd-d": 128}


BLOCKS = {"ssd-a": 4096, "ssd-b": 16384, "ssd-c": 5120, "ssd-d": 16384}


READ_BUFFERS = {
    "ssd-a": (256, None),
    "ssd-b": (None, None),
    "ssd-c": (3072, 512),
    "ssd-d": (64, 16),
}


WRITE_BUFFERS = {"ssd-a": 255, "ssd-b": 128, "ssd-c": 112, "ssd-d": None}


# Table 2, seconds, in the order of the probes.
TIMED = ("clustered-page", "clustered-block", "read-buffer", "write-buffer")


TABLE_2 = {
    "ssd-a": (18, 1846, 654, 78),
    "ssd-b": (63, 5534, 853, 545),
    "ssd-c": (64, 19666, 2769, 108),
    "ssd-d": (73, 5450, 735, 501),
}


def by_drive(rows: Sequence[Row]) -> dict[str, Row]:
    """Rows of parts that have one a drive."""
    return {row["drive"]: row for row in rows}


# Section 4.


@claim("K1", needs="table-1")
def k1(rows: Rows) -> Answer:
    """16 bandwidths within 20 %; of SSD-C's random writes those on a quarter of the space, where it comes near."""
    found = {(row["drive"], row["span"]): row for row in rows["table-1"]}
    of = {drive: found.get((drive, 0.25)) or found[drive, 1.0] for drive in DRIVES}
    off = {
        (drive, way): of[drive][way] / published - 1
        for drive in DRIVES
        for way, published in zip(WAYS, TABLE_1[drive], strict=True)
    }
    missed = [
        f"{letter(drive)} {way} {of[drive][way]:.2g} MB/s ({off[drive, way]:+.0%})".replace(
            "%", " %"
        )
        for drive, way in off
        if abs(off[drive, way]) > 0.2
    ]
    ordered = [
        of[one][way] > of[other][way]
        for at, way in enumerate(WAYS)
        for one in DRIVES
        for other in DRIVES
        if TABLE_1[one][at] > TABLE_1[other][at]
    ]
    whole = found["ssd-c", 1.0]["random write"]
    x = list(range(len(DRIVES)))
    lines = [Line(way, x, [of[drive][way] for drive in DRIVES]) for way in WAYS]
    lines += [
        Line(f"{way}, Table 1", x, [TABLE_1[drive][at] for drive in DRIVES], paper=True)
        for at, way in enumerate(WAYS)
    ]
    return Answer(
        Verdict.of(not missed, mostly(ordered)),
        f"{len(off) - len(missed)} of {len(off)} within 20 %; not: {', '.join(missed) or 'none'}. C's random writes "
        f"on a quarter of its space; on all of it {whole:.2g} MB/s. The drives' order is the table's in "
        f"{sum(ordered)} of {len(ordered)} pairs",
        plots=[
            Plot(
                "Table 1", "drive", "bandwidth [MB/s]", lines, y_log=True, points=True,
                ticks=[(at, title(drive)) for at, drive in enumerate(DRIVES)],
            )
        ],
    )  # fmt: skip


def found_kib(row: Row, parameter: str) -> float | None:
    """A size that a probe found; None where it found that there is none, or could not tell."""
    value = row["found"][parameter]["value"]
    return None if value is None else value / KIB


def describe_finding(row: Row, parameter: str) -> str:
    """A finding in words."""
    size = found_kib(row, parameter)
    if size is not None:
        return f"{size:,.6g} KiB"
    return "none" if row["found"][parameter]["verdict"] == "absent" else "can't tell"


def describe_findings(rows: Mapping[str, Row], parameter: str) -> str:
    """A finding of all drives."""
    return ", ".join(
        f"{letter(drive)} {describe_finding(row, parameter)}" for drive, row in rows.items()
    )


@claim("K2", needs=("probes", "write-latency"))
def k2(rows: Rows) -> Answer:
    """The page is found on A, B and D, and not on C."""
    probes = by_drive(rows["probes"])
    right = [found_kib(probes[drive], "clustered-page") == PAGES[drive] for drive in THREE]
    hidden = probes["ssd-c"]["found"]["clustered-page"]["verdict"] == "unknown"
    plots = []
    for row in rows["write-latency"]:
        x = [(at + 1) * row["step_kib"] * KIB for at in range(len(row["mean_ns"]))]
        plots.append(
            Plot(
                f"{title(row['drive'])}: Procedure 1, as Figure 4", "size of write requests",
                "mean latency with flush", [Line("write and flush", x, row["mean_ns"])],
                x_format="bytes", y_format="ns",
            )
        )  # fmt: skip
    return Answer(
        Verdict.of(all(right) and hidden, sum(right) >= 2),
        f"found {describe_findings(probes, 'clustered-page')}",
        plots=plots,
    )


@claim("K3", needs=("probes", "write-orders"))
def k3(rows: Rows) -> Answer:
    """The block is found within a factor of 2, and on A sequential and random writes meet there."""
    asked = {
        drive: row
        for drive, row in by_drive(rows["probes"]).items()
        if "clustered-block" in row["found"]
    }
    sizes = {drive: found_kib(row, "clustered-block") for drive, row in asked.items()}
    right = [
        size is not None and BLOCKS[drive] / 2 < size < BLOCKS[drive] * 2
        for drive, size in sizes.items()
    ]
    curves = {
        drive: [(one["size_kib"], one["random"] / one["sequential"]) for one in row["sizes"]]
        for drive, row in by_drive(rows["write-orders"]).items()
    }

    def meet(drive: str) -> bool:
        return all(
            (ratio >= 1 - LITTLE) == (size >= BLOCKS[drive]) for size, ratio in curves[drive]
        )

    at_block = ", ".join(
        f"{letter(drive)} {dict(curve)[BLOCKS[drive]]:.2f}"
        for drive, curve in curves.items()
        if BLOCKS[drive] in dict(curve)
    )
    meeting = [letter(drive) for drive in curves if meet(drive)]
    plots = []
    for row in rows["write-orders"]:
        x = [one["size_kib"] * KIB for one in row["sizes"]]
        lines = [
            Line(way, x, [one[way] for one in row["sizes"]]) for way in ("sequential", "random")
        ]
        plots.append(
            Plot(
                f"{title(row['drive'])}: Procedure 2, as Figure 5", "size of write requests", "bandwidth [MB/s]", lines,
                x_format="bytes", x_log=True,
            )
        )  # fmt: skip
    left_out = "" if "ssd-c" in asked else " (C is not asked in quick runs)"
    return Answer(
        Verdict.of(all(right) and meet("ssd-a"), all(right)),
        f"found {describe_findings(asked, 'clustered-block')}{left_out}; random over sequential bandwidth at that "
        f"size: {at_block}; they part below it and meet from it on only on {' and '.join(meeting) or 'none'}",
        plots=plots,
    )


def near(found: float | None, published: float | None, step: float = 1) -> bool:
    """Within a step of the size, or neither has one."""
    if found is None or published is None:
        return found is published
    return abs(found - published) <= step


def curves_of(row: Row, parameter: str, names: Sequence[tuple[str, str]], figure: str) -> Plot:
    """Latencies over sizes from the points that the probe tried."""
    curves = row["found"][parameter]["curves"]
    lines = [Line(name, *curves[series]) for series, name in names]
    return Plot(
        f"{title(row['drive'])}: as {figure}", "size of requests", "median latency", lines,
        x_format="bytes", y_format="ns", x_log=True, y_log=True,
    )  # fmt: skip


# A read is served by the buffer where Buffer takes less than this part of what NAND takes.
SERVED = 0.97


# A write no longer fits the buffer where Buffer takes so many times what a write one step smaller takes. A clustered
# page more takes twice as long, with a buffer or without one.
JUMP = 3


POINTS = 64  # of a line that is drawn


class AsPrinted:
    """What procedures 3 and 4 or 5 and 6, as they are printed, say of a drive's buffer."""

    def __init__(self, row: Row) -> None:
        self.row = row
        sizes, buffer = row["size_kib"], row["buffer"]
        self.step = sizes[1] - sizes[0]
        self.size_kib: float | None
        if row["way"] == "read":
            pairs = zip(sizes, row["nand"], buffer, strict=True)
            served = [size for size, nand, again in pairs if again < SERVED * nand]
            self.size_kib = max(served, default=None)
        else:
            jumps = (
                size for size, (a, b) in zip(sizes, pairwise(buffer), strict=False) if b > JUMP * a
            )
            self.size_kib = next(jumps, None)

    def plot(self, procedures: str) -> Plot:
        """Both curves, thinned."""
        every = max(1, len(self.row["size_kib"]) // POINTS)
        x = [size * KIB for size in self.row["size_kib"][::every]]
        return Plot(
            f"{title(self.row['drive'])}: {procedures} as printed", f"size of {self.row['way']} requests", "latency",
            [Line(label, x, self.row[name][::every]) for name, label in (("nand", "NAND"), ("buffer", "Buffer"))],
            x_format="bytes", y_format="ns",
        )  # fmt: skip


def as_printed(rows: Sequence[Row], way: str) -> dict[str, AsPrinted]:
    """By drive."""
    return {row["drive"]: AsPrinted(row) for row in rows if row["way"] == way}


def sizes_as_printed(found: Mapping[str, AsPrinted]) -> str:
    """What they found, in words."""
    return ", ".join(
        f"{letter(drive)} {'none' if each.size_kib is None else f'{each.size_kib:,} KiB'}"
        for drive, each in found.items()
    )


PROBED = "our probes, which narrow the size down"
PRINTED = "the procedures as printed, in steps of a size"


@claim("K4", needs=("probes", "procedures"))
def k4(rows: Rows) -> Answer:
    """The read buffer and its least request within a step of 1 KB."""
    probes = by_drive(rows["probes"])
    right = [
        row["found"][parameter]["verdict"] != "unknown"
        and near(found_kib(row, parameter), READ_BUFFERS[drive][at])
        for drive, row in probes.items()
        for at, parameter in enumerate(("read-buffer", "read-buffer-least"))
    ]
    least = ", ".join(
        f"{letter(drive)} from {describe_finding(row, 'read-buffer-least')}"
        for drive, row in probes.items()
        if found_kib(row, "read-buffer-least") is not None
    )
    names = (("first read", "NAND"), ("same read again", "Buffer"))
    printed = as_printed(rows["procedures"], "read")
    agree = [near(each.size_kib, READ_BUFFERS[d][0], each.step) for d, each in printed.items()]
    return Answer(
        Verdict.of(all(right), mostly(right)),
        f"found {describe_findings(probes, 'read-buffer')}; {least}. Procedures 3 and 4 as printed: "
        f"{sizes_as_printed(printed)}",
        plots=[
            *(curves_of(row, "read-buffer", names, "Figure 6") for row in probes.values()),
            *(each.plot("Procedures 3 and 4") for each in printed.values()),
        ],
        also={PRINTED: Verdict.of(all(agree), mostly(agree))},
        used=PROBED,
    )


@claim("K5", needs=("probes", "procedures"))
def k5(rows: Rows) -> Answer:
    """The write buffer within a step of 1 KB; on D none, or no conclusion."""
    probes = by_drive(rows["probes"])
    right = [
        near(found_kib(row, "write-buffer"), WRITE_BUFFERS[drive]) for drive, row in probes.items()
    ]
    names = (("buffer full", "NAND"), ("buffer emptied", "Buffer"))
    printed = as_printed(rows["procedures"], "write")
    agree = [near(each.size_kib, WRITE_BUFFERS[d], each.step) for d, each in printed.items()]
    return Answer(
        Verdict.of(all(right), mostly(right)),
        f"found {describe_findings(probes, 'write-buffer')}. Procedures 5 and 6 as printed: "
        f"{sizes_as_printed(printed)}",
        plots=[
            *(curves_of(row, "write-buffer", names, "Figure 7") for row in probes.values()),
            *(each.plot("Procedures 5 and 6") for each in printed.values()),
        ],
        also={PRINTED: Verdict.of(all(agree), mostly(agree))},
        used=PROBED,
    )


@claim("K6", needs="probes")
def k6(rows: Rows) -> Answer:
    """The block costs most and the page least on every drive, and the read buffer more than the write buffer."""
    spent = {
        drive: [row["drive_s"].get(name) for name in TIMED]
        for drive, row in by_drive(rows["probes"]).items()
    }
    timed = {drive: times for drive, times in spent.items() if None not in times}
    block = [times[1] == max(times) for times in timed.values()]
    page = [times[0] == min(times) for times in timed.values()]
    buffers = [times[2] > times[3] for times in timed.values()]
    x = list(range(len(TIMED)))
    lines = [Line(title(drive), x, times) for drive, times in spent.items()]
    lines += [
        Line(f"{title(drive)}, Table 2", x, times, paper=True) for drive, times in TABLE_2.items()
    ]
    return Answer(
        Verdict.of(all(block) and all(page) and all(buffers), all(block) and mostly(page)),
        f"block costliest on {sum(block)} of {len(timed)} drives, page cheapest on {sum(page)}, read buffer above "
        f"write buffer on {sum(buffers)}; page, block, read buffer, write buffer in seconds of the drive: "
        + "; ".join(
            f"{letter(drive)} {', '.join(f'{value:,.0f}' for value in times)}"
            for drive, times in timed.items()
        ),
        plots=[
            Plot(
                "Table 2", "parameter", "time on the drive's clock [s]", lines, y_log=True, points=True,
                ticks=list(zip(x, TIMED, strict=True)),
            )
        ],
    )  # fmt: skip


@claim("K7", needs=("probes", "other-kinds"))
def k7(rows: Rows) -> Answer:
    """Prefetching and the kind of the buffer are told as they are configured."""
    right, words = [], []
    for row in (*rows["probes"], *rows["other-kinds"]):
        found, buffers = row["found"], row["buffers"]
        ahead = int((buffers["read-buffer"]["prefetch"] or "0 B").split()[0])
        # A buffer that is none has a size of 0.
        held = int((buffers["write-buffer"]["size"] or "0 B").split()[0])
        kind = "cache" if buffers["write-buffer"]["kind"] == "cache" else "buffer"
        right += [
            found["prefetch"]["value"] == ("yes" if ahead else "no"),
            found["buffer-kind"]["value"] == (kind if held else None)
            and found["buffer-kind"]["verdict"] != "unknown",
        ]
        words.append(
            f"{letter(row['drive'])}{' changed' if row['settings'] else ''} {found['prefetch']['value']}, "
            f"{found['buffer-kind']['value'] or 'none'}"
        )
    return Answer(
        Verdict.of(all(right), mostly(right)),
        f"as configured in {sum(right)} of {len(right)}; prefetching and kind found: {'; '.join(words)}",
        tables=[
            Table(
                "Table 3",
                (
                    "drive",
                    "prefetching, printed",
                    "found",
                    "write buffer or cache, printed",
                    "found",
                ),
                [
                    (
                        title(row["drive"]),
                        "no",
                        str(row["found"]["prefetch"]["value"]),
                        "buffer",
                        str(row["found"]["buffer-kind"]["value"] or "none"),
                    )
                    for row in rows["probes"]
                ],
            )
        ],
    )


# Sections 5 and 6.
