"""What the judges of Kim et al. (2011) share: the paper's names and figures, and how gains are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from flashwright_papers import Answer, Plot, Verdict
from flashwright_papers import Found as Rows

from .play import NOOP, PAI, PAS, PASA
from .runs import MERGES

Row = Mapping[str, Any]


KIB = 1024


THREE = ("ssd-a", "ssd-b", "ssd-d")


BOTH = (PAS, PASA)


LITTLE = 0.05  # a change that counts as none


LARGE_KIB = 4096


def letter(drive: str) -> str:
    """SSD-A as A."""
    return drive[-1].upper()


def title(drive: str) -> str:
    """As the paper writes it."""
    return drive.upper()


def per_cent(values: Iterable[float]) -> str:
    """Changes, rounded."""
    return ", ".join(f"{100 * value:+.0f}" for value in values)


def mostly(held: Sequence[bool]) -> bool:
    """An ordering holds at 80 % of the points."""
    return sum(held) >= 0.8 * len(held)


class Found:
    """The bandwidths of one reading: which requests merge, how much may be dirty, and what state the drive was in."""

    def __init__(
        self, postmark: Sequence[Row], filebench: Sequence[Row], merge: str, limits: str
    ) -> None:
        def kept(rows: Sequence[Row]) -> list[Row]:
            return [
                row
                for row in rows
                if row["merge"] in ("", merge) and row["limits"] == limits and not row["error"]
            ]

        self.postmark = {
            (row["drive"], row["size_kib"], row["configuration"]): row for row in kept(postmark)
        }
        self.filebench = {
            (row["drive"], row["load"], row["configuration"]): row for row in kept(filebench)
        }
        self.sizes = sorted({size for _, size, _ in self.postmark})
        self.large = [size for size in self.sizes if size >= LARGE_KIB]
        self.small = [size for size in self.sizes if size <= 512]

    def gain(self, drive: str, size: int, configuration: str, over: str = NOOP) -> float:
        """Change of Postmark's write bandwidth."""
        one, other = (
            self.postmark[drive, size, which]["write_mb_per_s"] for which in (configuration, over)
        )
        return float(one / other - 1)

    def bench(self, drive: str, load: str, configuration: str, over: str = NOOP) -> float:
        """Change of Filebench's bandwidth."""
        one, other = (
            self.filebench[drive, load, which]["overall_mb_per_s"]
            for which in (configuration, over)
        )
        return float(one / other - 1)


MAIN = "drive filled once in order; pending requests do not merge; the fitted limit on dirty memory"
"""The main reading, in words."""


def readings(rows: Rows) -> dict[str, Found]:
    """The main reading, and the others that were played."""
    postmark, filebench = rows.get("postmark", ()), rows.get("filebench", ())
    found = {
        "main": Found(postmark, filebench, MERGES[0], "fitted"),
        "pending requests merge": Found(postmark, filebench, MERGES[1], "fitted"),
        "dirty limits of 64 bits": Found(postmark, filebench, MERGES[0], "64-bit"),
        # Filebench is not played on an erased drive: its files would be there without data.
        "erased drive": Found(rows.get("postmark-erased", ()), (), MERGES[0], "fitted"),
    }
    # PAI is in every configuration but one, which has no reading.
    played = {
        name: each
        for name, each in found.items()
        if any(key[2] == PAI for key in (*each.postmark, *each.filebench))
    }
    assert "main" in played
    return played


def apply_rule(
    rows: Rows,
    rule: Callable[[Found], tuple[Verdict, str]],
    plots: Callable[[Found], Sequence[Plot]],
    more: str = "",
) -> Answer:
    """A rule under the main reading, with its verdicts under the others beside."""
    main, *others = readings(rows).items()
    verdict, ours = rule(main[1])
    text = ". ".join(part for part in (ours, more) if part)
    also = {name: rule(found)[0] for name, found in others}
    return Answer(verdict, text, plots=plots(main[1]), also=also, used=MAIN)
