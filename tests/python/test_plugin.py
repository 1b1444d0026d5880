"""The plugin of pytest: drives for tests, and what becomes of tests that ask for what there is not."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

HEAD = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import nbdclient
import pytest
from nbdclient import Nbd
"""


def test_a_drive_counts_what_a_test_does(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        HEAD
        + """
def write(drive, times):
    with Nbd(drive.uri) as client:
        for _ in range(times):
            client.write(0, bytes(4096))

def test_within_its_budget(flashwright_drive):
    write(flashwright_drive, 5)
    assert flashwright_drive.bytes_written == 5 * 4096
    assert flashwright_drive.bytes_to_flash < 6 * 4096

def test_beyond_its_budget(flashwright_drive):
    write(flashwright_drive, 10)
    assert flashwright_drive.bytes_to_flash < 6 * 4096
"""
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:xdist")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*assert 40960 < (6 * 4096)*"])


def test_a_drive_of_ones_own_that_loses_its_power(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        HEAD
        + """
@pytest.mark.flashwright(
    set=["recovery.mount-by=scan", "geometry.blocks-per-plane=64"], precondition="sequential", seed=2
)
def test_flushed_data_outlive_a_cut(flashwright_drive):
    with Nbd(flashwright_drive.uri) as client:
        client.write(0, b"1" * 4096, nbdclient.FUA)
        flashwright_drive.cut()
        flashwright_drive.mount()
        assert client.read(0, 4096) == b"1" * 4096
"""
    )
    result = pytester.runpytest_subprocess("--strict-markers", "-p", "no:xdist")
    result.assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("marker", "said"),
    [
        ("color='red'", "*UsageError*color*expected flashwright(device=*"),
        ("'no-such-drive'", "*no-such-drive*"),
        ("set=['gc.victim=none-such']", "*gc.victim: found*none-such*"),
        ("precondition='workload'", "*precondition*workload*"),
    ],
)
def test_what_there_is_not(marker: str, said: str, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        HEAD
        + f"""
@pytest.mark.flashwright({marker})
def test_it(flashwright_drive):
    raise AssertionError("it must not begin")
"""
    )
    result = pytester.runpytest_subprocess("-p", "no:xdist")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([said])
    result.stdout.no_fnmatch_line("*it must not begin*")
