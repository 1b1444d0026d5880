"""Servers that are asked everything again and again: nothing grows. `make soak-servers` goes on for an hour."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from soaking import Sample, soak

# What threads that are just ending and allocators may take more at one moment than at another.
MORE = {"threads": 2, "descriptors": 4, "maps": 40, "kib": 16 << 10}


@pytest.mark.parametrize("seconds", [5, pytest.param(600, marks=pytest.mark.long)])
def test_nothing_grows(seconds: float, tmp_path_factory: pytest.TempPathFactory) -> None:
    # The path of a socket must be short.
    found = soak(tmp_path_factory.mktemp("s"), seconds)
    assert min(found["actions"].values()) > 0, "each was tried"
    assert not [line for line in found["said"] if "panicked" in line]
    for process, slopes in found["processes"].items():
        grown = {what: each["most"] - each["least"] for what, each in slopes.items()}
        too_much = {what: by for what, by in grown.items() if by > MORE[what]}
        assert not too_much, f"{process}: {too_much}"


def test_a_file_that_stays_open_is_seen(tmp_path: Path) -> None:
    before = Sample.of(os.getpid(), 0.0, 0)
    with (tmp_path / "a").open("w"):
        after = Sample.of(os.getpid(), 0.0, 0)
    assert after.descriptors == before.descriptors + 1 and before.kib > 1000
