"""The plugin of pytest: a drive for a test, by the fixture ``flashwright_drive``.

pytest loads it by itself where Flashwright is installed. The drive is served for the length of the test, and what it
counts, such as ``flashwright_drive.bytes_to_flash``, tells what a change of the application costs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

import pytest

if TYPE_CHECKING:
    from flashwright.serving.server import ServedDrive

__all__ = ["flashwright_drive", "pytest_configure"]

_MARKER = (
    "flashwright(device='default', *, set=(), precondition=None, pace='none', seed=1): "
    "the drive of the fixture flashwright_drive; set has settings such as 'gc.victim=fifo'"
)


def pytest_configure(config: pytest.Config) -> None:
    """Tell pytest of the marker."""
    config.addinivalue_line("markers", _MARKER)


@pytest.fixture
def flashwright_drive(request: pytest.FixtureRequest) -> Iterator[ServedDrive]:
    """A simulated drive over NBD, at ``flashwright_drive.uri``, for the length of a test.

    ``@pytest.mark.flashwright("tlc-nvme", set=["recovery.mount-by=scan"], precondition="steady")`` says which drive; by
    default it is the small bundled one, new. It can lose its power (``cut``, ``mount``), and every read is checked.
    """
    marker = request.node.get_closest_marker("flashwright")
    try:
        drive = _serve(*marker.args, **marker.kwargs) if marker else _serve()
    except TypeError as error:
        raise pytest.UsageError(
            f"{request.node.nodeid}: flashwright: {str(error).removeprefix('_serve() ')}, expected {_MARKER}"
        ) from None
    with drive:
        yield drive
    assert drive.result is not None, "it was stopped"
    if drive.result.violations:
        pytest.fail("\n".join(drive.result.violations), pytrace=False)


def _serve(
    device: str = "default",
    *,
    set: Sequence[str] = (),
    precondition: str | None = None,
    pace: Literal["none", "real"] = "none",
    seed: int = 1,
) -> ServedDrive:
    # Here, so that tests that want no drive need not wait for it.
    from flashwright.serving.server import serve
    from flashwright.simulation.ssd import Ssd

    ssd = Ssd.find(device).with_settings([set] if isinstance(set, str) else set)
    if precondition is not None:
        ssd = ssd.precondition(precondition)
    return serve(ssd, pace=pace, seed=seed)
