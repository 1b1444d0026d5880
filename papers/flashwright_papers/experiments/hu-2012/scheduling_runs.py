"""Chapter 5 of Hu's dissertation: schedulers before a drive, what mixing reads and writes costs, and the SSD-friendly
scheduler on five workloads.

schedulers.md beside this file says what the drives and workloads stand for and what was left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from flashwright import Ssd, workloads
from flashwright_papers import Job, Setting, part

Row = dict[str, Any]

CLASSIC = ("noop", "deadline", "anticipatory", "cfq")
SIZES_KIB = (4, 16, 64, 256)
ZONES = (1, 2, 4, 8, 16)
OUTSTANDING = (8, 32, 64, 128, 256)
QUICK_OUTSTANDING = (32, 256)
# Of the drive's blocks a plane, in per cent: enough for the footprint, and soon filled.
STAND_INS = {"financial1": 10, "financial2": 10, "exchange": 40, "msn": 25, "build": 60}
# File, format, how addresses are fitted, per cent of the drive.
HEADS = {
    "financial1 head": ("financial1-first10k.spc.zst", "spc", "reject", 10),
    "financial1 head, in pages": ("financial1-first50k.flashsim.zst", "flashsim", "reject", 10),
    "msn head": ("msn-fs-150k.disksim.zst", "disksim", "wrap", 100),
}
# What is changed one at a time to see what the scheduler's loss hangs on; 8 zones, all of each zone.
CHANGES: dict[str, Row] = {
    "as it is": {},
    "no barrier": {"host.ssd-friendly.barrier": False},
    "turns by what waits": {"host.ssd-friendly.share": "adaptive"},
    "requests up to 128 KiB": {"host.ssd-friendly.max-merge": "128 KiB"},
    "no turnaround": {"controller.turnaround": "0 ns"},
}


def drive(name: str, per_cent: int, settings: Mapping[str, Any]) -> Ssd:
    """A bundled drive with fewer blocks a plane and the same share of spare space, filled in order."""
    whole = Ssd.named(name)
    config = whole.config
    parts = {
        "geometry.blocks-per-plane": config["geometry"]["blocks-per-plane"] * per_cent // 100,
        "capacity.logical": f"{int(config['capacity']['logical'].split()[0]) * per_cent // 100} KiB",
    }
    return whole.with_(parts | dict(settings)).precondition("sequential")


def schedulers(
    drive_name: str, outstanding: int, pattern: str, kind: str, size_kib: int, volume_mb: int
) -> Row:
    """A group of bars of Figures 5.1 and 5.2: one kind of requests under the four schedulers, MB/s."""
    load = f"{pattern}:write={int(kind == 'write')},size={size_kib}KiB"
    requests = volume_mb * 1000 // size_kib
    found = {}
    for scheduler in CLASSIC:
        settings = {"host.scheduler": scheduler, "host.block-layer.queue-requests": 512}
        run = drive(drive_name, 10, settings).play(
            load, requests=requests, warmup=requests, depth=outstanding, window="off", seed=1
        )
        found[scheduler] = run.json["throughput"]["bytes_per_s"] / 1e6
    return {
        "drive": drive_name,
        "pattern": pattern,
        "kind": kind,
        "size_kib": size_kib,
        "mb_per_s": found,
    }


@part("schedulers", cpu_s=(10, 52))
def schedulers_jobs(setting: Setting) -> list[Job]:
    """Two drives, random and in order, reads and writes, four sizes."""
    # 600 MB after a warm-up of as much, which covers the first second, when CFQ (2.6.38) lets few writes through.
    volume_mb = 60 if setting.quick else 600
    # Twice what the drive takes at once, so that a scheduler has as many to choose from; its queue holds 512, as
    # Linux's 128 a direction would leave it none on the ioDrive.
    return [
        Job(
            schedulers,
            {
                "drive_name": name,
                "outstanding": outstanding,
                "pattern": pattern,
                "kind": kind,
                "size_kib": size,
                "volume_mb": volume_mb,
            },
            f"{name}, {pattern} {kind}, {size} KiB",
        )
        for name, outstanding in (("fusion-iodrive", 256), ("samsung-470", 64))
        for pattern in ("uniform", "sequential")
        for kind in ("read", "write")
        for size in (SIZES_KIB[:1] if setting.quick else SIZES_KIB)
    ]


def mixing(drive_name: str, turnaround: bool, requests: int, steps: int) -> Row:
    """A curve of Figure 5.3: MB/s by the share of writes, from none to all in so many steps."""
    settings = {} if turnaround else {"controller.turnaround": "0 ns"}
    ssd = drive(drive_name, 10, settings)
    found = []
    for step in range(steps + 1):
        run = ssd.play(
            f"mixed:write={step / steps},size=4KiB",
            requests=requests,
            warmup=requests // 4,
            depth=64,
            window="off",
            seed=1,
        )
        found.append(run.json["throughput"]["bytes_per_s"] / 1e6)
    return {"drive": drive_name, "turnaround": turnaround, "mb_per_s": found}


@part("mixing", cpu_s=(10, 16))
def mixing_jobs(setting: Setting) -> list[Job]:
    """Three drives, and each without what turning around between reads and writes costs it."""
    return [
        Job(
            mixing,
            {
                "drive_name": name,
                "turnaround": turnaround,
                "requests": 8_000 if setting.quick else 40_000,
                "steps": 6 if setting.quick else 10,
            },
            name + ("" if turnaround else " without turnaround"),
        )
        for turnaround in (True, False)
        for name in ("samsung-470", "intel-320", "fusion-iodrive")
    ]


def source(workload: str, trace: str, form: str, addresses: str) -> Any:
    """What is played: a trace where there is one, else the stand-in of that name."""
    if not trace:
        return f"stand-in:{workload}"
    return workloads.trace(trace, format=form, addresses=addresses)  # type: ignore[arg-type]


def reach(played: Any, per_cent: int, requests: int) -> str:
    """The range that a workload uses, which the dissertation takes as known."""
    ssd = drive("intel-320", per_cent, {}).precondition("empty")
    run = ssd.play(played, requests=requests, depth=32, window="off", keep_requests=True)
    table = run.requests()
    ends = (
        first + pages
        for first, pages in zip(table["lpn"].to_pylist(), table["pages"].to_pylist(), strict=True)
    )
    capacity = int(ssd.config["capacity"]["logical"].split()[0])
    # The drive's size is no multiple of a page.
    return f"{min(4 * max(ends), capacity)} KiB"


def handed_kib(layer: Row) -> float:
    """Mean size of the requests that a scheduler handed on."""
    sides = layer["reads"], layer["writes"]
    size = sum(side["bytes"] for side in sides) / sum(side["requests"] for side in sides)
    return float(size / 1024)


def bar(
    played: Any,
    per_cent: int,
    requests: int,
    outstanding: int,
    settings: Mapping[str, Any],
) -> Row:
    """One bar of Figures 5.6 to 5.10."""
    ssd = drive("intel-320", per_cent, settings)
    run = ssd.play(played, requests=requests, depth=outstanding, window="off", seed=1)
    layers, measured = run.json["host_layers"], run.json["measured"]
    bytes_per_s = run.json["throughput"]["bytes_per_s"]
    unmerged_kib = bytes_per_s * measured["duration_ns"] / 1e9 / measured["requests"] / 1024
    return {
        "mb_per_s": bytes_per_s / 1e6,
        "response_ms": run.json["response_time_ns"]["all"]["mean"] / 1e6,
        "size_kib": handed_kib(layers[0]) if layers else unmerged_kib,
        "back_merges": layers[0]["back_merges"] if layers else 0,
        "front_merges": layers[0]["front_merges"] if layers else 0,
    }


def friendly(zones: int, per_zone: str, span: str) -> Row:
    """Settings of the SSD-friendly scheduler."""
    return {
        "host.scheduler": "ssd-friendly",
        "host.ssd-friendly.zones": zones,
        "host.ssd-friendly.per-zone": per_zone,
        "host.ssd-friendly.span": span,
        # It queues in user space, which Linux's 128 requests a direction do not bound.
        "host.block-layer.queue-requests": 256,
    }


def zones(
    workload: str,
    trace: str,
    form: str,
    addresses: str,
    per_cent: int,
    requests: int,
    outstanding: int,
    counts: Sequence[int],
    barrier: bool = True,
) -> Row:
    """A workload at a number of requests outstanding: without a scheduler, under noop and deadline, and by zones."""
    played = source(workload, trace, form, addresses)
    span = reach(played, per_cent, requests)
    plain = [("none", 0, "", {"host.scheduler": "none"})]
    # Deadline alone of these looks for front merges; it counts them for D5.10.
    plain += [(name, 0, "", {"host.scheduler": name}) for name in ("noop", "deadline")]
    ours = [
        (
            "ssd-friendly",
            count,
            per_zone,
            friendly(count, per_zone, span) | {"host.ssd-friendly.barrier": barrier},
        )
        for per_zone in ("one", "all")
        for count in counts
    ]
    return {
        "workload": workload,
        "real": bool(trace),
        "outstanding": outstanding,
        "bars": [
            {"scheduler": scheduler, "zones": count, "per_zone": per_zone}
            | bar(played, per_cent, requests, outstanding, settings)
            for scheduler, count, per_zone, settings in (*plain, *ours)
        ],
    }


def small(setting: Setting) -> bool:
    """Whether fewer requests and numbers do: in a quick run and in a search."""
    return setting.quick or setting.divisor > 1


def loads(setting: Setting) -> Iterable[Row]:
    """The workloads of Figures 5.6 to 5.10: stand-ins, and the heads of real traces that the user has."""
    requests = 2_000 if small(setting) else 10_000
    for name, per_cent in STAND_INS.items():
        yield {
            "workload": name, "trace": "", "form": "", "addresses": "", "per_cent": per_cent, "requests": requests,
        }  # fmt: skip
    for name, (file, form, addresses, per_cent) in HEADS.items():
        trace = setting.trace(file)
        if trace is not None:
            yield {
                "workload": name, "trace": trace, "form": form, "addresses": addresses, "per_cent": per_cent,
                "requests": requests,
            }  # fmt: skip


@part("zones", cpu_s=(38, 235))
def zones_jobs(setting: Setting) -> list[Job]:
    """Each workload at each number of requests outstanding."""
    return [
        Job(
            zones,
            load
            | {
                "outstanding": outstanding,
                "counts": (1, 16) if small(setting) else ZONES,
            }
            | ({"barrier": False} if setting.given.get("barrier") == "off" else {}),
            f"{load['workload']}{'' if load['trace'] else ' (stand-in)'}, {outstanding} outstanding",
        )
        for load in loads(setting)
        for outstanding in (OUTSTANDING if not small(setting) else QUICK_OUTSTANDING)
        # What is not thought to gain is played once in quick runs: its larger drives take long to fill.
        if not small(setting) or outstanding == 256 or load["workload"].startswith("financial")
    ]


def reasons(
    workload: str,
    trace: str,
    form: str,
    addresses: str,
    per_cent: int,
    requests: int,
    outstanding: int,
) -> Row:
    """What the loss hangs on: 8 zones, all of each, with one thing changed at a time, against noop."""
    played = source(workload, trace, form, addresses)
    ours = friendly(8, "all", reach(played, per_cent, requests))
    found = {}
    for change, settings in CHANGES.items():
        # Noop has none of the scheduler's settings.
        of_scheduler = any(key.startswith("host.ssd-friendly") for key in settings)
        base = {} if of_scheduler else settings
        found[change] = {
            name: bar(played, per_cent, requests, outstanding, chosen)["mb_per_s"]
            for name, chosen in (
                ("noop", {"host.scheduler": "noop"} | base),
                ("ssd-friendly", ours | settings),
            )
        }
    return {"workload": workload, "outstanding": outstanding, "changes": found}


@part("zone-reasons", cpu_s=(5, 25))
def reasons_jobs(setting: Setting) -> list[Job]:
    """The two workloads that gain in the dissertation."""
    return [
        Job(
            reasons,
            load | {"outstanding": outstanding},
            f"{load['workload']}, {outstanding} outstanding",
        )
        for load in loads(setting)
        if load["workload"] in ("financial1", "financial2", "financial1 head")
        for outstanding in ((256,) if small(setting) else (64, 256))
    ]
