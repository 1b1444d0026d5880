"""``flashwright serve --run``: a command that finds the drive in its environment, and whose end is the server's."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence

from flashwright.cli.render import errors
from flashwright.errors import ServeError
from flashwright.support.files import reason

__all__ = ["ServedCommand"]

_ENDS_S = 5.0
"""What is left of a command after SIGTERM is killed so many seconds later."""

_SCHEMES = {
    "nbd": "FLASHWRIGHT_NBD",
    "nvme": "FLASHWRIGHT_NVME_TCP",
    "vfio": "FLASHWRIGHT_VFIO_USER",
}
"""By the beginning of an address, the variable that has the first such."""


def variables(uris: Sequence[str], addresses: Mapping[str, str]) -> dict[str, str]:
    """What a command is told in its environment.

    Parameters
    ----------
    uris : sequence of str
        Where the drive is served.
    addresses : mapping of str to str
        Where all else is: ``ctl``, ``metrics``, ``watch``.

    Examples
    --------
    >>> variables(["nbd://127.0.0.1:10809/", "vfio-user:/tmp/s"], {"ctl": "unix:/tmp/c"})
    {'FLASHWRIGHT_URI': 'nbd://127.0.0.1:10809/', 'FLASHWRIGHT_NBD': 'nbd://127.0.0.1:10809/',
     'FLASHWRIGHT_VFIO_USER': 'vfio-user:/tmp/s', 'FLASHWRIGHT_CTL': 'unix:/tmp/c'}
    """
    environment = {"FLASHWRIGHT_URI": uris[0]}
    for scheme, name in _SCHEMES.items():
        first = next((uri for uri in uris if uri.startswith(scheme)), None)
        if first is not None:
            environment[name] = first
    return environment | {
        f"FLASHWRIGHT_{what.upper()}": address for what, address in addresses.items()
    }


def _path() -> str:
    """Where commands are found: beside Python too, as `flashwright` of an environment that is not active."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), os.path.dirname(sys.executable)])


class ServedCommand:
    """A command of the shell beside the server, in a process group of its own.

    Parameters
    ----------
    text : str
        What ``sh -c`` is given.
    uris : sequence of str
        Where the drive is served.
    addresses : mapping of str to str
        Where all else is.

    Raises
    ------
    ServeError
        If there is no shell.
    """

    def __init__(self, text: str, uris: Sequence[str], addresses: Mapping[str, str]) -> None:
        try:
            self._process = subprocess.Popen(
                ["sh", "-c", text],
                env=os.environ | variables(uris, addresses) | {"PATH": _path()},
                # Its group is ended as a whole: what it left running would wait for a drive that is gone.
                start_new_session=True,
            )
        except OSError as error:
            raise ServeError(f"--run: sh can't be started: {reason(error)}", "") from None

    @property
    def has_ended(self) -> bool:
        """Whether it has ended by itself."""
        return self._process.poll() is not None

    def status(self) -> int:
        """Its exit status as shells give it, once it has ended; what it left running is ended."""
        found = self._process.wait()
        self._signal_group(signal.SIGTERM)
        return 128 - found if found < 0 else found

    def end(self, why: str) -> None:
        """End it before its time, and say why."""
        errors.note(f"--run: the command is ended: {why}")
        self._signal_group(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_ENDS_S)
        self._signal_group(signal.SIGKILL)
        self._process.wait()

    def _signal_group(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)
