"""The DFTL paper against its authors' release: twins held against the Rust schemes, and judges on rows made by hand."""

from __future__ import annotations

import doctest
import random
import sys
from pathlib import Path
from typing import Any

import pytest
from judging import together, verdict_of

from flashwright import Ssd, workloads
from flashwright_papers import Answer, Setting, Verdict, papers

REPRODUCED, DIRECTION = Verdict.REPRODUCED, Verdict.DIRECTION
NOT, UNTESTABLE = Verdict.NOT, Verdict.UNTESTABLE


@pytest.fixture(scope="module")
def files() -> Any:
    papers()
    names = ("naive_fast", "naive_dftl", "fault", "judges_of_the_comparison")
    return together("dftl", *names, "release", "judges_of_the_release")


@pytest.mark.parametrize("name", ["naive_fast", "naive_dftl"])
def test_the_examples_of_the_twins(files: Any, name: str) -> None:
    tried = doctest.testmod(sys.modules[f"flashwright_experiments.dftl.{name}"])
    assert tried.failed == 0 < tried.attempted


def pages_of(seed: int, pages: int, count: int) -> list[int]:
    """Runs of pages that begin anywhere, a third of them at the start of a block of 16."""
    some = random.Random(seed)
    found: list[int] = []
    while len(found) < count:
        first = some.randrange(pages)
        first -= first % 16 if some.random() < 0.3 else 0
        found += range(first, min(pages, first + some.choice((1, 1, 2, 5, 20))))
    return found[:count]


def play(written: list[int], settings: dict[str, object], folder: Path) -> Any:
    """Single pages written to a small drive of one plane."""
    lines = [f"{number * 10**9} 0 {4 * page} 4 0\n" for number, page in enumerate(written)]
    path = folder / "pages.mqsim"
    path.write_text("".join(lines))
    ssd = Ssd.named("dftl-release").with_(settings).precondition("empty")
    trace = workloads.trace(path, format="mqsim", addresses="wrap")
    return ssd.play(trace, seed=1).json


@pytest.mark.parametrize("seed", range(4))
def test_fast_without_the_fault_is_that_of_the_drive(files: Any, seed: int, tmp_path: Path) -> None:
    written = pages_of(seed, 40 * 16, 6000)
    fast = files.NaiveFast(6, 16)
    for page in written:
        fast.write(page)
    small: dict[str, object] = {"geometry.blocks-per-plane": 47, "geometry.pages-per-block": 16}
    small |= {"capacity.logical": "1280 KiB", "ftl.scheme": "fast", "ftl.fast.log-blocks": 6}
    ran = play(written, small, tmp_path)
    counts, merges = fast.counts, ran["merges"]
    assert (counts.switches, counts.partials, counts.fulls) == tuple(
        merges[kind] for kind in ("switch", "partial", "full")
    )
    assert counts.copies == ran["flash"]["programs"]["merge"] > 1000
    assert counts.erases == ran["flash"]["erases"]["total"]
    assert [counts.blocks_of_reclaims.count(n) for n in range(1, 6)] == [
        (merges["full_by_data_blocks"] + [0] * 6)[n] for n in range(1, 6)
    ]
    assert fast.unreadable() == 0


def test_the_fault_merges_more_and_loses_pages(files: Any) -> None:
    written = pages_of(1, 40 * 16, 6000)
    found = []
    for missing_copy in (False, True):
        fast = files.NaiveFast(6, 16, missing_copy=missing_copy)
        for page in written:
            fast.write(page)
        found.append((fast.counts.fulls, fast.unreadable()))
    assert found[1][0] > 1.5 * found[0][0]
    assert found[0][1] == 0 < found[1][1]


@pytest.mark.parametrize("seed", range(2))
def test_lists_by_recency_are_those_of_the_drive(files: Any, seed: int, tmp_path: Path) -> None:
    some = random.Random(seed)
    written = [int(some.paretovariate(0.6)) % 4000 for _ in range(4000)]
    lists = files.ByRecency(30, 10)
    counts = [lists.look_up(page) for page in written]
    small: dict[str, object] = {"ftl.dftl.cmt-entries": 40}
    small["ftl.dftl.flashsim-two-list.larger"] = 0.75
    cache = play(written, small, tmp_path)["mapping_cache"]
    assert sum(hit for hit, _ in counts) == cache["hits"] > 400
    assert sum(left is not None for _, left in counts) == cache["evictions"] > 400


def test_lists_by_number_are_not_by_recency(files: Any) -> None:
    some = random.Random(5)
    looked_up = [int(some.paretovariate(0.6)) % 4000 for _ in range(8000)]
    hits = []
    for each in (files.ByNumber, files.ByRecency):
        lists = each(30, 10)
        hits.append(sum(lists.look_up(page)[0] for page in looked_up))
    assert hits[0] != hits[1]


def rows(files: Any) -> list[dict[str, Any]]:
    """What the release's part gives where all is as it should be."""
    fast = {"switches": 8, "partials": 1, "fulls": 5, "copies": 300, "erases": 90}
    more = {"distinct_blocks": 9, "reclaims": 4, "blocks_of_reclaims": [0] * 20 + [4]}
    more |= {"lost": 5, "written": 10}
    counted = files.COUNTED
    dftl = counted["dftl"]
    return [
        {"scheme": "page", **counted["page"]},
        {"scheme": "dftl", "response_ms": 1.0, **dftl},
        {"scheme": "fast", "reads": 1, "programs": 2, "response_ms": 2.0, **fast},
        {"order": "number", **dftl},
        {"order": "recency", **dftl},
        {"missing_copy": False, **fast, **more},
        {"missing_copy": True, **more, **{k: counted["fast"][k] for k in fast}},
    ]


@pytest.mark.parametrize(
    ("claim", "row", "changed", "verdict"),
    [
        ("F1", 0, {}, REPRODUCED),
        ("F1", 0, {"programs": 157_955}, NOT),
        ("F2", 1, {}, REPRODUCED),
        # Beyond 0.2 %; within it and not explained; a twin that is not the release's.
        ("F2", 1, {"reads": 298_200}, NOT),
        ("F2", 1, {"reads": 297_500}, DIRECTION),
        ("F2", 3, {"hits": 9_984}, DIRECTION),
        ("F3", 6, {}, REPRODUCED),
        ("F3", 6, {"erases": 59_750}, NOT),
        ("F3", 5, {"copies": 301}, NOT),
    ],
)
def test_rules_of_the_release(
    files: Any, claim: str, row: int, changed: dict[str, Any], verdict: Verdict
) -> None:
    found = rows(files)
    found[row] |= changed
    assert verdict_of(papers()["dftl"], claim, {"release": found}) is verdict


@pytest.mark.parametrize("claim", ["F1", "F2", "F3"])
def test_without_the_trace_it_says_so(files: Any, claim: str) -> None:
    assert papers()["dftl"].parts["release"].jobs(Setting()) == []
    answer = papers()["dftl"].judges[claim].judge({"release": []})
    assert isinstance(answer, Answer)
    assert answer.verdict is UNTESTABLE
    assert answer.ours == f"{files.HEAD} is not among the traces (--traces FOLDER)."


def test_the_papers_figures_follow_from_the_outputs(
    files: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    has = files.derived()
    assert [round(has[name], 3) for name in ("hits", "gain", "translation")] == [
        0.633,
        0.809,
        0.931,
    ]
    assert [round(has[name], 1) for name in ("operations", "erases")] == [3.8, 10.5]
    # The access time of the page map follows from its counters and the drive's times.
    page, drive = files.PUBLISHED["page"], Ssd.named("dftl-release").config["timing"]
    read, program, erase = (float(drive[k].split()[0]) for k in ("read", "program", "erase"))
    total_us = page["reads"] * read + page["programs"] * program + page["erases"] * erase * 1000
    total_us += page["copies"] * (read + program)
    assert round(total_us / 1000 / files.REQUESTS, 6) == page["access_ms"]
    paper = papers()["dftl"]
    assert verdict_of(paper, "F4", {}) is DIRECTION
    monkeypatch.setitem(files.PUBLISHED["dftl"], "reads", 900_000)
    assert verdict_of(paper, "F4", {}) is NOT


def test_the_fault_takes_the_place_of_fast(files: Any) -> None:
    def run(scheme: str, **more: Any) -> dict[str, Any]:
        return {"scheme": scheme, "victim": "cost-benefit", "error": "", **more}

    shares = len(files.SHARES)
    dftl = run("dftl", quantiles_ms=[2.0] * shares, fast_ahead_to=0.5)
    fast = {
        "workload": "w",
        **run("fast"),
        "victim": "",
        "quantiles_ms": [1.0] * 9 + [3.0] * (shares - 9),
    }
    found = {
        "replayed": [
            {"workload": "w", "state": "replayed", "runs": [run("page"), run("fast"), dftl]}
        ],
        "fault": [fast],
    }
    [row] = files.with_fault(found)
    assert row["runs"][1] is fast and row["runs"][0] == run("page")
    assert row["runs"][2]["fast_ahead_to"] == files.SHARES[8]


def test_faulty_fast_without_its_fault_is_a_run_of_fast(files: Any) -> None:
    spec, pages, requests = "stand-in:trace=financial1,variant=gupta09", 1 << 14, 4000
    whole = files.faulty_fast("w", spec, pages, requests, missing_copy=False)
    play_file = together("dftl", "play")
    run = play_file.compare_replayed("w", spec, pages, requests)["runs"][2]
    assert run["scheme"] == "fast" and run["erases"] > 100
    for name in ("erases", "extra_operations", "response_ms"):
        assert whole[name] == pytest.approx(run[name], rel=0.05), name


def test_the_stand_in_for_financial_beside_the_authors_outputs_of_the_whole_trace(
    files: Any, tmp_path: Path
) -> None:
    """The number of its addresses was chosen by page mapping's copies; DFTL's hits were not."""
    play = together("dftl", "play")
    spec = play.STAND_INS[play.FINANCIAL]
    requests = files.REQUESTS
    run = files.release_drive("page").play(spec, requests=requests, seed=1, keep_requests=True)
    trace = workloads.trace(**play.written_once(play.requests_of(run), tmp_path / "twice.mqsim"))
    found = {
        scheme: files.release_drive(scheme).play(trace, seed=1, warmup=requests).json
        for scheme in ("page", "dftl")
    }
    copies = found["page"]["flash"]["programs"]["gc"]
    assert copies == pytest.approx(files.PUBLISHED["page"]["copies"], rel=0.5)
    hits = found["dftl"]["mapping_cache"]["hit_ratio"]
    assert 0.45 < hits < 0.55 < files.derived()["hits"]
