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

import numpy as np

from flashwright.blackbox.target import Deadline, OutOfTimeError
from flashwright.blackbox.twin.calibration import Calibration, Measured
from flashwright.blackbox.twin.descent import _ENOUGH, Descent, Played
from flashwright.blackbox.twin.model import (
    Drive,
    Fit,
    Model,
    Residual,
    gaps_between,
    layouts_of,
    name_of,
)
from flashwright.blackbox.twin.patterns import number, word
from flashwright.drive.findings import Finding
from flashwright.errors import TargetError

__all__ = ["fitted"]


KIB, MIB = 1 << 10, 1 << 20


# Log-block schemes with pages at home in their block (algorithms.md, sections 2.4, 2.5, 2.7); the superblock scheme
# (2.6) also reads spare areas to find a page.
_ALIKE = ("bast", "fast", "last")


# Spare space of drives, from consumer to enterprise ones.
_SPARES = (0.05, 0.07, 0.09, 0.12, 0.15, 0.19, 0.24, 0.3)


# Pages of a block that chips have had, for drives of which the clustered block is not known.
_BLOCK_PAGES = (32, 64, 128, 256, 512)


# Buffers to try where none was found and none was found absent; from the smallest that holds a request of a common size
# to what a drive's RAM has to spare.
_BUFFERS = (128 * KIB, MIB, 8 * MIB, 64 * MIB)


def fitted(
    info: Drive,
    findings: Mapping[str, Finding],
    calibration: Calibration,
    *,
    seed: int = 1,
    progress: Callable[[float], None] = lambda share: None,
    time_limit: float | None = None,
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
    return _Search(info, findings, calibration, seed, progress, Deadline(time_limit)).run()


# Numbers by stage: what the patterns show. All are logarithms in the descent.
_READS = ("read_ns", "transfer_ns", "rate", "read_overhead_ns", "noise")


_ALL = (*_READS, "program_ns", "write_overhead_ns", "erase_ns", "spare")


# What cleaning takes.
_COSTS = ("erase_ns", "program_ns", "transfer_ns", "read_ns")


class _Search(Descent):
    """Tries structures, and of each the numbers that fit best."""

    def run(self) -> Fit:
        try:
            return self.searched()
        except OutOfTimeError:
            if self.best is None:
                raise
        best = self.best
        self.tried.append((name_of(best.model), best.error))
        stopped = f"fit stopped by the time limit after {self.evaluations:,} of at most {self.most:,} trials"
        return self.result(best.model, best.error, best.played, stopped)

    def searched(self) -> Fit:
        # What reads show: units and buses, queue, link.
        chosen: list[Model] = []
        starts = self.structures()
        self.most = self.trials(starts)
        for scheme in self.schemes():
            alike = [model for model in starts if model.scheme == scheme]
            best = self.compare(alike, _READS, self.reads, ((1, 10), (6, 6)))
            # Of one structure from several starts the first is the best.
            chosen += {name_of(model): model for model in reversed(best)}.values()
        least = min(self.error(model, self.reads) for model in chosen)
        near = max(2 * least, _ENOUGH)
        chosen = [model for model in chosen if self.error(model, self.reads) <= near]
        self.progress(0.2)
        # What writes into erased space show: translation, buffer, programs.
        variants = [other for model in chosen for other in self.write_variants(model)]
        chosen = self.compare(variants, _ALL, self.clean, ((0, 8), (1, 4)), near=2.0)
        chosen = [self.with_oversized(model) for model in chosen]
        chosen = self.compare(chosen, _ALL, self.clean, ((5, 2),))
        # Merges have chance in them, so near equals are told apart by what has none.
        chosen.sort(key=lambda model: self.error(model, self.reads))
        model = self.with_oversized(chosen[0])  # told better by numbers that fit
        model, _ = self.descend(model, _ALL, self.clean, 4)
        self.progress(0.5)
        # What overwriting shows: spare space, blocks, erases.
        model = self.overwriting(model)
        self.progress(0.8)
        model, _ = self.descend(model, (*_COSTS, "spare"), (*self.clean, *self.used), 5)
        model, error = self.scan(model, "spare", self.used)
        self.tried.append((name_of(model), error))
        self.progress(1.0)
        played: list[Played] = []
        for wanted in (self.clean, self.used):
            found = self.play(model, wanted)
            if found is None:
                raise TargetError(f"{self.info.name}: found no model that takes its calibration")
            played.append((wanted, found))
        return self.result(model, error, played)

    def trials(self, starts: Sequence[Model]) -> int:
        """How many trials the search takes at most."""

        def descent(rounds: int, names: Sequence[str]) -> int:
            # Slopes of each number, one of a look-up, and four tries of a step.
            return 1 + rounds * (len(names) + 1 + 4)

        most, kept, variants = 0, 0, 0
        for scheme in self.schemes():
            alike = [model for model in starts if model.scheme == scheme]
            few = min(len(alike), 10)
            most += len(alike) * descent(1, _READS) + few * descent(6, _READS)
            kept += min(few, 6)
            variants += min(few, 6) * max(
                (len(self.write_variants(model)) for model in alike), default=0
            )
        most += 2 * kept + variants + min(variants, 8) * descent(1, _ALL)
        most += 2 * 4 + 4 * descent(5, _ALL) + 2 * 4 + 2 + descent(4, _ALL)
        most += len(self.block_pages(starts[0])) * len(_SPARES) + 7 + descent(5, ("", ""))
        # The last descent plays both stages, and the end shows what is left.
        return most + 2 * descent(5, (*_COSTS, "spare")) + 7 + 2

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
            found = self.ranked([self.descend(model, names, wanted, count) for model in models])
            # Before the numbers are fitted an error says little; later what is not equal is not followed.
            most = max(found[0][1] * (near if last == 0 else 2.0), _ENOUGH)
            models = [model for model, error in found[:keep] if error <= most]
        self.tried += [(name_of(model), error) for model, error in found]
        return models

    @staticmethod
    def ranked(found: list[tuple[Model, float]]) -> list[tuple[Model, float]]:
        """The best first; of equals the one that was tried first."""
        return sorted(found, key=lambda pair: pair[1])

    def structures(self) -> list[Model]:
        """Models to begin with: what was found, and variants of what was not."""
        units = number(self.findings, "parallel-units")
        layouts = layouts_of(int(units)) if units else layouts_of(None)
        page = number(self.findings, "clustered-page")
        made = []
        for page_bytes in [int(page)] if page else self.pages():
            for channels, dies in layouts:
                base = self.with_start(Model(page_bytes, 64, channels, dies), rewrites=bool(page))
                for scheme in self.schemes():
                    pages = self.block_pages(replace(base, scheme=scheme))[0]
                    like = replace(base, scheme=scheme, pages_per_block=pages)
                    if scheme == "superblock":
                        # A read is a look-up of one to three spare areas first.
                        like = replace(like, read_ns=base.read_ns / 2, look_up_ns=base.read_ns / 4)
                    flash = like.read_ns + like.transfer_ns
                    # Where dies share a bus, and where a look-up senses without a transfer, the way from one end of a
                    # page's split between array and bus to the other is not downhill.
                    shares = (0.2, 0.7) if dies > 1 or scheme == "superblock" else (0.3,)
                    made += [
                        replace(
                            like,
                            queue_depth=depth,
                            read_ns=(1 - share) * flash,
                            transfer_ns=share * flash,
                        )
                        for depth in self.depths()
                        for share in shares
                    ]
        return made

    def schemes(self) -> list[str]:
        """Translation layers that reads tell apart: where pages lie, and what a look-up costs."""
        found = word(self.findings, "mapping")
        return {"page": ["page"], "log-block": [_ALIKE[0], "superblock"]}.get(
            found or "", ["page", _ALIKE[0], "superblock"]
        )

    def pages(self) -> list[int]:
        """Clustered pages to try where it is not known."""
        stripe = number(self.findings, "stripe")
        if stripe:
            return [int(stripe)]
        block = self.calibration.block_bytes
        sizes = [k * KIB for k in (2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256)]
        return [size for size in sizes if size % block == 0]

    def depths(self) -> list[int]:
        """Queue depths to try: 32, unless requests side by side never helped."""
        alone = self.calibration["read-block"].bandwidth
        deep = self.calibration["read-block-16-deep"].bandwidth
        return [32] if deep > 1.3 * alone else [1, 32]

    def with_start(self, model: Model, rewrites: bool) -> Model:
        """The same structure, with closed-form starting values and what was found of buffers."""
        cal, block = self.calibration, self.calibration.block_bytes
        spreads = [m.spread for m in self.reads if m.pattern.depth == 1 and m.spread > 0]
        spread = min(float(np.min(spreads)) if spreads else 0.01, 0.15)
        # Noise n lengthens by 2n in the mean and spreads by n.
        noise = max(spread / (1 - 2 * spread), 1e-3)
        stretch = 1 + 2 * noise

        def p50(name: str, kind: str = "read") -> float:
            return cal[name].levels[kind].p50_ns / stretch

        alone, again, again_64 = (
            p50(name) for name in ("read-block", "read-block-again", "read-64k-again")
        )
        hit = again < 0.7 * alone
        overhead = again if hit else 0.15 * alone
        rate = 1.3 * max(m.bandwidth for m in cal.measured)
        if again_64 < 0.7 * p50("read-64k") and again_64 > overhead:
            rate = max((64 * KIB - block) / (again_64 - overhead) * 1e9, rate / 1.3)
        flash = max(alone - overhead, 2e3)
        written = cal["write-unit-flush-sequential"].levels
        whole = written["write"].p50_ns + (written["flush"].p10_ns if "flush" in written else 0.0)
        overhead_write = max(p50("write-few", "write") - block / rate * 1e9, 1e3)
        if self.open("write-buffer") or not number(self.findings, "write-buffer"):
            overhead_write = min(overhead_write, overhead)
        program = max(
            whole / stretch - overhead_write - 0.4 * flash - cal.unit_bytes / rate * 1e9, 20e3
        )
        read_buffer = int(number(self.findings, "read-buffer") or 0)
        if hit and self.open("read-buffer"):
            read_buffer = _BUFFERS[1]
        write_buffer = int(number(self.findings, "write-buffer") or 0)
        prefetch = 0
        if word(self.findings, "prefetch") == "yes" and read_buffer:
            prefetch = min(int(number(self.findings, "prefetch-size") or 128 * KIB), read_buffer)
        return replace(
            model,
            rewrites=rewrites,
            read_buffer_bytes=read_buffer,
            read_least_bytes=min(int(number(self.findings, "read-buffer-least") or 0), read_buffer),
            prefetch_bytes=prefetch,
            write_buffer_bytes=write_buffer,
            kind="cache" if word(self.findings, "buffer-kind") == "cache" else "fifo",
            drain=word(self.findings, "write-buffer-drain") or "lazy",
            noise=noise,
            rate=rate,
            read_overhead_ns=max(overhead - block / rate * 1e9, 1e3),
            write_overhead_ns=overhead_write,
            read_ns=0.7 * flash,
            transfer_ns=0.3 * flash,
            program_ns=program,
        )

    def write_variants(self, model: Model) -> list[Model]:
        """Schemes, blocks and what of the buffer is not known."""
        # Reads do not tell these apart.
        alike = _ALIKE if model.scheme in _ALIKE else (model.scheme,)
        made = [replace(model, scheme=scheme) for scheme in alike]
        if number(self.findings, "clustered-page") is None:
            # Either parts of pages cost nothing more, or it could not be told.
            made += [replace(m, rewrites=True) for m in made]
        if self.open("write-buffer"):
            made = [replace(m, write_buffer_bytes=size) for m in made for size in (0, *_BUFFERS)]
        if word(self.findings, "write-buffer-drain") is None:
            made += [replace(m, drain="eager") for m in made if m.write_buffer_bytes]
        if word(self.findings, "buffer-kind") is None:
            made += [replace(m, kind="cache") for m in made if m.write_buffer_bytes]
        return made

    def open(self, parameter: str) -> bool:
        """Whether a parameter was neither found nor found to be absent."""
        finding = self.findings.get(parameter)
        return finding is None or finding.verdict == "unknown"

    def with_oversized(self, model: Model) -> Model:
        """What becomes of a write larger than the buffer: of the two ways the one that fits better."""
        if not model.write_buffer_bytes:
            return model
        ways = [replace(model, oversized=way) for way in ("through", "stream")]
        return min(ways, key=lambda model: self.error(model, self.clean))

    def block_pages(self, model: Model) -> list[int]:
        """Pages of a block to try, the likeliest first."""
        block = number(self.findings, "clustered-block")
        if block:
            # Page maps stripe over all units, so that a clustered block has a block of each.
            together = model.page_bytes * (model.units if model.scheme == "page" else 1)
            return [max(round(block / together), 2)]
        return [128, *(pages for pages in _BLOCK_PAGES if pages != 128)]

    def overwriting(self, model: Model) -> Model:
        """Fits spare space, blocks and erases to what overwriting showed."""
        best, error = model, math.inf
        for pages in self.block_pages(model):
            # Blocks with pages at home have logs for a share of all blocks, and use no other spare space.
            spares = (0.11, 0.2) if model.scheme in _ALIKE else _SPARES
            for spare in spares:
                trial = replace(model, pages_per_block=pages, spare=spare)
                there = self.error(trial, self.used)
                if there < error:
                    best, error = trial, there
        if model.scheme not in _ALIKE:
            best, _ = self.scan(best, "spare", self.used)
        best, _ = self.descend(best, ("erase_ns", "spare"), self.used, 5)
        return best

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
