"""Trials of candidates within a budget: played, compared with what was measured, and descended to the least error."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from flashwright.drive.findings import Finding
from flashwright.errors import FlashwrightError
from flashwright.target.arrays import Array
from flashwright.target.target import Deadline, OutOfTimeError, Target
from flashwright.twin.calibration import Calibration, Measured, play
from flashwright.twin.model import HUBER, Drive, Model, gaps_between, moved, robust
from flashwright.twin.patterns import Pattern
from flashwright.twin.structures import Structures

__all__ = ["ENOUGH", "TRIALS", "Played", "Trials"]

# How many times as much a level of the clean drive counts as one of overwriting. Chosen: cleaning strikes by chance.
_PRECISION = 3.0

# Trials of a fit at most. Chosen: few fits want more.
TRIALS = 4000

# An error at which a fit is done. Derived: medians of some hundred latencies vary by as much.
ENOUGH = 0.004

# The step of a difference quotient, in logarithms.
_STEP = 0.04

# Longer steps of numbers that show only where a drive cleans, by chance or in whole blocks.
_STEPS = {"erase_ns": 0.15, "spare": 0.12, "map_share": 0.1, "slc_share": 0.1}

# Bytes of a drive that reads are played on, at least. Chosen: room for random places to differ, and for a map that is
# loaded by parts; most of the time of a trial goes into the reads, not into the fill.
_PART_BYTES = 1 << 30
# The same in rows of blocks, of which some are spare.
_PART_ROWS = 64

# The longest step of a number, in logarithms. Chosen: a factor of two.
_REACH = 0.7

# What was measured of a drive, and the same of a model.
Played: TypeAlias = tuple[Sequence[Measured], tuple[Measured, ...]]


@dataclass(frozen=True)
class Best:
    """What stands if time is up."""

    model: Model
    rank: int
    """Of the step that it comes from."""
    error: float
    played: list[Played]


class Trials:
    """Plays candidates within a budget, descends to their best numbers, and keeps the best model so far."""

    def __init__(
        self,
        info: Drive,
        findings: Mapping[str, Finding],
        calibration: Calibration,
        seed: int,
        progress: Callable[[float], None],
        deadline: Deadline,
        processor_s: float | None = None,
        most: int = TRIALS,
    ) -> None:
        self.deadline = deadline
        self.most = most
        self.until = 1.0
        """Share of the trials and of the time after which no further structure is begun."""
        self.slopes: tuple[tuple[str, ...], Array] | None = None
        """Of the last descent over all patterns: its numbers, and what a step of each does to the residuals."""
        self.time_s = deadline.left_s
        self.processor_s = math.inf if processor_s is None else processor_s
        self.began_s = time.process_time()
        self.best: Best | None = None
        self.info, self.findings, self.calibration = info, findings, calibration
        self.seed, self.progress = seed, progress
        self.tried: list[tuple[str, float]] = []
        self.evaluations = 0
        clean = calibration.stage("clean")
        self.clean, self.used = clean, calibration.stage("used")
        writes = [at for at, m in enumerate(clean) if m.pattern.reads < 1]
        self.reads = clean[: writes[0]] if writes else clean
        self.both = (*self.clean, *self.used)
        self.structures = Structures(findings, calibration, self.reads)

    @property
    def late(self) -> bool:
        """Whether no further structure should be begun."""
        left, whole = self.deadline.left_s, self.time_s
        passed = 0.0 if left is None or not whole else 1 - left / whole
        used = self.used_s / self.processor_s
        return max(passed, used, self.evaluations / self.most) >= self.until

    @property
    def used_s(self) -> float:
        """Processor time of the fit so far, seconds."""
        return time.process_time() - self.began_s

    def watch(self) -> None:
        """End the fit if its time or its budget is used up."""
        self.deadline()
        if self.used_s >= self.processor_s:
            raise OutOfTimeError

    def play(self, model: Model, wanted: Sequence[Measured]) -> tuple[Measured, ...] | None:
        """The same patterns on a candidate; None if it can't be built or can't take them.

        Random reads take as long on a small drive as on a large one, so reads alone are played on a part of it.
        """
        self.watch()
        if self.evaluations >= self.most:
            raise OutOfTimeError
        self.evaluations += 1
        chosen: list[Pattern] = [m.pattern for m in wanted]
        capacity = self.calibration.capacity_bytes
        if all(pattern.reads == 1 for pattern in chosen):
            row = model.page_bytes * model.pages_per_block * model.units
            part = max(_PART_BYTES, 8 * model.read_buffer_bytes, _PART_ROWS * row)
            capacity = min(
                part // self.calibration.block_bytes * self.calibration.block_bytes, capacity
            )
        try:
            ssd = model.ssd("candidate", "", capacity)
            with Target(ssd, seed=self.seed) as target:
                target.watch = self.watch
                return play(
                    target,
                    chosen,
                    capacity_bytes=capacity,
                    block_bytes=self.calibration.block_bytes,
                )
        except OutOfTimeError:
            raise
        except FlashwrightError:
            return None

    def residuals(self, model: Model, wanted: Sequence[Measured]) -> Array:
        """Weighted logarithms of ratios, in a fixed order."""
        parts = []
        played: list[Played] = []
        both = len({m.pattern.stage for m in wanted}) == 2
        for stage in ("clean", "used"):
            of_stage = [m for m in wanted if m.pattern.stage == stage]
            if of_stage:
                found = self.play(model, of_stage)
                if found is not None:
                    played.append((of_stage, found))
                factor = _PRECISION if both and stage == "clean" else 1.0
                gaps = gaps_between(of_stage, found)
                parts.append(np.array([factor * weight * gap for *_, weight, gap in gaps]))
        residuals = np.concatenate(parts)
        complete = sum(len(of_stage) for of_stage, _ in played) == len(wanted)
        if complete:
            self.remember(model, wanted, played, robust(residuals))
        return residuals

    def remember(
        self,
        model: Model,
        wanted: Sequence[Measured],
        played: list[Played],
        error: float,
    ) -> None:
        """Keep the model that stands if time is up: one of a later step, or a better one of the same."""
        steps = (self.reads, self.clean, self.used, self.both)
        rank = next(at for at, step in enumerate(steps) if [*step] == [*wanted])
        if self.best is None or (-rank, error) < (-self.best.rank, self.best.error):
            self.best = Best(model, rank, error, played)

    def error(self, model: Model, wanted: Sequence[Measured]) -> float:
        """One figure of the residuals."""
        return robust(self.residuals(model, wanted))

    def descend(
        self, model: Model, names: Sequence[str], wanted: Sequence[Measured], rounds: int
    ) -> tuple[Model, float]:
        """Damped Gauss-Newton over the logarithms of some numbers."""
        if model.scheme == "superblock":
            names = (*names, "look_up_ns")
        if model.scheme == "dftl":
            # Whether a read loads its part of the map spreads times far more than noise does.
            names = (*(name for name in names if name != "noise"), "map_share")
        if model.slc != "none" and "program_ns" in names:
            names = (*names, "slc_read_ns", "slc_program_ns", "slc_share")
        at = self.residuals(model, wanted)
        error = robust(at)
        damping = 0.01
        jacobian: Array | None = None
        fresh = False
        for _ in range(rounds):
            if error < ENOUGH:
                break
            if jacobian is None:
                columns = [
                    (self.residuals(moved(model, {name: step}), wanted) - at) / step
                    for name, step in ((name, _STEPS.get(name, _STEP)) for name in names)
                ]
                jacobian, fresh = np.stack(columns, 1), True
            weights = np.minimum(1.0, HUBER / np.maximum(np.abs(at), 1e-12))
            left = jacobian.T @ (weights[:, None] * jacobian)
            right = -jacobian.T @ (weights * at)
            scale = np.diag(left) + 1e-3
            # A slope that was only carried on is measured anew before the step is shortened for long.
            for _ in range(4 if fresh else 1):
                step = np.linalg.solve(left + damping * np.diag(scale), right)
                # Each by itself: a number that nothing shows must not hold up the others.
                step = np.clip(step, -_REACH, _REACH)
                trial = moved(model, dict(zip(names, step.tolist(), strict=True)))
                there = self.residuals(trial, wanted)
                if robust(there) < error:
                    break
                damping = max(damping, 0.01) * 8
            else:
                if fresh:
                    break
                jacobian = None
                continue
            gain = error - robust(there)
            # Broyden's update: what the step showed of the slopes.
            jacobian += np.outer(there - at - jacobian @ step, step) / max(
                float(step @ step), 1e-12
            )
            model, at, error = trial, there, robust(there)
            damping = max(damping / 4, 1e-3)
            if fresh and gain < 0.01 * error:
                break
            if gain < 0.1 * error:
                jacobian = None
            fresh = False
        if jacobian is not None and len(wanted) == len(self.both):
            self.slopes = tuple(names), jacobian
        return model, error

    def step(self, model: Model, wanted: Sequence[Measured]) -> tuple[Model, float]:
        """One step of the numbers by the slopes of the last descent, which was of a like structure, if it is better."""
        at = self.residuals(model, wanted)
        if self.slopes is None or self.slopes[1].shape[0] != at.size:
            return model, robust(at)
        names, jacobian = self.slopes
        weights = np.minimum(1.0, HUBER / np.maximum(np.abs(at), 1e-12))
        left = jacobian.T @ (weights[:, None] * jacobian)
        damped = left + 0.1 * np.diag(np.diag(left) + 1e-3)
        step = np.clip(np.linalg.solve(damped, -jacobian.T @ (weights * at)), -_REACH, _REACH)
        trial = moved(model, dict(zip(names, step.tolist(), strict=True)))
        there = self.error(trial, wanted)
        return (trial, there) if there < robust(at) else (model, robust(at))

    def scan(self, model: Model, name: str, wanted: Sequence[Measured]) -> tuple[Model, float]:
        """Halves the steps of one number around the best: for what moves in whole blocks and has no slope."""
        best, error = model, self.error(model, wanted)
        for width in (0.24, 0.12, 0.06, 0.03):
            for trial in [moved(best, {name: step}) for step in (-width, width)]:
                there = self.error(trial, wanted)
                if there < error:
                    best, error = trial, there
        return best, error
