"""The same workload on several drives, side by side."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flashwright import workloads
from flashwright.device import Ssd
from flashwright.errors import ConfigError
from flashwright.results import RunResult

__all__ = ["compare", "variants"]


def variants(ssd: Ssd, vary: Mapping[str, Sequence[object]]) -> dict[str, Ssd]:
    """Every combination of settings, by a label that says what is set.

    Parameters
    ----------
    ssd : Ssd
        What the settings are laid over.
    vary : mapping
        Values to try, by dotted key.

    Returns
    -------
    dict of Ssd
        The last key varies fastest.

    Raises
    ------
    ConfigError
        If a combination does not make a drive; nothing has been run by then.

    Examples
    --------
    >>> ssd = Ssd.named("default")
    >>> list(variants(ssd, {"gc.victim": ["greedy", "fifo"], "capacity.utilization": [0.8]}))
    ['gc.victim=greedy, capacity.utilization=0.8', 'gc.victim=fifo, capacity.utilization=0.8']
    """
    if not vary or not all(vary.values()):
        raise ConfigError(
            "vary: found nothing to vary, expected at least one key with its values", ""
        )
    made = {}
    for values in itertools.product(*vary.values()):
        settings = dict(zip(vary, values, strict=True))
        variant = ssd.with_(settings)
        variant.check()
        made[", ".join(f"{key}={value}" for key, value in settings.items())] = variant
    return made


def compare(
    ssd: Ssd,
    workload: workloads.Source | str,
    vary: Mapping[str, Sequence[object]],
    *,
    each: Callable[[str, Ssd], RunResult] | None = None,
    **settings: Any,
) -> list[RunResult]:
    """Play the same workload under several settings of a drive.

    Parameters
    ----------
    ssd : Ssd
        The drive.
    workload : Workload, Trace or str
        What to play.
    vary : mapping
        Values to try, by dotted key; several keys make a grid.
    each : callable, optional
        Plays one variant, given its label and its drive, instead of :meth:`Ssd.play`.
    **settings
        As :meth:`Ssd.play` takes them.

    Returns
    -------
    list of RunResult
        One for each combination, labelled with what was set. A drive that wears out ends its own run only.

    Examples
    --------
    >>> ssd = Ssd.named("default").with_(blocks_per_plane=64).precondition("random")
    >>> runs = compare(ssd, "uniform", {"gc.victim": ["greedy", "fifo"]}, requests=100_000)
    >>> [run.label for run in runs]
    ['gc.victim=greedy', 'gc.victim=fifo']
    >>> runs[0].write_amplification < runs[1].write_amplification
    True
    """
    made = variants(ssd, vary)
    if each is None:
        return [
            variant.play(workload, **settings).labelled(label) for label, variant in made.items()
        ]
    return [each(label, variant) for label, variant in made.items()]
