"""The JSON of runs and replays against its schema, and the pages and types that are written from that."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from flashwright import Ssd, _core, replay
from flashwright.cli import run as command
from flashwright.cli.render.errors import typed
from flashwright.drive.catalogue import catalogue
from flashwright.simulation import run_report
from flashwright.simulation.run import PlaySettings, RunSettings

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from schema_pages import rows_of_figures, types_of  # noqa: E402

SMALL = {"geometry.blocks-per-plane": 64, "geometry.channels": 2}
WRITES = "uniform:write=0.7"
IN_ZONES = "zones:write=0.7,fill=0.02"


@cache
def schema() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_core.schema_run())
    return found


def checked(figures: Any) -> dict[str, Any]:
    """A document that is as the schema says, as it is written."""
    document: dict[str, Any] = json.loads(json.dumps(figures))
    checker = jsonschema.validators.validator_for(schema())
    checker.check_schema(schema())
    faults = [
        f"{each.json_path}: {each.message}" for each in checker(schema()).iter_errors(document)
    ]
    assert faults == []
    return document


RUNS: dict[str, tuple[dict[str, object], str, str, dict[str, Any]]] = {
    **{
        scheme.name: (
            {"ftl.scheme": scheme.name}, "sequential", IN_ZONES if scheme.name == "zoned" else WRITES,
            {"requests": 400, "depth": 4},
        )
        for scheme in catalogue()["ftl.scheme"]
    },
    "no times": ({"timing.model": "none"}, "steady", WRITES, {"requests": 400}),
    "serial, warm": ({"timing.model": "serial"}, "empty", WRITES, {"requests": 400, "warmup": 100}),
    "settled": ({}, "workload", WRITES, {"requests": 2000, "verify": True}),
    "write buffer": (
        {"ram.manager": "bplru", "ram.size": "1 MiB"}, "sequential", WRITES, {"requests": 800}
    ),
    "parted RAM": (
        {"ftl.scheme": "dftl", "ram.manager": "ap", "ram.size": "256 KiB"}, "empty", WRITES, {"requests": 800}
    ),
    "controller": (
        {"controller.write-buffer.size": "256 KiB"}, "empty", WRITES, {"requests": 400, "depth": 4}
    ),
    "scheduler": ({"host.scheduler": "deadline"}, "empty", f"{WRITES},rate=9000", {"requests": 400}),
    "reads alone": ({}, "empty", "uniform:write=0", {"requests": 100}),
    "a program": ({}, "empty", "postmark", {"requests": 400}),
    "worn out": (
        {"wear.pe-cycles-max": 2}, "empty", "uniform:write=1", {"requests": 1_000_000}
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_runs_are_as_the_schema_says(name: str) -> None:
    settings, first, workload, options = RUNS[name]
    run = (
        Ssd.named("default")
        .with_({**SMALL, **settings})
        .precondition(first)
        .play(workload, **options)
    )
    found = checked(run.json)
    assert found["target"] is None and found["drive"]["logical_pages"] > 0


@pytest.mark.parametrize(
    ("target", "workload", "options"),
    [
        ("sim:default", WRITES, {"depth": 8}),
        ("sim:default", f"{WRITES},rate=5000", {"scheduler": "deadline"}),
        ("sim:ssd-a", WRITES, {"depth": 4}),
        ("sim:default", "postmark", {}),
        ("sim:default", WRITES, {"settings": ["timing.model=none"], "precondition": "sequential"}),
    ],
)
def test_replays_are_as_the_schema_says(
    target: str, workload: str, options: dict[str, Any]
) -> None:
    found = checked(replay(target, workload, requests=500, **options).json)
    assert found["write_amplification"] is None and found["flash"]["programs"]["total"] is None
    assert found["target"]["name"] and found["scheme"] is None


def test_a_file_is_as_the_schema_says(tmp_path: Path) -> None:
    path = tmp_path / "target"
    path.write_bytes(bytes(1 << 20))
    found = checked(replay(path, "uniform:write=0.5", requests=100, depth=2).json)
    assert found["precondition"] is None and found["left_out"]["writes"] > 0


def test_what_is_missing_or_unknown_is_wrong() -> None:
    run = Ssd.named("default").with_(SMALL).play(WRITES, requests=100)
    changes: tuple[Callable[[dict[str, Any]], object], ...] = (
        lambda json: json.pop("write_amplification"),
        lambda json: json["host"].pop("pages_into_flash"),
        lambda json: json["host"].update(pages_writen=1),
        lambda json: json.update(write_amplification="1.0"),
    )
    for change in changes:
        document = json.loads(json.dumps(run.json))
        change(document)
        with pytest.raises(AssertionError):
            checked(document)


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["schema", "run"]) == 0
    assert json.loads(capsys.readouterr().out) == schema()
    assert command(["schema", "walk"]) == 2
    assert "walk" in capsys.readouterr().err


def paths_of(figures: object, at: str = "") -> set[str]:
    """Every path of a document, down to what is no section."""
    if isinstance(figures, dict):
        return {at}.union(*(paths_of(each, f"{at}.{name}") for name, each in figures.items()))
    if isinstance(figures, list) and figures and isinstance(figures[0], dict):
        return paths_of(figures[0], at + "[]")
    return {at}


def test_the_page_lists_every_figure() -> None:
    run = Ssd.named("default").with_({**SMALL, "host.scheduler": "noop"}).play(WRITES, requests=100)
    listed: set[str] = set()
    for _, rows in rows_of_figures(schema()):
        for path, _, meaning, _ in rows:
            assert meaning
            listed |= spelled_out(path)
    # What a section holds by name, and the configuration, have no fixed paths.
    of_run = (".run.made.source.", ".run.made.options.")
    open_ended = (".config", ".pace", ".scheme.extra", ".host_layers[].extra", ".buffer.extra")
    found = {
        path for path in paths_of(run.json) if path and not path.startswith(open_ended + of_run)
    }
    assert {path.removeprefix(".") for path in found} - {"host_layers[]", "warnings[]"} <= listed


def spelled_out(path: str) -> set[str]:
    """The paths that one with ``{a, b}`` stands for."""
    head, brace, rest = path.partition("{")
    if not brace:
        return {path}
    names, _, tail = rest.partition("}")
    return {more for name in names.split(", ") for more in spelled_out(head + name + tail)}


def test_the_types_know_every_figure() -> None:
    assert set(run_report.Report.__annotations__) == set(schema()["properties"])
    assert (
        types_of(schema(), "Report")
        in (ROOT / "python/flashwright/simulation/run_report.py").read_text()
    )


def test_host_writes_are_what_was_asked_and_the_rest_stands_beside(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ssd = Ssd.named("default").with_({**SMALL, "controller.write-buffer.size": "256 KiB"})
    run = ssd.play("hot-cold:hot-space=0.001,hot-access=0.9,write=1", requests=5000, depth=4)
    figures: Any = run.json
    host, programs = figures["host"], figures["flash"]["programs"]
    assert host["pages_written"] == 5000 and host["pages_into_flash"] == programs["host"] < 5000
    assert run.write_amplification == programs["total"] / 5000
    assert run.json["write_amplification_into_flash"] == programs["total"] / programs["host"]
    arguments = [f"--set={key}={value}" for key, value in SMALL.items()]
    simulate = ["simulate", *arguments, f"--workload={WRITES}", "--requests=1000"]
    assert command(simulate) == 0
    assert "into flash" not in capsys.readouterr().out, "nothing lies before the flash"
    assert command([*simulate, "--set=controller.write-buffer.size=256 KiB"]) == 0
    assert "into flash" in capsys.readouterr().out


def test_settings_of_a_run_are_stated_once() -> None:
    core = json.loads(_core.schema_options())["properties"]
    ours = {each.name: each.default for each in fields(RunSettings)}
    assert ours.keys() - {"policies"} == core.keys() - {"precondition"}
    assert all(ours[name] == core[name]["default"] for name in ours if name != "policies")
    assert PlaySettings.__annotations__.keys() == ours.keys()
    named = {name: core[name].get("option", name) for name in core}
    assert {name: typed(name) for name in core} == {
        name: f"--{option.replace('_', '-')}" for name, option in named.items()
    }
    assert all(f"\n        {name} : " in str(Ssd.play.__doc__) for name in ours)
