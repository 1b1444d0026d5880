"""The widened family: what drives of today have beyond those of ``drives.py``, and what a probe of them should find.

An SLC cache of fixed or changing size, mapping units apart from pages, several bits per cell, a map that does not fit
in RAM, cleaning in steps, dies that prefer some operations, and programs that reads suspend. All have a page map.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from drives import GIB, KIB, MIB, size

from flashwright.simulation.ssd import Ssd

__all__ = ["NONE", "Answer", "answers", "draw_wide"]

NONE = "none"
"""The value of a finding whose verdict is "absent"."""
SCHEDULES = ("foreground", "background", "preemptive", "rate-limited", "throttled")
# What a program takes, by bits per cell, ms: from fast to slow parts of the data sheets of 2015 to 2024.
PROGRAMS_MS = {1: (0.2, 0.6), 2: (0.6, 1.6), 3: (0.6, 2.0), 4: (2.0, 4.0)}


@dataclass(frozen=True)
class Answer:
    """The right answer to a probe.

    Attributes
    ----------
    values : tuple
        Right to the digit; words, and ``"none"``.
    ranges : tuple of (low, high)
        Numbers within these are right too.
    answerable : bool
        Whether requests can show it. If not, "cannot tell" is right, and a claim must still be among the values.
    """

    values: tuple[object, ...] = ()
    ranges: tuple[tuple[float, float], ...] = ()
    answerable: bool = True

    def judge(self, verdict: str, value: object) -> str:
        """``right``, ``unknown``, ``wrong``, or ``hidden`` where "cannot tell" is right.

        >>> Answer((4096,)).judge("found", 4096), Answer((4096,), answerable=False).judge("unknown", None)
        ('right', 'hidden')
        """
        if verdict == "unknown":
            return "unknown" if self.answerable else "hidden"
        found = NONE if verdict == "absent" else value
        if found in self.values:
            return "right"
        near = isinstance(found, int | float) and any(a <= found <= b for a, b in self.ranges)
        return "right" if near else "wrong"

    @property
    def text(self) -> str:
        """As a table shows it."""
        alternatives = [
            *map(str, self.values),
            *(f"{low:.4g} to {high:.4g}" for low, high in self.ranges),
        ]
        return " or ".join(alternatives) or "nothing"


def draw_wide(seed: int, *, small: bool = False) -> Ssd:
    """A drive of the widened family, always the same for a seed.

    Parameters
    ----------
    seed : int
        Which.
    small : bool, optional
        Of 0.5 to 1 GiB instead of 2 to 6, with blocks of all dies of 8 MiB at the most instead of 48.
    """
    rng = np.random.default_rng([seed, 2026])
    gib, most = ((0.5, 1.0), 8 * MIB) if small else ((2.0, 6.0), 48 * MIB)
    logical = int(rng.uniform(*gib) * GIB)
    bits = int(rng.choice([1, 2, 3, 4], p=[0.1, 0.2, 0.5, 0.2]))
    while True:
        channels, dies = int(rng.choice([1, 2, 4, 8])), int(rng.choice([1, 2, 4]))
        page = int(rng.choice([8, 16, 32])) * KIB
        pages = int(rng.choice([48, 72, 96, 144, 192])) // bits * bits
        if MIB <= page * pages * channels * dies <= most:
            break
    unit = int(rng.choice([4 * KIB, 8 * KIB, page]))
    kind = str(rng.choice(["slc", "map", "plain"], p=[0.4, 0.25, 0.35]))
    if kind == "slc":
        bits, pages = max(bits, 2), pages - pages % max(bits, 2)
    block = page * pages
    blocks = int(np.ceil(logical * rng.uniform(1.1, 1.28) / (block * channels * dies))) + 16
    logical -= logical % (block * channels * dies)
    schedule = str(rng.choice(SCHEDULES))
    program = rng.uniform(*PROGRAMS_MS[bits])
    name = f"small-{seed}" if small else f"wide-{seed}"
    settings: dict[str, object] = {
        "name": name,
        # Units that clean in their own time: what the probes' figures of single stalls are held against.
        "placement.policy": "single",
        "placement.allocation": "dynamic",
        "geometry.channels": channels,
        "geometry.dies-per-channel": dies,
        "geometry.page-size": f"{page // KIB} KiB",
        "geometry.pages-per-block": pages,
        "geometry.bits-per-cell": bits,
        "geometry.mapping-unit": f"{unit} B" if unit < page else "0 B",
        "geometry.superblock": "drive" if rng.random() < 0.5 else "block",
        "timing.model": "parallel",
        "timing.read": f"{rng.uniform(35, 110):.0f} us",
        "timing.program": f"{program * 1e3:.0f} us",
        "timing.erase": f"{rng.uniform(2, 5):.1f} ms",
        "timing.bus-rate": f"{np.exp(rng.uniform(np.log(166), np.log(1600))):.0f} MB/s",
        "timing.die-order": str(rng.choice(["fifo", "by-class"])),
        "chips.programming": "one-shot" if bits > 1 and rng.random() < 0.6 else "page",
        "chips.suspends": str(rng.choice(["nothing", "erases", "programs-and-erases"])),
        "gc.schedule": schedule,
        "host.partial-pages": "read-modify-write",
        "controller.interface-rate": f"{np.exp(rng.uniform(np.log(500), np.log(6500))):.0f} MB/s",
        "controller.queue-depth": int(rng.choice([32, 256])),
        "controller.read-overhead": f"{rng.uniform(1, 15):.0f} us",
        "controller.write-overhead": f"{rng.uniform(1, 15):.0f} us",
        "controller.noise": round(float(rng.uniform(0, 0.08)), 3),
    }
    if kind == "slc":
        cache = str(rng.choice(["fixed", "dynamic"]))
        share = rng.uniform(0.04, 0.15) if cache == "fixed" else rng.uniform(0.3, 0.9)
        if cache == "fixed":
            # What the cache takes is no room for normal data.
            blocks = int(np.ceil(blocks / (1 - share))) + 4
        settings |= {
            "slc.cache": cache,
            "slc.block-share": round(float(share), 3),
            "slc.when-full": str(rng.choice(["direct", "fold"])),
            "slc.page-read": "25 us",
            "slc.page-program": f"{program * 1e3 / rng.uniform(3, 7):.0f} us",
            "slc.fold-after": f"{rng.uniform(0.1, 3):.1f} s",
        }
    entries = logical // unit
    if kind == "map":
        settings |= {
            "ftl.scheme": "dftl",
            "ftl.dftl.cmt-entries": int(entries * rng.uniform(0.03, 0.4)),
        }
    settings |= {
        "geometry.blocks-per-plane": blocks,
        "capacity.logical": f"{logical} B",
    }
    together = page * (bits if settings["chips.programming"] == "one-shot" else 1)
    if unit < page or together > page:
        # What a die programs at once is collected in RAM, which capacitors carry.
        ram = int(rng.integers(4, 9)) * together * channels * dies
        settings["chips.write-ram"] = f"{ram} B"
    elif rng.random() < 0.5:
        kept = int(np.exp(rng.uniform(np.log(256), np.log(32 << 10)))) // 4 * 4 * KIB
        settings |= {
            "controller.write-buffer.size": f"{kept} B",
            "controller.write-buffer.kind": str(rng.choice(["fifo", "cache"])),
            "controller.write-buffer.drain": str(rng.choice(["lazy", "eager"])),
            "controller.write-buffer.oversized": "stream",
            "controller.write-buffer.flushes": channels * dies,
        }
    if rng.random() < 0.4:
        kept = int(np.exp(rng.uniform(np.log(256), np.log(32 << 10)))) // 4 * 4 * KIB
        settings["controller.read-buffer.size"] = f"{kept} B"
        if rng.random() < 0.5:
            settings["controller.read-buffer.prefetch"] = f"{min(kept, 256 * KIB)} B"
    return Ssd.from_text("", name).with_(settings)


def _exactly(*values: object) -> Answer:
    return Answer(tuple(NONE if value is None else value for value in values))


def answers(ssd: Ssd) -> dict[str, Answer]:
    """The right answer for each parameter that is judged."""
    config = ssd.config
    geometry, controller, chips = config["geometry"], config["controller"], config["chips"]
    page, bits = size(geometry["page-size"]), geometry["bits-per-cell"]
    unit = size(geometry["mapping-unit"]) or page
    units = geometry["channels"] * geometry["dies-per-channel"]
    block = page * geometry["pages-per-block"]
    capacity = size(config["capacity"]["logical"])
    # Pages of a cell that are programmed at once lie on one unit.
    programmed = page * (bits if chips["programming"] == "one-shot" else 1)
    write, read = controller["write-buffer"], controller["read-buffer"]
    wrote, kept = size(write["size"]) or None, size(read["size"]) or None
    ahead = size(read["prefetch"]) if kept else 0
    stepwise = config["gc"]["schedule"] != "foreground"
    ram = size(chips["write-ram"])
    given = {
        "kind-of-device": _exactly("flash"),
        "clustered-page": _exactly(unit),
        "mapping": _exactly("page"),
        # What is cleaned in steps shows no border of blocks, nor does what RAM hides that no flush empties.
        "clustered-block": Answer((block * units,), answerable=not stepwise and not ram),
        "parallel-units": _exactly(units),
        "program-unit": _exactly(programmed) if units > 1 else Answer((programmed,), (), False),
        "stripe": _exactly(programmed * units, page * units, unit * units)
        if units > 1
        else _exactly(None),
        "read-buffer": _exactly(kept),
        "read-buffer-least": _exactly(size(read["least"]) or None if kept else None),
        "prefetch": _exactly("yes" if ahead else "no"),
        "prefetch-size": _exactly(ahead or None),
        "write-buffer": _exactly(wrote),
        "buffer-kind": _exactly(
            {"fifo": "buffer", "cache": "cache"}[write["kind"]] if wrote else None
        ),
        "write-buffer-drain": _exactly(write["drain"] if wrote else None),
        "flush-honoured": _exactly("yes" if wrote else None),
        "pause-period": _exactly(None),
        "throttled-share": _exactly(None),
        "compression": _exactly(None),
        "deduplication": _exactly(None),
        # Quick mode does not look for them, and dies that clean each for itself show nothing.
        "internal-volumes": Answer((NONE,), answerable=False),
        "program-suspension": _exactly(
            "yes" if chips["suspends"] == "programs-and-erases" else "no"
        ),
        # RAM that outlives a loss of power hides erases.
        "erase-suspension": Answer(
            ("no" if chips["suspends"] == "nothing" else "yes",), answerable=not ram
        ),
        **_of_cache(config, capacity),
    }
    if ram:
        # Capacitors carry it, so that no flush waits and nothing shows when it is empty.
        given |= {
            "write-buffer": Answer((), ((programmed, 10 * ram),), answerable=False),
            "buffer-kind": Answer(("buffer", "cache"), answerable=False),
            "write-buffer-drain": Answer(("eager",), answerable=False),
            "flush-honoured": _exactly("no"),
        }
    if config["ftl"]["scheme"] == "dftl":
        # A page of the map is read or written as a whole, and the cache holds what was used last.
        reach = config["ftl"]["dftl"]["cmt-entries"] * unit
        given["map-reach"] = Answer((), ((reach / 2, reach * 2),))
        # A read that is repeated finds its entry of the map, which looks like a cache of data.
        for name in ("read-buffer", "read-buffer-least"):
            given[name] = Answer(given[name].values, answerable=False)
    else:
        given["map-reach"] = _exactly(None)
    return given


def _of_cache(config: dict[str, dict[str, object]], capacity: int) -> dict[str, Answer]:
    """What is right of the SLC cache."""
    slc, geometry = config["slc"], config["geometry"]
    names = ("slc-cache", "slc-cache-ratio", "slc-cache-kind", "slc-cache-folding")
    if slc["cache"] == "none":
        return {name: _exactly(None) for name in names}
    page, bits = size(str(geometry["page-size"])), _whole(geometry["bits-per-cell"])
    planes = _whole(geometry["channels"]) * _whole(geometry["dies-per-channel"])
    blocks = _whole(geometry["blocks-per-plane"]) * planes
    taken = float(str(slc["block-share"])) * blocks
    holds = taken * page * (_whole(geometry["pages-per-block"]) // bits)
    # Where it holds all of the drive no cliff is met.
    shown = holds < 0.8 * capacity
    return {
        "slc-cache": Answer((), ((0.85 * holds, 1.3 * holds),), shown),
        "slc-cache-ratio": Answer((), ((1.1, 2.0 * 7),), shown),
        "slc-cache-kind": Answer((slc["cache"],), (), shown),
        "slc-cache-folding": Answer(("yes",), (), shown),
    }


def _whole(value: object) -> int:
    return int(str(value))
