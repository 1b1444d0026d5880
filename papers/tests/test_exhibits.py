"""Figures and tables by their names: all are listed, each has its command or its reason, and pages show them."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

import needs
from flashwright.errors import ConfigError
from flashwright_papers import choose, papers
from flashwright_papers.drawing import figure
from flashwright_papers.figures import exhibits_of, paper_pages, plots_of
from flashwright_papers.planning import exhibits

Cli = Callable[..., SimpleNamespace]
ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "explanation" / "figures"


def numbered(kind: str, chapter: str, last: int) -> list[str]:
    return [f"{kind}-{chapter}{n}" for n in range(1, last + 1)]


# Everything that the sources number, counted in them.
LISTED = {
    "container-marking": numbered("figure", "", 4) + numbered("table", "", 4),
    "dftl": numbered("figure", "", 11) + numbered("table", "", 3),
    "hu-2012": [
        "figure-1.1",
        *numbered("figure", "2.", 9),
        *numbered("figure", "3.", 15),
        *numbered("figure", "4.", 12),
        *numbered("figure", "5.", 10),
        *numbered("table", "2.", 4),
        "table-4.1",
    ],
    "hu-2012-anomalies": numbered("figure", "", 4),
    "kim-2011": [
        *numbered("figure", "", 10),
        *numbered("table", "", 4),
        *numbered("procedure", "", 6),
    ],
}
TEXTS = {
    "container-marking": "hu-container-marking",
    "dftl": "gupta-2009-dftl",
    "hu-2012": "hu-2012-enterprise-ssd-dissertation",
    "hu-2012-anomalies": "hu-2012-performance-anomalies",
    "kim-2011": "kim-2011-parameter-aware-io",
}
ROMAN = {"I": "1", "II": "2", "III": "3", "IV": "4"}


@pytest.mark.parametrize("paper", LISTED)
def test_every_figure_and_table_is_listed(paper: str) -> None:
    found = [each.name for each in papers()[paper].exhibits]
    assert sorted(found) == sorted(LISTED[paper])


@pytest.mark.parametrize("paper", LISTED)
def test_the_sources_number_no_others(paper: str) -> None:
    path = needs.reference("algorithms.md").parents[1] / "papers" / f"{TEXTS[paper]}.txt"
    if not path.is_file():
        pytest.skip(f"{path} is absent")
    named = re.findall(
        r"\b(Fig(?:ure|\.)|TABLE|Table|Procedure) ([IV]+|\d+(?:\.\d+)?)\b", path.read_text()
    )
    kinds = {"fig": "figure", "tab": "table", "pro": "procedure"}
    exhibit_names = {
        f"{kinds[kind[:3].lower()]}-{ROMAN.get(number, number)}" for kind, number in named
    }
    assert exhibit_names == set(LISTED[paper])


def test_each_has_its_command_or_its_reason() -> None:
    read = papers()
    for each in exhibits(read):
        assert len(each.shows) > 10
        chosen = choose(read, [each.command.split()[-1]])
        assert {one.id for one in chosen} == set(each.claims)
        assert len(each.drawing) > 10 or chosen


def test_a_claim_on_a_figure_is_among_the_figures_claims() -> None:
    for paper in papers().values():
        of_name = {each.name: each for each in paper.exhibits}
        for each in paper.claims:
            if each.paper in LISTED and re.match(r"(figure|table)-", each.entry):
                assert each.id in of_name[each.entry].claims, each.id


def test_one_figure_selects_its_claims_alone() -> None:
    read = papers()
    assert [each.id for each in choose(read, ["hu-2012/figure-4.8"])] == ["D4.8", "D4.9"]
    [shown] = exhibits(read, ["HU-2012/Figure-4.8"])
    assert shown.panels == ("Fusion-io ioDrive",)


def test_a_wrong_name_lists_what_there_is() -> None:
    with pytest.raises(ConfigError, match=r"expected of dftl table-1, figure-1, .*figure-11, "):
        choose(papers(), ["dftl/figure-12"])
    with pytest.raises(ConfigError, match="expected a paper") as found:
        choose(papers(), ["figure-5.9"])
    assert found.value.hint == "did you mean hu-2012/figure-5.9?"


def test_a_drawing_says_that_nothing_is_computed(command: Cli, tmp_path: Path) -> None:
    said = command("reproduce", "dftl/figure-1", "--store", tmp_path)
    assert said.status == 0 and "nothing to compute" in said.out and "claims" not in said.out
    said = command("reproduce", "dftl/figure-99", "--store", tmp_path)
    assert said.status == 2 and "figure-11" in said.err


def test_the_list_has_figures_and_tables(command: Cli) -> None:
    said = command("reproduce", "kim-2011", "--list")
    assert "kim-2011/procedure-6" in said.out and "20 figures and tables, 20 claims" in said.out
    listed = json.loads(command("reproduce", "kim-2011", "--list", "-q", "--json", "-").out)
    assert listed["exhibits"][0]["name"] == "figure-1"


def test_a_page_of_a_figure_is_written(command: Cli, tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    said = command(
        *("reproduce", "hu-2012/table-2.4", "dftl/figure-5", "--store", tmp_path / "store"),
        *("--paper-page", pages, "-q"),
    )
    assert said.status == 0
    assert sorted(path.name for path in pages.iterdir()) == ["dftl.md", "hu-2012.md", "index.md"]
    assert "| read | 20 us | 25 us | 25 us |" in (pages / "hu-2012.md").read_text()


def test_the_pages_are_those_of_the_last_full_run() -> None:
    made = paper_pages(json.loads((ROOT / "docs" / "claims.json").read_text()))
    written = {
        path.relative_to(PAGES).as_posix(): path.read_text()
        for path in PAGES.rglob("*")
        if path.is_file()
    }
    assert written == made, (
        "flashwright reproduce --from-json docs/claims.json --paper-page docs/explanation/figures"
    )


def test_every_figure_that_is_computed_is_drawn_or_a_worked_example() -> None:
    """A figure without a plot is a worked example, whose claims tell every step."""
    document = json.loads((ROOT / "docs" / "claims.json").read_text())
    examples = {"dftl/figure-5", "hu-2012/figure-3.2"}
    without = {
        f"{each.paper}/{each.name}"
        for source in document["sources"]
        for each in exhibits_of(source)
        if each.claims and not each.name.startswith("table") and not plots_of(document, each)
    }
    assert without == examples


LINE = {"label": "a < b", "x": [0, 1, 2], "y": [1.0, None, 3.0], "paper": False}
PLOT = {
    "title": "A & B",
    "x": "x",
    "y": "y",
    "lines": [LINE, LINE | {"label": "theirs", "paper": True}],
    "x_format": "number",
    "y_format": "bytes",
    "x_log": False,
    "y_log": True,
    "ticks": [],
    "levels": [["half", 1.5]],
    "points": False,
    "stacked": False,
}


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"points": True},
        {
            "ticks": [
                [0, "first of all"],
                [1, "second of all"],
                [2, "the third and the last of all"],
            ]
        },
        {"stacked": True, "y_log": False, "lines": [LINE, LINE]},
        {"lines": [LINE | {"y": [None, None, None]}]},
        {"lines": [LINE | {"x": [5, 5, 5], "y": [7, 7, 7]}]},
        {"x_log": True},
    ],
)
def test_a_drawing_is_whole(changed: dict[str, object]) -> None:
    root = ET.fromstring(figure("Figure 1", [PLOT | changed] * 4))
    assert "NaN" not in ET.tostring(root, encoding="unicode").replace("nan", "NaN")
    assert len(root.findall("{http://www.w3.org/2000/svg}g")) == 4


def test_marks_stand_where_the_values_are() -> None:
    one = PLOT | {
        "y_log": False,
        "y_format": "number",
        "levels": [],
        "lines": [LINE | {"y": [0.0, 5.0, 10.0]}],
    }
    [vertices] = re.findall(r'polyline points="([^"]+)"', figure("F", [one]))
    (x0, y0), (x1, y1), (x2, y2) = (map(float, each.split(",")) for each in vertices.split())
    assert x1 - x0 == pytest.approx(x2 - x1) and y0 - y1 == pytest.approx(y1 - y2) and y0 > y2


def test_bars_stand_on_each_other() -> None:
    lines = [LINE | {"y": [1.0, 2.0, 3.0]}, LINE | {"y": [4.0, 2.0, 0.0]}]
    svg = figure("F", [PLOT | {"y_log": False, "stacked": True, "lines": lines, "levels": []}])
    low, high = re.findall(r'<path d="(M[^"]*z)" fill="#', svg)
    tops = [float(each) for each in re.findall(r"V([\d.]+)", low)]
    assert [float(each) for each in re.findall(r"M[\d.]+ ([\d.]+)", high)] == tops[:2]
