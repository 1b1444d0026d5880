"""How soon the command line answers: which packages it imports before it does, and its processor time."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from flashwright.cli import root
from flashwright.cli.help import about

HEAVY = (
    "dask",
    "jinja2",
    "matplotlib",
    "numpy",
    "pandas",
    "pyarrow",
    "pydantic",
    "rich.console",
    "scipy",
)
RUN = ("simulate", "default", "--workload", "uniform", "--requests", "1000")

# Runs the command line and prints the modules that are there at its end, and those at a run's first request.
WATCHED = """
import atexit, json, sys
from flashwright import cli
seen = {}
if sys.argv[1] == "simulate":
    from flashwright.simulation.run import Run
    loop = Run._loop
    def watched(*given):
        seen["first request"] = sorted(sys.modules)
        return loop(*given)
    Run._loop = watched
status = cli.run(sys.argv[1:])
seen["end"] = sorted(sys.modules)
print(json.dumps([status, seen]), file=sys.stderr)
"""


def imported(*arguments: str) -> dict[str, set[str]]:
    """The modules at the end of a command, and at the first request of a run."""
    program = [sys.executable, "-c", WATCHED, *arguments]
    said = subprocess.run(program, capture_output=True, text=True, check=True)
    status, seen = json.loads(said.stderr.splitlines()[-1])
    assert status == 0
    return {when: set(modules) for when, modules in seen.items()}


def heavy_in(modules: set[str], *more: str) -> list[str]:
    return [name for name in (*HEAVY, *more) if name in modules]


def test_the_version_is_told_without_a_parser() -> None:
    modules = imported("--version")["end"]
    assert heavy_in(modules, "click", "pydantic", "typer", "tempfile", "tomllib") == []
    assert len(modules) < 120, len(modules)


@pytest.mark.parametrize("arguments", [("--help",), ("simulate", "--help")], ids=" ".join)
def test_help_imports_no_package_of_a_command(arguments: Sequence[str]) -> None:
    assert heavy_in(imported(*arguments)["end"]) == []


def test_the_list_of_commands_imports_none_of_them() -> None:
    modules = imported("--help")["end"]
    names = [name for names in root.COMMANDS.values() for name in names]
    assert [name for name in names if f"flashwright.cli.{name}" in modules] == []


def test_a_run_begins_before_what_only_its_results_need() -> None:
    seen = imported(*RUN)
    assert heavy_in(seen["first request"], "flashwright.probing", "flashwright_papers") == []
    # Its figures are text, and no terminal is there to be given style.
    assert heavy_in(seen["end"]) == []


def test_a_sweep_that_is_kept_loads_no_library_of_data(tmp_path: Path) -> None:
    sweep = tmp_path / "one.toml"
    sweep.write_text(
        'drive = "default"\nworkload = "uniform"\nrequests = 500\nseeds = 2\nprecondition = "empty"\n'
        '[grid]\n"gc.victim" = ["greedy", "fifo"]\n'
    )
    assert heavy_in(imported("sweep", str(sweep))["end"]) == ["numpy", "pyarrow"]


def test_the_list_says_what_each_command_says() -> None:
    for panel, names in root.COMMANDS.items():
        for name, first_sentence in names.items():
            command = root.load(name)
            assert (command.name, command.rich_help_panel) == (name, panel)
            assert first_sentence == about(command)


def test_the_list_is_complete() -> None:
    names = {name for names in root.COMMANDS.values() for name in names}
    folder = importlib.util.find_spec("flashwright.cli")
    assert folder is not None and folder.submodule_search_locations
    for file in os.listdir(folder.submodule_search_locations[0]):
        name = file.removesuffix(".py")
        if file.endswith(".py") and not name.startswith("_") and name != "root":
            module = importlib.import_module(f"flashwright.cli.{name}")
            is_command = callable(getattr(module, name, None)) or hasattr(module, "app")
            assert is_command == (name in names), name


def cpu_s(*python: str) -> float:
    """The least processor time of a few tries of Python, user and system, in seconds."""
    tries = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *python], capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        tries.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(tries)


def test_processor_time() -> None:
    """Measured by what it takes to import three packages, so that it holds on any machine."""
    unit = cpu_s("-c", "import numpy, pyarrow, typer")
    version, run = cpu_s("-m", "flashwright", "--version"), cpu_s("-m", "flashwright", *RUN)
    print(f"three packages {unit:.3f} s, --version {version:.3f} s, a short run {run:.3f} s")
    # Usual are 0.2 and 2; it was 3.5 and 5.6 when all was imported at once.
    assert version < unit
    assert run < 4 * unit
