"""Places that are read in equal time, and places that were just written, where random ones form no clear groups.

Waits form groups only if nothing else makes places differ. Two things do. Some data lie in cells that are read faster,
as in an SLC cache: then places are compared that are read in about the same time, and what a place still adds by itself
is taken off. And a translation layer that keeps its map beside the data reads several pages for one::

    read of a place that lay there        ─► last page of its region ─► its table ─► the page    up to three units
    read of a place that was just written ─► the page itself                                     one unit

So random places are written once more, and then compared. Both kinds of places may show fewer units than there are, and
the probe guards against that. Random writes may go to one log, or to a few, and places of equal time may lie on some
units only: then other places wait for no group, or the places of a group lie side by side. RAM may still hold what was
written: a good deal is written elsewhere before anything is read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from flashwright.probing.probes.parallelism.conflicts import Pairs, Sharing, Trial
from flashwright.probing.probes.parallelism.grouping import (
    LEAST_MEMBERS,
    groups,
    levels,
)
from flashwright.target.arrays import Array, Ints
from flashwright.target.target import Target

__all__ = ["EqualPlaces", "JustWritten", "sharing_of"]

# Random places in the largest first trial. Chosen: for more units, places that are read in equal time are compared.
_AT_RANDOM = 128
# Just written places in the largest first trial. Chosen: each trial writes the region anew.
_JUST_WRITTEN = 128
# Bytes that are written after the places, so that no RAM has them. Chosen: twice the largest RAM that is looked for.
_AFTER_BYTES = 128 << 20
# They go to the last of so many parts of the drive. Chosen: room for them on the smallest drives.
_AFTER_PART = 8
# Places that are drawn for each one that is compared. Chosen: the half that is read in the most equal times.
_DRAWN = 2
# Reads of each place alone, to see how long it takes. Chosen: the median is known to a third of the noise.
_ALONE_REPEATS = 12
# Looks in which the times that places add by themselves are taken off. Chosen: they settle after two or three.
_SWEEPS = 3
# Two groups are one if they wait for each other as long as for themselves, within this share of the way from the
# shortest waits. Derived: groups that only share a bus wait less, by a twentieth on the drives that we drew.
_AS_ITSELF = 0.02
# Standard errors that must be less than that way. Chosen: as of a level that stands out.
_CLEAR = 4.0
# Other places that are compared with each group. Chosen: a share of a twentieth shows.
_OTHERS = 48
# Pairs of each of them with a group. Chosen: the median drops a pair that cleaning struck.
_OTHERS_REPEATS = 6
# What such a place waits for some group, as a share of what places of one group wait for each other, at least. Chosen:
# below half, since it may lie next to a border.
_WAITS = 0.4
# Share of places that may wait for no group. Chosen: strays under noise.
_STRAY = 0.05
# The chance that there is one unit more, at most, by the number of separate runs of places that share one. Chosen.
_MISSED = 0.1


def sharing_of(
    target: Target, rng: np.random.Generator, place_bytes: int, places: int, budget_bytes: int
) -> Sharing:
    """Groups of random places; where these form none, of places that are read in equal time.

    Parameters
    ----------
    target, rng, place_bytes, places, budget_bytes
        As of :class:`Pairs`.
    """
    random = Pairs(target, rng, place_bytes, places, budget_bytes)
    random.most = _AT_RANDOM
    sharing = random.sharing()
    if not sharing.unclear:
        return sharing
    equal = EqualPlaces(target, rng, place_bytes, places, budget_bytes).sharing()
    return sharing if equal.units is None else equal


class EqualPlaces(Pairs):
    """Pairs of reads at random places that are read in about the same time.

    Takes the parameters of :class:`Pairs`.
    """

    def sharing(self) -> Sharing:
        """Compare such places in two trials, count the groups, and look for units beside them."""
        sharing = super().sharing()
        if sharing.units is None or not self.trials:
            return sharing
        trial = self.trials[-1]
        alone = self._waiting_for_none(trial)
        if alone > _STRAY:
            why = (
                f"places that are read alike wait in {trial.units} groups, but {alone:.0%} of the others wait for "
                "none of these, so that there are more units"
            )
            return replace(sharing, units=None, confidence=0.0, why=why)
        return replace(sharing, why=f"{sharing.why} Other places wait for one of them as well.")

    def _draw(self, count: int) -> Ints:
        """Of the candidates, the half that is read in the most equal times."""
        place = self._candidates(_DRAWN * count)
        self._avoid(place)
        alone = np.median([self._read(place) for _ in range(_ALONE_REPEATS)], axis=0)
        order = np.argsort(alone, kind="stable")
        ranges = alone[order[count - 1 :]] - alone[order[: place.size - count + 1]]
        first = int(ranges.argmin())
        return np.asarray(place[np.sort(order[first : first + count])], np.int64)

    def _candidates(self, count: int) -> Ints:
        return self.rng.choice(self.places, count, replace=False).astype(np.int64)

    def _groups(self, took: Array) -> Ints:
        return groups(took - _of_places(took))

    def _adjust(self, trial: Trial) -> Trial:
        """Without places that lie with none, and with groups joined that wait for each other as for themselves.

        What places have of their own beside the others of their group is taken off.
        """
        members = np.bincount(trial.label)
        kept = members[trial.label] >= LEAST_MEMBERS
        if kept.sum() < (1 - _STRAY) * kept.size:
            return trial
        label = np.unique(trial.label[kept], return_inverse=True)[1].astype(np.int64)
        took = trial.took[np.ix_(kept, kept)]
        for _ in range(_SWEEPS):
            mean = np.nan_to_num(levels(took, label).mean)
            took = took - _of_places(took - mean[label][:, label])
            label = _merge_groups(took, label)
        return Trial(trial.place[kept], label, took)

    def _some(self, count: int) -> Ints:
        return self.trials[-1].place[:count] if self.trials else super()._some(count)

    def _waiting_for_none(self, trial: Trial) -> float:
        """Share of other places that wait for no group."""
        others = self._others()
        members = [trial.place[trial.label == group] for group in range(trial.units)]
        self._avoid(np.concatenate([trial.place, others]))
        waits = np.array([[self._wait(group, [place]) for group in members] for place in others])
        among = float(np.mean([self._wait(group, group) for group in members for _ in range(4)]))
        between = 0.0
        if trial.units > 1:
            apart = [(a, b) for a in members for b in members if a is not b]
            chosen = self.rng.permutation(len(apart))[:24]
            between = float(np.mean([self._wait(*apart[index]) for index in chosen]))
        return float((waits.max(axis=1) < between + _WAITS * (among - between)).mean())

    def _others(self) -> Ints:
        return self.rng.choice(self.places, _OTHERS, replace=False).astype(np.int64)

    def _wait(self, first: Ints, second: Ints | list[int]) -> float:
        """How much longer two reads take together than each alone, both added up, nanoseconds; medians."""
        both = np.empty(_OTHERS_REPEATS)
        alone: Array = np.empty((2, _OTHERS_REPEATS))
        for index in range(_OTHERS_REPEATS):
            pair = np.array([self.rng.choice(first), self.rng.choice(second)])
            while pair[0] == pair[1]:
                pair[0] = self.rng.choice(first)
            both[index] = self._read(pair, together=True).sum()
            alone[:, index] = self._read(pair)
        return float(np.median(both) - np.median(alone, axis=1).sum())

    def _read(self, place: Ints, *, together: bool = False) -> Array:
        """How long reads take, one after another or at once, of blocks that are in no cache."""
        if self.cache_bytes and self._turns_left == 0:
            self._empty_cache()
            self._turns_left = self._turns_a_cleaning()
        self._turns_left = max(self._turns_left - 1, 0)
        self._turn += 1
        offsets = self._fresh(place)
        groups_ = offsets[None] if together else offsets[:, None]
        return self.target.read_in_turn(groups_, self.read_bytes).latency_ns.ravel()


class JustWritten(EqualPlaces):
    """Pairs of reads at random places that were just written.

    Parameters
    ----------
    target, rng, place_bytes, places, budget_bytes
        As of :class:`Pairs`; the region's last eighth is written anew as well.
    renew : callable
        Writes the region in order, before each trial.
    """

    def __init__(
        self,
        target: Target,
        rng: np.random.Generator,
        place_bytes: int,
        places: int,
        budget_bytes: int,
        renew: Callable[[], None],
    ) -> None:
        super().__init__(target, rng, place_bytes, places, budget_bytes)
        self.renew = renew
        self.most = _JUST_WRITTEN
        self.old = places - places // _AFTER_PART

    def sharing(self) -> Sharing:
        """As of :class:`EqualPlaces`; besides, units must hold several separate runs of places."""
        sharing = super().sharing()
        if sharing.units is None:
            return replace(sharing, why=f"of places that were just written, {sharing.why}")
        trial = self.trials[-1]
        missed = _missed(trial)
        if trial.units > 1 and missed > _MISSED:
            why = (
                f"places that were just written wait in {trial.units} groups, but neighbours for neighbours, as where "
                "they went to as many logs"
            )
            return replace(sharing, units=None, confidence=0.0, why=why)
        confidence = sharing.confidence if trial.units == 1 else sharing.confidence * (1 - missed)
        return replace(
            sharing, confidence=confidence, why=f"Just after they were written: {sharing.why}"
        )

    def _candidates(self, count: int) -> Ints:
        """Places all over the drive but for its end, written in an order that is drawn."""
        self.renew()
        edges = np.linspace(0, self.old, count + 1).astype(np.int64)
        place = self.rng.permutation(self.rng.integers(edges[:-1], edges[1:]))
        self.target.play("write", place * self.place_bytes, self.place_bytes)
        start = self.old * self.place_bytes
        # One by one: long writes may go past a buffer.
        room = self.places * self.place_bytes - start
        after = start + np.arange(min(_AFTER_BYTES, room) // self.place_bytes) * self.place_bytes
        self.target.play("write", after, self.place_bytes)
        self.target.flush()
        return np.asarray(place, np.int64)

    def _others(self) -> Ints:
        """Those that were not written at random: on a drive that writes to logs they lie on all units."""
        return self.rng.integers(self.old, self.places, _OTHERS)


def _merge_groups(took: Array, label: Ints) -> Ints:
    """Groups that wait for each other as long as for themselves are one, where that is known well enough."""
    level = levels(took, label)
    mean = level.mean
    if mean.shape[0] == 1:
        return label
    own = np.minimum(np.diag(mean)[:, None], np.diag(mean)[None])
    near = _AS_ITSELF * (own - np.nanmin(mean))
    equal_groups = (mean >= own - near) & (_CLEAR * level.error < near)
    of = np.arange(mean.shape[0])
    for first, second in zip(*np.nonzero(np.triu(equal_groups, 1)), strict=True):
        of[of == of[second]] = of[first]
    return np.unique(of[label], return_inverse=True)[1].astype(np.int64)


def _of_places(took: Array) -> Array:
    """What two places add to the usual, each by itself: least squares of a sum of both, the diagonal left out."""
    count = took.shape[0]
    if count < 3:
        return np.zeros_like(took)
    rows = took.sum(axis=1) - np.diag(took)
    own = (rows - rows.mean()) / (count - 2)
    both = own[:, None] + own[None]
    return np.asarray(both - np.diag(np.diag(both)))


def _missed(trial: Trial) -> float:
    """The chance that a unit more holds none of the runs of places that lie side by side on one unit."""
    runs = 1 + int((np.diff(trial.label[np.argsort(trial.place)]) != 0).sum())
    more = trial.units + 1
    return float(min(more * (1 - 1 / more) ** runs, 1.0))
