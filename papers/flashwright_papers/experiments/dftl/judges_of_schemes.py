"""The rules of the DFTL paper's claims about what the schemes are: maps, costs, merges and recovery."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flashwright import Ssd
from flashwright_papers import Answer, Found, Table, Verdict, claim


@claim("G1")
def g1(found: Found) -> Answer:
    """Table 1."""
    texts, rows, fine = [], [], True
    for name, printed in (
        ("dftl-small-block", ("512 B", "16 B", 16, "41.75 us", "226.75 us", "2 ms")),
        ("dftl-large-block", ("2 KiB", "64 B", 128, "130.9 us", "405.9 us", "2 ms")),
    ):
        geometry, timing = (Ssd.named(name).config[key] for key in ("geometry", "timing"))
        page = 512 if geometry["page-size"] == "512 B" else 2048
        ours = (
            geometry["page-size"],
            geometry["spare-size"],
            geometry["pages-per-block"] * page // 1024,
            timing["read"],
            timing["program"],
            timing["erase"],
        )
        fine &= ours == printed
        rows += [
            (f"{name.split('-')[1]} block{who}", *map(str, values))
            for who, values in ((", printed", printed), (", ours", ours))
        ]
        texts.append(
            f"{name}: {ours[0]} + {ours[1]}, {ours[2]} KiB, {ours[3]}, {ours[4]}, {ours[5]}"
        )
    head = ("flash", "page", "spare area", "block, KiB", "read", "write", "erase")
    return Answer(Verdict.of(fine), "; ".join(texts) + ".", tables=[Table("Table 1", head, rows)])


@claim("G2", needs="maps")
def g2(found: Found) -> Answer:
    """Tables of page and block maps."""
    ram = {row["scheme"]: row["ram_bytes"] for row in found["maps"]}
    times = ram["page"] / ram["block"]
    return Answer(
        Verdict.of(ram["page"] == 32 << 20 and times == 64),
        f"For 16 GiB, page map {ram['page'] / 2**20:g} MiB, block map {times:g} times smaller.",
    )


@claim("G3", needs="table-on-flash")
def g3(found: Found) -> Answer:
    """DFTL's table on flash."""
    config = Ssd.named("dftl-large-block").config
    entry = config["ftl"]["entry-bytes"]
    spare = int(config["geometry"]["spare-size"].removesuffix(" B"))
    pages = int(found["table-on-flash"][0]["translation_pages"])
    in_page, in_spare = 2048 // entry, spare // entry
    return Answer(
        Verdict.of((in_page, in_spare, pages, pages * entry) == (512, 16, 1024, 4096)),
        f"{in_page} entries of {entry} B in a page, {in_spare} in its spare area; 1 GiB has {pages:,} translation "
        f"pages, {pages * 2 >> 10} MiB ({pages * 2048 / 2**30:.1%}), and a directory of {pages * entry >> 10} KiB.",
    )


@claim("G4", needs="figure-5")
def g4(found: Found) -> Answer:
    """The worked example."""
    row = found["figure-5"][0]
    # A miss with a dirty victim: the victim's page of the table is read and written elsewhere, then the page of the
    # miss is read, and the data.
    printed = "2Rt 1Pt 1R"
    fine = row["costs"][-1] == printed and row["cache"]["dirty_evictions"] == 3
    counts = {word.lstrip("0123456789"): word for word in row["costs"][-1].split()}
    text = ", ".join(
        f"{counts[kind].removesuffix(kind) if kind in counts else 0} {what}"
        for kind, what in (
            ("Rt", "translation pages read"),
            ("Pt", "written"),
            ("R", "data page read"),
        )
    )
    return Answer(
        Verdict.of(fine and not row["violations"]),
        f"Read of page 1280 that misses, with page 1 as dirty victim: {text}. The whole state was checked after each "
        "step.",
        "The golden trace dftl-figure-5, five requests",
    )


@claim("G5", needs=("comparison", "one-page"))
def g5(found: Found) -> Answer:
    """What a miss costs at worst."""
    runs = [
        run
        for row in found["comparison"]
        for run in row["runs"]
        if run["scheme"] == "dftl" and not run["error"]
    ]
    fine = all(
        run["miss_reads"] <= 2 * run["misses"] and run["miss_programs"] <= run["misses"]
        for run in runs
    )
    reads, programs = (
        max(run[f"miss_{kind}"] / run["misses"] for run in runs if run["misses"])
        for kind in ("reads", "programs")
    )
    most = found["one-page"][0]["operations_max"]
    return Answer(
        Verdict.of(fine and most <= 4),
        f"Over {len(runs)} runs at most {reads:.2f} reads and {programs:.2f} programs of translation pages a miss "
        f"(means of runs); at most {most} flash operations for a request of one page that cleans nothing.",
        "The comparison's workloads; uniform requests of one page",
    )


@claim("G6", needs="schemes")
def g6(found: Found) -> Answer:
    """Table 2."""
    printed = {
        "replacement": True,
        "bast": True,
        "fast": True,
        "superblock": True,
        "last": True,
        "dftl": False,
        "page": False,
    }
    ours = {row["scheme"]: bool(row["full"] or row["folds"]) for row in found["schemes"]}
    # The paper calls the gathering of a group's pages a full merge; our SuperBlock counts it as cleaning.
    gathered = {row["scheme"]: row["clean_programs"] for row in found["schemes"]}
    ours["superblock"] |= gathered["superblock"] > 0
    copied = {row["scheme"]: row["merge_programs"] for row in found["schemes"]}
    ram = {row["scheme"]: row["ram_bytes"] for row in found["schemes"]}
    other = [name for name, yes in printed.items() if ours[name] != yes]
    hybrids = max(ram[name] for name in ("bast", "fast", "superblock", "last"))
    value = (
        "Full merges in "
        + ", ".join(name for name, yes in ours.items() if yes)
        + "; none in "
        + ", ".join(name for name, yes in ours.items() if not yes)
        + f"; tables of 64 MiB: page map {ram['page'] / 1024:.0f} KiB, hybrids at most {hybrids / 1024:.1f} KiB, "
        f"replacement blocks {ram['replacement'] / 1024:.1f} KiB."
    )
    none = ours["dftl"] is ours["page"] is False and copied["dftl"] == copied["page"] == 0
    smaller = hybrids < ram["page"]
    return Answer(
        Verdict.of(not other and none and smaller, direction=none and smaller and len(other) == 1),
        value,
        "20,000 uniform overwrites of one page, full drive",
        tables=[
            Table(
                "Table 2: full merges",
                ("scheme", "printed", "ours", "bytes of tables for 64 MiB, ours"),
                [
                    (
                        name,
                        *("yes" if each else "no" for each in (yes, ours[name])),
                        f"{ram[name]:,}",
                    )
                    for name, yes in printed.items()
                ],
            )
        ],
    )


@claim("G7", needs="heads")
def g7(found: Found) -> Answer:
    """Table 3."""
    texts = [
        f"{row['workload']}: {row['kib']:.2f} KiB, {row['read_percent']:.1f} % reads, "
        f"{row['sequential_percent']:.1f} % sequential, {row['inter_arrival_ms']:.2f} ms between arrivals"
        for row in found["heads"]
    ]
    return Answer(
        Verdict.UNTESTABLE,
        (f"Heads: {'; '.join(texts)}" if texts else "No trace given")
        + ". The whole traces are not at hand.",
        "Heads of real traces" if texts else "",
        tables=[table_3(found["heads"])],
    )


# KB a request, per cent of reads, per cent that is sequential, ms between requests.
TABLE_3 = {
    "Financial": (4.38, 9.0, 2.0, 133.50),
    "Cello99": (5.03, 35.0, 1.0, 41.01),
    "TPC-H": (12.82, 95.0, 18.0, 155.56),
    "Web Search": (14.86, 99.0, 14.0, 9.97),
}


def table_3(heads: Sequence[Mapping[str, Any]]) -> Table:
    """What the paper prints, and the same of the heads of real traces that are there."""
    columns = ("kib", "read_percent", "sequential_percent", "inter_arrival_ms")
    rows = [(name, *(f"{value:g}" for value in row)) for name, row in TABLE_3.items()]
    rows += [
        (f"{row['workload']}, a head, ours", *(f"{row[column]:.2f}" for column in columns))
        for row in heads
    ]
    head = ("workload", "KB a request", "reads, %", "sequential, %", "ms between requests")
    return Table("Table 3", head, rows)


@claim("G25", needs="comparison")
def g25(found: Found) -> Answer:
    """No merges in DFTL."""
    runs = [
        run
        for row in found["comparison"]
        for run in row["runs"]
        if run["scheme"] == "dftl" and not run["error"]
    ]
    merges = sum(run["merge_operations"] for run in runs)
    whole = sum(run["full"] for run in runs)
    return Answer(
        Verdict.of(merges == 0),
        f"{merges:,.0f} operations of merges in {len(runs)} runs of DFTL; {whole:,.0f} cleans of a block without an "
        "invalid page.",
        "The comparison's workloads",
    )


@claim("G27")
def g27(found: Found) -> Answer:
    """Writes over reads."""

    def us(text: str) -> float:
        return float(text.removesuffix(" us"))

    times = []
    for name in ("dftl-large-block", "dftl-small-block"):
        timing = Ssd.named(name).config["timing"]
        times.append(us(timing["program"]) / us(timing["read"]))
    return Answer(
        Verdict.of(4 <= max(times) <= 5, direction=min(times) > 1),
        f"{times[0]:.1f} times (large blocks) and {times[1]:.1f} times (small blocks), by Table 1.",
    )
