"""The elements that describe flows of requests, and what they become: a workload or a trace, and options."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from flashwright.drive.mqsim.device import CACHING, as_size, as_time, cache_settings
from flashwright.drive.mqsim.element import (
    Element,
    Fate,
    Flag,
    Idle,
    Ids,
    Note,
    Option,
    Outcome,
    Real,
    Rule,
    Spec,
    Text,
    Values,
    Whole,
    Word,
)
from flashwright.support.core import SECTOR_BYTES

__all__ = ["FLOW_SETS", "PARTS", "REQUESTS", "FlowValues", "reads_alone"]

REQUESTS = 100_000
"""Requests of a flow that ends at a time in MQSim and keeps a queue full."""


_SECOND = 1_000_000_000
"""Nanoseconds of a second."""

_PERCENT = Whole(1, 100)

PARTS = {
    "Channel_IDs": "Flash_Channel_Count",
    "Chip_IDs": "Chip_No_Per_Channel",
    "Die_IDs": "Die_No_Per_Chip",
    "Plane_IDs": "Plane_No_Per_Die",
}
"""The elements that say which parts of the drive a flow has, each with the one that says how many there are."""


@dataclass
class FlowValues(Values):
    """What the elements of a flow say, and what its rules need beside it.

    Attributes
    ----------
    device : Values
        Those of the SSD.
    flows : int
        Flows of the scenario.
    share : Fraction
        The flow's share of the logical space.
    folder : Path
        The folder of the file that describes the flow.
    out : Path
        The folder that the commands run in.
    label : str
        What its results are called.
    """

    device: Values = field(default_factory=Values)
    flows: int = 1
    share: Fraction = Fraction(1)
    folder: Path = Path()
    out: Path = Path()
    label: str = ""


def _of(v: Values) -> FlowValues:
    assert isinstance(v, FlowValues)
    return v


def _priority(v: Values) -> Iterator[Outcome]:
    if _of(v).flows == 1:
        yield Idle()
    else:
        yield v.no_equal("Priority_Class", why="each flow runs alone")


def _caching(v: Values) -> Iterator[Outcome]:
    device, mode = _of(v).device, v.word("Device_Level_Data_Caching_Mode")
    size = v.found.get("Average_Request_Size")
    writes = v.found.get("Read_Percentage") != _FULL
    request = size * SECTOR_BYTES if isinstance(size, int) and writes else None
    usual = {each.key: each.value for each in cache_settings(device, device.caching)}
    for each in cache_settings(device, mode, request):
        if usual[each.key] != each.value:
            yield each
    near = {
        "WRITE_CACHE": ("pages leave by last use", "in the order of first writes"),
        "READ_CACHE": ("reads alone are kept", "writes too"),
    }
    if mode in near:
        there, here = near[mode]
        yield v.near("Device_Level_Data_Caching_Mode", there=there, here=here)


def _part(name: str) -> Rule:
    def rule(v: Values) -> Iterator[Outcome]:
        there = _of(v).device.whole(PARTS[name])
        if len(v.ids(name)) < there:
            yield v.no_equal(
                name, why=f"the flow has its share of the space, on all {there} of them"
            )

    return rule


def _occupancy(v: Values) -> Iterator[Outcome]:
    name = "Initial_Occupancy_Percentage"
    if not _of(v).device.flag("Enabled_Preconditioning"):
        yield Idle()
    elif v.whole(name) < _FULL:
        yield v.near(
            name, there="so much of the flow's space is filled first", here="all of the drive"
        )


_FULL = 100
"""Percent of a whole."""


def _working_set(v: Values) -> Iterator[Outcome]:
    share = _of(v).share * v.whole("Working_Set_Percentage") / _FULL
    yield Spec("range", f"{float(share):.9g}")


def _generator(v: Values) -> Iterator[Outcome]:
    if v.word("Synthetic_Generator_Type") == "QUEUE_DEPTH":
        yield Spec("depth", str(v.whole("Average_No_of_Reqs_in_Queue")))
    else:
        yield Spec("rate", f"{float(_rate(v)):.9g}")


def _rate(v: Values) -> Fraction:
    """Requests a second, which MQSim takes from whole numbers of sectors, requests and nanoseconds."""
    requests = v.whole("Bandwidth") // SECTOR_BYTES // v.whole("Average_Request_Size")
    if requests == 0:
        raise ValueError("Bandwidth")
    return Fraction(_SECOND, max(1, _SECOND // requests))


def _keeps_queue(v: Values) -> Iterator[Outcome]:
    if v.word("Synthetic_Generator_Type") != "QUEUE_DEPTH":
        yield Idle()


def _bandwidth(v: Values) -> Iterator[Outcome]:
    if v.word("Synthetic_Generator_Type") != "BANDWIDTH":
        yield Idle()


def _write(v: Values) -> Iterator[Outcome]:
    yield Spec("write", f"{(_FULL - v.whole('Read_Percentage')) / _FULL:g}")


def _distribution(v: Values) -> Iterator[Outcome]:
    names = {"STREAMING": "sequential", "RANDOM_UNIFORM": "uniform", "RANDOM_HOTCOLD": "hot-cold"}
    kind = v.word("Address_Distribution")
    yield Spec("", names[kind])
    if kind == "STREAMING":
        yield v.near("Address_Distribution", there="from a random place on", here="from the start")
    if kind == "RANDOM_HOTCOLD":
        hot = v.whole("Percentage_of_Hot_Region") / _FULL
        yield Spec("hot-space", f"{hot:g}")
        yield Spec("hot-access", f"{1 - hot:g}")


def _hot(v: Values) -> Iterator[Outcome]:
    if v.word("Address_Distribution") != "RANDOM_HOTCOLD":
        yield Idle()
    elif v.whole("Percentage_of_Hot_Region") in (0, _FULL):
        raise ValueError("Percentage_of_Hot_Region")


def _aligned(v: Values) -> Iterator[Outcome]:
    unit = v.whole("Address_Alignment_Unit") if v.flag("Generated_Aligned_Addresses") else 1
    yield Spec("align", _short(unit * SECTOR_BYTES))


def _alignment(v: Values) -> Iterator[Outcome]:
    if not v.flag("Generated_Aligned_Addresses"):
        yield Idle()


def _short(size: int) -> str:
    """A size as a workload has it."""
    return as_size(size).replace(" ", "")


def _size(v: Values) -> Iterator[Outcome]:
    yield Spec("size", _short(v.whole("Average_Request_Size") * SECTOR_BYTES))


def _size_law(v: Values) -> Iterator[Outcome]:
    if v.word("Request_Size_Distribution") == "NORMAL" and v.whole("Variance_Request_Size") > 0:
        yield v.near(
            *("Request_Size_Distribution", "Variance_Request_Size"),
            there="normal sizes, whose standard deviation is what is called their variance",
            here="the mean alone",
        )


def _variance(v: Values) -> Iterator[Outcome]:
    if v.word("Request_Size_Distribution") == "FIXED":
        yield Idle()


def _seed(v: Values) -> Iterator[Outcome]:
    yield Option("--seed", str(v.whole("Seed")))


def _stop(v: Values) -> Iterator[Outcome]:
    ns = v.whole("Stop_Time")
    if ns == 0:
        yield Option("--requests", str(v.whole("Total_Requests_To_Generate")))
    elif v.word("Synthetic_Generator_Type") == "BANDWIDTH":
        yield Option("--requests", str(max(1, int(_rate(v) * ns / _SECOND))))
    else:
        yield Option("--requests", str(REQUESTS))
        yield v.near(
            "Stop_Time", there=f"as many as end in {as_time(ns)}", here=f"{REQUESTS:,} requests"
        )


def _total(v: Values) -> Iterator[Outcome]:
    if v.whole("Stop_Time") > 0:
        yield Idle()
    elif v.whole("Total_Requests_To_Generate") == 0:
        raise ValueError("Total_Requests_To_Generate")


def _path(flow: FlowValues) -> Path:
    """The trace: beside the file that names it, or in the current folder."""
    given = Path(flow.word("File_Path").replace("\\", "/"))
    beside = flow.folder / given
    return given if given.is_file() and not beside.is_file() else beside


def reads_alone(flow: FlowValues) -> bool:
    """Whether it is known that a flow writes nothing."""
    if "File_Path" not in flow.found:
        return flow.whole("Read_Percentage") == _FULL
    path = _path(flow)
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return not any(line.split()[-1:] == [_WRITE] for line in file)


_WRITE = b"0"
"""What the last column of a trace says of a write."""


def _trace(v: Values) -> Iterator[Outcome]:
    flow = _of(v)
    path = _path(flow)
    yield Option("--trace", os.path.relpath(path, flow.out))
    yield Option("--format", "mqsim")
    # The column of the device says nothing there, and addresses are taken modulo the flow's space.
    yield Option("--overlay")
    yield Option("--addresses", "wrap")
    if not path.is_file():
        yield Note(v.about("File_Path"), "not found", f"expected it at {path}")
    if flow.share != 1:
        yield v.near(
            "File_Path", there="wrapped into the flow's part of the space", here="all of it"
        )


def _executed(v: Values) -> Iterator[Outcome]:
    flow, percent = _of(v), v.whole("Percentage_To_Be_Executed")
    if percent == _FULL:
        return
    path = _path(flow)
    if not path.is_file():
        yield v.no_equal("Percentage_To_Be_Executed", why="the trace's requests can't be counted")
        return
    with path.open("rb") as file:
        lines = sum(1 for line in file if line.strip())
    count = lines * percent // _FULL * v.whole("Relay_Count")
    yield Option("--requests", str(max(1, count)))


def _relay(v: Values) -> Iterator[Outcome]:
    passes = v.whole("Relay_Count")
    yield Option("--repeat", str(passes))
    if passes > 1:
        yield v.near(
            "Relay_Count",
            there="a pass begins as long after the one before as the time of its first request says",
            here="one mean gap of the trace after it",
        )


def _unit(v: Values) -> Iterator[Outcome]:
    unit = v.word("Time_Unit")
    if unit == "NANOSECOND":
        return
    if unit == "MICROSECOND":
        yield Option("--time-unit", "us")
    else:
        yield Option("--time-scale", "0.001")
    yield v.near("Time_Unit", there="nanoseconds, whatever it says", here="as it says")


_ALL = (
    Element(
        *("Priority_Class", Word(("URGENT", "HIGH", "MEDIUM", "LOW")), None, Fate.NO_EQUAL, ""),
        "Each flow runs alone here.",
        _priority,
    ),
    Element(
        *("Device_Level_Data_Caching_Mode", Word(CACHING), None, Fate.NEAR, "`ram.manager`"),
        "`fifo` for `WRITE_CACHE`, `lru` for the others, `none` for `TURNED_OFF`. `lru` keeps writes too.",
        _caching,
    ),
    *(
        Element(
            *(name, Ids(), None, Fate.NO_EQUAL, "`range`"),
            "A flow has its share of the space, as there, but on all parts of the drive.",
            _part(name),
        )
        for name in PARTS
    ),
    Element(
        *("Initial_Occupancy_Percentage", Whole(0, 100), None, Fate.NEAR, "`--precondition`"),
        "All of the drive is filled.",
        _occupancy,
    ),
)

_SYNTHETIC = (
    *_ALL,
    Element(
        *("Working_Set_Percentage", _PERCENT, None, Fate.SAME, "`range`"),
        "Times the flow's share of the space. It begins at the start of the drive.",
        _working_set,
    ),
    Element(
        *(
            "Synthetic_Generator_Type",
            Word(("BANDWIDTH", "QUEUE_DEPTH")),
            None,
            Fate.SAME,
            "`depth`, `rate`",
        ),
        "A closed loop, or Poisson arrivals.",
        _generator,
    ),
    Element(
        *("Read_Percentage", Whole(0, 100), None, Fate.SAME, "`write`"),
        "100 less the percentage.",
        _write,
    ),
    Element(
        "Address_Distribution",
        Word(("STREAMING", "RANDOM_UNIFORM", "RANDOM_HOTCOLD")),
        *(None, Fate.SAME, "`sequential`, `uniform`, `hot-cold`"),
        "A stream begins at a random place there. `MIXED_STREAMING_RANDOM` is described there but not read.",
        _distribution,
    ),
    Element(
        *("Percentage_of_Hot_Region", Whole(0, 100), None, Fate.SAME, "`hot-space`, `hot-access`"),
        "H % of the space have (100 − H) % of the requests.",
        _hot,
    ),
    Element(
        *("Generated_Aligned_Addresses", Flag(), None, Fate.SAME, "`align`"),
        "The unit if true, a sector if false.",
        _aligned,
    ),
    Element(
        *("Address_Alignment_Unit", Whole(1, 2**31), None, Fate.SAME, "`align`"),
        "In sectors.",
        _alignment,
    ),
    Element(
        *("Request_Size_Distribution", Word(("FIXED", "NORMAL")), None, Fate.NEAR, "`size`"),
        "All requests have the mean size.",
        _size_law,
    ),
    Element(
        *("Average_Request_Size", Whole(1, 2**31), None, Fate.SAME, "`size`"),
        "In sectors.",
        _size,
    ),
    Element(
        *("Variance_Request_Size", Whole(0, 2**31), None, Fate.NEAR, ""),
        "All requests have the mean size. MQSim takes it for the standard deviation.",
        _variance,
    ),
    Element(
        *("Seed", Whole(0, 2**31 - 1), None, Fate.SAME, "`--seed`"),
        "As it is; the random numbers are others.",
        _seed,
    ),
    Element(
        *("Average_No_of_Reqs_in_Queue", Whole(1, 65_535), None, Fate.SAME, "`depth`"),
        "For `QUEUE_DEPTH`.",
        _keeps_queue,
    ),
    Element(
        *("Bandwidth", Whole(0, 2**32 - 1), 0, Fate.SAME, "`rate`"),
        "For `BANDWIDTH`: bytes a second over the mean size.",
        _bandwidth,
    ),
    Element(
        *("Intensity", Real(0, 1e18, reached=True), 0.0, Fate.NO_EFFECT, ""),
        "In files that come with MQSim, which does not read it.",
    ),
    Element(
        *("Stop_Time", Whole(), None, Fate.NEAR, "`--requests`"),
        f"Times the rate, for `BANDWIDTH`. A full queue plays {REQUESTS:,} requests.",
        _stop,
    ),
    Element(
        *("Total_Requests_To_Generate", Whole(0, 2**32 - 1), None, Fate.SAME, "`--requests`"),
        "If the stop time is 0.",
        _total,
    ),
)

_TRACE = (
    *_ALL,
    Element(
        *("File_Path", Text(), None, Fate.SAME, "`--trace`"),
        "Relative to the file that names it, or to the current folder. `--format mqsim --overlay --addresses wrap`.",
        _trace,
    ),
    Element(
        *("Percentage_To_Be_Executed", _PERCENT, None, Fate.SAME, "`--requests`"),
        "Of the trace's lines, times the repeats.",
        _executed,
    ),
    Element(
        *("Relay_Count", Whole(1, 2**31), None, Fate.NEAR, "`--repeat`"),
        "As it is. Before each pass MQSim waits for as long as the time of its first request says.",
        _relay,
    ),
    Element(
        "Time_Unit",
        Word(("PICOSECOND", "NANOSECOND", "MICROSECOND")),
        *(None, Fate.NEAR, "`--time-unit`, `--time-scale`"),
        "As it says. MQSim takes all times for nanoseconds.",
        _unit,
    ),
)

FLOW_SETS = {
    "IO_Flow_Parameter_Set_Synthetic": _SYNTHETIC,
    "IO_Flow_Parameter_Set_Trace_Based": _TRACE,
}
"""The elements of each kind of flow."""
