"""The fingerprint by which a saved run recognises its trace: the content of the file, not its name or size."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping

from flashwright.errors import SavedStateError
from flashwright.support.digests import digest_of_file

__all__ = ["TraceMark"]


class TraceMark:
    """The file of a trace as it was when a run began to read it.

    Parameters
    ----------
    path : str
        The file.
    """

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self._began = _looks(self.path)

    @property
    def size_bytes(self) -> int:
        """Its size now; 0 if it is not there."""
        try:
            return os.stat(self.path).st_size
        except OSError:
            return 0

    def to_json(self) -> dict[str, str | None]:
        """Path and content digest; no digest if the file is not there any more, or changed meanwhile.

        Examples
        --------
        >>> TraceMark("/dev/null").to_json()
        {'path': '/dev/null', 'sha256': None}
        """
        digest = None
        with contextlib.suppress(OSError):
            if os.path.isfile(self.path) and _looks(self.path) == self._began:
                digest = digest_of_file(self.path)
        return {"path": self.path, "sha256": digest}

    @classmethod
    def expected(cls, saved: str | os.PathLike[str], known: Mapping[str, str | None]) -> TraceMark:
        """The trace that a saved file belongs to.

        Parameters
        ----------
        saved : path
            The saved file, for messages.
        known : mapping
            What :meth:`to_json` gave.

        Raises
        ------
        SavedStateError
            If it is not there, or another one.
        """
        path = known["path"]
        assert path is not None
        mark = cls(path)
        if known["sha256"] is None:
            what = "changed during the run, or can't be read a second time"
        elif not os.path.isfile(path):
            what = "is not there" if not os.path.exists(path) else "is no longer a regular file"
        else:
            found = mark.to_json()["sha256"]
            if found == known["sha256"]:
                return mark
            what = "can't be read" if found is None else "is another file now: its content differs"
        raise SavedStateError(
            f"{os.fspath(saved)}: another trace: the run's trace {path} {what}",
            "restore the file that the run started with, or run again from the start",
        )


def _looks(path: str) -> tuple[int, int] | None:
    """Size and time of change; None where they are unknown."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns
