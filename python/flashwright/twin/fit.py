"""The search for a twin: a drive model that behaves as a drive was measured to.

What probes found is built in. What they did not find is tried: structures compete, and the one with the least error
wins. All else is numbers (times, rates, spare space). Closed forms of single patterns give their starting values, and a
damped Gauss-Newton descent in log space the rest. Its residuals are logarithms of ratios of mean and percentiles. Its
weights bound the pull of a pattern that no model explains (Huber's, as iteratively reweighted least squares).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from flashwright.drive.findings import Finding
from flashwright.errors import TargetError
from flashwright.target.target import Deadline, OutOfTimeError
from flashwright.twin.calibration import Calibration, Measured
from flashwright.twin.model import (
    SCHEDULES,
    STEPWISE,
    Drive,
    Fit,
    Model,
    Residual,
    gaps_between,
    name_of,
)
from flashwright.twin.neighbours import further, neighbours, orders_of
from flashwright.twin.structures import LOG_BLOCK_SCHEMES
from flashwright.twin.trials import ENOUGH, TRIALS, Played, Trials

__all__ = ["fitted"]


# Spare space to start from, as shares of the logical space: of drives from consumer to enterprise ones.
_SPARES = (0.06, 0.1, 0.16, 0.26)


# Shares of the trials, and of its time, after which reads, writes into erased space, and overwriting begin no further
# structure. Chosen.
_UNTIL = (0.15, 0.35, 0.6)

# An error of reads above which a map that is loaded on demand is tried, though nothing spoke for one. Chosen.
_MAP_IN_RAM = 0.03

# Shares of a map in RAM to try.
_MAP_SHARES = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8)

# Structures that are followed into overwriting.
_FOLLOWED = 3
# Structures from which the climb begins anew while time is left.
_RESTARTS = 2

# Programs of each unit that RAM holds, to try. Derived: one for each open block of the host, of cleaning and of the map
# at least.
_RAM_PROGRAMS = (3, 5, 8, 32, 128)

# Rounds in which spare space, orders, RAM, shares and schedules are varied in turn.
_TURNS = 2
# What spare space is multiplied by then.
_SPARE_FACTORS = (0.65, 0.8, 1.25, 1.5)

# The error of a structure over that of the best, up to which it counts as better. Chosen: beyond chance.
_BETTER = 0.985
# The same up to which its numbers get a step of their own first. Chosen: numbers that were fitted to another structure
# may hide a better one.
_HIDDEN = 1.4
# Share of the budget after which the first climb ends.
_UNTIL_FIRST = 0.75
# The same of the last one.
_UNTIL_LAST = 0.95
# An error at which a climb ends.
_EXACT = 0.01
# An error below which no climb begins anew. Measured: under another seed the true model comes to about that.
_GOOD = 0.03
# Models that differ in several things which get a step of their own, of each kind.
_STEPPED = 3


def fitted(
    info: Drive,
    findings: Mapping[str, Finding],
    calibration: Calibration,
    *,
    seed: int = 1,
    progress: Callable[[float], None] = lambda share: None,
    time_limit: float | None = None,
    processor_limit: float | None = None,
    trials_limit: int = TRIALS,
) -> Fit:
    """The twin of a drive, with the record of its fit.

    Parameters
    ----------
    info : Drive
        Name and size: the target itself, or what is known of it.
    findings : mapping of str to Finding
        What probes found; what is missing is tried.
    calibration : Calibration
        What was measured.
    seed : int, optional
        Of what is random in candidates.
    progress : callable, optional
        Told the share that is done, 0 to 1.
    time_limit : float, optional
        Seconds after which the best model so far is taken: that of the last step that was begun.
    processor_limit : float, optional
        The same in seconds of processor time: what is found does not depend on what else the machine does, only on how
        fast it is.
    trials_limit : int, optional
        The same in models tried: what is found is then the same on every machine.

    Returns
    -------
    Fit

    Raises
    ------
    TargetError
        If the calibration is of a drive of another size, or no model can be built.
    OutOfTimeError
        If the time limit came before a single model was played.
    """
    if info.capacity_bytes != calibration.capacity_bytes:
        raise TargetError(
            f"{info.name}: found {info.capacity_bytes:,} B, expected the {calibration.capacity_bytes:,} B of its"
            " calibration",
            "calibrate the drive that is to be fitted",
        )
    deadline = Deadline(time_limit)
    trials = Trials(
        info, findings, calibration, seed, progress, deadline, processor_limit, trials_limit
    )
    return Search(trials).run()


# Numbers by stage: what the patterns show. All are logarithms in the descent.
_READS = ("read_ns", "transfer_ns", "rate", "read_overhead_ns", "noise")


_ALL = (*_READS, "program_ns", "write_overhead_ns", "erase_ns", "spare")


# What cleaning takes.
_COSTS = ("erase_ns", "program_ns", "transfer_ns", "read_ns")


def _of_spare(model: Model) -> list[Model]:
    """Spare space around what was found."""
    return [replace(model, spare=model.spare * factor) for factor in _SPARE_FACTORS]


def _of_ram(model: Model) -> list[Model]:
    """What RAM holds of writes, where programs gather units."""
    if not model.unit_bytes:
        return []
    return [replace(model, ram_programs=count) for count in _RAM_PROGRAMS]


def _of_shares(model: Model) -> list[Model]:
    """Sizes of the SLC cache: what overwriting shows best is how much it takes of the spare flash."""
    if model.slc == "none":
        return []
    return [replace(model, slc_share=min(model.slc_share * factor, 0.9)) for factor in (0.6, 1.6)]


def _of_schedules(model: Model) -> list[Model]:
    """When it cleans."""
    return [replace(model, schedule=schedule) for schedule in SCHEDULES]


class Search:
    """Tries structures, and of each the numbers that fit best.

    Parameters
    ----------
    trials : Trials
        Plays the candidates.
    """

    def __init__(self, trials: Trials) -> None:
        self.trials = trials

    def run(self) -> Fit:
        try:
            return self.search_all()
        except OutOfTimeError:
            if self.trials.best is None:
                raise
        best = self.trials.best
        self.trials.tried.append((name_of(best.model), best.error))
        spent = (
            self.trials.evaluations >= self.trials.most
            or self.trials.used_s >= self.trials.processor_s
        )
        why = "its budget" if spent else "the time limit"
        stopped = f"fit stopped by {why} after {self.trials.evaluations:,} of at most {self.trials.most:,} trials"
        return self.result(best.model, best.error, best.played, stopped)

    def search_all(self) -> Fit:
        # What reads show: units and buses, queue, link.
        self.trials.until = _UNTIL[0]
        chosen: list[Model] = []
        starts = self.trials.structures.models()
        # Writes, not reads, tell whether a program gathers several mapping units.
        kinds: dict[tuple[str, bool, str], list[Model]] = {}
        for model in starts:
            kind = (model.scheme, bool(model.unit_bytes), model.superblock)
            kinds.setdefault(kind, []).append(model)
        for at, same_kind in enumerate(kinds.values()):
            self.trials.until = _UNTIL[0] * (at + 1) / len(kinds)
            chosen += self.read_best(same_kind)
        least = min(self.trials.error(model, self.trials.reads) for model in chosen)
        if least > _MAP_IN_RAM:
            # A map that no sign told of may be what is missing.
            loading = self.trials.structures.loading()
            chosen += self.read_best(loading) if loading else []
            least = min(self.trials.error(model, self.trials.reads) for model in chosen)
        near = max(2 * least, ENOUGH)
        chosen = [model for model in chosen if self.trials.error(model, self.trials.reads) <= near]
        self.trials.progress(0.2)
        # What writes into erased space show: translation, buffer, programs, the SLC cache.
        self.trials.until = _UNTIL[1]
        variants = [
            other for model in chosen for other in self.trials.structures.write_variants(model)
        ]
        chosen = self.compare(variants, _ALL, self.trials.clean, ((0, 12), (1, 6)), near=2.0)
        chosen = [self.with_oversized(model) for model in chosen]
        chosen = self.compare(chosen, _ALL, self.trials.clean, ((3, 4), (3, 3)), near=1.5)
        # Merges have chance in them, so near equals are told apart by what has none.
        if chosen[0].scheme in LOG_BLOCK_SCHEMES:
            chosen.sort(key=lambda model: self.trials.error(model, self.trials.reads))
        chosen[0] = self.with_oversized(chosen[0])  # told better by numbers that fit
        chosen[0], _ = self.trials.descend(chosen[0], _ALL, self.trials.clean, 4)
        self.trials.progress(0.5)
        model, error = self.climb(chosen[:_FOLLOWED], _UNTIL[2], _UNTIL_FIRST)
        self.trials.progress(0.8)
        # Where the first came to rest too early, others may come further.
        others = [other for other in chosen[1:] if name_of(other) != name_of(chosen[0])]
        for at, other in enumerate(others[:_RESTARTS]):
            share = (at + 1) / len(others[:_RESTARTS])
            until = _UNTIL_FIRST + (_UNTIL_LAST - _UNTIL_FIRST) * share
            self.trials.until = until
            if self.trials.late or error < _GOOD:
                break
            trial, there = self.climb([other], until, until)
            if there < error:
                model, error = trial, there
        self.trials.until = 1.0
        model, _ = self.trials.descend(model, _ALL, self.trials.both, 4)
        model, _ = self.trials.scan(model, "spare", self.trials.both)
        error = self.trials.error(model, self.trials.used)
        self.trials.tried.append((name_of(model), error))
        self.trials.progress(1.0)
        played: list[Played] = []
        for wanted in (self.trials.clean, self.trials.used):
            found = self.trials.play(model, wanted)
            if found is None:
                raise TargetError(
                    f"{self.trials.info.name}: found no model that takes its calibration"
                )
            played.append((wanted, found))
        return self.result(model, error, played)

    def climb(
        self, models: Sequence[Model], until: float, until_last: float
    ) -> tuple[Model, float]:
        """What overwriting shows: spare space, blocks, erases, when it cleans; then from structure to structure."""
        self.trials.until = until
        followed = list(models)
        # Writes into a drive at rest hardly tell kinds of SLC caches apart: what takes the spare space does.
        followed[1:1] = [
            other
            for other in self.trials.structures.caches(replace(models[0], slc="none"))
            if other.slc not in {model.slc for model in followed}
        ]
        # Where units are few, reads alone do not tell how many commands are taken at once; reads among writes do.
        followed[1:1] = [
            replace(models[0], queue_depth=depth)
            for depth in self.trials.structures.depths()
            if depth not in {model.queue_depth for model in followed}
        ]
        # Overwriting also shows what becomes of writes while a cache is full.
        followed += [replace(model, slc_full="fold") for model in followed if model.slc != "none"]
        model = self.overwriting(list(dict.fromkeys(followed)))
        model, _ = self.trials.descend(model, (*_COSTS, "spare"), self.trials.both, 3)
        self.trials.until = until_last
        model, error = self.refine(model)
        if not self.trials.late:
            model, error = self.trials.descend(model, _ALL, self.trials.both, 6)
        return model, error

    def read_best(self, models: Iterable[Model]) -> list[Model]:
        """The best of some structures on reads; of one structure from several starts the first is the best."""
        best = self.compare(models, _READS, self.trials.reads, ((0, 8), (1, 4), (3, 3)))
        best = [self.with_map(model) for model in best]
        return list({name_of(model): model for model in reversed(best)}.values())

    def with_map(self, model: Model) -> Model:
        """The model with the best share of its map in RAM, by a scan: a share of whole pages has no slope."""
        if model.scheme != "dftl":
            return model
        shares = [replace(model, map_share=share) for share in (model.map_share, *_MAP_SHARES)]
        likely = self.rank(
            [(other, self.trials.error(other, self.trials.reads)) for other in shares]
        )[:2]
        fits = [self.trials.descend(other, _READS, self.trials.reads, 2) for other, _ in likely]
        return self.rank(fits)[0][0]

    def compare(
        self,
        models: Iterable[Model],
        names: Sequence[str],
        wanted: Sequence[Measured],
        rounds: Sequence[tuple[int, int]],
        near: float = 1.1,
    ) -> list[Model]:
        """The best of some structures, by halves: rounds of descent, and how many stay at most after them."""
        models = list(models)
        for last, (count, keep) in enumerate(rounds, 1 - len(rounds)):
            fits: list[tuple[Model, float]] = []
            for model in models:
                # The likeliest come first: the others are left out where time is short.
                if fits and self.trials.late:
                    break
                fits.append(self.trials.descend(model, names, wanted, count))
            found = self.rank(fits)
            # Before the numbers are fitted an error says little; later what is not equal is not followed.
            most = math.inf if count == 0 else found[0][1] * (near if last == 0 else 2.0)
            most = max(most, ENOUGH)
            models = [model for model, error in found[:keep] if error <= most]
        self.trials.tried += [(name_of(model), error) for model, error in found]
        return models

    @staticmethod
    def rank(found: list[tuple[Model, float]]) -> list[tuple[Model, float]]:
        """The best first; of equals the one that was tried first."""
        return sorted(found, key=lambda pair: pair[1])

    def with_oversized(self, model: Model) -> Model:
        """What becomes of a write larger than the buffer: of the two ways the one that fits better."""
        if not model.write_buffer_bytes:
            return model
        ways = [replace(model, oversized=way) for way in ("through", "stream")]
        return min(ways, key=lambda model: self.trials.error(model, self.trials.clean))

    def overwriting(self, models: Sequence[Model]) -> Model:
        """Fits spare space, blocks and the schedule of cleaning to what overwriting showed."""
        first = models[0]
        # Blocks with pages at home have logs for a share of all blocks, and use no other spare space.
        spares = (0.11, 0.2) if first.scheme in LOG_BLOCK_SCHEMES else _SPARES
        ways = [first]
        if first.scheme in STEPWISE and not first.unit_bytes and first.units > 1:
            # Reads of whole pages do not show how blocks are joined; cleaning does.
            ways = [replace(first, superblock=way) for way in ("block", "drive")]
        # Cleaning in one go and a little at a time make blocks of other sizes likely.
        whens = ("foreground", "rate-limited") if first.scheme in STEPWISE else SCHEDULES[:1]
        best, error = self.least(
            replace(way, pages_per_block=pages, spare=spare, schedule=when)
            for pages in self.trials.structures.block_pages(first)
            for spare in spares
            for way in ways
            for when in whens
        )
        rows = best.pages_per_block * best.page_bytes * best.units
        for model in models:
            # Blocks are told once; those of another structure hold as many bytes.
            pages = max(round(rows / (model.page_bytes * model.units)), 2)
            like = replace(model, pages_per_block=pages)
            if model is first:
                like = best
            # What an SLC cache does, cleaning in steps may do as well: both are varied together.
            schedules = SCHEDULES if model.scheme in STEPWISE else SCHEDULES[:1]
            if model is not first and self.trials.late:
                break
            trial, there = self.least(
                replace(like, schedule=schedule, spare=best.spare) for schedule in schedules
            )
            self.trials.tried.append((name_of(trial), there))
            if there < error:
                best, error = trial, there
        if best.scheme in STEPWISE:
            return self.fit_cleaning(best, error)
        if best.scheme not in LOG_BLOCK_SCHEMES:
            best, _ = self.trials.scan(best, "spare", self.trials.used)
        return self.trials.descend(best, ("erase_ns", "spare"), self.trials.used, 5)[0]

    def fit_cleaning(self, model: Model, error: float) -> Model:
        """For a page map: vary spare space, order of dies, RAM, cache and schedule in turn."""
        for _ in range(_TURNS):
            before = error
            for options in (_of_spare, orders_of, _of_ram, _of_shares, _of_schedules):
                if self.trials.late:
                    return model
                for trial in options(model):
                    if (
                        trial != model
                        and (there := self.trials.error(trial, self.trials.used)) < error
                    ):
                        model, error = trial, there
            if error >= _BETTER * before:
                break
        self.trials.tried.append((name_of(model), error))
        return model

    def refine(self, model: Model) -> tuple[Model, float]:
        """Climbs from structure to structure as long as one next to the best fits better."""
        model, error = self.trials.descend(model, _ALL, self.trials.both, 2)
        # By kind of thing: how near its best came at last; the likeliest come first.
        came: dict[str, float] = {}
        while not self.trials.late and error > _EXACT:
            before = error
            kinds = list(
                dict.fromkeys(kind for kind, _ in neighbours(model, self.trials.structures))
            )
            for kind in sorted(kinds, key=lambda kind: came.get(kind, 0.0)):
                options = [
                    near for of, near in neighbours(model, self.trials.structures) if of == kind
                ]
                found: list[tuple[Model, float]] = []
                for near in options:
                    if self.trials.late:
                        break
                    found.append((near, self.trials.error(near, self.trials.both)))
                if not found:
                    continue
                near, there = self.rank(found)[0]
                came[kind] = there / error
                if _BETTER * error <= there < _HIDDEN * error and not self.trials.late:
                    # Numbers that were fitted to another structure may hide a better one.
                    near, there = self.trials.step(near, self.trials.both)
                if there < _BETTER * error:
                    model, error = near, there
                    self.trials.tried.append((name_of(model), error))
            model, error = self.trials.descend(model, _ALL, self.trials.both, 2)
            if error >= _BETTER * before:
                model, error = self.further(model, error)
                if error >= _BETTER * before:
                    break
        return model, error

    def further(self, model: Model, error: float) -> tuple[Model, float]:
        """Models that differ in several things from the one where the climb ended: the first kind that is better."""
        if error < _GOOD:
            return model, error
        kinds: dict[str, list[Model]] = {}
        for kind, other in further(model, self.trials.structures):
            kinds.setdefault(kind, []).append(other)
        for others in kinds.values():
            found: list[tuple[Model, float]] = []
            for other in others:
                if self.trials.late:
                    return model, error
                found.append((other, self.trials.error(other, self.trials.both)))
            for other, there in self.rank(found)[:_STEPPED]:
                if self.trials.late:
                    return model, error
                if there >= _HIDDEN * error:
                    break
                other, there = self.trials.step(other, self.trials.both)
                if there >= _BETTER * error and not self.trials.late:
                    other, there = self.trials.descend(other, _ALL, self.trials.both, 1)
                if there < _BETTER * error:
                    self.trials.tried.append((name_of(other), there))
                    return other, there
        return model, error

    def least(self, models: Iterable[Model]) -> tuple[Model, float]:
        """The model that overwriting fits best, as it stands."""
        return self.rank([(model, self.trials.error(model, self.trials.used)) for model in models])[
            0
        ]

    def result(
        self, model: Model, error: float, played: Sequence[Played], stopped: str = ""
    ) -> Fit:
        name, calibration = self.trials.info.name, self.trials.calibration
        about = (
            f"Twin of {name}: structure as probed, numbers fitted to {len(calibration.measured)}"
            f" patterns{'; ' if stopped else ''}{stopped}."
        )
        ssd = model.ssd("twin", about, calibration.capacity_bytes)
        residuals = [
            Residual(pattern, kind, level, drive, twin, twin / max(drive, 1.0))
            for wanted, found in played
            for pattern, kind, level, drive, twin, _, _ in gaps_between(wanted, found)
        ]
        tried = tuple(self.trials.tried)
        return Fit(ssd, model, tuple(residuals), error, tried, self.trials.evaluations, stopped)
