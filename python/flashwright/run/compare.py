"""The same workload on several drives, or several workloads on the same drive, side by side."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

from flashwright.drive import policies
from flashwright.errors import ConfigError, DeviceError, WorkloadError
from flashwright.run.results import RunResult, Runs
from flashwright.run.run import PlaySettings, Run, RunInterrupted, RunSettings
from flashwright.run.runcount import expect_run_count
from flashwright.run.ssd import Ssd
from flashwright.run.varied import WORKLOAD, as_source, as_time_scale, as_whole, name_of, with_keys
from flashwright.support.arguments import checked
from flashwright.support.progress import Progress
from flashwright.traces import workloads

__all__ = [
    "OF_RUN",
    "CompareInterrupted",
    "Maker",
    "Variant",
    "compare",
    "distinct",
    "is_of_drive",
    "name_of",
    "seeded",
    "variants",
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
    source : Workload or Trace
        What is played.
    settings : RunSettings
        All else that makes the run.
    varied : mapping
        What is set for this run, by the key that is varied.
    """

    ssd: Ssd
    source: workloads.Source
    settings: RunSettings
    varied: Mapping[str, object]

    @property
    def label(self) -> str:
        """What is set, as text."""
        return ", ".join(f"{key}={value}" for key, value in self.varied.items())

    def begin(self) -> Run:
        """The run, about to start."""
        return Run.create(
            self.ssd.toml, self.ssd.preconditioning or "empty", self.source, self.settings
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
    >>> make = Maker(Ssd.named("default"), workloads.uniform(), RunSettings()).make
    >>> make({"gc.victim": "fifo", "depth": 4}).label
    'gc.victim=fifo, depth=4'
    """

    def __init__(self, ssd: Ssd, source: workloads.Source, settings: RunSettings) -> None:
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
        varied = dict(choice)
        for key, value in choice.items():
            if isinstance(value, policies.Policy | type):
                settings = replace(settings, policies=(*settings.policies, _policy(key, value)))
                varied[key] = policies.name_of(value)
            elif key == "workload":
                source = as_source(value)
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
        return Variant(replace(ssd, preconditioning=preconditioning), source, settings, varied)

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


def distinct(keys: Iterable[str], made: Iterable[Variant]) -> list[Variant]:
    """The variants that differ in what is set.

    Parameters
    ----------
    keys : iterable of str
        What was varied; each must make a difference.
    made : iterable of Variant
        All combinations.

    Returns
    -------
    list of Variant
        Each once, in order.

    Raises
    ------
    ConfigError
        If a key is a setting of a translation layer that none of them has.
    """
    found: dict[str, Variant] = {}
    for variant in made:
        found.setdefault(variant.label, variant)
    for key in keys:
        if found and not any(key in variant.varied for variant in found.values()):
            raise ConfigError(
                f"{key}: found it varied under other translation layers only, expected "
                f"ftl.scheme = {key.split('.')[1]}",
                "all runs would be identical",
            )
    return list(found.values())


def variants(
    ssd: Ssd,
    workload: workloads.Source | str,
    vary: Mapping[str, Sequence[object]],
    settings: RunSettings | None = None,
) -> list[Variant]:
    """Every combination of settings.

    Parameters
    ----------
    ssd : Ssd
        What settings of the drive are laid over.
    workload : Workload, Trace or str
        What is played, and what keys of the workload are laid over.
    vary : mapping
        Values to try, by key, as :func:`compare` takes them.
    settings : RunSettings, optional
        What ``depth``, ``time-scale``, ``requests`` and ``warmup`` are laid over.

    Returns
    -------
    list of Variant
        The last key varies fastest; a combination that is named twice is there once. Settings of a translation
        layer (``ftl.NAME.…``) are left out of the runs of another, which so is there once for all their values.

    Raises
    ------
    ConfigError, WorkloadError
        If a combination makes no drive or no workload; nothing has been run by then.

    Examples
    --------
    >>> ssd = Ssd.named("default")
    >>> made = variants(ssd, "uniform", {"gc.victim": ["greedy", "fifo"], "workload.write": [0.5]})
    >>> [variant.label for variant in made]
    ['gc.victim=greedy, workload.write=0.5', 'gc.victim=fifo, workload.write=0.5']
    >>> made[0].source
    Workload('uniform:write=0.5')
    """
    if not vary or not all(vary.values()):
        raise ConfigError(
            "vary: found nothing to vary, expected at least one key with its values", ""
        )
    base = workloads.find(workload) if isinstance(workload, str) else workload
    make = Maker(ssd, base, settings or RunSettings()).make
    expect_run_count([vary])
    choices = (dict(zip(vary, values, strict=True)) for values in itertools.product(*vary.values()))
    made = distinct(vary, map(make, choices))
    for variant in made:
        variant.ssd.check()
        if variant.settings.policies or not all(is_of_drive(key) for key in variant.varied):
            # What the drive itself can't take is reported by its own run.
            with contextlib.suppress(DeviceError):
                variant.begin()
    return made


def seeded(made: Sequence[Variant], seeds: int) -> list[Variant]:
    """Each variant with consecutive seeds, from its own on; the same ones if one seed is asked for.

    Parameters
    ----------
    made : sequence of Variant
        The variants.
    seeds : int
        How many seeds.

    Examples
    --------
    >>> made = variants(Ssd.named("default"), "uniform", {"gc.victim": ["fifo"]})
    >>> [variant.label for variant in seeded(made, 2)]
    ['gc.victim=fifo, seed=1', 'gc.victim=fifo, seed=2']
    """
    expect_run_count([], len(made), seeds)
    if seeds == 1:
        return list(made)
    return [
        replace(
            variant,
            settings=replace(variant.settings, seed=variant.settings.seed + k),
            varied={**variant.varied, "seed": variant.settings.seed + k},
        )
        for variant in made
        for k in range(seeds)
    ]


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


class CompareInterrupted(RunInterrupted):
    """Ctrl-C while runs were compared.

    Attributes
    ----------
    result : RunResult or None
        What was finished of the run under way.
    runs : Runs
        The runs that were finished before.
    """

    def __init__(self, result: RunResult | None, runs: Runs) -> None:
        super().__init__(result)
        self.runs = runs


@checked()
def compare(
    ssd: Ssd,
    workload: workloads.Source | str,
    vary: Mapping[str, Sequence[object]],
    *,
    each: Callable[[str, Ssd], RunResult] | None = None,
    seeds: int = 1,
    progress: Callable[[Progress], None] | None = None,
    **settings: Unpack[PlaySettings],
) -> Runs:
    """Play a workload under several settings.

    Parameters
    ----------
    ssd : Ssd
        The drive. Without a :meth:`Ssd.precondition` of its own each run begins with a drive that has settled under
        the workload (``auto``).
    workload : Workload, Trace or str
        What to play.
    vary : mapping
        Values to try, by key; several keys make a grid. A key is a dotted key of the drive such as
        ``"gc.victim"`` (whose values may be policies written in Python too, see :mod:`flashwright.policies`), a key of
        the workload such as ``"workload.rate"``, ``"workload"`` for whole workloads (in the place of `workload`),
        ``"precondition"``, ``"requests"``, ``"warmup"``, ``"depth"`` or ``"time-scale"``.
    each : callable, optional
        Plays one variant, given its label and its drive, instead of :meth:`Ssd.play`; only settings of
        the drive can be varied then.
    seeds : int, optional
        Plays each combination with this many consecutive seeds; :meth:`Runs.over_seeds` has means and intervals.
    progress : callable, optional
        Called a few times a second in each run.
    **settings
        As :meth:`Ssd.play` takes them.

    Returns
    -------
    Runs
        A list of :class:`RunResult`, one for each combination, labelled with what was set, which is in ``varied``
        too; also a table (``to_pandas()``). A drive that wears out ends its own run only. Settings of one
        translation layer are left out of the runs of the others.

    Raises
    ------
    ConfigError, WorkloadError
        If a combination makes no drive or no workload; nothing has been run by then.
    CompareInterrupted
        On Ctrl-C, with the runs that were finished; it is a ``KeyboardInterrupt``.

    Examples
    --------
    >>> ssd = Ssd.named("default").with_(blocks_per_plane=64).precondition("random")
    >>> runs = compare(ssd, "uniform", {"gc.victim": ["greedy", "fifo"]}, requests=100_000)
    >>> [run.label for run in runs]
    ['gc.victim=greedy', 'gc.victim=fifo']
    >>> runs["gc.victim=greedy"].write_amplification < runs["gc.victim=fifo"].write_amplification
    True
    >>> runs.to_pandas()[["gc.victim", "measured.requests", "flash.erases.total"]]
      gc.victim  measured.requests  flash.erases.total
    0    greedy             100000                ...
    1      fifo             100000                ...
    >>> runs = compare(ssd, "uniform", {"workload.rate": [50, 100], "depth": [1]}, requests=1000)
    Traceback (most recent call last):
    ...
    flashwright.errors.WorkloadError: workload.rate and depth: found both, expected one of them
    """
    if seeds < 1 or (seeds > 1 and each is not None):
        raise ConfigError(
            f"seeds: found {seeds}, expected 1 or more, and 1 together with each",
            "",
            parameters=["seeds", "each"],
        )
    made = seeded(variants(ssd.settling(), workload, vary, RunSettings(**settings)), seeds)
    if each is not None:
        for key in vary:
            if not is_of_drive(key):
                raise ConfigError(
                    f"{key}: found it varied together with each, expected keys of the drive only",
                    "",
                )
    done = Runs()
    for variant in made:
        try:
            result = (
                variant.begin().go(progress=progress, label=variant.label)
                if each is None
                else each(variant.label, variant.ssd)
            )
        except RunInterrupted as stop:
            raise CompareInterrupted(stop.result, done) from None
        done.append(result.with_varied(variant.varied))
    return done
