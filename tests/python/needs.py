"""What a test needs of the machine it runs on, and what becomes of it where that is not there.

Nothing is skipped in silence: every skip gives its reason, and pytest lists them at the end (`-rs`). Where ``CI=true``,
only the reasons that begin as in ``ALLOWED`` skip a test; any other fails it. The crate ``flashwright-testing`` holds
the tests in Rust to the same rule.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator
from pathlib import Path
from typing import NoReturn, TypeVar

import pytest

REFUSED = "refused here: "
ABSENT = "not part of this repository: "
ALLOWED = (
    REFUSED,
    ABSENT,
    # Doctests that would record a device of this machine.
    "all tests skipped by +SKIP option",
)
# Where Debian keeps what administrators call; not on everybody's path.
_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
_SHARED = Path(__file__).parents[3] / "shared"

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


def need(program: str) -> str:
    """Path of a program that ``tools/test-tools.sh`` installs; without it the test is skipped, in CI it fails."""
    found = shutil.which(program, path=_PATH)
    if found is None:
        pytest.skip(f"{program} is not installed (tools/test-tools.sh installs it)")
    return found


def refused(why: str) -> NoReturn:
    """Skip the test, since the kernel, the file system or the user's rights refuse what it needs."""
    pytest.skip(REFUSED + why)


def root() -> None:
    """Skip the test unless it runs as root."""
    if os.geteuid() != 0:
        refused("the test needs root")


def trace(name: str) -> Path:
    """Path of a published trace, looked for in ``FLASHWRIGHT_TRACES``, else beside the repository."""
    return _present(Path(os.environ.get("FLASHWRIGHT_TRACES") or _SHARED / "traces") / name)


def reference(name: str) -> Path:
    """Path of a page that the papers were read into, beside the repository."""
    return _present(_SHARED / "reference" / name)


def _present(path: Path) -> Path:
    if not path.exists():
        pytest.skip(f"{ABSENT}{path.name}")
    return path


def refuse_skip(report: Report) -> Report:
    """Make a skip for a reason that is not allowed a failure, where ``CI=true``."""
    if not report.skipped or hasattr(report, "wasxfail") or os.environ.get("CI") != "true":
        return report
    why = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    if not why.removeprefix("Skipped: ").startswith(ALLOWED):
        report.outcome = "failed"
        report.longrepr = f"CI=true skips no such test: {why}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Judge the skip of a test."""
    return refuse_skip((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Judge the skip of a whole file."""
    return refuse_skip((yield))
