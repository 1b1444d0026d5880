"""The claims about speeds, latencies and SLC caches of real drives: judges on rows made by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from judging import together, verdict_of

from flashwright_papers import Verdict, papers

PAPER = papers()["real-drives"]
judges: Any = together("real_drives", "measured", "models", "runs", "judges_of_times")
MAX, P5520, PE8110 = judges.MODELS
GOOD, DIRECTION, NOT = Verdict.REPRODUCED, Verdict.DIRECTION, Verdict.NOT
Rows = list[dict[str, Any]]


def verdict(name: str, rows: Mapping[str, Any]) -> Verdict:
    return verdict_of(PAPER, name, rows)


def speeds(model: Any) -> Rows:
    """Runs with the speeds of the drive; where it has two series, those of the first."""
    names = {figure: name for name, figure in judges.SPEEDS.items()} | {"mean": "mib_s"}
    found: dict[str, dict[str, Any]] = {}
    for each in judges.figures():
        if each.drive == model.name and each.unit == "MiB/s":
            found.setdefault(each.load, {"load": each.load}).setdefault(
                names[each.figure], each.value
            )
    return list(found.values())


def changed(rows: Rows, load: str, name: str, factor: float) -> Rows:
    return [row | ({name: row[name] * factor} if row["load"] == load else {}) for row in rows]


@pytest.mark.parametrize(
    ("claim", "part", "model", "load", "name", "within"),
    [
        ("R8", "max-times", MAX, "uniform, 70 % used", "mib_s_lowest", 0.10),
        ("R8", "max-times", MAX, "16 active of 8 GiB", "mib_s", 0.10),
        ("R8", "max-times", MAX, "static 60 %", "mib_s", 0.10),
        ("R15", "p5520-times", P5520, "Zipf 0.8", "mib_s_before", 0.15),
        ("R25", "p5520-times", P5520, "1 active of 1 GiB", "mib_s", 0.15),
        ("R20", "pe8110-times", PE8110, "Zipf 0.4", "mib_s_lowest", 0.15),
        ("R26", "pe8110-times", PE8110, "4 active of 8 GiB", "mib_s", 0.15),
    ],
)
def test_each_speed_is_judged(
    claim: str, part: str, model: Any, load: str, name: str, within: float
) -> None:
    rows = speeds(model)
    assert verdict(claim, {part: rows}) is GOOD
    for factor, expected in (
        (1 + 0.9 * within, GOOD),
        (1 - 1.5 * within, DIRECTION),
        (1 + 2.5 * within, NOT),
    ):
        assert verdict(claim, {part: changed(rows, load, name, factor)}) is expected
    # Other claims of the same runs, and fitted figures, do not move.
    fitted = changed(speeds(MAX), "uniform, 90 % used", "mib_s_before", 2.0)
    assert verdict("R8", {"max-times": fitted}) is GOOD


def latencies(model: Any) -> Rows:
    rows: Rows = []
    for asked in judges.ASKED[model.name]:
        row: dict[str, Any] = {"asked": asked, "open": True}
        for name, of in (("read_us", "reads"), ("write_us", "writes")):
            load = f"{asked // 1000} k asked, {of}"
            row[name] = {
                percentile: judges.measured(model.name, "P4", load, percentile).value
                for percentile in judges.PERCENTILES
            }
        rows.append(row)
    return [*rows, {"iops": 100_000.0}]


@pytest.mark.parametrize(
    ("claim", "part", "model", "name", "factor"),
    [
        ("R9", "max-latency", MAX, "read_us", 1.5),
        ("R27", "max-latency", MAX, "write_us", 2.0),
        ("R16", "p5520-latency", P5520, "read_us", 1.5),
        ("R28", "p5520-latency", P5520, "write_us", 2.0),
        ("R21", "pe8110-latency", PE8110, "read_us", 1.5),
        ("R29", "pe8110-latency", PE8110, "write_us", 2.0),
    ],
)
def test_each_percentile_is_judged(
    claim: str, part: str, model: Any, name: str, factor: float
) -> None:
    rows = latencies(model)
    assert verdict(claim, {part: rows}) is GOOD
    last = rows[-2][name]
    last["p99"] *= 0.9 * factor
    assert verdict(claim, {part: rows}) is GOOD
    last["p99"] *= 1.3
    assert verdict(claim, {part: rows}) is DIRECTION
    for row in rows[:-1]:
        for percentile in ("p90", "p99", "p99.9"):
            row[name][percentile] /= 10
    assert verdict(claim, {part: rows}) is NOT
    rows = latencies(model)
    rows[0]["open"] = False
    for row in rows[:-1]:
        row[name]["p99.9"] = None  # too few requests
    assert verdict(claim, {part: rows}) is GOOD


def test_what_is_fitted_of_the_latencies_is_not_judged() -> None:
    rows = latencies(MAX)
    rows[0]["read_us"] |= {"p50": 1.0, "p95": 1.0, "p99": 1.0, "p99.9": 1.0}
    assert verdict("R9", {"max-latency": rows}) is GOOD


def fills() -> Rows:
    found = []
    for model in judges.CACHED:
        known = {f.figure: f.value for f in judges.figures() if f.drive == model.name}
        levels = [
            {
                "gb_s": known[rate],
                "until_share": known.get(f"{rate} until", 1000.2) / 1000.2,
            }
            for rate in judges.RATES
            if rate in known
        ]
        found.append(
            {
                "drive": model.name,
                "levels": levels,
                "mean_gb_s": known.get("whole drive", 0.2),
            }
        )
    return found


def test_phases_of_a_cache() -> None:
    rows = fills()
    assert verdict("R22", {"slc": rows}) is GOOD
    rows[0]["levels"][0]["gb_s"] *= 1.2  # fitted
    assert verdict("R22", {"slc": rows}) is GOOD
    rows[0]["levels"][1]["until_share"] *= 1.07
    assert verdict("R22", {"slc": rows}) is DIRECTION
    rows[0]["mean_gb_s"] = 1.8
    rows[1]["mean_gb_s"] = 1.0
    assert verdict("R22", {"slc": rows}) is NOT
    rows = fills()
    rows[2]["levels"] = rows[2]["levels"][:1]  # no cliff
    assert verdict("R22", {"slc": rows}) is GOOD
    rows[1]["levels"] = [{"gb_s": 1.5, "until_share": 0.1}, {"gb_s": 1.5, "until_share": 1.0}]
    rows[1]["mean_gb_s"] = 1.0
    assert verdict("R22", {"slc": rows}) is NOT


def test_a_pause_brings_the_first_phase_back() -> None:
    firsts = {
        model.name: judges.measured(model.name, "P7", "fill", "first rate").value
        for model in judges.CACHED
    }

    def after(share: float) -> Rows:
        return [
            {"drive": name, "gb_s_before": 0.3 * first, "gb_s_after": share * first}
            for name, first in firsts.items()
        ]

    assert verdict("R30", {"slc": after(0.95)}) is GOOD
    assert verdict("R30", {"slc": after(0.6)}) is DIRECTION
    assert verdict("R30", {"slc": after(0.35)}) is NOT
