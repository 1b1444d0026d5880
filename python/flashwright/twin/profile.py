"""Profiles: what was found out about a drive, as a file that people read and edit.

A profile holds the findings of the probes, what the drive declares, and its twin: a description by which the simulator
behaves as the drive does. Sizes and times are written with their unit. What contradicts itself is refused, so that an
edited file either means something or says where it does not.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

from flashwright._core import __version__
from flashwright.drive import profilefile
from flashwright.drive.findings import Finding
from flashwright.drive.profilefile import TargetFacts
from flashwright.drive.trust import doubts_of_twin, warn_of_twin
from flashwright.errors import ConfigError
from flashwright.simulation.ssd import Ssd
from flashwright.support.arguments import checked
from flashwright.support.core import _core
from flashwright.support.files import reason, write_beside
from flashwright.twin.description import findings_of

__all__ = ["Profile"]


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
    >>> from flashwright.probing.probes import Finding
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
        return self._content().document() == other._content().document()

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def described(cls, ssd: Ssd) -> Profile:
        """The profile of a drive of the simulator: what its description says, without any measurement.

        Parameters
        ----------
        ssd : Ssd
            The drive, which is its own twin.
        """
        facts = TargetFacts(f"sim:{ssd.name}", "simulated", _core.config_check(ssd.toml)[0])
        return cls(facts, findings_of(ssd), "described", twin=replace(ssd, preconditioning=None))

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
            raise ConfigError(
                f"{file}: not text in UTF-8: {error.reason}", profilefile.HINT
            ) from None
        except OSError as error:
            raise ConfigError(f"{file}: {reason(error)}", "check the path") from None
        return cls.from_text(text, str(file))

    @classmethod
    def from_text(cls, text: str, source: str = "profile") -> Profile:
        """The profile in a text; messages call it `source`."""
        content = profilefile.read(text, source)
        found = {each.name: getattr(content, each.name) for each in fields(content)}
        return cls(**found | {"twin": None if content.twin is None else Ssd(content.twin)})

    def to_toml(self) -> str:
        """The profile as text.

        Raises
        ------
        ConfigError
            If it contradicts itself, and so could not be read again; see :func:`reconcile`.
        """
        state = None if self.twin is None else self.twin.preconditioning
        return profilefile.written(self._content(), state)

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
        verdicts = sum(finding.verdict != "unknown" for finding in self.findings.values())
        twin = "no twin" if self.twin is None else f"twin {self.twin!r}"
        return f"Profile({self.target.name}: {verdicts} of {len(self.findings)} told, {twin})"

    def host_profile(self) -> dict[str, str]:
        """The four sizes that schedulers go by, as ``[host.profile]`` has them: a size, ``none`` or ``unknown``."""
        return profilefile.host_profile(self.findings)

    @property
    def twin_doubts(self) -> list[str]:
        """Why the figures of the twin are not to be relied on; empty without a twin, or if it passed its check."""
        return [] if self.twin is None else doubts_of_twin(self.twin_record)

    def drive(self) -> Ssd:
        """The twin, whose schedulers go by what was found. A twin beyond its bounds comes with a :class:`TwinWarning`.

        Raises
        ------
        ConfigError
            If the profile has no twin.
        """
        toml = profilefile.drive_of(self._content())
        warn_of_twin(self.twin_record, self.target.name)
        return Ssd(toml, None if self.twin is None else self.twin.preconditioning)

    def _content(self) -> profilefile.Content:
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return profilefile.Content(
            **found | {"twin": None if self.twin is None else self.twin.toml}
        )
