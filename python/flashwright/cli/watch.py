"""``flashwright watch``: what an NVMe drive in service counts, as it happens."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Annotated, Any

import typer

from flashwright._core import __version__
from flashwright.cli.outputs import Json
from flashwright.cli.render import page, put_json, units
from flashwright.errors import WorkloadError
from flashwright.nvme.counters import Identity, Interval, Reader, Reading, between
from flashwright.nvme.passthrough import Nvme
from flashwright.support.core import _core
from flashwright.support.files import check_writable
from flashwright.support.printable import printable

__all__ = ["watch"]

_LEAST_NS = 100_000_000
_COLUMNS = (
    ("after", 9),
    ("written", 12),
    ("read", 12),
    ("to flash", 12),
    ("WA by bytes", 13),
    ("temp", 6),
)


def watch(
    device: Annotated[
        str,
        typer.Argument(
            metavar="DEVICE", help="An NVMe drive, such as /dev/nvme0. It is only read from."
        ),
    ],
    interval: Annotated[
        str,
        typer.Option(
            metavar="TIME", help="Between two readings of the counters.", rich_help_panel="Scope"
        ),
    ] = "5s",
    count: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Intervals; 0 to say only what the drive is. By default until Ctrl-C.",
            rich_help_panel="Scope",
        ),
    ] = None,
    json: Json = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print no table.", rich_help_panel="Output")
    ] = False,
) -> int:
    """Show what an NVMe drive in service counts: write amplification, wear, temperature.

    The drive's own counters are read through the kernel, which asks for root (CAP_SYS_ADMIN). Nothing is written, and
    no setting is changed.
    """
    every_s = _interval_s(interval)
    if count is not None and count < 0:
        raise WorkloadError(f"--count: found {count}, expected 0 or more", "")
    if json is not None:
        check_writable(json)
    silent = quiet or str(json) == "-"
    with Nvme(device) as nvme:
        reader = Reader(nvme)
        identity = reader.identity()
        if not silent:
            _say(identity)
        watched = _Watched(reader, silent=silent)
        try:
            watched.play(every_s, count)
        finally:
            if not silent:
                watched.sum_up()
            put_json(_document(device, identity, watched), json)
    return 0


def _interval_s(text: str) -> float:
    nanos = _core.time_read(text)
    if nanos < _LEAST_NS:
        raise WorkloadError(f"--interval: found {text!r}, expected 100ms or more", "")
    return nanos / 1e9


class _Watched:
    """Readings so far, and a line of the table for each interval."""

    def __init__(self, reader: Reader, *, silent: bool) -> None:
        self._reader, self._silent = reader, silent
        self.readings: list[Reading] = []
        self.intervals: list[Interval] = []

    def play(self, every_s: float, count: int | None) -> None:
        """Read at even intervals; the drive may go away in between, which ends it."""
        if count == 0:
            return
        self.readings.append(self._reader.read())
        if not self._silent:
            print("".join(name.rjust(width) for name, width in _COLUMNS), flush=True)
        due = self.readings[0].at_s
        while count is None or len(self.intervals) < count:
            due += every_s
            time.sleep(max(due - time.monotonic(), 0.0))
            self.readings.append(self._reader.read())
            done = between(*self.readings[-2:])
            self.intervals.append(done)
            if not self._silent:
                self._put(done)

    def _put(self, done: Interval) -> None:
        now, seconds = self.readings[-1], done.seconds
        celsius = now.health.temperature_c
        cells = (
            units.time((now.at_s - self.readings[0].at_s) * 1e9),
            *(
                units.rate(None if moved is None else moved / seconds)
                for moved in (
                    done.host_written_bytes,
                    done.host_read_bytes,
                    done.media_written_bytes,
                )
            ),
            units.number(done.write_amplification_bytes),
            "-" if celsius is None else f"{celsius} C",
        )
        widths = (width for _, width in _COLUMNS)
        print(
            "".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True)),
            flush=True,
        )
        for line in done.contradictions:
            print(f"note: {printable(line)}", flush=True)

    def whole(self) -> Interval | None:
        """From the first reading to the last."""
        return between(self.readings[0], self.readings[-1]) if self.intervals else None

    def sum_up(self) -> None:
        whole = self.whole()
        if whole is None:
            return
        out = page.console()
        health = self.readings[-1].health
        written = units.size(whole.host_written_bytes)
        ratio = (
            f"write amplification {whole.write_amplification_bytes:.3f} by bytes"
            if whole.write_amplification_bytes is not None
            else f"no write amplification: {whole.unknown_because}"
        )
        out.print(f"In {units.time(whole.seconds * 1e9)} the host wrote {written}; {ratio}.")
        wear = f"{health.used:.0%} of its rated life is used up"
        spare = f"; {health.spare:.0%} of its spare blocks are left" if health.spare else ""
        if whole.life_per_day is not None:
            wear += f", and a day at this load uses {whole.life_per_day:.3%}"
        out.print(f"{wear}{spare}.")


def _say(identity: Identity) -> None:
    out, controller = page.console(), identity.controller
    out.print(
        f"{controller.model}, firmware {controller.firmware}, NVM Express {controller.version}"
    )
    for each in identity.namespaces:
        namespace, zoning = each.namespace, each.zoning
        line = f"namespace {namespace.nsid}: {units.size(namespace.size_bytes)} in blocks of {namespace.block_bytes} B"
        if namespace.write_granularity_bytes is not None:
            line += (
                f"; writes are best in multiples of {units.size(namespace.write_granularity_bytes)}"
            )
        if zoning is not None:
            limit = "" if zoning.open_max is None else f", up to {zoning.open_max} open"
            line += f"; zones of {units.size(zoning.zone_bytes)}{limit}"
        out.print(line)
    for placement in identity.placements:
        out.print(
            f"data placement: {placement.handles} handles, reclaim units of {units.size(placement.unit_bytes)}"
        )
    if controller.host_memory_bytes:
        out.print(f"uses {units.size(controller.host_memory_bytes)} of the host's memory if it may")
    counter = identity.media_counter
    out.print(
        f"bytes to flash: by the {counter}" if counter else "bytes to flash: nothing counts them"
    )
    for line in identity.refused:
        out.print(f"note: {line}")


def _document(device: str, identity: Identity, watched: _Watched) -> dict[str, Any]:
    whole = watched.whole()
    return {
        "version": __version__,
        "device": device,
        "identity": asdict(identity),
        "readings": [asdict(reading) for reading in watched.readings],
        "intervals": [_plain(interval) for interval in watched.intervals],
        "whole": None if whole is None else _plain(whole),
    }


def _plain(interval: Interval) -> dict[str, Any]:
    """An interval with the earlier name of its ratio beside the one that all commands use."""
    return asdict(interval) | {"write_amplification": interval.write_amplification_bytes}
