"""Sequential writes of part of a page: write amplification near 1.5 to 2, whatever the number of planes.

Each page is programmed several times in a row, so all copies but the last are dead at once. Cleaning a
block then copies its lasting pages: one copy for each period of r programs, 1 + 1/r, and up to twice the
copies because greedy cleaning also takes blocks that are about to die. In strict turn
(`placement.allocation = "dynamic"`) planes and period resonate where they share a factor.
"""

from __future__ import annotations

import pytest

from flashwright import Ssd

SMALL = {
    "geometry.blocks-per-plane": 96,
    "geometry.pages-per-block": 32,
    "timing.model": "none",
}
STRICT = {"placement.policy": "single", "placement.allocation": "dynamic"}


def amplification(ssd: Ssd, size: str = "2KiB", more: str = "", requests: int = 60_000) -> float:
    """Of a settled drive under sequential writes of one size."""
    run = ssd.precondition("workload").play(
        f"sequential:write=1,size={size},depth=8{more}", requests=requests, seed=1
    )
    found = run.write_amplification
    assert found is not None
    return found


@pytest.mark.parametrize(("channels", "dies"), [(1, 1), (1, 2), (1, 3), (7, 1), (4, 2), (5, 2)])
def test_half_pages_cost_the_same_on_any_number_of_dies(channels: int, dies: int) -> None:
    shape = {"geometry.channels": channels, "geometry.dies-per-channel": dies}
    assert 1.2 < amplification(Ssd.named("default").with_(SMALL | shape)) < 2.2


def test_strict_turns_with_one_frontier_resonate() -> None:
    """What the default was: the tests above would see it."""
    assert amplification(Ssd.named("default").with_(SMALL | STRICT)) > 4


def test_whole_pages_cost_nothing() -> None:
    assert amplification(Ssd.named("default").with_(SMALL), "4KiB") == pytest.approx(1, abs=0.001)


@pytest.mark.parametrize("name", ["tlc-nvme", "mlc-sata", "qlc-nvme"])
def test_small_writes_on_large_pages(name: str) -> None:
    """4 KiB on pages of 16 KiB: each is programmed four times, 1.25 to about 1.5."""
    ssd = Ssd.named(name).with_(SMALL | {"geometry.blocks-per-plane": 128})
    assert 1.1 < amplification(ssd, "4KiB") < 1.7


def test_a_map_on_flash_does_not_resonate_either() -> None:
    """DFTL takes its planes the same way; it also writes pages of its map."""
    dftl = {**SMALL, "ftl.scheme": "dftl", "capacity.utilization": 0.8}
    found = amplification(Ssd.named("default").with_(dftl))
    strict = amplification(Ssd.named("default").with_(dftl | STRICT))
    assert found < 3 < strict


def test_planes_that_lost_blocks_hold_less() -> None:
    """Factory-bad blocks fall unevenly: by room, planes share what is left; in turn, the fullest decides."""
    bad = {**SMALL, "wear.factory-bad": 0.04, "capacity.utilization": 0.85}
    found = []
    for allocation in ("by-room", "dynamic"):
        ssd = Ssd.named("default").with_(bad | {"placement.allocation": allocation})
        run = ssd.precondition("workload").play("uniform:write=1", requests=60_000, seed=1)
        assert run.write_amplification is not None
        found.append(run.write_amplification)
    assert found[0] < found[1]
