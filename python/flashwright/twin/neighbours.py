"""Structures next to one that was fitted: each differs in one thing, which may explain what its numbers can't.

What probes found stays. How dies choose among operations, what they suspend, how blocks are joined and what a full SLC
cache does show only where many requests meet, so that no probe asks for them. They are tried one by one from the best
structure on: a hill climb.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from flashwright.target.arrays import KIB
from flashwright.twin.model import SCHEDULES, STEPWISE, Model, layouts_of
from flashwright.twin.patterns import number, word
from flashwright.twin.structures import BITS, SHOTS, Structures

__all__ = ["DIE_ORDERS", "SUSPENDS", "further", "neighbours", "orders_of"]

DIE_ORDERS = ("fifo", "by-class")
"""Which operation a die takes next: the values of ``timing.die-order`` that are tried."""
SUSPENDS = ("nothing", "erases", "programs-and-erases")
"""What reads suspend: the values of ``chips.suspends``."""

# What spare space is multiplied by.
_SPARES = (0.8, 0.9, 1.1, 1.25)
# Queue depths to try.
_DEPTHS = (1, 32, 64, 128, 256)
# What sizes are multiplied by.
_FACTORS = (0.5, 0.75, 0.88, 1.14, 1.5, 2.0)
# What a program is multiplied by where its pages do not show: two, three or four pages of a cell.
_PROGRAMS = (0.5, 0.667, 0.75, 1.333, 1.5, 2.0)
# Shares of a transfer that array times take over, where reads alone hardly part the two.
_SHARES = (0.75, 0.4, -0.5)


def neighbours(model: Model, structures: Structures) -> list[tuple[str, Model]]:
    """Models that differ in one thing that no probe found, each with the kind of thing.

    Parameters
    ----------
    model : Model
        What was fitted.
    structures : Structures
        What is known of the drive.
    """
    near: dict[Model, str] = {}

    def add(kind: str, models: Iterable[Model]) -> None:
        for other in models:
            if other != model:
                near.setdefault(other, kind)

    if model.scheme in STEPWISE:
        add("order", orders_of(model))
        add("schedule", (replace(model, schedule=schedule) for schedule in SCHEDULES))
        add("superblock", (replace(model, superblock=way) for way in ("block", "drive")))
        add("slc", _of_caches(model, structures))
        add("program", _of_programs(model, structures))
    if model.unit_bytes:
        counts = [max(round(model.ram_programs * factor), 2) for factor in _FACTORS]
        add("ram", (replace(model, ram_programs=count) for count in counts))
        if number(structures.findings, "clustered-page") is None:
            add("unit", _of_units(model))
    add("split", _of_splits(model))
    add("spare", (replace(model, spare=model.spare * factor) for factor in _SPARES))
    add("queue", (replace(model, queue_depth=depth) for depth in _DEPTHS))
    add("layout", _of_layouts(model, structures))
    add("buffer", _of_buffers(model, structures))
    if number(structures.findings, "clustered-block") is None:
        pages = [max(round(model.pages_per_block * factor), 2) for factor in _FACTORS]
        add("block", (replace(model, pages_per_block=count) for count in pages))
    return [(kind, other) for other, kind in near.items()]


def further(model: Model, structures: Structures) -> list[tuple[str, Model]]:
    """Models that differ in two or three things that explain each other: what a climb tries where it came to rest.

    Parameters
    ----------
    model, structures
        As of :func:`neighbours`.
    """
    if model.scheme not in STEPWISE:
        return []
    cleaning = [
        replace(ordered, schedule=schedule)
        for ordered in orders_of(model)
        for schedule in SCHEDULES
    ]
    caches = [
        replace(cached, slc_share=min(cached.slc_share * factor, 0.95))
        for way in ("block", "drive")
        for cached in structures.caches(replace(model, slc="none", superblock=way))
        for factor in (0.6, 1.0, 1.6, 2.0)
        if cached.slc != "none" or factor == 1
    ]
    layouts = [
        other
        for way in ("block", "drive")
        for laid in _of_layouts(replace(model, superblock=way), structures)
        for other in (laid, *_of_programs(laid, structures))
    ]
    # Spare space is whole blocks, so that larger ones leave room with less of it.
    blocks = [
        replace(model, pages_per_block=max(round(model.pages_per_block * factor), 2), spare=spare)
        for factor in (*_FACTORS, 3.0)
        for spare in (model.spare, *(model.spare * factor for factor in (0.7, 1.4)))
        if number(structures.findings, "clustered-block") is None
    ]
    kinds = (
        ("block and spare", blocks),
        ("cleaning", cleaning),
        ("cache", caches),
        ("layout and program", layouts),
    )
    return [
        (kind, other) for kind, models in kinds for other in dict.fromkeys(models) if other != model
    ]


def orders_of(model: Model) -> Iterator[Model]:
    """The model with each order of operations on a die, and with each that reads suspend."""
    for order in DIE_ORDERS:
        for suspends in SUSPENDS:
            yield replace(model, suspends=suspends, die_order=order)


def _of_caches(model: Model, structures: Structures) -> Iterator[Model]:
    """SLC caches."""
    for cached in structures.caches(replace(model, slc="none")):
        if cached.slc != model.slc:
            yield cached
    if model.slc != "none":
        for full in ("direct", "fold"):
            yield replace(model, slc_full=full)
        for bits in BITS:
            if bits >= model.shot:
                # What it holds may stay, or what it takes of the flash.
                yield replace(model, bits=bits)
                share = min(model.slc_share * bits / model.bits, 0.9)
                yield replace(model, bits=bits, slc_share=share)
        for shot in structures.cells(model):
            scale = model.shot / shot
            yield replace(
                model,
                shot=shot,
                bits=max(shot, model.bits),
                slc_program_ns=model.slc_program_ns * scale,
            )
        if number(structures.findings, "slc-cache") is None:
            for factor in _FACTORS:
                yield replace(model, slc_share=min(model.slc_share * factor, 0.9))


def _of_programs(model: Model, structures: Structures) -> Iterator[Model]:
    """What one program writes and one sense brings; blocks keep their bytes."""
    if not model.unit_bytes:
        return
    sensed = model.page_bytes // (model.shot * model.planes)
    found = number(structures.findings, "program-unit")
    if model.superblock == "block":
        # Units are sensed one by one, so that neither pages nor planes show.
        sizes = [
            round(model.page_bytes * factor / model.unit_bytes) * model.unit_bytes
            for factor in _PROGRAMS
        ]
        yield from (_of_program(model, size, 1, 1) for size in sizes if size and not found)
        return
    for size in (sensed // 2, sensed, 2 * sensed):
        for shot, planes in SHOTS:
            program = size * shot * planes
            if size < model.unit_bytes or (found and program != found):
                continue
            yield _of_program(model, program, shot, planes)


def _of_program(model: Model, program: int, shot: int, planes: int) -> Model:
    """The same with another program; blocks and RAM keep their bytes."""
    scale = program / model.page_bytes
    return replace(
        model,
        page_bytes=program,
        shot=shot,
        planes=planes,
        pages_per_block=max(round(model.pages_per_block / scale), 2),
        ram_programs=max(round(model.ram_programs / scale), 2),
        transfer_ns=model.transfer_ns * scale,
        program_ns=model.program_ns * scale,
    )


def _of_units(model: Model) -> Iterator[Model]:
    """Mapping units, where no probe found theirs."""
    sensed = model.page_bytes // (model.shot * model.planes)
    for unit in (model.unit_bytes // 2, model.unit_bytes * 2):
        if 4 * KIB <= unit <= sensed:
            yield replace(model, unit_bytes=unit)


def _of_splits(model: Model) -> Iterator[Model]:
    """Time moved from the transfer of a page to its sense and program, and back."""
    carried = (model.unit_bytes or model.page_bytes) / model.page_bytes
    for share in _SHARES:
        moved = share * model.transfer_ns
        read, program = model.read_ns + moved * carried, model.program_ns + moved
        if min(read, program) > 1e3:
            yield replace(
                model, transfer_ns=model.transfer_ns - moved, read_ns=read, program_ns=program
            )


def _of_layouts(model: Model, structures: Structures) -> Iterator[Model]:
    """How units lie on buses."""
    known = number(structures.findings, "parallel-units")
    counts = [model.units] if known else [model.units, 2 * model.units, model.units // 2]
    for units in counts:
        for channels, dies in layouts_of(units) if units else ():
            yield replace(model, channels=channels, dies=dies)


def _of_buffers(model: Model, structures: Structures) -> Iterator[Model]:
    """Buffers, as far as their sizes and kinds were not found."""
    findings = structures.findings
    if model.write_buffer_bytes:
        if word(findings, "write-buffer-drain") is None:
            yield from (replace(model, drain=drain) for drain in ("lazy", "eager"))
        if word(findings, "buffer-kind") is None:
            yield from (replace(model, kind=kind) for kind in ("fifo", "cache"))
        yield from (replace(model, oversized=way) for way in ("through", "stream"))
        if structures.open("write-buffer"):
            for factor in _FACTORS:
                size = round(model.write_buffer_bytes * factor) // KIB * KIB
                yield replace(model, write_buffer_bytes=size)
    if model.read_buffer_bytes and structures.open("read-buffer"):
        for factor in _FACTORS:
            size = round(model.read_buffer_bytes * factor) // KIB * KIB
            yield replace(
                model,
                read_buffer_bytes=size,
                prefetch_bytes=min(model.prefetch_bytes, size),
                read_least_bytes=min(model.read_least_bytes, size),
            )
