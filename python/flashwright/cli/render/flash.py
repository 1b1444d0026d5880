"""What the summary of a run says of the flash: chips, bit errors, energy, the SLC cache."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flashwright.cli.render import units


def chips(figures: Mapping[str, Any]) -> str:
    """What the dies did; commands that were not used are left out."""
    parts = [
        f"{units.count(figures['array_reads'])} reads, {units.count(figures['array_programs'])} programs, "
        f"{units.count(figures['array_erases'])} erases of arrays"
    ]
    for key, what in (
        ("parity_programs", "programs of parity"),
        ("copybacks", "copybacks"),
        ("programs_suspended", "suspensions of programs"),
        ("erases_suspended", "suspensions of erases"),
        ("cached_programs", "cached programs"),
        ("cached_reads", "cached reads"),
        ("ram_reads", "reads from RAM"),
        ("power_waits", "waits for power"),
        ("rebuilding_reads", "reads to rebuild from parity"),
    ):
        if figures[key]:
            parts.append(f"{units.count(figures[key])} {what}")
    return "; ".join(parts)


def errors(errors: Mapping[str, Any]) -> str:
    """What reads of the cells met; what did not happen is left out."""
    parts = [
        f"{units.count(errors['reads_retried'])} of {units.count(errors['reads'])} reads retried, "
        f"{units.count(errors['retries'])} retries"
    ]
    for key, what in (
        ("reads_soft", "decoded softly"),
        ("reads_uncorrectable", "not corrected"),
        ("blocks_rewritten", "blocks written again"),
    ):
        if errors[key]:
            parts.append(f"{units.count(errors[key])} {what}")
    return "; ".join(parts)


def energy(energy: Mapping[str, Any]) -> str:
    """Joules, watts, and what a megabyte of the host cost."""
    parts = [f"{units.number(energy['total_j'])} J"]
    if energy["mean_w"] is not None:
        parts.append(f"{units.number(energy['mean_w'])} W on average")
    if energy["mj_per_mb"] is not None:
        parts.append(f"{units.number(energy['mj_per_mb'])} mJ for each MB of the host")
    return ", ".join(parts)
