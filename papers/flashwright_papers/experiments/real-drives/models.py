"""The drives that are compared: where each is described, and what its description does not hold.

Each is a bundled drive of Flashwright. Protocols play it as it is, with times, or as a
drive that only counts, which is faster and has the same write amplification.
"""

from __future__ import annotations

from dataclasses import dataclass

from flashwright import Ssd
from flashwright.support.core import _core


@dataclass(frozen=True)
class Model:
    """A real drive and the model of it.

    Attributes
    ----------
    name : str
        As the table of measurements calls the drive.
    device : str
        The bundled drive that models it.
    capacity_gib : float
        What the host may use of the real drive, in GiB: with it, sizes are scaled to the model.
    floor : float or None
        Write amplification without any cleaning, which parity and metadata cause and the model does not have;
        figures of the model are multiplied by it. None where it is not known.
    """

    name: str
    device: str
    capacity_gib: float
    floor: float | None

    @property
    def text(self) -> str:
        """The description: a job's argument, so that a change of it reruns what rests on it."""
        return _core.config_bundled(self.device)


MAX = Model(
    "Micron 7450 MAX",
    "micron-7450-max",
    capacity_gib=745.21,
    # Measured: one zone of 8 GiB at a time leaves nothing to copy.
    floor=1.033,
)
P5520 = Model(
    "Solidigm P5520",
    "solidigm-p5520",
    capacity_gib=1788.5,
    # Measured: write amplification of the fill in order.
    floor=1.10,
)
PE8110 = Model(
    "SK hynix PE8110",
    "sk-hynix-pe8110",
    capacity_gib=894.25,
    floor=None,
)
MODELS = (MAX, P5520, PE8110)


@dataclass(frozen=True)
class Cached(Model):
    """A drive with an SLC cache.

    Attributes
    ----------
    past_cache : float
        A share of the drive that is more than its cache takes.
    """

    past_cache: float


def _cached(name: str, device: str, past_cache: float) -> Cached:
    return Cached(name, device, capacity_gib=1000.2e9 / 2**30, floor=None, past_cache=past_cache)


FX900 = _cached("HP FX900 1 TB", "hp-fx900", 0.4)
PRO980 = _cached("Samsung 980 Pro 1 TB", "samsung-980-pro", 0.3)
P1 = _cached("Crucial P1 1 TB", "crucial-p1", 0.2)
CACHED = (FX900, PRO980, P1)


def drive_of(
    text: str, *, pages: int | None = None, rows: int | None = None, used: float = 1.0
) -> Ssd:
    """A drive without times, or at another scale, or with a part of its addresses in use.

    The number of superblocks stays, and the share of them that the host may fill.

    Parameters
    ----------
    text : str
        Its description.
    pages : int, optional
        Mapping units of a superblock. Only counts are simulated then: a superblock is a block of so many pages.
    rows : int, optional
        Rows of a superblock, in place of those of the description: one program on each die. The erase time keeps its
        share of the die's.
    used : float, optional
        Share of the addresses in use, from the start. The others are never written, which leaves the same drive with
        fewer addresses.
    """
    ssd = Ssd.from_text(text)
    units = units_of_superblock(ssd)
    superblocks = pages_of(ssd) / units * used
    changes: dict[str, object] = {}
    if pages is not None:
        ssd, units = _counting(ssd, pages), pages
    elif rows is not None:
        geometry, erase = ssd.config["geometry"], ssd.config["timing"]["erase"]
        before, after = int(geometry["pages-per-block"]), rows * int(geometry["bits-per-cell"])
        units = units * after // before
        changes = {
            "geometry.pages-per-block": after,
            "timing.erase": f"{_core.time_read(erase) * after // before} ns",
        }
    changes["capacity.logical"] = f"{round(superblocks * units) * page_bytes(ssd)} B"
    return ssd.with_(changes)


def _counting(ssd: Ssd, pages: int) -> Ssd:
    """One plane whose blocks stand for the superblocks of a drive, cleaned and filled as those are."""
    config = ssd.config
    return Ssd.from_text("").with_(
        {
            "geometry.channels": 1,
            "geometry.dies-per-channel": 1,
            "geometry.planes-per-die": 1,
            "geometry.blocks-per-plane": config["geometry"]["blocks-per-plane"],
            "geometry.pages-per-block": pages,
            "geometry.page-size": f"{page_bytes(ssd)} B",
            "timing.model": "none",
            "gc.victim": config["gc"]["victim"],
            "gc.free-blocks-min": config["gc"]["free-blocks-min"],
            "placement.policy": config["placement"]["policy"],
        }
    )


def units_of_superblock(ssd: Ssd) -> int:
    """Mapping units of a superblock that spans the drive, or of a block of a drive with one plane."""
    geometry = ssd.config["geometry"]
    planes = geometry["channels"] * geometry["dies-per-channel"] * geometry["planes-per-die"]
    page = _core.size_read(geometry["page-size"])
    return int(planes * geometry["pages-per-block"] * page // page_bytes(ssd))


def pages_of(ssd: Ssd) -> int:
    """Logical pages of a drive."""
    return _core.config_check(ssd.toml)[1]


def page_bytes(ssd: Ssd) -> int:
    """Bytes of a page as the map counts them."""
    geometry = ssd.config["geometry"]
    unit = _core.size_read(geometry["mapping-unit"])
    return unit or _core.size_read(geometry["page-size"])


def has_time(ssd: Ssd) -> bool:
    """Whether time passes on a drive, or only counts are simulated."""
    return bool(ssd.config["timing"]["model"] != "none")
