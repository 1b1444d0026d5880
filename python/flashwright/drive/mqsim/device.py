"""The elements that describe the SSD and its link, and what they become: keys of a drive."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import permutations

from flashwright.drive.mqsim.element import (
    Element,
    Fate,
    Flag,
    Idle,
    Outcome,
    Real,
    Rule,
    Setting,
    Values,
    Whole,
    Word,
)
from flashwright.drive.quantities import as_text
from flashwright.support.core import SECTOR_BYTES

__all__ = ["CACHING", "DEVICE_SETS", "as_size", "as_time", "cache_settings", "dram_ns", "planes_of"]

_PACKET = 128
"""Bytes of data in a packet of MQSim's link."""

_PACKET_OVERHEAD = 28
"""Bytes that each of these packets takes beside: 20 of its header, 6 of the data link layer, 2 of the physical one."""

_COMMAND_NS = 290
"""Bus time of a read command in MQSim: 20 + 6 x 25 + 100 + 20 ns. A program takes 361, an erase 220."""

_VICTIMS_AT_ONCE = 10
"""Victims that a plane of MQSim cleans at once; it cleans from so many free blocks on, whatever the threshold."""

_LONGEST_NS = 10_000_000_000
"""The longest time of an operation here."""

CACHING = ("WRITE_CACHE", "READ_CACHE", "WRITE_READ_CACHE", "TURNED_OFF")
"""What a flow may keep in the drive's RAM."""

_MANAGERS = {"WRITE_CACHE": "fifo", "READ_CACHE": "lru", "WRITE_READ_CACHE": "lru"}

_POSITIVE = Whole(1, 2**32 - 1)
_TIME = Whole(0, _LONGEST_NS)
_SHARE = Real(0, 1)


def as_time(ns: int) -> str:
    """A time as the drive's file has it."""
    return str(as_text(ns, "ns"))


def as_size(size: int) -> str:
    """A size as the drive's file has it."""
    return str(as_text(size, "B"))


def _same(name: str, key: str) -> Rule:
    """The rule of a number that a key takes as it is."""

    def rule(v: Values) -> Iterable[Outcome]:
        return [Setting(key, v.whole(name), name)]

    return rule


def planes_of(v: Values) -> int:
    """The planes of the drive."""
    return math.prod(
        v.whole(name)
        for name in (
            "Flash_Channel_Count",
            "Chip_No_Per_Channel",
            "Die_No_Per_Chip",
            "Plane_No_Per_Die",
        )
    )


def _scale(v: Values) -> Fraction:
    """Blocks of a plane here over those there."""
    return Fraction(v.blocks, v.whole("Block_No_Per_Plane"))


def dram_ns(v: Values, size: int) -> int:
    """Time in nanoseconds that some bytes take to cross the DRAM of the data cache, one row after the other."""
    burst = v.whole("Data_Cache_DRAM_Data_Busrt_Size")
    row = v.whole("Data_Cache_DRAM_Row_Size")
    begin = v.whole("Data_Cache_DRAM_tRCD") + v.whole("Data_Cache_DRAM_tCL")
    two_bursts = Fraction(1000, v.whole("Data_Cache_DRAM_Data_Rate"))
    rows, rest = divmod(size, row)
    whole_rows = rows * (begin + int(row // burst // 2 * two_bursts))
    between = max(rows - (rest == 0), 0) * v.whole("Data_Cache_DRAM_tRP")
    return whole_rows + between + (begin + int(rest // burst // 2 * two_bursts) if rest else 0)


def _link(v: Values) -> Iterator[Outcome]:
    lanes = v.whole("PCIe_Lane_Count")
    rate = v.real("PCIe_Lane_Bandwidth") * lanes * _PACKET / (_PACKET + _PACKET_OVERHEAD)
    yield Setting(
        "controller.interface-rate",
        f"{rate * 1000:.6g} MB/s",
        "PCIe_Lane_Bandwidth x PCIe_Lane_Count, less the overhead of packets",
    )
    yield Setting("controller.interface", "full-duplex", "PCIe_Lane_Count")


def _sata(v: Values) -> Iterator[Outcome]:
    if v.word("HostInterface_Type") != "SATA":
        yield Idle()
        return
    delay = v.whole("SATA_Processing_Delay")
    yield Setting("controller.read-overhead", as_time(delay), "SATA_Processing_Delay")
    yield v.near(
        "SATA_Processing_Delay",
        there="before a command and again after it",
        here="before it alone",
    )


def _depth(v: Values) -> Iterator[Outcome]:
    names = ["IO_Queue_Depth"]
    if v.word("HostInterface_Type") == "NVME":
        names.append("Queue_Fetch_Size")
    depth = min(v.whole(name) for name in names)
    yield Setting("host.queue-depth", depth, ", ".join(names))


def _fetch(v: Values) -> Iterator[Outcome]:
    if v.word("HostInterface_Type") == "SATA":
        yield Idle()


def cache_settings(v: Values, mode: str, request: int | None = None) -> Iterator[Setting]:
    """The RAM of a drive in a mode of caching.

    Parameters
    ----------
    v : Values
        Those of the SSD.
    mode : str
        One of :data:`CACHING`.
    request : int, optional
        Bytes of the writes; by default a page.
    """
    keeps_writes = "WRITE" in mode
    manager = _MANAGERS.get(mode, "none")
    size = 0 if mode == "TURNED_OFF" else int(v.whole("Data_Cache_Capacity") * _scale(v))
    yield Setting("ram.manager", manager, f"Device_Level_Data_Caching_Mode = {mode}")
    yield Setting("ram.size", as_size(size), "Data_Cache_Capacity")
    in_flight = planes_of(v) * v.whole("Page_Capacity") if keeps_writes else 0
    yield Setting("chips.write-ram", as_size(in_flight), "one page for each plane, as in MQSim")
    in_dram = dram_ns(v, request or v.whole("Page_Capacity")) if keeps_writes else 0
    sata = v.word("HostInterface_Type") == "SATA"
    overhead = max(in_dram, v.whole("SATA_Processing_Delay") if sata else 0)
    of = "a page" if request is None else as_size(request)
    yield Setting("controller.write-overhead", as_time(overhead), f"Data_Cache_DRAM_*, for {of}")


def _cache(v: Values) -> Iterator[Outcome]:
    yield from cache_settings(v, v.caching)
    if v.caching == "TURNED_OFF":
        yield Idle()
        return
    yield v.near(
        "Data_Cache_Capacity",
        there="pages not written for a second go to flash at once and stay readable",
        here="pages go to flash when they are evicted",
    )


def _caching_mechanism(v: Values) -> Iterator[Outcome]:
    if v.word("Caching_Mechanism") == "SIMPLE":
        yield v.near(
            "Caching_Mechanism", there="a destaging buffer", here="the same RAM as for ADVANCED"
        )


def _partitions(name: str, what: str) -> Rule:
    def rule(v: Values) -> Iterator[Outcome]:
        if v.word(name) == "SHARED":
            yield Idle()
        else:
            yield v.no_equal(name, why=f"each flow runs alone and has all of {what}")

    return rule


def _mapping(v: Values) -> Iterator[Outcome]:
    if v.word("Address_Mapping") == "HYBRID":
        yield v.no_equal("Address_Mapping", why="MQSim does not implement it; pages are mapped")


def _map(v: Values) -> Iterator[Outcome]:
    if v.flag("Ideal_Mapping_Table"):
        yield Setting("ftl.scheme", "page", "Ideal_Mapping_Table = true")
        return
    yield Setting("ftl.scheme", "dftl", "Ideal_Mapping_Table = false")
    pages = planes_of(v) * v.whole("Block_No_Per_Plane") * v.whole("Page_No_Per_Block")
    sectors = v.whole("Page_Capacity") // SECTOR_BYTES
    entry = math.ceil((2 * math.log2(pages) + sectors) / 8)
    entries = max(1, int(v.whole("CMT_Capacity") // entry * _scale(v)))
    yield Setting("ftl.dftl.cmt-entries", entries, f"CMT_Capacity / {entry} B")
    yield Setting("ftl.dftl.replacement", "lru", "as in MQSim")


def _cmt(v: Values) -> Iterator[Outcome]:
    if v.flag("Ideal_Mapping_Table"):
        yield Idle()


def _allocation(v: Values) -> Iterator[Outcome]:
    scheme = v.word("Plane_Allocation_Scheme")
    yield Setting("placement.order", scheme, "Plane_Allocation_Scheme")
    if v.flag("Ideal_Mapping_Table"):
        yield Setting("placement.allocation", "static", "Plane_Allocation_Scheme")
    else:
        # By its number a page of the map would lie in one of few planes, and fill it.
        yield Setting("placement.allocation", "dynamic", "Plane_Allocation_Scheme")
        yield v.near(
            "Plane_Allocation_Scheme",
            there="the number of a page says its plane",
            here="planes take turns in this order, as the map is cached",
        )
    yield Setting("placement.policy", "gc-separate", "as in MQSim")


def _scheduling(v: Values) -> Iterator[Outcome]:
    preemptible = v.flag("Preemptible_GC_Enabled")
    order = "by-class" if preemptible else "reads-first"
    yield Setting("timing.die-order", order, "Transaction_Scheduling_Policy")
    there = "mapping first, then cleaning" + (" once it is urgent" if preemptible else "")
    yield v.near(
        "Transaction_Scheduling_Policy",
        there=f"{there}, then the host; a chip gets work only while all of its dies are idle",
        here=f"timing.die-order = {order}; dies work on their own",
    )


def _spare(v: Values) -> Iterator[Outcome]:
    ratio = v.real("Overprovisioning_Ratio")
    yield Setting("capacity.utilization", float(f"{1 - ratio:.9g}"), "1 - Overprovisioning_Ratio")


def _threshold(v: Values) -> Iterator[Outcome]:
    asked = int(v.real("GC_Exec_Threshold") * v.blocks)
    least = max(1, round(_VICTIMS_AT_ONCE * _scale(v)))
    start = max(asked, least)
    if v.flag("Preemptible_GC_Enabled"):
        hard = max(1, int(v.real("GC_Hard_Threshold") * v.blocks))
        yield Setting("gc.schedule", "preemptive", "Preemptible_GC_Enabled = true")
        yield Setting("gc.preemptive.start-blocks", start, "GC_Exec_Threshold x blocks")
        yield Setting("gc.free-blocks-min", max(1, hard - 1), "GC_Hard_Threshold x blocks, less 1")
    else:
        yield Setting("gc.free-blocks-min", max(1, start - 1), "GC_Exec_Threshold x blocks, less 1")
    if asked < least:
        yield v.near(
            "GC_Exec_Threshold",
            there=f"{asked} blocks asked, and {least} at least",
            here=f"{least}",
        )


def _hard_threshold(v: Values) -> Iterator[Outcome]:
    if not v.flag("Preemptible_GC_Enabled"):
        yield Idle()


def _victim(v: Values) -> Iterator[Outcome]:
    policy = v.word("GC_Block_Selection_Policy")
    name = "GC_Block_Selection_Policy"
    if policy == "RGA":
        yield Setting("gc.victim", "d-choices", name)
        yield Setting("gc.d-choices.d", max(1, int(math.log2(v.blocks))), "log2 of blocks")
        yield Setting("gc.d-choices.with-replacement", False, "as in MQSim")
    elif policy in ("GREEDY", "FIFO"):
        yield Setting("gc.victim", policy.lower(), name)
    else:
        # A draw without an invalid page is given up there, and another follows.
        least = 1
        if policy == "RANDOM_PP":
            least = max(1, v.fullest * v.whole("Page_No_Per_Block") // 100)
        yield Setting("gc.victim", "random", name)
        yield Setting("gc.random.invalid-min", least, name)
        if policy == "RANDOM":
            yield v.near(name, there="blocks that are being filled too", here="full blocks")


def _copyback(v: Values) -> Iterator[Outcome]:
    yield Setting("chips.copyback", v.flag("Use_Copyback_for_GC"), "Use_Copyback_for_GC")


def _dynamic_wear(v: Values) -> Iterator[Outcome]:
    name = "Dynamic_Wearleveling_Enabled"
    yield Setting("wear.free-block", "least-worn" if v.flag(name) else "fifo", name)
    if not v.flag(name):
        yield v.near(name, there="on, since the element is not passed on", here="off, as it says")


def _static_wear(v: Values) -> Iterator[Outcome]:
    name, limit = "Static_Wearleveling_Enabled", "Static_Wearleveling_Threshold"
    if v.flag(name):
        yield Setting("wear.policy", "threshold", name)
        yield Setting("wear.threshold.gap", v.whole(limit), limit)
    else:
        yield Setting("wear.policy", "none", name)
    if not v.flag(name) or v.whole(limit) != _STATIC_GAP:
        yield v.near(
            name,
            limit,
            there=f"on at {_STATIC_GAP}, since the elements are not passed on",
            here="as they say",
        )


_STATIC_GAP = 100
"""The threshold of static wear levelling that MQSim uses whatever its file says."""


def _suspends(v: Values, operation: str) -> bool:
    """Whether chips suspend an operation."""
    return operation in v.word("CMD_Suspension_Support").split("_")


def _suspend_when(name: str, operation: str) -> Rule:
    def rule(v: Values) -> Iterator[Outcome]:
        if not _suspends(v, operation):
            yield Idle()
        elif name.endswith("write"):
            yield v.no_equal(name, why="here dies are suspended for reads alone")
        else:
            yield v.no_equal(name, why="here a die is suspended however little time is left")

    return rule


def _chip_rate(v: Values) -> Iterator[Outcome]:
    rate = v.whole("Channel_Transfer_Rate")
    width = v.whole("Flash_Channel_Width")
    yield Setting(
        "timing.bus-rate", f"{rate * width} MB/s", "Channel_Transfer_Rate x Flash_Channel_Width"
    )
    whole_ns = 1000 // rate
    if whole_ns and rate * whole_ns != 1000:
        yield v.near(
            "Channel_Transfer_Rate",
            there=f"whole nanoseconds a transfer, so {1000 / whole_ns * width:.5g} MB/s",
            here=f"{rate * width} MB/s",
        )


def _protocol(v: Values) -> Iterator[Outcome]:
    yield Setting("timing.command", as_time(_COMMAND_NS), "Flash_Comm_Protocol")
    yield v.near(
        "Flash_Comm_Protocol",
        there="commands take 290 (read), 361 (program) and 220 ns (erase)",
        here=f"all take {_COMMAND_NS} ns",
    )


def _dies(v: Values) -> Iterator[Outcome]:
    dies = v.whole("Chip_No_Per_Channel") * v.whole("Die_No_Per_Chip")
    yield Setting("geometry.dies-per-channel", dies, "Chip_No_Per_Channel x Die_No_Per_Chip")


_BITS = {"SLC": ("LSB",), "MLC": ("LSB", "MSB"), "TLC": ("LSB", "CSB", "MSB")}


def _technology(v: Values) -> Iterator[Outcome]:
    bits = _BITS[v.word("Flash_Technology")]
    yield Setting("geometry.bits-per-cell", len(bits), "Flash_Technology")
    differ = False
    for what, key in (("Read", "read"), ("Program", "program")):
        times = [v.whole(f"Page_{what}_Latency_{bit}") for bit in bits]
        names = ", ".join(f"Page_{what}_Latency_{bit}" for bit in bits)
        yield Setting(f"timing.{key}", as_time(round(sum(times) / len(times))), f"mean of {names}")
        if len(set(times)) > 1:
            differ = True
            yield Setting(f"chips.{key}-times", ", ".join(map(as_time, times)), names)
    if differ and len(bits) == len(_BITS["TLC"]):
        yield v.near(
            "Flash_Technology",
            there="pages 0 to 5 are LSB, 6 and 7 CSB, then pairs of each in turn",
            here="LSB, CSB and MSB pages in turn",
        )


def _of_bit(bit: str) -> Rule:
    def rule(v: Values) -> Iterator[Outcome]:
        if bit not in _BITS[v.word("Flash_Technology")]:
            yield Idle()

    return rule


def _suspension(v: Values) -> Iterator[Outcome]:
    name = "CMD_Suspension_Support"
    support = v.word(name)
    if support == "NONE":
        yield Setting("chips.suspends", "nothing", name)
        return
    yield Setting("chips.suspends", "erases" if support == "ERASE" else "programs-and-erases", name)
    times = {"ERASE": ["Suspend_Erase_Time"], "PROGRAM": ["Suspend_Program_Time"]}
    names = times.get(support, times["ERASE"] + times["PROGRAM"])
    most = max(v.whole(each) for each in names)
    yield Setting("chips.suspend", as_time(most), ", ".join(names))
    yield Setting("chips.resume", "0 ns", "as in MQSim")
    there = "no suspension: its schedulers pass over chips that are busy"
    here = "dies are suspended" + (", erases too" if support == "PROGRAM" else "")
    yield v.near(name, there=there, here=here)
    if len({v.whole(each) for each in names}) > 1:
        yield v.near(*names, there="each its own", here=f"{as_time(most)} for both")


def _suspend_time(operation: str) -> Rule:
    def rule(v: Values) -> Iterator[Outcome]:
        if not _suspends(v, operation):
            yield Idle()

    return rule


def _erase(v: Values) -> Iterator[Outcome]:
    yield Setting("timing.erase", as_time(v.whole("Block_Erase_Latency")), "Block_Erase_Latency")


def _cycles(v: Values) -> Iterator[Outcome]:
    yield Setting("wear.pe-cycles-max", v.whole("Block_PE_Cycles_Limit"), "Block_PE_Cycles_Limit")
    yield v.near("Block_PE_Cycles_Limit", there="blocks outlive it", here="blocks wear out")


def _blocks(v: Values) -> Iterator[Outcome]:
    yield Setting("geometry.blocks-per-plane", v.blocks, "Block_No_Per_Plane")
    there = v.whole("Block_No_Per_Plane")
    if v.blocks != there:
        yield v.near(
            "Block_No_Per_Plane",
            there=f"{there:,}",
            here=f"{v.blocks:,} (--blocks-per-plane); RAM and cached map shrink with it",
        )


def _page(v: Values) -> Iterator[Outcome]:
    yield Setting("geometry.page-size", as_size(v.whole("Page_Capacity")), "Page_Capacity")
    yield Setting("host.partial-pages", "read-modify-write", "as in MQSim")
    yield v.near(
        "Page_Capacity", there="a read moves the sectors asked for", here="a read moves whole pages"
    )


def _metadata(v: Values) -> Iterator[Outcome]:
    size = v.whole("Page_Metadat_Capacity")
    yield Setting("geometry.spare-size", as_size(size), "Page_Metadat_Capacity")


def _logging(v: Values) -> Iterator[Outcome]:
    if not v.flag("Enable_ResponseTime_Logging"):
        yield Idle()


_HOST = (
    Element(
        *("PCIe_Lane_Bandwidth", Real(0, 1e3), 0.4, Fate.SAME, "`controller.interface-rate`"),
        "In GB/s; times the lanes, times 128/156, since packets of 128 B take 28 B more.",
        _link,
    ),
    Element(
        *("PCIe_Lane_Count", Whole(1, 64), 4, Fate.SAME, "`controller.interface-rate`"),
        'Both directions at once: `controller.interface = "full-duplex"`.',
    ),
    Element(
        *(
            "SATA_Processing_Delay",
            _TIME,
            0,
            Fate.NEAR,
            "`controller.read-overhead`, `controller.write-overhead`",
        ),
        "With SATA; there before a command and again after it, here before it.",
        _sata,
    ),
    Element(
        *("Enable_ResponseTime_Logging", Flag(), False, Fate.SAME, "`--windows-out`"),
        "A row for each period.",
        _logging,
    ),
    Element(
        *(
            "ResponseTime_Logging_Period_Length",
            Whole(1, 2**63 - 1),
            400_000,
            Fate.SAME,
            "`--window time=`",
        ),
        "If it is enabled.",
        _logging,
    ),
)

_SSD = (
    Element(
        *("Seed", Whole(0, 2**31 - 1), 123, Fate.NO_EQUAL, ""),
        "One seed covers a run, that of the flow.",
    ),
    Element(
        *("Enabled_Preconditioning", Flag(), True, Fate.NEAR, "`--precondition`"),
        "`workload` if true. If false, `empty`; for flows that read `sequential`, as a read of nothing takes no time.",
    ),
    Element(
        *("Memory_Type", Word(("FLASH",)), "FLASH", Fate.SAME, ""),
        "There is no other.",
    ),
    Element(
        *("HostInterface_Type", Word(("NVME", "SATA")), "NVME", Fate.SAME, ""),
        "Says which of the elements beside it count.",
    ),
    Element(
        *("IO_Queue_Depth", Whole(1, 65_536), 1024, Fate.SAME, "`host.queue-depth`"),
        "With NVMe the smaller of this and `Queue_Fetch_Size`.",
        _depth,
    ),
    Element(
        *("Queue_Fetch_Size", Whole(1, 65_536), 512, Fate.SAME, "`host.queue-depth`"),
        "With NVMe: commands of a queue that the drive works on.",
        _fetch,
    ),
    Element(
        *(
            "Caching_Mechanism",
            Word(("SIMPLE", "ADVANCED")),
            "ADVANCED",
            Fate.NEAR,
            "`ram.manager`",
        ),
        "Both are one RAM here.",
        _caching_mechanism,
    ),
    Element(
        *(
            "Data_Cache_Sharing_Mode",
            Word(("SHARED", "EQUAL_PARTITIONING")),
            "SHARED",
            Fate.NO_EQUAL,
            "",
        ),
        "Each flow runs alone here and has all of the RAM.",
        _partitions("Data_Cache_Sharing_Mode", "the RAM"),
    ),
    Element(
        *(
            "Data_Cache_Capacity",
            Whole(1, 2**40),
            1 << 29,
            Fate.NEAR,
            "`ram.size`, `chips.write-ram`",
        ),
        "There a page not written for a second goes to flash at once and stays readable; here when it is evicted.",
        _cache,
    ),
    *(
        Element(
            *(
                f"Data_Cache_DRAM_{name}",
                Whole(least, 2**20),
                default,
                Fate.NEAR,
                "`controller.write-overhead`",
            ),
            "Time of a write in the DRAM, which serves one at a time. Reads found there take none.",
        )
        for name, least, default in (
            *(("Row_Size", 1, 8192), ("Data_Rate", 1, 800), ("Data_Busrt_Size", 1, 4)),
            *(("tRCD", 0, 13), ("tCL", 0, 13), ("tRP", 0, 13)),
        )
    ),
    Element(
        *(
            "Address_Mapping",
            Word(("PAGE_LEVEL", "HYBRID")),
            "PAGE_LEVEL",
            Fate.NO_EQUAL,
            "`ftl.scheme`",
        ),
        "`PAGE_LEVEL` is page mapping. MQSim does not implement `HYBRID`.",
        _mapping,
    ),
    Element(
        *("Ideal_Mapping_Table", Flag(), False, Fate.SAME, "`ftl.scheme`"),
        "`page` if true, `dftl` if false.",
        _map,
    ),
    Element(
        *("CMT_Capacity", Whole(1, 2**40), 2 << 20, Fate.SAME, "`ftl.dftl.cmt-entries`"),
        "Divided by the bytes of an entry: twice log2 of the pages, and a bit for each sector of a page.",
        _cmt,
    ),
    Element(
        *("CMT_Sharing_Mode", Word(("SHARED", "EQUAL_PARTITIONING")), "SHARED", Fate.NO_EQUAL, ""),
        "Each flow runs alone here and has all of the cached map.",
        _partitions("CMT_Sharing_Mode", "the cached map"),
    ),
    Element(
        "Plane_Allocation_Scheme",
        Word(tuple("".join(order) for order in permutations("CWDP"))),
        *("CWDP", Fate.NEAR, "`placement.order`, `placement.allocation`"),
        "`static` with an ideal map, as there; `dynamic` with a cached one.",
        _allocation,
    ),
    Element(
        "Transaction_Scheduling_Policy",
        Word(("OUT_OF_ORDER", "PRIORITY_OUT_OF_ORDER", "FLIN")),
        *("OUT_OF_ORDER", Fate.NEAR, "`timing.die-order`"),
        "`reads-first`, or `by-class` with preemptible cleaning. There a chip gets work only while all of it is idle.",
        _scheduling,
    ),
    Element(
        *("Overprovisioning_Ratio", _SHARE, 0.07, Fate.SAME, "`capacity.utilization`"),
        "1 less the ratio.",
        _spare,
    ),
    Element(
        *(
            "GC_Exec_Threshold",
            _SHARE,
            0.05,
            Fate.SAME,
            "`gc.free-blocks-min`, `gc.preemptive.start-blocks`",
        ),
        "Times the blocks of a plane, 10 at least.",
        _threshold,
    ),
    Element(
        "GC_Block_Selection_Policy",
        Word(("GREEDY", "RGA", "RANDOM", "RANDOM_P", "RANDOM_PP", "FIFO")),
        *("RGA", Fate.NEAR, "`gc.victim`"),
        "`RGA` is `d-choices` of log2 of the blocks; `RANDOM…` are `random` with `gc.random.invalid-min`.",
        _victim,
    ),
    Element(
        *("Use_Copyback_for_GC", Flag(), False, Fate.SAME, "`chips.copyback`"),
        "As it is.",
        _copyback,
    ),
    Element(
        *("Preemptible_GC_Enabled", Flag(), True, Fate.SAME, "`gc.schedule`"),
        "`preemptive` if true, `foreground` if false.",
    ),
    Element(
        *("GC_Hard_Threshold", _SHARE, 0.005, Fate.SAME, "`gc.free-blocks-min`"),
        "With preemptible cleaning; times the blocks of a plane.",
        _hard_threshold,
    ),
    Element(
        *("Dynamic_Wearleveling_Enabled", Flag(), True, Fate.NEAR, "`wear.free-block`"),
        "`least-worn` if true, `fifo` if false. MQSim does not pass it on and levels always.",
        _dynamic_wear,
    ),
    Element(
        *("Static_Wearleveling_Enabled", Flag(), True, Fate.NEAR, "`wear.policy`"),
        "`threshold` if true, `none` if false. MQSim levels always, whatever it says. A run that settles goes without.",
        _static_wear,
    ),
    Element(
        *(
            "Static_Wearleveling_Threshold",
            _POSITIVE,
            _STATIC_GAP,
            Fate.NEAR,
            "`wear.threshold.gap`",
        ),
        "As it is. MQSim does not pass it on and takes 100.",
    ),
    Element(
        *("Preferred_suspend_erase_time_for_read", _TIME, 700_000, Fate.NO_EQUAL, ""),
        "Here a die is suspended however little time is left. MQSim looks for `Prefered_…` and never finds it.",
        _suspend_when("Preferred_suspend_erase_time_for_read", "ERASE"),
    ),
    Element(
        *("Preferred_suspend_erase_time_for_write", _TIME, 700_000, Fate.NO_EQUAL, ""),
        "Here dies are suspended for reads alone.",
        _suspend_when("Preferred_suspend_erase_time_for_write", "ERASE"),
    ),
    Element(
        *("Preferred_suspend_write_time_for_read", _TIME, 100_000, Fate.NO_EQUAL, ""),
        "Here a die is suspended however little time is left.",
        _suspend_when("Preferred_suspend_write_time_for_read", "PROGRAM"),
    ),
    Element(
        *("Flash_Channel_Count", Whole(1, 64), None, Fate.SAME, "`geometry.channels`"),
        "As it is.",
        _same("Flash_Channel_Count", "geometry.channels"),
    ),
    Element(
        *("Flash_Channel_Width", Whole(1, 64), 1, Fate.SAME, "`timing.bus-rate`"),
        "In bytes; times the rate.",
    ),
    Element(
        *("Channel_Transfer_Rate", Whole(1, 100_000), None, Fate.NEAR, "`timing.bus-rate`"),
        "In millions a second, times the width. MQSim rounds the time of a transfer down to whole nanoseconds.",
        _chip_rate,
    ),
    Element(
        *("Chip_No_Per_Channel", Whole(1, 64), None, Fate.SAME, "`geometry.dies-per-channel`"),
        "Times the dies of a chip.",
        _dies,
    ),
    Element(
        *("Flash_Comm_Protocol", Word(("NVDDR2",)), "NVDDR2", Fate.NEAR, "`timing.command`"),
        "290 ns, the bus time of a read command there; a program takes 361, an erase 220.",
        _protocol,
    ),
)

_FLASH = (
    Element(
        *("Flash_Technology", Word(tuple(_BITS)), "MLC", Fate.NEAR, "`geometry.bits-per-cell`"),
        "Says which times of pages count. Pages of a cell follow one another here; `TLC` has another order there.",
        _technology,
    ),
    Element(
        "CMD_Suspension_Support",
        Word(("NONE", "PROGRAM", "PROGRAM_ERASE", "ERASE")),
        *("ERASE", Fate.NEAR, "`chips.suspends`"),
        "`PROGRAM` suspends erases too. MQSim's schedulers pass over a busy chip, so that nothing is suspended there.",
        _suspension,
    ),
    *(
        Element(
            *(
                f"Page_{what}_Latency_{bit}",
                _TIME,
                None,
                Fate.SAME,
                f"`timing.{key}`, `chips.{key}-times`",
            ),
            "Those that the technology has; `chips` if they differ.",
            _of_bit(bit),
        )
        for what, key in (("Read", "read"), ("Program", "program"))
        for bit in ("LSB", "CSB", "MSB")
    ),
    Element(
        *("Block_Erase_Latency", _TIME, None, Fate.SAME, "`timing.erase`"),
        "As it is.",
        _erase,
    ),
    Element(
        *("Block_PE_Cycles_Limit", _POSITIVE, 10_000, Fate.NEAR, "`wear.pe-cycles-max`"),
        "Blocks wear out here; there they outlive it.",
        _cycles,
    ),
    Element(
        *("Suspend_Erase_Time", _TIME, 700_000, Fate.NEAR, "`chips.suspend`"),
        "The larger of both times where programs are suspended too.",
        _suspend_time("ERASE"),
    ),
    Element(
        *("Suspend_Program_Time", _TIME, 100_000, Fate.NEAR, "`chips.suspend`"),
        "The larger of both times where erases are suspended too.",
        _suspend_time("PROGRAM"),
    ),
    Element(
        *("Die_No_Per_Chip", Whole(1, 64), None, Fate.SAME, "`geometry.dies-per-way`"),
        "And times the chips: `geometry.dies-per-channel`.",
        _same("Die_No_Per_Chip", "geometry.dies-per-way"),
    ),
    Element(
        *("Plane_No_Per_Die", Whole(1, 16), None, Fate.SAME, "`geometry.planes-per-die`"),
        "One at a time, as for random requests there, whose pages seldom have one number.",
        _same("Plane_No_Per_Die", "geometry.planes-per-die"),
    ),
    Element(
        *(
            "Block_No_Per_Plane",
            Whole(4, 2**32 - 1),
            None,
            Fate.SAME,
            "`geometry.blocks-per-plane`",
        ),
        "As it is, or `--blocks-per-plane`.",
        _blocks,
    ),
    Element(
        *("Page_No_Per_Block", Whole(2, 65_535), None, Fate.SAME, "`geometry.pages-per-block`"),
        "As it is.",
        _same("Page_No_Per_Block", "geometry.pages-per-block"),
    ),
    Element(
        *("Page_Capacity", Whole(512, 16 << 20), None, Fate.NEAR, "`geometry.page-size`"),
        "A read moves whole pages here, there the sectors asked for. Parts of pages are read before a write, as there.",
        _page,
    ),
    Element(
        *("Page_Metadat_Capacity", Whole(0, 16 << 20), 1872, Fate.SAME, "`geometry.spare-size`"),
        "As it is.",
        _metadata,
    ),
)

DEVICE_SETS = {
    "Host_Parameter_Set": _HOST,
    "Device_Parameter_Set": _SSD,
    "Flash_Parameter_Set": _FLASH,
}
"""The elements of each set of the file that describes the SSD."""
