"""Advice for the host of a drive: what follows from a profile for requests, schedulers, space and file systems.

Each line of advice names the findings that it rests on, and is as certain as the least certain of them. A finding that
is unknown yields no advice but a sentence that says so.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator

from flashwright.blackbox.hostadvice import BlockDevice, HostAdvice, Line, Partition
from flashwright.blackbox.profile import Profile
from flashwright.drive.findings import Finding
from flashwright.drive.quantities import as_text
from flashwright.life.advise import Advice
from flashwright.support.core import _core

__all__ = ["host_advice", "utilization_for"]

# Blocks of ext4 and XFS, and pages of memory, on nearly all machines.
_FS_BLOCK_BYTES = 4096
# ext4 ignores a stripe that is larger than a block group, which has 8 blocks for each byte of one block's bitmap.
_EXT4_STRIPE_BLOCKS = 8 * _FS_BLOCK_BYTES
# Linux sends no larger request whatever is asked: 2048 became 1280.
_LARGEST_REQUEST_BYTES = 1280 << 10
# blk-mq keeps at least 4 requests, and refuses more than 128 without a scheduler; ours: no more with one either.
_QUEUE_LEAST, _QUEUE_MOST = 4, 128
# Hu's dissertation, sections 4.2.6 and 4.3: on three drives, larger or more requests only made them slower.
_FALLBACK_BYTES, _FALLBACK_DEPTH = 64 << 10, 8
# Partitions begin no earlier than all tools let them; the copy of the table at the end has less room than this.
_TABLE_BYTES = 1 << 20
# Ours: what uniform random writes may cost where nobody says what the drive is for.
_AMPLIFICATION_MAX = 2.0

BEST_SIZE, BEST_DEPTH = "best_size_bytes", "best_depth_requests"
"""Figures of any finding: the request size and the queue length of the least response time at the peak's bandwidth."""


def host_advice(
    profile: Profile, spare: Advice | None = None, *, device: BlockDevice | None = None
) -> HostAdvice:
    """Say what a profile means for the drive's host.

    Parameters
    ----------
    profile : Profile
        What is known of the drive.
    spare : Advice, optional
        What its twin's utilisation costs a workload (:func:`flashwright.advise`), to go by that for the space
        to reserve. Without it the profile's findings have to do.
    device : BlockDevice, optional
        The disk that commands name; by default the one that was probed.

    Returns
    -------
    HostAdvice

    Examples
    --------
    >>> from flashwright import Ssd
    >>> advice = host_advice(Profile.described(Ssd.named("ssd-a")))
    >>> advice.queue
    {'scheduler': 'mq-deadline', 'max_sectors_kb': '240', 'read_ahead_kb': '256'}
    >>> advice.mkfs["mkfs.ext4"]
    '-b 4096 -E stride=4,stripe-width=1024'
    """
    if device is None and profile.target.kind == "block-device":
        device = BlockDevice.parse(profile.target.name)
    return _Adviser(profile, spare, device).advice()


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


_DEPTH_OF = re.compile(r"depth_of_(read|write)s_of_(\d+)_bytes")
# A kind with a smaller share of the pages does not decide.
_SHARE_LEAST = 0.05


def _mix(spare: Advice) -> tuple[set[str], float] | None:
    """The kinds of request of the workload that was played, and their mean size in bytes; None without a run."""
    if not spare.points:
        return None
    figures = spare.points[0].result.json
    host = figures["host"]
    pages = {"read": host["pages_read"] or 0, "write": host["pages_written"] or 0}
    moved, requests = sum(pages.values()), figures["measured"]["requests"]
    if not moved or not requests or not host["bytes"]:
        return None
    kinds = {kind for kind, count in pages.items() if count >= _SHARE_LEAST * moved}
    return kinds, host["bytes"] / requests


class _Adviser:
    """Goes through the topics; later ones go by what earlier ones chose."""

    def __init__(self, profile: Profile, spare: Advice | None, device: BlockDevice | None) -> None:
        self.profile, self.spare, self.device = profile, spare, device
        self.page = self.size("clustered-page")
        self.queue: dict[str, str] = {}
        self.scheduler: str | None = None
        self.best_size, self.best_depth = self.figure(BEST_SIZE), self.figure(BEST_DEPTH)
        self.depth: int | None = None
        self.reserve_bytes = 0
        self.partition: Partition | None = None
        self.mkfs: dict[str, str] = {}

    def advice(self) -> HostAdvice:
        lines = tuple(
            line
            for topic in (
                self.alignment, self.request_size, self.write_size, self.queue_depth,
                self.own_scheduler, self.linux_scheduler, self.largest_request, self.requests,
                self.read_ahead, self.space, self.layout, self.file_systems, self.discard,
            )
            for line in topic()
        )  # fmt: skip
        size = None if self.best_size is None else int(self.best_size[0])
        return HostAdvice(
            self.profile, self.device, lines, self.queue, self.scheduler, size, self.depth,
            self.partition, self.mkfs,
        )  # fmt: skip

    # What is known.

    def finding(self, parameter: str) -> Finding | None:
        return self.profile.findings.get(parameter)

    def verdict(self, parameter: str) -> str:
        finding = self.finding(parameter)
        return "unknown" if finding is None else finding.verdict

    def size(self, parameter: str) -> int | None:
        """A size that was found, bytes."""
        finding = self.finding(parameter)
        if finding is None or finding.verdict != "found" or finding.unit != "B":
            return None
        return int(finding.value) if isinstance(finding.value, int | float) else None

    def figure(self, name: str) -> tuple[float, str] | None:
        """A figure that some finding has, and which."""
        for parameter, finding in self.profile.findings.items():
            if (value := finding.figures.get(name)) is not None and value >= 1:
                return value, parameter
        return None

    def line(self, topic: str, text: str, *rests_on: str, commands: tuple[str, ...] = ()) -> Line:
        certain = [
            finding.confidence
            for name in rests_on
            if (finding := self.finding(name)) is not None and self.profile.mode != "described"
        ]
        return Line(topic, text, True, rests_on, min(certain, default=None), commands)

    def silence(self, topic: str, *parameters: str) -> Line:
        """That nothing is advised, because of what is not known."""
        reasons = []
        for parameter in parameters:
            finding = self.finding(parameter)
            why = "was not looked for" if finding is None else f"is unknown ({finding.why})"
            reasons.append(f"{parameter} {why.replace(' ()', '')}")
        return Line(topic, f"no advice: {' and '.join(reasons)}", False, parameters)

    # What follows.

    def alignment(self) -> Iterator[Line]:
        topic = "alignment"
        if self.page is not None:
            yield self.line(
                topic,
                f"begin and end requests at multiples of {_size(self.page)}: a write of part of a clustered page makes "
                "the drive read and write the whole",
                "clustered-page",
            )
        elif self.verdict("clustered-page") == "absent":
            yield self.line(topic, "requests may lie anywhere", "clustered-page")
        else:
            yield self.silence(topic, "clustered-page")

    def request_size(self) -> Iterator[Line]:
        topic = "request size"
        whole = ""
        pages: tuple[str, ...] = ()
        best = _FALLBACK_BYTES if self.best_size is None else int(self.best_size[0])
        if self.page is not None and best % self.page:
            whole = f", {_size(best)} rounded up to whole clustered pages"
            best = _up(best, self.page)
            pages = ("clustered-page",)
        if self.best_size is not None:
            yield self.line(
                topic,
                f"{_size(best)}{whole}: the size at which bandwidth is near its peak and responses are shortest",
                self.best_size[1],
                *pages,
            )
        else:
            yield self.line(
                topic,
                f"{_size(best)}{whole}, as a rule of thumb: nobody measured bandwidth over size on this drive, and "
                "that was enough for the peak of three others (Hu 2012, section 4.2.6)",
                *pages,
            )

    def write_size(self) -> Iterator[Line]:
        topic = "largest write"
        buffer = self.size("write-buffer")
        if buffer is not None:
            pieces, pages = self.whole_pages(buffer)
            yield self.line(
                topic,
                f"{_size(pieces)}: what fits the write buffer of {_size(buffer)} is acknowledged before flash has it",
                "write-buffer",
                *pages,
            )
        elif self.verdict("write-buffer") == "absent":
            yield self.line(topic, "any: the drive has no write buffer to fit", "write-buffer")
        else:
            yield self.silence(topic, "write-buffer")

    def whole_pages(self, size_bytes: int) -> tuple[int, tuple[str, ...]]:
        """The clustered pages that fit, one at least, as PASA cuts them (Kim et al., section 5.2)."""
        if self.page is None:
            return size_bytes, ()
        return max(self.page, size_bytes // self.page * self.page), ("clustered-page",)

    def queue_depth(self) -> Iterator[Line]:
        topic = "queue depth"
        units = self.finding("parallel-units")
        if (by_size := self.depth_by_size()) is not None:
            self.depth, why, parameter = by_size
            yield self.line(topic, f"{self.depth}: {why}", parameter)
        elif self.best_depth is not None:
            self.depth = int(self.best_depth[0])
            size = "" if self.best_size is None else f" of {_size(int(self.best_size[0]))}"
            yield self.line(
                topic,
                f"{self.depth}, for requests{size}: more at a time wait longer and bring no more bandwidth; smaller "
                "requests may need more, which this profile does not say",
                self.best_depth[1],
            )
        elif (
            units is not None and units.verdict == "found" and isinstance(units.value, int | float)
        ):
            self.depth = max(1, round(units.value))
            yield self.line(
                topic,
                f"{self.depth} at least, one for each unit that works by itself",
                "parallel-units",
            )
        else:
            yield self.line(
                topic,
                f"{_FALLBACK_DEPTH}, as a rule of thumb: nobody measured it on this drive, and three others gained "
                "nothing from more (Hu 2012, section 4.2.6)",
            )

    def depth_by_size(self) -> tuple[int, str, str] | None:
        """The queue depth for the requests of the workload that was played; without one, for the smallest measured.

        Each kind that makes up a twentieth of the pages counts; the kind that needs more decides.
        """
        known: dict[tuple[str, int], int] = {}
        parameter = ""
        for name, finding in self.profile.findings.items():
            for figure, value in finding.figures.items():
                if (found := _DEPTH_OF.fullmatch(figure)) is not None:
                    known[found[1], int(found[2])] = int(value)
                    parameter = name
        if not known:
            return None
        sizes = sorted({size for _, size in known})
        mix = None if self.spare is None else _mix(self.spare)
        if mix is None:
            kinds, size = {"read", "write"}, sizes[0]
            whose = f"for random reads and writes of {_size(size)}, the smallest measured"
        else:
            kinds, mean = mix
            size = min(sizes, key=lambda each: abs(math.log(each / mean)))
            whose = f"for {' and '.join(sorted(f'{kind}s' for kind in kinds))} of {_size(round(mean))}, as played"
            if size != round(mean):
                whose += f" ({_size(size)} is the nearest size measured)"
        depth = max(known[kind, size] for kind in kinds if (kind, size) in known)
        largest = max(
            known[kind, sizes[-1]] for kind in ("read", "write") if (kind, sizes[-1]) in known
        )
        why = f"{whose}: nine tenths of their highest rate; more wait longer"
        if mix is None and largest != depth:
            why += f". {_size(sizes[-1])} reach theirs with {largest}"
        return depth, why, parameter

    def own_scheduler(self) -> Iterator[Line]:
        topic = "flashwright scheduler"
        buffers = ("read-buffer", "write-buffer")
        unknown = [name for name in buffers if self.verdict(name) == "unknown"]
        rests_on: tuple[str, ...]
        any_buffer = any(self.size(name) is not None for name in buffers)
        if self.page is not None and (unknown or not any_buffer):
            self.scheduler, rests_on = "pai", ("clustered-page",)
            what = "what is aligned goes first, the rest waits a little for neighbours"
        elif self.page is not None:
            self.scheduler, rests_on = "pasa+pai", ("clustered-page", *buffers)
            what = (
                "requests are cut at clustered pages and to the buffers; what is aligned goes first"
            )
        elif any_buffer and not unknown:
            self.scheduler, rests_on = "pas", buffers
            what = "requests are cut to the buffers"
        else:
            yield self.silence(topic, "clustered-page", *unknown)
            return
        settings = [f"host.scheduler={self.scheduler}"]
        settings += [
            f"host.profile.{key}={text}" for key, text in self.profile.host_profile().items()
        ]
        options = " ".join(f"--set {shlex.quote(setting)}" for setting in settings)
        command = f"flashwright replay {self.disk.path} --trace TRACE {options}"
        text = f"{self.scheduler}: {what} (Kim et al., section 5)"
        yield self.line(topic, text, *rests_on, commands=(command,))

    def linux_scheduler(self) -> Iterator[Line]:
        topic = "linux scheduler"
        if self.page is not None and self.page > _FS_BLOCK_BYTES:
            self.queue["scheduler"] = "mq-deadline"
            yield self.line(
                topic,
                f"mq-deadline: adjoining requests meet in its queue and merge, and blocks of {_size(_FS_BLOCK_BYTES)} "
                f"are parts of a clustered page of {_size(self.page)}",
                "clustered-page",
            )
        elif self.page is not None or self.verdict("clustered-page") == "absent":
            self.queue["scheduler"] = "none"
            yield self.line(
                topic,
                f"none: each block of {_size(_FS_BLOCK_BYTES)} is whole for the drive, so that merging gains little",
                "clustered-page",
            )
        else:
            yield self.silence(topic, "clustered-page")

    def largest_request(self) -> Iterator[Line]:
        topic = "max_sectors_kb"
        if self.verdict("write-buffer") == "unknown":
            yield self.silence(topic, "write-buffer")
            return
        buffer = self.size("write-buffer")
        if buffer is None:
            yield self.line(topic, "as it is: there is no write buffer to fit", "write-buffer")
            return
        pieces, pages = self.whole_pages(buffer)
        # The kernel takes whole KiB, and no less than a page of memory.
        whole = math.lcm(1024, self.page or 1)
        pieces = max(pieces // whole * whole, _up(_FS_BLOCK_BYTES, whole))
        if pieces > _LARGEST_REQUEST_BYTES:
            yield self.line(
                topic,
                f"as it is: Linux cuts requests at {_size(_LARGEST_REQUEST_BYTES)}, and the write buffer takes "
                f"{_size(buffer)}",
                "write-buffer",
            )
            return
        self.queue["max_sectors_kb"] = str(pieces >> 10)
        yield self.line(
            topic,
            f"{pieces >> 10}: the kernel then cuts as PAS does, to the write buffer of {_size(buffer)}",
            "write-buffer",
            *pages,
        )

    def requests(self) -> Iterator[Line]:
        topic = "nr_requests"
        if self.best_depth is None or self.depth is None:
            # The units bound the depth from below only, and a limit is about too much.
            yield Line(topic, "no advice: nobody measured bandwidth over queue depth", False)
        elif self.queue.get("scheduler") != "mq-deadline":
            yield self.line(
                topic,
                "as it is: without a scheduler the drive's own queue is the limit",
                self.best_depth[1],
            )
        else:
            # As many may wait and merge as are at work.
            count = min(max(2 * self.depth, _QUEUE_LEAST), _QUEUE_MOST)
            self.queue["nr_requests"] = str(count)
            yield self.line(
                topic,
                f"{count}: twice the queue depth, half at work and half to merge",
                self.best_depth[1],
            )

    def read_ahead(self) -> Iterator[Line]:
        topic = "read_ahead_kb"
        if self.verdict("read-buffer") == "unknown":
            yield self.silence(topic, "read-buffer")
            return
        buffer = self.size("read-buffer")
        if buffer is None:
            yield self.line(topic, "as it is: there is no read buffer to fit", "read-buffer")
            return
        # Whole pages of memory, and whole clustered pages where they fit; no more than one request.
        size = min(buffer, _LARGEST_REQUEST_BYTES)
        grain = math.lcm(_FS_BLOCK_BYTES, self.page or 1)
        pages: tuple[str, ...] = ()
        if self.page is not None and grain <= size:
            pages = ("clustered-page",)
        else:
            grain = _FS_BLOCK_BYTES
        size = max(size // grain * grain, grain)
        self.queue["read_ahead_kb"] = str(size >> 10)
        bound = "" if buffer <= size else " as far as one request goes"
        yield self.line(
            topic,
            f"{size >> 10}: reads ahead fit the read buffer of {_size(buffer)}{bound}",
            "read-buffer",
            *pages,
        )

    def space(self) -> Iterator[Line]:
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
            commands=self.emptying(),
        )

    def emptying(self) -> tuple[str, ...]:
        """What makes the reserved space known to the drive as unused."""
        return (f"blkdiscard {self.disk.path}",) if self.reserve_bytes else ()

    def layout(self) -> Iterator[Line]:
        topic = "partition"
        name = next((p for p in ("clustered-block", "clustered-page") if self.size(p)), None)
        if name is None:
            yield self.silence(topic, "clustered-block", "clustered-page")
            return
        target = self.profile.target
        size = self.size(name)
        assert size is not None
        grain = math.lcm(size, target.block_bytes, _FS_BLOCK_BYTES)
        start = _up(_TABLE_BYTES, grain)
        end = (target.capacity_bytes - max(self.reserve_bytes, _TABLE_BYTES)) // grain * grain
        if end - start < grain:
            yield Line(
                topic,
                f"no advice: {_size(target.capacity_bytes)} have no room for a partition aligned to {_size(grain)}",
                False,
                (name,),
            )
            return
        self.partition = Partition(start, end, grain, target.capacity_bytes - end)
        block = target.block_bytes
        disk = self.disk.path
        what = name.replace("-", " ")
        only = "" if name == "clustered-block" else "; the clustered block is not known"
        behind = (
            f"; the {_size(self.partition.reserved_bytes)} behind it stay without a partition"
            if self.reserve_bytes
            else ""
        )
        yield self.line(
            topic,
            f"from {_size(start)} to {_size(end)}, whole {what}s of {_size(size)}{only}{behind}",
            name,
            commands=(
                f"sgdisk --set-alignment=1 --new=1:{start // block}:{end // block - 1} {disk}",
                f"parted --script --align none {disk} mklabel gpt mkpart flashwright {start}B {end - 1}B",
            ),
        )

    @property
    def disk(self) -> BlockDevice:
        return BlockDevice("/dev/DEVICE") if self.device is None else self.device

    def file_systems(self) -> Iterator[Line]:
        topic = "file system"
        if self.page is None:
            yield self.silence(topic, "clustered-page")
            return
        # Whole blocks of the file system and whole clustered pages.
        unit = math.lcm(self.page, _FS_BLOCK_BYTES)
        told = []
        if unit != self.page:
            told.append(
                f"{_size(self.page)} are no whole blocks of {_size(_FS_BLOCK_BYTES)}, so it is {_size(unit)}"
            )
        name = next((p for p in ("stripe", "clustered-block") if self.size(p)), None)
        wide = unit if name is None else math.lcm(self.size(name) or unit, unit)
        rests_on = ("clustered-page",) if name is None else ("clustered-page", name)
        if name is None:
            told.append("neither stripe nor clustered block is known, so the width is one unit")
        elif wide != self.size(name):
            told.append(f"the {name.replace('-', ' ')} is rounded up to {_size(wide)}")
        stride, width = unit // _FS_BLOCK_BYTES, wide // _FS_BLOCK_BYTES
        ext4 = f"-b {_FS_BLOCK_BYTES} -E stride={stride}"
        too_wide = width > _EXT4_STRIPE_BLOCKS
        self.mkfs["mkfs.ext4"] = ext4 if too_wide else f"{ext4},stripe-width={width}"
        ext4_told = list(told)
        if too_wide:
            largest = _size(_EXT4_STRIPE_BLOCKS * _FS_BLOCK_BYTES)
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
            f"a stripe unit of {_size(unit)} is a clustered page{_told(told)}",
            *rests_on,
            commands=(f"mkfs.xfs {self.mkfs['mkfs.xfs']} {self.disk.partition}",),
        )

    def discard(self) -> Iterator[Line]:
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
                f"run fstrim now and then for ranges of a clustered block, {_size(block)}, or more: a log-block map "
                "frees whole blocks only",
                "mapping",
                "clustered-block",
                commands=(f"fstrim --verbose --minimum {block} MOUNTPOINT",),
            )


def _up(size_bytes: int, grain_bytes: int) -> int:
    return -(-size_bytes // grain_bytes) * grain_bytes


def _size(size_bytes: int) -> str:
    return str(as_text(size_bytes, "B"))


def _reserved(share: float) -> str:
    """What to do where the host may use a share of the drive."""
    if share >= 1:
        return "nothing more to reserve"
    return f"discard the whole disk, then leave {(1 - share) * 100:.3g} % of it unused"


def _told(remarks: list[str]) -> str:
    return "".join(f"; {remark}" for remark in remarks)
