"""What the claims of Kim et al. (2011) rest on: the parts, as lists of jobs.

play.py has what a job plays, so that changing this file plays nothing again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from flashwright_papers import Job, Setting, part

from .play import (
    ALONE,
    CONFIGURATIONS,
    DRIVES,
    KIB,
    NOOP,
    Row,
    orders,
    probed,
    program,
    table_1,
    write_latency,
)
from .procedures import buffers

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


SIZES_KIB = (256, 512, 1024, 2048, 4096, 8192)


QUICK_SIZES_KIB = (256, 4096, 8192)


MERGES = ("well-formed", "pending")


# Which requests PAI merges, under each of the limits that claims are judged by; the first is the main reading.
READINGS = {"fitted": MERGES, "64-bit": MERGES[:1]}


PROFILES = ("webserver", "fileserver", "oltp")


PROFILE_IO = "2KiB"  # of OLTP's reads and writes, in the profile


# Table 1.


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


@part("procedures", cpu_s=(15, 75))
def procedures(setting: Setting) -> list[Job]:
    """Procedures 3 to 6 on the four drives, a size a KiB; reads of SSD-C up to 4,096 KiB, every fourth."""
    listed = []
    for drive in DRIVES:
        for way, again in (("read", 1), ("write", 3)):
            most, step = (4096, 4) if (drive, way) == ("ssd-c", "read") else (1024, 1)
            step *= 16 if setting.quick else 1
            given = {
                "drive": drive,
                "way": way,
                "sizes_kib": list(range(step, most + 1, step)),
                "again": again,
            }
            listed.append(Job(buffers, given, f"{drive}, {way}s as printed"))
    return listed


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


def configured(job: Row, merges: Sequence[str]) -> Iterable[Row]:
    """A job under each configuration; without PAI there is nothing to read in two ways."""
    for configuration in CONFIGURATIONS:
        for merge in ("",) if configuration == NOOP else merges:
            yield job | {"configuration": configuration, "merge": merge}


def small(setting: Setting) -> bool:
    """Whether fewer sizes and transactions do: in a quick run and in a search."""
    return setting.quick or setting.divisor > 1


def of_pai(setting: Setting) -> Row:
    """What the paper leaves open of PAI, where the setting gives it."""
    given = setting.given
    found: Row = {"timeout_ms": given["timeout"]} if "timeout" in given else {}
    return found | (
        {"idle_dispatch": given["idle-dispatch"] == "on"} if "idle-dispatch" in given else {}
    )


def postmark(setting: Setting, drive: str, size_kib: int) -> Row:
    """Arguments of a run of Postmark: one size a point; a tenth of the transactions on the two slow drives."""
    slow = drive in ("ssd-b", "ssd-d")
    transactions = (30 if slow else 60) if small(setting) else 300 if slow else 3000
    job = {"load": "postmark", "drive": drive, "size_kib": size_kib, "transactions": transactions}
    state = {"precondition": setting.given["state"]} if "state" in setting.given else {}
    return job | state | of_pai(setting)


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
    return QUICK_SIZES_KIB if small(setting) else SIZES_KIB


@part("postmark", cpu_s=(20, 200))
def postmark_jobs(setting: Setting) -> list[Job]:
    """Figure 9, under the main reading and two others."""
    return programs(
        job
        for drive in DRIVES
        for size_kib in sizes_of(setting)
        for limits, merges in READINGS.items()
        if not (small(setting) and limits != "fitted")
        for job in configured(
            postmark(setting, drive, size_kib) | {"limits": limits},
            merges[:1] if small(setting) else merges,
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
        for timeout_ms in ((1, 10) if small(setting) else (1, 3, 5, 10))
        for job in configured(postmark(setting, "ssd-a", size_kib), MERGES[:1])
        if job["configuration"] != NOOP
    )


@part("postmark-entry", cpu_s=(9, 20))
def entry_jobs(setting: Setting) -> list[Job]:
    """SSD-C with a buffer that frees its room page by page rather than by whole requests."""
    return programs(
        job
        for size_kib in ((256, 8192) if small(setting) else (256, 1024, 8192))
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


def oltp(setting: Setting) -> Row:
    """The size of OLTP's reads and writes, where the setting gives one that is not the profile's."""
    size = str(setting.given.get("oltp-io", PROFILE_IO))
    return {} if size == PROFILE_IO else {"io": size}


@part("filebench", cpu_s=(20, 110))
def filebench_jobs(setting: Setting) -> list[Job]:
    """Figure 10; scaled: 20 s, OLTP 60 s."""
    return programs(
        job
        for load in PROFILES
        for drive in DRIVES
        for limits, merges in READINGS.items()
        if not (small(setting) and limits != "fitted")
        for job in configured(
            {
                "load": load,
                "drive": drive,
                "duration_s": 2 if small(setting) else 60 if load == "oltp" else 20,
                "limits": limits,
            }
            | of_pai(setting)
            | (oltp(setting) if load == "oltp" else {}),
            merges[:1] if small(setting) else merges,
        )
    )


@part("filebench-oltp", cpu_s=(2, 30))
def oltp_jobs(setting: Setting) -> list[Job]:
    """OLTP with larger requests than the profile's 2 KiB: the paper's were "relatively large", and are not printed."""
    return programs(
        job
        for drive in ("ssd-a", "ssd-d")
        for io in (("1MiB",) if small(setting) else ("64KiB", "256KiB", "1MiB"))
        for job in configured(
            {"load": "oltp", "drive": drive, "duration_s": 2 if small(setting) else 60, "io": io}
            | of_pai(setting),
            MERGES[:1],
        )
    )
