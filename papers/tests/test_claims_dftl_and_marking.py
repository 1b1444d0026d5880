"""The claims of the DFTL paper and the container-marking report: their folders, and rules on rows made by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from judging import together

from flashwright_papers import Answer, Setting, Verdict, papers

REPRODUCED, DIRECTION = Verdict.REPRODUCED, Verdict.DIRECTION
NOT, UNTESTABLE = Verdict.NOT, Verdict.UNTESTABLE


@pytest.fixture(scope="module")
def modules() -> dict[str, Any]:
    """The files of both papers: what is played and the judges of each."""
    papers()
    dftl = ("judging", "judges_of_schemes", "judges_of_the_comparison", "judges_of_load")
    marking = ("judging", "judges_of_amplification", "judges_of_lives", "judges_of_traces")
    return {
        "dftl/runs": together("dftl", "play", "runs"),
        "dftl/judges": together("dftl", *dftl),
        "container_marking/runs": together("container_marking", "runs"),
        "container_marking/judges": together("container_marking", *marking),
    }


@pytest.fixture(scope="module")
def dftl(modules: dict[str, Any]) -> Any:
    return modules["dftl/judges"]


@pytest.fixture(scope="module")
def marking(modules: dict[str, Any]) -> Any:
    return modules["container_marking/judges"]


@pytest.mark.parametrize(
    ("paper", "letter", "count"), [("dftl", "G", 28), ("container-marking", "M", 18)]
)
def test_every_claim_is_there(paper: str, letter: str, count: int) -> None:
    found = papers()[paper]
    ids = [each.id for each in found.claims if each.entry != "release"]
    assert ids == [f"{letter}{i}" for i in range(1, count + 1)]
    assert all(each.why for each in found.claims if each.verdict is not None)
    # Parts list jobs without and with traces, full and quick.
    for quick in (False, True):
        for part in found.parts.values():
            assert part.jobs(Setting(quick)) is not None
    entries = {each.entry for each in found.claims}
    assert "figure-6" in entries if paper == "dftl" else "table-4" in entries


# --- the DFTL paper ---------------------------------------------------------------------------------------------


def run(scheme: str, victim: str, **values: Any) -> dict[str, Any]:
    """A row of figures; what is not named is of no account."""
    plain = {
        "error": "",
        "requests": 1000,
        "pages_read": 100,
        "reads_unmapped": 0,
        "erases": 10,
        "switch": 0,
        "partial": 0,
        "full": 0,
        "merge_operations": 0,
        "full_by_data_blocks": [0, 4],
        "extra_operations": 100,
        "translation_reads": 40,
        "translation_programs": 40,
        "translation_share": 0.9,
        "hit_ratio": 0.5,
        "clean_evictions": 0.9,
        "cmt_entries": 100,
        "response_ms": 1.0,
        "kolmogorov": 0.05,
        "fast_ahead_to": 0.95,
        "quantiles_ms": [1.0] * 43,
        "misses": 10,
        "miss_reads": 15,
        "miss_programs": 5,
    }
    return {"scheme": scheme, "victim": victim} | plain | values


def compared(modules: dict[str, Any], fast: dict[str, Any], by_dftl: dict[str, Any]) -> Any:
    """Found rows in which every workload gave the same, and the page map what is plain."""
    runs = modules["dftl/runs"]

    def rows(states: tuple[str, ...]) -> list[dict[str, Any]]:
        return [
            {
                "workload": workload,
                "state": state,
                "runs": [
                    run(
                        scheme,
                        victim,
                        **(fast if scheme == "fast" else by_dftl if scheme == "dftl" else {}),
                    )
                    for scheme, victim in runs.SCHEMES
                ],
            }
            for workload in (runs.FINANCIAL, runs.CELLO, runs.TPCH, runs.WEBSEARCH)
            for state in states
        ]

    return {
        "comparison": rows(("full", "erased")),
        "replayed": rows(("replayed",)),
        "replayed-seeds": [row for row in rows(("replayed",)) if row["workload"] == runs.FINANCIAL],
        "extra-space": [],
        "fault": [],
    }


@pytest.mark.parametrize(
    ("claim", "fast", "by_dftl", "verdict"),
    [
        ("g8", {"switch": 1}, {"switch": 2}, REPRODUCED),
        ("g8", {"switch": 2}, {"switch": 2}, NOT),
        ("g9", {"full": 5}, {"partial": 9}, REPRODUCED),
        ("g9", {"full": 5}, {"partial": 3}, DIRECTION),
        ("g9", {"full": 5}, {"partial": 3, "full": 5}, NOT),
        ("g10", {"erases": 11}, {"erases": 10}, REPRODUCED),
        ("g10", {"erases": 9}, {"erases": 10}, NOT),
        # Magnitudes that only stand-ins without a head of their own meet are the direction.
        ("g11", {"extra_operations": 300}, {}, DIRECTION),
        ("g11", {"extra_operations": 90}, {}, NOT),
        ("g12", {"erases": 9}, {"erases": 9}, REPRODUCED),
        ("g12", {"erases": 10}, {"erases": 9}, NOT),
        ("g13", {"full_by_data_blocks": [0] * 19 + [4, 1]}, {}, DIRECTION),
        ("g13", {"full_by_data_blocks": [0, 5]}, {}, NOT),
        ("g14", {}, {"hit_ratio": 0.6}, REPRODUCED),
        ("g14", {}, {"hit_ratio": 0.5}, NOT),
        ("g15", {}, {"clean_evictions": 0.97}, DIRECTION),
        ("g15", {}, {"clean_evictions": 0.4}, NOT),
        ("g16", {"response_ms": 5.0, "erases": 30, "extra_operations": 300}, {}, REPRODUCED),
        # A response in the band leaves the direction where operations are 28 times fewer instead of 3, and nothing
        # where they are more.
        ("g16", {"response_ms": 5.0, "erases": 30, "extra_operations": 2800}, {}, DIRECTION),
        ("g16", {"response_ms": 5.0, "erases": 9, "extra_operations": 300}, {}, NOT),
        ("g16", {"response_ms": 0.5}, {}, NOT),
        ("g17", {"response_ms": 2.0}, {}, DIRECTION),
        ("g17", {"response_ms": 0.5}, {}, NOT),
        ("g18", {"response_ms": 2.0}, {}, NOT),  # the same gain on both is no order
        ("g19", {}, {}, DIRECTION),
        ("g19", {}, {"fast_ahead_to": None}, NOT),
        ("g20", {}, {"response_ms": 1.2}, REPRODUCED),
        ("g20", {"kolmogorov": 0.2}, {"response_ms": 1.2}, NOT),
        ("g25", {}, {}, REPRODUCED),
        ("g25", {}, {"merge_operations": 1}, NOT),
    ],
)
def test_rules_of_the_dftl_comparison(
    modules: dict[str, Any],
    dftl: Any,
    claim: str,
    fast: dict[str, Any],
    by_dftl: dict[str, Any],
    verdict: Verdict,
) -> None:
    answer: Answer = getattr(dftl, claim)(compared(modules, fast, by_dftl))
    assert answer.verdict is verdict
    assert answer.ours.endswith(".")
    assert all(sum(len(line.x) for line in plot.lines) <= 200 for plot in answer.plots)


def test_the_headline_asks_for_its_figures_with_every_seed(
    modules: dict[str, Any], dftl: Any
) -> None:
    within = {"response_ms": 5.0, "erases": 30, "extra_operations": 300}
    found = compared(modules, within, {})
    assert dftl.g16(found).verdict is REPRODUCED
    for operations, verdict in ((1010, DIRECTION), (90, NOT)):
        beyond = compared(modules, within | {"extra_operations": operations}, {})
        found["replayed-seeds"] = beyond["replayed-seeds"]
        assert dftl.g16(found).verdict is verdict


def test_cost_benefit_after_the_trace_was_written_once_decides(
    modules: dict[str, Any], dftl: Any
) -> None:
    found = compared(modules, {}, {"switch": 7})
    for row in found["replayed"]:
        for each in row["runs"]:
            if each["scheme"] == "dftl" and each["victim"] == "cost-benefit":
                each["switch"] = 0
    answer = dftl.g8(found)
    assert answer.verdict is NOT
    assert "7 and 0 (trace written once first, greedy), 0 and 0 (cost-benefit); 7" in answer.ours
    assert len(answer.also) == 5 and set(answer.also.values()) == {REPRODUCED}


def test_what_is_left_open_reaches_the_runs(modules: dict[str, Any]) -> None:
    runs = modules["dftl/runs"]
    given: dict[str, str | float] = {"locality": "statistics-only", "extra": 0.07}
    given |= {"region": 128, "cmt-entries": 8192}
    assert set(given) == {each.name for each in papers()["dftl"].open}
    [job, *_] = runs.replayed(Setting(given=given))
    arguments = {"pages": 1 << 16, "extra": 0.07, "cmt": 8192}
    assert arguments.items() <= job.arguments.items()
    assert job.arguments["spec"].endswith("gupta09-statistics-only")
    assert {job.arguments["extra"] for job in runs.extra(Setting(given=given))} == {0.07, 0.15, 0.3}


def test_a_scheme_that_does_not_fit_is_reported(modules: dict[str, Any], dftl: Any) -> None:
    found = compared(modules, {"error": "no room"}, {})
    with pytest.raises(ValueError, match="Financial on fast: no room"):
        dftl.g8(found)


def rates(fast: float, by_dftl: float, baseline: float) -> list[dict[str, Any]]:
    """Responses that are 1 ms up to a rate, and ten times as much at twice that."""
    at = {"fast": fast, "dftl": by_dftl, "page": baseline}
    return [
        {
            "workload": workload,
            "state": state,
            "scheme": scheme,
            "victim": victim,
            "points": [
                {"rate": rate, "response_ms": 1.0 if rate <= at[scheme] else 10.0, "error": ""}
                for rate in (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
            ],
        }
        for workload in ("dftl-a", "dftl-b")
        for state in ("full", "erased")
        for scheme, victim in (
            ("fast", ""),
            ("dftl", "greedy"),
            ("dftl", "cost-benefit"),
            ("page", "greedy"),
        )
    ]


def test_knees(dftl: Any) -> None:
    assert dftl.knee([(1.0, 1.0), (2.0, 1.0), (4.0, 25.0)]) == pytest.approx(2 * 2**0.5)
    assert dftl.knee([(1.0, 1.0), (2.0, 4.9)]) is None
    assert dftl.g21({"rates": rates(2, 4, 8)}).verdict is REPRODUCED
    assert dftl.g21({"rates": rates(4, 4, 8)}).verdict is NOT
    # FAST lasts no longer than on random writes.
    assert dftl.g22({"rates": rates(2, 4, 8)}).verdict is NOT


@pytest.mark.parametrize(
    ("longest", "waits", "verdict"), [(9, 5, REPRODUCED), (11, 5, DIRECTION), (9, 1, NOT)]
)
def test_spikes(dftl: Any, longest: float, waits: float, verdict: Verdict) -> None:
    one = {"service_ms": 9.0, "others_wait_ms": 2.0, "window_service_ms": [1.0] * 100}
    one |= {"window_queue_ms": [1.0] * 100}
    runs = [{"scheme": "fast", "victim": "", "next_waits_ms": waits, "service_p999_ms": 20.0} | one]
    runs += [
        {"scheme": "dftl", "victim": victim, "next_waits_ms": 1.0, "service_p999_ms": longest} | one
        for victim in ("greedy", "cost-benefit")
    ]
    found = [
        {"state": state, "error": "", "first": 0, "runs": runs} for state in ("full", "erased")
    ]
    assert dftl.g23({"window": found}).verdict is verdict


@pytest.mark.parametrize(
    ("hits", "responses", "verdict"),
    [
        ([0.1, 0.6, 1.0], [3.0, 2.0, 1.02], REPRODUCED),
        ([0.1, 0.6, 1.0], [3.0, 2.0, 1.1], DIRECTION),
        ([0.1, 0.6, 0.5], [3.0, 2.0, 1.0], NOT),
    ],
)
def test_more_ram(dftl: Any, hits: list[float], responses: list[float], verdict: Verdict) -> None:
    found = [
        {
            "workload": workload,
            "state": state,
            "victim": victim,
            "baseline": run("page", victim),
            "runs": [
                run("dftl", victim, hit_ratio=hit, response_ms=response, cmt_entries=10.0**number)
                for number, (hit, response) in enumerate(zip(hits, responses, strict=True))
            ],
        }
        for workload in ("Financial", "TPC-H")
        for state in ("full", "erased")
        for victim in ("greedy", "cost-benefit")
    ]
    assert dftl.g24({"sram": found}).verdict is verdict


def test_what_the_schemes_say_of_themselves(modules: dict[str, Any], dftl: Any) -> None:
    runs = modules["dftl/runs"]
    assert dftl.g1({}).verdict is REPRODUCED
    assert dftl.g27({}).verdict is DIRECTION
    assert dftl.g3({"table-on-flash": [runs.table_on_flash()]}).verdict is REPRODUCED
    assert dftl.g3({"table-on-flash": [{"translation_pages": 1000}]}).verdict is NOT
    # The golden trace of figure 5, step by step.
    [job] = papers()["dftl"].parts["figure-5"].jobs(Setting())
    row: dict[str, Any] = {**job.function(**job.arguments)}
    assert row["costs"][:2] == ["1Rt 1P", "1Rt 1P"]
    assert dftl.g4({"figure-5": [row]}).verdict is REPRODUCED
    assert dftl.g4({"figure-5": [row | {"costs": ["1Rt 1R"]}]}).verdict is NOT
    page, block = (
        {"scheme": "page", "ram_bytes": 32 << 20},
        {"scheme": "block", "ram_bytes": 1 << 19},
    )
    assert dftl.g2({"maps": [page, block]}).verdict is REPRODUCED
    assert dftl.g2({"maps": [page, page | {"scheme": "block"}]}).verdict is NOT


def test_a_miss_that_costs_more_is_seen(modules: dict[str, Any], dftl: Any) -> None:
    one = [{"operations_max": 4}]
    assert dftl.g5(compared(modules, {}, {}) | {"one-page": one}).verdict is REPRODUCED
    assert dftl.g5(compared(modules, {}, {"miss_reads": 21}) | {"one-page": one}).verdict is NOT
    assert dftl.g5(compared(modules, {}, {}) | {"one-page": [{"operations_max": 5}]}).verdict is NOT


def test_merges_of_the_schemes_of_table_2(modules: dict[str, Any], dftl: Any) -> None:
    jobs = papers()["dftl"].parts["schemes"].jobs(Setting())
    rows: list[dict[str, Any]] = [{**job.function(**job.arguments)} for job in jobs]
    assert dftl.g6({"schemes": rows}).verdict is REPRODUCED
    # A SuperBlock that gathers nothing is one scheme that differs.
    idle = [row | {"clean_programs": 0} if row["scheme"] == "superblock" else row for row in rows]
    assert dftl.g6({"schemes": idle}).verdict is DIRECTION
    page_merges = [row | {"full": 1} if row["scheme"] == "page" else row for row in rows]
    assert dftl.g6({"schemes": page_merges}).verdict is NOT


# --- the container-marking report -------------------------------------------------------------------------------


def curves(values: dict[str, float], at: tuple[float, ...] = (0.7, 0.8, 0.9)) -> Any:
    """Amplification by policy; greater skew and more static data gain a little more with marking."""
    bonus = {"D&S 70 %": 0.95, "Zipf 95/20": 0.95}
    return [
        {
            "load": load,
            "u": u,
            "policy": policy,
            "error": "",
            "drive_writes": 160,
            "series": [value] * 10,
            "write_amplification": value
            * (bonus.get(load, 1.0) if policy.startswith("marking") else 1.0),
        }
        for load in ("D&S 30 %", "D&S 70 %", "Zipf 80/20", "Zipf 95/20", "uniform")
        for u in at
        for policy, value in values.items()
    ]


def four(fifo: float, windowed: float, per_list: float, each_list: float = 9.0) -> dict[str, float]:
    names = ("fifo", "windowed greedy", "marking, per-list", "marking, each-list")
    return dict(zip(names, (fifo, windowed, per_list, each_list), strict=True))


@pytest.mark.parametrize(
    ("claim", "values", "verdict"),
    [
        ("m5", four(3, 2.9, 1.5), REPRODUCED),
        ("m5", four(3, 3, 1.5), NOT),
        ("m6", four(3, 2.9, 1.5), REPRODUCED),
        ("m6", four(3, 2.9, 3.5), NOT),
        ("m7", four(3, 2.9, 1.5), REPRODUCED),
        ("m7", four(3, 2.9, 0.0), NOT),  # the same gain everywhere
        ("m8", four(3, 3, 1.6), REPRODUCED),
        ("m8", four(3, 3, 2.9), DIRECTION),
        ("m8", four(3, 3, 3.3, 1.6), NOT),  # the other reading decides nothing
    ],
)
def test_rules_of_figure_3(
    marking: Any, claim: str, values: dict[str, float], verdict: Verdict
) -> None:
    answer: Answer = getattr(marking, claim)({"curves": curves(values)})
    assert answer.verdict is verdict
    assert all(sum(len(line.x) for line in plot.lines) <= 200 for plot in answer.plots)


def test_a_run_that_stalled_fails_and_is_reported(marking: Any) -> None:
    rows = curves(four(3, 2.9, 1.5))
    for row in rows:
        if row["policy"] == "marking, per-list":
            row["error"] = "no free page"
            del row["write_amplification"], row["series"]
    answer = marking.m6({"curves": rows})
    assert answer.verdict is NOT and "Stalled: D&S 30 % at 0.7" in answer.ours
    assert marking.m8({"curves": rows}).verdict is NOT


@pytest.mark.parametrize(
    ("fifo", "verdicts"),
    [(2.7, (REPRODUCED, DIRECTION)), (2.8, (DIRECTION, DIRECTION)), (4.0, (NOT, DIRECTION))],
)
def test_greedy_and_its_neighbours(
    marking: Any, fifo: float, verdicts: tuple[Verdict, Verdict]
) -> None:
    greedy = [{"u": u, "write_amplification": 2.5} for u in (0.8, 0.9)]
    answers = marking.near_greedy({"curves": curves(four(fifo, 2.8, 2.6)), "greedy": greedy})
    assert (answers["M2"].verdict, answers["M18"].verdict) == verdicts


def test_static_data_mixed_and_apart(marking: Any) -> None:
    at = (0.5, 0.7, 0.9)
    apart = [
        {"static": s, "u": u, "dynamic": (d := u * (1 - s) / (1 - u * s)), "error": ""}
        | {"write_amplification": marking.closed_form(d)}
        for s in (0.3, 0.7)
        for u in at
    ]

    def mixed(excess: float, *, theory: bool = True) -> Any:
        return [
            {"load": load, "u": u, "policy": "fifo", "error": ""}
            | {"write_amplification": excess * marking.closed_form(u, static * theory)}
            for static, load in ((0.3, "D&S 30 %"), (0.7, "D&S 70 %"))
            for u in at
        ]

    assert marking.closed_form(0.8) == pytest.approx(2.693, abs=0.001)
    assert marking.closed_form(0.7, 0.7) / marking.closed_form(0.7) == pytest.approx(
        1.184, abs=1e-3
    )
    assert marking.m1({"curves": mixed(1.02), "separated": apart}).verdict is REPRODUCED
    assert marking.m1({"curves": mixed(1.04), "separated": apart}).verdict is DIRECTION
    # As if static data cost nothing.
    free = mixed(1.0, theory=False)
    assert marking.m1({"curves": free, "separated": apart}).verdict is DIRECTION
    level = [row | {"write_amplification": 2.0} for row in apart]
    flat = [row | {"write_amplification": 2.0} for row in mixed(1.0)]
    assert marking.m1({"curves": flat, "separated": level}).verdict is NOT


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ((2.8, 2.6, 2.4, 2.2, 2.2), REPRODUCED),
        ((2.8, 2.6, 2.7, 2.2, 2.2), DIRECTION),
        ((2.8, 2.9, 2.4, 2.2, 2.2), NOT),
    ],
)
def test_levels(marking: Any, values: tuple[float, ...], verdict: Verdict) -> None:
    rows = [
        {"levels": level, "write_amplification": value, "error": ""}
        for level, value in zip((1, 2, 4, 8, 16), values, strict=True)
    ]
    assert marking.m9({"levels": rows}).verdict is verdict


def lives(by_load: dict[str, float], windowed: float = 0.3, static: float = 0.33) -> Any:
    """Endurance efficiency: FIFO 0.3, marking (per list) by workload, the other reading poor."""
    return [
        {"load": load, "u": u, "policy": policy, "error": "", "endurance_efficiency": value}
        for load, mine in by_load.items()
        for u in (0.7, 0.8)
        for policy, value in four(
            0.3, static if load == "D&S 70 %" else windowed, mine, 0.1
        ).items()
    ]


def test_lives(marking: Any) -> None:
    skewed = {"D&S 30 %": 0.35, "D&S 70 %": 0.5, "Zipf 80/20": 0.4, "Zipf 95/20": 0.5}
    assert marking.m10({"lives": lives(skewed)}).verdict is REPRODUCED
    # With mostly static data windowed greedy must differ from FIFO, and on the others not; or skew gains less.
    assert marking.m10({"lives": lives(skewed, static=0.3)}).verdict is DIRECTION
    assert marking.m10({"lives": lives(skewed, 0.32)}).verdict is DIRECTION
    assert marking.m10({"lives": lives(dict.fromkeys(skewed, 0.5))}).verdict is DIRECTION
    assert marking.m10({"lives": lives(dict.fromkeys(skewed, 0.2))}).verdict is NOT
    assert marking.m11({"lives": lives(skewed)}).verdict is REPRODUCED
    assert marking.m11({"lives": lives(skewed | {"Zipf 95/20": 0.4})}).verdict is DIRECTION
    assert marking.m11({"lives": lives(skewed | {"Zipf 95/20": 0.2})}).verdict is NOT
    both = {"lives": lives(skewed), "curves": curves(four(3, 3, 1.6))}
    assert marking.m16(both).verdict is REPRODUCED
    assert marking.m16(both | {"curves": curves(four(3, 3, 2.5))}).verdict is DIRECTION
    assert marking.m16(both | {"curves": curves(four(3, 3, 3.5))}).verdict is NOT


@pytest.mark.parametrize(
    ("always", "verdict"), [((3, 5), REPRODUCED), ((2.3, 3), DIRECTION), ((2, 3), NOT)]
)
def test_without_the_probability(
    marking: Any, always: tuple[float, float], verdict: Verdict
) -> None:
    rows = [
        {"u": u, "demotion": demotion, "rotate": rotate, "error": ""}
        # The other rotation decides nothing.
        | {"write_amplification": value if rotate == "share" else 3.0}
        for rotate in ("share", "full")
        for demotion, values in (("table", (2.0, 4.0)), ("always", always))
        for u, value in zip((0.8, 0.9), values, strict=True)
    ]
    assert marking.m12({"probability": rows}).verdict is verdict


def test_markers_are_seen_from_outside(modules: dict[str, Any], marking: Any) -> None:
    runs = modules["container_marking/runs"]
    updates = [runs.markers_of_updates(levels) for levels in (2, 8)]
    assert updates[1]["together"] == [1] * 8 + [8]
    moves = [runs.markers_of_moves(u, 1) for u in (0.5, 0.6, 0.7, 0.8, 0.9)]
    assert moves[0] == {"u": 0.5, "moved": 500, "down": 500, "settled": True}
    assert marking.m3({"updates": updates, "moves": moves}).verdict is REPRODUCED
    off = [row | {"down": 300} if row["u"] == 0.8 else row for row in moves]
    assert marking.m3({"updates": updates, "moves": off}).verdict is NOT
    other = [updates[0], updates[1] | {"together": [1] * 9 + [7]}]
    assert marking.m3({"updates": other, "moves": moves}).verdict is NOT
    assert marking.m4({}).verdict is REPRODUCED
    assert marking.m17({}).verdict is REPRODUCED


def of_trace(trace: str | None, values: tuple[float, ...]) -> list[dict[str, Any]]:
    name = {} if trace is None else {"trace": trace}
    return [
        name | {"policy": policy, "error": "", "write_amplification": value}
        for policy, value in four(*values).items()
    ]


def test_traces_decide_only_whole(marking: Any) -> None:
    stand_in = {"traces": of_trace(None, (4.22, 3.16, 2.12, 3.0)), "heads": []}
    assert marking.m14(stand_in).verdict is DIRECTION
    assert marking.m15(stand_in).verdict is DIRECTION
    assert "not at hand: financial1, proj-0" in marking.m14(stand_in).workload
    turned = {"traces": of_trace(None, (3.0, 3.16, 3.5, 3.0)), "heads": []}
    assert marking.m14(turned).verdict is NOT
    assert marking.m15(turned).verdict is NOT
    whole = [
        row
        for trace, values in marking.TABLE_IV.items()
        for row in of_trace(trace, (*(1.2 * value for value in values), 9.0))
    ]
    assert marking.m14({"traces": whole, "heads": []}).verdict is REPRODUCED
    assert marking.m15({"traces": whole}).verdict is REPRODUCED
    assert marking.m14({"traces": whole[:-4], "heads": []}).verdict is DIRECTION
    statistics = [
        {"trace": trace}
        | dict(
            zip(
                ("requests", "read_percent", "write_pages", "inter_arrival_ms"), values, strict=True
            )
        )
        for trace, values in marking.TABLE_III.items()
    ]
    assert marking.m13({"table-3": statistics}).verdict is REPRODUCED
    assert marking.m13({"table-3": statistics[:1]}).verdict is UNTESTABLE
    assert (
        marking.m13(
            {"table-3": [statistics[0], *(s | {"requests": 1} for s in statistics[1:])]}
        ).verdict
        is DIRECTION
    )
    assert marking.m13({"table-3": []}).ours == "No trace given."


def test_whole_traces_are_played_where_they_are(tmp_path: Path) -> None:
    lines = [f"0,{(i * 7919) % 4000 * 8},4096,w,{i / 100}\n" for i in range(3000)]
    (tmp_path / "Financial1.spc").write_text("".join(lines))
    part = papers()["container-marking"].parts["traces"]
    jobs = part.jobs(Setting(traces=tmp_path))
    assert [job.arguments["trace"] for job in jobs] == ["financial1"] * 4
    row = jobs[0].function(**jobs[0].arguments)
    assert row["error"] == "" and len(row["series"]) == 10 and row["write_amplification"] > 1
    assert all("trace" not in job.arguments for job in part.jobs(Setting()))
