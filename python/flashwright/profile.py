"""Profiles: what was found out about a drive, as a file that people read and edit.

A profile holds the findings of the probes, what the drive declares, and its twin: a description by which the simulator
behaves as the drive does. Sizes and times are written with their unit. What contradicts itself is refused, so that an
edited file either means something or says where it does not.
"""

from __future__ import annotations

import difflib
import math
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import tomli_w

from flashwright import _core
from flashwright._core import __version__
from flashwright.arguments import checked
from flashwright.device import Ssd
from flashwright.errors import ConfigError
from flashwright.files import parse_toml, write_beside
from flashwright.probes import PROBES
from flashwright.probes.base import Finding, unknown
from flashwright.target import Target

__all__ = ["LAYOUT", "Profile", "TargetFacts", "as_text", "is_profile", "reconcile"]

LAYOUT = 1
"""The number of the layout that is written and read."""

_SECTOR_BYTES = 512
_HEAD = """\
# What was found out about a drive. Sizes and times carry their unit; a verdict is found, absent or unknown.
# `flashwright advise` says what follows from it; the commands that take a DEVICE play on its twin.

"""


@dataclass(frozen=True)
class _Parameter:
    """What a finding may say: numbers of these units, or one of these words."""

    units: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    blocks: bool = False
    """Whether it is a size on the drive, and so made of whole sectors."""


_SIZE = _Parameter(("B",), blocks=True)
_YES_NO = _Parameter(words=("yes", "no"))
_PARAMETERS: dict[str, _Parameter] = {
    "kind-of-device": _Parameter(words=("flash",)),
    "clustered-page": _SIZE,
    "clustered-block": _SIZE,
    "read-buffer": _SIZE,
    "read-buffer-least": _SIZE,
    "prefetch": _YES_NO,
    "prefetch-size": _SIZE,
    "write-buffer": _SIZE,
    "buffer-kind": _Parameter(words=("buffer", "cache")),
    "write-buffer-drain": _Parameter(words=("eager", "lazy")),
    "flush-time": _Parameter(("ns",)),
    "flush-honoured": _YES_NO,
    "parallel-units": _Parameter(("units", "")),
    "stripe": _SIZE,
    "cleaning-interval": _Parameter(("B",)),
    "cleaning-stall": _Parameter(("ns",)),
    "spare-space": _Parameter(("", "B")),
    "best-request": _SIZE,
    "mapping": _Parameter(words=("page", "log-block")),
}
_HOST_PROFILE = ("clustered-page", "clustered-block", "read-buffer", "write-buffer")

_MODES = ("quick", "full", "described")
_KINDS = ("block-device", "file", "simulated")
_VERDICTS = ("found", "absent", "unknown")


@dataclass(frozen=True)
class TargetFacts:
    """What a target says of itself.

    Attributes
    ----------
    name : str
        As it was given to the prober.
    kind : {"block-device", "file", "simulated"}
        What it is.
    capacity_bytes, block_bytes : int
        Its size, and the unit of its addresses.
    real_time : bool
        Whether its time is ours.
    """

    name: str
    kind: Literal["block-device", "file", "simulated"]
    capacity_bytes: int
    block_bytes: int = _SECTOR_BYTES
    real_time: bool = False

    @classmethod
    def of(cls, target: Target) -> TargetFacts:
        """The facts of an open target."""
        return cls(
            target.name, target.kind, target.capacity_bytes, target.block_bytes, target.real_time
        )


@dataclass(frozen=True, eq=False, repr=False)
class Profile:
    """What was found out about a drive.

    Attributes
    ----------
    target : TargetFacts
        The drive.
    findings : mapping of str to Finding
        By parameter. Their plots are not written: they belong to the report.
    mode : {"quick", "full", "described"}
        How it was probed; ``"described"`` where nobody measured and the sizes come from a description.
    seed : int
        Of the probes.
    seconds : float
        How long probing took.
    declared : mapping
        What the drive says of itself, as plain values by name.
    twin : Ssd or None
        A drive that behaves as this one does, on which nothing is done before a run.
    twin_record : mapping
        What is left between drive and twin; empty if there is none.
    calibration : mapping
        What the twin was fitted to; empty if there is none.
    made_by : str
        Which program wrote it.

    Examples
    --------
    >>> from flashwright.probes import Finding
    >>> page = Finding("clustered-page", "found", 16384, "B", 16384, 16384, 1.0, "seen")
    >>> profile = Profile(TargetFacts("/dev/sdb", "block-device", 64 * 10**9), {page.parameter: page})
    >>> profile.host_profile()
    {'clustered-page': '16 KiB', 'clustered-block': 'unknown', 'read-buffer': 'unknown', 'write-buffer': 'unknown'}
    >>> Profile.from_text(profile.to_toml()) == profile
    True
    """

    target: TargetFacts
    findings: Mapping[str, Finding] = field(default_factory=dict)
    mode: Literal["quick", "full", "described"] = "full"
    seed: int = 1
    seconds: float = 0.0
    declared: Mapping[str, Any] = field(default_factory=dict)
    twin: Ssd | None = None
    twin_record: Mapping[str, Any] = field(default_factory=dict)
    calibration: Mapping[str, Any] = field(default_factory=dict)
    made_by: str = f"flashwright {__version__}"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Profile):
            return NotImplemented
        return self._document() == other._document()

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def described(cls, ssd: Ssd) -> Profile:
        """The profile of a drive of the simulator: what its ``[host.profile]`` says, without any measurement.

        Parameters
        ----------
        ssd : Ssd
            The drive, which is its own twin.
        """
        findings = {}
        for parameter, text in ssd.config["host"]["profile"].items():
            if text == "unknown":
                findings[parameter] = unknown(
                    parameter, "the drive's description does not say", "B"
                )
            elif text == "none":
                findings[parameter] = Finding(parameter, "absent", None, "B", why=_AS_DESCRIBED)
            else:
                size, _ = _decode(text)
                findings[parameter] = Finding(parameter, "found", size, "B", why=_AS_DESCRIBED)
        facts = TargetFacts(f"sim:{ssd.name}", "simulated", _core.config_check(ssd.toml)[0])
        return cls(facts, findings, "described", twin=replace(ssd, preconditioning=None))

    @classmethod
    @checked()
    def from_toml(cls, path: str | os.PathLike[str]) -> Profile:
        """The profile in a file.

        Parameters
        ----------
        path : path
            The file.

        Raises
        ------
        ConfigError
            With a line for each thing that can't be read or contradicts another.
        """
        file = Path(path)
        try:
            text = file.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            raise ConfigError(f"{file}: not text in UTF-8: {error.reason}", _HINT) from None
        except OSError as error:
            raise ConfigError(
                f"{file}: {(error.strerror or str(error)).lower()}", "check the path"
            ) from None
        return cls.from_text(text, str(file))

    @classmethod
    def from_text(cls, text: str, source: str = "profile") -> Profile:
        """The profile in a text; messages call it `source`."""
        try:
            document = parse_toml(text)
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"{source}: {error}", "a profile is TOML text") from None
        return _Reader(source).profile(document)

    def to_toml(self) -> str:
        """The profile as text.

        Raises
        ------
        ConfigError
            If it contradicts itself, and so could not be read again; see :func:`reconcile`.
        """
        faults = _Faults("profile")
        faults.contradictions(self)
        faults.end()
        return _HEAD + tomli_w.dumps(self._document())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the profile to a file, which appears once it is whole.

        Parameters
        ----------
        path : path
            The file; an older one is replaced.
        """
        text = self.to_toml()
        with write_beside(Path(path)) as part:
            part.write_text(text, encoding="utf-8")

    def __repr__(self) -> str:
        told = sum(finding.verdict != "unknown" for finding in self.findings.values())
        twin = "no twin" if self.twin is None else f"twin {self.twin!r}"
        return f"Profile({self.target.name}: {told} of {len(self.findings)} told, {twin})"

    def host_profile(self) -> dict[str, str]:
        """The four sizes that schedulers go by, as ``[host.profile]`` has them: a size, ``none`` or ``unknown``."""
        sizes = {}
        for parameter in _HOST_PROFILE:
            finding = self.findings.get(parameter)
            if finding is None or finding.verdict == "unknown":
                sizes[parameter] = "unknown"
            elif finding.verdict == "absent":
                sizes[parameter] = "none"
            else:
                sizes[parameter] = str(as_text(finding.value, finding.unit))
        return sizes

    def drive(self) -> Ssd:
        """The twin, whose schedulers go by what was found.

        Raises
        ------
        ConfigError
            If the profile has no twin.
        """
        if self.twin is None:
            raise ConfigError(
                f"{self.target.name}: found a profile without a twin, expected one with a table [twin] to play on",
                "fit a twin when the drive is probed, or add a drive description below [twin]",
            )
        return self.twin.with_settings(
            f"host.profile.{key}={value}" for key, value in self.host_profile().items()
        )

    def _document(self) -> dict[str, Any]:
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
            "probe": {"mode": self.mode, "seed": self.seed, "seconds": _plain(self.seconds)},
            "findings": {name: _written(finding) for name, finding in self.findings.items()},
        }
        if self.declared:
            document["declared"] = _plain(self.declared)
        if self.twin_record:
            document["twin-record"] = _plain(self.twin_record)
        if self.calibration:
            document["calibration"] = _plain(self.calibration)
        if self.twin is not None:
            document["twin"] = parse_toml(self.twin.toml)
        return document


_AS_DESCRIBED = "as the drive's description has it; nobody measured it"
_HINT = "a profile is TOML text with `profile = 1` at its top"


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


def reconcile(
    findings: Mapping[str, Finding], capacity_bytes: int | None = None
) -> dict[str, Finding]:
    """Findings that don't contradict each other: of two that do, the less certain one becomes unknown.

    Parameters
    ----------
    findings : mapping of str to Finding
        By parameter, as the probes gave them.
    capacity_bytes : int, optional
        Of the drive, which bounds all sizes.

    Returns
    -------
    dict of str to Finding
        The same, but with ``unknown`` and the contradiction as its reason where there was one.

    Examples
    --------
    >>> page = Finding("clustered-page", "found", 12 << 10, "B", confidence=0.6)
    >>> block = Finding("clustered-block", "found", 4 << 20, "B", confidence=1.0)
    >>> found = reconcile({"clustered-page": page, "clustered-block": block})
    >>> found["clustered-page"].verdict, found["clustered-block"].verdict
    ('unknown', 'found')
    """
    kept = dict(findings)
    # Each round makes one finding unknown, and an unknown one contradicts nothing.
    while (first := next(_contradictions(kept, capacity_bytes), None)) is not None:
        of = kept[first.parameter]
        other = kept.get(first.other)
        if other is not None and other.verdict != "unknown" and other.confidence < of.confidence:
            of = other
        why = f"{first.key}: found {first.found}, expected {first.expected}; {of.why}".rstrip("; ")
        kept[of.parameter] = replace(
            of, verdict="unknown", value=None, low=None, high=None, confidence=0.0, why=why
        )
    return kept


@dataclass(frozen=True)
class _Contradiction:
    """What of a finding does not go with itself or with another."""

    parameter: str
    key: str
    found: str
    expected: str
    hint: str
    other: str = ""


def _contradictions(
    findings: Mapping[str, Finding], capacity_bytes: int | None
) -> Iterator[_Contradiction]:
    for parameter, finding in findings.items():
        for key, found, expected, hint in _alone(finding, capacity_bytes):
            yield _Contradiction(parameter, f"findings.{parameter}.{key}", found, expected, hint)
    yield from _together(findings)


def _alone(finding: Finding, capacity_bytes: int | None) -> Iterator[tuple[str, str, str, str]]:
    """What is wrong with a finding by itself: key, found, expected, hint."""
    value, low, high, unit = finding.value, finding.low, finding.high, finding.unit

    def shown(number: int | float | str | None) -> str:
        return repr(as_text(number, unit))

    if not 0 <= finding.confidence <= 1:
        yield "confidence", f"{finding.confidence:g}", "0 to 1", "it is a share, not a percentage"
    if (finding.verdict == "found") != (value is not None):
        yield (
            "value",
            "nothing" if value is None else shown(value),
            "a value" if value is None else f"none with the verdict {finding.verdict}",
            "only the verdict `found` has a value",
        )
    if value is None:
        return
    rule = _PARAMETERS.get(finding.parameter)
    if isinstance(value, str):
        if rule is not None and value not in rule.words:
            expected = " or ".join(rule.words) or _needs(rule.units[0])
            yield "value", shown(value), expected, "a finding is a word or a number with its unit"
        return
    if rule is not None and unit not in rule.units:
        expected = _needs(rule.units[0]) if rule.units else " or ".join(rule.words)
        yield "value", shown(value), expected, "a finding is a word or a number with its unit"
        return
    least, most = -math.inf if low is None else low, math.inf if high is None else high
    if not least <= value <= most:
        between = f"{as_text(low, unit)} to {as_text(high, unit)} (low to high)"
        yield "value", shown(value), between, "change low and high too, or leave them out"
    if rule is None or not rule.blocks:
        return
    if value <= 0 or value % _SECTOR_BYTES:
        expected = f"a multiple of {_SECTOR_BYTES} B"
        yield "value", shown(value), expected, "drives are addressed by sectors"
    elif capacity_bytes is not None and value > capacity_bytes:
        yield "value", shown(value), f"at most the drive's {as_text(capacity_bytes, 'B')}", ""


def _together(findings: Mapping[str, Finding]) -> Iterator[_Contradiction]:
    """What findings say against each other."""

    def size(parameter: str) -> int | None:
        finding = findings.get(parameter)
        if finding is None or finding.verdict != "found" or finding.unit != "B":
            return None
        return int(finding.value) if isinstance(finding.value, int | float) else None

    def against(parameter: str, other: str, expected: str, hint: str) -> _Contradiction:
        finding = findings[parameter]
        return _Contradiction(
            parameter,
            f"findings.{parameter}.value",
            repr(as_text(finding.value, finding.unit)),
            expected,
            hint,
            other,
        )

    page, buffer = size("clustered-page"), size("read-buffer")
    for parameter in ("clustered-block", "stripe"):
        many = size(parameter)
        if page and many and many % page:
            yield against(
                parameter,
                "clustered-page",
                f"a multiple of the clustered page, {as_text(page, 'B')}",
                "change one of the two, or give its verdict as unknown",
            )
    least = size("read-buffer-least")
    if least and buffer and least > buffer:
        yield against(
            "read-buffer-least",
            "read-buffer",
            f"at most the read buffer, {as_text(buffer, 'B')}",
            "it is the smallest read that the buffer serves",
        )
    for parameter, whole in (
        ("read-buffer-least", "read-buffer"),
        ("buffer-kind", "write-buffer"),
        ("write-buffer-drain", "write-buffer"),
    ):
        if _verdict(findings, parameter) == "found" and _verdict(findings, whole) == "absent":
            yield against(
                parameter,
                whole,
                f"none without a {whole.replace('-', ' ')}",
                f"findings.{whole} is absent; give one of the two as unknown",
            )
    prefetch = findings.get("prefetch")
    if _verdict(findings, "prefetch-size") == "found" and (
        prefetch is None or prefetch.value != "yes"
    ):
        yield against(
            "prefetch-size",
            "",
            "none without prefetching",
            'findings.prefetch must be found with the value "yes"',
        )


def _verdict(findings: Mapping[str, Finding], parameter: str) -> str:
    """The verdict; what was never looked for counts as absent."""
    finding = findings.get(parameter)
    return "absent" if finding is None else finding.verdict


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

    def contradictions(self, profile: Profile) -> None:
        for one in _contradictions(profile.findings, profile.target.capacity_bytes):
            self.add(one.key, one.found, one.expected, one.hint)
        if profile.twin is None:
            return
        if profile.twin.preconditioning is not None:
            self.add(
                "twin",
                f"a drive that is preconditioned ({profile.twin.preconditioning})",
                "none: a description holds no state",
            )
        capacity = _core.config_check(profile.twin.toml)[0]
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


def _row_bytes(ssd: Ssd) -> int:
    """One block of each plane."""
    geometry = ssd.config["geometry"]
    page, _ = _decode(geometry["page-size"])
    planes = geometry["channels"] * geometry["dies-per-channel"] * geometry["planes-per-die"]
    return int(page) * int(geometry["pages-per-block"]) * int(planes)


class _Reader:
    """Reads a profile from tables, and notes all faults before it gives up."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._faults = _Faults(source)

    def profile(self, document: dict[str, Any]) -> Profile:
        layout = document.get("profile")
        if type(layout) is not int or layout != LAYOUT:
            newer = type(layout) is int and layout > LAYOUT
            self._faults.add(
                "profile",
                "nothing" if layout is None else repr(layout),
                f"the layout number {LAYOUT}",
                f"a newer version wrote it; this is {__version__}: update it, or probe again"
                if newer
                else _HINT,
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
        made_by = self._text(document, "made-by", missing="by hand")
        tables = self._table(document, "twin")
        self._faults.end()
        twin = None
        if tables:
            text = tomli_w.dumps({"name": target.name, **tables})
            twin = Ssd.from_text(text, f"{self._source}: twin")
        found = Profile(
            target, findings, mode, int(seed), seconds, declared, twin, record, calibration, made_by
        )
        self._faults.contradictions(found)
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
        known = tuple(
            dict.fromkeys([*_PARAMETERS, *(name for probe in PROBES for name in probe.PARAMETERS)])
        )
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
            if (bare and unit in _UNITS) or of_number not in (None, unit):
                hint = "value, low, high and unit of a finding go together"
                self._faults.add(f"{path}.{key}", _text(entries[key]), _needs(unit), hint)
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
            self._faults.add(path, _text(given), expected, _EXAMPLES)
            return None, None
        value, unit = _decode(given)
        if isinstance(value, str) and not (words and _WORD.fullmatch(value)):
            self._faults.add(path, _text(given), expected, _EXAMPLES)
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
        value, unit = _decode(found) if isinstance(found, str) else (None, None)
        if unit == "B" and isinstance(value, int) and value > 0 and value % _SECTOR_BYTES == 0:
            return value
        expected = f"a size of whole sectors of {_SECTOR_BYTES} B, with its unit"
        self._faults.add(path, _text(found), expected, _EXAMPLES)
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


_UNITS: dict[str, tuple[tuple[str, Decimal], ...]] = {
    "B": tuple(
        (name, Decimal(1 << 10 * k)) for k, name in enumerate(("B", "KiB", "MiB", "GiB", "TiB"))
    ),
    "ns": tuple((name, Decimal(1000**k)) for k, name in enumerate(("ns", "us", "ms", "s"))),
    "B/s": tuple((f"{name}/s", Decimal(1000**k)) for k, name in enumerate(("B", "kB", "MB", "GB"))),
}
"""Units that are written with the number, by the one that findings have."""
_READ = {
    **{name: (unit, factor) for unit, names in _UNITS.items() for name, factor in names},
    # Drives are sold by these.
    **{name: ("B", Decimal(1000**k)) for k, name in enumerate(("kB", "MB", "GB", "TB"), 1)},
}
_QUANTITY = re.compile(
    r"\s*([+-]?[0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,2})?)\s*([A-Za-z/]+)\s*"
)
# Beyond this, a division by a unit's factor would round.
_LONGEST = Decimal(10**18)
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9 ._+-]*")
_EXAMPLES = 'such as "16 KiB", "1.5 ms" or "110 MB/s"'


def _needs(unit: str) -> str:
    names = {"B": 'a size such as "16 KiB"', "ns": 'a time such as "1.5 ms"'}
    return names.get(unit, f"a number of {unit}" if unit else "a plain number")


def as_text(value: int | float | str | None, unit: str) -> int | float | str | None:
    """A value as the file has it: with its unit where that is one of size, time or rate.

    All take the largest unit that leaves a number of 1 or more, sizes only one in which two decimals tell all of it;
    nothing is rounded.
    """
    value = _plain(value)
    if unit not in _UNITS or not isinstance(value, int | float) or not math.isfinite(value):
        return value
    # Text of a float is the shortest that reads as the same; beyond 2^53 all floats are whole.
    exact = Decimal(int(value)) if value == int(value) else Decimal(repr(value))
    for name, factor in reversed(_UNITS[unit]) if abs(exact) < _LONGEST else ():
        if abs(exact) >= factor and (unit != "B" or exact * 100 % factor == 0):
            number = exact / factor
            whole = number == number.to_integral()
            return f"{number.to_integral() if whole else number.normalize():f} {name}"
    return f"{exact:f} {unit}"


def _decode(given: int | float | str) -> tuple[int | float | str, str | None]:
    """A value of the file, and its unit: None where it has none in its text.

    Examples
    --------
    >>> _decode("255 KiB"), _decode("1.5 us"), _decode("64 GB"), _decode("page"), _decode(8)
    ((261120, 'B'), (1500, 'ns'), (64000000000, 'B'), ('page', None), (8, None))
    """
    if not isinstance(given, str):
        return given, None
    found = _QUANTITY.fullmatch(given)
    if found is None or found[2] not in _READ:
        return given, None
    unit, factor = _READ[found[2]]
    exact = Decimal(found[1].replace("_", "")) * factor
    return (int(exact) if exact == exact.to_integral() else float(exact)), unit


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
    table["confidence"] = _plain(finding.confidence)
    if finding.why:
        table["why"] = finding.why
    if finding.figures:
        table["figures"] = _plain(finding.figures)
    return table


def _plain(value: Any) -> Any:
    """A value without the types of NumPy, which TOML's writer does not know."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value.item() if hasattr(value, "item") else value


def _last(path: str) -> str:
    return path.rpartition(".")[2]


def _text(value: object) -> str:
    return "nothing" if value is None else repr(value)
