"""The claims of Kim et al. (2011): their judges on rows made by hand, and one run of each kind."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from itertools import product
from typing import Any

import pytest
from judging import together, verdict_of

from flashwright_papers import Answer, Setting, Verdict, papers

PAPER = papers()["kim-2011"]
judges: Any = together("kim_2011", "play", "judging", "judges_of_drives", "judges_of_postmark")
runs: Any = together("kim_2011", "play", "runs")
Rows = dict[str, list[dict[str, Any]]]
GOOD, DIRECTION, NOT = Verdict.REPRODUCED, Verdict.DIRECTION, Verdict.NOT


def verdict(name: str, rows: Mapping[str, Any]) -> Verdict:
    return verdict_of(PAPER, name, rows)


def test_every_claim_is_there() -> None:
    assert {each.id for each in PAPER.claims} == {f"K{number}" for number in range(1, 21)}
    assert {each.id for each in PAPER.claims if each.verdict} == {"K8", "K20"}
    # What may differ has its paragraph.
    met = {"K2", "K4", "K12", "K15"}
    assert {each.id for each in PAPER.claims if not each.why} == met


@pytest.mark.parametrize("quick", [True, False])
def test_every_run_can_be_asked_for(quick: bool) -> None:
    for part in PAPER.parts.values():
        jobs = part.jobs(Setting(quick))
        assert jobs
        asked = [(job.function.__name__, str(job.arguments)) for job in jobs]
        assert len(set(asked)) == len(asked), part.name


def test_what_is_left_open_reaches_the_runs() -> None:
    given: Any = {"timeout": 1, "idle-dispatch": "on", "state": "empty", "oltp-io": "1MiB"}
    assert set(given) == {each.name for each in PAPER.open}
    searched = Setting(given=given, divisor=PAPER.search_divisor)
    for job in runs.postmark_jobs(searched):
        assert {
            "timeout_ms": 1,
            "idle_dispatch": True,
            "precondition": "empty",
        }.items() <= job.arguments.items()
    for job in runs.filebench_jobs(searched):
        assert ("io" in job.arguments) == (job.arguments["load"] == "oltp")
        assert job.arguments["idle_dispatch"] and "precondition" not in job.arguments
    # What is taken is no other run, and a search is as short as a quick run.
    for name in ("postmark", "filebench"):
        short = [job.arguments for job in PAPER.parts[name].jobs(Setting(quick=True))]
        small = [job.arguments for job in PAPER.parts[name].jobs(Setting(divisor=50))]
        assert small == short


def table_1() -> Rows:
    rows = [
        {"drive": drive, "span": 1.0} | dict(zip(judges.WAYS, values, strict=True))
        for drive, values in judges.TABLE_1.items()
    ]
    return {"table-1": [*rows, rows[2] | {"span": 0.25}]}


def test_table_1_takes_all_of_it() -> None:
    rows = table_1()
    assert verdict("K1", rows) is GOOD
    rows["table-1"][0]["random write"] *= 1.3
    assert verdict("K1", rows) is DIRECTION
    for row, factor in zip(rows["table-1"], (4, 0.25, 0.1, 9, 0.1), strict=True):
        for way in judges.WAYS:
            row[way] *= factor
    assert verdict("K1", rows) is NOT


def probed(drive: str, settings: Mapping[str, str] = {}) -> dict[str, Any]:
    read, least = judges.READ_BUFFERS[drive]
    write = judges.WRITE_BUFFERS[drive]
    cache, ahead = "cache" in str(settings), "prefetch" in str(settings)

    def found(size_kib: float | None) -> dict[str, Any]:
        curves = {
            name: [[1024.0, 2048.0], [1e5, 2e5]]
            for name in ("first read", "same read again", "buffer full", "buffer emptied")
        }
        value = None if size_kib is None else size_kib * 1024
        return {"verdict": "found" if value else "absent", "value": value, "curves": curves}

    kind = ("cache" if cache else "buffer") if write else None
    findings = {
        "clustered-page": found(judges.PAGES[drive]),
        "clustered-block": found(judges.BLOCKS[drive]),
        "read-buffer": found(read),
        "read-buffer-least": found(least),
        "write-buffer": found(write),
        "prefetch": {"verdict": "found", "value": "yes" if ahead else "no"},
        "buffer-kind": {"verdict": "found" if kind else "absent", "value": kind},
    }
    if drive == "ssd-c":
        findings["clustered-page"] |= {"verdict": "unknown", "value": None}
    return {
        "drive": drive,
        "settings": dict(settings),
        "buffers": {
            "read-buffer": {"prefetch": "128 KiB" if ahead else "0 B"},
            "write-buffer": {"size": f"{write or 0} KiB", "kind": "cache" if cache else "fifo"},
        },
        "found": findings,
        "drive_s": dict(zip(judges.TIMED, judges.TABLE_2[drive], strict=True)),
    }


def as_printed(drive: str, way: str, buffer_kib: float | None) -> dict[str, Any]:
    """Latencies over sizes of a drive with such a buffer, whose pages of 16 KiB cost twice as much the first time."""
    sizes = list(range(8, 4097, 8))
    nand = [200.0 + size for size in sizes]
    held = [buffer_kib is not None and size <= buffer_kib for size in sizes]
    if way == "read":
        buffer = [0.5 * each if h else each for each, h in zip(nand, held, strict=True)]
    else:
        buffer = [0.1 * size if h else 200.0 + size for size, h in zip(sizes, held, strict=True)]
    row = {"drive": drive, "way": way, "size_kib": sizes, "nand": nand, "buffer": buffer}
    return row | {"drive_s": 1.0}


def section_4() -> Rows:
    ratios = ((0.5, 0.5), (1, 1.0), (2, 1.0))
    return {
        "probes": [probed(drive) for drive in judges.DRIVES],
        "other-kinds": [probed(drive, runs.OTHER_KINDS[drive]) for drive in judges.DRIVES],
        "procedures": [
            as_printed(drive, way, size)
            for drive in judges.DRIVES
            for way, size in (
                ("read", judges.READ_BUFFERS[drive][0]),
                ("write", judges.WRITE_BUFFERS[drive]),
            )
        ],
        "write-latency": [{"drive": "ssd-a", "step_kib": 2, "mean_ns": [1e5, 2e5]}],
        "write-orders": [
            {
                "drive": drive,
                "sizes": [
                    {"size_kib": part * judges.BLOCKS[drive], "sequential": 80.0, "random": 80 * r}
                    for part, r in ratios
                ],
            }
            for drive in judges.DRIVES
        ],
    }


@pytest.mark.parametrize("name", ["K2", "K3", "K4", "K5", "K6", "K7"])
def test_drives_found_as_the_paper_has_them_reproduce_it(name: str) -> None:
    assert verdict(name, section_4()) is GOOD


def test_a_parameter_that_is_missed_lowers_the_verdict() -> None:
    rows = section_4()
    rows["probes"][0]["found"]["clustered-page"]["value"] = 32 * 1024
    assert verdict("K2", rows) is DIRECTION
    rows["probes"][1]["found"]["clustered-page"]["value"] = 32 * 1024
    assert verdict("K2", rows) is NOT

    rows["write-orders"][0]["sizes"][1]["random"] = 30.0
    assert verdict("K3", rows) is DIRECTION
    rows["probes"][3]["found"]["clustered-block"]["value"] = 4 << 20
    assert verdict("K3", rows) is NOT

    rows["probes"][0]["found"]["read-buffer"]["value"] = 258 * 1024
    assert verdict("K4", rows) is DIRECTION
    for row in rows["probes"]:
        row["found"]["write-buffer"]["value"] = 64 * 1024
    assert verdict("K5", rows) is NOT

    rows["probes"][2]["drive_s"]["write-buffer"] = 5000
    assert verdict("K6", rows) is DIRECTION
    rows["probes"][2]["drive_s"]["clustered-block"] = 4000
    assert verdict("K6", rows) is NOT

    rows["other-kinds"][0]["found"]["buffer-kind"]["value"] = "buffer"
    assert verdict("K7", rows) is DIRECTION


@pytest.mark.parametrize(("name", "way"), [("K4", "read"), ("K5", "write")])
def test_procedures_as_printed_are_judged_beside_the_probes(name: str, way: str) -> None:
    def also(rows: Rows) -> Verdict:
        judging = PAPER.judges[name]
        answer = judging.judge({need: rows[need] for need in judging.needs})
        assert isinstance(answer, Answer) and answer.verdict is GOOD
        assert len(answer.plots) == 8
        [verdict] = answer.also.values()
        return verdict

    rows = section_4()
    assert also(rows) is GOOD
    at = next(n for n, row in enumerate(rows["procedures"]) if row["way"] == way)
    rows["procedures"][at] = as_printed("ssd-a", way, 64)
    assert also(rows) is NOT
    rows["procedures"][at] = as_printed("ssd-a", way, None)
    assert also(rows) is NOT


def test_a_probe_that_cannot_tell_is_not_one_that_finds_none() -> None:
    rows = section_4()
    rows["probes"][1]["found"]["read-buffer"]["verdict"] = "unknown"
    assert verdict("K4", rows) is DIRECTION


def program(**more: Any) -> dict[str, Any]:
    counts = judges.TABLE_4.get(
        (more["size_kib"], more["configuration"]), ((1000, 300, 700, 1000),)
    )
    return {
        "merge": "" if more["configuration"] == judges.NOOP else "well-formed",
        "limits": "fitted",
        "error": "",
        "io": "",
        "timeout_ms": 5,
        "write_buffer": "",
        "requests": counts[0][0],
        "aligned_at_start": counts[0][1],
        "aligned_at_both_ends": counts[0][1],
    } | more


def section_6() -> Rows:
    """Bandwidths as the paper tells them."""
    gain = {judges.NOOP: 0.0, judges.PAI: 0.0, judges.PAS: 0.14, judges.PASA: 0.2}
    postmark, filebench, oltp = [], [], []
    for drive, size, (c, more) in product(judges.DRIVES, runs.SIZES_KIB, gain.items()):
        share = more * (size / 8192 if drive != "ssd-c" else 0.3 * (size <= 1024))
        if c == judges.PAI and size != 8192:
            share = 0.08 if (size < 2000) == (drive in ("ssd-a", "ssd-b")) else -0.08
        postmark.append(
            program(drive=drive, size_kib=size, configuration=c, write_mb_per_s=50 * (1 + share))
        )
    for drive, load, (c, more) in product(judges.DRIVES, runs.PROFILES, gain.items()):
        share = 0.02 if c == judges.PAI else more + (2.1 if more and load == "oltp" else 0)
        if drive == "ssd-c":
            share = 0.02 if c != judges.NOOP else 0
        row = program(drive=drive, size_kib=0, configuration=c, overall_mb_per_s=50 * (1 + share))
        filebench.append(row | {"load": load})
        if load == "oltp" and drive in ("ssd-a", "ssd-d"):
            oltp.append(row | {"load": load, "io": "1MiB"})
    a = [row for row in postmark if row["drive"] == "ssd-a"]
    return {
        "postmark": postmark,
        "postmark-erased": [],
        "postmark-timeout": [row for row in a if row["configuration"] != judges.NOOP],
        "postmark-entry": [row for row in postmark if row["drive"] == "ssd-c"],
        "postmark-requests": [
            *(row | {"write_buffer": "256 KiB"} for row in a),
            *(row | {"limits": "low"} for row in a),
            *(row | {"configuration": judges.ALONE} for row in a),
        ],
        "filebench": filebench,
        "filebench-oltp": oltp,
    }


@pytest.mark.parametrize("number", range(9, 20))
def test_bandwidths_as_the_paper_tells_them_reproduce_it(number: int) -> None:
    assert verdict(f"K{number}", section_6()) is GOOD


def changed(factor: Mapping[str, float], key: str = "write_mb_per_s") -> Rows:
    """The same with other bandwidths in some configurations."""
    rows = deepcopy(section_6())
    for row in (*rows["postmark"], *rows["filebench"]):
        if key in row:
            row[key] *= factor.get(row["configuration"], 1)
    return rows


def test_other_bandwidths_do_not() -> None:
    # Twice as fast with PASA: the order is kept, what is printed is not.
    fast = changed({judges.PASA: 2})
    expected = {"K9": GOOD, "K10": DIRECTION, "K11": DIRECTION, "K12": GOOD, "K13": DIRECTION}
    assert {name: verdict(name, fast) for name in expected} == expected
    slow = changed({judges.PAS: 0.5, judges.PASA: 0.4, judges.PAI: 0.9})
    expected = {"K9": NOT, "K10": NOT, "K11": NOT, "K12": NOT, "K13": NOT, "K19": DIRECTION}
    assert {name: verdict(name, slow) for name in expected} == expected

    # NoPAS-PAI that gains and loses by 2 % only, or by the drive alone.
    for some, others, expected_verdict in ((-0.02, 0.02, NOT), (0.08, -0.08, DIRECTION)):
        rows = deepcopy(section_6())
        for row in rows["postmark"]:
            if row["configuration"] == judges.PAI:
                one = row["size_kib"] > 2000 if expected_verdict is NOT else row["drive"] == "ssd-a"
                row["write_mb_per_s"] = 50 * (1 + (some if one else others))
        assert verdict("K12", rows) is expected_verdict

    for factor, expected in (
        ({judges.PASA: 0.3, judges.PAS: 0.3}, {"K16": GOOD, "K17": NOT, "K18": NOT}),
        ({judges.PASA: 0.5, judges.PAI: 0.9}, {"K16": NOT, "K18": DIRECTION}),
    ):
        rows = changed(factor, "overall_mb_per_s")
        assert {name: verdict(name, rows) for name in expected} == expected


def test_the_composition_is_held_to_its_band() -> None:
    rows = section_6()
    of = {
        row["configuration"]: row
        for row in rows["postmark"]
        if (row["drive"], row["size_kib"]) == ("ssd-a", 8192)
    }
    of[judges.PAS]["aligned_at_start"] = 5000
    assert verdict("K14", rows) is DIRECTION
    of[judges.PAS]["requests"] = 1000
    assert verdict("K14", rows) is NOT


def test_other_readings_are_listed_beside_the_verdict() -> None:
    rows = section_6()
    rows["postmark-erased"] = [row | {"precondition": "empty"} for row in rows["postmark"]]
    answer = PAPER.judges["K11"].judge(rows)
    assert isinstance(answer, Answer)
    assert answer.also == {"erased drive": Verdict.REPRODUCED}


def test_a_program_is_played() -> None:
    rows = {
        c: runs.program(
            "ssd-a", "postmark", c, "well-formed", 1024, 40, timeout_ms=1, precondition="empty"
        )
        for c in (runs.PAI, runs.PAS, runs.PASA)
    }
    # Cut requests fit the 255 KiB of the buffer, uncut ones do not all; aligned are most where they are cut so.
    assert rows[runs.PAI]["above_buffer"] > 0
    assert rows[runs.PAS]["above_buffer"] == rows[runs.PASA]["above_buffer"] == 0
    shares = {c: row["aligned_at_start"] / row["requests"] for c, row in rows.items()}
    assert shares[runs.PASA] > 0.6 > max(shares[runs.PAI], shares[runs.PAS])
    idle = runs.program(
        "ssd-a",
        "postmark",
        runs.PAI,
        "well-formed",
        1024,
        40,
        timeout_ms=1,
        idle_dispatch=True,
        precondition="empty",
    )
    assert idle["error"] == "" and idle["pending_ms_mean"] < rows[runs.PAI]["pending_ms_mean"]


def test_a_probe_is_asked() -> None:
    row = runs.probed("ssd-a", "quick", ["read-buffer", "write-buffer"], {})
    assert (row["page_kib"], row["block_kib"]) == (16, 4096)
    assert row["found"]["read-buffer"]["value"] == 256 << 10
    assert row["found"]["write-buffer"]["curves"]["buffer full"][0]
    assert row["drive_s"]["read-buffer"] > 1
