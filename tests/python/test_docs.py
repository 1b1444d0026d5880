"""README.md and docs/: commands print what is shown; a write amplification has settled or says that it has not."""

from __future__ import annotations

import fnmatch
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest
import record_pages as pages
import site_hooks as site

from flashwright._core import __version__

ROOT = Path(__file__).parents[2]
PAGES = pages.PAGES
_NAMES = [pages.name_of(path) for path in PAGES]
# Lines of prose around a figure that may say what it is.
_NEAR = 3
_AMPLIFICATION = re.compile(
    r"write[- ]amplification\D{0,30}?\d+\.\d|\bWA\b\D{0,12}\d+\.\d", re.IGNORECASE
)
_UNSETTLED = re.compile(r"transient|not settled|too.short", re.IGNORECASE)
_IN_SETTLED = re.compile(r"in a\s+settled\s+drive")
_SETTLED = re.compile(r"(?<!not )\bsettled\b", re.IGNORECASE)


@cache
def page(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def examples(path: Path) -> list[pages.Example]:
    return list(pages.examples(page(path)))


def is_run_before(path: Path, example: pages.Example) -> bool:
    """Whether a page before this one runs the same commands and shows the same of them; that page's test runs them."""
    if example.shown is None:
        return False
    mine = (example.commands, example.expression, example.shown.text)
    return any(
        other.shown is not None and (other.commands, other.expression, other.shown.text) == mine
        for before in PAGES[: PAGES.index(path)]
        for other in examples(before)
    )


@pytest.mark.parametrize("path", PAGES, ids=_NAMES)
def test_a_page_prints_what_it_shows(path: Path) -> None:
    for example in examples(path):
        if is_run_before(path, example):
            continue
        output = pages.run(example.commands)
        if example.shown is not None:
            shown = pages.selected(output, example.expression)
            assert example.shown.text == shown, (
                f"where the new output is right: python tools/record_pages.py {pages.name_of(path)}"
            )


@pytest.mark.parametrize("path", PAGES, ids=_NAMES)
def test_every_block_is_run_or_says_why_not(path: Path) -> None:
    for block in pages.blocks(page(path)):
        assert block.kind in ("sh", "text", "toml", "json", "python"), f"a block of {block.kind!r}"
        if block.kind == "text":
            is_drawing = block.comment == "a drawing"
            assert is_drawing or block.shows is not None, f"no command is named for:\n{block.text}"
        elif block.kind in ("toml", "json"):
            assert block.saved_as or block.why_not_run, f"no command reads:\n{block.text}"
        else:
            assert block.comment == "" or block.why_not_run or block.saved_as, block.comment


def test_every_shelf_is_walked() -> None:
    assert {name.partition("/")[0] for name in _NAMES} == {
        *("README", "index", "tutorial", "how-to", "reference", "explanation")
    }
    written = [path for path in (ROOT / "docs").rglob("*.md") if path not in PAGES]
    assert all(page(path).startswith(pages.WRITTEN_BY_A_TOOL) for path in written)


def test_a_block_finds_what_was_saved_before() -> None:
    text = "<!-- saved as a.py -->\n```python\nx = 3\n```\n\n```python\nimport a\nprint(a.x)\n```\n"
    [example] = pages.examples(text)
    assert pages.run(example.commands) == "3\n"


def test_what_is_not_run(capsys: pytest.CaptureFixture[str]) -> None:
    reasons = {pages.name_of(path): pages.not_run(page(path)) for path in PAGES}
    with capsys.disabled():
        for name, whys in reasons.items():
            for why in whys:
                print(f"\n{name}: not run: {why}", end="")
    # A new one is to be thought about: most commands can be made small enough to run.
    assert sum(map(len, reasons.values())) == 30


def test_paths_in_architecture_exist() -> None:
    tops = ["crates", "papers", "docs", "examples", "experiments", "python", "tests", "tools"]
    there = {f"/{path.relative_to(ROOT)}" for top in tops for path in (ROOT / top).rglob("*")}
    there |= {f"/{name}" for name in tops} | {f"/{path.name}" for path in ROOT.glob("*.*")}
    pages_of_design = [ROOT / "ARCHITECTURE.md", *(ROOT / "docs/explanation/design").glob("*.md")]
    named = re.findall(r"`([\w.*/-]+)`", "".join(map(page, pages_of_design)))
    paths = [name for name in named if "/" in name or re.search(r"\w\.(rs|py|js|toml|md)$", name)]
    assert len(paths) > 40
    missing = [
        path
        for path in paths
        if not fnmatch.filter(there, f"*/{path.rstrip('/').replace('NAME', '*')}")
    ]
    assert missing == []


def test_files_that_any_page_names_exist() -> None:
    pages = [path for path in sorted(ROOT.rglob("*.md")) if not {".venv", "target"} & {*path.parts}]
    named = {
        (path, name.replace("KIND", "*").replace("NAME", "*"))
        for path in pages
        if path.name != "CHANGELOG.md"  # it names what was there
        for name in re.findall(
            r"(?<![\w./-])(?:crates|docs|examples|experiments|papers|python|tests|tools)/[\w./-]+\.(?:rs|py|toml|json|md|csv|svg)\b",
            page(path),
        )
    }
    assert len(named) > 100
    missing = [
        f"{path.relative_to(ROOT)}: {name}"
        for path, name in sorted(named)
        if not any(ROOT.glob(name)) and not any(path.parent.glob(name))
    ]
    assert missing == []


def test_a_citation_has_the_version_of_the_program() -> None:
    cited = re.search(r"^version: (.+)$", page(ROOT / "CITATION.cff"), re.MULTILINE)
    assert cited is not None and cited[1] == __version__
    assert f"version = {{{__version__}}}, year" in page(ROOT / "README.md")


def test_the_papers_have_the_version_of_the_program_and_need_it() -> None:
    project = tomllib.loads(page(ROOT / "papers/pyproject.toml"))["project"]
    assert project["version"] == __version__
    assert project["dependencies"] == [f"flashwright=={__version__}"]


def test_rust_tests_that_pages_name_exist() -> None:
    named = [
        found
        for path in PAGES
        for found in re.findall(
            r"cargo test -p flashwright-(\w+) --test (\w+)(?: (\w+))?", page(path)
        )
    ]
    assert len(named) > 5
    for crate, target, module in named:
        assert (ROOT / "crates" / crate / "tests" / f"{target}.rs").is_file(), (crate, target)
        tests = ROOT / "crates" / crate / "tests"
        found = [tests / f"{module or target}.rs", tests / (module or target) / "mod.rs"]
        assert any(path.is_file() for path in found), module


def prose_near(text: str, start: int, end: int) -> str:
    """The lines of prose around a part of a page."""
    before = [line for line in text[:start].splitlines() if line.strip()][-_NEAR - 3 :]
    after = [line for line in text[end:].splitlines() if line.strip()][: _NEAR + 1]
    return "\n".join(line for line in before + after if not line.startswith(("```", "<!--")))


def unmarked(text: str) -> list[str]:
    """Lines of outputs with a write amplification of which nothing near says whether it settled."""
    found: list[str] = []
    for block in pages.blocks(text):
        if block.kind != "text":
            continue
        near = prose_near(text, block.start, block.start + len(block.text))
        head: re.Match[str] | None = None
        verdict: re.Match[str] | None = None
        for line in block.text.splitlines():
            named = re.search(r"\bWA\b|amplification {2,}", line)
            if named is not None and not _AMPLIFICATION.search(line):
                head, verdict = named, re.search(r"\bsettled\b", line)
                continue
            if head is not None and re.search(
                r"\d\.\d+", line[max(0, head.start() - 6) : head.end() + 2]
            ):
                cell = "" if verdict is None else line[verdict.start() - 8 : verdict.end() + 8]
                mark = re.search(
                    r"\byes\b|\bno cleaning\b|\btransient\b|\btoo short\b|(\d+) of \1\b", cell
                )
                mark = mark or _UNSETTLED.search(near)
                if not mark and (verdict is not None or not _SETTLED.search(near)):
                    found.append(line)
            elif _AMPLIFICATION.search(line):
                marks = f"{line}\n{near}"
                if not (
                    _SETTLED.search(line)
                    # It divides the same programs, and the line above it has the verdict.
                    or line.startswith("into flash")
                    or _UNSETTLED.search(marks)
                    or _IN_SETTLED.search(block.text)
                ):
                    found.append(line)
    return found


@pytest.mark.parametrize("path", PAGES, ids=_NAMES)
def test_a_write_amplification_that_is_shown_has_settled_or_says_not(path: Path) -> None:
    assert unmarked(page(path)) == []


@pytest.mark.parametrize("path", PAGES, ids=_NAMES)
def test_a_write_amplification_in_prose_is_one_that_is_shown(path: Path) -> None:
    text = page(path)
    shown = "\n".join(block.text for block in pages.blocks(text) if block.kind == "text")
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    for found in _AMPLIFICATION.finditer(prose):
        figure = re.search(r"\d+\.\d+", found[0] + prose[found.end() : found.end() + 4])
        assert figure is not None and figure[0] in shown, found[0]


SETTLED = """
<!-- shows: . -->
```text
run       WA        settled  IOPS
greedy  8.129           yes   646
```
"""


def test_the_check_tells_settled_from_not() -> None:
    assert unmarked(SETTLED) == []
    assert unmarked(SETTLED.replace("          yes", "NO: transient")) == []
    assert unmarked(SETTLED.replace("   yes", "2 of 3"))
    unknown = SETTLED.replace("settled", "       ").replace("yes", "   ")
    assert len(unmarked(unknown)) == 1
    assert unmarked("These are transient.\n" + unknown) == []
    line = "<!-- shows: . -->\n```text\nwrite amplification  1.063\n```\n"
    assert unmarked(line) == ["write amplification  1.063"]
    assert unmarked("It has not settled.\n" + line) == []
    assert unmarked(line.replace("1.063", "1.063, settled")) == []


def test_a_readme_is_short() -> None:
    assert len(page(ROOT / "README.md").splitlines()) <= 150


def test_links_lead_somewhere() -> None:
    folders = (ROOT / "experiments", ROOT / "python" / "flashwright")
    others = [path for folder in (ROOT / "docs", *folders) for path in folder.rglob("*.md")]
    for path in {*PAGES, *others, *ROOT.glob("*.md")}:
        prose = re.sub(r"^```.*?^```$", "", page(path), flags=re.MULTILINE | re.DOTALL)
        for target in re.findall(r"\]\((?!https?:)([^)#\s]+)", prose):
            assert (path.parent / target).exists(), f"{path}: {target}"


def test_links_of_the_site() -> None:
    source = ROOT / "docs" / "how-to" / "index.md"
    place = "how-to/index.md"
    papers = "../../papers/flashwright_papers/experiments"
    links = {
        "[a](../index.md#b)": "[a](../index.md#b)",
        "[a](../../experiments/settling/README.md)": "[a](../explanation/experiments/settling.md)",
        f"[a]({papers}/dftl/README.md#b)": "[a](../explanation/experiments/dftl.md#b)",
        "[a](../../ARCHITECTURE.md)": "[a](../explanation/architecture.md)",
        "[a](../../Makefile)": "a (`Makefile`)",
        "[`Makefile`](../../Makefile)": "`Makefile`",
        "[a](../gone.md)": "[a](../gone.md)",
        "[a](https://semver.org)": "[a](https://semver.org)",
        "```sh\n[a](../../Makefile)\n```": "```sh\n[a](../../Makefile)\n```",
        "<!-- shows: ^a -->\n```text\na\n```": "```text\na\n```",
    }
    for written, expected in links.items():
        assert site.point_links(written, source, place) == expected
    # And back, from a page that is not below docs/.
    settling = ROOT / "experiments" / "settling" / "README.md"
    at = site.point_links(
        "[a](../../docs/index.md)", settling, "explanation/experiments/settling.md"
    )
    assert at == "[a](../../index.md)"


@pytest.mark.parametrize(
    ("text", "loads"),
    [
        ('<script src="https://unpkg.com/x"></script>', True),
        ("<link rel=stylesheet href=//fonts.example/x.css>", True),
        ('<img alt="" src="http://a/b.png">', True),
        ('<a href="https://semver.org">', False),
        ('<script src="assets/x.js"></script>', False),
    ],
)
def test_what_would_load_from_the_network_is_seen(text: str, loads: bool) -> None:
    assert (site.loads_from_network(text) is not None) == loads
    assert site.loads_from_network("a { background: url(x.png) }", style=True) is None
    assert site.loads_from_network("@import 'https://a/b.css'", style=True)


# What people search for, with the page that must answer first.
_SOUGHT = {
    "WAF": "glossary",
    "TBW": "glossary",
    "DWPD": "glossary",
    "over-provisioning": "glossary",
    "garbage collection": "glossary",
    "ZNS": "glossary",
    "wear leveling": "glossary",
    "endurance": "glossary",
    "MQSim": "coming-from",
    "SimpleSSD": "coming-from",
    "FEMU": "coming-from",
}


@pytest.mark.parametrize("word", _SOUGHT)
def test_what_people_search_for_is_a_heading_or_a_term(word: str) -> None:
    """The site's search looks through headings and text; a term of the glossary says where to go on."""
    name = _SOUGHT[word]
    [path] = (ROOT / "docs").rglob(f"{name}.md")
    heads = re.findall(r"^#+ (.+)$|^(.+)\n:   ", page(path), re.MULTILINE)
    assert any(word.lower() in "".join(head).lower() for head in heads), f"{name} has no {word}"
