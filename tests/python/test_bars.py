"""Progress bars: what is said where nobody watches."""

from __future__ import annotations

import pytest

from flashwright.support.bars import Bar
from flashwright.support.progress import Progress


@pytest.mark.parametrize(("wanted", "says"), [(None, True), (False, False)])
def test_one_line_says_what_a_long_part_will_take(
    wanted: bool | None,
    says: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = iter([0.0, 1.0, 2.0, 26.0, 50.0])
    monkeypatch.setattr("flashwright.support.bars.time.monotonic", lambda: next(clock))
    with Bar(wanted) as bar:
        bar.update(Progress("precondition", 0, 100, None, 0), label="depth=8")
        bar.update(Progress("settling", 10, 1000, None, 0), label="depth=8")
        bar.update(Progress("settling", 240, 1000, None, 0), label="depth=8")
        bar.update(Progress("settling", 500, 1000, None, 0), label="depth=8")
    said = "note: depth=8: settling (at most): 24%, 1:16 left of this part\n" if says else ""
    assert capsys.readouterr() == ("", said)
