"""Skips: which are allowed in CI, and that all the others fail there."""

from __future__ import annotations

from pathlib import Path

import pytest

import needs


def skipped(why: str) -> pytest.TestReport:
    where = ("test_x.py", 1, f"Skipped: {why}")
    return pytest.TestReport("test_x", ("test_x.py", 1, "test_x"), {}, "skipped", where, "call")


@pytest.mark.parametrize(
    ("why", "allowed"),
    [
        (needs.REFUSED + "no loop device", True),
        (needs.ABSENT + "a trace", True),
        ("fio is not installed", False),
        ("could not import 'distributed'", False),
    ],
)
def test_ci_takes_only_reasons_on_the_list(
    why: str, allowed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    report = needs.refuse_skip(skipped(why))
    assert report.skipped is allowed and report.failed is not allowed
    assert why in str(report.longrepr)
    monkeypatch.delenv("CI")
    assert needs.refuse_skip(skipped(why)).skipped


def test_a_program_that_is_missing_is_named() -> None:
    with pytest.raises(pytest.skip.Exception, match="no-such-program is not installed"):
        needs.need("no-such-program")
    assert Path(needs.need("sh")).is_absolute()


def test_files_outside_are_asked_for_where_they_are_said_to_be(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FLASHWRIGHT_TRACES", str(tmp_path))
    with pytest.raises(pytest.skip.Exception, match=r"not part of this repository: a\.trace"):
        needs.trace("a.trace")
    (tmp_path / "a.trace").touch()
    assert needs.trace("a.trace") == tmp_path / "a.trace"
