"""Random places that wait for each other: which of them share a unit.

Two reads at once take longer where both places lie on one unit, so that all pairs of some random places show groups::

             a  b  c  d  e  f               a  d  f  b  e  c
          a  .  1  1  2  1  2            a  .  2  2  1  1  1
          b  1  .  1  1  2  1            d  2  .  2  1  1  1       three units: 2 is what waits
          c  1  1  .  1  1  1     ->     f  2  2  .  1  1  1
          d  2  1  1  .  1  2            b  1  1  1  .  2  1
          e  1  2  1  1  .  1            e  1  1  1  2  .  1
          f  2  1  1  2  1  .            c  1  1  1  1  1  .

One pair alone says little under noise, but a place has a whole row. No order of the places is assumed, nor that units
hold the same share of the drive. The groups are those of a stochastic block model with normal values, and as many as
the integrated classification likelihood asks for (Daudin, Picard, Robin: "A mixture model for random graphs", 2008).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flashwright.probing.probes.parallelism.grouping import (
    LEAST_MEMBERS,
    groups,
    levels,
    rounds,
)
from flashwright.target.arrays import Array, Ints
from flashwright.target.target import Target

__all__ = ["Pairs", "Sharing", "Trial"]


# Places of the first look. Chosen: enough for eight units.
_FIRST = 64
# Places for each unit below which one may be missed. Derived: with eight, a unit as large as the others holds none with
# a chance of a third of a thousandth.
_PER_UNIT = 8
# Places of the largest trial. Chosen: all pairs of more take too long; an eighth of it is the most units that show.
_LARGEST = 384
# Repeats of all pairs. Chosen: a median of three drops a pair that cleaning struck.
_REPEATS = 3
# About how many pairs the closer look measures. Chosen: a read of the cells that is a twentieth of a pair shows under 8
# % of noise.
_INSIDE_PAIRS = 8000
# Standard errors by which a level stands out. Chosen: four leave one chance in ten thousand.
_CLEAR = 4.0
# Tries whether a command overtakes another. Chosen: a share of half is known to a tenth.
_OVERTAKING = 32
# Share of the tries in which it has to. Derived: none does if a drive takes one command at a time, and nearly all do
# where memory serves the second one.
_OFTEN = 0.5
# It overtakes if it ends within this share of the first one's time. Chosen: unsteadiness adds less to the first.
_OVERTAKES = 0.5
# Two reads end together if the later one ends within this share of a read's time. Chosen: unsteadiness does not bring
# two that follow each other so near.
_SIDE_BY_SIDE = 0.5
# Share of the places that fit their group, if there are groups at all. Chosen: half; next to none do where reads first
# look up, elsewhere, where the data are.
_FITS = 0.5
# What the second of two reads on one unit waits, as a share of a read, at least. Derived: all of the first but link and
# firmware; where those are the narrow place any two reads wait as well, but for less.
_WAITS = 0.8
# A read that takes less than this share of the usual is one from a cache. Chosen: far from the noise of a read.
_CACHED = 0.8
# Share of reads that may be so fast by chance. Chosen.
_STRAY = 0.02
# Bytes of a read that empties a cache. Chosen: small enough to stay in it.
_CLEANER_BYTES = 16 << 10
# Such reads outstanding. Chosen: what SATA drives take.
_CLEANER_DEPTH = 32


@dataclass(frozen=True, eq=False)
class Sharing:
    """What pairs of random places show.

    Attributes
    ----------
    units : int or None
        Groups of places that wait for each other; None where the probe cannot tell.
    confidence : float
        Share of the places of a second trial that wait for their own group the longest, less the chance that a unit
        holds none of the places.
    places : int
        How many were compared with each other, in each of two trials.
    why : str
        What was seen, or what stands against a verdict.
    inside_ns, between_ns : array
        How long pairs took inside of groups and between them, the shortest first; empty without any.
    apart_ns, together_ns : float
        How long a pair takes at the most, in the mean, on two units, and how long at the least on one; NaN if there
        are no such.
    unclear : bool
        Whether the waits form no clear groups.
    """

    units: int | None
    confidence: float
    places: int
    why: str
    inside_ns: Array
    between_ns: Array
    apart_ns: float = float("nan")
    together_ns: float = float("nan")
    unclear: bool = False


def _blind(why: str, places: int = 0, *, unclear: bool = False) -> Sharing:
    return Sharing(None, 0.0, places, why, np.empty(0), np.empty(0), unclear=unclear)


@dataclass(frozen=True, eq=False)
class Trial:
    """Places of one draw, all pairs of them.

    Attributes
    ----------
    place : array of int
        Each place's number.
    label : array of int
        The group of each place, 0 to units - 1.
    took : array of (places, places)
        Logarithms of nanoseconds that pairs took.
    """

    place: Ints
    label: Ints
    took: Array

    @property
    def units(self) -> int:
        """The number of groups."""
        return int(self.label.max()) + 1

    def clear(self) -> bool:
        """Whether each group waits for itself longer than for any other, beyond the errors."""
        level = levels(self.took, self.label)
        if level.members.min() < LEAST_MEMBERS:
            return False
        if self.units == 1:
            return True
        itself = np.eye(self.units, dtype=bool)
        own, own_error = np.diag(level.mean), np.diag(level.error)
        between = np.where(itself, -np.inf, level.mean)
        gap = own[:, None] - between
        error = np.hypot(own_error[:, None], np.where(itself, 0.0, level.error))
        # Units are alike: a group that waits for itself a good deal less than others do holds two of them on one bus.
        uniform = float(np.ptp(own)) < float(own.min() - between.max())
        return uniform and bool(np.all(gap > _CLEAR * error))

    def fits(self) -> float:
        """Share of the places whose own group is that for which they wait longest."""
        member = np.eye(self.units)[self.label]
        others = member.sum(axis=0)[None] - member
        row = ((self.took - np.diag(np.diag(self.took))) @ member) / np.maximum(others, 1)
        # By the rule of succession: no number of places makes it sure.
        return float(((row.argmax(axis=1) == self.label).sum() + 1) / (self.label.size + 2))

    def missed(self) -> float:
        """The chance that one unit more, with as much of the drive as the others, holds none of the places."""
        more = self.units + 1
        return float(min(more * (1 - 1 / more) ** self.label.size, 1.0))


class Pairs:
    """Pairs of reads at random places of a drive that was written.

    Parameters
    ----------
    target : Target
        The drive.
    rng : numpy Generator
        Draws the places.
    place_bytes, places : int
        The region consists of this many places of this size from address 0 on; each lies on one unit.
    budget_bytes : int
        What may be read in order to empty a read cache.
    """

    def __init__(
        self,
        target: Target,
        rng: np.random.Generator,
        place_bytes: int,
        places: int,
        budget_bytes: int,
    ) -> None:
        self.target = target
        self.rng = rng
        self.place_bytes = place_bytes
        self.places = places
        self.budget_bytes = budget_bytes
        # The least that can be read: it crosses no border, and takes the link no time to speak of.
        self.read_bytes = target.block_bytes
        self.slots = place_bytes // self.read_bytes
        self.cleaner_bytes = -(-_CLEANER_BYTES // self.read_bytes) * self.read_bytes
        self.cache_bytes = 0
        self._cleaners: Ints = np.empty(0, np.int64)
        self._at = 0
        self._turn = 0
        self._turns_left = 0
        self.fresh_slots = False
        self.trials: list[Trial] = []
        self.most = _LARGEST
        """Places of the largest first trial."""

    def sharing(self) -> Sharing:
        """Compare random places in two trials, and count the groups."""
        if self.places < 4 * _FIRST:
            return _blind(f"there are no more than {self.places} places to compare")
        if not self._measure_cache():
            return _blind("reads of the same places stay fast whatever is read in between")
        most = min(_LARGEST if self._side_by_side_reads() else 2 * _FIRST, self.most)
        limit = min(most, self.places // 4)
        count = _FIRST
        while count:
            first = self._trial(count)
            if first is None:
                return _blind(
                    "emptying the read cache again and again takes too much reading", count
                )
            if count >= _PER_UNIT * first.units and first.clear():
                if first.units == 1 and self._overtaken() < _OFTEN:
                    why = (
                        "any two reads wait for each other, as where one command is taken at a time"
                    )
                    return _blind(why, count)
                # Units that a trial took for one show with more places.
                again = self._trial(min(count + count // 2, _LARGEST, self.places // 8 * 2))
                if again is not None and again.units == first.units and again.clear():
                    self.trials = [first, again]
                    return self._conclude(first, again)
            lost = first.fits() < _FITS
            count = 0 if lost or count >= limit else min(2 * count, limit)
        why = "the waits between random places gave no clear groups in two attempts"
        return _blind(why, unclear=True)

    def _conclude(self, first: Trial, again: Trial) -> Sharing:
        units, count = first.units, first.label.size
        level = levels(again.took, again.label)
        own = float(np.exp(np.diag(level.mean).min()))
        others = again.label.size
        pair = np.triu(np.ones((others, others), dtype=bool), 1)
        same = again.label[:, None] == again.label[None]
        inside, between = (np.sort(np.exp(again.took[pair & at])) for at in (same, ~same))
        if units == 1:
            offsets = self._fresh(self._some(count))
            self._empty_cache()
            alone = float(np.median(self.target.play("read", offsets, self.read_bytes).latency_ns))
            elsewhere = self._fresh(self.rng.choice(self.places, count, replace=False))
            usual = self.target.play("read", elsewhere, self.read_bytes).latency_ns
            if alone < _CACHED * float(np.median(usual)):
                why = (
                    f"any two of {count} places wait for each other, but a read of one takes {alone / 1e3:.0f} us "
                    f"where others take {np.median(usual) / 1e3:.0f}, as from RAM"
                )
                return Sharing(None, 0.0, count, why, inside, between, together_ns=own)
            waits = own / alone - 1
            if waits < _WAITS:
                why = f"any two reads wait for each other, but for {waits:.0%} of a read only"
                return Sharing(None, 0.0, count, why, inside, between, together_ns=own)
            why = (
                f"Reads at any two of {count} random places wait for each other for {waits:.0%} of a read, all alike, "
                "though the drive queues commands."
            )
            return Sharing(
                1, again.fits() * (1 - again.missed()), count, why, inside, between, together_ns=own
            )
        apart = float(np.exp(np.nanmax(np.where(np.eye(units, dtype=bool), np.nan, level.mean))))
        why = (
            f"{count} random places, read two at a time, fall into {units} groups whose members wait for each other "
            f"({own / 1e3:.0f} us and more a pair, {apart / 1e3:.0f} us at the most between groups); so do "
            f"{others} others."
        )
        confidence = again.fits() * (1 - again.missed())
        return Sharing(units, confidence, count, why, inside, between, apart, own)

    def _trial(self, count: int) -> Trial | None:
        """All pairs of some places, and once more and often those that seem to lie together.

        Where a bus is shared, the first look groups by bus; units show inside of these groups.
        """
        place = self._draw(count)
        self._avoid(place)
        plan = rounds(count)
        took = self._all(place, plan, _REPEATS if count <= 2 * _FIRST else 2)
        if took is None:
            return None
        label = self._groups(took)
        inside = [np.flatnonzero(label == group) for group in range(int(label.max()) + 1)]
        pairs = sum(members.size * (members.size - 1) // 2 for members in inside)
        plan = _side_by_side(inside)
        repeats = int(np.clip(_INSIDE_PAIRS // max(pairs, 1), 2, 24))
        closer = self._all(place, plan, repeats)
        if closer is None:
            return None
        split, done = label.copy(), 0
        for members in inside:
            part = self._groups(closer[np.ix_(members, members)])
            split[members] = done + part
            done += int(part.max()) + 1
        same = label[:, None] == label[None]
        return self._adjust(Trial(place, split, np.where(same, closer, took)))

    def _adjust(self, trial: Trial) -> Trial:
        """A trial, adjusted before it counts; as it is by default."""
        return trial

    def _draw(self, count: int) -> Ints:
        """The places of a trial."""
        return self.rng.choice(self.places, count, replace=False).astype(np.int64)

    def _groups(self, took: Array) -> Ints:
        """Which places belong together."""
        return groups(took)

    def _some(self, count: int) -> Ints:
        """Places as those that are compared."""
        return self.rng.choice(self.places, count, replace=False).astype(np.int64)

    def _all(self, place: Ints, plan: list[tuple[Ints, Ints]], repeats: int) -> Array | None:
        """Medians of the logarithms of how long pairs took; zero where there was no pair."""
        turns = repeats * len(plan)
        clearing_bytes = self.cache_bytes * (turns // self._turns_a_cleaning() + 1)
        if clearing_bytes > self.budget_bytes:
            return None
        self.budget_bytes -= clearing_bytes
        took = np.zeros((repeats, place.size, place.size))
        for repeat in range(repeats):
            for first, second in plan:
                took[repeat, first, second] = np.log(self._round(place[first], place[second]))
        middle = np.median(took, axis=0)
        return np.asarray(middle + middle.T)

    def _turns_a_cleaning(self) -> int:
        return max(self.slots if self.fresh_slots else 1, 1)

    def _round(self, first: Ints, second: Ints) -> Array:
        """How long pairs take, none of whose blocks is in a cache, nanoseconds."""
        if self.cache_bytes and self._turns_left == 0:
            self._empty_cache()
            self._turns_left = self._turns_a_cleaning()
        self._turns_left = max(self._turns_left - 1, 0)
        self._turn += 1
        offsets = np.stack([self._fresh(first), self._fresh(second)], axis=1)
        times = self.target.read_in_turn(offsets, self.read_bytes)
        took = times.ended_ns.max(axis=1) - times.submitted_ns.min(axis=1)
        return np.asarray(took, np.float64)

    def _fresh(self, place: Ints) -> Ints:
        """Addresses of the block of each place whose turn it is; the same one in all, which may be one chip's."""
        return place * self.place_bytes + self._turn % self.slots * self.read_bytes

    def _side_by_side_reads(self) -> bool:
        """Whether any two reads end at nearly the same time, which they do on a few units and more.

        With one command at a time each ends a read's time after the one before; on a few units behind one slow bus a
        transfer's time after it, so that some places are looked at in any case.
        """
        first, second = self.rng.choice(self.places, (2, 4 * _FIRST))
        if self.cache_bytes:
            self._avoid(np.concatenate([first, second]))
            self._empty_cache()
        apart = np.empty(first.size)
        alone = np.empty(first.size)
        for index in range(first.size):
            self._turn += 1
            pair = self._fresh(np.array([first[index], second[index]]))
            times = self.target.play("read", pair, self.read_bytes, depth=2)
            apart[index] = abs(float(times.ended_ns[1]) - float(times.ended_ns[0]))
            alone[index] = times.latency_ns.min()
        return bool((apart < _SIDE_BY_SIDE * np.median(alone)).mean() > _STRAY)

    def _overtaken(self) -> float:
        """How often the second of two commands ends well before the first: never, if the drive takes one at a time.

        The first is a read of the cells; the second a read of what was just read, or a small write, either of which
        may find memory that serves it. The better share of the two; of reads alone where nothing may be written.
        """
        place = self.rng.choice(self.places, 2 * _OVERTAKING, replace=False)
        self._avoid(place)
        self._empty_cache()
        shares = []
        for kind in ("read",) if self.target.read_only else ("read", "write"):
            ahead = 0
            for cells, other in place.reshape(-1, 2):
                # A block that was not read yet, beside one that was just read.
                self._turn += 1
                both = self._fresh(np.array([cells, other]))
                self.target.play("read", both[1:], self.read_bytes)
                times = self.target.play(np.array(["read", kind]), both, self.read_bytes, depth=2)
                first, second = times.latency_ns
                ahead += int(second < _OVERTAKES * first)
                if kind == "write":
                    self.target.flush()
            shares.append(ahead / _OVERTAKING)
        return max(shares)

    # A cache of what was read

    def _measure_cache(self) -> bool:
        """Measure how much must be read to evict places from a read cache; False if nothing evicts them."""
        self.fresh_slots = False
        sizes = [0, *(1 << shift for shift in range(20, 29))]
        for self.cache_bytes in sizes:
            if not self._still_cached(0):
                break
        else:
            return False
        if self.cache_bytes:
            # The places looked at may have filled the rest of it.
            self.cache_bytes += self.cache_bytes // 8
            kept, self.cache_bytes = self.cache_bytes, 0
            self.fresh_slots = self.slots > 1 and not self._still_cached(1)
            self.cache_bytes = kept
            self._empty_cache()
        return True

    def _still_cached(self, slots_on: int) -> bool:
        """Whether places are read faster the second time, or other blocks of them."""
        place = self.rng.choice(self.places, _FIRST, replace=False)
        self._avoid(place)
        self._turn += 2
        before = self.target.play("read", self._fresh(place), self.read_bytes).latency_ns
        self._empty_cache()
        self._turn += slots_on
        after = self.target.play("read", self._fresh(place), self.read_bytes).latency_ns
        fast = _CACHED * float(np.median(before))
        return bool((after < fast).sum() > (before < fast).sum() + _STRAY * place.size)

    def _avoid(self, place: Ints) -> None:
        """What empties the cache lies anywhere but at these places."""
        count = self.places * self.place_bytes // self.cleaner_bytes
        free = np.ones(count, dtype=bool)
        first = place * self.place_bytes // self.cleaner_bytes
        last = ((place + 1) * self.place_bytes - 1) // self.cleaner_bytes
        for low, high in zip(first, last, strict=True):
            free[low : high + 1] = False
        self._cleaners = self.rng.permutation(np.flatnonzero(free)).astype(np.int64)
        self._at = self._turns_left = 0

    def _empty_cache(self) -> None:
        count = min(self.cache_bytes // self.cleaner_bytes, self._cleaners.size)
        if count:
            chosen = self._cleaners[(self._at + np.arange(count)) % self._cleaners.size]
            self._at += count
            self.target.play(
                "read", chosen * self.cleaner_bytes, self.cleaner_bytes, depth=_CLEANER_DEPTH
            )


def _side_by_side(inside: list[Ints]) -> list[tuple[Ints, Ints]]:
    """Rounds of all pairs inside of groups, the groups at the same time."""
    plans = [(members, rounds(members.size)) for members in inside if members.size > 1]
    joint = []
    for turn in range(max((len(plan) for _, plan in plans), default=0)):
        now = [(members, plan[turn]) for members, plan in plans if turn < len(plan)]
        low = np.concatenate([members[pairs[0]] for members, pairs in now])
        high = np.concatenate([members[pairs[1]] for members, pairs in now])
        joint.append((low, high))
    return joint
