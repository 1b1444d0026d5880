"""The parameters that probes look for, as the description of a model gives them."""

from __future__ import annotations

from typing import Any

from flashwright.drive.findings import Finding
from flashwright.simulation.ssd import Ssd
from flashwright.support.core import _core

__all__ = ["SOURCE", "findings_of", "write_buffers"]

SOURCE = "the drive's description"
"""Where these findings come from, for advice that rests on them."""

# Schemes that merge blocks, or groups of them, with logs; all others map pages alone.
_LOG_BLOCK = ("block", "replacement", "bast", "fast", "last", "superblock")


def findings_of(ssd: Ssd) -> dict[str, Finding]:
    """What a description says: ``[host.profile]`` where that is written, else what follows from the settings.

    Parameters
    ----------
    ssd : Ssd
        The drive.

    Returns
    -------
    dict of str to Finding
        By parameter.

    Examples
    --------
    >>> found = findings_of(Ssd.named("enterprise-tlc"))
    >>> {name: each.value for name, each in found.items() if each.verdict == "found"}["write-buffer"]
    16777216
    >>> found["read-buffer"].verdict, found["mapping"].value
    ('absent', 'page')
    """
    config = ssd.config
    logical, logical_pages, physical_pages = _core.config_check(ssd.toml)
    worked_out = {each.parameter: each for each in _worked_out(config, logical // logical_pages)}
    found = {}
    for parameter, text in config["host"]["profile"].items():
        if text == "unknown":
            found[parameter] = worked_out.pop(parameter)
        elif text == "none":
            found[parameter] = _absent(parameter, "host.profile says none")
        else:
            found[parameter] = _size(parameter, _core.size_read(text), f"host.profile.{parameter}")
    found.update({name: each for name, each in worked_out.items() if name not in found})
    ratio = physical_pages / logical_pages
    why = f"from {SOURCE}: {physical_pages:,} pages of flash for {logical_pages:,} of the host"
    found["spare-space"] = Finding("spare-space", "found", ratio, "", confidence=1.0, why=why)
    return found


def _worked_out(config: dict[str, Any], mapped_bytes: int) -> list[Finding]:
    """What follows from the settings; `mapped_bytes` is what an entry of the map stands for."""
    geometry, scheme = config["geometry"], config["ftl"]["scheme"]
    is_log_block = scheme in _LOG_BLOCK
    block = mapped_bytes * geometry["pages-per-block"]
    dies = geometry["channels"] * geometry["dies-per-channel"]
    clusters = geometry["cluster-channels"] * geometry["cluster-dies"]
    units = max(1, dies // clusters)
    return [
        _size("clustered-page", mapped_bytes, "geometry.page-size and mapping-unit"),
        _size("clustered-block", block, f"ftl.scheme = {scheme} merges blocks")
        if is_log_block
        else _absent("clustered-block", f"ftl.scheme = {scheme} maps pages, so no block shows"),
        _buffer("read-buffer", {"controller.read-buffer.size": config["controller"]["read-buffer"]["size"]}),
        _buffer("write-buffer", write_buffers(config)),
        Finding(
            "mapping", "found", "log-block" if is_log_block else "page", "", confidence=1.0,
            why=f"from {SOURCE} (ftl.scheme = {scheme})",
        ),
        Finding(
            "parallel-units", "found", units, "units", confidence=1.0,
            why=f"from {SOURCE} ({dies} dies{f', {clusters} to a clustered page' if clusters > 1 else ''})",
        ),
    ]  # fmt: skip


def write_buffers(config: dict[str, Any]) -> dict[str, str]:
    """Sizes of the write buffers of a configuration, by their keys; the host meets the first of them."""
    ram = config["ram"]
    return {
        "controller.write-buffer.size": config["controller"]["write-buffer"]["size"],
        "chips.write-ram": config["chips"]["write-ram"],
        "ram.size": ram["size"] if ram["manager"] != "none" else "0 B",
    }


def _buffer(parameter: str, sizes: dict[str, str]) -> Finding:
    for key, text in sizes.items():
        size = _core.size_read(text)
        if size >= 1:
            return _size(parameter, size, key)
    return _absent(
        parameter,
        f"{' and '.join(sizes)} are 0 B" if len(sizes) > 1 else f"{next(iter(sizes))} is 0 B",
    )


def _size(parameter: str, size: int, key: str) -> Finding:
    return Finding(parameter, "found", size, "B", confidence=1.0, why=f"from {SOURCE} ({key})")


def _absent(parameter: str, why: str) -> Finding:
    return Finding(parameter, "absent", None, "B", confidence=1.0, why=f"from {SOURCE}: {why}")
