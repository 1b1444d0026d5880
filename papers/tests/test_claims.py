"""The papers of the repository: every claim is there, and the page of claims is that of the last full run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

import needs
from flashwright_papers import Verdict, papers, reproduce
from flashwright_papers.documents import renewed
from flashwright_papers.markdown import pages, why_in_full
from flashwright_papers.papers import folder_of_papers
from flashwright_papers.session import Spent, totals

ROOT = Path(__file__).parents[2]
RANGES = {
    "D1.": 10,
    "D2.": 22,
    "D3.": 19,
    "D4.": 16,
    "D5.": 10,
    "K": 20,
    "G": 28,
    "M": 18,
    "H": 5,
}
# Measurements of real drives, which the reference has on a page of its own.
MEASURED = {"R": 30}
PUBLISHED = [f"{prefix}{n}" for prefix, count in RANGES.items() for n in range(1, count + 1)]
# The release of the DFTL paper's simulator, beside the paper.
RELEASED = {"F": 4}
# Tables on which the reference has no claim.
TABLES = ["T2.4", "T4.1"]
EXPECTED = [
    *PUBLISHED,
    *TABLES,
    *(
        f"{prefix}{n}"
        for prefix, count in (MEASURED | RELEASED).items()
        for n in range(1, count + 1)
    ),
]


def test_the_package_holds_every_paper(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A wheel is the folder of the package, so what lies outside it does not come with it."""
    monkeypatch.delenv("FLASHWRIGHT_EXPERIMENTS", raising=False)
    monkeypatch.chdir(tmp_path)
    ours = Path(str(files("flashwright_papers"))).resolve()
    assert folder_of_papers().is_relative_to(ours)
    held = sorted(ours.rglob("paper.toml"))
    assert [path.parent.name for path in held] == list(papers())
    assert not list((ROOT / "experiments").rglob("paper.toml"))


def test_papers_read_nothing_outside_their_folder(tmp_path: Path) -> None:
    """All jobs of all papers are listed without the repository around them."""
    folder = shutil.copytree(
        folder_of_papers(), tmp_path / "papers", ignore=shutil.ignore_patterns("__pycache__")
    )
    code = """
import os
from flashwright_papers import Setting, papers
from flashwright_papers.papers import folder_of_papers
assert str(folder_of_papers()) == os.environ["FLASHWRIGHT_EXPERIMENTS"]
for quick in (True, False):
    for paper in papers().values():
        assert paper.claims
        for part in paper.parts.values():
            part.jobs(Setting(quick=quick))
"""
    environment = os.environ | {"FLASHWRIGHT_EXPERIMENTS": str(folder.resolve())}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, cwd=tmp_path)


def test_every_claim_is_listed_once() -> None:
    found = [each.id for paper in papers().values() for each in paper.claims]
    assert len(EXPECTED) == 184
    assert sorted(found) == sorted(EXPECTED)


def test_the_list_is_that_of_the_reference() -> None:
    text = (
        needs.reference("algorithms.md")
        .read_text()
        .partition("## 10. Claims")[2]
        .partition("\n## 11.")[0]
    )
    assert sorted(re.findall(r"^\| ([DKGMH][0-9.]+) \|", text, re.M)) == sorted(PUBLISHED)


def test_what_can_not_be_run_says_why() -> None:
    for paper in papers().values():
        for each in paper.claims:
            if each.verdict is not None:
                assert each.ours and len(each.why) > 20, each.id


def test_the_page_is_that_of_the_last_full_run() -> None:
    document = json.loads((ROOT / "docs" / "claims.json").read_text())
    folder = ROOT / "docs" / "explanation" / "claims"
    written = {path.name: path.read_text() for path in folder.iterdir()}
    assert written == pages(document), (
        "flashwright reproduce --from-json docs/claims.json --markdown docs/explanation/claims"
    )
    assert not document["quick"]
    runs, cpu_s = totals({name: Spent(**each) for name, each in document["spent"].items()})
    assert (document["runs"], document["cpu_s"]) == (runs, round(cpu_s, 1))
    assert sorted(each["id"] for each in document["claims"]) == sorted(EXPECTED)
    for each in document["claims"]:
        assert each["verdict"] is not None and each["ours"], each["id"]
        # Where ours differs, a paragraph says how and why.
        assert each["verdict"] == "reproduced" or len(why_in_full(each)) > 40, each["id"]
        # Whoever is told that a claim is not reproduced is told the cause, and no others are.
        assert bool(each["causes"]) == (each["verdict"] in ("not reproduced", "direction only")), (
            each["id"]
        )


def test_an_agreement_that_was_put_in_is_never_reproduced() -> None:
    read = papers()
    document = json.loads((ROOT / "docs" / "claims.json").read_text())
    assert renewed(document, read) == document  # the classes are those of the papers' files
    verdicts = {each["id"]: each["verdict"] for each in document["claims"]}
    fitted = ("D3.1", "D4.2", "D5.3", "H2", "K1")  # one constant, one class, wherever it is told
    assert {verdicts[id_] for id_ in fitted} == {"fitted"}
    tables = ("G1", "M17", "K15")
    assert {verdicts[id_] for id_ in tables} == {"by construction"}
    put_in = [each for paper in read.values() for each in paper.claims if each.basis]
    assert put_in and all(verdicts[each.id] != "reproduced" for each in put_in)
    assert document["counts"]["reproduced"] == list(verdicts.values()).count("reproduced")


def chosen_by_judges() -> dict[str, list[str]]:
    """The words for what judges choose among, such as traces and states, by what the names of claims begin with."""
    papers()
    dftl = sys.modules["flashwright_experiments.dftl.judging"]
    buffers = sys.modules["flashwright_experiments.hu_2012.ram_judge"]
    decides = ["stand-in", "as described", "over and over", buffers.BY_MODEL, *buffers.HEADS]
    return {
        "dftl/": [*dftl.STATE_NAMES.values(), "cost-benefit", "greed", *dftl.VICTIMS],
        "container-marking/": ["per list", "each list", "go to the tail"],
        "hu-2012/D2": decides,
        "hu-2012/D3": decides,
        "hu-2012/D4": ["as bundled"],
    }


def test_no_rule_says_what_its_judge_decides_on() -> None:
    """The judge tells the drive's state and the reading that it used; a rule that says it too can be wrong."""
    every = [each for paper in papers().values() for each in paper.claims]
    for begins, words in chosen_by_judges().items():
        claims = [each for each in every if f"{each.paper}/{each.id}".startswith(begins)]
        assert claims
        for each in claims:
            found_words = [word for word in words if word in each.rule.lower()]
            assert not found_words, f"{each.id}: {found_words}"


def test_every_verdict_among_readings_says_which_decided() -> None:
    document = json.loads((ROOT / "docs" / "claims.json").read_text())
    for each in document["claims"]:
        assert bool(each["used"]) >= bool(each["also"]), each["id"]
        assert each["used"] not in each["also"], each["id"]
    folder = ROOT / "docs" / "explanation" / "claims"
    for each in document["claims"]:
        page = (folder / f"{each['paper']}.md").read_text()
        rule = each["rule"].replace("|", "\\|")
        assert f"| {each['id']} | {rule} | {each['used']} |" in page, each["id"]


# Exact ones: what comes out must not move, on any machine, and they take no time.
EXACT = {
    *("G1", "G2", "G3", "G4", "G25"),
    *("M4", "M17", "K15"),
    *("D1.4", "D1.5", "D1.7", "D2.6", "D2.7", "D2.8", "D3.4"),
}


@pytest.mark.long
def test_every_claim_comes_out(tmp_path: Path) -> None:
    """All papers in their quick size: every claim is judged, and fails no run."""
    found = reproduce([], quick=True, store=tmp_path)
    assert len(found.claim_verdicts) == len(EXPECTED)
    for each in found.claim_verdicts:
        assert each.claim.verdict is not None or each.answer is not None, (
            f"{each.claim.id}: {each.error}"
        )


def test_exact_claims_come_out(tmp_path: Path) -> None:
    found = reproduce(sorted(EXACT), quick=True, store=tmp_path)
    assert {each.claim.id for each in found.claim_verdicts} == EXACT
    for each in found.claim_verdicts:
        assert each.answer is not None, f"{each.claim.id}: {each.error}"
        assert each.answer.verdict is Verdict.REPRODUCED, f"{each.claim.id}: {each.answer.ours}"
