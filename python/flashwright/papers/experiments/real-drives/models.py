"""The drives that are compared: where each is described, and what its description does not hold.

A description is a drive file of Flashwright in the folder ``drives``. To give a drive dies and times, change that file
alone: the protocols find out whether time passes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from flashwright import Ssd
from flashwright.support.core import _core

_FOLDER = Path(__file__).parent / "drives"


@dataclass(frozen=True)
class Model:
    """A real drive and the model of it.

    Attributes
    ----------
    name : str
        As the table of measurements calls the drive.
    file : str
        Its description.
    capacity_gib : float
        What the host may use of the real drive, in GiB: with it, sizes are scaled to the model.
    floor : float or None
        Write amplification without any cleaning, which parity and metadata cause and the model does not have;
        figures of the model are multiplied by it. None where it is not known.
    """

    name: str
    file: str
    capacity_gib: float
    floor: float | None

    @property
    def text(self) -> str:
        """The description: a job's argument, so that a change of it reruns what rests on it."""
        return (_FOLDER / self.file).read_text(encoding="utf-8")


MAX = Model(
    "Micron 7450 MAX",
    "micron-7450-max.toml",
    capacity_gib=745.21,
    # Measured: one zone of 8 GiB at a time leaves nothing to copy.
    floor=1.033,
)
P5520 = Model(
    "Solidigm P5520",
    "solidigm-p5520.toml",
    capacity_gib=1788.5,
    # Measured: write amplification of the fill in order.
    floor=1.10,
)
PE8110 = Model(
    "SK hynix PE8110",
    "sk-hynix-pe8110.toml",
    capacity_gib=894.25,
    floor=None,
)
MODELS = (MAX, P5520, PE8110)


def drive_of(text: str, *, pages: int | None = None, used: float = 1.0) -> Ssd:
    """A drive at another scale, or with a part of its addresses in use.

    Parameters
    ----------
    text : str
        Its description.
    pages : int, optional
        Pages of a superblock, in place of those of the description; the number of superblocks stays. For counting
        models alone: a drive with dies keeps its blocks.
    used : float, optional
        Share of the addresses in use, from the start. The others are never written, which leaves the same drive with
        fewer addresses.
    """
    ssd = Ssd.from_text(text)
    geometry = ssd.config["geometry"]
    scale = 1.0 if pages is None else pages / int(geometry["pages-per-block"])
    logical = round(pages_of(ssd) * used * scale)
    page = page_bytes(ssd)
    changes: dict[str, object] = {"capacity.logical": f"{logical * page} B"}
    if pages is not None:
        changes["geometry.pages-per-block"] = pages
    return ssd.with_(changes)


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
