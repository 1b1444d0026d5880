"""A device that exists over NBD, with the host's schedulers before it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from flashwright.errors import ConfigError, ServeError
from flashwright.serving.server import IN_FLIGHT_MAX, Served, addresses_of, in_flight_bytes
from flashwright.simulation.replay import ReplayResult, host_settings, profile_settings
from flashwright.simulation.ssd import of_settings
from flashwright.support.arguments import checked
from flashwright.support.core import _core

__all__ = ["ServedDevice", "serve_before"]


class ServedDevice(Served[ReplayResult]):
    """A device that is served until it is stopped; :func:`flashwright.serve_before` makes it.

    Use it in a ``with`` statement, which stops it at the end.

    Attributes
    ----------
    uris : tuple of str
        Where NBD clients connect, one for each address.
    result : ReplayResult or None
        What was measured, in the form of a replay; None until it was stopped.
    notes : list of str
        What people should know, such as that the host does not keep up.
    """

    _of = staticmethod(ReplayResult._of)


@checked(queue_depth=(1, 4096))
def serve_before(
    path: str | os.PathLike[str],
    nbd: str | Sequence[str] = "tcp:127.0.0.1:0",
    *,
    nvme_tcp: str | Sequence[str] = (),
    vfio_user: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    scheduler: str | None = None,
    profile: str | os.PathLike[str] | None = None,
    settings: Iterable[str] = (),
    destroys_data: bool = False,
    queue_depth: int | None = None,
    in_flight_max: str = IN_FLIGHT_MAX,
    read_only: bool = False,
    ctl: str | None = None,
    metrics: str | None = None,
    watch: str | None = None,
    listen_anywhere: bool = False,
) -> ServedDevice:
    """Serve a block device or a file over NBD, NVMe/TCP or vfio-user, with the host's schedulers before it.

    The schedulers are those of a simulation, and decide by the same code what goes to the device when. Without one,
    requests are passed on as they come; only those that overlap an earlier one wait for it. A write is answered when
    the device has it.

    Parameters
    ----------
    path : path
        A block device or a regular file. What is mounted or otherwise in use is refused.
    nbd : str or sequence of str, optional
        Where clients of NBD connect: ``unix:PATH`` or ``tcp:ADDRESS:PORT``; port 0 is any that is free.
    nvme_tcp : str or sequence of str, optional
        Where hosts of NVMe/TCP connect: ``ADDRESS:PORT``, such as ``127.0.0.1:4420``.
    vfio_user : path or sequence of path, optional
        A Unix socket at which a virtual machine attaches the device as an NVMe controller on its PCI bus.
    scheduler : str, optional
        I/O schedulers between clients and device, such as ``"pasa+pai"``; several are joined by ``+``. The kernel's own
        scheduler stays below.
    profile : path, optional
        A TOML file of what is known of the drive, for schedulers that go by it: a profile of the prober, or one with
        ``clustered-page``, ``clustered-block``, ``read-buffer``, ``write-buffer``. Without one every size is unknown.
    settings : iterable of str, optional
        ``KEY=VALUE``: settings of the host, such as ``host.pai.timeout=1ms``.
    destroys_data : bool, optional
        Consent that clients write over what is on the device. Without it they may only read.
    queue_depth : int, optional
        Requests that the device has at once, 1 to 4,096; more wait. By default 128, or 32 with a scheduler.
    in_flight_max : str, optional
        Bytes that the commands of all clients may ask for or bring before they are answered, from 32 MiB up; a
        quarter of it, 32 MiB at least, for one client. Further commands wait on their sockets.
    read_only : bool, optional
        Refuse everything that would change the device.
    ctl : str, optional
        A control socket, ``unix:PATH``, for ``flashwright ctl`` and :func:`flashwright.serving.control.ask`.
    metrics : str, optional
        ``ADDRESS:PORT`` at which Prometheus finds the figures.
    watch : str, optional
        ``ADDRESS:PORT`` at which a browser finds a page that shows the device at work.
    listen_anywhere : bool, optional
        Allow addresses that other machines can reach. Whoever connects can read the device, and write it if clients
        may.

    Returns
    -------
    ServedDevice

    Raises
    ------
    TargetError
        If the device can't be opened, or must not be written to.
    ServeError
        If an address is in use, not allowed or not understood.
    ConfigError
        If a scheduler lacks what it goes by.

    Examples
    --------
    >>> import flashwright, tempfile
    >>> with tempfile.NamedTemporaryFile(dir=".") as file:
    ...     _ = file.write(bytes(1 << 20))
    ...     file.flush()
    ...     with flashwright.serve_before(file.name, scheduler="deadline") as device:
    ...         device.stats()["host_layers"][0]["scheduler"]
    'deadline'
    """
    host = host_settings(
        [
            *settings,
            *([] if profile is None else profile_settings(Path(profile))),
            *([] if scheduler is None else [f"host.scheduler={scheduler}"]),
        ]
    )
    device = {
        "path": os.fspath(path),
        "destroys_data": destroys_data and not read_only,
        "queue_depth": queue_depth,
        "host": host,
    }
    server = {
        **addresses_of(nbd, nvme_tcp, vfio_user),
        "listen_anywhere": listen_anywhere,
        "read_only": read_only,
        "time_scale": None,
        "in_flight_max": in_flight_bytes(in_flight_max),
        "record": None,
        "ctl": ctl,
        "metrics": metrics,
        "watch": watch,
        "precondition": "empty",
        "seed": 1,
    }
    try:
        return ServedDevice(_core.Server.before(json.dumps(device), json.dumps(server)))
    except ConfigError as error:
        raise of_settings(error) from None
    except ServeError as error:
        named = ["nbd", "nvme_tcp", "vfio_user", "ctl", "metrics", "watch", "listen_anywhere"]
        raise ServeError(str(error), error.hint, parameters=named) from None
