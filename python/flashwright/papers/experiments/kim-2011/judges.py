"""The claims of Kim et al. (2011), held against the runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from flashwright.papers import Answer, Line, Plot, Verdict, claim
from flashwright.papers import Found as Rows

from .runs import ALONE, CONFIGURATIONS, DRIVES, MERGES, NOOP, PAI, PAS, PASA, PROFILES

Row = Mapping[str, Any]

KIB = 1024
THREE = ("ssd-a", "ssd-b", "ssd-d")
BOTH = (PAS, PASA)
LITTLE = 0.05  # a change that counts as none
LARGE_KIB = 4096
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
# Table 4: all requests, aligned, not aligned, at most 256 KB, with the printed per cent of the second to fourth.
TABLE_4 = {
    (8192, PAI): ((34788, 13310, 21478, 8121), (38.26, 61.74, 23.34)),
    (8192, PAS): ((59348, 20906, 38442, 59348), (35.22, 64.78, 100)),
    (8192, PASA): ((64834, 57371, 7463, 64834), (88.48, 11.52, 100)),
    (256, PAI): ((3197, 858, 2339, 3148), (26.84, 73.16, 98.46)),
    (256, PAS): ((2972, 1288, 1684, 2972), (43.33, 56.66, 100)),
    (256, PASA): ((4587, 2541, 2046, 4587), (55.39, 44.60, 100)),
}


def letter(drive: str) -> str:
    """SSD-A as A."""
    return drive[-1].upper()


def title(drive: str) -> str:
    """As the paper writes it."""
    return drive.upper()


def per_cent(values: Iterable[float]) -> str:
    """Changes, rounded."""
    return ", ".join(f"{100 * value:+.0f}" for value in values)


def mostly(held: Sequence[bool]) -> bool:
    """An ordering holds at 80 % of the points."""
    return sum(held) >= 0.8 * len(held)


def grade(*held: bool) -> Verdict:
    """All of what a claim says, some or nothing."""
    return Verdict.of(all(held), any(held))


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


def told(row: Row, parameter: str) -> str:
    """A finding in words."""
    size = found_kib(row, parameter)
    if size is not None:
        return f"{size:,.6g} KiB"
    return "none" if row["found"][parameter]["verdict"] == "absent" else "can't tell"


def sizes_told(rows: Mapping[str, Row], parameter: str) -> str:
    """A finding of all drives."""
    return ", ".join(f"{letter(drive)} {told(row, parameter)}" for drive, row in rows.items())


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
        f"found {sizes_told(probes, 'clustered-page')}",
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
        f"found {sizes_told(asked, 'clustered-block')}{left_out}; random over sequential bandwidth at that "
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


@claim("K4", needs="probes")
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
        f"{letter(drive)} from {told(row, 'read-buffer-least')}"
        for drive, row in probes.items()
        if found_kib(row, "read-buffer-least") is not None
    )
    names = (("first read", "NAND"), ("same read again", "Buffer"))
    return Answer(
        Verdict.of(all(right), mostly(right)),
        f"found {sizes_told(probes, 'read-buffer')}; {least}",
        plots=[curves_of(row, "read-buffer", names, "Figure 6") for row in probes.values()],
    )


@claim("K5", needs="probes")
def k5(rows: Rows) -> Answer:
    """The write buffer within a step of 1 KB; on D none, or no conclusion."""
    probes = by_drive(rows["probes"])
    right = [
        near(found_kib(row, "write-buffer"), WRITE_BUFFERS[drive]) for drive, row in probes.items()
    ]
    names = (("buffer full", "NAND"), ("buffer emptied", "Buffer"))
    return Answer(
        Verdict.of(all(right), mostly(right)),
        f"found {sizes_told(probes, 'write-buffer')}",
        plots=[curves_of(row, "write-buffer", names, "Figure 7") for row in probes.values()],
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
    )


# Sections 5 and 6.


class Found:
    """The bandwidths of one reading: which requests merge, how much may be dirty, and what state the drive was in."""

    def __init__(
        self, postmark: Sequence[Row], filebench: Sequence[Row], merge: str, limits: str
    ) -> None:
        def kept(rows: Sequence[Row]) -> list[Row]:
            return [
                row
                for row in rows
                if row["merge"] in ("", merge) and row["limits"] == limits and not row["error"]
            ]

        self.postmark = {
            (row["drive"], row["size_kib"], row["configuration"]): row for row in kept(postmark)
        }
        self.filebench = {
            (row["drive"], row["load"], row["configuration"]): row for row in kept(filebench)
        }
        self.sizes = sorted({size for _, size, _ in self.postmark})
        self.large = [size for size in self.sizes if size >= LARGE_KIB]
        self.small = [size for size in self.sizes if size <= 512]

    def gain(self, drive: str, size: int, configuration: str, over: str = NOOP) -> float:
        """Change of Postmark's write bandwidth."""
        one, other = (
            self.postmark[drive, size, which]["write_mb_per_s"] for which in (configuration, over)
        )
        return float(one / other - 1)

    def bench(self, drive: str, load: str, configuration: str, over: str = NOOP) -> float:
        """Change of Filebench's bandwidth."""
        one, other = (
            self.filebench[drive, load, which]["overall_mb_per_s"]
            for which in (configuration, over)
        )
        return float(one / other - 1)


def readings(rows: Rows) -> dict[str, Found]:
    """The main reading, and the others that were played."""
    postmark, filebench = rows.get("postmark", ()), rows.get("filebench", ())
    found = {
        "main": Found(postmark, filebench, MERGES[0], "fitted"),
        "pending requests merge": Found(postmark, filebench, MERGES[1], "fitted"),
        "dirty limits of 64 bits": Found(postmark, filebench, MERGES[0], "64-bit"),
        # Filebench is not played on an erased drive: its files would be there without data.
        "erased drive": Found(rows.get("postmark-erased", ()), (), MERGES[0], "fitted"),
    }
    # PAI is in every configuration but one, which has no reading.
    played = {
        name: each
        for name, each in found.items()
        if any(key[2] == PAI for key in (*each.postmark, *each.filebench))
    }
    assert "main" in played
    return played


def judged(
    rows: Rows,
    rule: Callable[[Found], tuple[Verdict, str]],
    plots: Callable[[Found], Sequence[Plot]],
    more: str = "",
) -> Answer:
    """A rule under the main reading, with its verdicts under the others beside."""
    main, *others = readings(rows).items()
    verdict, ours = rule(main[1])
    beside = "; ".join(f"{name}: {rule(found)[0]}" for name, found in others)
    text = ". ".join(part for part in (ours, more, beside and f"Other readings: {beside}") if part)
    return Answer(verdict, text, plots=plots(main[1]))


def bandwidths(found: Found, drives: Sequence[str]) -> list[Plot]:
    """Figure 9."""
    x = [size * KIB for size in found.sizes]
    return [
        Plot(
            f"{title(drive)}: as Figure 9", "file size", "write bandwidth [MB/s]",
            [
                Line(c, x, [found.postmark[drive, size, c]["write_mb_per_s"] for size in found.sizes])
                for c in CONFIGURATIONS
            ],
            x_format="bytes", x_log=True,
        )
        for drive in drives
    ]  # fmt: skip


def gains(found: Found, configuration: str, drives: Sequence[str], heading: str) -> Plot:
    """Changes of Postmark's write bandwidth over NoPAS-NOOP."""
    x = [size * KIB for size in found.sizes]
    return Plot(
        heading, "file size", f"write bandwidth of {configuration} over NoPAS-NOOP",
        [
            Line(title(drive), x, [1 + found.gain(drive, size, configuration) for size in found.sizes])
            for drive in drives
        ],
        x_format="bytes", x_log=True, levels=[("NoPAS-NOOP", 1.0)],
    )  # fmt: skip


@claim("K9", needs=("postmark", "postmark-erased", "postmark-timeout"))
def k9(rows: Rows) -> Answer:
    """The sign at 4 and 8 MB, at most points or at more than half, and growth with the file size, on A, B and D."""

    def rule(found: Found) -> tuple[Verdict, str]:
        signs = [(d, found.gain(d, s, c) > 0) for d in THREE for s in found.large for c in BOTH]

        def mean(drive: str, sizes: Sequence[int], configuration: str) -> float:
            return sum(found.gain(drive, size, configuration) for size in sizes) / len(sizes)

        growth = [mean(d, found.large, c) > mean(d, found.small, c) for d in THREE for c in BOTH]
        top = found.sizes[-1]
        above = [held for _, held in signs]
        each = ", ".join(f"{letter(d)} {sum(held for of, held in signs if of == d)}" for d in THREE)
        return (
            Verdict.of(
                mostly(above) and mostly(growth), 2 * sum(above) > len(above) and mostly(growth)
            ),
            f"above NoPAS-NOOP at {sum(above)} of {len(above)} points from 4 MB on ({each}); grows in "
            f"{sum(growth)} of {len(growth)}; at 8 MB PAS-PAI {per_cent(found.gain(d, top, PAS) for d in THREE)} % and "
            f"PASA-PAI {per_cent(found.gain(d, top, PASA) for d in THREE)} % (A, B, D)",
        )  # fmt: skip

    return judged(
        rows,
        rule,
        lambda found: bandwidths(found, THREE),
        timeouts(rows["postmark-timeout"]),
    )


def timeouts(rows: Sequence[Row]) -> str:
    """What NoPAS-PAI's timeout does to small files, in words."""
    small = min(row["size_kib"] for row in rows)
    found = sorted(
        (row["timeout_ms"], row["write_mb_per_s"])
        for row in rows
        if row["configuration"] == PAI and row["size_kib"] == small
    )
    return (
        f"A, {small} KB, NoPAS-PAI with a timeout of {', '.join(str(ms) for ms, _ in found)} ms: "
        f"{', '.join(f'{value:.0f}' for _, value in found)} MB/s"
    )


@claim("K10", needs=("postmark", "postmark-erased", "postmark-requests"))
def k10(rows: Rows) -> Answer:
    """The order on A with 8 MB, and 20 +- 15 % over NoPAS-PAI."""

    def rule(found: Found) -> tuple[Verdict, str]:
        top = found.sizes[-1]
        pai, pas, pasa = (found.postmark["ssd-a", top, c]["write_mb_per_s"] for c in (PAI, *BOTH))
        order = pasa > pas > pai
        return (
            Verdict.of(order and 0.05 <= pasa / pai - 1 <= 0.35, order),
            f"NoPAS-PAI {pai:.1f}, PAS-PAI {pas:.1f}, PASA-PAI {pasa:.1f} MB/s: PASA {100 * (pasa / pas - 1):+.0f} % "
            f"and {100 * (pasa / pai - 1):+.0f} %",
        )  # fmt: skip

    def plots(found: Found) -> list[Plot]:
        x = list(range(3))
        values = [
            found.postmark["ssd-a", found.sizes[-1], c]["write_mb_per_s"] for c in (PAI, *BOTH)
        ]
        return [
            Plot(
                "SSD-A, files of 8 MB", "configuration", "write bandwidth over NoPAS-PAI",
                [
                    Line("here", x, [value / values[0] for value in values]),
                    # PASA 20 % above NoPAS and 5 % above PAS.
                    Line("section 6.2", x, [1.0, 1.2 / 1.05, 1.2], paper=True),
                ],
                ticks=list(enumerate((PAI, *BOTH))), points=True,
            )
        ]  # fmt: skip

    large = {
        row["configuration"]: row["write_mb_per_s"]
        for row in rows["postmark-requests"]
        if row["write_buffer"] and row["size_kib"] == max(r["size_kib"] for r in rows["postmark"])
    }
    more = f"With a buffer taken for 256 KiB: PAS-PAI {large[PAS]:.1f}, PASA-PAI {large[PASA]:.1f}"
    return judged(rows, rule, plots, more)


@claim("K11", needs=("postmark", "postmark-erased"))
def k11(rows: Rows) -> Answer:
    """The largest gain over sizes and drives is positive and under 60 %."""

    def rule(found: Found) -> tuple[Verdict, str]:
        every = {
            (d, s, c): found.gain(d, s, c)
            for d in DRIVES
            for s in found.sizes
            for c in (PAI, *BOTH)
        }
        best = max(every, key=lambda at: every[at])
        return (
            Verdict.of(0 < every[best] < 0.6, every[best] > 0),
            f"{100 * every[best]:+.0f} % ({title(best[0])}, {best[1]:,} KB, {best[2]})",
        )  # fmt: skip

    def plots(found: Found) -> list[Plot]:
        plot = gains(found, PASA, DRIVES, "Postmark: PASA-PAI")
        return [
            Plot(
                plot.title, plot.x, plot.y, plot.lines, x_format="bytes", x_log=True,
                levels=[*plot.levels, ("up to 24 %", 1.24)],
            )
        ]  # fmt: skip

    return judged(rows, rule, plots)


@claim("K12", needs=("postmark", "postmark-erased"))
def k12(rows: Rows) -> Answer:
    """NoPAS-PAI gains and loses, or changes little."""

    def rule(found: Found) -> tuple[Verdict, str]:
        alone = [found.gain(d, s, PAI) for d in DRIVES for s in found.sizes]
        return (
            Verdict.of(min(alone) < 0 < max(alone) or max(map(abs, alone)) <= LITTLE),
            f"{100 * min(alone):+.1f} to {100 * max(alone):+.1f} %; a gain at {sum(g > 0 for g in alone)} and a loss "
            f"at {sum(g < 0 for g in alone)} of {len(alone)} points",
        )  # fmt: skip

    return judged(rows, rule, lambda found: [gains(found, PAI, DRIVES, "Postmark: NoPAS-PAI")])


@claim("K13", needs=("postmark", "postmark-erased", "postmark-entry"))
def k13(rows: Rows) -> Answer:
    """C: within 10 % for large files, gains up to 1 MB."""

    def rule(found: Found) -> tuple[Verdict, str]:
        large = [found.gain("ssd-c", s, c) for s in found.large for c in BOTH]
        small = [found.gain("ssd-c", s, c) for s in found.sizes if s <= 1024 for c in BOTH]
        return (
            grade(max(map(abs, large)) <= 2 * LITTLE, mostly([gain > 0 for gain in small])),
            f"{per_cent((min(small),))} to {per_cent((max(small),))} % up to 1 MB, {per_cent((min(large),))} to "
            f"{per_cent((max(large),))} % from 4 MB on",
        )  # fmt: skip

    entry = Found(rows["postmark-entry"], (), MERGES[0], "fitted")
    more = (
        "With a buffer whose room is freed page by page, PASA-PAI gains "
        f"{per_cent(entry.gain('ssd-c', size, PASA) for size in entry.sizes)} % with files of "
        f"{', '.join(f'{size:,}' for size in entry.sizes)} KB"
    )
    return judged(rows, rule, lambda found: bandwidths(found, ("ssd-c",)), more)


def composition(row: Row) -> str:
    """A line of Table 4."""
    share = 100 / row["requests"]
    return (
        f"{row['requests']:,} ({share * row['aligned_at_start']:.0f} % aligned at the start, "
        f"{share * row['aligned_at_both_ends']:.0f} % at both ends)"
    )


def table_4_adds_up() -> str:
    """Whether Table 4 agrees with itself, in words."""
    sums = sum(aligned + other == every for (every, aligned, other, _), _ in TABLE_4.values())
    off = max(
        abs(100 * part / counts[0] - printed)
        for counts, shares in TABLE_4.values()
        for part, printed in zip(counts[1:], shares, strict=True)
    )
    return (
        f"Aligned and other requests add up in {sums} of {len(TABLE_4)} lines of Table 4, its printed shares are at "
        f"most {off:.3f} points off"
    )  # fmt: skip


@claim("K14", needs=("postmark", "postmark-erased", "postmark-requests"))
def k14(rows: Rows) -> Answer:
    """How the numbers of requests grow on A with 8 MB, and how many begin at a clustered page."""

    def rule(found: Found) -> tuple[Verdict, str]:
        of = {c: found.postmark["ssd-a", found.sizes[-1], c] for c in (PAI, *BOTH)}
        ratios = [of[c]["requests"] / of[PAI]["requests"] for c in BOTH]
        shares = [row["aligned_at_start"] / row["requests"] for row in of.values()]
        published = [TABLE_4[8192, c][0][0] / TABLE_4[8192, PAI][0][0] for c in BOTH]
        counts = [
            abs(ours / theirs - 1) <= 0.25 for ours, theirs in zip(ratios, published, strict=True)
        ]
        order = ratios[1] > ratios[0] > 1 and shares[2] > max(shares[:2])
        return (
            Verdict.of(
                all(counts) and shares[2] >= 0.8 and all(0.3 <= share <= 0.45 for share in shares[:2]),
                order,
            ),
            f"x{ratios[0]:.2f} and x{ratios[1]:.2f} of NoPAS; NoPAS {composition(of[PAI])}, PAS {composition(of[PAS])}"
            f", PASA {composition(of[PASA])}",
        )  # fmt: skip

    def plots(found: Found) -> list[Plot]:
        keys = [key for key in TABLE_4 if key[0] in found.sizes]
        x = list(range(len(keys)))
        of = [found.postmark["ssd-a", *key] for key in keys]
        return [
            Plot(
                "SSD-A: Table 4", "files and configuration", "requests",
                [
                    Line("all", x, [row["requests"] for row in of]),
                    Line("aligned at the start", x, [row["aligned_at_start"] for row in of]),
                    Line("all, Table 4", x, [TABLE_4[key][0][0] for key in keys], paper=True),
                    Line("aligned, Table 4", x, [TABLE_4[key][0][1] for key in keys], paper=True),
                ],
                y_format="count", y_log=True, points=True,
                ticks=[(at, f"{size // 1024} MB {c}" if size >= 1024 else f"{size} KB {c}")
                       for at, (size, c) in enumerate(keys)],
            )
        ]  # fmt: skip

    main = readings(rows)["main"]
    small = [main.postmark["ssd-a", main.sizes[0], c]["requests"] for c in (PAI, *BOTH)]
    others = [row for row in rows["postmark-requests"] if row["size_kib"] == main.sizes[0]]
    low = next(r for r in others if r["limits"] == "low" and r["configuration"] == PAI)
    alone = next(
        r["requests"]
        for r in rows["postmark-requests"]
        if r["configuration"] == ALONE and r["size_kib"] == main.sizes[-1]
    )
    more = (
        f"256 KB: {', '.join(f'{count:,}' for count in small)}; with a 32-bit kernel's dirty limits NoPAS "
        f"{low['requests']:,}. PAI with no block layer above it, 8 MB: {alone:,}. {table_4_adds_up()}"
    )
    return judged(rows, rule, plots, more)


@claim("K15")
def k15(rows: Rows) -> Answer:
    """171 and 186 percent are ratios of Table 4's counts."""
    nopas, *others = (TABLE_4[8192, c][0][0] for c in (PAI, *BOTH))
    ratios = [count / nopas for count in others]
    return Answer(
        Verdict.of([round(100 * ratio) for ratio in ratios] == [171, 186]),
        f"PAS {ratios[0]:.3f} and PASA {ratios[1]:.3f} times NoPAS by the table's counts: increases of "
        f"{100 * (ratios[0] - 1):.0f} and {100 * (ratios[1] - 1):.0f} %",
    )


def figure_10(found: Found, configurations: Sequence[str]) -> list[Plot]:
    """Filebench, normalised to NoPAS-NOOP."""
    x = list(range(len(DRIVES)))
    return [
        Plot(
            f"Filebench, {load}: as Figure 10", "drive", "bandwidth over NoPAS-NOOP",
            [Line(c, x, [1 + found.bench(drive, load, c) for drive in DRIVES]) for c in configurations],
            ticks=[(at, title(drive)) for at, drive in enumerate(DRIVES)],
            levels=[("NoPAS-NOOP", 1.0)], points=True,
        )
        for load in PROFILES
    ]  # fmt: skip


def points_of(found: Found, configuration: str) -> dict[tuple[str, str], float]:
    """Gains of a configuration by drive and profile."""
    return {(d, load): found.bench(d, load, configuration) for d in DRIVES for load in PROFILES}


@claim("K16", needs="filebench")
def k16(rows: Rows) -> Answer:
    """The sign of NoPAS-PAI on all drives and profiles."""

    def rule(found: Found) -> tuple[Verdict, str]:
        over = points_of(found, PAI)
        signs = [gain > 0 for gain in over.values()]
        by_load = "; ".join(
            f"{load} {per_cent(over[d, load] for d in DRIVES)} %" for load in PROFILES
        )
        return (
            Verdict.of(mostly(signs), 2 * sum(signs) > len(signs)),
            f"{by_load} (A to D); above at {sum(signs)} of {len(signs)} points",
        )

    return judged(rows, rule, lambda found: figure_10(found, (PAI,)))


@claim("K17", needs="filebench")
def k17(rows: Rows) -> Answer:
    """PAS or PASA improve on NoPAS-PAI but on C, most in OLTP."""

    def rule(found: Found) -> tuple[Verdict, str]:
        further = [
            max(found.bench(d, load, c, PAI) for c in BOTH) > 0 for d in THREE for load in PROFILES
        ]
        still = [
            max(found.bench("ssd-c", load, c, PAI) for c in BOTH) <= 2 * LITTLE for load in PROFILES
        ]
        peaks = {
            d: max(PROFILES, key=lambda load, d=d: max(found.bench(d, load, c) for c in BOTH))
            for d in THREE
        }
        best = "; ".join(
            f"{load} {per_cent(max(found.bench(d, load, c) for c in BOTH) for d in DRIVES)} %"
            for load in PROFILES
        )
        return (
            Verdict.of(
                mostly(further) and mostly(still) and all(load == "oltp" for load in peaks.values()),
                2 * sum(further) > len(further) and mostly(still),
            ),
            f"above NoPAS-PAI at {sum(further)} of {len(further)} points of A, B, D; on C more than 10 % above at "
            f"{len(still) - sum(still)} of {len(still)}; better of both over NoPAS-NOOP: {best} (A to D); largest in "
            + ", ".join(f"{load} ({letter(d)})" for d, load in peaks.items()),
        )  # fmt: skip

    return judged(rows, rule, lambda found: figure_10(found, BOTH))


@claim("K18", needs=("filebench", "filebench-oltp"))
def k18(rows: Rows) -> Answer:
    """The gain of PASA-PAI on D with OLTP, read as an increase or as a normalised bandwidth."""

    def rule(found: Found) -> tuple[Verdict, str]:
        over = {c: points_of(found, c) for c in BOTH}
        d = over[PASA]["ssd-d", "oltp"]
        most, at = max((gain, (c, key)) for c in BOTH for key, gain in over[c].items())
        return (
            # The band of section 10: 0.3 of the percentage, for either reading of it.
            Verdict.of(any(abs(d - said) <= 0.3 * said for said in (2.21, 3.21)), d > LITTLE),
            f"D, OLTP, PASA-PAI {100 * d:+.0f} %; most {100 * most:+.0f} % ({title(at[1][0])}, {at[1][1]}, {at[0]})",
        )  # fmt: skip

    larger = {
        (row["drive"], row["io"], row["configuration"]): row["overall_mb_per_s"]
        for row in rows["filebench-oltp"]
        if not row["error"]
    }
    sizes = dict.fromkeys(io for _, io, _ in larger)
    more = "OLTP with larger requests, PASA-PAI: " + "; ".join(
        f"{io.replace('iB', ' iB').replace('K i', 'Ki').replace('M i', 'Mi')} "
        + ", ".join(
            f"{letter(d)} {per_cent((larger[d, io, PASA] / larger[d, io, NOOP] - 1,))} %"
            for d in ("ssd-a", "ssd-d")
        )
        for io in sizes
    )

    def plots(found: Found) -> list[Plot]:
        oltp = figure_10(found, tuple(CONFIGURATIONS))[-1]
        return [
            Plot(
                oltp.title, oltp.x, oltp.y, oltp.lines, ticks=oltp.ticks, points=True,
                levels=[*oltp.levels, ("321 % as normalised bandwidth", 3.21)],
            )
        ]  # fmt: skip

    return judged(rows, rule, plots, more)


@claim("K19", needs=("postmark", "postmark-erased"))
def k19(rows: Rows) -> Answer:
    """More at the largest size than at the smallest, and few points where both lose."""

    def rule(found: Found) -> tuple[Verdict, str]:
        first, top = found.sizes[0], found.sizes[-1]
        slopes = [d for d in THREE if found.gain(d, top, PASA) > found.gain(d, first, PASA)]
        points = [(d, s) for d in DRIVES for s in found.sizes]
        losses = sum(all(found.gain(d, s, c) < -LITTLE for c in BOTH) for d, s in points)
        return (
            grade(len(slopes) == len(THREE), losses <= 0.2 * len(points)),
            f"PASA-PAI gains more at the largest size on {', '.join(map(letter, slopes)) or 'none'} of A, B, D; PAS "
            f"and PASA both lose more than 5 % at {losses} of {len(points)} points",
        )  # fmt: skip

    return judged(rows, rule, lambda found: [gains(found, PASA, DRIVES, "Postmark: PASA-PAI")])
