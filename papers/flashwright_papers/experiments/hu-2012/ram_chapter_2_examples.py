"""Chapter 2, PUD-LRU: the judges of tables and worked examples (D2.1 to D2.8)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from flashwright import Ssd
from flashwright_papers import Answer, Found, Line, Plot, Table, Verdict, claim

from .ram_judge import Row, Runs, apply_rule, magnitude, ratio
from .ram_play import BLOCK_PAGES, FINANCIAL_1, FINANCIAL_2, PAGE_KIB

BLOCK_BYTES = BLOCK_PAGES * PAGE_KIB << 10


PUBLISHED_2_1 = {"erases": (22_908, 51_373), "response_ms": (3.9, 7.9)}  # BPLRU, page mapping


UPDATED = {FINANCIAL_1: 30, FINANCIAL_2: 40}  # percent of addresses updated more than once


# KB, writes a read, requests a second, percent updated more than once.
TABLE_2_2 = {
    FINANCIAL_1: (3.38, 3.31, 122, 30),
    FINANCIAL_2: (2.38, 0.24, 54, 40),
    "exchange": (12.5, 1.53, 611, 35),
    "build": (4.14, 41, 1980, 13),
    "msn": (22.52, 66.7, 106, 9),
    "tpc-e": (12.75, 83.9, 308, 1),
}
WHOLE_TRACES = (FINANCIAL_1, FINANCIAL_2)


def table_2_2(rows: Sequence[Row]) -> Table:
    """What the dissertation prints, and the same of the real traces that are there."""
    printed = [(trace, *(f"{value:g}" for value in row)) for trace, row in TABLE_2_2.items()]
    ours = [
        (
            f"{row['trace']}, ours{'' if row['whole'] else ' (a head)'}",
            f"{row['kib']:.2f}",
            f"{row['writes_a_read']:.2f}",
            f"{row['a_second']:.0f}",
            f"{row['written_thrice']:.0f} (written three times) to {row['written_twice']:.0f} (twice)",
        )
        for row in rows
    ]
    head = ("trace", "KB", "writes a read", "requests/s", "updated more than once, %")
    return Table("Table 2.2", head, [*printed, *ours])


@claim("D2.1", needs=("financial-1", "table-2.1"))
def d2_1(found: Found) -> Answer:
    """Table 2.1 as two ratios."""

    def rule(runs: Runs) -> tuple[str, Verdict]:
        at = next(ram for scheme, ram in runs.rows if scheme == "bplru" and ram != int(ram))
        erases, time = (runs.ratios("bplru", "page", m, [at])[at] for m in ("erases", "time"))
        b, p = runs.get("bplru", at), runs.get("page", 0)
        met = abs(erases - 0.446) <= 0.15 and abs(time - 0.49) <= 0.2
        text = (
            f"erases {b['erases']:,} over {p['erases']:,} = {ratio(erases)}, mean service "
            f"{b['service_ms']:.3g} over {p['service_ms']:.3g} ms, ratio of times {ratio(time)}"
        )
        return text, magnitude(runs, met, erases < 1 and time < 1)

    def plots(runs: Runs) -> list[Plot]:
        at = next(ram for scheme, ram in runs.rows if scheme == "bplru" and ram != int(ram))
        ours = [runs.get("bplru", at)["erases"], runs.get("page", 0)["erases"]]
        return [
            Plot(
                f"Table 2.1: erases, {runs.label}",
                "scheme",
                "erases",
                [
                    Line("ours", [0, 1], ours),
                    Line("dissertation", [0, 1], PUBLISHED_2_1["erases"], paper=True),
                ],
                ticks=[(0, "BPLRU over BAST"), (1, "page mapping")],
                y_format="count",
                y_log=True,
                points=True,
            )
        ]

    return apply_rule(found, rule, [FINANCIAL_1], plots=plots)


@claim("D2.2", needs="tables")
def d2_2(found: Found) -> Answer:
    """Bytes of the tables, as the schemes count them."""
    row = found["tables"][0]
    page, bast = row["page_4"] / 2**20, row["bast_4"] / 2**20
    return Answer(
        Verdict.of(page == 32 and abs(bast - 0.56) <= 0.02),
        f"page mapping {page:.2f} MiB, BAST {bast:.3f} MiB, {32 - bast:.2f} of 32 MiB are left",
    )


def describe_statistics(rows: Sequence[Row]) -> str:
    """What real traces hold, in the columns of table 2.2."""
    texts = [
        f"{'the whole of ' if row['whole'] else ''}{row['trace']}: {row['kib']:.2f} KiB, "
        f"{row['writes_a_read']:.2f} writes a read, {row['a_second']:.0f} requests/s, pages written at least "
        f"three times {row['written_thrice']:.0f} %, at least twice {row['written_twice']:.0f} %"
        for row in rows
    ]
    return "; ".join(texts) or "no real trace was given"


@claim("D2.3", needs="statistics")
def d2_3(found: Found) -> Answer:
    """Size and ratio of Financial 1 and 2, where both are there as a whole."""
    rows = found["statistics"]
    whole = {row["trace"]: row for row in rows if row["whole"]}
    text, tables = describe_statistics(rows), [table_2_2(rows)]
    if len(whole) < len(WHOLE_TRACES):
        return Answer(Verdict.UNTESTABLE, text, tables=tables)
    near = [
        abs(whole[trace][key] / TABLE_2_2[trace][at] - 1) <= 0.05
        for trace in WHOLE_TRACES
        for at, key in enumerate(("kib", "writes_a_read"))
    ]
    verdict = Verdict.of(all(near), direction=sum(near) > len(near) / 2)
    return Answer(verdict, text, tables=tables)


@claim("D2.4", needs="clusters")
def d2_4(found: Found) -> Answer:
    """How few blocks the first writes of Financial 1 gather in."""
    if not found["clusters"]:
        return Answer(Verdict.UNTESTABLE, "no real trace was given")
    row = found["clusters"][0]
    text = (
        f"of the writes among the first 5,000 requests of Financial 1, {100 * row['share_of_top']:.0f} % go to the "
        f"{row['top']} most written of {row['blocks']} blocks (1 %) and {100 * row['share_of_ten']:.0f} % to ten "
        "times as many"
    )
    dots = Plot(
        "Figure 2.1a: the first 5,000 requests of Financial 1",
        "request",
        "address (GiB)",
        [Line("requests", row["requests"], row["gib"])],
        x_format="count",
        points=True,
    )
    plot = Plot(
        "Figure 2.1a: writes among the first 5,000 requests of Financial 1",
        "blocks of 512 KiB, the most written first",
        "writes to them",
        [
            Line("Financial 1", row["share_of_blocks"], row["share_of_writes"]),
            Line("all blocks alike", [0, 1], [0, 1]),
        ],
        x_format="share",
        y_format="share",
    )
    return Answer(Verdict.UNTESTABLE, text, plots=[dots, plot])


@claim("D2.5", needs="statistics")
def d2_5(found: Found) -> Answer:
    """Addresses updated more than once, where whole traces are there."""
    rows = found["statistics"]
    whole = {row["trace"]: row for row in rows if row["whole"]}
    if len(whole) < len(UPDATED):
        return Answer(Verdict.UNTESTABLE, describe_statistics(rows))
    near = [
        min(abs(whole[trace][key] - share) for key in ("written_thrice", "written_twice")) <= 10
        for trace, share in UPDATED.items()
    ]
    return Answer(Verdict.of(all(near), direction=any(near)), describe_statistics(rows))


@claim("D2.6", needs="table-2.3")
def d2_6(found: Found) -> Answer:
    """Table 2.3: destages, victims, PUDs and the group of frequent blocks."""
    b, p = found["table-2.3"]
    right = (
        b["victims"] == [[4], [8], [12], [4]]
        and p["victims"] == [[0, 1, 2], [0, 3]]
        and (b["destages"], p["destages"]) == (4, 2)
        and (b["switch"], p["switch"]) == (b["erases"], p["erases"]) == (4, 2)
        and p["puds"] == [0, 1, 1]
        and p["frequent"] == 1
    )
    victims = [", ".join(str(each) for each in row["victims"]) for row in (b, p)]
    return Answer(
        Verdict.of(right),
        f"BPLRU destages {victims[0]}; PUD-LRU {victims[1]}: {b['destages']} against {p['destages']}, each "
        f"a switch merge. At PUD-LRU's first, three blocks have PUDs of "
        f"{', '.join(f'{pud:g}' for pud in p['puds'])} with 2 for the fourth, and {p['frequent']:g} of the 4 counts "
        "as frequently updated",
        tables=[
            Table(
                "Table 2.3: victims, in turn",
                ("manager", "printed", "ours"),
                [
                    ("BPLRU", "[4], [8], [12], [4]", victims[0]),
                    ("PUD-LRU", "[0, 1, 2], [0, 3]", victims[1]),
                ],
            )
        ],
    )


@claim("T2.4")
def t2_4(found: Found) -> Answer:
    """Table 2.4."""
    timing = Ssd.named("hu-2012").config["timing"]
    printed = {
        "read": ("20 us", "25 us"),
        "program": ("200 us", "200 us"),
        "erase": ("1.5 ms", "1.5 ms"),
    }
    ours = {kind: timing[kind] for kind in printed}
    return Answer(
        Verdict.of(all(ours[kind] == delay for kind, (_, delay) in printed.items())),
        ", ".join(f"{kind} {value}" for kind, value in ours.items()),
        tables=[
            Table(
                "Table 2.4",
                (
                    "operation",
                    "latency, printed",
                    "delay (of an erase the latency), printed",
                    "ours",
                ),
                [(kind, *printed[kind], ours[kind]) for kind in printed],
            )
        ],
    )


@claim("D2.7", needs="example-2.2.1")
def d2_7(found: Found) -> Answer:
    """PUDs of A and B, which are (2 + 5)/2 and (5.5 + 0)/2."""
    row = found["example-2.2.1"][0]
    a = row["left_below"] == 4 and row["left_above"] == 1
    b = row["frequent_above_b"] == row["frequent_below_b"] + 1 and 2.75 in row["puds"]
    return Answer(
        Verdict.of(a and b and row["puds"] == [0.5, 1, 1.5, 2, 2.75, 3, 3.5, 4, 5]),
        f"PUDs of the blocks, in order: {', '.join(f'{pud:g}' for pud in row['puds'])}, and 6 for the first X. "
        "3.5 is A's: its four pages leave while the threshold lies below it, one page beyond. 2.75 can only be "
        "B's: an X has half a whole number. So (2 + 5)/2 and (5.5 + 0)/2",
    )


@claim("D2.8", needs="counters")
def d2_8(found: Found) -> Answer:
    """Bytes of counters a block, from how many blocks fit into RAM with and without them."""
    row = found["counters"][0]
    page = row["ram_bytes"] // row["held"]
    counters = math.floor(row["ram_bytes"] / row["held_with_counters"] - page)
    share = counters / BLOCK_BYTES
    return Answer(
        Verdict.of(counters == 12 and f"{100 * share:.3f}" == "0.002"),
        f"{counters} B a block, {100 * share:.4f} % of it: 16 MiB hold {row['held']:,} single pages of different "
        f"blocks without counters and {row['held_with_counters']:,} with them",
    )


# ---- figures 2.3 to 2.7
