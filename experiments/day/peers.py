"""Processor time of whole processes beside other simulators, on the same work and by turns.

    python experiments/day/peers.py [--mqsim FOLDER] [--ssd-iq PROGRAM] [--rounds 5] [--csv FILE]

FOLDER is a checkout of MQSim in which the program is built, PROGRAM the simulator of SSD-iq. MQSim plays random
writes and reads at depth 32, and its own trace of TPC-C twenty times over, on its own drive with a sixteenth of the
blocks and enough spare space for both; `flashwright convert mqsim` writes that drive for us, and we play as many
requests as it ended. SSD-iq does what it does by default: it fills 16 GiB in order, then writes uniformly, in blocks of
8 MiB. Start-up is part of every figure.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import shlex
import statistics
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from day import PROGRAM, played

# What of MQSim's drive is another value: a sixteenth of its blocks, spare space that our cleaning can work with, and a
# cached map of no more entries than there are pages.
SMALLER = {
    "Block_No_Per_Plane": "128",
    "Overprovisioning_Ratio": "0.2",
    "CMT_Capacity": "26000000",
    "Enabled_Preconditioning": "false",
}
# Nanoseconds of simulated time that its flows play: some 150,000 writes, 330,000 reads; and in the short run, which
# costs what starting costs.
STOP_NS = {"writes": 4_000_000_000, "reads": 3_000_000_000}
SHORT_NS = 1_000_000
# Times that the trace of 6,999 requests is played.
REPEATS = 20
EVERYWHERE = {
    "Priority_Class": "HIGH",
    "Device_Level_Data_Caching_Mode": "WRITE_CACHE",
    "Channel_IDs": "0,1,2,3,4,5,6,7",
    "Chip_IDs": "0,1,2,3",
    "Die_IDs": "0,1",
    "Plane_IDs": "0,1",
    "Initial_Occupancy_Percentage": "100",
}
AT_RANDOM = EVERYWHERE | {
    "Working_Set_Percentage": "100",
    "Synthetic_Generator_Type": "QUEUE_DEPTH",
    "Address_Distribution": "RANDOM_UNIFORM",
    "Percentage_of_Hot_Region": "0",
    "Generated_Aligned_Addresses": "true",
    "Address_Alignment_Unit": "16",
    "Request_Size_Distribution": "FIXED",
    "Average_Request_Size": "8",
    "Variance_Request_Size": "0",
    "Seed": "798",
    "Average_No_of_Reqs_in_Queue": "32",
    "Intensity": "32768",
    "Total_Requests_To_Generate": "0",
}
# SSD-iq: 16 GiB in blocks of 8 MiB, 87.5 % of it in use. After the fill come as many writes as the flash has pages,
# then ten times as many as the host can address.
BLOCKS, PAGES_OF_BLOCK, IN_USE, CAPACITIES = 2048, 2048, 0.875, 10
UNTIMED = f"""
[geometry]
channels = 1
dies-per-channel = 1
blocks-per-plane = {BLOCKS}
pages-per-block = {PAGES_OF_BLOCK}
page-size = "4 KiB"
[capacity]
utilization = {IN_USE}
[gc]
victim = "greedy"
[placement]
policy = "single"
[timing]
model = "none"
"""


@dataclass(frozen=True)
class Round:
    """One round of one work: processor seconds of both whole processes, and what each says of it.

    ``_start_s`` are those of the same work with few requests: a process starts, reads its files and fills its drive.
    """

    work: str
    requests: int
    peer_cpu_s: float
    here_cpu_s: float
    peer_start_s: float
    here_start_s: float
    peer_says: str
    here_says: str


def timed(
    command: Sequence[str | Path], folder: Path, settings: Mapping[str, str] | None = None
) -> tuple[float, str]:
    """Processor seconds of a process and of those that it began, and what it prints.

    Raises
    ------
    RuntimeError
        If it fails.
    """
    used, said = played(command, folder, settings)
    return used.ru_utime + used.ru_stime, said


def flow_file(kind: str, elements: Mapping[str, str], path: Path) -> None:
    """A file of one scenario with one flow, as MQSim reads it."""
    root = ElementTree.Element("MQSim_IO_Scenarios")
    flow = ElementTree.SubElement(ElementTree.SubElement(root, "IO_Scenario"), kind)
    for name, text in elements.items():
        ElementTree.SubElement(flow, name).text = text
    ElementTree.ElementTree(root).write(path, encoding="us-ascii", xml_declaration=True)


def prepare(mqsim: Path, folder: Path) -> None:
    """The drive and the three flows in `folder`, and what converting them gives."""
    drive = ElementTree.parse(mqsim / "ssdconfig.xml")
    for name, text in SMALLER.items():
        [element] = drive.iter(name)
        element.text = text
    drive.write(folder / "drive.xml", encoding="us-ascii", xml_declaration=True)
    for work, share in (("writes", "0"), ("reads", "100")):
        for name, stop in ((work, STOP_NS[work]), (f"{work}-short", SHORT_NS)):
            elements = AT_RANDOM | {"Read_Percentage": share, "Stop_Time": str(stop)}
            flow_file("IO_Flow_Parameter_Set_Synthetic", elements, folder / f"{name}.xml")
    for name, percent, repeats in (("trace", 100, REPEATS), ("trace-short", 1, 1)):
        trace = EVERYWHERE | {
            "File_Path": str(mqsim / "traces" / "tpcc-small.trace"),
            "Percentage_To_Be_Executed": str(percent),
            "Relay_Count": str(repeats),
            "Time_Unit": "NANOSECOND",
        }
        flow_file("IO_Flow_Parameter_Set_Trace_Based", trace, folder / f"{name}.xml")
    for path in [each for each in folder.glob("*.xml") if each.stem != "drive"]:
        timed([PROGRAM, "convert", "mqsim", "drive.xml", path.name, "--out", path.stem], folder)


def both_play(name: str, mqsim: Path, folder: Path) -> tuple[int, float, float, str, str]:
    """Requests of a flow, processor seconds of both, and what both say; MQSim plays first and counts the requests."""
    peer_s, _ = timed([mqsim / "MQSim", "-i", "drive.xml", "-w", f"{name}.xml"], folder)
    flow = ElementTree.parse(folder / f"{name}_scenario_1.xml").getroot()
    figures = {element.tag.split(".")[-1]: element.text or "" for element in flow.iter()}
    requests = int(figures["Request_Count"])
    [line] = [
        line for line in (folder / name / "run.sh").read_text().splitlines() if "simulate" in line
    ]
    words = shlex.split(line.replace('"$@"', ""))[1:]
    here_s, _ = timed([PROGRAM, *words, "--requests", str(requests)], folder / name)
    result = json.loads((folder / name / "scenario-1-flow-1.json").read_text())
    rate, mean_ns = result["throughput"]["iops"], result["response_time_ns"]["all"]["mean"]
    return (
        requests,
        peer_s,
        here_s,
        f"{float(figures['IOPS']):,.0f} IOPS, mean {float(figures['Device_Response_Time']):,.0f} us",
        f"{rate:,.0f} IOPS, mean {mean_ns / 1e3:,.0f} us",
    )


def beside_mqsim(work: str, mqsim: Path, folder: Path) -> Round:
    """A work that both play."""
    _, peer_start_s, here_start_s, _, _ = both_play(f"{work}-short", mqsim, folder)
    requests, peer_s, here_s, peer_says, here_says = both_play(work, mqsim, folder)
    return Round(
        *(f"MQSim, {work}", requests, peer_s, here_s),
        *(peer_start_s, here_start_s, peer_says, here_says),
    )


def beside_ssd_iq(program: Path, folder: Path) -> Round:
    """SSD-iq's work by default, and the same number of writes here."""
    (folder / "untimed.toml").write_text(UNTIMED)
    settings = {
        "CAPACITY": "16G", "ERASE": "8M", "PAGE": "4K", "SSDFILL": str(IN_USE),
        "PATTERN": "uniform", "GC": "greedy", "WRITES": str(CAPACITIES),
    }  # fmt: skip
    peer_start_s, _ = timed([program], folder, settings | {"WRITES": "0"})
    peer_s, said = timed([program], folder, settings)
    amplification = [float(each) for each in re.findall(r",greedy,([\d.]+),", said)]
    pages = BLOCKS * PAGES_OF_BLOCK
    writes = pages + int(pages * IN_USE) * CAPACITIES
    words = [
        "simulate",
        "untimed.toml",
        "--workload",
        "uniform:write=1",
        "--precondition",
        "sequential",
    ]
    here_start_s, _ = timed([PROGRAM, *words, "--requests", str(pages)], folder)
    here_s, _ = timed(
        [PROGRAM, *words, "--requests", str(writes), "--json", "untimed.json"], folder
    )
    factor = json.loads((folder / "untimed.json").read_text())["write_amplification"]
    return Round(
        "SSD-iq, uniform writes",
        writes,
        peer_s,
        here_s,
        peer_start_s,
        here_start_s,
        f"write amplification {statistics.fmean(amplification):.3f}",
        f"write amplification {factor:.3f}",
    )


def spread(ratios: Sequence[float]) -> str:
    """The median of ratios, and the least and the greatest."""
    return f"{statistics.median(ratios):.1f} ({min(ratios):.1f} to {max(ratios):.1f})"


def main() -> None:
    """Play the rounds, print a row for each work, and keep the rounds."""
    asked = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    asked.add_argument("--mqsim", type=Path, help="a checkout of MQSim with the program built")
    asked.add_argument("--ssd-iq", type=Path, help="the program of SSD-iq's simulator")
    asked.add_argument("--rounds", type=int, default=5)
    asked.add_argument("--csv", type=Path, help="where the rounds go")
    given = asked.parse_args()
    rounds: list[Round] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        works: list[Callable[[], Round]] = []
        if given.mqsim:
            mqsim = given.mqsim.resolve()
            prepare(mqsim, folder)
            for work in ("writes", "reads", "trace"):
                works.append(partial(beside_mqsim, work, mqsim, folder))
        if given.ssd_iq:
            works.append(partial(beside_ssd_iq, given.ssd_iq.resolve(), folder))
        if not works:
            asked.error("found no program, expected --mqsim or --ssd-iq")
        for number in range(given.rounds):
            for play in works:
                rounds.append(play())
                print(f"round {number + 1} of {given.rounds}: {rounds[-1]}", file=sys.stderr)
    if given.csv:
        with given.csv.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(asdict(rounds[0])))
            writer.writeheader()
            writer.writerows(map(asdict, rounds))
    heads = ["work", "requests", "s there", "s here", "ratio", "start there, here"]
    heads += ["ns a request there", "ns here", "ratio", "there", "here"]
    print(" | ".join(heads))
    for work in dict.fromkeys(each.work for each in rounds):
        own = [each for each in rounds if each.work == work]
        each_there = [1e9 * (each.peer_cpu_s - each.peer_start_s) / each.requests for each in own]
        each_here = [1e9 * (each.here_cpu_s - each.here_start_s) / each.requests for each in own]
        print(
            f"{work} | {own[0].requests:,} | {statistics.median(each.peer_cpu_s for each in own):.2f}"
            f" | {statistics.median(each.here_cpu_s for each in own):.2f}"
            f" | {spread([each.peer_cpu_s / each.here_cpu_s for each in own])}"
            f" | {statistics.median(each.peer_start_s for each in own):.2f},"
            f" {statistics.median(each.here_start_s for each in own):.2f}"
            f" | {statistics.median(each_there):,.0f} | {statistics.median(each_here):,.0f}"
            f" | {spread([there / here for there, here in zip(each_there, each_here, strict=True)])}"
            f" | {own[0].peer_says} | {own[0].here_says}"
        )


if __name__ == "__main__":
    main()
