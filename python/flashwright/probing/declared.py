"""What the kernel and NVMe declare of a block device, beside what probes found.

The kernel's values lie in ``/sys/block/DEVICE/queue``. Those of an NVMe namespace (NVM command set, Identify Namespace:
NPWG, NPWA, NPDG, NPDA, NOWS) come through the kernel. Many drives declare defaults, so that neither side is the truth:
where they differ, it is worth a look.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from flashwright.drive.findings import Finding
from flashwright.errors import TargetError
from flashwright.nvme.passthrough import Nvme, NvmeError
from flashwright.nvme.structures import Namespace
from flashwright.target.question import kib

__all__ = ["Comparison", "Declared", "Partition", "beside", "declared", "doubts", "partition"]

# Name, unit, and what the file counts in.
_QUEUE: tuple[tuple[str, str, int], ...] = (
    ("logical_block_size", "B", 1),
    ("physical_block_size", "B", 1),
    ("minimum_io_size", "B", 1),
    ("optimal_io_size", "B", 1),
    ("discard_granularity", "B", 1),
    ("max_sectors_kb", "B", 1024),
    ("rotational", "", 1),
    ("nr_requests", "requests", 1),
)
_WORDS = ("write_cache", "scheduler")
_NVME = {
    "npwg": "write_granularity_bytes",
    "npwa": "write_alignment_bytes",
    "npdg": "trim_granularity_bytes",
    "npda": "trim_alignment_bytes",
    "nows": "write_optimal_bytes",
}

# What of the two sides belongs together. "same": they mean the same size. "divides": the declared one is a grain, of
# which what was found should be a multiple.
_PAIRS: tuple[tuple[str, str, Literal["same", "divides"]], ...] = (
    ("logical_block_size", "clustered-page", "divides"),
    ("physical_block_size", "clustered-page", "same"),
    ("minimum_io_size", "clustered-page", "same"),
    ("npwg", "clustered-page", "same"),
    ("npwa", "clustered-page", "divides"),
    ("optimal_io_size", "stripe", "same"),
    ("nows", "stripe", "same"),
    ("discard_granularity", "clustered-block", "divides"),
    ("npdg", "clustered-block", "same"),
    ("npda", "clustered-block", "divides"),
)

_VIRTUAL_NAMES = (
    (r"vd[a-z]+", "a virtio disk"),
    (r"xvd[a-z]+", "a disk of Xen"),
    (r"loop\d+", "a loop device over a file"),
    (r"dm-\d+", "a mapped device (LVM, crypt, multipath)"),
    (r"md\w+", "an array of several disks"),
    (r"nbd\d+", "a network block device"),
    (r"zram\d+|ram\d+", "a disk in memory"),
    (r"ublkb\d+", "a block device of a program"),
    (r"bcache\d+", "a cached disk"),
)
_VIRTUAL_MODELS = re.compile(r"qemu|virtual|vbox|vmware|msft|persistentdisk|elastic block", re.I)


@dataclass(frozen=True)
class Declared:
    """One declared value.

    Attributes
    ----------
    name : str
        As the kernel or the specification has it.
    value : int, str or None
        In `unit`; None if it could not be read.
    unit : str
        ``"B"``, ``"requests"`` or empty.
    source : str
        The file or the program.
    note : str
        Why there is no value, or what is to be known about it.
    """

    name: str
    value: int | str | None
    unit: str
    source: str
    note: str = ""


@dataclass(frozen=True)
class Comparison:
    """A declared value beside what a probe found.

    Attributes
    ----------
    name : str
        Of the declared value.
    parameter : str
        Of the finding.
    relation : {"agrees", "differs", "not comparable"}
        How they stand to each other.
    sentence : str
        The same with the values.
    """

    name: str
    parameter: str
    relation: Literal["agrees", "differs", "not comparable"]
    sentence: str


def declared(
    path: str | os.PathLike[str],
    *,
    sys_root: str | os.PathLike[str] = "/sys",
    open_nvme: Callable[[str], Nvme] = Nvme,
) -> dict[str, Declared]:
    """What the kernel and the drive declare of a block device.

    Parameters
    ----------
    path : str or path
        The device, such as ``/dev/sda``. Links are followed; a partition stands for its disk.
    sys_root : str or path, optional
        Where sysfs is mounted.
    open_nvme : callable, optional
        Opens NVMe namespaces. Of one that gives no answer, the entry ``"nvme"`` has a note that says why.

    Returns
    -------
    dict of str to Declared
        By name: those of the queue that the kernel has, ``"device"`` (the disk's name), ``"model"`` where the disk has
        one, and of an NVMe namespace ``npwg``, ``npwa``, ``npdg``, ``npda``, ``nows`` in bytes.

    Raises
    ------
    TargetError
        If the kernel knows no such block device.
    """
    name = Path(os.path.realpath(path)).name
    disk = _disk(name, Path(sys_root))
    if disk is None:
        raise TargetError(
            f"{os.fspath(path)}: found no block device {name!r} in {Path(sys_root) / 'class/block'}",
            "`lsblk` lists the block devices",
        )
    found = {"device": Declared("device", disk.name, "", str(disk))}
    for key, unit, scale in _QUEUE:
        text = _text(disk / "queue" / key)
        if text is not None and re.fullmatch(r"\d+", text):
            found[key] = Declared(key, int(text) * scale, unit, str(disk / "queue" / key))
    for key in _WORDS:
        text = _text(disk / "queue" / key)
        if text is not None:
            chosen = re.search(r"\[([^]]+)\]", text)
            found[key] = Declared(key, chosen[1] if chosen else text, "", str(disk / "queue" / key))
    model = _text(disk / "device" / "model")
    if model:
        found["model"] = Declared("model", model, "", str(disk / "device" / "model"))
    if disk.name.startswith("nvme"):
        found |= _namespace(disk.name, open_nvme)
    return found


def _disk(name: str, root: Path) -> Path | None:
    """The directory of the disk to which a device belongs."""
    for folder in (root / "class" / "block" / name, root / "block" / name):
        if folder.exists():
            place = folder.resolve()
            return place.parent if (place / "partition").exists() else place
    # A partition below its disk, where there is no list of all block devices.
    return next((place.parent for place in (root / "block").glob(f"*/{name}/")), None)


@dataclass(frozen=True)
class Partition:
    """A partition and the disk that it is of.

    Attributes
    ----------
    disk : str
        The disk's name.
    disk_bytes : int
        Its size.
    mounted : (str, str) or None
        Another partition of it that is mounted, and where.
    """

    disk: str
    disk_bytes: int
    mounted: tuple[str, str] | None


def partition(
    path: str | os.PathLike[str],
    *,
    sys_root: str | os.PathLike[str] = "/sys",
    mounts: str | os.PathLike[str] = "/proc/self/mountinfo",
) -> Partition | None:
    """What disk a partition is of; None if it is none.

    Parameters
    ----------
    path : str or path
        The device, such as ``/dev/sda1``.
    sys_root, mounts : str or path, optional
        Where sysfs is mounted, and the list of what is mounted.
    """
    name = Path(os.path.realpath(path)).name
    disk = _disk(name, Path(sys_root))
    if disk is None or disk.name == name:
        return None
    # sysfs counts in 512 B whatever the disk's blocks are.
    size = int(_text(disk / "size") or 0) * 512
    numbers = {_text(place.parent / "dev"): place.parent.name for place in disk.glob("*/partition")}
    for line in (_text(Path(mounts)) or "").splitlines():
        fields = line.split(" ")
        other = numbers.get(fields[2]) if len(fields) > 4 else None
        if other is not None and other != name:
            return Partition(disk.name, size, (other, fields[4]))
    return Partition(disk.name, size, None)


def _text(path: Path) -> str | None:
    """A file of sysfs; some can't be read, or say that they are not supported only when read."""
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return None


def _namespace(disk: str, open_nvme: Callable[[str], Nvme]) -> dict[str, Declared]:
    """What Identify Namespace says, in bytes."""
    source = "Identify Namespace"
    try:
        with open_nvme(f"/dev/{disk}") as drive:
            nsid = drive.nsid or 1
            namespace = Namespace.of(nsid, drive.identify(0, nsid=nsid))
    except NvmeError as error:
        return {"nvme": Declared("nvme", None, "", source, str(error))}
    sizes = {key: getattr(namespace, name) for key, name in _NVME.items()}
    note = "the namespace does not say that this is meant (NSFEAT bit 4)"
    return {
        key: Declared(key, size, "B", source, note if size is None else "")
        for key, size in sizes.items()
    }


def beside(
    values: Mapping[str, Declared], findings: Iterable[Finding] | Mapping[str, Finding]
) -> list[Comparison]:
    """Lay declared values beside findings.

    Parameters
    ----------
    values : mapping of str to Declared
        From `declared`.
    findings : iterable of Finding, or mapping to them
        Of the same drive.

    Returns
    -------
    list of Comparison
        One for each declared size of which there is a finding to compare it with.

    Examples
    --------
    >>> values = {"npwg": Declared("npwg", 16384, "B", "Identify Namespace")}
    >>> beside(values, [Finding("clustered-page", "found", 16384, "B")])[0].sentence
    'npwg is 16 KiB, as the clustered page that was found.'
    """
    listed = findings.values() if isinstance(findings, Mapping) else findings
    by_parameter = {finding.parameter: finding for finding in listed}
    return [
        _compare(values[name], by_parameter[parameter], rule)
        for name, parameter, rule in _PAIRS
        if name in values and parameter in by_parameter
    ]


def _compare(value: Declared, finding: Finding, rule: Literal["same", "divides"]) -> Comparison:
    thing = finding.parameter.replace("-", " ")

    def said(relation: Literal["agrees", "differs", "not comparable"], text: str) -> Comparison:
        return Comparison(value.name, finding.parameter, relation, f"{value.name} {text}.")

    if not isinstance(value.value, int) or value.value == 0:
        why = f" ({value.note})" if value.note else ""
        return said("not comparable", f"is not declared{why}")
    size = kib(value.value)
    if finding.verdict != "found" or not isinstance(finding.value, int | float):
        why = "there is none" if finding.verdict == "absent" else "cannot tell"
        return said("not comparable", f"is {size}; of the {thing} {why}")
    inferred = int(finding.value)
    if inferred == value.value:
        return said("agrees", f"is {size}, as the {thing} that was found")
    found = kib(inferred)
    if inferred % value.value == 0:
        times = f"{inferred // value.value} times that"
        relation: Literal["agrees", "differs"] = "agrees" if rule == "divides" else "differs"
        return said(relation, f"is {size}, the {thing} that was found is {times}, {found}")
    return said("differs", f"is {size}, but the {thing} that was found is {found}")


def doubts(values: Mapping[str, Declared]) -> list[str]:
    """Reasons to doubt that a device is a drive of flash, by what is declared of it.

    Parameters
    ----------
    values : mapping of str to Declared
        From `declared`.

    Returns
    -------
    list of str
        A sentence each; empty if nothing speaks against it. What timing says is the probe ``plausible``.

    Examples
    --------
    >>> doubts({"device": Declared("device", "vda", "", "/sys/block/vda")})
    ['vda is a virtio disk: what lies below it, and is cached there, is not visible.']
    """
    warnings = []
    device = str(values["device"].value) if "device" in values else ""
    for pattern, what in _VIRTUAL_NAMES:
        if re.fullmatch(pattern, device):
            warnings.append(
                f"{device} is {what}: what lies below it, and is cached there, is not visible."
            )
    model = values.get("model")
    if model is not None and _VIRTUAL_MODELS.search(str(model.value)):
        warnings.append(f"The model is {model.value}: a virtual disk.")
    rotational = values.get("rotational")
    if rotational is not None and rotational.value == 1:
        warnings.append("The kernel reports a rotating disk (queue/rotational is 1).")
    return warnings
