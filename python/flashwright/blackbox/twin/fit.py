"""A drive model that behaves as a drive was measured to: its twin.

What probes found is built in. What they did not find is tried: a few structures, of which the one with the least error
stays. The rest are numbers (times, rates, spare space), for which closed forms of single patterns give starting values
and a damped Gauss-Newton descent in log space the rest. Its residuals are logarithms of ratios of mean and percentiles,
its weights bound what a pattern can pull that no model explains (Huber's, as iteratively reweighted least squares).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from flashwright.blackbox.target import Deadline, OutOfTimeError
from flashwright.blackbox.twin.calibration import Calibration, Measured
from flashwright.blackbox.twin.descent import _ENOUGH, Descent, Played
from flashwright.blackbox.twin.model import (
    SCHEDULES,
    STEPWISE,
    Drive,
    Fit,
    Model,
    Residual,
    gaps_between,
    name_of,
)
from flashwright.blackbox.twin.refining import neighbours
from flashwright.blackbox.twin.structures import ALIKE
from flashwright.drive.findings import Finding
from flashwright.errors import TargetError

__all__ = ["fitted"]


# Spare space of drives, from consumer to enterprise ones.
_SPARES = (0.06, 0.1, 0.16, 0.26)


# Trials of a fit at most; and the shares of them, and of its time, after which reads, writes into erased space, and
# overwriting begin no further structure.
_TRIALS = 4000
_UNTIL = (0.3, 0.55, 0.9)

# Structures that are followed into overwriting.
_FOLLOWED = 3

# Programs of each unit that RAM holds: one for each open block of the host, of cleaning and of the map at least.
_RAM_PROGRAMS = (8, 32, 128)

# Schedules of cleaning whose numbers are fitted before they are judged.
_SCHEDULES = 2

# Structures next to the best whose numbers are fitted before none of them counts as better; a better one has this
# share of the error at most. The search for one ends when so much of the budget is used, or at such an error.
_NEAR = 12
_BETTER = 0.985
_UNTIL_LAST = 0.93
_EXACT = 0.02


def fitted(
    info: Drive,
    findings: Mapping[str, Finding],
    calibration: Calibration,
    *,
    seed: int = 1,
    progress: Callable[[float], None] = lambda share: None,
    time_limit: float | None = None,
    processor_limit: float | None = None,
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
        The same in seconds of processor time, so that what is found does not depend on what else the machine does.

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
    return _Search(
        info, findings, calibration, seed, progress, Deadline(time_limit), processor_limit
    ).run()


# Numbers by stage: what the patterns show. All are logarithms in the descent.
_READS = ("read_ns", "transfer_ns", "rate", "read_overhead_ns", "noise")


_ALL = (*_READS, "program_ns", "write_overhead_ns", "erase_ns", "spare")


# What cleaning takes.
_COSTS = ("erase_ns", "program_ns", "transfer_ns", "read_ns")


def _shares(model: Model) -> tuple[float, ...]:
    """Sizes of the SLC cache to try: what overwriting shows best is how much it takes of the spare flash."""
    if model.slc == "none":
        return ()
    return tuple(min(model.slc_share * factor, 0.9) for factor in (0.6, 1.6))


class _Search(Descent):
    """Tries structures, and of each the numbers that fit best."""

    def run(self) -> Fit:
        self.most = _TRIALS
        try:
            return self.searched()
        except OutOfTimeError:
            if self.best is None:
                raise
        best = self.best
        self.tried.append((name_of(best.model), best.error))
        spent = self.evaluations >= self.most or self.used_s >= self.processor_s
        why = "its budget" if spent else "the time limit"
        stopped = f"fit stopped by {why} after {self.evaluations:,} of at most {self.most:,} trials"
        return self.result(best.model, best.error, best.played, stopped)

    def searched(self) -> Fit:
        # What reads show: units and buses, queue, link.
        self.until = _UNTIL[0]
        chosen: list[Model] = []
        starts = self.structures.models()
        # Writes, not reads, tell whether a program gathers several mapping units.
        kinds: dict[tuple[str, bool], list[Model]] = {}
        for model in starts:
            kinds.setdefault((model.scheme, bool(model.unit_bytes)), []).append(model)
        for at, alike in enumerate(kinds.values()):
            self.until = _UNTIL[0] * (at + 1) / len(kinds)
            best = self.compare(alike, _READS, self.reads, ((1, 4), (3, 3)))
            # Of one structure from several starts the first is the best.
            chosen += {name_of(model): model for model in reversed(best)}.values()
        least = min(self.error(model, self.reads) for model in chosen)
        near = max(2 * least, _ENOUGH)
        chosen = [model for model in chosen if self.error(model, self.reads) <= near]
        self.progress(0.2)
        # What writes into erased space show: translation, buffer, programs, the SLC cache.
        self.until = _UNTIL[1]
        variants = [other for model in chosen for other in self.structures.write_variants(model)]
        chosen = self.compare(variants, _ALL, self.clean, ((0, 12), (1, 4)), near=2.0)
        chosen = [self.with_oversized(model) for model in chosen]
        chosen = self.compare(chosen, _ALL, self.clean, ((3, 3),), near=1.5)
        # Merges have chance in them, so near equals are told apart by what has none.
        if chosen[0].scheme in ALIKE:
            chosen.sort(key=lambda model: self.error(model, self.reads))
        chosen[0] = self.with_oversized(chosen[0])  # told better by numbers that fit
        chosen[0], _ = self.descend(chosen[0], _ALL, self.clean, 4)
        self.progress(0.5)
        # What overwriting shows: spare space, blocks, erases, when it cleans.
        self.until = _UNTIL[2]
        followed = chosen[:_FOLLOWED]
        # Writes into a drive at rest hardly tell kinds of SLC caches apart: what takes the spare space does.
        followed[1:1] = [
            other
            for other in self.structures.caches(replace(chosen[0], slc="none"))
            if other.slc not in {model.slc for model in followed}
        ]
        model = self.overwriting(followed)
        self.progress(0.8)
        model, _ = self.descend(model, (*_COSTS, "spare"), (*self.clean, *self.used), 3)
        self.until = _UNTIL_LAST
        model = self.refined(model)
        both = (*self.clean, *self.used)
        if not self.late:
            model, _ = self.descend(model, _ALL, both, 6)
        model, _ = self.scan(model, "spare", both)
        error = self.error(model, self.used)
        self.tried.append((name_of(model), error))
        self.progress(1.0)
        played: list[Played] = []
        for wanted in (self.clean, self.used):
            found = self.play(model, wanted)
            if found is None:
                raise TargetError(f"{self.info.name}: found no model that takes its calibration")
            played.append((wanted, found))
        return self.result(model, error, played)

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
                if fits and self.late:
                    break
                fits.append(self.descend(model, names, wanted, count))
            found = self.ranked(fits)
            # Before the numbers are fitted an error says little; later what is not equal is not followed.
            most = math.inf if count == 0 else found[0][1] * (near if last == 0 else 2.0)
            most = max(most, _ENOUGH)
            models = [model for model, error in found[:keep] if error <= most]
        self.tried += [(name_of(model), error) for model, error in found]
        return models

    @staticmethod
    def ranked(found: list[tuple[Model, float]]) -> list[tuple[Model, float]]:
        """The best first; of equals the one that was tried first."""
        return sorted(found, key=lambda pair: pair[1])

    def with_oversized(self, model: Model) -> Model:
        """What becomes of a write larger than the buffer: of the two ways the one that fits better."""
        if not model.write_buffer_bytes:
            return model
        ways = [replace(model, oversized=way) for way in ("through", "stream")]
        return min(ways, key=lambda model: self.error(model, self.clean))

    def overwriting(self, models: Sequence[Model]) -> Model:
        """Fits spare space, blocks, erases and the schedule of cleaning to what overwriting showed."""
        first = models[0]
        # Blocks with pages at home have logs for a share of all blocks, and use no other spare space.
        spares = (0.11, 0.2) if first.scheme in ALIKE else _SPARES
        best, error = self.least(
            replace(first, pages_per_block=pages, spare=spare)
            for pages in self.structures.block_pages(first)
            for spare in spares
        )
        rows = best.pages_per_block * best.page_bytes * best.units
        for model in models:
            # Blocks are told once; those of another structure hold as many bytes.
            pages = max(round(rows / (model.page_bytes * model.units)), 2)
            like = replace(model, pages_per_block=pages)
            # What an SLC cache does, cleaning in steps may do as well: both are varied together.
            schedules = SCHEDULES if model.scheme in STEPWISE else SCHEDULES[:1]
            if model is not first and self.late:
                break
            trial, there = self.least(
                replace(like, schedule=schedule, spare=best.spare) for schedule in schedules
            )
            if there < error:
                best, error = trial, there
        if best.scheme in STEPWISE:
            return self.scheduled(best)
        if best.scheme not in ALIKE:
            best, _ = self.scan(best, "spare", self.used)
        return self.descend(best, ("erase_ns", "spare"), self.used, 5)[0]

    def refined(self, model: Model) -> Model:
        """Climbs from structure to structure as long as one next to the best fits better."""
        both = (*self.clean, *self.used)
        error = self.error(model, both)
        while not self.late and error > _EXACT:
            before = error
            fields = vars(model)
            found: list[tuple[str, Model, float]] = []
            for kind, near in neighbours(model, self.structures):
                if self.late:
                    return model
                found.append((kind, near, self.error(near, both)))
            found.sort(key=lambda row: row[2])
            # What is better as it stands is taken together as far as it stays so.
            for _, near, there in found:
                if there >= _BETTER * before or self.late:
                    break
                changes = {name: to for name, to in vars(near).items() if to != fields[name]}
                trial = replace(model, **changes)
                there = self.error(trial, both) if trial != near else there
                if there < _BETTER * error:
                    model, error = trial, there
            model, error = self.descend(model, _ALL, both, 2)
            if error < _BETTER * before:
                self.tried.append((name_of(model), error))
                continue
            # Else numbers may have hidden it: the best of each kind gets numbers of its own.
            kinds = {kind: near for kind, near, _ in reversed(found)}
            likely = sorted(kinds.values(), key=[near for _, near, _ in found].index)
            likely += [near for _, near, _ in found[:_NEAR] if near not in likely]
            for near in likely:
                if self.late:
                    break
                trial, there = self.descend(near, _ALL, both, 2)
                if there < _BETTER * error:
                    model, error = trial, there
                    self.tried.append((name_of(model), error))
                    break
            else:
                break
        return model

    def least(self, models: Iterable[Model]) -> tuple[Model, float]:
        """The model that overwriting fits best, as it stands."""
        return self.ranked([(model, self.error(model, self.used)) for model in models])[0]

    def scheduled(self, model: Model) -> Model:
        """When it cleans: numbers are fitted to a part of the patterns, the others judge."""
        found = []
        for schedule in SCHEDULES:
            trials = [
                replace(model, schedule=schedule, spare=model.spare * factor)
                for factor in (0.75, 1.0, 1.35)
            ]
            trials += [
                replace(model, schedule=schedule, slc_share=share) for share in _shares(model)
            ]
            found.append(self.least(trials))
        judged: list[tuple[Model, float]] = []
        for trial, error in self.ranked(found)[:_SCHEDULES]:
            if judged and (self.late or error > 2 * judged[0][1]):
                break
            self.judges = False
            fits, _ = self.scan(trial, "spare", self.used)
            fits, _ = self.descend(fits, ("erase_ns", "spare", "program_ns"), self.used, 3)
            if fits.unit_bytes:
                rams = [replace(fits, ram_programs=count) for count in _RAM_PROGRAMS]
                fits, _ = self.least(rams)
            self.judges = True
            judged.append((fits, self.error(fits, self.used)))
            self.judges = None
            self.tried.append((name_of(fits), judged[-1][1]))
        return self.ranked(judged)[0][0]

    def result(
        self, model: Model, error: float, played: Sequence[Played], stopped: str = ""
    ) -> Fit:
        about = (
            f"Twin of {self.info.name}: structure as probed, numbers fitted to {len(self.calibration.measured)}"
            f" patterns{'; ' if stopped else ''}{stopped}."
        )
        ssd = model.ssd("twin", about, self.calibration.capacity_bytes)
        residuals = [
            Residual(pattern, kind, level, drive, twin, twin / max(drive, 1.0))
            for wanted, found in played
            for pattern, kind, level, drive, twin, _, _ in gaps_between(wanted, found)
        ]
        tried = tuple(self.tried)
        return Fit(ssd, model, tuple(residuals), error, tried, self.evaluations, stopped)
