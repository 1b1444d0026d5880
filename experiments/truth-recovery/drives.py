"""Drives drawn at random, with what a probe of them should find.

Those of the old family are here; ``wide.py`` has the family that today's drives belong to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flashwright.simulation.ssd import Ssd

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
PAGES_KIB = (2, 3, 4, 6, 8, 10, 12, 16, 18, 20, 24, 32, 40, 48, 64)
HYBRIDS = ("superblock", "bast", "fast", "last")


@dataclass(frozen=True)
class Truth:
    """What was built in. Sizes are bytes; None stands for a thing that the drive does not have."""

    clustered_page: int | None
    """None where partial writes cost nothing more, so that nothing shows it."""
    clustered_block: int
    """What is erased together: a clustered block of each unit that writes are striped over."""
    read_buffer: int | None
    read_buffer_least: int
    write_buffer: int | None
    kind: str | None
    drain: str | None
    prefetch: int | None
    """What is read ahead."""
    mapping: str
    units: int
    """Clusters of chips that work at the same time."""
    queued: bool
    """Whether the drive takes more than one command at a time."""
    noise: float
    scheme: str


def truth(ssd: Ssd) -> Truth:
    """What a drive's description says about the parameters of the probes."""
    config = ssd.config
    geometry, controller = config["geometry"], config["controller"]
    together = geometry["cluster-channels"] * geometry["cluster-dies"]
    page = size(geometry["page-size"]) * together
    units = geometry["channels"] * geometry["dies-per-channel"] // together
    scheme = config["ftl"]["scheme"]
    mapping = "page" if scheme in ("page", "dftl") else "log-block"
    striped = units if mapping == "page" else 1
    write, read = size(controller["write-buffer"]["size"]), size(controller["read-buffer"]["size"])
    rewrites = config["host"]["partial-pages"] == "read-modify-write"
    return Truth(
        clustered_page=page if rewrites else None,
        clustered_block=page * geometry["pages-per-block"] * striped,
        read_buffer=read or None,
        read_buffer_least=size(controller["read-buffer"]["least"]),
        write_buffer=write or None,
        kind={"fifo": "buffer", "cache": "cache"}[controller["write-buffer"]["kind"]]
        if write
        else None,
        drain=controller["write-buffer"]["drain"] if write else None,
        prefetch=(read and size(controller["read-buffer"]["prefetch"])) or None,
        mapping=mapping,
        units=units,
        queued=controller["queue-depth"] != 1,
        noise=float(controller["noise"]),
        scheme=scheme,
    )


def size(text: str) -> int:
    """Bytes of a size as configurations write it."""
    number, unit = text.split()
    units = {"B": 1, "KiB": KIB, "MiB": MIB, "GiB": GIB, "kB": 10**3, "MB": 10**6, "GB": 10**9}
    return round(float(number) * units[unit])


def draw(seed: int) -> Ssd:
    """A drive, always the same for a seed.

    Channels and dies, how many chips work as one, page and block, the translation layer, spare space, times, link,
    buffers and noise are drawn; pages are 2 to 64 KiB and not only powers of two, buffers from none to 64 MiB.
    """
    rng = np.random.default_rng([seed, 2011])
    while True:
        channels = int(rng.choice([1, 2, 4, 5, 8, 10]))
        dies = int(rng.choice([1, 2, 4]))
        cluster_channels = int(rng.choice([c for c in (1, 2, 4, 5, 8) if channels % c == 0]))
        cluster_dies = int(rng.choice([d for d in (1, 2, 4) if dies % d == 0]))
        page = int(rng.choice(PAGES_KIB)) * KIB
        cluster_page = page * cluster_channels * cluster_dies
        units = channels * dies // (cluster_channels * cluster_dies)
        pages_per_block = int(rng.choice([32, 48, 64, 96, 128, 256]))
        block = cluster_page * pages_per_block
        hybrid = bool(rng.random() < 0.4)
        if cluster_page <= 256 * KIB and MIB <= block * (1 if hybrid else units) <= 32 * MIB:
            break
    logical = int(rng.uniform(2, 6) * GIB)
    scheme = str(rng.choice(HYBRIDS)) if hybrid else "page"
    # A log-block scheme needs room for its logs; a page map has 7 to 28 % to spare.
    spare = rng.uniform(1.1, 1.25) if hybrid else rng.uniform(1.07, 1.28)
    blocks = int(np.ceil(logical * spare / (block * units))) + 12
    # Whole pages, and whole blocks of log-block schemes.
    logical -= logical % (block * units)
    settings: dict[str, object] = {
        "name": f"drawn-{seed}",
        # Units that clean in their own time: what the probes' figures of single stalls are held against.
        "placement.policy": "single",
        "placement.allocation": "dynamic",
        "geometry.channels": channels,
        "geometry.dies-per-channel": dies,
        "geometry.cluster-channels": cluster_channels,
        "geometry.cluster-dies": cluster_dies,
        "geometry.page-size": f"{page // KIB} KiB",
        "geometry.pages-per-block": pages_per_block,
        "geometry.blocks-per-plane": blocks,
        "capacity.logical": f"{logical} B",
        "ftl.scheme": scheme,
        "timing.model": "parallel",
        "timing.read": f"{rng.uniform(25, 100):.0f} us",
        "timing.program": f"{np.exp(rng.uniform(np.log(200), np.log(1500))):.0f} us",
        "timing.erase": f"{rng.uniform(1.5, 5):.1f} ms",
        "timing.bus-rate": f"{np.exp(rng.uniform(np.log(40), np.log(400))):.0f} MB/s",
        "host.partial-pages": "whole" if rng.random() < 0.1 else "read-modify-write",
        "controller.interface-rate": f"{np.exp(rng.uniform(np.log(200), np.log(3000))):.0f} MB/s",
        "controller.queue-depth": int(rng.choice([1, 32])),
        "controller.read-overhead": f"{rng.uniform(2, 30):.0f} us",
        "controller.write-overhead": f"{rng.uniform(2, 30):.0f} us",
        "controller.noise": round(float(rng.uniform(0, 0.1)), 3),
    }

    def buffer() -> int:
        kilobytes = np.exp(rng.uniform(np.log(64), np.log(64 << 10)))
        return int(kilobytes) // 4 * 4 * KIB

    if rng.random() < 0.7:
        settings |= {
            "controller.write-buffer.size": f"{buffer()} B",
            "controller.write-buffer.kind": str(rng.choice(["fifo", "cache"])),
            "controller.write-buffer.drain": str(rng.choice(["lazy", "eager"])),
            "controller.write-buffer.oversized": str(rng.choice(["through", "stream"])),
            "controller.write-buffer.flushes": int(units),
        }
    if rng.random() < 0.7:
        kept = buffer()
        settings["controller.read-buffer.size"] = f"{kept} B"
        if rng.random() < 0.3:
            settings["controller.read-buffer.least"] = f"{min(kept // 4 // KIB, 512)} KiB"
        if rng.random() < 0.3:
            settings["controller.read-buffer.prefetch"] = f"{min(kept, 256 * KIB)} B"
    return Ssd.from_text("", f"drawn-{seed}").with_(settings)
