"""Chapter 1: the judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flashwright_papers import Answer, Found, Line, Plot, Verdict, claim

from . import drives_judge

Row = Mapping[str, Any]


def of(rows: Sequence[Row], **where: object) -> Row:
    """The row with these values."""
    return next(row for row in rows if all(row[key] == value for key, value in where.items()))


@claim("D1.4", needs="background-tables")
def d1_4(found: Found) -> Answer:
    """128 GB in pages of 2 KB, 16 B an entry."""
    row = of(found["background-tables"], scheme="page", entry_bytes=16)
    return Answer(
        Verdict.of(row["logical_pages"] == 2**26 and row["ram_bytes"] == 2**30),
        f"{row['logical_pages']:,} pages (2^26 is {2**26:,}); table of {row['ram_bytes']:,} B "
        f"({row['ram_bytes'] / 2**30:g} GiB)",
    )


@claim("D1.5", needs="background-tables")
def d1_5(found: Found) -> Answer:
    """The block map against the page map."""
    rows = [row for row in found["background-tables"] if row["entry_bytes"] == 4]
    pages = sorted({row["block_pages"] for row in rows})
    shares = [
        of(rows, scheme="block", block_pages=n)["ram_bytes"]
        / of(rows, scheme="page", block_pages=n)["ram_bytes"]
        for n in pages
    ]
    text = ", ".join(f"1/{1 / share:g} at N = {n}" for n, share in zip(pages, shares, strict=True))
    return Answer(
        Verdict.of(all(share * n == 1 for n, share in zip(pages, shares, strict=True))), text
    )


@claim("D1.6", needs="background-merges")
def d1_6(found: Found) -> Answer:
    """Erases of merges and conflicts."""
    rows = found["background-merges"]
    examples = [row for row in rows if "steps" in row]
    steps = [step for row in examples for step in row["steps"]]
    right = sum(step["expected"] == step["found"] for step in steps)
    merges = [
        step["found"]
        for row in examples
        if row["scheme"] == "bast"
        for step in row["steps"]
        if "Em" in step["found"]
    ]
    # Without copies a log took the place of its data block; a full merge copies all pages of a block.
    switch = {each["Em"] for each in merges if "Pm" not in each}
    full = {each["Em"] for each in merges if each.get("Pm") == 4}
    rewrite = {
        step["found"]["Em"]
        for row in examples
        if row["scheme"] == "block"
        for step in row["steps"]
        if step["found"].get("Pm") == 3
    }
    update = {bool(row["lone"]): max(row["erases"]) for row in rows if "lone" in row}
    return Answer(
        Verdict.of(
            right == len(steps)
            and (switch, full, rewrite) == ({1}, {2}, {1})
            and max(update.values()) == 2
        ),
        f"BAST: switch merge {describe_erases(switch)}, full merge {describe_erases(full)}; conflict in block mapping "
        f"{describe_erases(rewrite)}, with one update block {update[True]} where it can be completed in place and "
        f"{update[False]} where not; {right} of {len(steps)} requests of the worked examples cost what they must",
    )


def describe_erases(counts: set[int]) -> str:
    """Erases as text."""
    return " or ".join(f"{n} erase{'' if n == 1 else 's'}" for n in sorted(counts)) or "none"


@claim("D1.7", needs="background-tables")
def d1_7(found: Found) -> Answer:
    """Entries of a translation page."""
    rows = sorted(
        (row for row in found["background-tables"] if row["scheme"] == "dftl"),
        key=lambda row: row["logical_pages"],
    )
    held = [row["translation_pages"] == -(-row["logical_pages"] // 512) for row in rows]
    return Answer(
        Verdict.of(all(held) and rows[0]["logical_pages"] % 512 == 0),
        "; ".join(
            f"{row['translation_pages']:.0f} translation pages of 4 KiB hold {row['logical_pages']:,} entries of 8 B "
            f"({row['logical_pages'] / row['translation_pages']:g} each)"
            for row in rows
        ),
    )


@claim("D1.8", needs="background-clean-first")
def d1_8(found: Found) -> Answer:
    """CFLRU against LRU by share of writes."""
    rows = found["background-clean-first"]
    shares = sorted({row["write"] for row in rows})
    pairs = {
        share: (of(rows, manager="cflru", write=share), of(rows, manager="lru", write=share))
        for share in shares
    }
    ratios = [a["pages_destaged"] / b["pages_destaged"] for a, b in pairs.values()]
    cflru, lru = pairs[1.0]
    equal = all(cflru[key] == lru[key] for key in ("pages_destaged", "erases", "service_ms"))
    lines = [
        Line("pages written back", shares, ratios),
        Line(
            "mean service time", shares, [a["service_ms"] / b["service_ms"] for a, b in pairs.values()]
        ),
    ]  # fmt: skip
    return Answer(
        Verdict.of(equal and min(ratios) < 1, direction=abs(ratios[-1] - 1) < 0.01),
        f"writes only: {cflru['pages_destaged']:,} and {lru['pages_destaged']:,} pages written back, "
        f"{cflru['erases']:,} and {lru['erases']:,} erases; with {100 * shares[0]:.0f} % writes "
        f"{100 * (1 - ratios[0]):.0f} % fewer pages written back",
        plots=[
            Plot(
                "CFLRU over LRU by share of writes",
                "share of writes",
                "CFLRU / LRU",
                lines,
                x_format="share",
                levels=[("replacement cost cited, workload unknown: 0.74", 0.74)],
            )
        ],
    )


STAND_IN = " (stand-in)"


def times(one: Row, other: Row) -> float:
    """Ratio of response times; of service times where one of the two does not keep up with the arrivals."""
    key = "response_ms" if max(one["load"], other["load"]) < 0.98 else "service_ms"
    return float(one[key] / other[key])


@claim("D1.9", needs="background-buffers")
def d1_9(found: Found) -> Answer:
    """BPLRU against CFLRU and FAB."""
    rows = found["background-buffers"]
    names = list(dict.fromkeys(row["workload"] for row in rows))
    ratios = {
        (name, other): (
            of(rows, workload=name, manager="bplru")["erases"]
            / of(rows, workload=name, manager=other)["erases"],
            times(of(rows, workload=name, manager="bplru"), of(rows, workload=name, manager=other)),
        )
        for name in names
        for other in ("cflru", "fab")
    }
    decide = [value for (name, _), pair in ratios.items() if STAND_IN in name for value in pair]
    ahead = sum(value < 1 for value in decide)
    short = [name.removesuffix(STAND_IN) for name in names]
    return Answer(
        Verdict.of(ahead >= 0.8 * len(decide), direction=ahead > len(decide) / 2),
        f"{ahead} of {len(decide)} comparisons; BPLRU over CFLRU and FAB: "
        + "; ".join(
            f"{label} erases {ratios[name, 'cflru'][0]:.2f} and {ratios[name, 'fab'][0]:.2f}, time "
            f"{ratios[name, 'cflru'][1]:.2f} and {ratios[name, 'fab'][1]:.2f}"
            for label, name in zip(short, names, strict=True)
        ),
        workload=", ".join(short) + " (the first three synthetic stand-ins)",
        plots=[
            Plot(
                f"BPLRU over the other two: {what}",
                "workload",
                "ratio",
                [
                    Line(
                        f"over {other.upper()}",
                        range(len(names)),
                        [ratios[name, other][at] for name in names],
                    )
                    for other in ("cflru", "fab")
                ],
                ticks=list(enumerate(short)),
                levels=[("equal", 1.0)],
                points=True,
            )
            for at, what in enumerate(("erases", "response time"))
        ],
    )


@claim("D1.10", needs=("drive-fills", "drive-spare"))
def d1_10(found: Found) -> Answer:
    """The lowest level, as D4.2 has it."""
    return drives_judge.lowest(found)
