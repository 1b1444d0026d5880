"""The same workload on several drives, or several workloads on the same drive, side by side."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Unpack

from flashwright.errors import ConfigError, DeviceError
from flashwright.simulation.played import played
from flashwright.simulation.results import RunResult, Runs
from flashwright.simulation.run import PlaySettings, RunInterrupted, RunSettings
from flashwright.simulation.run_count import expect_run_count
from flashwright.simulation.ssd import Ssd
from flashwright.simulation.variant import Maker, Variant, distinct, is_of_drive, repeated
from flashwright.support.arguments import checked
from flashwright.support.progress import Progress
from flashwright.traces.tenants import Load, Tenant, as_load
from flashwright.traces.workloads import Source

__all__ = ["CompareInterrupted", "compare", "seeded", "variants"]


def variants(
    ssd: Ssd,
    workload: Load | str | Sequence[Tenant | Source | str],
    vary: Mapping[str, Sequence[object]],
    settings: RunSettings | None = None,
) -> list[Variant]:
    """Every combination of settings.

    Parameters
    ----------
    ssd : Ssd
        What settings of the drive are laid over.
    workload : Workload, Trace, Tenants, sequence or str
        What is played, and what keys of the workload are laid over.
    vary : mapping
        Values to try, by key, as :func:`compare` takes them.
    settings : RunSettings, optional
        What ``depth``, ``time-scale``, ``requests`` and ``warmup`` are laid over.

    Returns
    -------
    list of Variant
        The last key varies fastest; a combination that is named twice is there once, and its ``asked`` says so.
        Settings of a translation layer (``ftl.NAME.…``) are left out of the runs of another, which so is there once
        for all their values. Runs that differ have labels that differ: two objects of one class of policies are told
        apart by their parameters, classes of the same name by their files.

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
    base = as_load(workload)
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


class CompareInterrupted(RunInterrupted):
    """Ctrl-C while runs were compared.

    Attributes
    ----------
    result : RunResult or None
        What was finished of the first run under way.
    runs : Runs
        The runs that were finished.
    """

    def __init__(self, result: RunResult | None, runs: Runs) -> None:
        super().__init__(result)
        self.runs = runs


@checked()
def compare(
    ssd: Ssd,
    workload: Load | str | Sequence[Tenant | Source | str],
    vary: Mapping[str, Sequence[object]],
    *,
    each: Callable[[str, Ssd], RunResult] | None = None,
    seeds: int = 1,
    jobs: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    **settings: Unpack[PlaySettings],
) -> Runs:
    """Play a workload under several settings.

    Parameters
    ----------
    ssd : Ssd
        The drive. Without a :meth:`Ssd.precondition` of its own each run begins with a drive that has settled under
        the workload (``auto``).
    workload : Workload, Trace, Tenants, sequence or str
        What to play, as :meth:`Ssd.play` takes it.
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
    jobs : int, optional
        Runs at a time; by default one a core, as far as memory allows. It makes no difference to results. Policies
        written in Python and `each` are played one at a time.
    progress : callable, optional
        Called a few times a second with where the first run under way stands.
    **settings
        As :meth:`Ssd.play` takes them.

    Returns
    -------
    Runs
        A list of :class:`RunResult`, one for each combination, labelled with what was set, which is in ``varied``
        too; also a table (``to_pandas()``). A drive that wears out ends its own run only. Settings of one
        translation layer are left out of the runs of the others. A combination that is named twice is played once,
        which ``Runs.notes`` says.

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
    unlike = variants(ssd.settling(), workload, vary, RunSettings(**settings))
    made = seeded(unlike, seeds)
    if each is not None:
        for key in vary:
            if not is_of_drive(key):
                raise ConfigError(
                    f"{key}: found it varied together with each, expected keys of the drive only",
                    "",
                )
    done = Runs()
    done.notes = repeated(unlike)
    if each is not None:
        for variant in made:
            try:
                done.append(each(variant.label, variant.ssd).with_varied(variant.varied))
            except RunInterrupted as stop:
                raise CompareInterrupted(stop.result, done) from None
        return done
    found = played(
        made, jobs=jobs, progress=None if progress is None else lambda _, now: progress(now)
    )
    for _, error in sorted(found.errors.items()):
        raise error
    results = [result for _, result in sorted(found.results.items())]
    done.extend(each for each in results if not _is_cut_short(each))
    if found.interrupted:
        raise CompareInterrupted(next(filter(_is_cut_short, results), None), done)
    return done


def _is_cut_short(result: RunResult) -> bool:
    return bool(result.json["ended"] == "interrupted")
