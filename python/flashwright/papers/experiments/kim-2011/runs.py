"""What Kim et al. (2011) measured, on models of their four drives: Table 1, the procedures of section 4 and what our
probes find in their place, and Postmark and Filebench above a block layer and a scheduler that know the drive.

README.md beside this file says how the paper was read and what was left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from flashwright import FlashwrightError, Ssd
from flashwright.blackbox.session import probe
from flashwright.blackbox.target import Target, Times
from flashwright.drive.findings import Finding
from flashwright.papers import Job, Setting, part

Row = dict[str, Any]

DRIVES = ("ssd-a", "ssd-b", "ssd-c", "ssd-d")
KIB = 1024
MIB = 1 << 20
PAGE_KIB = {"ssd-a": 16, "ssd-b": 128, "ssd-c": 4, "ssd-d": 128}
PROBES = (
    "clustered-page",
    "clustered-block",
    "read-buffer",
    "prefetch",
    "write-buffer",
    "buffer-kind",
)
# Settings under which a drive has what none of the four has, for the probes to find.
OTHER_KINDS: dict[str, Row] = {
    "ssd-a": {
        "controller.read-buffer.prefetch": "128 KiB",
        "controller.write-buffer.kind": "cache",
    },
    "ssd-b": {"controller.write-buffer.kind": "cache"},
    "ssd-c": {
        "controller.read-buffer.prefetch": "256 KiB",
        "controller.write-buffer.kind": "cache",
    },
    "ssd-d": {"controller.read-buffer.prefetch": "32 KiB"},
}

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
SIZES_KIB = (256, 512, 1024, 2048, 4096, 8192)
QUICK_SIZES_KIB = (256, 4096, 8192)
MERGES = ("well-formed", "pending")
# Memory that may be dirty before writers wait, in MB; write-back begins at half. 64-bit: 10 % of 4 GiB (vm.dirty_ratio
# of 2.6.24). low: 10 % of what a 32-bit kernel counts, near 900 MB. fitted: to the 3,197 requests of NoPAS in Table 4.
LIMITS_MB = {"fitted": 56, "low": 94, "64-bit": 429}
# Which requests PAI merges, under each of the limits that claims are judged by; the first is the main reading.
READINGS = {"fitted": MERGES, "64-bit": MERGES[:1]}
MEMORY_MB = 4096 * 1.048576
PROFILES = ("webserver", "fileserver", "oltp")


# Table 1.


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


@part("table-1", cpu_s=(7, 7))
def table_1_jobs(setting: Setting) -> list[Job]:
    """Each drive; a part of the two with page mapping, whose bandwidths depend on shares and not on sizes."""
    plans = [
        # What is overwritten before, the range of random writes, how many are counted.
        ("ssd-a", 2, 0.5, 1.0, 20_000),
        ("ssd-b", 1, 0.0, 1.0, 8_000),
        ("ssd-c", 16, 4.0, 0.25, 20_000),
        ("ssd-c", 16, 1.0, 1.0, 20_000),
        ("ssd-d", 1, 0.0, 1.0, 8_000),
    ]
    names = ("drive", "part_of", "dirty", "span", "count")
    return [
        Job(table_1, dict(zip(names, plan, strict=True)), f"{plan[0]}, {plan[3]:.0%} of the space")
        for plan in plans
    ]


# Section 4: the paper's procedures 1 and 2 as they are printed, and our probes.


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


@part("write-latency", cpu_s=(3, 4))
def write_latency_jobs(setting: Setting) -> list[Job]:
    """Procedure 1, with fewer sizes than its 512: those that a plot can show."""
    steps = {"ssd-a": (2, 128), "ssd-b": (8, 128), "ssd-c": (2, 128), "ssd-d": (8, 128)}
    return [
        Job(
            write_latency,
            {
                "drive": drive,
                "step_kib": steps[drive][0],
                "sizes": steps[drive][1],
                "writes": 16 if setting.quick else 64,
            },
            drive,
        )
        for drive in DRIVES
    ]


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


@part("write-orders", cpu_s=(3, 27))
def orders_jobs(setting: Setting) -> list[Job]:
    """Procedure 2; the first size is four clustered pages, on SSD-C twenty, and each is twice the one before."""
    jobs = []
    for drive in DRIVES:
        first, last = {"ssd-a": (64, 131_072), "ssd-c": (640, 20_480)}.get(drive, (512, 131_072))
        sizes = [first]
        while sizes[-1] * 2 <= last:
            sizes.append(sizes[-1] * 2)
        total_mib = 8 * KIB
        if setting.quick:
            if drive == "ssd-c":  # its pages of 4 KiB take long to fill
                continue
            middle = {"ssd-a": 4096}.get(drive, 16_384)
            sizes, total_mib = (
                [size for size in sizes if middle // 2 <= size <= middle * 2],
                2 * KIB,
            )
        jobs.append(
            Job(orders, {"drive": drive, "sizes_kib": sizes, "total_mib": total_mib}, drive)
        )
    return jobs


def probed(drive: str, mode: str, only: Sequence[str], settings: Mapping[str, str]) -> Row:
    """What our probes find of a drive of which they see only times, and how long that took it."""
    ssd = Ssd.named(drive).with_(settings)
    with Target(ssd) as target:
        result = probe(target, mode=mode, only=only)  # type: ignore[arg-type]
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


@part("probes", cpu_s=(19, 100))
def probes_jobs(setting: Setting) -> list[Job]:
    """All drives; quick runs ask less patiently, and do not ask SSD-C for its block, which takes half a minute."""
    mode = "quick" if setting.quick else "full"
    return [
        Job(
            probed,
            {
                "drive": drive,
                "mode": mode,
                "only": [
                    name
                    for name in PROBES
                    if not (setting.quick and drive == "ssd-c" and name == "clustered-block")
                ],
                "settings": {},
            },
            drive,
        )
        for drive in DRIVES
    ]


@part("other-kinds", cpu_s=(4, 6))
def other_kinds_jobs(setting: Setting) -> list[Job]:
    """The drives with prefetching and with caches, which the paper found on none."""
    return [
        Job(
            probed,
            {
                "drive": drive,
                "mode": "quick" if setting.quick else "full",
                "only": PROBES[2:],
                "settings": settings,
            },
            f"{drive} with {' and '.join(key.rpartition('.')[2] for key in settings)}",
        )
        for drive, settings in OTHER_KINDS.items()
    ]


# Sections 5 and 6: programs.


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
    write_buffer: str = "",
    entry: str = "",
    precondition: str = "sequential",
) -> Row:
    """One run of Postmark or of a Filebench profile.

    `merge` is which requests PAI merges; `limits` names how much may be dirty; `io` is the size of OLTP's reads and
    writes where it is not the profile's; `write_buffer` is what the schedulers believe of it, `entry` what it takes at
    a time.
    """
    settings: dict[str, object] = {"host.scheduler": CHAINS[configuration]}
    if configuration != NOOP:
        settings["host.pai.merge"] = merge
        settings["host.pai.timeout"] = f"{timeout_ms} ms"
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
    told = run.json["application"]
    layer = run.json["host_layers"][-1]
    ways = layer["reads"], layer["writes"]
    written, read = told["bytes_written"], told["bytes_read"]
    return row | {
        "write_mb_per_s": written / told["seconds"] / 1e6,
        "overall_mb_per_s": (written + read) / told["seconds"] / 1e6,
        "requests": sum(way["requests"] for way in ways),
        "aligned_at_start": sum(way["aligned_at_start"] for way in ways),
        "aligned_at_both_ends": sum(way["aligned_at_both_ends"] for way in ways),
        # Nothing where a drive has no buffer in a direction.
        "within_buffer": sum(way["within_buffer"] or 0 for way in ways),
        "above_buffer": sum(way["above_buffer"] or 0 for way in ways),
        "pending_ms_mean": layer["extra"].get("pending_mean_ns", 0) / 1e6,
        "write_amplification": run.json["write_amplification"],
    }


def configured(job: Row, merges: Sequence[str]) -> Iterable[Row]:
    """A job under each configuration; without PAI there is nothing to read in two ways."""
    for configuration in CONFIGURATIONS:
        for merge in ("",) if configuration == NOOP else merges:
            yield job | {"configuration": configuration, "merge": merge}


def postmark(setting: Setting, drive: str, size_kib: int) -> Row:
    """Arguments of a run of Postmark: one size a point; a tenth of the transactions on the two slow drives."""
    slow = drive in ("ssd-b", "ssd-d")
    transactions = (30 if slow else 60) if setting.quick else 300 if slow else 3000
    return {
        "load": "postmark",
        "drive": drive,
        "size_kib": size_kib,
        "transactions": transactions,
    }


def programs(found: Iterable[Row]) -> list[Job]:
    """Runs as jobs, with what people know them by."""
    shown = ("drive", "load", "size_kib", "configuration", "merge", "io")
    return [
        Job(
            program,
            job,
            ", ".join(
                f"{job[key]} KiB" if key == "size_kib" else str(job[key])
                for key in shown
                if job.get(key)
            ),
        )
        for job in found
    ]


def sizes_of(setting: Setting) -> Sequence[int]:
    """File sizes, KiB."""
    return QUICK_SIZES_KIB if setting.quick else SIZES_KIB


@part("postmark", cpu_s=(20, 200))
def postmark_jobs(setting: Setting) -> list[Job]:
    """Figure 9, under the main reading and two others."""
    return programs(
        job
        for drive in DRIVES
        for size_kib in sizes_of(setting)
        for limits, merges in READINGS.items()
        if not (setting.quick and limits != "fitted")
        for job in configured(
            postmark(setting, drive, size_kib) | {"limits": limits},
            merges[:1] if setting.quick else merges,
        )
    )


@part("postmark-erased", cpu_s=(8, 40))
def erased_jobs(setting: Setting) -> list[Job]:
    """Figure 9 on drives that were never written; the paper says only that caches were flushed."""
    return programs(
        job
        for drive in DRIVES
        for size_kib in sizes_of(setting)
        for job in configured(
            postmark(setting, drive, size_kib) | {"precondition": "empty"}, MERGES[:1]
        )
    )


@part("postmark-timeout", cpu_s=(3, 15))
def timeout_jobs(setting: Setting) -> list[Job]:
    """How long PAI may hold back what is not well-formed, which the paper does not print; SSD-A."""
    return programs(
        job | {"timeout_ms": timeout_ms}
        for size_kib in (SIZES_KIB[0], SIZES_KIB[-1])
        for timeout_ms in ((1, 10) if setting.quick else (1, 3, 5, 10))
        for job in configured(postmark(setting, "ssd-a", size_kib), MERGES[:1])
        if job["configuration"] != NOOP
    )


@part("postmark-entry", cpu_s=(9, 20))
def entry_jobs(setting: Setting) -> list[Job]:
    """SSD-C with a buffer that frees its room page by page rather than by whole requests."""
    return programs(
        job
        for size_kib in ((256, 8192) if setting.quick else (256, 1024, 8192))
        for job in configured(postmark(setting, "ssd-c", size_kib) | {"entry": "4 KiB"}, MERGES[:1])
    )


@part("postmark-requests", cpu_s=(4, 15))
def requests_jobs(setting: Setting) -> list[Job]:
    """Other readings of Table 4: no block layer above PAI, a 32-bit kernel's memory, a buffer of 256 KiB; SSD-A."""
    found: list[Row] = []
    for size_kib in (SIZES_KIB[0], SIZES_KIB[-1]):
        plain = postmark(setting, "ssd-a", size_kib)
        found += [plain | {"configuration": ALONE, "merge": merge} for merge in MERGES]
        found += configured(plain | {"limits": "low"}, MERGES[:1])
        found += configured(plain | {"write_buffer": "256 KiB"}, MERGES[:1])
    return programs(found)


@part("filebench", cpu_s=(20, 110))
def filebench_jobs(setting: Setting) -> list[Job]:
    """Figure 10; scaled: 20 s, OLTP 60 s."""
    return programs(
        job
        for load in PROFILES
        for drive in DRIVES
        for limits, merges in READINGS.items()
        if not (setting.quick and limits != "fitted")
        for job in configured(
            {
                "load": load,
                "drive": drive,
                "duration_s": 2 if setting.quick else 60 if load == "oltp" else 20,
                "limits": limits,
            },
            merges[:1] if setting.quick else merges,
        )
    )


@part("filebench-oltp", cpu_s=(2, 30))
def oltp_jobs(setting: Setting) -> list[Job]:
    """OLTP with larger requests than the profile's 2 KiB: the paper's were "relatively large", and are not printed."""
    return programs(
        job
        for drive in ("ssd-a", "ssd-d")
        for io in (("1MiB",) if setting.quick else ("64KiB", "256KiB", "1MiB"))
        for job in configured(
            {"load": "oltp", "drive": drive, "duration_s": 2 if setting.quick else 60, "io": io},
            MERGES[:1],
        )
    )
