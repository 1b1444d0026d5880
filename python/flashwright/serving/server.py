"""A simulated drive over NBD, so that file systems, databases, virtual machines and load generators use it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic, Literal, Self, TypeVar

from flashwright.drive.policies import Given, handed
from flashwright.errors import ServeError, WorkloadError
from flashwright.simulation.results import RunResult
from flashwright.simulation.ssd import Ssd
from flashwright.support.arguments import checked
from flashwright.support.core import _core, expect_arrays

__all__ = ["Served", "ServedDrive", "addresses_of", "serve"]

_LOOK_S = 0.2
_Result = TypeVar("_Result")


class Served(Generic[_Result]):
    """What is served until it is stopped, in a ``with`` statement: a simulated drive, or a device that exists.

    Attributes
    ----------
    uris : tuple of str
        Where NBD clients connect, one for each address.
    result : RunResult, ReplayResult or None
        What there is to report; None until it was stopped.
    notes : list of str
        What people should know, such as that the host does not keep up.
    lost : list of str
        Those of the notes that tell of an output that was asked for and is not whole: a recording, or the image. Known
        once it was stopped.
    """

    _of: Callable[[Any], _Result]

    def __init__(self, core: _core.Server) -> None:
        self._core = core
        self.uris: tuple[str, ...] = tuple(core.uris())
        self.addresses: dict[str, str] = dict(core.addresses())
        self.result: _Result | None = None
        self.notes: list[str] = []
        self.lost: list[str] = []
        self._last: dict[str, Any] | None = None

    @property
    def uri(self) -> str:
        """Where NBD clients connect: the first of :attr:`uris`."""
        return self.uris[0]

    def stats(self) -> dict[str, Any]:
        """The figures so far, by the names that the JSON of a run gives them; ``served`` is about the server.

        Returns
        -------
        dict
            Of a drive among others ``write_amplification``, ``flash`` (pages by cause), ``blocks_free``,
            ``response_time_ns`` and ``service_time_ns`` (on the drive's clock); of a device these times and
            ``host_layers``; and ``served``: ``connections``, ``pace``, ``lateness_ns`` (how much later than the model
            says, or than the device was done, replies left; None without pacing), ``keeps_up``. After :meth:`stop`
            the last ones.
        """
        if self._last is not None:
            return self._last
        found: dict[str, Any] = json.loads(self._core.stats())
        return found

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until a client of the control socket asks for the end.

        Parameters
        ----------
        seconds : float, optional
            Wait no longer than this. By default there is no limit.

        Returns
        -------
        bool
            Whether the drive is to be stopped, or was.
        """
        left = float("inf") if seconds is None else seconds
        while self._last is None:
            asked, notes = self._core.wait(min(left, _LOOK_S))
            self.notes += notes
            left -= _LOOK_S
            if asked or left <= 0:
                return asked
        return True

    def stop(self) -> _Result:
        """Stop: answer what was accepted, end the connections, remove the sockets.

        It takes no longer than about a second: then the commands that were not begun are dropped, those in the drive
        are carried out without waiting for the model's time, and a note says how many.

        Returns
        -------
        RunResult or ReplayResult
            The figures since it is served: of a drive as of every other run, of a device as of a replay. A second call
            gives the same.
        """
        if self.result is None:
            expect_arrays()
            report, stats, notes, lost = self._core.stop()
            self._last = json.loads(stats)
            self.notes += notes
            self.lost += lost
            self.result = type(self)._of(report)
        return self.result

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        state = "stopped" if self.result is not None else "served"
        return f"{type(self).__name__}({', '.join(self.uris)}: {state})"


class ServedDrive(Served[RunResult]):
    """A drive that is served until it is stopped; :func:`flashwright.serve` makes it.

    Use it in a ``with`` statement, which stops it at the end.

    Attributes
    ----------
    uris : tuple of str
        Where NBD clients connect, one for each address.
    result : RunResult or None
        What the drive has to report; None until it was stopped.
    notes : list of str
        What people should know, such as that the host does not keep up.
    lost : list of str
        Those of the notes that tell of an output that was asked for and is not whole: a recording, or the image. Known
        once it was stopped.
    """

    _of = staticmethod(RunResult.of)

    def __init__(self, core: _core.Server, ssd: Ssd) -> None:
        super().__init__(core)
        capacity_bytes, logical_pages, _ = _core.config_check(ssd.toml)
        self._page_bytes = capacity_bytes // logical_pages

    @property
    def bytes_written(self) -> int:
        """Bytes that clients wrote, since the drive is served.

        Examples
        --------
        >>> import flashwright
        >>> with flashwright.serve("default") as drive:
        ...     drive.bytes_written, drive.bytes_to_flash
        (0, 0)
        """
        return int(self.stats()["requests"]["bytes_written"])

    @property
    def bytes_to_flash(self) -> int:
        """Bytes programmed into the flash since the drive is served, whoever caused it: what wears the drive.

        What is in the drive's RAM is not in it yet; a flush brings it there.
        """
        return int(self.stats()["flash"]["programs"]["total"]) * self._page_bytes

    def cut(self) -> None:
        """Cut the power: what was not flushed may be lost, and requests fail until :meth:`mount`.

        Raises
        ------
        ServeError
            If the drive could not be mounted again: it needs ``recovery.mount-by = "scan"``.

        Examples
        --------
        >>> import flashwright
        >>> with flashwright.serve(flashwright.Ssd.named("default").with_(mount_by="scan")) as drive:
        ...     drive.cut()
        ...     drive.mount()["pages_mapped"]
        0
        """
        self._core.command("cut", "{}")

    def mount(self) -> dict[str, Any]:
        """Mount the drive after :meth:`cut`; if its power is on, it is cut first.

        Returns
        -------
        dict
            What it took, on the drive's clock: ``duration_ns``, ``spare_areas_read``, ``pages_read``,
            ``pages_programmed`` and ``blocks_erased``; and what was found: ``pages_mapped``, ``pages_torn``.

        Raises
        ------
        ServeError
            If it can't be mounted.
        """
        found: dict[str, Any] = json.loads(self._core.command("mount", "{}"))
        return found

    def snapshot(self, file: str | os.PathLike[str]) -> int:
        """Write an image of what the drive would hold if the power failed now; the drive goes on.

        What is in RAM and was not flushed is not in it. It is a file that ``serve(..., image=file)`` takes.

        Parameters
        ----------
        file : path
            The image. There must be no such file yet.

        Returns
        -------
        int
            The number of flash pages that the image holds.

        Raises
        ------
        ServeError
            If the file exists or can't be written, or if the drive could not be mounted again: it needs
            ``recovery.mount-by = "scan"``.

        Examples
        --------
        >>> import flashwright, tempfile
        >>> ssd = flashwright.Ssd.named("default").with_(mount_by="scan")
        >>> with tempfile.TemporaryDirectory() as folder, flashwright.serve(ssd) as drive:
        ...     drive.snapshot(f"{folder}/drive.img")
        0
        """
        arguments = json.dumps({"file": str(Path(file).absolute())})
        found: dict[str, int] = json.loads(self._core.command("snapshot", arguments))
        return found["pages"]

    def set(self, *settings: str) -> dict[str, Any]:
        """Restart the drive with another policy or buffer; nothing is lost.

        The drive is flushed, loses its power, and is mounted with the new settings.

        Parameters
        ----------
        *settings : str
            ``KEY=VALUE``, of ``gc`` or ``ram``, such as ``gc.victim=fifo``.

        Returns
        -------
        dict
            What the mount took, as :meth:`mount` says it.

        Raises
        ------
        ServeError
            If the settings can't be used, or the drive can't be mounted (``recovery.mount-by``). It then goes on as
            before.
        """
        found: dict[str, Any] = json.loads(
            self._core.command("set", json.dumps({"settings": settings}))
        )
        return found

    def mark(self, text: str) -> None:
        """Note in the recording with data that something is done, such as a transaction that was committed.

        After a loss of power, a :class:`flashwright.CrashTest` tells the marks that had been set by then.

        Parameters
        ----------
        text : str
            What is done; without line breaks, if a command is to read it.

        Raises
        ------
        ServeError
            If there is no recording with data.
        """
        self._core.command("mark", json.dumps({"text": text}))


IN_FLIGHT_MAX = "256 MiB"
"""Bytes of commands that a server has in flight: eight of the longest that NBD allows."""
_LONGEST_COMMAND = 32 << 20


def in_flight_bytes(text: str) -> int:
    """The bytes that a server may have in flight.

    Examples
    --------
    >>> in_flight_bytes("64 MiB")
    67108864
    """
    try:
        found = _core.size_read(text)
    except WorkloadError as error:
        raise ServeError(f"in_flight_max: {error}", "", parameters=["in_flight_max"]) from None
    if found < _LONGEST_COMMAND:
        raise ServeError(
            f"in_flight_max: found {text}, expected 32 MiB or more",
            "a command may ask for so much",
            parameters=["in_flight_max"],
        )
    return found


def addresses_of(
    nbd: str | Sequence[str],
    nvme_tcp: str | Sequence[str],
    vfio_user: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
) -> dict[str, list[str]]:
    """Where clients connect, by protocol: one address at least."""
    found = {
        "nbd": [nbd] if isinstance(nbd, str) else list(nbd),
        "nvme_tcp": [nvme_tcp] if isinstance(nvme_tcp, str) else list(nvme_tcp),
        "vfio_user": [
            os.fspath(path)
            for path in ([vfio_user] if isinstance(vfio_user, str | os.PathLike) else vfio_user)
        ],
    }
    if not any(found.values()):
        raise ServeError(
            "nbd: found none, expected an address",
            "such as unix:/tmp/drive.sock, or one of NVMe/TCP or vfio-user",
            parameters=["nbd", "nvme_tcp", "vfio_user"],
        )
    return found


@checked(seed=(0, 2**64 - 1), time_scale=None)
def serve(
    device: str | Ssd,
    nbd: str | Sequence[str] = "tcp:127.0.0.1:0",
    *,
    nvme_tcp: str | Sequence[str] = (),
    vfio_user: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    pace: Literal["none", "real"] = "none",
    time_scale: float = 1.0,
    in_flight_max: str = IN_FLIGHT_MAX,
    read_only: bool = False,
    image: str | os.PathLike[str] | None = None,
    record: str | os.PathLike[str] | None = None,
    record_data: str | os.PathLike[str] | None = None,
    ctl: str | None = None,
    metrics: str | None = None,
    watch: str | None = None,
    listen_anywhere: bool = False,
    policies: Sequence[Given] = (),
    seed: int = 1,
) -> ServedDrive:
    """Serve a simulated drive over NBD, NVMe/TCP and vfio-user: any of them, or several at once.

    It keeps every byte in memory, and in an image if there is one.

    Parameters
    ----------
    device : str or Ssd
        A bundled drive, the path of a TOML file, or a drive. An :class:`flashwright.Ssd` may bring a precondition that
        plays no workload: ``empty``, ``sequential``, ``random``, ``steady`` or ``steady:laid-out``.
    nbd : str or sequence of str, optional
        Where clients of NBD connect: ``unix:PATH`` or ``tcp:ADDRESS:PORT``; port 0 is any that is free.
    nvme_tcp : str or sequence of str, optional
        Where hosts of NVMe/TCP connect: ``ADDRESS:PORT``, such as ``127.0.0.1:4420``.
    vfio_user : path or sequence of path, optional
        A Unix socket at which a virtual machine attaches the drive as an NVMe controller on its PCI bus, such as QEMU
        with ``vfio-user-pci``: one machine at a time at each.
    pace : {"none", "real"}, optional
        When replies leave: as soon as they are ready (the drive's clock runs on its own), or when the model says.
    time_scale : float, optional
        With ``pace="real"``: factor on the model's times; 0.5 makes a drive that is twice as fast.
    in_flight_max : str, optional
        Bytes that the commands of all clients may ask for or bring before they are answered, from 32 MiB up; with
        ``pace="real"`` a quarter of it, 32 MiB at least, for one client. Further commands wait on their sockets.
        Without pacing only commands longer than a MiB count.
    read_only : bool, optional
        Refuse everything that would change the drive.
    image : path, optional
        The file that the drive lives in. Without such a file the drive begins new, and the file appears when it holds
        the preconditioned drive; with one the drive goes on from there, as after a loss of power. It needs
        ``recovery.mount-by = "scan"``, and takes no precondition with a file that exists. A flush is answered when the
        file is on its disk.
    record : path, optional
        Write what is served as a trace (``.fwt``), which on the same drive gives the same result.
    record_data : path, optional
        Write what is served with its data (``.fwr``), for a :class:`flashwright.CrashTest`.
    ctl : str, optional
        A control socket, ``unix:PATH``, for ``flashwright ctl`` and :func:`flashwright.serving.control.ask`.
    metrics : str, optional
        ``ADDRESS:PORT`` at which Prometheus finds the figures.
    watch : str, optional
        ``ADDRESS:PORT`` at which a browser finds a page that shows the drive at work.
    listen_anywhere : bool, optional
        Allow addresses that other machines can reach. Whoever connects can read and write the drive.
    policies : sequence, optional
        Policies and translation layers written in Python (:mod:`flashwright.drive.policies`), as
        :meth:`flashwright.Ssd.play` takes them. One that fails makes every later request fail.
    seed : int, optional
        Of the drive.

    Returns
    -------
    ServedDrive

    Raises
    ------
    ServeError
        If an address is in use, not allowed or not understood; if the image is in use, damaged, or of another drive;
        or if a drive with zones is to be served to clients that are told of none.
    ConfigError, WorkloadError, TraceError
        If the drive, its precondition, or the trace to be written can't be used.

    Examples
    --------
    >>> import flashwright
    >>> with flashwright.serve("default") as drive:
    ...     print(drive.stats()["blocks_free"] == drive.stats()["blocks"])
    True
    >>> drive.result.json["requests"]["write"]
    0

    A drive that lives in a file:

    >>> import tempfile
    >>> ssd = flashwright.Ssd.named("default").with_(mount_by="scan")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     flashwright.serve(ssd, image=f"{folder}/drive.img").stop().json["requests"]["write"]
    0
    """
    if time_scale != 1.0 and pace == "none":
        raise ServeError(
            "time_scale: found with pace none, expected pace real", "", parameters=["time_scale"]
        )
    if not 1e-6 <= time_scale <= 1e6:
        raise ServeError(
            f"time_scale: found {time_scale:g}, expected 0.000001 to 1,000,000",
            "the model's times are multiplied by it: 0.5 makes a drive that is twice as fast",
            parameters=["time_scale"],
        )
    if image is not None and record_data is not None:
        raise ServeError(
            "image and record_data: found both, expected one of them",
            "a crash test begins with the preconditioned drive, and an image may hold more",
            parameters=["image", "record_data"],
        )
    ssd = Ssd.find(device) if isinstance(device, str) else device
    settings = {
        **addresses_of(nbd, nvme_tcp, vfio_user),
        "listen_anywhere": listen_anywhere,
        "read_only": read_only,
        "time_scale": time_scale if pace == "real" else None,
        "in_flight_max": in_flight_bytes(in_flight_max),
        "image": None if image is None else str(Path(image)),
        "record": None if record is None else str(Path(record)),
        "record_data": None if record_data is None else str(Path(record_data)),
        "ctl": ctl,
        "metrics": metrics,
        "watch": watch,
        "precondition": ssd.preconditioning,
        "seed": seed,
    }
    try:
        return ServedDrive(_core.Server(ssd.toml, json.dumps(settings), handed(policies)), ssd)
    except ServeError as error:
        named = [
            "nbd",
            "nvme_tcp",
            "vfio_user",
            "record_data",
            "ctl",
            "metrics",
            "watch",
            "listen_anywhere",
        ]
        raise ServeError(str(error), error.hint, parameters=named) from None
