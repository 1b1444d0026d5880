"""Structures that a fit tries: what probes found is built in, what they did not find is varied.

Numbers begin at what closed forms of single patterns give.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import product

import numpy as np

from flashwright.drive.findings import Finding
from flashwright.target.arrays import KIB, MIB
from flashwright.twin.calibration import Calibration, Measured
from flashwright.twin.closed_forms import closed
from flashwright.twin.model import STEPWISE, Model, layouts_of
from flashwright.twin.patterns import number, word

__all__ = ["BITS", "LOG_BLOCK_SCHEMES", "Structures"]

# Log-block schemes with pages at home in their block (algorithms.md, sections 2.4, 2.5, 2.7); the superblock scheme
# (2.6) also reads spare areas to find a page.
LOG_BLOCK_SCHEMES = ("bast", "fast", "last")

# Pages of a block to try where the clustered block is not known: those that chips have had.
_BLOCK_PAGES = (32, 64, 128, 256, 512)
# Blocks that a plane has, where a program holds what is not known: some hundreds to two thousand, whatever they hold.
_BLOCK_ROWS = (400, 200, 800, 100, 50)

# Buffers to try where none was found and none was found absent, bytes. Chosen: from the smallest that holds a request
# of a common size to what a drive's RAM has to spare.
_BUFFERS = (128 * KIB, MIB, 8 * MIB, 64 * MIB)

# Structures that reads are played on, of those that closed forms rank. Chosen: seconds of trials.
_LIKELIEST = 16
# The same where sizes of what the map is written in are tried with each.
_LIKELIEST_MAPS = 3

# Mapping units in a program, to try. Derived: chips sense up to four planes of 16 KiB together.
_UNITS_IN_PROGRAM = (1, 2, 4, 8, 16)
# The largest program of several units, bytes.
_PROGRAM_MOST = 256 * KIB

# Pages of a cell and planes that one program writes.
SHOTS = ((1, 1), (1, 2), (1, 4), (2, 1), (3, 1), (3, 2), (3, 4), (4, 1))

# What one program writes where units go from die to die, bytes, to begin with: pages of chips, of one or of several at
# once.
_PROGRAMS = tuple(size * KIB for size in (8, 16, 24, 32, 48, 64, 96, 128))
# Programs of each unit that RAM holds, to begin with. Derived: one for each open block of the host, of cleaning and of
# the map, and some in flight.
_RAM_PROGRAMS = (6, 32)

# Time of a write with its flush over that of a read, below which it ends in RAM. Chosen.
_CLEARLY = 0.8
# The same up to which it may end there. Chosen: a program takes longer than a read.
_POSSIBLY = 1.6

# Time of the same read again over that of a read, below which it is answered from RAM. Chosen.
_HIT = 0.3
# The same up to which it finds its piece of the map there. Chosen.
_AGAIN = 0.85

# The 90th percentile of reads over their 10th, above which they are of two kinds. Derived: a read that loads its piece
# of the map takes twice as long as one that does not.
_TWO_KINDS = 1.5
# The same above which reads wait for something else than a map. Chosen.
_OTHER_WAITS = 3.0
# Share of the map in RAM where nothing tells it. Chosen: the scan of shares in RAM corrects it.
_MAP_SHARE = 0.15

# Shares of the map in RAM that reads are held against, beside what times tell.
_MAP_SHARES = (0.03, 0.1, 0.3, 0.6)

# Time of a write over that of one with its flush, below which a buffer takes it. Chosen: half.
_BUFFERED = 0.5

# Share of the flash that a fixed SLC cache takes where nothing tells its size: three per cent of a drive of three bits
# a cell.
_FIXED = 0.09
# The same of a dynamic one: half of what is free.
_DYNAMIC = 0.45

# How many times as fast a cell with one bit is programmed, where nothing tells it.
_SLC_PROGRAMS = 4.0
# The same of a read.
_SLC_READS = 2.0
BITS = (3, 4, 2)
"""Bits of a cell outside the cache, the commonest first."""


class Structures:
    """The models that a fit starts from, by the findings and the calibration of a drive."""

    def __init__(
        self,
        findings: Mapping[str, Finding],
        calibration: Calibration,
        reads: Sequence[Measured],
    ) -> None:
        self.findings, self.calibration, self.reads = findings, calibration, reads

    def loading(self) -> list[Model]:
        """Models whose map is loaded on demand, if :meth:`models` has none."""
        if "dftl" in self.schemes() or word(self.findings, "mapping") == "log-block":
            return []
        return self.models(["dftl"])

    def models(self, schemes: Sequence[str] = ()) -> list[Model]:
        """What was found, and variants of what was not; of many the likeliest by closed forms.

        Parameters
        ----------
        schemes : sequence of str, optional
            Translation layers, if not those that reads suggest.
        """
        units = number(self.findings, "parallel-units")
        layouts = layouts_of(int(units)) if units else layouts_of(None)
        made = []
        for scheme in schemes or self.schemes():
            likes = [
                replace(shape, scheme=scheme, channels=channels, dies=dies)
                for shape in self.shapes()
                for channels, dies in layouts
                if scheme in STEPWISE or not shape.unit_bytes
            ]
            if scheme in STEPWISE:
                found = [
                    self.by_closed_form(like, depth) for like in likes for depth in self.depths()
                ]
                found.sort(key=lambda pair: pair[0])
                for kind in product((False, True), ("block", "drive")):
                    # Of those that are sensed alike on the same units the best stands for all.
                    best_by_layout: dict[tuple[int, ...], Model] = {}
                    for _, m in found:
                        if (bool(m.unit_bytes), m.superblock) == kind:
                            sensed = m.page_bytes // (m.shot * m.planes)
                            best_by_layout.setdefault(
                                (m.channels, m.dies, sensed, m.queue_depth), m
                            )
                    likely = _LIKELIEST if scheme == "page" else _LIKELIEST // 2
                    made += self.with_maps([*best_by_layout.values()][:likely])
                if len(found) > _LIKELIEST:
                    continue
            made += [model for like in likes for model in self.started(like)]
        return made

    def by_closed_form(self, model: Model, queue_depth: int) -> tuple[float, Model]:
        """A structure with the numbers by which single reads come nearest, and how near that is."""
        like = replace(self.with_start(model), queue_depth=queue_depth)
        like = replace(like, pages_per_block=self.block_pages(like)[0])
        hits = self.hits if like.scheme == "dftl" else 1.0
        form = closed(like, self.reads, like.noise, hits)
        # Where nothing shows a number it may be anything: not so small that no step leads away from it.
        started = replace(
            like,
            read_overhead_ns=max(form.overhead_ns, 1e3),
            read_ns=max(form.read_ns, 4e3),
            transfer_ns=max(form.transfer_ns, 1e3),
            rate=min(max(form.rate, 20e6), 8e9),
        )
        return form.error, started

    def with_maps(self, models: Sequence[Model]) -> list[Model]:
        """The models with what may be in RAM of a map that they load, and with the size of its pages.

        A page of the map is as large as a program. Where units go from die to die nothing else of reads shows that.
        """
        if not models or models[0].scheme != "dftl":
            return list(models)
        first = models[0]
        if first.unit_bytes and first.superblock == "block":
            likely = models[: _LIKELIEST_MAPS * len(self.depths())]
            models = [other for m in likely for other in self.programs(m)]
        if number(self.findings, "map-reach"):
            return list(models)
        return [
            replace(model, map_share=share)
            for model in models
            for share in (model.map_share, *_MAP_SHARES)
        ]

    def started(self, model: Model) -> list[Model]:
        """A structure with its queue depths and starting values."""
        like = self.with_start(model)
        like = replace(like, pages_per_block=self.block_pages(like)[0])
        if like.scheme == "superblock":
            # A read is a look-up of one to three spare areas first.
            like = replace(like, read_ns=like.read_ns / 2, look_up_ns=like.read_ns / 4)
        # Of what a read of one unit takes.
        carried = (like.unit_bytes or like.page_bytes) / like.page_bytes
        flash = like.read_ns + like.transfer_ns * carried
        # Where dies share a bus, and where a look-up senses without a transfer, the way from one end of a
        # page's split between array and bus to the other is not downhill.
        shares = (0.2, 0.7) if like.dies > 1 or like.scheme == "superblock" else (0.3,)
        return [
            replace(
                like,
                queue_depth=depth,
                read_ns=(1 - share) * flash,
                transfer_ns=share * flash / carried,
            )
            for depth in self.depths()
            for share in shares
        ]

    def shapes(self) -> list[Model]:
        """Pages, or units and what is programmed together."""
        page = number(self.findings, "clustered-page")
        likely, possible = self.survives
        made = []
        if not likely:
            sizes = [int(page)] if page else self.pages()
            made += [
                Model(size, 64, rewrites=bool(page), superblock=way)
                for size in sizes
                for way in (("block", "drive") if self.loads_map else ("block",))
            ]
        if possible:
            units = [int(page)] if page else self.units()
            # Units that go from die to die are sensed one by one, whatever a program gathers.
            gathered = [Model(unit, 64, unit_bytes=unit) for unit in units]
            # In a superblock data stay on a die until a program is full, so that reads show what one writes.
            gathered += [
                Model(
                    unit * count * shot * planes,
                    64,
                    unit_bytes=unit,
                    shot=shot,
                    planes=planes,
                    superblock="drive",
                )
                for unit in units
                for count in _UNITS_IN_PROGRAM
                if unit * count <= _PROGRAM_MOST
                for shot, planes in SHOTS
            ]
            made += [model for model in gathered if self.agrees(model)] or gathered
        return made

    def agrees(self, model: Model) -> bool:
        """Whether what was found of programs and stripes is this model's."""
        stripe, units = (number(self.findings, name) for name in ("stripe", "parallel-units"))
        program = number(self.findings, "program-unit")
        together = model.superblock == "drive"
        if stripe and units and units > 1:
            # Either a program or what is sensed of it may show as the part of a unit.
            sensed = model.page_bytes // (model.shot * model.planes)
            stays = (model.page_bytes, sensed) if together else (model.unit_bytes,)
            if stripe / units not in stays:
                return False
        return not program or not together or program == model.page_bytes

    @cached_property
    def survives(self) -> tuple[bool, bool]:
        """Whether writes clearly, and whether they possibly end in RAM that outlives a loss of power.

        No flush then waits for a program, which takes longer than a read. A map that is loaded first can hide that, and
        so can one that a write has to make room for.
        """
        read = self.calibration["read-block"].levels["read"].p50_ns
        written = self.calibration["write-unit-flush-sequential"].levels
        whole = written["write"].p50_ns + (written["flush"].p10_ns if "flush" in written else 0.0)
        return whole < _CLEARLY * read, whole < _POSSIBLY * read or self.loads_map

    @cached_property
    def loads_map(self) -> bool:
        """Whether some reads may load their part of the map first: times of two kinds, or the same again is faster."""
        if word(self.findings, "mapping") == "log-block":
            return False
        two_kinds, again = self._signs_of_loading
        found = number(self.findings, "map-reach") is not None
        return found or (again < _AGAIN and (two_kinds or again > _HIT))

    @property
    def surely_loads_map(self) -> bool:
        """Whether no map that is wholly in RAM needs to be tried."""
        two_kinds, again = self._signs_of_loading
        return self.loads_map and two_kinds and again < _AGAIN

    @cached_property
    def _signs_of_loading(self) -> tuple[bool, float]:
        return _signs_of_loading(self.calibration)

    @cached_property
    def hits(self) -> float:
        """Share of reads that find their piece of the map."""
        return _hits_of(self.calibration)

    def schemes(self) -> list[str]:
        """Translation layers that reads tell apart: where pages lie, and what a look-up costs."""
        found = word(self.findings, "mapping")
        page = ["page", *["dftl"] * self.loads_map][self.surely_loads_map :]
        logs = [LOG_BLOCK_SCHEMES[0], "superblock"]
        return {"page": page, "log-block": logs}.get(found or "", [*page, *logs])

    def pages(self) -> list[int]:
        """Clustered pages to try where it is not known."""
        stripe = number(self.findings, "stripe")
        units = number(self.findings, "parallel-units")
        block = self.calibration.block_bytes
        if stripe:
            sizes = {int(stripe), int(stripe / (units or 1))}
        else:
            sizes = {k * KIB for k in (2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256)}
        return sorted(size for size in sizes if size and size % block == 0)

    def units(self) -> list[int]:
        """Mapping units to try where RAM that gathers them hides what a part of one costs."""
        block = self.calibration.block_bytes
        return [size for size in (4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB) if size % block == 0]

    def depths(self) -> list[int]:
        """Queue depths to try: 32, unless requests side by side never helped."""
        alone = self.calibration["read-block"].bandwidth
        deep = self.calibration["read-block-16-deep"].bandwidth
        return [32] if deep > 1.3 * alone else [1, 32]

    def with_start(self, model: Model) -> Model:
        """The same structure, with closed-form starting values and what was found of buffers."""
        cal, block = self.calibration, self.calibration.block_bytes
        # Whether a read finds its part of the map spreads more than noise; the same again does find it.
        names = ["read-block-again"]
        if model.scheme != "dftl":
            names += ["read-block", "read-1-units"]
        spread = min(float(np.median([cal[name].spread for name in names])), 0.15)
        # Noise n lengthens by 2n in the mean and spreads by n.
        noise = max(spread / (1 - 2 * spread), 1e-3)
        stretch = 1 + 2 * noise

        def p50(name: str, kind: str = "read") -> float:
            return cal[name].levels[kind].p50_ns / stretch

        alone, again, again_64 = (
            p50(name) for name in ("read-block", "read-block-again", "read-64k-again")
        )
        loads = model.scheme == "dftl"
        hit = again < (_HIT if loads else 0.7) * alone
        overhead = again if hit else 0.15 * (again if loads else alone)
        rate = 1.3 * max(m.bandwidth for m in cal.measured)
        if again_64 < 0.7 * p50("read-64k") and again_64 > overhead:
            rate = max((64 * KIB - block) / (again_64 - overhead) * 1e9, rate / 1.3)
        flash = max(alone - overhead, 2e3)
        if loads:
            # A miss reads flash twice.
            flash = flash / 2 if hit else max(again - overhead, 2e3)
        written = cal["write-unit-flush-sequential"].levels
        whole = written["write"].p50_ns + (written["flush"].p10_ns if "flush" in written else 0.0)
        overhead_write = max(p50("write-few", "write") - block / rate * 1e9, 1e3)
        if self.open("write-buffer") or not number(self.findings, "write-buffer"):
            overhead_write = min(overhead_write, overhead)
        program = max(
            whole / stretch - overhead_write - 0.4 * flash - cal.unit_bytes / rate * 1e9, 20e3
        )
        if model.unit_bytes:
            # RAM hides single programs; a long write shows what all of them carry.
            lasting = cal["write-1024k-long"].bandwidth
            program = max(model.units * model.page_bytes / lasting * 1e9 - 0.3 * flash, 20e3)
        read_buffer = int(number(self.findings, "read-buffer") or 0)
        reach = number(self.findings, "map-reach")
        share = reach / cal.capacity_bytes if reach else self.hits
        if loads and read_buffer and not hit:
            # What was taken for a buffer is the map in RAM.
            share, read_buffer = read_buffer / cal.capacity_bytes, 0
        if hit and self.open("read-buffer"):
            read_buffer = _BUFFERS[1]
        write_buffer = 0 if model.unit_bytes else int(number(self.findings, "write-buffer") or 0)
        prefetch = 0
        if word(self.findings, "prefetch") == "yes" and read_buffer:
            prefetch = min(int(number(self.findings, "prefetch-size") or 128 * KIB), read_buffer)
        return replace(
            model,
            map_share=float(np.clip(share, 0.005, 1.0)),
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
            transfer_ns=0.3 * flash * model.page_bytes / (model.unit_bytes or model.page_bytes),
            program_ns=program,
        )

    def write_variants(self, model: Model) -> list[Model]:
        """Schemes, blocks, SLC caches, and what of the buffer is not known."""
        # Reads do not tell these apart.
        schemes = LOG_BLOCK_SCHEMES if model.scheme in LOG_BLOCK_SCHEMES else (model.scheme,)
        made = [replace(model, scheme=scheme) for scheme in schemes]
        if model.unit_bytes:
            if model.superblock == "block" and model.scheme != "dftl":
                made = self.programs(model)
            made = [replace(m, ram_programs=count) for m in made for count in _RAM_PROGRAMS]
        else:
            if number(self.findings, "clustered-page") is None:
                # Either parts of pages cost nothing more, or it could not be told.
                made += [replace(m, rewrites=True) for m in made]
            if self.open("write-buffer"):
                sizes = _BUFFERS if self.buffers else (0,)
                made = [replace(m, write_buffer_bytes=size) for m in made for size in sizes]
            if word(self.findings, "write-buffer-drain") is None:
                made += [replace(m, drain="eager") for m in made if m.write_buffer_bytes]
            if word(self.findings, "buffer-kind") is None:
                made += [replace(m, kind="cache") for m in made if m.write_buffer_bytes]
        # Where writes go while a cache is full shows in overwriting.
        return [
            cached for m in made for cached in self.caches(m) if cached.slc_full == Model.slc_full
        ]

    def programs(self, model: Model) -> list[Model]:
        """What one program writes, where units go from die to die: it shows only where RAM is full."""
        found = number(self.findings, "program-unit")
        sizes = [int(found)] if found else [size for size in _PROGRAMS if size >= model.unit_bytes]
        return [
            replace(
                model,
                page_bytes=size,
                pages_per_block=max(model.pages_per_block * model.page_bytes // size, 2),
                transfer_ns=model.transfer_ns * size / model.page_bytes,
                program_ns=model.program_ns * size / model.page_bytes,
            )
            for size in sizes
            if size % model.unit_bytes == 0
        ] or [model]

    @cached_property
    def buffers(self) -> bool:
        """Whether a few writes end long before their flush would."""
        few = self.calibration["write-few"].levels["write"].p50_ns
        written = self.calibration["write-unit-flush-sequential"].levels
        whole = written["write"].p50_ns + (written["flush"].p10_ns if "flush" in written else 0.0)
        return few < _BUFFERED * whole

    def caches(self, model: Model) -> list[Model]:
        """The model with each SLC cache that it may have."""
        finding = self.findings.get("slc-cache")
        if model.scheme != "page" or (finding is not None and finding.verdict == "absent"):
            return [model]
        size, kind = number(self.findings, "slc-cache"), word(self.findings, "slc-cache-kind")
        ratio = number(self.findings, "slc-cache-ratio") or _SLC_PROGRAMS
        idle = number(self.findings, "idle-before-folding")
        made = [] if size else [model]
        for each in ("fixed", "dynamic") if kind is None else (kind,):
            for shot in self.cells(model):
                bits = max(shot, BITS[0]) if shot == 1 else shot
                share = _FIXED if each == "fixed" else _DYNAMIC
                if size:
                    # Cells of so many bits hold so many times as much.
                    share = bits * size / (self.calibration.capacity_bytes * (1 + model.spare))
                made += [
                    replace(
                        model,
                        slc=each,
                        shot=shot,
                        bits=bits,
                        slc_share=float(np.clip(share, 0.01, 0.5 if each == "fixed" else 1.0)),
                        slc_read_ns=model.read_ns / _SLC_READS,
                        program_ns=program_ns,
                        slc_program_ns=program_ns / ratio / shot,
                        slc_full=full,
                        fold_after_ns=idle or model.fold_after_ns,
                    )
                    for full in ("direct", "fold")
                    # What a program took was measured in the cache, or beyond it.
                    for program_ns in (model.program_ns * ratio, model.program_ns)
                ]
        return made

    def cells(self, model: Model) -> list[int]:
        """Pages of a cell that one program may write, where nothing but an SLC cache shows them.

        Units that go from die to die are sensed one by one, and RAM gathers what a program writes; but a page of the
        cache is programmed by itself.
        """
        if not model.unit_bytes or model.superblock != "block" or model.planes > 1:
            return [model.shot]
        pages = [shot for shot in BITS if model.page_bytes % (shot * model.unit_bytes) == 0]
        return [1, *pages]

    def open(self, parameter: str) -> bool:
        """Whether a parameter was neither found nor found to be absent."""
        finding = self.findings.get(parameter)
        return finding is None or finding.verdict == "unknown"

    def block_pages(self, model: Model) -> list[int]:
        """Pages of a block to try, the likeliest first."""
        block = number(self.findings, "clustered-block")
        if block:
            # Page maps stripe over all units, so that a clustered block has a block of each.
            together = model.page_bytes * (model.units if model.scheme in ("page", "dftl") else 1)
            return [max(round(block / together), 2)]
        if model.unit_bytes:
            row = model.page_bytes * model.units
            sizes = [self.calibration.capacity_bytes / rows for rows in _BLOCK_ROWS]
            return list(dict.fromkeys(max(round(size / row), 4) for size in sizes))
        return [128, *(pages for pages in _BLOCK_PAGES if pages != 128)]


def _signs_of_loading(calibration: Calibration) -> tuple[bool, float]:
    """Whether reads are of two kinds, and the share of its time that the same read takes again.

    Of the slower kind, if there are two.

    Parameters
    ----------
    calibration : Calibration
        What was measured of a drive.
    """
    read = calibration["read-block"].levels["read"]
    again = calibration["read-block-again"].levels["read"]
    if _TWO_KINDS < read.p90_ns / read.p10_ns < _OTHER_WAITS:
        return True, again.p90_ns / read.p90_ns
    return False, again.p50_ns / read.p50_ns


def _hits_of(calibration: Calibration) -> float:
    """Share of reads that find their piece of the map, by where the mean lies between the two kinds.

    Parameters
    ----------
    calibration : Calibration
        What was measured of a drive.
    """
    read = calibration["read-block"].levels["read"]
    if read.p90_ns < _TWO_KINDS * read.p10_ns:
        return _MAP_SHARE
    # What more than half of the reads do is their median; the rarer kind shows at the end.
    loads = read.p50_ns > math.sqrt(read.p10_ns * read.p90_ns)
    found, loaded = (read.p10_ns, read.p50_ns) if loads else (read.p50_ns, read.p90_ns)
    return float(np.clip((loaded - read.mean_ns) / (loaded - found), 0.01, 0.99))
