"""Chapters 2 and 3 of hu-2012: what is listed, what is played, and judges that give each verdict."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from flashwright_papers import Paper, Setting, Verdict, papers

FIRST, SECOND = "Financial 1", "Financial 2"


@pytest.fixture(scope="module")
def paper() -> Paper:
    return papers()["hu-2012"]


def module(paper: Paper, name: str) -> ModuleType:
    return sys.modules[f"flashwright_experiments.{paper.name.replace('-', '_')}.{name}"]


def row(workload: str, scheme: str, ram: float, **given: Any) -> dict[str, Any]:
    """A run of a drive that keeps up with its arrivals."""
    plain = {"spare": 0.03, "state": "sequential", "varied": "", "real": False, "error": ""}
    figures = {
        "erases": 100,
        "response_ms": 1.0,
        "service_ms": 1.0,
        "load": 0.1,
        "programs": 1000,
        "programs_data": 500,
        "programs_gc": 400,
        "programs_translation": 100,
        "gc_efficiency_pages": 50.0,
        "map_hit_ratio": 0.5,
        "pages_per_destage": 10.0,
    }
    return {"workload": workload, "scheme": scheme, "ram": ram} | plain | figures | given


def judge(paper: Paper, id_: str, **found: list[dict[str, Any]]) -> Any:
    """A judge on hand-made rows; parts that are not named are empty."""
    judging = paper.judges[id_]
    parts = {
        name: found.get(name.replace("-", "_").replace(".", "_"), []) for name in judging.needs
    }
    return judging.judge(parts)


def test_every_claim_of_both_chapters_is_listed(paper: Paper) -> None:
    ids = {each.id for each in paper.claims}
    assert {f"D2.{n}" for n in range(1, 23)} | {f"D3.{n}" for n in range(1, 20)} <= ids
    for each in paper.claims:
        if each.id.startswith(("D2.", "D3.")):
            assert each.drive or each.workload, each.id


def test_a_real_trace_takes_the_place_of_its_stand_in(paper: Paper, tmp_path: Path) -> None:
    runs = module(paper, "ram_runs")
    (tmp_path / "Financial1.spc.zst").touch()
    (tmp_path / "financial1-first10k.spc.zst").touch()
    with_traces = Setting(False, tmp_path)
    assert all("path" in job.arguments for job in runs.financial_1(with_traces))
    assert not any("path" in job.arguments for job in runs.financial_2(with_traces))
    # Over and over and by its model; in a search without the model, but on the whole drive too.
    assert len(runs.head_financial_1(with_traces)) == 2 * (1 + 3 * 5 + 4)
    searched = runs.head_financial_1(Setting(False, tmp_path, divisor=8))
    assert len(searched) == 1 + 3 * 5 + 4
    assert not any("scale" in job.arguments for job in searched)
    # A drive scaled down can't hold them.
    assert not any("path" in job.arguments for job in runs.financial_1(Setting(True, tmp_path)))
    assert runs.head_financial_1(Setting(True, tmp_path)) == []


@pytest.mark.parametrize("scheme", ["page", "bplru", "pud-lru", "dftl", "ap", "gc-arm"])
def test_a_run_small(paper: Paper, scheme: str) -> None:
    play = module(paper, "ram_play").play
    found = play(SECOND, scheme, 8, scale=16)
    assert found["error"] == "" and found["erases"] >= 0 and found["service_ms"] > 0
    if scheme in ("bplru", "pud-lru"):
        # One switch merge a destage: padding makes whole blocks.
        assert found["merges_switch"] == found["destages"] == found["erases"]
        assert found["programs_translation"] == 0
    if scheme == "dftl":
        assert 0 < found["map_hit_ratio"] <= 1


def test_real_traces_are_played_and_looked_at(
    paper: Paper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play = module(paper, "ram_play")
    head = play.HEAD_1
    monkeypatch.setitem(play.WHOLE, FIRST, ("spc", 2000))
    monkeypatch.setitem(play.HEADS, head, ("spc", 2000, 1, 2))
    path = tmp_path / "Financial1.spc"
    # A read after three writes; the second half goes to 40 blocks where the first has 4.
    lines = [
        f"0,{1024 * (i % (4 if i < 1000 else 40))},4096,{'r' if i % 4 == 3 else 'w'},{i / 100:.6f}\n"
        for i in range(2000)
    ]
    path.write_text("".join(lines))
    whole = play.play(FIRST, "page", 0, scale=16, path=str(path))
    assert (whole["real"], whole["requests"]) == (True, 1000)
    assert play.play(head, "bplru", 8, scale=16, path=str(path))["requests"] == 4000
    found = play.statistics(FIRST, str(path), True)
    assert (found["kib"], found["writes_a_read"]) == (4.0, 3.0)
    assert found["written_thrice"] == 100
    curve = play.distinct_blocks(FIRST, str(path), True)
    assert (curve["least"], curve["most"], curve["second_half_to_first"]) == (4, 40, 10)
    few = play.clusters(head, str(path))
    assert few["blocks"] == 30 and few["share_of_writes"][-1] == 1


def test_a_drive_that_cannot_be_built_is_reported(paper: Paper) -> None:
    found = module(paper, "ram_play").play(SECOND, "pud-lru", 0.5, scale=16)
    assert "ram.size" in found["error"]
    answer = judge(paper, "D2.12", financial_2=[found])
    assert answer.verdict is Verdict.UNTESTABLE and "ram.size" in answer.ours


def test_what_is_left_open_reaches_the_runs(paper: Paper) -> None:
    runs = module(paper, "ram_runs")
    names = {each.name for each in paper.open}
    assert {"locality", "fill", "spare", "gc-arm-tie"} <= names
    given: dict[str, str | float] = {"locality": "statistics-only", "fill": "random"}
    given |= {"spare": 0.07, "gc-arm-tie": "block"}
    jobs = runs.financial_1_partition(Setting(given=given, divisor=4))
    arguments = {"state": "random", "spare": 0.07, "locality": "statistics-only", "scale": 4}
    for job in jobs:
        assert arguments.items() <= job.arguments.items()
        assert ("manager" in job.arguments) == (job.arguments["scheme"] == "gc-arm")
    # TPC-E as described has a state of its own.
    states = {
        job.arguments["scheme"]: job.arguments["state"]
        for job in runs.tpc_e_described(Setting(given=given))
    }
    assert (states["dftl"], states["pud-lru"], states["bplru"]) == ("random", *["sequential"] * 2)
    small = runs.ram_play.play(SECOND, "gc-arm", 8, scale=16, manager={"tie": "block"})
    assert small["error"] == "" and small["locality"] == "head"


def test_worked_examples(paper: Paper) -> None:
    play = module(paper, "ram_play")
    rows = [play.table_2_3(manager) for manager in ("bplru", "pud-lru")]
    assert judge(paper, "D2.6", table_2_3=rows).verdict is Verdict.REPRODUCED
    wrong = [rows[0], rows[1] | {"victims": [[0, 1, 2], [4]]}]
    assert judge(paper, "D2.6", table_2_3=wrong).verdict is Verdict.NOT
    example = play.example_2_2_1()
    found = judge(paper, "D2.7", example_2_2_1=[example])
    assert found.verdict is Verdict.REPRODUCED
    wrong_one = example | {"left_below": 1}
    assert judge(paper, "D2.7", example_2_2_1=[wrong_one]).verdict is Verdict.NOT


def test_sizes_are_exact(paper: Paper) -> None:
    tables = {"logical_bytes": 32 << 30, "page_4": 32 << 20, "page_8": 64 << 20, "bast_4": 597_504}
    assert judge(paper, "D2.2", tables=[tables]).verdict is Verdict.REPRODUCED
    assert judge(paper, "D3.4", tables=[tables]).verdict is Verdict.REPRODUCED
    assert judge(paper, "D2.2", tables=[tables | {"bast_4": 700_000}]).verdict is Verdict.NOT
    held = {"held": 4096, "held_with_counters": 4084, "ram_bytes": 16 << 20}
    assert judge(paper, "D2.8", counters=[held]).verdict is Verdict.REPRODUCED
    assert (
        judge(paper, "D2.8", counters=[held | {"held_with_counters": 4080}]).verdict is Verdict.NOT
    )


HEAD = "first 10,000 requests of Financial 1"


def savings(
    real: bool, against: float, workload: str = FIRST, **given: Any
) -> list[dict[str, Any]]:
    """PUD-LRU at 70 % of BPLRU's erases and 44 % of its time, and at the share of DFTL's erases that is given."""
    given |= {"real": real}
    found = [row(workload, "page", 0, **given)]
    for ram in (8, 16):
        found += [
            row(workload, "bplru", ram, **given),
            row(workload, "dftl", ram, erases=70 / against, response_ms=0.44 / 0.68, **given),
            row(workload, "pud-lru", ram, erases=70, response_ms=0.44, **given),
        ]
    return found


def test_a_whole_trace_decides_then_its_head_and_no_model_in_its_place(paper: Paper) -> None:
    whole, stand_in = savings(True, 0.67), savings(False, 0.67)
    assert judge(paper, "D2.9", financial_1=whole).verdict is Verdict.REPRODUCED
    assert judge(paper, "D2.9", financial_1=savings(True, 1.2)).verdict is Verdict.NOT
    # Half of DFTL's erases is out of the band.
    assert judge(paper, "D2.9", financial_1=savings(True, 0.45)).verdict is Verdict.DIRECTION
    # Without the head a stand-in is only told.
    absent = judge(paper, "D2.9", financial_1=stand_in)
    assert absent.verdict is Verdict.UNTESTABLE and absent.used == f"not there: the {HEAD}"
    assert absent.also == {"stand-in for Financial 1": Verdict.DIRECTION}
    assert len(absent.plots) == 2
    # A head decides the direction alone, whatever the stand-in says; the whole trace goes before it.
    against = savings(True, 1.2, HEAD)
    by_model = savings(True, 0.67, HEAD, varied="by a model of it")
    found = judge(paper, "D2.9", financial_1=stand_in, head_financial_1=[*against, *by_model])
    assert (found.verdict, found.used) == (Verdict.NOT, f"the {HEAD}, over and over")
    assert found.also == {
        f"the {HEAD}, by a model of it": Verdict.DIRECTION,
        "stand-in for Financial 1": Verdict.DIRECTION,
    }
    assert [each.title.split(", ", 1)[1] for each in found.plots] == [
        f"the {HEAD}, over and over"
    ] * 2 + ["stand-in for Financial 1"] * 2
    for head, said in ((0.67, Verdict.DIRECTION), (1.2, Verdict.NOT)):
        heads = savings(True, head, HEAD)
        assert judge(paper, "D2.9", head_financial_1=heads).verdict is said
        both = judge(paper, "D2.9", financial_1=whole, head_financial_1=heads)
        assert both.verdict is Verdict.REPRODUCED and not both.also
    # Of several traces one that is not there leaves all open.
    of_two = judge(
        paper, "D2.18", financial_2=[row(SECOND, "bplru", 16), row(SECOND, "pud-lru", 16)]
    )
    assert of_two.verdict is Verdict.UNTESTABLE
    assert of_two.used == f"stand-in for Financial 2; not there: the {HEAD}"


def test_time_is_the_service_where_a_drive_does_not_keep_up(paper: Paper) -> None:
    judging = module(paper, "ram_judge")
    rows = [
        row(FIRST, "bplru", 8, response_ms=9000.0, service_ms=4.0, load=1.0),
        row(FIRST, "dftl", 8, response_ms=3.0, service_ms=2.0),
    ]
    runs = judging.Runs({"part": rows}, FIRST)
    assert runs.ratios("bplru", "dftl", "time") == {8.0: 2.0}


def test_schemes_that_never_erase_are_equal(paper: Paper) -> None:
    rows = [row(FIRST, scheme, 8, erases=0) for scheme in ("gc-arm", "ap")]
    runs = module(paper, "ram_judge").Runs({"part": rows}, FIRST)
    assert runs.ratios("gc-arm", "ap", "erases") == {8.0: 1.0}
    assert not runs.below("gc-arm", "ap", "erases")


def test_an_ordering_on_several_traces(paper: Paper) -> None:
    def thresholds(workload: str, worst: float) -> list[dict[str, Any]]:
        others = [row(workload, f"pud-lru {t}", 16, erases=worst * 100) for t in ("0.1", "0.01")]
        return [row(workload, "pud-lru", 16, erases=80, response_ms=0.8), *others]

    def d2_18(first: float, second: float) -> Any:
        quick = {"response_ms": 0.8}
        return judge(
            paper,
            "D2.18",
            head_financial_1=[
                each | {"ram": 4, "real": True}
                for each in (
                    row(HEAD, "bplru", 4),
                    *(each | quick for each in thresholds(HEAD, first)),
                )
            ],
            financial_2=[row(SECOND, "bplru", 16)],
            financial_2_pud_lru=[each | quick for each in thresholds(SECOND, second)],
        )

    assert d2_18(0.9, 0.9).verdict is Verdict.REPRODUCED
    assert d2_18(0.9, 1.1).verdict is Verdict.NOT
    assert len(d2_18(0.9, 0.9).plots) == 4


def test_together_is_all_or_most(paper: Paper) -> None:
    together = module(paper, "ram_judge").together
    yes, some, no = Verdict.REPRODUCED, Verdict.DIRECTION, Verdict.NOT
    assert together([yes, yes]) is yes
    assert together([yes, some, no]) is some
    assert together([yes, no]) is no
    assert together([yes, yes, Verdict.UNTESTABLE]) is Verdict.UNTESTABLE


def shares(workload: str, data: dict[str, float]) -> list[dict[str, Any]]:
    return [
        row(workload, scheme, ram, programs_data=1000 * share, programs_gc=1000 * (1 - share))
        for scheme, share in data.items()
        for ram in (8, 16, 32)
    ]


def test_shares_of_writes(paper: Paper) -> None:
    def d3_16(**data: float) -> Verdict:
        verdict: Verdict = judge(
            paper,
            "D3.16",
            exchange=shares(
                "Exchange", {name.replace("_", "-"): each for name, each in data.items()}
            ),
        ).verdict
        return verdict

    assert d3_16(gc_arm=0.9, bplru=0.8, dftl=0.5, ap=0.6) is Verdict.REPRODUCED
    assert d3_16(gc_arm=0.9, bplru=0.55, dftl=0.5, ap=0.6) is Verdict.DIRECTION
    assert d3_16(gc_arm=0.5, bplru=0.1, dftl=0.5, ap=0.6) is Verdict.NOT


def test_the_largest_share_of_data_decides_on_the_head(paper: Paper) -> None:
    def d3_13(**data: float) -> Any:
        rows = shares(HEAD, {name.replace("_", "-"): each for name, each in data.items()})
        return judge(paper, "D3.13", head_financial_1=[each | {"real": True} for each in rows])

    found = d3_13(gc_arm=0.9, bplru=0.1, dftl=0.5, ap=0.6)
    assert found.verdict is Verdict.DIRECTION and len(found.plots) == 2
    assert found.plots[1].levels == [("dissertation, GC-ARM", 0.9)]
    assert d3_13(gc_arm=0.9, bplru=0.1, dftl=0.5, ap=0.95).verdict is Verdict.NOT


def test_dftl_with_its_whole_table_must_be_identical(paper: Paper) -> None:
    def d3_11(erases: int) -> Verdict:
        parts = {
            name: [row(workload, "page", 0, erases=1000)]
            for name, workload in (("financial_1", FIRST), ("exchange", "Exchange"))
        }
        whole = [
            row(workload, "dftl", 64, varied="the whole map in RAM", erases=erases)
            for workload in (FIRST, "Exchange")
        ]
        verdict: Verdict = judge(paper, "D3.11", **parts, whole_map=whole).verdict
        return verdict

    assert d3_11(1000) is Verdict.REPRODUCED
    assert d3_11(1009) is Verdict.DIRECTION
    assert d3_11(1020) is Verdict.NOT


def test_without_real_traces_some_cannot_be_tested(paper: Paper) -> None:
    for id_ in ("D2.3", "D2.4", "D2.5", "D3.3"):
        assert judge(paper, id_).verdict is Verdict.UNTESTABLE

    def curve(trace: str, mean: float, growth: float) -> dict[str, Any]:
        return {
            "trace": trace,
            "whole": False,
            "mean": mean,
            "least": 1,
            "most": 500,
            "second_half_to_first": growth,
            "requests": 1000,
            "counts": [mean, mean * growth],
        }

    head, msn = "first 10,000 requests of Financial 1", "first 149,999 requests of MSN"
    for mean, growth, verdict in (
        (50, 2, Verdict.REPRODUCED),
        (50, 1, Verdict.DIRECTION),
        (490, 1, Verdict.NOT),
    ):
        rows = [curve(head, mean, growth), curve(msn, 450, 1)]
        assert judge(paper, "D3.3", distinct_blocks=rows).verdict is verdict


def test_statistics_of_whole_traces_decide(paper: Paper) -> None:
    def statistics(trace: str, kib: float, writes: float, thrice: float) -> dict[str, Any]:
        return {
            "trace": trace,
            "whole": True,
            "kib": kib,
            "writes_a_read": writes,
            "a_second": 100.0,
            "written_twice": 90.0,
            "written_thrice": thrice,
        }

    good = [statistics(FIRST, 3.38, 3.32, 31), statistics(SECOND, 2.38, 0.24, 38)]
    assert judge(paper, "D2.3", statistics=good).verdict is Verdict.REPRODUCED
    assert judge(paper, "D2.5", statistics=good).verdict is Verdict.REPRODUCED
    other = [good[0], statistics(SECOND, 2.38, 0.21, 10)]
    assert judge(paper, "D2.3", statistics=other).verdict is Verdict.DIRECTION
    assert judge(paper, "D2.5", statistics=other).verdict is Verdict.DIRECTION
    assert judge(paper, "D2.3", statistics=good[:1]).verdict is Verdict.UNTESTABLE
