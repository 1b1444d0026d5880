"""Claims of papers: reading their folders, running what they rest on, judging, and the command."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from flashwright.errors import ConfigError
from flashwright_papers import Verdict, choose, papers, reproduce
from flashwright_papers.claims import TOO_SMALL, Answer
from flashwright_papers.markdown import pages
from flashwright_papers.pages import claims_page

Cli = Callable[..., SimpleNamespace]

CLAIMS = """
[[claim]]
id = "T1"
entry = "figure-1"
where = "fig. 1"
kind = "B"
says = "Twice as many come to twice as much."
rule = "within 1 %"
why = "It is off by what was added."

[[claim]]
id = "T2"
entry = "section-2"
where = "2"
kind = "E"
says = "Somebody said so."
rule = "record only"
verdict = "not testable"
ours = "on record"
why = "Cited by the paper."
"""

RUNS = """
from flashwright_papers import Job, part

from .shared import FACTOR


def one(count, note):
    with open(note, "a") as file:
        print(count, file=file)
    if count == 13:
        raise ValueError("13 is not a count")
    return {"count": count, "sum": FACTOR * count}


@part("sums", cpu_s=(60, 600))
def sums(setting):
    counts = [1, 2] if setting.quick else [1, 2, 4]
    return [Job(one, {"count": n, "note": NOTE}, f"count {n}") for n in counts]


NOTE = __file__.replace("runs.py", "note.txt")
"""

JUDGES = """
import numpy as np

from flashwright_papers import Answer, Line, Plot, Verdict, claim


@claim("T1", needs="sums")
def t1(found):
    rows = found["sums"]
    ratio = rows[1]["sum"] / rows[0]["sum"]
    plot = Plot(
        "Sums",
        "count",
        "sum",
        [
            Line("ours", range(1, len(rows) + 1), np.array([r["sum"] for r in rows])),
            Line("nothing", (1, 2), (float("nan"), None)),
            Line("paper", [1], [2], paper=True),
        ],
    )
    return Answer(Verdict.of(abs(ratio / 2 - 1) < 0.01), f"{ratio:.2f} times", plots=[plot])
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    # Files are imported under their folder's name, once a process.
    paper = tmp_path / "experiments" / f"toy-{tmp_path.name.replace('_', '-')}"
    paper.mkdir(parents=True)
    (paper / "paper.toml").write_text('title = "Sums"\ncited = "Nobody; 2012"\n')
    (paper / "claims.toml").write_text(CLAIMS)
    (paper / "shared.py").write_text("FACTOR = 2\n")
    (paper / "runs.py").write_text(RUNS)
    (paper / "judges.py").write_text(JUDGES)
    return paper


def played(paper: Path) -> list[str]:
    note = paper / "note.txt"
    return sorted(note.read_text().split()) if note.exists() else []


def test_claims_are_run_judged_and_kept(folder: Path, tmp_path: Path) -> None:
    plans: list[Any] = []
    args: dict[str, Any] = {"experiments": folder.parent, "store": tmp_path / "store", "workers": 2}
    found = reproduce(announce=plans.append, **args)
    assert [each.claim.id for each in found.claim_verdicts] == ["T1", "T2"]
    answers = [each.answer for each in found.claim_verdicts]
    assert answers[0] is not None and answers[0].verdict is Verdict.REPRODUCED
    assert answers[0].ours == "2.00 times"
    assert answers[1] is not None and answers[1].verdict is Verdict.UNTESTABLE
    assert found.counts["reproduced"] == found.counts["not testable"] == 1
    assert (plans[0].runs, plans[0].kept, plans[0].cpu_s) == (3, 0, 600)
    assert played(folder) == ["1", "2", "4"]
    # What is kept is not run again; a quick run shares what it has in common.
    again = reproduce(quick=True, announce=plans.append, **args)
    assert (again.runs, again.computed) == (2, 0) and plans[1].cpu_s == 0
    assert played(folder) == ["1", "2", "4"]
    # It plays less than what decides the claim, and gives no verdict.
    assert again.counts == dict.fromkeys(found.counts, 0) | {"not testable": 1, TOO_SMALL: 1}
    [small, cited] = again.to_json()["claims"]
    assert (small["verdict"], small["judged"], small["ours"]) == (TOO_SMALL, None, "2.00 times")
    assert cited["verdict"] == "not testable"
    assert f"| {TOO_SMALL} |" in pages(again.to_json())["index.md"]


def test_a_quick_run_of_the_same_size_is_judged(folder: Path, tmp_path: Path, command: Cli) -> None:
    where = ("--experiments", folder.parent, "--store", tmp_path / "store")
    (folder / "judges.py").write_text(JUDGES.replace("< 0.01", "< 0"))
    (folder / "runs.py").write_text(RUNS.replace("[1, 2] if setting.quick else", ""))
    for size in (("--quick",), ()):
        said = command("reproduce", "T1", *size, *where)
        assert said.status == 1 and "not reproduced" in said.out


def test_a_kept_quick_run_stays_without_a_verdict(
    folder: Path, tmp_path: Path, command: Cli
) -> None:
    where, kept = ("--experiments", folder.parent), tmp_path / "claims.json"
    (folder / "judges.py").write_text(JUDGES.replace("< 0.01", "< 0"))
    said = command("reproduce", "--quick", *where, "--store", tmp_path / "s", "--json", kept)
    assert said.status == 0 and TOO_SMALL in said.out  # what is not judged has not failed
    said = command("reproduce", "--from-json", kept, *where, "--json", kept)
    assert said.status == 0 and json.loads(kept.read_text())["claims"][0]["verdict"] == TOO_SMALL


def test_what_a_job_imports_is_part_of_its_key(folder: Path, tmp_path: Path) -> None:
    from flashwright_papers.claims import Setting
    from flashwright_papers.papers import _code, _of_modules, points_of

    part = next(iter(papers(folder.parent).values())).parts["sums"]
    before = {each.key for each in points_of(part, Setting())}
    (folder / "shared.py").write_text("FACTOR = 3\n")
    _code.cache_clear()
    _of_modules.cache_clear()
    assert not before & {each.key for each in points_of(part, Setting())}
    # A judge shapes no run, nor do words, nor what a part takes.
    (folder / "shared.py").write_text('"""Shared."""\n\nFACTOR = 2  # twice\n')
    (folder / "runs.py").write_text(RUNS.replace("(60, 600)", "(6, 6)"))
    (folder / "judges.py").write_text(JUDGES + "\n# another word\n")
    _code.cache_clear()
    _of_modules.cache_clear()
    assert before == {each.key for each in points_of(part, Setting())}


def test_a_failed_run_leaves_the_other_claims(folder: Path, tmp_path: Path) -> None:
    (folder / "runs.py").write_text(RUNS.replace("[1, 2, 4]", "[1, 13]"))
    found = reproduce(experiments=folder.parent, store=tmp_path / "store", workers=1)
    assert found.claim_verdicts[0].answer is None
    assert "count 13: ValueError: 13 is not a count" in str(found.claim_verdicts[0].error)
    assert found.claim_verdicts[1].answer is not None
    assert found.counts["could not be judged"] == 1


def test_a_judge_that_fails_is_reported_with_its_line(folder: Path, tmp_path: Path) -> None:
    (folder / "judges.py").write_text(JUDGES.replace('rows[0]["sum"]', "0"))
    found = reproduce(experiments=folder.parent, store=tmp_path / "store", workers=1)
    assert "ZeroDivisionError" in str(
        found.claim_verdicts[0].error
    ) and "judges.py, line 10" in str(found.claim_verdicts[0].error)


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("claims.toml", 'kind = "B"', 'kind = "F"', "claim T1: kind: found 'F', expected A, B, C"),
        ("claims.toml", 'rule = "within 1 %"', "", "claim T1: found no rule"),
        ("claims.toml", 'where = "fig. 1"', 'were = "fig. 1"', "claim T1: found were, expected"),
        (
            "claims.toml",
            "rule =",
            'basis = "guessed"\nrule =',
            "basis: found 'guessed', expected fitted,",
        ),
        (
            "claims.toml",
            "rule =",
            'causes = "trace, chance"\nrule =',
            "causes: found 'chance', expected trace, unstated, source, model",
        ),
        (
            "claims.toml",
            "rule =",
            'basis = "fitted"\nrule =',
            "found one of basis and because, expected",
        ),
        ("claims.toml", '"record only"', "3", "claim T2: rule: found 3, expected text"),
        ("claims.toml", 'verdict = "not testable"', "", "T2 has neither a judge nor a verdict"),
        ("judges.py", '"T1"', '"T1", "T9"', "a judge answers T9, which no TOML file lists"),
        ("judges.py", 'needs="sums"', 'needs="sum"', "needs the part 'sum', which no file of"),
        ("paper.toml", "cited", "sited", "found sited, title, expected title and cited"),
        ("claims.toml", "[[claim]]", "[[claim]", "claims.toml: "),
        ("judges.py", "from", "from .runs import sums as _\nfrom", None),
        (
            "runs.py",
            "def one",
            'twice = part("sums", cpu_s=(1, 1))(lambda s: [])\n\n\ndef one',
            "two functions list the part 'sums'",
        ),
    ],
)
def test_faults_of_a_folder_are_named(
    folder: Path, file: str, old: str, new: str, said: str | None
) -> None:
    path = folder / file
    path.write_text(path.read_text().replace(old, new, 1))
    if said is None:
        papers(folder.parent)  # what a file imports from another is not its own
        return
    with pytest.raises(ConfigError) as error:
        papers(folder.parent)
    assert said in str(error.value)


def test_choosing(folder: Path) -> None:
    read = papers(folder.parent)
    for word in (folder.name, f"{folder.name}/figure-1", "t1", f"{folder.name}/T1"):
        assert choose(read, [word])[0].id == "T1"
    with pytest.raises(ConfigError, match=r"figure1', expected of .* figure-1, section-2, or a cl"):
        choose(read, ["T1", f"{folder.name}/figure1"])
    with pytest.raises(ConfigError) as error:
        choose(read, ["figure-1"])
    assert error.value.hint == f"did you mean {folder.name}/figure-1?"
    with pytest.raises(ConfigError) as error:
        choose(read, ["?"])
    assert error.value.hint == "`flashwright reproduce --list` names all of them"


def test_no_papers(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="found no papers in"):
        papers(tmp_path)


def test_the_command(folder: Path, tmp_path: Path, command: Cli) -> None:
    where = ("--experiments", folder.parent, "--store", tmp_path / "store")
    listed = command("reproduce", "--list", *where)
    assert listed.status == 0 and "Twice as many" in listed.out and "2 claims" in listed.out
    files = [tmp_path / name for name in ("claims.json", "claims", "claims.html")]
    said = command(
        "reproduce", *where, "--json", files[0], "--markdown", files[1], "--report", files[2]
    )
    assert said.status == 0
    assert "2 claims rest on 3 runs; about 10 minutes of one core to go" in said.err
    assert "2.00 times" in said.out and "1 reproduced" in said.out
    document = json.loads(files[0].read_text())
    assert document["counts"]["not testable"] == 1
    lines = document["claims"][0]["plots"][0]["lines"]
    assert lines[0]["x"] == [1, 2, 3] and lines[0]["y"] == [2, 4, 8]
    assert lines[1]["y"] == [None, None] and lines[2]["paper"] is True
    made = {path.name: path.read_text() for path in files[1].iterdir()}
    assert made == pages(document) and set(made) == {"index.md", f"{folder.name}.md"}
    assert f"| [{folder.name}]({folder.name}.md) | 2 | 1 | 0 | 0 | 0 | 0 | 1 |" in made["index.md"]
    assert "| T1 | fig. 1 (`figure-1`) | B |" in made[f"{folder.name}.md"]
    assert "**T2**, not testable: Cited by the paper." in made[f"{folder.name}.md"]
    assert "Twice as many" in files[2].read_text()
    # A claim that does not come out is the command's failure.
    (folder / "judges.py").write_text(JUDGES.replace("< 0.01", "< 0"))
    assert command("reproduce", "T2", *where).status == 0


def test_the_command_says_what_it_can_not(folder: Path, tmp_path: Path, command: Cli) -> None:
    where = ("--experiments", folder.parent, "--store", tmp_path / "store")
    said = command("reproduce", "nothing", *where)
    assert said.status == 2 and "CLAIM: found 'nothing'" in said.err
    said = command("reproduce", *where, "--jobs", "0")
    assert said.status == 2 and "jobs: found 0" in said.err
    said = command("reproduce", *where, "--jobs", "1", "--dask", "tcp://localhost:1")
    assert said.status == 2 and "--jobs and --dask: found both" in said.err
    said = command("reproduce", *where, "--traces", tmp_path / "none")
    assert said.status == 2 and "not a folder" in said.err
    said = command("reproduce", *where, "--markdown", tmp_path / "no" / "claims")
    assert said.status == 2 and not played(folder)
    (tmp_path / "claims.md").write_text("a page of before")
    said = command("reproduce", *where, "--markdown", tmp_path / "claims.md")
    assert said.status == 2 and "claims.md: is a file; expected a folder" in said.err
    assert not played(folder)


def test_what_decided_among_readings_is_required() -> None:
    with pytest.raises(ValueError, match="expected the reading that decided"):
        Answer(Verdict.NOT, "1", also={"another reading": Verdict.REPRODUCED})
    Answer(Verdict.NOT, "1", also={"another reading": Verdict.REPRODUCED}, used="this one")


PUT_IN = """
basis = "fitted"
because = "The factor was fitted to it."
reading = "the sums taken in order"
"""


def test_an_agreement_that_was_fitted_counts_as_fitted(
    folder: Path, tmp_path: Path, command: Cli
) -> None:
    where = ("--experiments", folder.parent)
    kept, markdown = tmp_path / "claims.json", tmp_path / "claims"
    run = ("reproduce", *where, "--store", tmp_path / "store", "--json", kept)
    assert command(*run).status == 0
    assert json.loads(kept.read_text())["claims"][0]["verdict"] == "reproduced"
    path = folder / "claims.toml"
    path.write_text(
        path.read_text().replace('\n[[claim]]\nid = "T2', f'{PUT_IN}\n[[claim]]\nid = "T2')
    )
    (folder / "note.txt").unlink()
    # The classes are those of the file as it is now; nothing is run for that.
    said = command("reproduce", "--from-json", kept, *where, "--json", kept, "--markdown", markdown)
    shown = claims_page(json.loads(kept.read_text())).table
    assert shown is not None and shown.rows[0][1].shown == "fitted"
    assert "(This verdict holds only with the sums taken in order.)" in shown.rows[0][3].shown
    assert said.status == 0 and "1 fitted" in said.out and not played(folder)
    claim = json.loads(kept.read_text())["claims"][0]
    assert (claim["verdict"], claim["judged"]) == ("fitted", "reproduced")
    page = (markdown / f"{folder.name}.md").read_text()
    assert "| fitted (only with the sums taken in order) |" in page
    assert "The factor was fitted to it. By its rule alone: reproduced. It is off by" in page
    assert (
        "| fitted | reproduced | The factor was fitted to it. |"
        in (markdown / "index.md").read_text()
    )
    # A run says the same, and one that does not agree stays what it is.
    assert command(*run).status == 0
    assert json.loads(kept.read_text())["counts"]["fitted"] == 1
    document = json.loads(kept.read_text())
    document["claims"][0]["judged"] = "not reproduced"
    kept.write_text(json.dumps(document))
    said = command("reproduce", "--from-json", kept, *where)
    assert said.status == 1 and "1 not reproduced" in said.out and "0 fitted" in said.out


def test_what_is_kept_must_be_a_reproduction(
    folder: Path, tmp_path: Path, command: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = ("--experiments", folder.parent)
    # What the environment has for other commands is not asked for here.
    monkeypatch.setenv("FLASHWRIGHT_TRACES", str(tmp_path))
    kept = tmp_path / "kept.json"
    assert "No such file" in command("reproduce", "--from-json", kept, *where).err
    kept.write_text("[]")
    said = command("reproduce", "--from-json", kept, *where)
    assert said.status == 2 and "expected a reproduction" in said.err
    other = {"claims": [{"paper": "x", "id": "X1", "verdict": None}], "counts": {}, "date": ""}
    kept.write_text(json.dumps(other))
    said = command("reproduce", "--from-json", kept, *where)
    assert said.status == 2 and "found the claim x/X1" in said.err
    for asked in (("T1",), ("--traces", folder), ("--search", "--quick")):
        said = command("reproduce", *asked, "--from-json", kept, *where)
        assert said.status == 2 and "--from-json: found with claims" in said.err


def test_a_kept_run_is_searched_without_being_run_again(
    folder: Path, tmp_path: Path, command: Cli
) -> None:
    left_open(folder)
    where, kept = ("--experiments", folder.parent), tmp_path / "claims.json"
    assert command("reproduce", *where, "--store", tmp_path / "s", "--json", kept).status == 1
    first = json.loads(kept.read_text())
    (folder / "note.txt").unlink()
    run = ("reproduce", "--from-json", kept, "--search", *where, "--json", kept)
    said = command(*run, "T1", "--store", tmp_path / "other")
    assert said.status == 1 and "2 claims: 0 reproduced" in said.out
    # Of the search's own runs, the full run's 4 is not one.
    assert played(folder) == ["1", "2", "3", "5"]
    found = json.loads(kept.read_text())
    readings = [(one["given"], one["verdict"]) for one in found["claims"][0].pop("searched")]
    assert readings == [
        ("", "not reproduced"),
        ("the second count: 3", "reproduced"),
        ("the second count: 5", "not reproduced"),
    ]
    assert first["claims"][0].pop("searched") == []
    # Each part's runs are recorded, and totals are their sums.
    part = f"{folder.name}/sums"
    took, searched = first["spent"][part], found["spent"][part]
    assert (took["runs"], took["searched_runs"], first["runs"]) == (3, 0, 3)
    assert (searched["runs"], searched["searched_runs"], found["runs"]) == (3, 2, 5)
    assert found["cpu_s"] == round(searched["cpu_s"] + searched["searched_cpu_s"], 1)
    totals = ("spent", "runs", "cpu_s")
    assert found | {name: first[name] for name in totals} == first
    # A search of before whose time nobody recorded is told as such.
    assert "without those of" not in pages(found)["index.md"]
    found["spent"][part]["searched_cpu_s"] = None
    assert "of one core without those of 2 runs of searches" in pages(found)["index.md"]
    # What a run had is what its search has.
    first["traces"] = True
    kept.write_text(json.dumps(first))
    said = command(*run, "--store", tmp_path / "other")
    assert said.status == 2 and "--traces: found none" in said.err
    first["claims"] = first["claims"][1:]
    kept.write_text(json.dumps(first))
    said = command(*run, "T1", "--store", tmp_path / "other")
    assert said.status == 2 and "--from-json: found none of T1" in said.err
    del first["spent"]
    kept.write_text(json.dumps(first))
    said = command(*run, "--store", tmp_path / "other")
    assert said.status == 2 and "expected what each part took" in said.err


def test_a_search_leaves_alone_what_no_reading_changes(folder: Path, tmp_path: Path) -> None:
    left_open(folder)
    (folder / "runs.py").write_text(RUNS)
    args: dict[str, Any] = {"experiments": folder.parent, "store": tmp_path / "store", "workers": 1}
    found = reproduce(search=True, **args)
    assert [each.searched for each in found.claim_verdicts] == [(), ()]
    assert played(folder) == ["1", "2", "4"]


def test_a_claim_that_is_not_reproduced_is_status_1(
    folder: Path, tmp_path: Path, command: Cli
) -> None:
    (folder / "shared.py").write_text("FACTOR = 2\n")
    (folder / "judges.py").write_text(JUDGES.replace("< 0.01", "< 0"))
    said = command("reproduce", "T1", "--experiments", folder.parent, "--store", tmp_path / "store")
    assert said.status == 1 and "not reproduced" in said.out
    assert "It is off by what was added." in said.out


OPEN = """
search-divisor = 2

[[open]]
name = "last"
what = "the second count"
taken = 2
others = [3, 5]
why = "Nobody says."
"""


def left_open(folder: Path) -> None:
    """Let the toy's second count be open, and its claim miss."""
    (folder / "paper.toml").write_text('title = "Sums"\ncited = "Nobody; 2012"\n' + OPEN)
    runs = RUNS.replace("[1, 2] if setting.quick else [1, 2, 4]", COUNTS)
    (folder / "runs.py").write_text(runs)
    (folder / "judges.py").write_text(JUDGES.replace("ratio / 2 - 1", "ratio / 3 - 1"))


COUNTS = '[1, int(setting.given.get("last", 2)), 4 // setting.divisor]'


def test_what_a_paper_leaves_open_can_be_given(folder: Path, tmp_path: Path) -> None:
    left_open(folder)
    args: dict[str, Any] = {"experiments": folder.parent, "store": tmp_path / "store", "workers": 1}
    assert reproduce(**args).counts["not reproduced"] == 1
    found = reproduce(given={"last": "3"}, **args)
    assert found.counts["reproduced"] == 1 and found.to_json()["given"] == {"last": 3}
    # Any number between those that the paper names.
    assert reproduce(given={"last": "4"}, **args).to_json()["given"] == {"last": 4}
    for wrong in ("6", "4.5", "some"):
        said = f"last: found '{wrong}', expected a whole number from 2 to 5"
        with pytest.raises(ConfigError, match=said):
            reproduce(given={"last": wrong}, **args)
    with pytest.raises(ConfigError, match="found 'first', expected one of last"):
        reproduce(given={"first": 1}, **args)


def test_a_search_tries_what_is_left_open(folder: Path, tmp_path: Path, command: Cli) -> None:
    left_open(folder)
    args: dict[str, Any] = {"experiments": folder.parent, "store": tmp_path / "store", "workers": 1}
    found = reproduce(search=True, **args)
    [first, second] = found.claim_verdicts
    assert [(each.given, each.verdict) for each in first.searched] == [
        ("", Verdict.NOT),
        ("the second count: 3", Verdict.REPRODUCED),
        ("the second count: 5", Verdict.NOT),
    ]
    assert second.searched == ()
    [spent] = found.spent.values()
    assert (spent.runs, spent.searched_runs, found.runs) == (3, 2, 5)
    # The search is smaller: of its runs 4 // 2 is one.
    assert played(folder) == ["1", "2", "3", "4", "5"]
    written = pages(found.to_json())
    assert "## Reproduced under another reading only" in written["index.md"]
    page = written[f"{folder.name}.md"]
    assert (
        "Searched, not reproduced as taken: reproduced with the second count: 3; "
        "the same with 1 other."
    ) in page
    assert "| `last` | the second count | 2 | 3, 5 | Nobody says. |" in page
    where = ("--experiments", folder.parent)
    assert (
        "found 'last', expected NAME=VALUE" in command("reproduce", *where, "--given", "last").err
    )
    assert "the second count" in command("reproduce", *where, "--list").out
