"""``flashwright serve``: a simulated drive over NBD, NVMe/TCP or vfio-user, or a device that exists."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer

from flashwright.cli import completion
from flashwright.cli.before import BeforeOptions
from flashwright.cli.options import PolicyFiles, add_options
from flashwright.cli.outputs import ResultOptions
from flashwright.cli.render import errors, page, put_json, put_page
from flashwright.cli.servedcommand import ServedCommand
from flashwright.cli.settingsoption import settings_option
from flashwright.drive import policies
from flashwright.errors import ServeError
from flashwright.serving.server import IN_FLIGHT_MAX, Served
from flashwright.serving.server import serve as begin
from flashwright.simulation.ssd import Ssd
from flashwright.support.files import check_writable

__all__ = ["serve"]

_Pace = Literal["none", "real"]

_LOOK_S = 0.02
"""Seconds between two looks at a command that runs beside the server."""

_INTERRUPTED = 130
_STOPPED = 125
"""Exit statuses: of Ctrl-C, and of a command that outlived its drive."""


@add_options
def serve(
    before: BeforeOptions,
    output: ResultOptions,
    device: Annotated[
        str | None,
        typer.Argument(
            metavar="DEVICE",
            help="A bundled drive (`flashwright devices`) or a TOML file; none with --before.",
            autocompletion=completion.devices,
        ),
    ] = None,
    nbd: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS",
            help="Where NBD clients connect: unix:PATH or tcp:ADDRESS:PORT. Repeatable.",
            rich_help_panel="Server",
        ),
    ] = None,
    nvme_tcp: Annotated[
        list[str] | None,
        typer.Option(
            "--nvme-tcp",
            metavar="ADDRESS:PORT",
            help="Where hosts of NVMe/TCP connect, such as 127.0.0.1:4420. Repeatable.",
            rich_help_panel="Server",
        ),
    ] = None,
    vfio_user: Annotated[
        list[Path] | None,
        typer.Option(
            "--vfio-user",
            metavar="PATH",
            help="A socket at which QEMU attaches the drive as an NVMe controller on PCI. Repeatable.",
            rich_help_panel="Server",
        ),
    ] = None,
    run: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="Run this command of the shell once the drive is served, and end with it and its status. It finds the "
            "drive in FLASHWRIGHT_URI and the control socket in FLASHWRIGHT_CTL; without an address, both are private.",
            rich_help_panel="Server",
        ),
    ] = None,
    pace: Annotated[
        str,
        typer.Option(
            metavar="none|real",
            help="When replies leave: as soon as they are ready, or when the model says.",
            rich_help_panel="Server",
        ),
    ] = "none",
    time_scale: Annotated[
        float,
        typer.Option(
            metavar="FACTOR",
            help="With --pace real, multiply the model's times; 0.5 makes a drive that is twice as fast.",
            rich_help_panel="Workload",
        ),
    ] = 1.0,
    in_flight_max: Annotated[
        str,
        typer.Option(
            metavar="SIZE",
            help="The bytes that commands may ask for or bring before they are answered; with --pace real or --before "
            "a quarter for one client. Further ones wait on their sockets.",
            rich_help_panel="Server",
        ),
    ] = IN_FLIGHT_MAX,
    read_only: Annotated[
        bool,
        typer.Option(
            "--read-only",
            help="Refuse everything that would change the drive.",
            rich_help_panel="Scope",
        ),
    ] = False,
    listen_anywhere: Annotated[
        bool,
        typer.Option(
            "--listen-anywhere",
            help="Allow addresses that other machines can reach. Whoever connects can read and write the drive.",
            rich_help_panel="Server",
        ),
    ] = False,
    ctl: Annotated[
        str | None,
        typer.Option(
            metavar="unix:PATH",
            help="A control socket, for `flashwright ctl`.",
            rich_help_panel="Server",
        ),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS:PORT",
            help="Offer the figures to Prometheus there.",
            rich_help_panel="Server",
        ),
    ] = None,
    watch: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS:PORT",
            help="Show the drive at work there, as a page for browsers.",
            rich_help_panel="Server",
        ),
    ] = None,
    image: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The file that the drive lives in: begun if there is none, else the drive goes on from it.",
            rich_help_panel="Server",
        ),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.fwt",
            help="Write what is served as a trace, which on the same drive gives the same result.",
            rich_help_panel="Server",
        ),
    ] = None,
    record_data: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.fwr",
            help="Write what is served with its data, for `flashwright crash`.",
            rich_help_panel="Server",
        ),
    ] = None,
    set: Annotated[
        list[str] | None,
        settings_option(
            "Change a setting of the drive, such as gc.victim=fifo; with --before, of the host."
        ),
    ] = None,
    precondition: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="Precondition the drive first: empty, sequential, random, random:capacities=N, steady or "
            "steady:laid-out.",
            rich_help_panel="The drive",
        ),
    ] = None,
    policy: PolicyFiles = None,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Seed of the drive.", rich_help_panel="Workload")
    ] = 1,
) -> int:
    """Serve a simulated drive over NBD, NVMe/TCP or vfio-user, so that real software uses it.

    The drive keeps every byte in memory, and with --image in a file that outlives the server. It is served until
    Ctrl-C, SIGTERM or `flashwright ctl ADDRESS stop`; then its figures are printed, as those of a run. Whoever can
    connect needs no password, so only this machine can, unless --listen-anywhere is given. With --before, it is a
    device that exists, behind the schedulers of the simulator. The exit status is 2 if a recording or the image could
    not be written; else, with --run, that of the command, or 125 if the drive was stopped before its end.
    """
    output.check()
    if not (nbd or nvme_tcp or vfio_user or run):
        raise ServeError(
            "--nbd: found none, expected an address",
            "such as --nbd unix:/tmp/drive.sock, --nvme-tcp 127.0.0.1:4420, --vfio-user /tmp/drive.sock, or --run "
            "COMMAND",
        )
    if pace not in get_args(_Pace):
        raise ServeError(f"--pace: found {pace!r}, expected none or real", "")
    for path in (record, record_data):
        if path is not None:
            check_writable(path)
    simulated = {
        "--pace": pace != "none",
        "--time-scale": time_scale != 1.0,
        "--record": record is not None,
        "--record-data": record_data is not None,
        "--image": image is not None,
        "--precondition": precondition is not None,
        "--policy": bool(policy),
        "--seed": seed != 1,
    }
    before.check(device, simulated)
    with contextlib.ExitStack() as ends:
        if run is not None:
            folder = ends.enter_context(tempfile.TemporaryDirectory(prefix="flashwright-"))
            if not (nbd or nvme_tcp or vfio_user):
                nbd = [f"unix:{folder}/drive"]
            ctl = ctl or f"unix:{folder}/ctl"
        if device is None:
            exists = before.begin(
                nbd or (),
                nvme_tcp=nvme_tcp or (),
                vfio_user=vfio_user or (),
                settings=set or (),
                in_flight_max=in_flight_max,
                read_only=read_only,
                ctl=ctl,
                metrics=metrics,
                watch=watch,
                listen_anywhere=listen_anywhere,
                quiet=output.quiet,
            )
            status = _until_stopped(exists, run, output)
            found = exists.stop()
            _tell(exists)
            before.show(found, exists.stats()["served"], output)
            return 2 if exists.lost else status
        ssd = Ssd.find(device).with_settings(set or ())
        if precondition is not None:
            ssd = ssd.precondition(precondition)
        drive = begin(
            ssd,
            nbd or (),
            nvme_tcp=nvme_tcp or (),
            vfio_user=vfio_user or (),
            pace="real" if pace == "real" else "none",
            time_scale=time_scale,
            in_flight_max=in_flight_max,
            read_only=read_only,
            image=image,
            record=record,
            record_data=record_data,
            ctl=ctl,
            metrics=metrics,
            watch=watch,
            listen_anywhere=listen_anywhere,
            policies=[policies.load(text) for text in policy or ()],
            seed=seed,
        )
        status = _until_stopped(drive, run, output)
        result = drive.stop()
        _tell(drive)
        put_json(result.json | {"served": drive.stats()["served"]}, output.json)
        put_page(lambda: result, output)
        if not output.silent:
            page.show_run(result)
            page.show_served(drive.stats()["served"])
        return 2 if drive.lost else status


def _until_stopped(drive: Served[Any], run: str | None, output: ResultOptions) -> int:
    """Say where the drive is, and wait for the end of the command, if there is one, or of the server.

    Returns
    -------
    int
        The exit status.
    """
    command: ServedCommand | None = None
    try:
        if not output.quiet:
            for uri in drive.uris:
                errors.note(f"serving {uri}")
            for what, address in drive.addresses.items():
                errors.note(f"{what}: {address}")
        if run is not None:
            command = ServedCommand(run, drive.uris, drive.addresses)
        while not drive.wait(1.0 if command is None else _LOOK_S):
            _tell(drive)
            if command is not None and command.has_ended:
                return command.status()
    except KeyboardInterrupt:
        if command is not None:
            command.end("interrupted")
        return _INTERRUPTED
    if command is not None and not command.has_ended:
        command.end("the drive is no longer served")
        return _STOPPED
    return 0 if command is None else command.status()


def _tell(drive: Served[Any]) -> None:
    for note in drive.notes:
        errors.note(note)
    drive.notes.clear()
