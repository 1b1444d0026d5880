"""Several workloads at once on one drive: tenants, each with a queue, a namespace and a pace of its own."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

from flashwright.errors import WorkloadError
from flashwright.support.arguments import checked
from flashwright.traces.sources import Source, Trace, Workload, expect_addresses
from flashwright.traces.workloads import find, trace

__all__ = ["Load", "Priority", "Tenant", "Tenants", "as_load"]

Priority: TypeAlias = Literal["urgent", "high", "medium", "low"]
"""The class of a tenant's queue; only an arbiter that weighs queues looks at it."""

_KEYS = (
    "name",
    "share",
    "pages",
    "handle",
    "priority",
    "depth",
    "time-scale",
    "addresses",
)
_DEPTH_MAX = 2**20
_HANDLE_MAX = 2**16 - 1
_PAGES_MAX = 2**32 - 1
_TIME_SCALE_MAX = 1e6


@dataclass(frozen=True)
class Tenant:
    """One of several workloads at once.

    Attributes
    ----------
    source : Workload or Trace
        What it plays, on its namespace: the drive that it sees.
    name : str
        What results call it; empty for its number, counted from 1.
    share : float or None
        The size of its namespace as a share of the drive's logical pages, above 0 up to 1. Namespaces follow each other
        in the order of the tenants; those that name neither `share` nor `pages` have equal parts of what the others
        leave.
    pages : int or None
        The size of its namespace in logical pages.
    handle : int or None
        The placement handle of all its requests, for a ``placement.policy`` that keeps handles apart; None for the
        streams that its workload names.
    priority : {"urgent", "high", "medium", "low"}
        The class of its queue, for ``controller.queues.arbiter = "weighted"``.
    depth : int or None
        Closed loop with that many requests outstanding; None for what `source` sets.
    time_scale : float or None
        Multiplies arrival times; None for what `source` sets.

    Examples
    --------
    >>> Tenant.parse("uniform:write=1,depth=8 @ share=25%,handle=1")
    Tenant('uniform:write=1,depth=8 @ share=0.25,handle=1')
    """

    source: Source
    name: str = ""
    share: float | None = None
    pages: int | None = None
    handle: int | None = None
    priority: Priority = "medium"
    depth: int | None = None
    time_scale: float | None = None

    def __post_init__(self) -> None:
        where = f"tenant {self.text!r}" if self.name == "" else f"tenant {self.name}"
        if self.share is not None and self.pages is not None:
            raise WorkloadError(f"{where}: share and pages: found both, expected one of them", "")
        if self.depth is not None and self.time_scale is not None:
            raise WorkloadError(
                f"{where}: depth and time-scale: found both, expected one of them",
                "a closed loop ignores arrival times, so there is nothing to scale",
            )
        if self.priority not in get_args(Priority):
            raise WorkloadError(
                f"{where}: priority: found {self.priority!r}, expected {', '.join(get_args(Priority))}",
                "",
            )
        if self.share is not None and not 0 < self.share <= 1:
            raise WorkloadError(
                f"{where}: share: found {self.share:g}, expected above 0 up to 1", ""
            )
        for key, value, least, most in (
            ("pages", self.pages, 1, _PAGES_MAX),
            ("handle", self.handle, 0, _HANDLE_MAX),
            ("depth", self.depth, 1, _DEPTH_MAX),
            ("time-scale", self.time_scale, 0, _TIME_SCALE_MAX),
        ):
            if value is not None and not least <= value <= most:
                raise WorkloadError(
                    f"{where}: {key}: found {value:g}, expected {least} to {most:,.0f}", ""
                )

    @classmethod
    @checked()
    def parse(cls, text: str) -> Tenant:
        """Read a tenant as ``--tenant`` takes it.

        Parameters
        ----------
        text : str
            ``WORKLOAD`` or ``WORKLOAD @ key=value,key=value``. The workload is as ``--workload`` takes it, or
            ``bundled:NAME``, or ``trace:FILE``. The keys are the attributes of a :class:`Tenant`, with ``-`` for ``_``,
            and ``addresses`` for how those of a trace fit the namespace.

        Raises
        ------
        WorkloadError
            With what is wrong with the text.
        """
        spec, at, rest = text.rpartition("@")
        if not at or (rest.strip() and "=" not in rest):
            spec, rest = text, ""  # an @ in the name of a file
        given: dict[str, Any] = {}
        for part in filter(None, (each.strip() for each in rest.split(","))):
            key, equals, value = (each.strip() for each in part.partition("="))
            if key not in _KEYS or not equals or not value:
                known = ", ".join(f"{key}=" for key in _KEYS)
                raise WorkloadError(
                    f"tenant: found {part!r} after @, expected one of {known} with a value",
                    "keys of the workload stand before the @, as in uniform:write=1,depth=8 @ share=25%",
                )
            if key in given:
                raise WorkloadError(f"tenant: {key}: found twice, expected once", "")
            given[key] = value
        source = _source(spec.strip(), given.pop("addresses", None))
        made: dict[str, Any] = {}
        for key, value in given.items():
            made[key.replace("-", "_")] = _READS[key](key, value) if key in _READS else value
        return cls(source, **made)

    @property
    def text(self) -> str:
        """The tenant as :meth:`parse` takes it; a trace's options other than its addresses are not part of it."""
        own = {
            "name": self.name or None,
            "share": self.share,
            "pages": self.pages,
            "handle": self.handle,
            "priority": None if self.priority == "medium" else self.priority,
            "depth": self.depth,
            "time-scale": self.time_scale,
            "addresses": self.source.addresses if isinstance(self.source, Trace) else None,
        }
        keys = ",".join(f"{key}={value}" for key, value in own.items() if value is not None)
        return f"{_name(self.source)} @ {keys}" if keys else _name(self.source)

    def to_json(self) -> dict[str, Any]:
        """The form in which the core takes it."""
        return {
            "name": self.name,
            "source": json.loads(self.source.source_json()),
            "share": self.share,
            "pages": self.pages,
            "handle": self.handle,
            "priority": self.priority,
            "depth": self.depth,
            "time-scale": self.time_scale,
        }

    def __repr__(self) -> str:
        return f"Tenant({self.text!r})"


@dataclass(frozen=True)
class Tenants:
    """Several workloads at once.

    Attributes
    ----------
    all : tuple of Tenant
        In the order of their namespaces.
    alone : int or None
        The place of the only one that issues requests; None if all do.
    compared : bool
        Whether each is also played alone, to say how much slower it is among the others.

    Examples
    --------
    >>> from flashwright import Ssd
    >>> ssd = Ssd.named("default").with_(blocks_per_plane=64).precondition("sequential")
    >>> run = ssd.play(["uniform:write=0,rate=500", "uniform:write=1,depth=8"], requests=2_000)
    >>> [tenant["name"] for tenant in run.json["tenants"]]
    ['1', '2']
    >>> run.json["tenants"][0]["slowdown"]["mean_ratio"] > 1
    True
    """

    all: tuple[Tenant, ...]
    alone: int | None = None
    compared: bool = True

    @classmethod
    def of(cls, given: Iterable[Tenant | Source | str], *, compared: bool = True) -> Tenants:
        """Tenants, workloads and traces, and texts as :meth:`Tenant.parse` takes them.

        Parameters
        ----------
        given : iterable
            At least one.
        compared : bool, optional
            Whether each is also played alone.
        """
        made = tuple(_tenant(each) for each in given)
        if not made:
            raise WorkloadError("tenants: found none, expected at least one", "")
        return cls(made, compared=compared)

    @property
    def spec(self) -> str:
        """What they are called among what is varied."""
        return " | ".join(tenant.text for tenant in self.all)

    def only(self, at: int) -> Tenants:
        """The same tenants, of which only one issues requests."""
        return replace(self, alone=at, compared=False)

    @property
    def traces(self) -> tuple[Trace, ...]:
        """The traces among what they play."""
        return tuple(tenant.source for tenant in self.all if isinstance(tenant.source, Trace))

    def source_json(self) -> str:
        """The form in which the core takes them."""
        return json.dumps(
            {"tenants": {"all": [each.to_json() for each in self.all], "alone": self.alone}}
        )

    def __repr__(self) -> str:
        return f"Tenants({self.spec!r})"


Load: TypeAlias = Source | Tenants
"""What a run plays: a workload, a trace, or several of them at once."""


def as_load(given: Load | str | Iterable[Tenant | Source | str]) -> Load:
    """What a run plays: text is a workload, several things are tenants.

    Examples
    --------
    >>> as_load("uniform"), as_load(["uniform", "zipf @ handle=1"])
    (Workload('uniform'), Tenants('uniform | zipf @ handle=1'))
    """
    if isinstance(given, str):
        return find(given)
    return given if isinstance(given, Workload | Trace | Tenants) else Tenants.of(given)


def _tenant(given: Tenant | Source | str) -> Tenant:
    if isinstance(given, str):
        return Tenant.parse(given)
    if isinstance(given, Workload | Trace):
        return Tenant(given)
    if isinstance(given, Tenant):
        return given
    raise WorkloadError(
        f"workload: found {given!r} among what is played side by side, expected tenants, workloads or traces",
        "",
    )


def _name(source: Source) -> str:
    if isinstance(source, Workload):
        return source.spec
    return source.name or f"trace:{source.path}"


def _source(spec: str, addresses: str | None) -> Source:
    found: Source = trace(spec.removeprefix("trace:")) if spec.startswith("trace:") else find(spec)
    if addresses is None:
        return found
    if not isinstance(found, Trace):
        raise WorkloadError(
            f"tenant: addresses: found with {spec}, expected only with a trace",
            "a workload takes range=, the share of its namespace that it uses",
        )
    return replace(found, addresses=expect_addresses(addresses))


def _whole(key: str, text: str) -> int:
    try:
        return int(text.replace("_", ""))
    except ValueError:
        raise WorkloadError(f"tenant: {key}: found {text!r}, expected a whole number", "") from None


def _number(key: str, text: str) -> float:
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        expected = "a share such as 25% or 0.25" if key == "share" else "a number"
        raise WorkloadError(f"tenant: {key}: found {text!r}, expected {expected}", "") from None


_READS: Mapping[str, Any] = {
    "share": _number,
    "pages": _whole,
    "handle": _whole,
    "depth": _whole,
    "time-scale": _number,
}
