"""What a run plays, as a value: a generated workload or a trace."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypedDict

from flashwright.errors import WorkloadError
from flashwright.support.arguments import checked
from flashwright.support.core import _core
from flashwright.traces.piped import is_from_pipe

__all__ = [
    "Addresses",
    "Common",
    "Events",
    "Order",
    "Source",
    "TimeUnit",
    "Trace",
    "Workload",
    "expect_addresses",
    "parse",
]

Addresses: TypeAlias = str
"""How a trace's addresses fit a drive: ``wrap``, modulo its size; ``reject``, refused beyond it; ``dense``, packed in
order of first use; ``compact``, packed in order of address; ``scale``, in order of address onto the whole drive, or
onto a share of it, such as ``scale:0.7``."""


def expect_addresses(found: str | None, name: str = "addresses") -> str | None:
    """The same, once it is known to be a way to fit addresses.

    Parameters
    ----------
    found : str or None
        One of :data:`Addresses`; None where nothing was asked for.
    name : str, optional
        What messages call it.

    Raises
    ------
    WorkloadError
        If it is none.

    Examples
    --------
    >>> expect_addresses("scale:0.7")
    'scale:0.7'
    >>> expect_addresses("fold")
    Traceback (most recent call last):
    ...
    flashwright.errors.WorkloadError: addresses: found 'fold', expected wrap, reject, dense, compact or scale[:SHARE]
    """
    kind, colon, share = ("", "", "") if found is None else found.partition(":")
    known = kind in ("", "wrap", "reject", "dense", "compact", "scale") and (
        not colon or kind == "scale"
    )
    try:
        part = 1.0 if not colon else float(share.removesuffix("%")) / (100 if "%" in share else 1)
    except ValueError:
        part = 0.0
    if found is not None and (not known or not kind or not 0 < part <= 1):
        raise WorkloadError(
            f"{name}: found {found!r}, expected wrap, reject, dense, compact or scale[:SHARE]",
            "wrap: modulo the drive's size; reject: an error beyond it; dense: packed in order of first use; compact: "
            "packed in order of address; scale: onto the drive, or a share of it up to 1, in order of address",
            parameters=[name],
        )
    return found


Order: TypeAlias = Literal["as-is", "sort", "concatenate"]
"""What is done where times go back: late requests arrive with the one before, are sorted, or begin a following
recording."""

TimeUnit: TypeAlias = Literal["ns", "us", "ms", "s"]
"""The unit of a trace's times."""

Events: TypeAlias = Literal["auto", "queue", "issue"]
"""Which events of a block trace are its requests; auto: queue events, or issue events where there are no others."""


class Common(TypedDict, total=False):
    """What every generator takes.

    Attributes
    ----------
    write, trim : float
        Shares of requests that write and trim, 0 to 1; the rest reads.
    size, align : str or int
        Request size, and what requests start at multiples of; a number is bytes.
    range : float
        Share of the logical space in use, from its start.
    depth : int
        Closed loop with that many requests in flight.
    rate : float
        Open loop with that many requests per second.
    arrival : str
        How an open loop spaces its requests.
    """

    write: float
    trim: float
    size: str | int
    align: str | int
    range: float
    depth: int
    rate: float
    arrival: str


@dataclass(frozen=True)
class Workload:
    """A generator of requests in its canonical text form.

    Attributes
    ----------
    spec : str
        As ``--workload`` takes it.
    label : str or None
        What reports must call it, where the name alone would promise too much: stand-ins say that they are.
    """

    spec: str
    label: str | None = None

    def __repr__(self) -> str:
        return f"Workload({self.spec!r})"

    def source_json(self) -> str:
        """The form in which the core takes it."""
        return json.dumps({"workload": self.spec})


@dataclass(frozen=True)
class Trace:
    """A recorded workload and how to read it; see :func:`trace` for the meaning of each attribute."""

    path: str
    format: str | None = None
    addresses: Addresses | None = None
    devices: tuple[str, ...] | None = None
    overlay: bool = False
    skip_bad_lines: bool = False
    repeat: int = 1
    name: str = ""
    time_scale: float = 1.0
    range: tuple[int, int] | None = None
    scale_footprint: int = 1
    order: Order | None = None
    time_unit: TimeUnit | None = None
    events: Events = "auto"
    start: float = 0.0

    @property
    def lasts(self) -> bool:
        """Whether the trace can be read again by another process later; one from a pipe can't."""
        return not is_from_pipe(self.path)

    def __repr__(self) -> str:
        fitted = "" if self.addresses is None else f", addresses={self.addresses!r}"
        return f"Trace({self.path!r}{fitted})"

    def spec_json(self) -> str:
        """The options in the form in which the core takes them."""
        return json.dumps(
            {
                "path": self.path,
                "name": self.name,
                "format": self.format,
                "skip-bad-lines": self.skip_bad_lines,
                "devices": None if self.devices is None else list(self.devices),
                "overlay": self.overlay,
                "addresses": self.addresses,
                "repeat": self.repeat,
                "time-scale": self.time_scale,
                "range": self.range,
                "scale-footprint": self.scale_footprint,
                "order": self.order,
                "time-unit": self.time_unit,
                "events": None if self.events == "auto" else self.events,
                "start": self.start,
            }
        )

    def source_json(self) -> str:
        """The form in which the core takes it."""
        return json.dumps({"trace": json.loads(self.spec_json())})


Source: TypeAlias = Workload | Trace


@checked()
def parse(spec: str) -> Workload:
    """Read a workload as ``--workload`` takes it.

    Parameters
    ----------
    spec : str
        ``name`` or ``name:key=value,key=value``.

    Returns
    -------
    Workload

    Raises
    ------
    WorkloadError
        With everything that is wrong with the text.

    Examples
    --------
    >>> parse("uniform:write=70%, depth=32")
    Workload('uniform:write=0.7,depth=32')
    """
    return Workload(*_core.workload_read(spec))
