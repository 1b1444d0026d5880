"""What is swept: a base with grids and points laid over it, as combinations of settings."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from flashwright.errors import FlashwrightError
from flashwright.simulation.identity import identity_of, plain
from flashwright.simulation.run import RunSettings
from flashwright.simulation.run_count import expect_run_count
from flashwright.simulation.ssd import Ssd
from flashwright.simulation.variant import Maker, Variant, distinct, played_once, renamed
from flashwright.support.names import distinct_names
from flashwright.traces.tenants import Load

__all__ = ["Combination", "Description", "repeated"]


@dataclass(frozen=True)
class Combination:
    """What is set for some runs that differ in their seed only.

    Attributes
    ----------
    varied : mapping
        What is set, by key.
    variant : Variant or None
        The run; None if the settings do not go together.
    error : str or None
        Why they don't.
    asked : int
        How many of the combinations asked for are this one.
    mark : str
        What tells the label from that of another combination, where nothing that is varied does.
    """

    varied: Mapping[str, object]
    variant: Variant | None
    error: str | None = None
    asked: int = 1
    mark: str = ""

    @property
    def label(self) -> str:
        """What is set, as text; no two combinations of a sweep have the same."""
        return ", ".join(f"{key}={value}" for key, value in self.varied.items()) + self.mark


@dataclass(frozen=True)
class Description:
    """What is swept.

    Attributes
    ----------
    ssd : Ssd
        The drive that settings are laid over.
    source : Workload or Trace
        What is played.
    settings : RunSettings
        All else that makes a run; its seed is ignored.
    seeds : sequence of int
        Each combination is run with each of them.
    grids : sequence of mappings
        Lists of values by key; of each grid, every combination.
    points : sequence of mappings
        Single values by key; each is a combination.
    drives : callable
        Finds the drive of a value of the key ``drive``.
    """

    ssd: Ssd
    source: Load
    settings: RunSettings
    seeds: Sequence[int]
    grids: Sequence[Mapping[str, Sequence[object]]]
    points: Sequence[Mapping[str, object]] = ()
    drives: Callable[[str], Ssd] = Ssd.find

    def combinations(self) -> list[Combination]:
        """All that is asked for, each once, in order.

        Returns
        -------
        list of Combination
            Those whose settings do not go together have an error.

        Raises
        ------
        ConfigError, WorkloadError
            If a value fits in none of its combinations, or a key makes no difference in any.
        """
        expect_run_count(self.grids, len(self.points), len(self.seeds))
        makers: dict[str | None, Maker] = {}

        def make(choice: Mapping[str, object]) -> Variant:
            drive = choice.get("drive")
            name = None if drive is None else str(drive)
            if name not in makers:
                ssd = self.ssd if name is None else self.drives(name)
                makers[name] = Maker(ssd, self.source, self.settings)
            rest = {key: value for key, value in choice.items() if key != "drive"}
            variant = makers[name].make(rest)
            varied = {
                key: variant.varied.get(key, value)
                for key, value in choice.items()
                if key == "drive" or key in variant.varied
            }
            given = {key: variant.given.get(key, value) for key, value in choice.items()}
            return replace(variant, varied=varied, given=given)

        tried: list[_Tried] = []
        for keys, choices in self._choices():
            made = [_made(make, choice) for choice in choices]
            _expect_some_use(choices, made)
            distinct(keys, (each.variant for each in made if each.variant is not None))
            tried += made
        return _unlike(tried)

    def _choices(self) -> Iterator[tuple[Iterable[str], list[Mapping[str, object]]]]:
        for grid in self.grids:
            yield (
                grid,
                [
                    dict(zip(grid, values, strict=True))
                    for values in itertools.product(*grid.values())
                ],
            )
        for point in self.points:
            yield (point, [point])


@dataclass(frozen=True)
class _Tried(Combination):
    given: Mapping[str, object] = field(default_factory=dict)
    cause: FlashwrightError | None = None

    @property
    def identity(self) -> str:
        """What its runs depend on beside their seed."""
        if self.variant is not None:
            return self.variant.identity
        return repr([(key, identity_of(value)) for key, value in self.given.items()])


def _made(make: Callable[[Mapping[str, object]], Variant], choice: Mapping[str, object]) -> _Tried:
    try:
        variant = make(choice)
    except FlashwrightError as error:
        named = {key: plain(value) for key, value in choice.items()}
        why = "; ".join(str(error).splitlines())
        return _Tried(named, None, why, given=choice, cause=error)
    return _Tried(variant.varied, variant, given=variant.given)


def _unlike(tried: Sequence[_Tried]) -> list[Combination]:
    """Each combination once, under labels of which no two are equal."""
    varied = renamed([each.given for each in tried], [each.varied for each in tried])
    found: dict[tuple[str, str], Combination] = {}
    for each, own in zip(tried, varied, strict=True):
        named = Combination(own, each.variant, each.error)
        key = named.label, each.identity
        asked = found[key].asked + 1 if key in found else 1
        found[key] = replace(found.get(key, named), asked=asked)
    labels = [label for label, _ in found]
    marked = distinct_names(labels, [identity for _, identity in found])
    return [
        replace(each, mark=name.removeprefix(label))
        for each, label, name in zip(found.values(), labels, marked, strict=True)
    ]


def _expect_some_use(choices: Sequence[Mapping[str, object]], made: Sequence[_Tried]) -> None:
    """A value that is wrong wherever it stands is a fault of the file, not of a combination."""
    uses, faults = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for choice, each in zip(choices, made, strict=True):
        for key, value in choice.items():
            uses[key, identity_of(value)] += 1
            faults[key, identity_of(value)] += each.cause is not None
    for choice, each in zip(choices, made, strict=True):
        for key, value in choice.items():
            one = key, identity_of(value)
            if each.cause is not None and faults[one] == uses[one]:
                raise each.cause


def repeated(combinations: Iterable[Combination]) -> list[str]:
    """Which combinations were asked for more than once and are played once, a line each."""
    return [
        played_once(
            each.label or "the run without anything varied",
            each.asked,
            () if each.variant is None else each.variant.moot,
        )
        for each in combinations
        if each.asked > 1
    ]
