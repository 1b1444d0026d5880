"""The file of a profile: what was found out about a drive, as TOML that people read and edit.

Sizes and times are written with their unit. What contradicts itself is refused, so that an edited file either means
something or says where it does not.
"""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import tomli_w

from flashwright._core import __version__
from flashwright.drive.contradictions import PARAMETERS, contradictions
from flashwright.drive.description import completed, config_of
from flashwright.drive.findings import Finding
from flashwright.drive.quantities import EXAMPLES, UNITS, as_text, decode, needs, plain
from flashwright.errors import ConfigError
from flashwright.support.core import SECTOR_BYTES, _core
from flashwright.support.files import parse_toml

__all__ = [
    "LAYOUT",
    "Content",
    "TargetFacts",
    "drive_of",
    "host_profile",
    "is_profile",
    "read",
    "written",
]

LAYOUT = 1
"""The number of the layout that is written and read."""

_HEAD = """\
# What was found out about a drive. Sizes and times carry their unit; a verdict is found, absent or unknown.
# `flashwright advise` recommends host settings from it; commands that take a DEVICE use its twin.

"""

_HOST_PROFILE = ("clustered-page", "clustered-block", "read-buffer", "write-buffer")

_MODES = ("quick", "full", "described")

_KINDS = ("block-device", "file", "nbd", "nvme-tcp", "simulated")

_VERDICTS = ("found", "absent", "unknown")

HINT = "a profile is TOML text with `profile = 1` at its top"


class OpenTarget(Protocol):
    """A target that describes itself."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> Literal["block-device", "file", "nbd", "nvme-tcp", "simulated"]: ...
    @property
    def capacity_bytes(self) -> int: ...
    @property
    def block_bytes(self) -> int: ...
    @property
    def real_time(self) -> bool: ...


@dataclass(frozen=True)
class TargetFacts:
    """What a target says of itself.

    Attributes
    ----------
    name : str
        As it was given to the prober.
    kind : {"block-device", "file", "nbd", "nvme-tcp", "simulated"}
        What it is.
    capacity_bytes, block_bytes : int
        Its size, and the unit of its addresses.
    real_time : bool
        Whether its time is ours.
    """

    name: str
    kind: Literal["block-device", "file", "nbd", "nvme-tcp", "simulated"]
    capacity_bytes: int
    block_bytes: int = SECTOR_BYTES
    real_time: bool = False

    @classmethod
    def of(cls, target: OpenTarget) -> TargetFacts:
        """The facts of an open target."""
        return cls(
            target.name, target.kind, target.capacity_bytes, target.block_bytes, target.real_time
        )


@dataclass(frozen=True)
class Content:
    """What a profile's file holds; see :class:`flashwright.Profile` for each.

    Attributes
    ----------
    twin : str or None
        The whole description of the twin.
    """

    target: TargetFacts
    findings: Mapping[str, Finding]
    mode: Literal["quick", "full", "described"]
    seed: int
    seconds: float
    declared: Mapping[str, Any]
    twin: str | None
    twin_record: Mapping[str, Any]
    calibration: Mapping[str, Any]
    made_by: str

    def document(self) -> dict[str, Any]:
        """The tables of the file."""
        target = self.target
        document: dict[str, Any] = {
            "profile": LAYOUT,
            "made-by": self.made_by,
            "target": {
                "name": target.name,
                "kind": target.kind,
                "capacity": as_text(target.capacity_bytes, "B"),
                "block": as_text(target.block_bytes, "B"),
                "real-time": target.real_time,
            },
            "probe": {"mode": self.mode, "seed": self.seed, "seconds": plain(self.seconds)},
            "findings": {name: _written(finding) for name, finding in self.findings.items()},
        }
        if self.declared:
            document["declared"] = plain(self.declared)
        if self.twin_record:
            document["twin-record"] = plain(self.twin_record)
        if self.calibration:
            document["calibration"] = plain(self.calibration)
        if self.twin is not None:
            document["twin"] = parse_toml(self.twin)
        return document


def read(text: str, source: str = "profile") -> Content:
    """What a text holds; messages call it `source`.

    Raises
    ------
    ConfigError
        With a line for each thing that can't be read or contradicts another.
    """
    try:
        document = parse_toml(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{source}: {error}", "a profile is TOML text") from None
    return _Reader(source).content(document)


def written(content: Content, preconditioning: str | None = None) -> str:
    """The text of the file.

    Parameters
    ----------
    content : Content
        What it holds.
    preconditioning : str, optional
        What is done to the twin before a run, which no file can say.

    Raises
    ------
    ConfigError
        If it contradicts itself, and so could not be read again.
    """
    faults = _Faults("profile")
    faults.contradictions(content, preconditioning)
    faults.end()
    return _HEAD + tomli_w.dumps(content.document())


def host_profile(findings: Mapping[str, Finding]) -> dict[str, str]:
    """The four sizes that schedulers go by, as ``[host.profile]`` has them: a size, ``none`` or ``unknown``."""
    sizes = {}
    for parameter in _HOST_PROFILE:
        finding = findings.get(parameter)
        if finding is None or finding.verdict == "unknown":
            sizes[parameter] = "unknown"
        elif finding.verdict == "absent":
            sizes[parameter] = "none"
        else:
            sizes[parameter] = str(as_text(finding.value, finding.unit))
    return sizes


def drive_of(content: Content) -> str:
    """The whole description of the twin, whose schedulers go by what was found.

    Raises
    ------
    ConfigError
        If there is no twin.
    """
    if content.twin is None:
        raise ConfigError(
            f"{content.target.name}: found a profile without a twin, expected one with a table [twin] to play on",
            "fit a twin when the drive is probed, or add a drive description below [twin]",
        )
    sizes = host_profile(content.findings)
    return _core.config_with(
        content.twin, [f"host.profile.{key}={value}" for key, value in sizes.items()]
    )


def is_profile(text: str) -> bool:
    r"""Whether a TOML text says that it is a profile, of whatever layout.

    Examples
    --------
    >>> is_profile("profile = 1"), is_profile("[profile]\nread-buffer = 'none'"), is_profile("profile =")
    (True, False, False)
    """
    try:
        found = parse_toml(text).get("profile")
    except tomllib.TOMLDecodeError:
        return False
    return found is not None and not isinstance(found, dict)


class _Faults:
    """Collects what is wrong, a line a fault."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._lines: list[str] = []
        self._hint: str | None = None

    def add(self, key: str, found: str, expected: str, hint: str = "") -> None:
        self._lines.append(f"{self._source}: {key}: found {found}, expected {expected}")
        if self._hint is None:
            self._hint = hint

    def unknown_keys(self, table: Mapping[str, Any], known: tuple[str, ...], path: str) -> None:
        for key in table:
            if key not in known:
                near = difflib.get_close_matches(key, known, 1)
                meant = f"; did you mean {near[0]}?" if near else ""
                self.add(f"{path}{key}", f"an unknown key{meant}", f"one of {', '.join(known)}")

    def contradictions(self, profile: Content, preconditioning: str | None) -> None:
        for one in contradictions(profile.findings, profile.target.capacity_bytes):
            self.add(one.key, one.found, one.expected, one.hint)
        if profile.twin is None:
            return
        if preconditioning is not None:
            self.add(
                "twin",
                f"a drive that is preconditioned ({preconditioning})",
                "none: a description holds no state",
            )
        capacity = _core.config_check(profile.twin)[0]
        wanted = profile.target.capacity_bytes
        # A model has whole rows of blocks, so its size may miss the drive's by less than one.
        if abs(capacity - wanted) >= _row_bytes(profile.twin):
            self.add(
                "twin.capacity",
                _text(as_text(capacity, "B")),
                f"the target's {as_text(wanted, 'B')}",
                "set capacity.logical below [twin] to the target's size",
            )

    def end(self) -> None:
        """Raise what was found."""
        if self._lines:
            raise ConfigError("\n".join(self._lines), self._hint)


def _row_bytes(toml: str) -> int:
    """One block of each plane."""
    geometry = config_of(toml)["geometry"]
    page, _ = decode(geometry["page-size"])
    planes = geometry["channels"] * geometry["dies-per-channel"] * geometry["planes-per-die"]
    return int(page) * int(geometry["pages-per-block"]) * int(planes)


class _Reader:
    """Reads a profile from tables, and notes all faults before it gives up."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._faults = _Faults(source)

    def content(self, document: dict[str, Any]) -> Content:
        layout = document.get("profile")
        if type(layout) is not int or layout != LAYOUT:
            newer = type(layout) is int and layout > LAYOUT
            self._faults.add(
                "profile",
                "nothing" if layout is None else repr(layout),
                f"the layout number {LAYOUT}",
                f"a newer version wrote it; this is {__version__}: update it, or probe again"
                if newer
                else HINT,
            )
            self._faults.end()
        known = (
            "profile", "made-by", "target", "probe", "findings", "declared", "twin-record",
            "calibration", "twin",
        )  # fmt: skip
        self._faults.unknown_keys(document, known, "")
        target = self._target(self._table(document, "target"))
        probe = self._table(document, "probe")
        self._faults.unknown_keys(probe, ("mode", "seed", "seconds"), "probe.")
        mode = self._one_of(probe, "probe.mode", _MODES)
        seed = self._number(probe, "probe.seed", 0, 2**64 - 1, missing=1, whole=True)
        seconds = self._number(probe, "probe.seconds", 0, math.inf, missing=0.0)
        findings = self._findings(self._table(document, "findings"))
        declared, record, calibration = (
            self._table(document, key) for key in ("declared", "twin-record", "calibration")
        )
        made_by = self._text(document, "made-by", missing="handwritten")
        tables = self._table(document, "twin")
        self._faults.end()
        twin = None
        if tables:
            text = tomli_w.dumps({"name": target.name, **tables})
            twin = completed(text, f"{self._source}: twin", f"{self._source}: twin")
        found = Content(
            target, findings, mode, int(seed), seconds, declared, twin, record, calibration, made_by
        )
        self._faults.contradictions(found, None)
        self._faults.end()
        return found

    def _target(self, table: Mapping[str, Any]) -> TargetFacts:
        self._faults.unknown_keys(
            table, ("name", "kind", "capacity", "block", "real-time"), "target."
        )
        kind: Any = self._one_of(table, "target.kind", _KINDS)
        real_time = table.get("real-time")
        if not isinstance(real_time, bool):
            self._faults.add("target.real-time", _text(real_time), "true or false")
        return TargetFacts(
            self._text(table, "target.name"),
            kind,
            self._size(table, "target.capacity"),
            self._size(table, "target.block"),
            bool(real_time),
        )

    def _findings(self, table: Mapping[str, Any]) -> dict[str, Finding]:
        known = tuple(PARAMETERS)
        self._faults.unknown_keys(table, known, "findings.")
        return {
            parameter: self._finding(parameter, self._table(table, f"findings.{parameter}"))
            for parameter in table
            if parameter in known
        }

    def _finding(self, parameter: str, entries: Mapping[str, Any]) -> Finding:
        path = f"findings.{parameter}"
        keys = ("verdict", "value", "unit", "low", "high", "confidence", "why", "figures")
        self._faults.unknown_keys(entries, keys, f"{path}.")
        unit = self._text(entries, f"{path}.unit", missing="")
        value, own = self._quantity(entries, f"{path}.value")
        low, of_low = self._quantity(entries, f"{path}.low", words=False)
        high, of_high = self._quantity(entries, f"{path}.high", words=False)
        unit = next((name for name in (unit, own, of_low, of_high) if name), "")
        for key, number, of_number in (
            ("value", value, own),
            ("low", low, of_low),
            ("high", high, of_high),
        ):
            bare = isinstance(number, int | float) and math.isfinite(number) and not of_number
            if (bare and unit in UNITS) or of_number not in (None, unit):
                hint = "value, low, high and unit of a finding go together"
                self._faults.add(f"{path}.{key}", _text(entries[key]), needs(unit), hint)
        figures = self._table(entries, f"{path}.figures")
        for name, figure in figures.items():
            if isinstance(figure, bool) or not isinstance(figure, int | float):
                self._faults.add(f"{path}.figures.{name}", _text(figure), "a number")
        return Finding(
            parameter,
            self._one_of(entries, f"{path}.verdict", _VERDICTS),
            value,
            unit,
            low if isinstance(low, int | float) else None,
            high if isinstance(high, int | float) else None,
            self._number(entries, f"{path}.confidence", -math.inf, math.inf, missing=0.0),
            self._text(entries, f"{path}.why", missing=""),
            figures=figures,
        )

    def _quantity(
        self, table: Mapping[str, Any], path: str, *, words: bool = True
    ) -> tuple[int | float | str | None, str | None]:
        """A number or a word, and the unit in its text."""
        given = table.get(_last(path))
        if given is None:
            return None, None
        expected = "a number with its unit" + (" or a word" if words else "")
        if isinstance(given, bool) or not isinstance(given, int | float | str):
            self._faults.add(path, _text(given), expected, EXAMPLES)
            return None, None
        value, unit = decode(given)
        if isinstance(value, str) and not (words and _WORD.fullmatch(value)):
            self._faults.add(path, _text(given), expected, EXAMPLES)
        return value, unit

    def _table(self, parent: Mapping[str, Any], path: str) -> dict[str, Any]:
        found = parent.get(_last(path), {})
        if not isinstance(found, dict):
            self._faults.add(path, _text(found), "a table")
            return {}
        return found

    def _one_of(self, table: Mapping[str, Any], path: str, choices: tuple[str, ...]) -> Any:
        found = table.get(_last(path))
        if found not in choices:
            self._faults.add(path, _text(found), f"one of {', '.join(choices)}")
        return found

    def _text(self, table: Mapping[str, Any], path: str, missing: str | None = None) -> str:
        found = table.get(_last(path), missing)
        if not isinstance(found, str):
            self._faults.add(path, _text(found), "text")
            return ""
        return found

    def _size(self, table: Mapping[str, Any], path: str) -> int:
        found = table.get(_last(path))
        value, unit = decode(found) if isinstance(found, str) else (None, None)
        if unit == "B" and isinstance(value, int) and value > 0 and value % SECTOR_BYTES == 0:
            return value
        expected = f"a size of whole sectors of {SECTOR_BYTES} B, with its unit"
        self._faults.add(path, _text(found), expected, EXAMPLES)
        return 0

    def _number(
        self,
        table: Mapping[str, Any],
        path: str,
        least: float,
        most: float,
        *,
        missing: float | None = None,
        whole: bool = False,
    ) -> float:
        found = table.get(_last(path), missing)
        right = isinstance(found, int if whole else int | float) and not isinstance(found, bool)
        # A figure may be undefined, so only limits that there are refuse it.
        if not right or found < least or found > most:
            limits = "" if least == -math.inf else f" from {least:g}"
            limits += "" if most == math.inf else f" to {most:.0f}" if limits else ""
            self._faults.add(path, _text(found), f"a{' whole' if whole else ''} number{limits}")
            return 0
        return found  # type: ignore[no-any-return]


_WORD = re.compile(r"[A-Za-z][A-Za-z0-9 ._+-]*")


def _written(finding: Finding) -> dict[str, Any]:
    """A finding as a table."""
    unit = finding.unit
    value = as_text(finding.value, unit)
    table: dict[str, Any] = {"verdict": finding.verdict}
    if value is not None:
        table["value"] = value
    if unit and not (isinstance(value, str) and not isinstance(finding.value, str)):
        table["unit"] = unit
    for key, end in (("low", finding.low), ("high", finding.high)):
        if end is not None:
            table[key] = as_text(end, unit)
    table["confidence"] = plain(finding.confidence)
    if finding.why:
        table["why"] = finding.why
    if finding.figures:
        table["figures"] = plain(finding.figures)
    return table


def _last(path: str) -> str:
    return path.rpartition(".")[2]


def _text(value: object) -> str:
    return "nothing" if value is None else repr(value)
