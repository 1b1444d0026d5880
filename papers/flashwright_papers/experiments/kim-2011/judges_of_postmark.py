"""The claims of Kim et al. (2011) about Postmark: bandwidth, requests, what each scheduler gains (section 6)."""

from __future__ import annotations

from collections.abc import Sequence

from flashwright_papers import Answer, Line, Plot, Verdict, claim
from flashwright_papers import Found as Rows

from .judging import (
    BOTH,
    KIB,
    LITTLE,
    THREE,
    Found,
    Row,
    apply_rule,
    letter,
    mostly,
    per_cent,
    readings,
    title,
)
from .play import ALONE, CONFIGURATIONS, DRIVES, PAI, PAS, PASA
from .runs import MERGES

# Table 4: all requests, aligned, not aligned, at most 256 KB, with the printed per cent of the second to fourth.
TABLE_4 = {
    (8192, PAI): ((34788, 13310, 21478, 8121), (38.26, 61.74, 23.34)),
    (8192, PAS): ((59348, 20906, 38442, 59348), (35.22, 64.78, 100)),
    (8192, PASA): ((64834, 57371, 7463, 64834), (88.48, 11.52, 100)),
    (256, PAI): ((3197, 858, 2339, 3148), (26.84, 73.16, 98.46)),
    (256, PAS): ((2972, 1288, 1684, 2972), (43.33, 56.66, 100)),
    (256, PASA): ((4587, 2541, 2046, 4587), (55.39, 44.60, 100)),
}


def grade(*held: bool) -> Verdict:
    """All of what a claim says, some or nothing."""
    return Verdict.of(all(held), any(held))


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

    return apply_rule(
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
    return apply_rule(rows, rule, plots, more)


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

    return apply_rule(rows, rule, plots)


@claim("K12", needs=("postmark", "postmark-erased"))
def k12(rows: Rows) -> Answer:
    """NoPAS-PAI gains and loses, or changes little."""

    def rule(found: Found) -> tuple[Verdict, str]:
        table = [[found.gain(d, s, PAI) for s in found.sizes] for d in DRIVES]
        alone = [each for row in table for each in row]

        def both(points: Sequence[float]) -> bool:
            return min(points) < -LITTLE and max(points) > LITTLE

        by_size = any(both(row) for row in table)
        by_drive = any(both(column) for column in zip(*table, strict=True))
        return (
            Verdict.of(by_size and by_drive, direction=both(alone)),
            f"{100 * min(alone):+.1f} to {100 * max(alone):+.1f} %; a gain at {sum(g > 0 for g in alone)} and a loss "
            f"at {sum(g < 0 for g in alone)} of {len(alone)} points",
        )  # fmt: skip

    return apply_rule(rows, rule, lambda found: [gains(found, PAI, DRIVES, "Postmark: NoPAS-PAI")])


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
    return apply_rule(rows, rule, lambda found: bandwidths(found, ("ssd-c",)), more)


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
    return apply_rule(rows, rule, plots, more)


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

    return apply_rule(rows, rule, lambda found: [gains(found, PASA, DRIVES, "Postmark: PASA-PAI")])
