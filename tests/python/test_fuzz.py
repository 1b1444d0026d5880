"""Profiles and sealed files with wounds: what reads them answers, or says in one line a fault what is wrong.

`make test` tries some; `make fuzz` goes on for as long as ``FLASHWRIGHT_FUZZ_SECONDS`` says. Traces, drives and the
states of saved runs are fuzzed in Rust (crates/fuzz).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from flashwright.errors import FlashwrightError
from flashwright.support.sealed import open_sealed, seal
from flashwright.twin.profile import Profile
from test_profile import BY_HAND, WITH_TWIN

SECONDS = float(os.environ.get("FLASHWRIGHT_FUZZ_SECONDS", "0"))
EXAMPLES = 150
# Readers break at these.
TOKENS = [
    *("0", "-1", "1e308", "nan", "inf", "-inf", "4294967296", "18446744073709551616", "0.1"),
    *(
        '""',
        '"\\n"',
        '"\\u0000"',
        "[]",
        "{}",
        "true",
        "[[target]]",
        "[findings]",
        "1979-05-27",
        "\x00",
    ),
    *('"1 B"', '"-4 KiB"', '"9999999999 TiB"', '"0.3 B"', '"ms"', '"1 ns"', '"nan KiB"', '"١ KiB"'),
]

_wounds = st.lists(
    st.tuples(
        st.sampled_from(["drop", "token", "value", "swap", "text", "cut"]),
        st.integers(0, 1 << 16),
        st.integers(0, 1 << 16),
        st.sampled_from(TOKENS) | st.text(max_size=8),
    ),
    min_size=1,
    max_size=6,
)


def wounded(text: str, wounds: list[tuple[str, int, int, str]]) -> str:
    """The text with lines dropped, swapped and cut, and with values replaced."""
    for kind, one, other, token in wounds:
        lines = text.splitlines() or [""]
        at, to = one % len(lines), other % len(lines)
        line = lines[at]
        if kind == "drop":
            del lines[at]
        elif kind == "swap":
            lines[at], lines[to] = lines[to], lines[at]
        elif kind == "value" and "=" in line:
            lines[at] = line.partition("=")[0] + "= " + token
        elif kind == "token":
            lines.insert(at, token)
        elif kind == "text":
            place = other % (len(line) + 1)
            lines[at] = line[:place] + token + line[place:]
        elif kind == "cut":
            lines[at] = line[: other % (len(line) + 1)]
        text = "\n".join(lines)
    return text


def go_on(test: Callable[[], None]) -> None:
    """Once with draws that are always the same, or over and over with new ones while there is time."""
    until = time.monotonic() + SECONDS
    draw = time.time_ns() if SECONDS else 0
    while True:
        seed(draw)(test)()
        draw += 1
        if time.monotonic() >= until:
            return


def assert_lines(error: FlashwrightError, at_most: int = 1000) -> None:
    lines = str(error).split("\n")
    assert len(lines) <= at_most
    assert all(line.strip() and len(line) < 2000 for line in lines), repr(str(error))
    assert all(char.isprintable() for line in lines for char in line), repr(str(error))


@pytest.mark.parametrize("good", [BY_HAND, WITH_TWIN], ids=["by-hand", "twin"])
def test_profiles(good: str) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, database=None, derandomize=False,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(_wounds)
    def one(wounds: list[tuple[str, int, int, str]]) -> None:
        try:
            profile = Profile.from_text(wounded(good, wounds), "a.toml")
        except FlashwrightError as error:
            assert_lines(error)
            return
        written = profile.to_toml()
        assert Profile.from_text(written, "again.toml").to_toml() == written

    go_on(one)


def test_sealed_files() -> None:
    whole = seal("saved run", b"body" * 40, code="0" * 8, drive="a")

    @settings(max_examples=EXAMPLES, deadline=None, database=None, derandomize=False,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(st.integers(0, len(whole)), st.integers(0, len(whole)), st.binary(max_size=12))
    def one(first: int, last: int, between: bytes) -> None:
        found = whole[:first] + between + whole[last:]
        try:
            opened = open_sealed(Path("a.fwrun"), found, "saved run")
        except FlashwrightError as error:
            return assert_lines(error, at_most=1)
        assert found == whole, opened
        return None

    go_on(one)
