"""How to lay the drive out: space to reserve, a partition, file systems, discards."""

from __future__ import annotations

import math

from flashwright.advice.facts import FS_BLOCK_BYTES, Facts, rounded_up, sized
from flashwright.advice.lines import Line, Partition
from flashwright.advice.space import Advice
from flashwright.support.core import _core

__all__ = ["discard", "file_systems", "partition_of", "spare_space", "utilization_for"]

# The widest stripe that ext4 goes by, blocks. Derived: it ignores one that is larger than a block group, which has 8
# blocks for each byte of one block's bitmap.
_EXT4_STRIPE_BLOCKS = 8 * FS_BLOCK_BYTES

# Bytes before the first partition and behind the last one. Chosen: what all tools leave at the start; the copy of the
# table at the end takes less.
_TABLE_BYTES = 1 << 20

# The source of advice by runs of the workload, as :class:`Line` names it.
_BY_RUNS = "runs of the workload"

# Write amplification of uniform random writes that is allowed where nobody says what the drive is for. Chosen: trades
# space for their speed and the drive's life.
_AMPLIFICATION_MAX = 2.0


def spare_space(facts: Facts) -> tuple[Line, int]:
    """How much space to leave unused; and the bytes."""
    topic = "spare space"
    capacity = facts.profile.target.capacity_bytes
    if facts.spare is not None and facts.spare.points:
        return _simulated_space(facts, facts.spare)
    mapping, ratio = facts.finding("mapping"), _physical_over_logical(facts)
    if mapping is None or mapping.verdict != "found":
        return facts.silence(topic, "mapping"), 0
    if mapping.value == "log-block":
        why = (
            "nothing more: a log-block map merges all along, and is not faster on a part of its space (Hu 2012, "
            "section 4.3)"
        )
        return facts.line(topic, why, "mapping"), 0
    if ratio is None:
        return facts.silence(topic, "spare-space"), 0
    share = min(1.0, utilization_for(_AMPLIFICATION_MAX) * ratio)
    reserve_bytes = math.ceil(capacity * (1 - share))
    line = facts.line(
        topic,
        f"{_reserved(share)}: uniform random writes then cost at most {_AMPLIFICATION_MAX:g} pages a page (FIFO "
        "cleaning, closed form); a workload and a twin tell it better",
        "mapping",
        "spare-space",
        commands=_emptying(facts, reserve_bytes),
    )
    return line, reserve_bytes


def _physical_over_logical(facts: Facts) -> float | None:
    """The flash over what the host sees, if the spare space was found."""
    finding = facts.finding("spare-space")
    if finding is None or finding.verdict != "found" or not isinstance(finding.value, int | float):
        return None
    if finding.unit == "B":
        return 1 + finding.value / facts.profile.target.capacity_bytes
    return float(finding.value if finding.value >= 1 else 1 + finding.value)


def _simulated_space(facts: Facts, spare: Advice) -> tuple[Line, int]:
    """How much space to leave unused, by runs on the twin; and the bytes."""
    topic = "spare space"
    if spare.targets and spare.recommended is None:
        wanted = ", ".join(target.text for target in spare.targets)
        return Line(topic, f"no advice: no reservation meets {wanted}", False, ("twin",)), 0
    point = spare.recommended or spare.knee
    if point is None:
        why = "nothing more: on the model, write amplification does not turn steep in the range that was tried"
        return Line(topic, why, True, ("twin",), source=_BY_RUNS), 0
    assert facts.profile.twin is not None, "what was played was played on the twin"
    _, logical, physical = _core.config_check(facts.profile.twin.toml)
    share = min(1.0, point.utilization * physical / logical)
    reserve_bytes = math.ceil(facts.profile.target.capacity_bytes * (1 - share))
    reason = (
        f"the least that meets {', '.join(target.text for target in spare.targets)}"
        if spare.recommended is not None
        else "beyond it write amplification turns steep"
    )
    what = _reserved(share)
    line = Line(
        topic,
        f"{what}: {reason}, by runs of the workload on the model (capacity.utilization={point.utilization:g})",
        True,
        ("twin",),
        source=_BY_RUNS,
        commands=_emptying(facts, reserve_bytes),
    )
    return line, reserve_bytes


def _emptying(facts: Facts, reserve_bytes: int) -> tuple[str, ...]:
    """The command that tells the drive that the reserved space is unused."""
    return (f"blkdiscard {facts.disk.path}",) if reserve_bytes else ()


def partition_of(facts: Facts, reserve_bytes: int) -> tuple[Line, Partition | None]:
    """The line on a partition with unused space behind it; and the partition, if there is room for one."""
    topic = "partition"
    name = next((p for p in ("clustered-block", "clustered-page") if facts.size(p)), None)
    if name is None:
        return facts.silence(topic, "clustered-block", "clustered-page"), None
    target = facts.profile.target
    size = facts.size(name)
    assert size is not None
    grain = math.lcm(size, target.block_bytes, FS_BLOCK_BYTES)
    start = rounded_up(_TABLE_BYTES, grain)
    end = (target.capacity_bytes - max(reserve_bytes, _TABLE_BYTES)) // grain * grain
    if end - start < grain:
        why = f"no advice: {sized(target.capacity_bytes)} have no room for a partition aligned to {sized(grain)}"
        return Line(topic, why, False, (name,)), None
    partition = Partition(start, end, grain, target.capacity_bytes - end)
    block = target.block_bytes
    disk = facts.disk.path
    what = name.replace("-", " ")
    known = name == "clustered-block" or facts.verdict("clustered-block") == "absent"
    only = "" if known else "; the clustered block is not known"
    behind = (
        f"; the {sized(partition.reserved_bytes)} behind it stay without a partition"
        if reserve_bytes
        else ""
    )
    line = facts.line(
        topic,
        f"from {sized(start)} to {sized(end)}, whole {what}s of {sized(size)}{only}{behind}",
        name,
        commands=(
            f"sgdisk --set-alignment=1 --new=1:{start // block}:{end // block - 1} {disk}",
            f"parted --script --align none {disk} mklabel gpt mkpart flashwright {start}B {end - 1}B",
        ),
    )
    return line, partition


def file_systems(facts: Facts) -> tuple[list[Line], dict[str, str]]:
    """How to make ext4 and XFS; and the options, by the command that takes them."""
    topic = "file system"
    if facts.page is None:
        return [facts.silence(topic, "clustered-page")], {}
    # Whole blocks of the file system and whole clustered pages.
    unit = math.lcm(facts.page, FS_BLOCK_BYTES)
    remarks = []
    if unit != facts.page:
        remarks.append(
            f"{sized(facts.page)} are no whole blocks of {sized(FS_BLOCK_BYTES)}, so it is {sized(unit)}"
        )
    name = next((p for p in ("stripe", "clustered-block") if facts.size(p)), None)
    wide = unit if name is None else math.lcm(facts.size(name) or unit, unit)
    rests_on = ("clustered-page",) if name is None else ("clustered-page", name)
    if name is None:
        what = "is there" if facts.verdict("clustered-block") == "absent" else "is known"
        remarks.append(f"neither stripe nor clustered block {what}, so the width is one unit")
    elif wide != facts.size(name):
        remarks.append(f"the {name.replace('-', ' ')} is rounded up to {sized(wide)}")
    stride, width = unit // FS_BLOCK_BYTES, wide // FS_BLOCK_BYTES
    ext4 = f"-b {FS_BLOCK_BYTES} -E stride={stride}"
    too_wide = width > _EXT4_STRIPE_BLOCKS
    mkfs = {
        "mkfs.ext4": ext4 if too_wide else f"{ext4},stripe-width={width}",
        "mkfs.xfs": f"-d su={unit},sw={wide // unit}",
    }
    ext4_remarks = list(remarks)
    if too_wide:
        largest = sized(_EXT4_STRIPE_BLOCKS * FS_BLOCK_BYTES)
        ext4_remarks.append(f"no stripe-width: ext4 goes by none above {largest}")
    for_ext4 = facts.line(
        "ext4",
        f"a stride of {stride} blocks is a clustered page{_remarks_text(ext4_remarks)}",
        *rests_on,
        commands=(f"mkfs.ext4 {mkfs['mkfs.ext4']} {facts.disk.partition}",),
    )
    for_xfs = facts.line(
        "xfs",
        f"a stripe unit of {sized(unit)} is a clustered page{_remarks_text(remarks)}",
        *rests_on,
        commands=(f"mkfs.xfs {mkfs['mkfs.xfs']} {facts.disk.partition}",),
    )
    return [for_ext4, for_xfs], mkfs


def discard(facts: Facts) -> Line:
    """When to discard what is free."""
    topic = "discard"
    mapping = facts.finding("mapping")
    block = facts.size("clustered-block")
    if mapping is None or mapping.verdict != "found":
        return facts.silence(topic, "mapping")
    if mapping.value == "page":
        return facts.line(
            topic,
            "run fstrim now and then: under a page map, each page that is given back serves as spare space",
            "mapping",
            commands=("fstrim --verbose MOUNTPOINT",),
        )
    if block is None:
        return facts.silence(topic, "clustered-block")
    return facts.line(
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


def _remarks_text(remarks: list[str]) -> str:
    return "".join(f"; {remark}" for remark in remarks)
