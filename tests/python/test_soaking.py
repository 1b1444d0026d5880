"""Servers that are asked everything again and again: nothing grows. `make soak-servers` goes on for an hour."""

from __future__ import annotations

import contextlib
import os
import random
from pathlib import Path

import pytest

from conftest import SMALL
from nbdclient import Nbd
from soaking import PAGE_BYTES, Sample, Server, soak

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


def test_what_clients_overwrite_takes_the_drive_s_flash_and_no_more(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    # A connection is a thread. If each had memory of its own, what one has freed the others could not use.
    flash, at_once = 32 << 20, 12
    drive = SMALL.replace("pages-per-block = 16", "pages-per-block = 64")
    draw, pages = random.Random(1), flash * 3 // 4 // PAGE_BYTES
    server = Server(tmp_path_factory.mktemp("a"), "a", drive=drive)
    sizes = []
    try:
        for count in [flash // PAGE_BYTES * 2] + [4000] * 6:
            with contextlib.ExitStack() as clients:
                all_clients = [clients.enter_context(Nbd(server.uris[0])) for _ in range(at_once)]
                for nth in range(count):
                    at = draw.randrange(pages) * PAGE_BYTES
                    all_clients[nth % at_once].write(at, draw.randbytes(PAGE_BYTES))
            sizes.append(Sample.of(server.process.pid, 0.0, 0).kib << 10)
    finally:
        server.end()
    assert max(sizes) - sizes[0] < flash // 8, [size >> 20 for size in sizes]


def test_a_file_that_stays_open_is_seen(tmp_path: Path) -> None:
    before = Sample.of(os.getpid(), 0.0, 0)
    with (tmp_path / "a").open("w"):
        after = Sample.of(os.getpid(), 0.0, 0)
    assert after.descriptors == before.descriptors + 1 and before.kib > 1000
