"""The rooms of the package: what is public, what imports what, and the tree of exceptions."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

import flashwright
from flashwright import RunInterrupted, Ssd
from flashwright.errors import FlashwrightError, Interrupted
from flashwright.support.digests import modules_of
from flashwright.support.progress import Progress

ROOT = Path(__file__).parents[2]
HOME = Path(flashwright.__file__).parent


def for_type_checkers() -> dict[str, str]:
    """The public names that type checkers and editors see, with the module of each."""
    tree = ast.parse(Path(flashwright.__file__).read_text(encoding="utf-8"))
    guarded = [
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    return {
        alias.name: str(node.module)
        for block in guarded
        for node in ast.walk(block)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_public_names_are_the_same_everywhere() -> None:
    seen = for_type_checkers()
    homes = flashwright._HOMES
    assert sorted(seen) == sorted(homes) == sorted(flashwright.__all__)
    for name, module in seen.items():
        is_module = name in flashwright._MODULES
        assert homes[name] == (f"{module}.{name}" if is_module else module), name
        assert inspect.ismodule(getattr(flashwright, name)) == is_module, name
    assert set(flashwright.__all__) <= set(dir(flashwright))


def test_names_that_are_not_there_are_told() -> None:
    with pytest.raises(AttributeError, match="no attribute 'unheard_of'"):
        _ = flashwright.unheard_of  # type: ignore[attr-defined]


def test_a_room_is_imported_when_it_is_asked_for() -> None:
    code = """
import sys
import tokenize
import flashwright
first = [name for name in sys.modules if name.startswith("flashwright.")]
assert first == ["flashwright.support", "flashwright.support.interrupts"], first
flashwright.Ssd
assert "flashwright.probing" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_rooms_import_one_way_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HOME.parent))
    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == 0


def exceptions() -> Iterator[type[BaseException]]:
    for name in modules_of("flashwright"):
        # Files of papers are imported by their folders, under another name.
        if not name.endswith("__main__") and not name.startswith("flashwright_papers.experiments"):
            for value in vars(importlib.import_module(name)).values():
                is_exception = inspect.isclass(value) and issubclass(value, BaseException)
                is_exception = is_exception and not issubclass(value, Warning)
                if is_exception and value.__module__.startswith("flashwright"):
                    yield value


def test_all_exceptions_have_one_root() -> None:
    found = set(exceptions())
    assert len(found) > 20
    # An interruption is no error: whoever catches errors and goes on must still be stopped by Ctrl-C.
    errors = {each for each in found if not issubclass(each, Interrupted)}
    astray = [each.__qualname__ for each in errors if not issubclass(each, FlashwrightError)]
    assert astray == []


def test_interruptions_are_keyboard_interrupts_and_no_errors() -> None:
    found = {each for each in exceptions() if each.__name__.endswith("Interrupted")}
    assert len(found) == 6
    assert all(
        issubclass(each, Interrupted) and issubclass(each, KeyboardInterrupt) for each in found
    )
    assert not any(issubclass(each, Exception) for each in found)


def test_code_that_goes_on_after_an_error_ends_on_ctrl_c() -> None:
    def stopped(progress: Progress) -> None:
        raise KeyboardInterrupt

    def play_all() -> None:
        for seed in (1, 2):
            with suppress(FlashwrightError):
                Ssd.named("default").play("uniform", requests=1000, seed=seed, progress=stopped)

    with pytest.raises(RunInterrupted):
        play_all()


def features(crate: str) -> dict[str, str]:
    """The features of all that a crate is built from, by name and version."""
    command = ["cargo", "tree", "--offline", "--locked", "--no-dedupe", "--prefix", "none"]
    tree = subprocess.run(
        [*command, "--edges", "normal,build", "--format", "{p}|{f}", "--package", crate],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return dict(
        line.rsplit("|", 1) for line in tree.stdout.splitlines() if "(proc-macro)" not in line
    )


def test_the_core_and_its_benchmark_are_built_from_the_same_crates() -> None:
    core, bench = features("flashwright-core"), features("flashwright-bench")
    shared = core.keys() & bench.keys()
    assert len(shared) > 30
    different = {name: (core[name], bench[name]) for name in shared if core[name] != bench[name]}
    assert not different, "compiled twice; give crates/bench/Cargo.toml the features of the core"


# Words that say how a value came about and not what it is; each name has a noun of the field instead.
RIDDLES = re.compile(r"(?i)^_*(told(_.+)?|alike|judged|withheld|on_the_way|soonest)$")


def names_of_python(file: Path) -> Iterator[tuple[int, str]]:
    with tokenize.open(file) as text:
        for token in tokenize.generate_tokens(text.readline):
            if token.type == tokenize.NAME and not token.string.startswith("test_"):
                yield token.start[0], token.string


def names_of_rust(file: Path) -> Iterator[tuple[int, str]]:
    text = re.sub(
        r'//[^\n]*|r#".*?"#|"(?:\\.|[^"\\])*"',
        lambda found: "\n" * found[0].count("\n"),
        file.read_text(encoding="utf-8"),
        flags=re.DOTALL,
    )
    for number, line in enumerate(text.splitlines(), 1):
        yield from ((number, name) for name in re.findall(r"[A-Za-z_]\w*", line))


def test_no_name_is_a_riddle() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "*.py", "*.rs"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    files = [ROOT / name for name in listed.stdout.splitlines()]
    assert len(files) > 1000
    found = [
        f"{file.relative_to(ROOT)}:{line}: {name}"
        for file in files
        for line, name in (names_of_python if file.suffix == ".py" else names_of_rust)(file)
        if RIDDLES.match(name)
    ]
    assert not found, "a name says what the value is: " + ", ".join(found)
