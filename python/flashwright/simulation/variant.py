"""One run of a comparison or a sweep: drive, workload and settings, made of a base and what is varied."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from flashwright.drive import policies
from flashwright.errors import ConfigError, WorkloadError
from flashwright.simulation.identity import (
    beginning_of_run,
    identity_of,
    identity_of_run,
    name_of,
    names_of,
)
from flashwright.simulation.run import Run, RunSettings
from flashwright.simulation.run_keys import WORKLOAD, as_source, as_time_scale, as_whole, with_keys
from flashwright.simulation.ssd import Ssd
from flashwright.support.core import _core
from flashwright.support.names import distinct_names
from flashwright.traces.tenants import Load

__all__ = [
    "OF_RUN",
    "Maker",
    "Variant",
    "distinct",
    "is_of_drive",
    "played_once",
    "renamed",
    "repeated",
]


OF_RUN = ("workload", "precondition", "depth", "time-scale", "requests", "warmup")
"""What can be varied beside settings of the drive and keys of the workload."""


@dataclass(frozen=True)
class Variant:
    """One run of a comparison.

    Attributes
    ----------
    ssd : Ssd
        Its drive.
    source : Workload, Trace or Tenants
        What is played.
    settings : RunSettings
        All else that makes the run.
    varied : mapping
        What is set for this run, by the key that is varied; policies and workloads by their names.
    given : mapping
        The values themselves.
    moot : tuple of str
        Keys that were varied too and do not concern this run.
    asked : int
        How many of the combinations asked for are this run.
    mark : str
        What tells the label from that of another run, where nothing that is varied does.
    """

    ssd: Ssd
    source: Load
    settings: RunSettings
    varied: Mapping[str, object]
    given: Mapping[str, object] = field(default_factory=dict)
    moot: tuple[str, ...] = ()
    asked: int = 1
    mark: str = ""

    @property
    def label(self) -> str:
        """What is set, as text; no two runs of a comparison have the same."""
        return ", ".join(f"{key}={value}" for key, value in self.varied.items()) + self.mark

    @property
    def identity(self) -> str:
        """What the run depends on, as a digest."""
        return identity_of_run(self.ssd.toml, self.ssd.preconditioning, self.source, self.settings)

    @property
    def beginning(self) -> str:
        """What its preconditioned drive depends on, as a hash; empty if it is not preconditioned."""
        return beginning_of_run(
            self.ssd.toml,
            self.ssd.preconditioning,
            identity_of(self.source),
            self.settings.seed,
            self.settings.verify,
        )

    def begin(self, shared: _core.SharedDrive | None = None) -> Run:
        """The run, about to start; `shared` as :meth:`Run.create` takes it."""
        return Run.create(
            self.ssd.toml,
            self.ssd.preconditioning or "empty",
            self.source,
            self.settings,
            shared=shared,
        )


def is_of_drive(key: str) -> bool:
    """Whether a key that is varied is a setting of the drive, rather than of what is played on it and how.

    Examples
    --------
    >>> is_of_drive("gc.victim"), is_of_drive("workload.rate"), is_of_drive("depth")
    (True, False, False)
    """
    return key not in OF_RUN and not key.startswith(WORKLOAD)


class Maker:
    """Makes variants of one base; a drive that several of them share is made once.

    Parameters
    ----------
    ssd : Ssd
        What settings of the drive are laid over.
    source : Workload or Trace
        What keys of the workload are laid over.
    settings : RunSettings
        What ``depth``, ``time-scale``, ``requests`` and ``warmup`` are laid over.

    Examples
    --------
    >>> from flashwright import workloads
    >>> make = Maker(Ssd.named("default"), workloads.uniform(), RunSettings()).make
    >>> make({"gc.victim": "fifo", "depth": 4}).label
    'gc.victim=fifo, depth=4'
    """

    def __init__(self, ssd: Ssd, source: Load, settings: RunSettings) -> None:
        self._base = ssd, source, settings
        self._drives: dict[str, tuple[Ssd, list[str]]] = {}

    def make(self, choice: Mapping[str, object]) -> Variant:
        """One variant; nothing is built yet.

        Parameters
        ----------
        choice : mapping
            What is set, by key. Settings of a translation layer (``ftl.NAME.…``) are left out under another.

        Raises
        ------
        ConfigError, WorkloadError
            If a key or a value is wrong.
        """
        ssd, source, settings = self._base
        of_drive: dict[str, object] = {}
        of_workload: dict[str, object] = {}
        preconditioning = ssd.preconditioning
        varied, given = dict(choice), dict(choice)
        moot: list[str] = []
        for key, value in choice.items():
            if isinstance(value, policies.Policy | type):
                settings = replace(settings, policies=(*settings.policies, _policy(key, value)))
                varied[key] = policies.name_of(value)
            elif key == "workload":
                source = given[key] = as_source(value)
                varied[key] = name_of(source)
            elif key.startswith(WORKLOAD):
                of_workload[key.removeprefix(WORKLOAD)] = value
            elif key == "precondition":
                preconditioning = ssd.precondition(str(value)).preconditioning
            elif key == "time-scale":
                settings = replace(settings, time_scale=as_time_scale(value))
            elif key in OF_RUN:
                least = 0 if key == "warmup" else 1
                number: Any = {key: as_whole(key, value, least)}
                settings = replace(settings, **number)
            else:
                of_drive[key] = value
        if any(key in OF_RUN for key in choice):
            settings.to_json(preconditioning or "empty")
        _expect_no_substitute(of_drive, settings)
        if of_workload:
            source = with_keys(source, of_workload)
            _expect_an_effect(of_workload, settings)
        if of_drive:
            ssd, moot = self._drive(of_drive)
            for key in moot:
                del varied[key]
        ssd = replace(ssd, preconditioning=preconditioning)
        return Variant(ssd, source, settings, varied, given, tuple(moot))

    def _drive(self, settings: Mapping[str, object]) -> tuple[Ssd, list[str]]:
        """The drive with the settings that concern it, and those that do not."""
        known = json.dumps(settings, default=str)
        if known not in self._drives:
            base = self._base[0]
            ssd = base.with_(settings)
            moot = _of_other_schemes(ssd, settings)
            if moot:
                ssd = base.with_({k: v for k, v in settings.items() if k not in moot})
            self._drives[known] = ssd, moot
        return self._drives[known]


def renamed(
    given: Sequence[Mapping[str, object]], varied: Sequence[Mapping[str, object]]
) -> list[dict[str, object]]:
    """What is set for some runs, where values that differ have names that differ.

    Parameters
    ----------
    given : sequence of mappings
        The values themselves, by key.
    varied : sequence of mappings
        The same with names in the place of policies and workloads; only these keys are kept.
    """
    found = [dict(each) for each in varied]
    for key in dict.fromkeys(key for each in varied for key in each):
        at = [n for n, each in enumerate(varied) if key in each]
        names = names_of([given[n].get(key, varied[n][key]) for n in at])
        for n, name in zip(at, names, strict=True):
            found[n][key] = name
    return found


def distinct(keys: Iterable[str], made: Iterable[Variant]) -> list[Variant]:
    """The variants that differ in what they depend on or in what is set, under labels of which no two are equal.

    Parameters
    ----------
    keys : iterable of str
        What was varied; each must make a difference.
    made : iterable of Variant
        All combinations.

    Returns
    -------
    list of Variant
        Each once, in order; ``asked`` says how many combinations were this one.

    Raises
    ------
    ConfigError
        If a key is a setting of a translation layer that none of them has.
    """
    listed = list(made)
    for key in keys:
        if listed and not any(key in variant.varied for variant in listed):
            raise ConfigError(
                f"{key}: found it varied under other translation layers only, expected "
                f"ftl.scheme = {key.split('.')[1]}",
                "all runs would be identical",
            )
    varied = renamed([each.given for each in listed], [each.varied for each in listed])
    found: dict[tuple[str, str], Variant] = {}
    for variant, own in zip(listed, varied, strict=True):
        named = replace(variant, varied=own)
        which = named.label, named.identity
        asked = found[which].asked + 1 if which in found else 1
        found[which] = replace(found.get(which, named), asked=asked)
    unlike = list(found.values())
    labels = [each.label for each in unlike]
    marked = distinct_names(labels, [identity for _, identity in found])
    return [
        replace(each, mark=name.removeprefix(label))
        for each, label, name in zip(unlike, labels, marked, strict=True)
    ]


def repeated(made: Iterable[Variant]) -> list[str]:
    """Which runs were asked for more than once and are played once, a line each."""
    return [
        played_once(variant.label, variant.asked, variant.moot)
        for variant in made
        if variant.asked > 1
    ]


def played_once(label: str, asked: int, moot: Sequence[str]) -> str:
    """What is said of a run that several combinations come to; `moot` are keys that make no difference to it."""
    why = f"; {', '.join(moot)} does not concern it" if moot else ""
    return f"{label}: {asked} combinations are this run, which is played once{why}"


def _policy(key: str, value: policies.Given) -> policies.Given:
    policies.expect_policies([value])
    if value.key != key:
        raise ConfigError(
            f"{key}: found {policies.name_of(value)}, which is a policy for {value.key}, expected one for {key}",
            "",
        )
    return value


def _expect_no_substitute(keys: Iterable[str], settings: RunSettings) -> None:
    """Refuse to vary what a policy written in Python takes the place of."""
    given = {policy.key: policies.name_of(policy) for policy in settings.policies}
    for key in keys:
        if key in given:
            raise ConfigError(
                f"{key}: found it varied together with the policy {given[key]}, expected one of them",
                f"name the policy among the values of {key}",
            )


def _of_other_schemes(ssd: Ssd, keys: Iterable[str]) -> list[str]:
    """The keys that are settings of a translation layer which the drive does not have."""
    layers = ssd.config["ftl"]
    named = ((key, key.split(".")) for key in keys)
    return [
        key
        for key, (first, *rest) in named
        if first == "ftl"
        and len(rest) > 1
        and rest[0] != layers["scheme"]
        and isinstance(layers.get(rest[0]), dict)
    ]


def _expect_an_effect(keys: Iterable[str], settings: RunSettings) -> None:
    """Refuse to vary what the pace of the run makes no difference of."""
    pace, moot = "", set[str]()
    if settings.depth is not None:
        pace, moot = "depth", {"rate", "arrival", "depth"}
    elif settings.time_scale is not None:
        pace, moot = "time_scale", {"depth"}
    for key in keys:
        if key in moot:
            raise WorkloadError(
                f"{WORKLOAD}{key} and {pace}: found both, expected one of them",
                f"the latter sets the pace whatever the workload's {key}, so all runs would be identical",
                parameters=[pace],
            )
