"""What Kim et al. (2011) measured, on models of their four drives: Table 1, the procedures of section 4 and what our
probes find in their place, and Postmark and Filebench above a block layer and a scheduler that know the drive.

README.md beside this file says how the paper was read and what was left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from flashwright import FlashwrightError, Ssd
from flashwright.drive.findings import Finding
from flashwright.probing.session import probe
from flashwright.target.target import Target, Times

Row = dict[str, Any]


DRIVES = ("ssd-a", "ssd-b", "ssd-c", "ssd-d")


KIB = 1024


MIB = 1 << 20


PAGE_KIB = {"ssd-a": 16, "ssd-b": 128, "ssd-c": 4, "ssd-d": 128}


# A block layer, which merges and may cut, and a scheduler below it; NOOP is the block layer's merging and no more.
CONFIGURATIONS = {
    "NoPAS-NOOP": "noop",
    "NoPAS-PAI": "noop+pai",
    "PAS-PAI": "pas+pai",
    "PASA-PAI": "pasa+pai",
}


NOOP, PAI, PAS, PASA = CONFIGURATIONS


# No block layer above PAI: it gets the file system's blocks one by one.
ALONE = "PAI alone"


CHAINS = CONFIGURATIONS | {ALONE: "pai"}


# Memory that may be dirty before writers wait, in MB; write-back begins at half. 64-bit: 10 % of 4 GiB (vm.dirty_ratio
# of 2.6.24). low: 10 % of what a 32-bit kernel counts, near 900 MB. fitted: to the 3,197 requests of NoPAS in Table 4.
LIMITS_MB = {"fitted": 56, "low": 94, "64-bit": 429}


MEMORY_MB = 4096 * 1.048576


def scaled(name: str, part_of: int) -> Ssd:
    """A bundled drive, with a share of its blocks and of its space."""
    whole = Ssd.named(name)
    blocks = whole.config["geometry"]["blocks-per-plane"]
    logical_kib = int(whole.config["capacity"]["logical"].split()[0])
    return whole.with_(
        {
            "geometry.blocks-per-plane": blocks // part_of,
            "capacity.logical": f"{logical_kib // part_of} KiB",
        }
    )


def _in_order(drive: Target, kind: str, size: int, count: int) -> Times:
    """Requests from the start of the drive on, over and over."""
    places = np.arange(count) % (drive.capacity_bytes // size)
    return drive.play(kind, places * size, size)  # type: ignore[arg-type]


def _rate(times: Times, size: int, skip: int) -> float:
    """MB/s of the requests after the first so many."""
    spent_ns = int(times.ended_ns[-1]) - int(times.ended_ns[skip - 1])
    return (times.ended_ns.size - skip) * size * 1e3 / spent_ns


def table_1(drive: str, part_of: int, dirty: float, span: float, count: int) -> Row:
    """The four bandwidths of Table 1, one request at a time.

    Before random writes of 4 KiB a page-mapped drive is overwritten at random, `dirty` times the first `span` of its
    space.
    """
    rng = np.random.default_rng(7)
    with Target(scaled(drive, part_of)) as target:
        target.fill()
        found = {
            "sequential read": _rate(_in_order(target, "read", MIB, 510), MIB, 10),
            # It is not said which sizes were tried: the greatest within the smallest write buffer and beyond all.
            "sequential write": max(
                _rate(_in_order(target, "write", size, 1100), size, 100)
                for size in (240 * KIB, MIB)
            ),
        }
        places = rng.integers(0, target.capacity_bytes // 4096, 1010) * 4096
        found["random read"] = _rate(target.play("read", places, 4096), 4096, 10)
        target.purge()
        target.fill()
        page = PAGE_KIB[drive] * KIB
        pages = int(target.capacity_bytes * span) // page
        overwritten = rng.integers(0, pages, int(pages * dirty)) * page
        if dirty:
            target.play("write", overwritten, page)
        places = rng.integers(0, int(target.capacity_bytes * span) // 4096, count * 3 // 2) * 4096
        found["random write"] = _rate(target.play("write", places, 4096), 4096, count // 2)
    return {"drive": drive, "span": span} | found


def write_latency(drive: str, step_kib: int, sizes: int, writes: int) -> Row:
    """Procedure 1: the mean latency of sequential writes, each flushed, size by size."""
    means = []
    with Target(Ssd.named(drive)) as target:
        target.fill()
        began = target.elapsed_ns
        for size in (np.arange(sizes) + 1) * step_kib * KIB:
            offsets = np.repeat(np.arange(writes) * size, 2)
            times = target.play(np.tile([1, 3], writes), offsets, size)
            means.append(float((times.ended_ns[1::2] - times.submitted_ns[::2]).mean()))
        seconds = (target.elapsed_ns - began) * 1e-9
    return {"drive": drive, "step_kib": step_kib, "mean_ns": means, "drive_s": seconds}


def orders(drive: str, sizes_kib: Sequence[int], total_mib: int) -> Row:
    """Procedure 2: bandwidths of sequential and of random writes over the first so much of a full drive."""
    # Linux cuts writes at 512 KiB; the flush comes after all of one.
    piece = 512 * KIB
    rng = np.random.default_rng(11)

    def play(target: Target, starts: Any, size: int) -> float:
        begins = np.append(np.arange(0, size, piece), 0)
        lengths = np.append(np.minimum(piece, size - begins[:-1]), 0)
        kinds = np.append(np.ones(begins.size - 1, np.uint8), np.uint8(3))
        times = target.play(
            np.tile(kinds, starts.size),
            (starts[:, None] * size + begins).ravel(),
            np.tile(lengths, starts.size),
        )
        return starts.size * size * 1e3 / times.duration_ns

    rows = []
    with Target(Ssd.named(drive)) as target:
        for size_kib in sizes_kib:
            size = size_kib * KIB
            count = total_mib * MIB // size
            target.purge()
            target.fill()
            rows.append(
                {
                    "size_kib": size_kib,
                    "sequential": play(target, np.arange(count), size),
                    # In order over what is in order leaves the drive as it was filled.
                    "random": play(target, rng.integers(0, count, count), size),
                }
            )
    return {"drive": drive, "total_mib": total_mib, "sizes": rows}


UNLIMITED_S = 30 * 86_400.0


def probed(drive: str, mode: str, only: Sequence[str], settings: Mapping[str, str]) -> Row:
    """What our probes find of a drive of which they see only times, and how long that took it."""
    ssd = Ssd.named(drive).with_(settings)
    with Target(ssd) as target:
        # The paper's procedures had no limit of time.
        result = probe(target, mode=mode, only=only, drive_time=UNLIMITED_S)  # type: ignore[arg-type]
    geometry, buffers = ssd.config["geometry"], ssd.config["controller"]
    chips = geometry["channels"] * geometry["dies-per-channel"] * geometry["planes-per-die"]
    page_kib = int(geometry["page-size"].split()[0])
    return {
        "drive": drive,
        "settings": dict(settings),
        "page_kib": page_kib * geometry["cluster-channels"] * geometry["cluster-dies"],
        "block_kib": page_kib * geometry["pages-per-block"] * chips,
        "buffers": {
            name: {key: buffers[name].get(key) for key in ("size", "least", "kind", "prefetch")}
            for name in ("read-buffer", "write-buffer")
        },
        "found": {
            name: {
                "verdict": each.verdict,
                "value": each.value,
                "confidence": float(each.confidence),
                "why": each.why,
                "curves": _curves(each) if name in ("read-buffer", "write-buffer") else {},
            }
            for name, each in result.findings.items()
        },
        "drive_s": {each.name: each.target_seconds for each in result.asked},
    }


def _curves(finding: Finding) -> dict[str, list[list[float]]]:
    """The median of each size that was tried, of each series of the finding's first plot: sizes and latencies."""
    curves = {}
    for series in finding.plots[0].series:
        sizes = np.unique(series.x)
        kept = sizes[sizes <= 4 * MIB]
        medians = [float(np.median(series.y[series.x == size])) for size in kept]
        curves[series.name] = [kept.tolist(), medians]
    return curves


def load_of(
    load: str, drive: str, size_kib: int, transactions: int, limits: str, duration_s: int, io: str
) -> str:
    """The workload's text."""
    dirty = LIMITS_MB[limits] / MEMORY_MB
    # 1,024 blocks: what write-back of 2.6.24 takes at a time (MAX_WRITEBACK_PAGES).
    host = f"request-unit=block,in-flight=1024,dirty={dirty:.5f},dirty-background={dirty / 2:.5f}"
    if load == "postmark":
        return (
            f"postmark:files=200,subdirectories=200,transactions={transactions},size={size_kib}KiB,"
            f"seed=712,{host}"
        )
    program = {
        "webserver": f"files={100 if drive in ('ssd-b', 'ssd-d') else 1000},size=16MiB,threads=16",
        "fileserver": "files=10000,size=1MiB,threads=50",
        "oltp": "size=10MiB,threads=200",
    }[load]
    if io:
        program += f",io={io}"
    return f"filebench-{load}:{program},prepare=placed,duration={duration_s}s,{host}"


def program(
    drive: str,
    load: str,
    configuration: str,
    merge: str,
    size_kib: int = 0,
    transactions: int = 0,
    limits: str = "fitted",
    duration_s: int = 0,
    io: str = "",
    timeout_ms: int = 5,
    idle_dispatch: bool = False,
    write_buffer: str = "",
    entry: str = "",
    precondition: str = "sequential",
) -> Row:
    """One run of Postmark or of a Filebench profile.

    `merge` is which requests PAI merges; with `idle_dispatch` it hands on its oldest one if nothing else is to be done.
    `limits` names how much may be dirty; `io` is the size of OLTP's reads and writes where it is not the profile's;
    `write_buffer` is what the schedulers believe of it, `entry` what it takes at a time.
    """
    settings: dict[str, object] = {"host.scheduler": CHAINS[configuration]}
    if configuration != NOOP:
        settings["host.pai.merge"] = merge
        settings["host.pai.timeout"] = f"{timeout_ms} ms"
        settings["host.pai.idle-dispatch"] = idle_dispatch
    if write_buffer:
        settings["host.profile.write-buffer"] = write_buffer
    if entry:
        settings["controller.write-buffer.entry"] = entry
    ssd = Ssd.named(drive).with_(settings).precondition(precondition)
    row: Row = {
        "drive": drive,
        "load": load,
        "configuration": configuration,
        "merge": merge,
        "size_kib": size_kib,
        "limits": limits,
        "io": io,
        "timeout_ms": timeout_ms,
        "write_buffer": write_buffer,
        "precondition": precondition,
        "error": "",
    }
    try:
        run = ssd.play(
            load_of(load, drive, size_kib, transactions, limits, duration_s, io),
            window="off",
            seed=1,
        )
    except FlashwrightError as error:  # a drive that can't is a finding
        return row | {"error": str(error).splitlines()[0]}
    application = run.json["application"]
    layer = run.json["host_layers"][-1]
    ways = layer["reads"], layer["writes"]
    written, read = application["bytes_written"], application["bytes_read"]
    return row | {
        "write_mb_per_s": written / application["seconds"] / 1e6,
        "overall_mb_per_s": (written + read) / application["seconds"] / 1e6,
        "requests": sum(way["requests"] for way in ways),
        "aligned_at_start": sum(way["aligned_at_start"] for way in ways),
        "aligned_at_both_ends": sum(way["aligned_at_both_ends"] for way in ways),
        # Nothing where a drive has no buffer in a direction.
        "within_buffer": sum(way["within_buffer"] or 0 for way in ways),
        "above_buffer": sum(way["above_buffer"] or 0 for way in ways),
        "pending_ms_mean": layer["extra"].get("pending_mean_ns", 0) / 1e6,
        "write_amplification": run.json["write_amplification"],
    }
