"""What a page says of the drive that was played, and of figures that may not hold for longer than the run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from flashwright import Ssd
from flashwright.report import Findings, text, write_findings
from flashwright.report.charts import Columns
from flashwright.report.tables import Cell, Table
from flashwright.simulation.pages.header import header
from flashwright.simulation.pages.keyfigures import key_figures
from flashwright.simulation.results import RunResult
from test_report import a_run, embedded, written

# What the header says of the drive ----------------------------------------------------------------


def played(**settings: object) -> RunResult:
    ssd = Ssd.named("default").with_({"geometry.blocks-per-plane": 64, **settings})
    return ssd.play("uniform", requests=200)


def test_the_header_describes_the_drive_that_was_played() -> None:
    plain = Ssd.named("default").play("uniform", requests=200)
    said = header([plain])
    assert said.about == plain.json["config"]["about"] and said.changed == []
    assert dict(said.facts)["flash"].startswith("4 channels, 2 dies each, 1,024 blocks a die")
    said = header([played(**{"geometry.channels": 2, "gc.victim": "fifo"})])
    assert said.about is None, "it speaks of four channels"
    assert said.changed == ["geometry.channels = 2", "geometry.blocks-per-plane = 64", "gc.victim = fifo"]  # fmt: skip
    facts = dict(said.facts)
    assert facts["flash"] == "2 channels, 2 dies each, 64 blocks a die, 128 pages of 4 KiB a block"
    assert facts["capacity"] == "115.2 MiB of 128 MiB of flash, 10 % spare"
    assert (facts["mapping"], facts["cleaning"], facts["timing"]) == ("page", "fifo", "parallel")


def test_a_page_has_no_description_of_another_drive(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    played(**{"geometry.channels": 2}).report(path)
    header_of = path.read_text(encoding="utf-8").split("<header>")[1].split("</header>")[0]
    assert "4 channels" not in header_of and "2 channels, 2 dies each" in header_of
    assert "The bundled model with <code>geometry.channels = 2</code>" in header_of


def test_a_comparison_names_what_is_shared_and_what_varies() -> None:
    runs = [
        played(**{"gc.victim": victim, "geometry.channels": channels}).with_varied(
            {"gc.victim": victim, "geometry.channels": channels}
        )
        for victim in ("greedy", "fifo")
        for channels in (1, 2)
    ]
    said = header(runs)
    assert said.about is None and said.changed == ["geometry.blocks-per-plane = 64"]
    facts = dict(said.facts)
    assert facts["mapping"] == "page" and "cleaning" not in facts, "named by its key"
    assert facts["gc.victim"] == "varies: greedy, fifo"
    assert facts["geometry.channels"] == "varies: 1, 2"
    assert facts["capacity"].startswith("varies: 57.6 MiB of 64 MiB of flash")


# Whether a figure holds for longer than the run ----------------------------------------------------

SETTLED = {
    "verdict": "settled", "since_request": 400_000, "why": "It did not drift.", "mend": None,
    "write_amplification": 2.61, "interval": [2.58, 2.64], "confidence": 0.95,
}  # fmt: skip
TRANSIENT = {
    "verdict": "transient", "since_request": None, "why": "It still rose by 4 % a capacity.",
    "mend": "--requests 4000000", "write_amplification": None, "interval": None, "confidence": None,
}  # fmt: skip
WARNING = {"code": "short", "text": "The run is <short>.", "mend": "--requests 4000000"}


def tiles(page: str) -> dict[str, str]:
    """The tiles of a page by their name, as HTML."""
    found = re.search(r'<dl class="tiles">(.*?)</dl>', page, re.S)
    assert found
    return {
        re.search("<dt>(.*?)</dt>", tile)[1]: tile  # type: ignore[index]
        for tile in re.findall(r"<div.*?</div>", found[1], re.S)
    }


def test_a_transient_figure_looks_transient(tmp_path: Path) -> None:
    page = written(tmp_path, a_run(settled=TRANSIENT))
    shown = tiles(page)
    for name in ("Write amplification", "IOPS", "99th percentile of the response time"):
        assert 'class="unsettled"' in shown[name], name
        assert "<small>transient: not settled" in shown[name], name
    assert "unsettled" not in shown["Blocks erased"]
    assert "It still rose by 4 % a capacity. Try --requests 4000000." in page
    assert "bands" not in json.dumps(embedded(page, "plots"))
    too_short = tiles(written(tmp_path, a_run(settled=TRANSIENT | {"verdict": "too-short"})))
    assert "measured too briefly" in too_short["IOPS"] and "unsettled" in too_short["IOPS"]


def test_a_settled_figure_has_its_interval_and_its_stretch(tmp_path: Path) -> None:
    page = written(tmp_path, a_run(settled=SETTLED))
    shown = tiles(page)
    assert "unsettled" not in "".join(shown.values())
    said = "settled at 2.61, from request 400,000 on; 95 % interval 2.58 to 2.64"
    assert said in shown["Write amplification"]
    assert "<small>" not in shown["IOPS"]
    charts = embedded(page, "plots")["charts"]
    assert [view["bands"] for view in charts["wa"]["views"]] == [
        [[8.32e9, None, "settled"]], [[400_000, None, "settled"]],
    ]  # fmt: skip
    assert "bands" not in charts["iops"]["views"][0]


@pytest.mark.parametrize("change", [{}, {"settled": SETTLED | {"verdict": "none"}}])
def test_nothing_is_said_where_nothing_is_known(tmp_path: Path, change: dict[str, Any]) -> None:
    page = written(tmp_path, a_run(**change))
    assert "<small>" not in page and 'class="unsettled"' not in page
    assert 'class="warnings"' not in page


def test_a_comparison_has_a_column_of_verdicts() -> None:
    runs = [a_run("a", settled=SETTLED), a_run("b", settled=TRANSIENT), a_run("c")]
    table = key_figures(runs)
    assert table.header[:2] == ["Run", "Settled"]
    assert [(row[1].shown, row[1].tone) for row in table.rows] == [
        ("settled", "good"), ("transient", "warn"), (text.ABSENT, None),
    ]  # fmt: skip
    assert "Settled" not in key_figures([a_run("a"), a_run("b")]).header


def test_a_run_that_still_changes_is_not_the_best() -> None:
    runs = [
        a_run("a", amplification=2.2, settled=TRANSIENT),
        a_run("b", amplification=2.5, settled=SETTLED),
        a_run("c", amplification=3.0, settled=SETTLED),
    ]
    table = key_figures(runs)
    place = table.header.index("Write amplification")
    assert [row[place].best for row in table.rows] == [False, True, False]


def test_warnings_stand_beneath_the_header(tmp_path: Path) -> None:
    full = {"code": "full", "text": "The drive is full.", "mend": None}
    page = written(tmp_path, a_run("a", warnings=[WARNING, full]), a_run("b", warnings=[WARNING]))
    block = page.split('<section class="warnings"')[1].split("</section>")[0]
    assert "<h2>Warnings</h2>" in block and block.count("<li>") == 2
    assert '<li>The run is &lt;short&gt;. <span class="mend">Try --requests 4000000</span></li>' in block  # fmt: skip
    assert "<li><strong>a:</strong> The drive is full.</li>" in block


def test_percentiles_and_tiles_are_said_in_words(tmp_path: Path) -> None:
    page = written(tmp_path, a_run("a"), a_run("b"))
    assert '<th scope="col" title="99th percentile of the response time">99 % response</th>' in page
    assert '<th scope="col" title="99.9th percentile">99.9 %</th>' in page
    alone = written(tmp_path, a_run())
    assert 'title="99th percentile of the response time: 99 of 100 requests took no longer."' in alone  # fmt: skip
    meanings = alone.split('class="meanings"')[1].split("</details>")[0]
    assert (
        "<dt>99th percentile of the response time</dt>" in meanings
        and "<dt>verified</dt>" in meanings
    )


def test_tiles_and_verdicts_of_findings_say_what_they_mean(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    table = Table(["Claim", "Verdict"], [[Cell("G1"), Cell("reproduced", tone="good")]])
    means = {"reproduced": "The rule is met.", "Knee": "Where it <bends>."}
    write_findings(
        path,
        Findings(
            title="All", facts=[], tiles=[("Knee", "10 %"), ("Other", "1")], table=table, explained=[],
            sections=[], columns=Columns(), document={}, meanings=means,
        ),
    )  # fmt: skip
    page = path.read_text(encoding="utf-8")
    assert '<div title="Where it &lt;bends&gt;."><dt>Knee</dt>' in page
    assert "<div><dt>Other</dt>" in page
    assert '<span class="badge good" title="The rule is met.">reproduced</span>' in page
    assert "<dt>reproduced</dt><dd>The rule is met.</dd>" in page
