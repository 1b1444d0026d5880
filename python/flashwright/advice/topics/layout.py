"""How to lay the drive out: space to reserve, partition, file systems, discards."""

from __future__ import annotations

import math
from collections.abc import Iterator

from flashwright.advice.lines import Line, Partition
from flashwright.advice.space import Advice
from flashwright.advice.topics.known import FS_BLOCK_BYTES, Known, rounded_up, sized
from flashwright.support.core import _core

__all__ = ["Space", "utilization_for"]

# ext4 ignores a stripe that is larger than a block group, which has 8 blocks for each byte of one block's bitmap.
_EXT4_STRIPE_BLOCKS = 8 * FS_BLOCK_BYTES

# Partitions begin no earlier than all tools let them; the copy of the table at the end has less room than this.
_TABLE_BYTES = 1 << 20

# Where advice by runs of the workload comes from.
_BY_RUNS = "runs of the workload"

# Ours: what uniform random writes may cost where nobody says what the drive is for.
_AMPLIFICATION_MAX = 2.0


class Space(Known):
    """Advice for the drive's space."""

    def space(self) -> Iterator[Line]:
        """How much space to leave unused."""
        topic = "spare space"
        capacity = self.profile.target.capacity_bytes
        if self.spare is not None and self.spare.points:
            yield self.simulated_space(self.spare)
            return
        mapping, ratio = self.finding("mapping"), self.physical_over_logical()
        if mapping is None or mapping.verdict != "found":
            yield self.silence(topic, "mapping")
        elif mapping.value == "log-block":
            yield self.line(
                topic,
                "nothing more: a log-block map merges all along, and is not faster on a part of its space (Hu 2012, "
                "section 4.3)",
                "mapping",
            )
        elif ratio is None:
            yield self.silence(topic, "spare-space")
        else:
            share = min(1.0, utilization_for(_AMPLIFICATION_MAX) * ratio)
            self.reserve_bytes = math.ceil(capacity * (1 - share))
            what = _reserved(share)
            yield self.line(
                topic,
                f"{what}: uniform random writes then cost at most {_AMPLIFICATION_MAX:g} pages a page (FIFO cleaning, "
                "closed form); a workload and a twin tell it better",
                "mapping",
                "spare-space",
                commands=self.emptying(),
            )

    def physical_over_logical(self) -> float | None:
        """The flash over what the host sees, if the spare space was found."""
        finding = self.finding("spare-space")
        if (
            finding is None
            or finding.verdict != "found"
            or not isinstance(finding.value, int | float)
        ):
            return None
        if finding.unit == "B":
            return 1 + finding.value / self.profile.target.capacity_bytes
        return float(finding.value if finding.value >= 1 else 1 + finding.value)

    def simulated_space(self, spare: Advice) -> Line:
        """How much space to leave unused, by runs on the twin."""
        topic = "spare space"
        if spare.targets and spare.recommended is None:
            wanted = ", ".join(target.text for target in spare.targets)
            return Line(topic, f"no advice: no reservation meets {wanted}", False, ("twin",))
        point = spare.recommended or spare.knee
        if point is None:
            return Line(
                topic,
                "nothing more: on the twin, write amplification does not turn steep in the range that was tried",
                True,
                ("twin",),
                source=_BY_RUNS,
            )
        assert self.profile.twin is not None, "what was played was played on the twin"
        _, logical, physical = _core.config_check(self.profile.twin.toml)
        share = min(1.0, point.utilization * physical / logical)
        self.reserve_bytes = math.ceil(self.profile.target.capacity_bytes * (1 - share))
        reason = (
            f"the least that meets {', '.join(target.text for target in spare.targets)}"
            if spare.recommended is not None
            else "beyond it write amplification turns steep"
        )
        what = _reserved(share)
        return Line(
            topic,
            f"{what}: {reason}, by runs of the workload on the twin (capacity.utilization={point.utilization:g})",
            True,
            ("twin",),
            source=_BY_RUNS,
            commands=self.emptying(),
        )

    def emptying(self) -> tuple[str, ...]:
        """What makes the reserved space known to the drive as unused."""
        return (f"blkdiscard {self.disk.path}",) if self.reserve_bytes else ()

    def layout(self) -> Iterator[Line]:
        """Where a partition begins and ends."""
        topic = "partition"
        name = next((p for p in ("clustered-block", "clustered-page") if self.size(p)), None)
        if name is None:
            yield self.silence(topic, "clustered-block", "clustered-page")
            return
        target = self.profile.target
        size = self.size(name)
        assert size is not None
        grain = math.lcm(size, target.block_bytes, FS_BLOCK_BYTES)
        start = rounded_up(_TABLE_BYTES, grain)
        end = (target.capacity_bytes - max(self.reserve_bytes, _TABLE_BYTES)) // grain * grain
        if end - start < grain:
            yield Line(
                topic,
                f"no advice: {sized(target.capacity_bytes)} have no room for a partition aligned to {sized(grain)}",
                False,
                (name,),
            )
            return
        self.partition = Partition(start, end, grain, target.capacity_bytes - end)
        block = target.block_bytes
        disk = self.disk.path
        what = name.replace("-", " ")
        known = name == "clustered-block" or self.verdict("clustered-block") == "absent"
        only = "" if known else "; the clustered block is not known"
        behind = (
            f"; the {sized(self.partition.reserved_bytes)} behind it stay without a partition"
            if self.reserve_bytes
            else ""
        )
        yield self.line(
            topic,
            f"from {sized(start)} to {sized(end)}, whole {what}s of {sized(size)}{only}{behind}",
            name,
            commands=(
                f"sgdisk --set-alignment=1 --new=1:{start // block}:{end // block - 1} {disk}",
                f"parted --script --align none {disk} mklabel gpt mkpart flashwright {start}B {end - 1}B",
            ),
        )

    def file_systems(self) -> Iterator[Line]:
        """How to make ext4 and XFS."""
        topic = "file system"
        if self.page is None:
            yield self.silence(topic, "clustered-page")
            return
        # Whole blocks of the file system and whole clustered pages.
        unit = math.lcm(self.page, FS_BLOCK_BYTES)
        told = []
        if unit != self.page:
            told.append(
                f"{sized(self.page)} are no whole blocks of {sized(FS_BLOCK_BYTES)}, so it is {sized(unit)}"
            )
        name = next((p for p in ("stripe", "clustered-block") if self.size(p)), None)
        wide = unit if name is None else math.lcm(self.size(name) or unit, unit)
        rests_on = ("clustered-page",) if name is None else ("clustered-page", name)
        if name is None:
            what = "is there" if self.verdict("clustered-block") == "absent" else "is known"
            told.append(f"neither stripe nor clustered block {what}, so the width is one unit")
        elif wide != self.size(name):
            told.append(f"the {name.replace('-', ' ')} is rounded up to {sized(wide)}")
        stride, width = unit // FS_BLOCK_BYTES, wide // FS_BLOCK_BYTES
        ext4 = f"-b {FS_BLOCK_BYTES} -E stride={stride}"
        too_wide = width > _EXT4_STRIPE_BLOCKS
        self.mkfs["mkfs.ext4"] = ext4 if too_wide else f"{ext4},stripe-width={width}"
        ext4_told = list(told)
        if too_wide:
            largest = sized(_EXT4_STRIPE_BLOCKS * FS_BLOCK_BYTES)
            ext4_told.append(f"no stripe-width: ext4 goes by none above {largest}")
        yield self.line(
            "ext4",
            f"a stride of {stride} blocks is a clustered page{_told(ext4_told)}",
            *rests_on,
            commands=(f"mkfs.ext4 {self.mkfs['mkfs.ext4']} {self.disk.partition}",),
        )
        self.mkfs["mkfs.xfs"] = f"-d su={unit},sw={wide // unit}"
        yield self.line(
            "xfs",
            f"a stripe unit of {sized(unit)} is a clustered page{_told(told)}",
            *rests_on,
            commands=(f"mkfs.xfs {self.mkfs['mkfs.xfs']} {self.disk.partition}",),
        )

    def discard(self) -> Iterator[Line]:
        """When to discard what is free."""
        topic = "discard"
        mapping = self.finding("mapping")
        block = self.size("clustered-block")
        if mapping is None or mapping.verdict != "found":
            yield self.silence(topic, "mapping")
        elif mapping.value == "page":
            yield self.line(
                topic,
                "run fstrim now and then: under a page map, each page that is given back serves as spare space",
                "mapping",
                commands=("fstrim --verbose MOUNTPOINT",),
            )
        elif block is None:
            yield self.silence(topic, "clustered-block")
        else:
            yield self.line(
                topic,
                f"run fstrim now and then for ranges of a clustered block, {sized(block)}, or more: a log-block map "
                "frees whole blocks only",
                "mapping",
                "clustered-block",
                commands=(f"fstrim --verbose --minimum {block} MOUNTPOINT",),
            )


def utilization_for(amplification: float) -> float:
    """The share of the flash at which uniform random writes cost so much.

    FIFO cleaning has a closed form: where victims are valid to a share p, write amplification is 1 / (1 - p) and
    p = exp(-(1 - p) / u). Greedy cleaning costs a few per cent less.

    Parameters
    ----------
    amplification : float
        Pages programmed per page written, above 1.

    Returns
    -------
    float
        Logical over physical space, 0-1.

    Examples
    --------
    >>> [round(utilization_for(wa), 3) for wa in (1.255, 1.876, 2.693, 5.179)]
    [0.5, 0.7, 0.8, 0.9]
    """
    valid = 1 - 1 / amplification
    return (1 - valid) / -math.log(valid)


def _reserved(share: float) -> str:
    """What to do where the host may use a share of the drive."""
    if share >= 1:
        return "nothing more to reserve"
    return f"discard the whole disk, then leave {(1 - share) * 100:.3g} % of it unused"


def _told(remarks: list[str]) -> str:
    return "".join(f"; {remark}" for remark in remarks)
