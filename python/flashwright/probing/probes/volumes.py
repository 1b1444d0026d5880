"""Whether a drive consists of volumes: which bits of an address decide which writes wait for each other.

Some drives are cut into volumes by bits of the address, each with its own map, spare space and cleaning (SSDcheck,
MICRO 2018). Cleaning in one then delays no write to another. So two writes at a time go to random places of a full
drive. Of the pairs in which one is delayed the probe counts how often the other one is as well::

    of pairs in which one is held up, both are:       bit 12   13   14   15   16   17   18 ...
        where both have the same bit                     ##   ##   ##   ##   ##   ##   ##
        where they differ in it                          ##   ##   ##   ##   ##   --   ##         bit 17: two volumes

The same pairs answer for all bits. Other causes of that picture, and how the probe excludes them:

- Writes that are never delayed together, since dies clean each for itself: then no bit differs from others, and there
  is no verdict.
- A slow place: it is slow with any other place, so that bits of the pair do not matter.
- Volumes that are chosen by a sum or a hash of bits: they show at no single bit, but fewer pairs are delayed together;
  the verdict "none" needs nearly all of them.
- Log blocks, where neighbours are merged together: the probe runs on page maps alone.
- RAM that all volumes share, where writes wait for room together, and drives that take one command at a time: neither
  allows the verdict "none".
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from flashwright.drive.findings import Finding, Mark, Plot, Series, Verdict, unknown
from flashwright.probing.probes.shared.overwriting import (
    LEAST_BYTES,
    Base,
    grain,
    stream_write_size,
)
from flashwright.target.arrays import Array, Flags, Ints
from flashwright.target.question import UNTESTED, Context, Cost, kib

__all__ = ["Volumes", "shares"]


# Capacities that are overwritten at random after a fill. Chosen: every drive cleans then.
_OVERWRITTEN = 1.0
# Requests outstanding meanwhile.
_DEPTH = 32
# Pairs at most.
_PAIRS = 40_000
# Pairs with a stall after which no more are played. Chosen: a share is known to a fiftieth.
_STALLED = 600
# Pairs between two looks at that number.
_CHUNK = 1000
# Pairs with a stall that a verdict needs. Chosen: a share is known to a twentieth.
_LEAST = 120
# Share of all pairs above which long writes are no stalls but what writes cost. Chosen.
_MOST = 1 / 3
# How often both writes are held up where their places differ in a bit, over how often where they do not, up to which
# the bit selects a volume. Chosen.
_APART = 0.3
# How often both are held up where they do not differ in it, at least. Chosen.
_TOGETHER = 0.3
# Share of the pairs that are held up together if there is one volume. Chosen: nearly all.
_ALL = 0.8
# The same where a bit differs, over where it does not, at least. Chosen.
_EQUAL_RATIO = 0.85
# Standard errors by which shares differ that do. Chosen: four leave less than one chance in ten thousand.
_CLEAR = 4.0
# Time of the second write of a pair that nothing holds up over that of the first, above which commands are taken one at
# a time. Derived: it would be two.
_IN_TURN = 1.5


def shares(pairs: Ints, both: Flags, bits: Ints) -> Array:
    """How often both writes of a pair are held up, by each bit of their addresses.

    Parameters
    ----------
    pairs : array of int, (pairs, 2)
        Addresses, bytes.
    both : array of bool, one a pair
        Whether both were held up; pairs in which none was are left out.
    bits : array of int
        Which.

    Returns
    -------
    array of float, (bits, 4)
        The share where both have the same bit, where they differ in it, and the standard errors of these.

    Examples
    --------
    >>> pairs = np.array([[0, 4096], [0, 8192], [4096, 4096], [4096, 12288]] * 8)
    >>> both = (pairs[:, 0] ^ pairs[:, 1]) & 4096 == 0
    >>> shares(pairs, both, np.array([12]))[0, :2].tolist()
    [1.0, 0.0]
    """
    differs = (pairs[:, :1] ^ pairs[:, 1:]) >> bits & 1 == 1
    rows = []
    for at in range(bits.size):
        row = []
        for where in (~differs[:, at], differs[:, at]):
            n = max(int(np.count_nonzero(where)), 1)
            row.append((float(np.count_nonzero(both & where)) / n, n))
        same, other = row[0][0], row[1][0]
        # By the rule of succession: no number of pairs makes it sure.
        error = [np.sqrt((p * k + 1) * (k - p * k + 1) / (k + 2) ** 3) for p, k in row]
        rows.append([same, other, *error])
    return np.array(rows)


class Volumes:
    """Drives in a drive."""

    NAME: ClassVar[str] = "volumes"
    ABOUT: ClassVar[str] = (
        "Whether bits of the address cut the drive into volumes that clean each for itself (SSDcheck, MICRO 2018): "
        "is a write held up beside one that is, by the bits in which their places differ? In full mode, "
        "since it takes a full drive."
    )
    PARAMETERS: ClassVar[tuple[str, ...]] = ("internal-volumes", "volume-stride")
    OF_THE_WHOLE: ClassVar[tuple[str, ...]] = PARAMETERS

    def cost(self, context: Context) -> Cost:
        """A fill, as much at random, and the pairs."""
        if _why_not(context):
            return Cost()
        capacity = context.target.capacity_bytes
        written = int((1 + _OVERWRITTEN) * capacity) + 2 * _PAIRS * grain(context)
        return Cost(0, written, 2 * capacity // stream_write_size(context) + 2 * _PAIRS)

    def run(self, context: Context) -> list[Finding]:
        """Fill, overwrite, and write by pairs."""
        why = _why_not(context)
        if why:
            return _both_unknown(why)
        target, size, rng = context.target, grain(context), context.rng(self.NAME)
        chunk = stream_write_size(context)
        slots = target.capacity_bytes // chunk
        target.play("write", np.arange(slots) * chunk, chunk, depth=_DEPTH)
        context.progress(0.3)
        for part in np.array_split(rng.integers(0, slots, int(_OVERWRITTEN * slots)), 16):
            target.play("write", part * chunk, chunk, depth=_DEPTH)
        context.progress(0.7)
        places, took = _pairs(context, size, rng)
        context.progress(1.0)
        return _decide(context, places, took, size)


def _why_not(context: Context) -> str:
    if context.target.capacity_bytes < LEAST_BYTES:
        return f"the target has {context.target.capacity_bytes:,} B, too little to clean much"
    if context.mode != "full":
        return "volumes show where a full drive cleans, which full mode waits for"
    if not context.is_page_mapped:
        return "the drive is not known to have a page map: merges hold up what lies near, in any drive with logs"
    return ""


def _may_share_ram(context: Context) -> bool:
    """Whether there is RAM that writes may wait for, or nobody knows."""
    return any(
        name not in context.known or context.known[name].verdict != "absent"
        for name in ("write-buffer", "flush-honoured")
    )


def _pairs(context: Context, size: int, rng: np.random.Generator) -> tuple[Ints, Array]:
    """Places of pairs of writes, and how long each took."""
    target, slots = context.target, context.target.capacity_bytes // size
    places: list[Ints] = []
    took: list[Array] = []
    for done in range(0, _PAIRS, _CHUNK):
        pairs = rng.integers(0, slots, (_CHUNK, 2)) * size
        times = np.empty((_CHUNK, 2))
        for at, pair in enumerate(pairs):
            times[at] = target.play("write", pair, size, depth=2).latency_ns
        places.append(pairs)
        took.append(times)
        all_took = np.concatenate(took)
        if np.count_nonzero(all_took[:, 0] > Base.of(all_took.ravel()).stall_ns) > _STALLED:
            break
        context.progress(0.7 + 0.3 * done / _PAIRS)
    return np.concatenate(places), np.concatenate(took)


def _both_unknown(why: str, plot: tuple[Plot, ...] = (), **figures: float) -> list[Finding]:
    return [
        unknown("internal-volumes", why, "volumes", plot, **figures),
        unknown("volume-stride", why, "B", (), **figures),
    ]


def _decide(context: Context, places: Ints, took: Array, size: int) -> list[Finding]:
    base = Base.of(took.ravel())
    # What the second one causes may come too late for the first.
    stalled = took[:, 0] > base.stall_ns
    count = int(np.count_nonzero(stalled))
    figures = {"pairs": float(stalled.size), "held_up": float(count), "held_up_ns": base.stall_ns}
    seen = f"in {count} of {stalled.size} pairs of writes the first took over {base.stall_ns / 1e6:.3g} ms"
    if count < _LEAST:
        return _both_unknown(f"{seen}: too few to say whom they hold up.", (), **figures)
    if count > _MOST * stalled.size:
        return _both_unknown(f"{seen}: that is what writes cost.", (), **figures)
    first, second = (took[stalled] - base.median_ns).T
    both = second > 0.5 * first
    bits = np.arange(
        int(size - 1).bit_length(), int(context.target.capacity_bytes - 1).bit_length()
    )
    rows = shares(places[stalled], both, bits)
    same, other, same_error, other_error = rows.T
    together = float(both.mean())
    figures |= {"together_share": together}
    figures |= {
        f"bit_{bit}_differs_share": float(share) for bit, share in zip(bits, other, strict=True)
    }
    x = bits.astype(np.float64)
    selects = (other < _APART * same) & (same > _TOGETHER)
    selects &= same - other > _CLEAR * np.hypot(same_error, other_error)
    plot = Plot(
        "Pairs of writes whose first is held up",
        "bit of the address",
        "share in which both are",
        (Series("the same in this bit", x, same), Series("different in this bit", x, other)),
        tuple(Mark(float(bit), f"bit {bit}") for bit in bits[selects]),
    )
    seen += f", and in {together:.0%} of these so did the second"
    if selects.any():
        found = bits[selects]
        volumes = 1 << found.size
        # What is left once all pairs that differ in such a bit are put aside must wait together.
        same_volume = (
            (places[stalled][:, 0] ^ places[stalled][:, 1]) & int((1 << found).sum())
        ) == 0
        inside = float(both[same_volume].mean()) if same_volume.any() else 0.0
        figures |= {"within_share": inside, "between_share": float(both[~same_volume].mean())}
        names = ", ".join(str(bit) for bit in found)
        seen += (
            f"; where places differ in bit {names} of the address it is {both[~same_volume].mean():.0%}, where they "
            f"do not {inside:.0%}"
        )
        if inside < _ALL:
            why = f"{seen}: not all that have these bits in common wait together."
            return _both_unknown(why, (plot,), **figures)
        why = f"{seen}: they are volumes that clean each for itself."
        return _both_findings(volumes, 1 << int(found[0]), why, plot, figures)
    if together >= _ALL and bool(np.all(other >= _EQUAL_RATIO * same - _CLEAR * other_error)):
        calm = took[~stalled]
        in_turn = float(np.median(calm[:, 1] / np.maximum(calm[:, 0], 1.0)))
        figures |= {"second_over_first": in_turn}
        if in_turn > _IN_TURN:
            why = (
                f"{seen}; but the second takes {in_turn:.2f} times as long as the first at any time"
            )
            return _both_unknown(f"{why}: one command at a time.", (plot,), **figures)
        if _may_share_ram(context):
            return _both_unknown(
                f"{seen}; but they may wait for room in RAM that all volumes share.",
                (plot,),
                **figures,
            )
        why = f"{seen}, whatever bits of {kib(size)} and more they differ in: there is one volume."
        return _both_findings(None, None, why, plot, figures)
    why = f"{seen}: no bit of the address decides that, and too few wait together to say that there is one volume."
    return _both_unknown(why, (plot,), **figures)


def _both_findings(
    volumes: int | None, stride: int | None, why: str, plot: Plot, figures: dict[str, float]
) -> list[Finding]:
    """Both findings; None where there is one volume."""
    verdict: Verdict = "absent" if volumes is None else "found"
    return [
        Finding(name, verdict, value, unit, None, None, UNTESTED, why, plots, figures)
        for name, value, unit, plots in (
            ("internal-volumes", volumes, "volumes", (plot,)),
            ("volume-stride", stride, "B", ()),
        )
    ]
