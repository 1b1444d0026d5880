"""The rules of the container-marking report's claims about traces (Tables III and IV)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flashwright_papers import Answer, Found, Line, Plot, Table, Verdict, claim

from .judging import MARKINGS, PER_LIST_USED
from .runs import EACH_LIST, FIFO, PER_LIST, TRACES, WINDOWED

# Table IV: FIFO, windowed greedy, container marking.
TABLE_IV = {
    "financial1": (4.22, 3.16, 2.12),
    "proj-0": (3.99, 1.89, 1.58),
    "src1-2": (4.10, 1.90, 1.78),
    "prxy-0": (4.62, 1.64, 1.33),
}


# Table III: requests, reads in percent, size of writes in pages of 4 KiB, milliseconds between arrivals.
TABLE_III = {
    "financial1": (5_334_987, 23.2, 1.30, 8.13),
    "proj-0": (4_224_524, 12.5, 9.53, 64.33),
    "src1-2": (1_907_773, 25.4, 7.31, 87.29),
    "prxy-0": (12_518_968, 3.1, 1.77, 39.32),
}


@claim("M13", needs="table-3")
def m13(found: Found) -> Answer:
    """Table III."""
    rows = {row["trace"]: row for row in found["table-3"]}
    texts = [
        f"{name}: {row['requests']:,} requests, {row['read_percent']:.1f} % reads, writes of {row['write_pages']:.2f} "
        f"pages, {row['inter_arrival_ms']:.2f} ms between arrivals"
        for name, row in rows.items()
    ]
    ours = (f"Traces and heads: {'; '.join(texts)}" if texts else "No trace given") + "."
    tables = [table_iii(found["table-3"])]
    if not TABLE_III.keys() <= rows.keys():
        return Answer(Verdict.UNTESTABLE, ours, "Heads of real traces, if any", tables=tables)

    def near(value: float, printed: float) -> bool:
        return abs(value / printed - 1) <= 0.02

    fine = {
        name: all(
            near(value, of_report)
            for value, of_report in zip(
                (
                    rows[name]["requests"],
                    rows[name]["read_percent"],
                    rows[name]["write_pages"],
                    rows[name]["inter_arrival_ms"],
                ),
                printed,
                strict=True,
            )
        )
        for name, printed in TABLE_III.items()
    }
    verdict = Verdict.of(all(fine.values()), direction=any(fine.values()))
    return Answer(verdict, ours, "The real traces", tables=tables)


def table_iii(rows: Sequence[Mapping[str, Any]]) -> Table:
    """What the report prints, and the same of the traces and heads that are there."""
    columns = ("read_percent", "write_pages", "inter_arrival_ms")
    cells = [
        (f"{name}, printed", f"{count:,}", *(f"{value:g}" for value in row))
        for name, (count, *row) in TABLE_III.items()
    ]
    cells += [
        (f"{row['trace']}, ours", f"{row['requests']:,}", *(f"{row[c]:.2f}" for c in columns))
        for row in rows
    ]
    head = ("trace", "requests", "reads, %", "mean size, pages of 4 KiB", "ms between arrivals")
    return Table("Table III", head, cells)


def table_iv(found: Found) -> tuple[dict[str, dict[str, float]], str]:
    """Amplification by trace and policy, and what was played."""
    taken: dict[str, dict[str, float]] = {}
    for row in found["traces"]:
        if not row["error"]:
            name = row.get("trace", "financial1")
            taken.setdefault(name, {})[row["policy"]] = row["write_amplification"]
    real = {row["trace"] for row in found["traces"] if "trace" in row}
    missing = [name for name in TRACES if name not in real]
    if not missing:
        return taken, "The real traces"
    played = [*sorted(real), *([] if "financial1" in real else ["stand-in for financial1"])]
    return taken, f"{', '.join(played)}; not at hand: {', '.join(missing)}"


@claim("M14", needs=("traces", "heads"))
def m14(found: Found) -> Answer:
    """Table IV."""
    taken, workload = table_iv(found)
    columns = (FIFO, WINDOWED, PER_LIST)
    orders = {
        name: row[FIFO] >= row[WINDOWED] > row[PER_LIST]
        for name, row in taken.items()
        if set(columns) <= row.keys()
    }
    close = all(
        abs(taken[name][policy] / printed - 1) <= 0.25
        for name in orders
        for policy, printed in zip(columns, TABLE_IV[name], strict=True)
    )
    real = {row["trace"] for row in found["traces"] if "trace" in row}
    complete = real == orders.keys() == TABLE_IV.keys()
    texts = [
        f"{name} " + " / ".join(f"{row[p]:.2f}" for p in (*columns, EACH_LIST) if p in row)
        for name, row in taken.items()
    ]
    heads: dict[str, list[float]] = {}
    for row in found["heads"]:
        heads.setdefault(row["trace"], []).append(row["write_amplification"])
    texts += [f"{name} {' / '.join(f'{x:.2f}' for x in values)}" for name, values in heads.items()]
    at = {name: float(number) for number, name in enumerate(TABLE_IV)}
    lines = [
        Line(policy, [at[name] for name in orders], [taken[name][policy] for name in orders])
        for policy in columns
    ]
    lines += [
        Line(
            f"report, {policy}",
            list(at.values()),
            [row[number] for row in TABLE_IV.values()],
            paper=True,
        )
        for number, policy in enumerate(columns)
    ]
    plot = Plot(
        "Table IV: write amplification of traces, u = 0.8",
        "trace",
        "write amplification",
        lines,
        x_format="index",
        ticks=[(number, name) for name, number in at.items()],
        points=True,
    )
    return Answer(
        Verdict.of(
            complete and all(orders.values()) and close,
            direction=bool(orders) and sum(orders.values()) >= 0.8 * len(orders),
        ),
        f"FIFO / windowed greedy / marking per list / each list: {'; '.join(texts)}.",
        workload,
        plots=[plot],
        used=PER_LIST_USED,
    )


@claim("M15", needs="traces")
def m15(found: Found) -> Answer:
    """Reductions on traces."""
    taken, workload = table_iv(found)
    cuts = {
        name: {reading: 1 - row[reading] / row[WINDOWED] for reading in MARKINGS if reading in row}
        for name, row in taken.items()
        if WINDOWED in row
    }
    mine = {name: row[PER_LIST] for name, row in cuts.items() if PER_LIST in row}
    real = {row["trace"] for row in found["traces"] if "trace" in row}
    most = mine.get("financial1", 0.0)
    complete = real == mine.keys() == TABLE_IV.keys()
    others = [cut for name, cut in mine.items() if name != "financial1"]
    met = complete and 0.2 <= most <= 0.45 and all(cut < most for cut in others)
    texts = [
        f"{name} " + ", ".join(f"-{100 * cut:.0f} % ({reading})" for reading, cut in row.items())
        for name, row in cuts.items()
    ]
    at = {name: float(number) for number, name in enumerate(TABLE_IV)}
    plot = Plot(
        "Table IV: marking below windowed greedy, u = 0.8",
        "trace",
        "reduction of write amplification",
        [
            Line("marking, per-list", [at[name] for name in mine], list(mine.values())),
            Line(
                "report",
                list(at.values()),
                [1 - row[2] / row[1] for row in TABLE_IV.values()],
                paper=True,
            ),
        ],
        x_format="index",
        y_format="share",
        ticks=[(number, name) for name, number in at.items()],
        points=True,
    )
    verdict = Verdict.of(met, direction=most > 0)
    ours = f"Against windowed greedy: {'; '.join(texts)}."
    return Answer(verdict, ours, workload, plots=[plot], used=PER_LIST_USED)
