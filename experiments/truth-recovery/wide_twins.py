"""Drives of today drawn at random, of the simulator's own family.

They have SLC caches, two units, map caches and stepwise cleaning.
"""

from __future__ import annotations

import numpy as np

from flashwright.run.ssd import Ssd

KIB, MIB = 1 << 10, 1 << 20

SCHEDULES = ("foreground", "foreground", "background", "preemptive", "rate-limited", "throttled")


def draw_wide(seed: int) -> Ssd:
    """A drive, always the same for a seed.

    Each has at least one of: an SLC cache (fixed or dynamic), a program of several mapping units, a map that is not
    wholly in RAM, cleaning in steps. Translation is by pages. Drives are small (0.5 to 1 GiB), and blocks and caches
    are scaled with them.
    """
    rng = np.random.default_rng([seed, 19])
    while True:
        cache = str(rng.choice(["none", "none", "fixed", "dynamic"]))
        two_units = bool(rng.random() < 0.6)
        map_cache = cache == "none" and bool(rng.random() < 0.4)
        schedule = str(rng.choice(SCHEDULES))
        if cache != "none" or two_units or map_cache or schedule != "foreground":
            break
    bits = 3 if cache != "none" or (two_units and rng.random() < 0.5) else 1
    at_once = two_units and bits > 1 and bool(rng.random() < 0.7)
    while True:
        channels, dies = int(rng.choice([1, 2, 4])), int(rng.choice([1, 2]))
        page = int(rng.choice([4, 8, 16])) * KIB
        planes = int(rng.choice([1, 2, 4])) if two_units else 1
        pages_per_block = int(rng.choice([48, 96, 192]))
        row = page * pages_per_block * channels * dies * planes
        if MIB <= row <= 8 * MIB:
            break
    unit = 4 * KIB if two_units else page
    logical = int(rng.uniform(0.5, 1.0) * 1024) * MIB
    spare = rng.uniform(1.08, 1.28)
    blocks = int(np.ceil(logical * spare / row)) + 8
    program_us = float(np.exp(rng.uniform(np.log(250), np.log(1200))))
    settings: dict[str, object] = {
        "name": f"wide-{seed}",
        "geometry.channels": channels,
        "geometry.dies-per-channel": dies,
        "geometry.planes-per-die": planes,
        "geometry.page-size": f"{page // KIB} KiB",
        "geometry.pages-per-block": pages_per_block,
        "geometry.bits-per-cell": bits,
        "capacity.logical": f"{logical} B",
        "ftl.scheme": "dftl" if map_cache else "page",
        "gc.schedule": schedule,
        "timing.model": "parallel",
        "timing.read": f"{rng.uniform(30, 90):.0f} us",
        "timing.program": f"{program_us * (2 if at_once else 1):.0f} us",
        "timing.erase": f"{rng.uniform(1.5, 5):.1f} ms",
        "timing.bus-rate": f"{np.exp(rng.uniform(np.log(150), np.log(1000))):.0f} MB/s",
        "controller.interface-rate": f"{np.exp(rng.uniform(np.log(500), np.log(3000))):.0f} MB/s",
        "controller.queue-depth": 32,
        "controller.read-overhead": f"{rng.uniform(2, 20):.0f} us",
        "controller.write-overhead": f"{rng.uniform(2, 20):.0f} us",
        "controller.noise": round(float(rng.uniform(0, 0.05)), 3),
    }
    if two_units:
        together = page * planes * (bits if at_once else 1)
        settings |= {
            "geometry.mapping-unit": f"{unit // KIB} KiB",
            "geometry.superblock": "die" if planes > 1 else "block",
            "chips.programming": "one-shot" if at_once else "page",
            # Each open block collects a program of every die: of host data, of cleaning, and as much in the cache.
            "chips.write-ram": f"{together * planes * channels * dies * int(rng.choice([8, 16, 32]))} B",
        }
    if cache != "none":
        settings |= {
            "slc.cache": cache,
            "slc.block-share": round(float(rng.uniform(0.06, 0.12)), 3)
            if cache == "fixed"
            else round(float(rng.uniform(0.3, 0.6)), 3),
            "slc.page-read": f"{rng.uniform(20, 30):.0f} us",
            "slc.page-program": f"{program_us / rng.uniform(3, 6):.0f} us",
            "slc.fold-after": f"{rng.uniform(0.1, 2):.1f} s",
        }
        if cache == "fixed":
            share = float(str(settings["slc.block-share"]))
            blocks = int(np.ceil(blocks / (1 - share))) + 2
    if map_cache:
        settings["ftl.dftl.cmt-entries"] = int(logical / unit * rng.uniform(0.05, 0.3))
    settings["geometry.blocks-per-plane"] = blocks
    if not two_units and rng.random() < 0.6:
        buffer = int(np.exp(rng.uniform(np.log(256), np.log(8 << 10)))) // 4 * 4 * KIB
        settings |= {
            "controller.write-buffer.size": f"{buffer} B",
            "controller.write-buffer.drain": str(rng.choice(["lazy", "eager"])),
            "controller.write-buffer.flushes": channels * dies,
        }
    if rng.random() < 0.4:
        kept = int(np.exp(rng.uniform(np.log(256), np.log(8 << 10)))) // 4 * 4 * KIB
        settings["controller.read-buffer.size"] = f"{kept} B"
    return Ssd.from_text("", f"wide-{seed}").with_(settings)
