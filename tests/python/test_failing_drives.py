"""Drives that change in the middle: read-only at once, slower for good, a reset of seconds. None passes unnoticed."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from flashwright import Ssd
from flashwright.drive.trust import doubts_of_twin
from flashwright.errors import DeviceError
from flashwright.probing.session import probe
from flashwright.support.core import _core
from flashwright.target.target import Target
from flashwright.twin import check

DRIVE = Ssd.named("default").with_({"geometry.blocks-per-plane": 32})
WRITE = 1


class Failing:
    """The drive of `DRIVE` until so many requests were played; then it fails in one way.

    Parameters
    ----------
    after : int
        Requests.
    read_only : bool, optional
        Whether writes are refused from then on.
    slower : float, optional
        By what every later request's time is multiplied.
    reset_s : float, optional
        How long one request takes then, seconds.
    """

    def __init__(
        self, after: int, *, read_only: bool = False, slower: float = 1.0, reset_s: float = 0.0
    ) -> None:
        self._inner = _core.Target(json.dumps({"ssd": {"config": DRIVE.toml}}), 1)
        self._left, self._read_only, self._slower = after, read_only, slower
        self._reset_ns = int(reset_s * 1e9)
        self.info, self.now, self.idle = self._inner.info, self._inner.now, self._inner.idle
        self.purge, self.close = self._inner.purge, self._inner.close

    def play(self, kinds: Any, first: Any, sectors: Any, depth: int, seconds: Any = None) -> Any:
        before, self._left = self._left, self._left - kinds.size
        if self._left < 0 and self._read_only and np.any(kinds == WRITE):
            raise DeviceError("sdx: the drive refuses writes: it is read-only")
        submitted, ended = self._inner.play(kinds, first, sectors, depth, seconds)
        if self._left >= 0:
            return submitted, ended
        failed = max(before, 0)
        took = (ended - submitted).astype(np.float64)
        took[failed:] *= self._slower
        if before >= 0 and kinds.size > failed:
            took[failed] += self._reset_ns
        return submitted, submitted + took.astype(np.uint64)


def test_a_drive_that_goes_read_only_keeps_what_was_found() -> None:
    """The probe under way ends with the drive's word; reads before it stand."""
    with Target(Failing(20_000, read_only=True)) as target:
        result = probe(target, only=["plausible", "clustered-page", "mapping"], mode="quick")
    assert result.ended == "failed"
    assert "it is read-only" in result.note
    assert result.findings["mapping"].verdict == "unknown"


@pytest.mark.parametrize(("slower", "reset_s"), [(1.5, 0.0), (1.0, 30.0)])
def test_a_twin_of_a_drive_that_changes_is_marked(slower: float, reset_s: float) -> None:
    """The twin is the very drive; slower for good from the middle of its check on, or after one long reset."""
    requests = 4000
    with Target(Failing(10**9)) as target:
        same = check(target, DRIVE, requests=requests)
        capacity = target.capacity_bytes
    assert doubts_of_twin({"error": 0.01, "check": same.record()}) == []
    # Before the pattern that is held back it is filled by 1 MiB, overwritten once by 32 KiB, and flushed.
    before = capacity // (1 << 20) + capacity // (32 << 10) + 3
    failing = Failing(before + requests // 2, slower=slower, reset_s=reset_s)
    with Target(failing) as target:
        changed = check(target, DRIVE, requests=requests)
    assert doubts_of_twin({"error": 0.01, "check": changed.record()})
