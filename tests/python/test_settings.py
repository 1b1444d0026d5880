"""The settings of a drive as the reference and the schema show them."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
import reference

from flashwright import Ssd, _core, cli

KNOWN: dict[str, Any] = json.loads(_core.settings())


def test_every_key_is_described_once_with_its_default() -> None:
    keys = [key["path"] for key in KNOWN["keys"]]
    assert len(keys) == len(set(keys)) > 200
    assert not [key["path"] for key in KNOWN["keys"] if len(key["about"]) < 9]
    page = reference.settings()
    assert not [key for key in keys if page.count(f'<a id="{key}"></a>') != 1]


def test_a_policys_own_settings_stand_under_what_it_does() -> None:
    page = reference.settings()
    head = '\n## `[gc.cat]`\n\nFor `gc.victim = "cat"`: '
    assert head in page
    row = next(line for line in page.splitlines() if 'id="gc.cat.age-step"' in line)
    assert "| whole number |" in row and "| 1 to " in row


def test_a_drives_page_has_what_differs_and_where_it_comes_from() -> None:
    page = reference.drives()
    text = page.split("\n## `ssd-a`\n")[1].split("\n## ")[0]
    assert (
        '| [`timing.read`](settings.md#timing.read) | `"25 us"` | `"50 us"` | single-level NAND'
        in text
    )
    assert "gc.victim" not in text and "```toml" not in page
    assert len(page.splitlines()) < 1000


def test_the_schema_has_every_key_of_a_description(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["schema", "config"]) == 0
    schema = json.loads(capsys.readouterr().out)

    def check(tree: dict[str, Any], node: dict[str, Any]) -> None:
        if "$ref" in node:
            node = schema["$defs"][node["$ref"].rpartition("/")[2]]
        for name, value in tree.items():
            assert name in node["properties"], name
            if isinstance(value, dict):
                check(value, node["properties"][name])

    check(tomllib.loads(Ssd.named("default").toml), schema)
    channels = schema["$defs"]["GeometryConfig"]["properties"]["channels"]
    assert (channels["minimum"], channels["maximum"]) == (1, 64)


def test_what_has_no_schema_is_said_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["schema", "nothing"]) == 2
    assert "'nothing'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("timing.program=18000000000 s", "found 18000000000 s, expected 0 ns to 10 s"),
        ("timing.program=11 s", "found 11 s, expected 0 ns to 10 s"),
        ("timing.bus-rate=1 B/s", "found 1 B/s, expected 100 kB/s to 1 TB/s"),
        ("ram.latency=3 weeks", "expected a time with its unit"),
    ],
)
def test_a_number_out_of_range_is_refused_in_a_line(
    setting: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["devices", "default", "--set", setting]) == 2
    said = capsys.readouterr().err
    assert f"error: --set: {setting.partition('=')[0]}: " in said and expected in said
