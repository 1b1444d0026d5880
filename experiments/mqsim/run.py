"""The configurations in MQSim's repository, converted and played, beside MQSim's own figures.

    python experiments/mqsim/run.py FOLDER [--only PART] [--csv FILE]

FOLDER is a checkout of MQSim in which the program is built; its files stay as they are. Each flow of each scenario is
played alone by both programs, for `STOP_NS` of simulated time where it would end at a time; with `--only` the flows of
SSDs alone whose file has that in its name. In a table that is there, rows of other flows stay. What it shows is told in
docs/how-to/coming-from.md. Exits with 1 if a flow can't be converted or played.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from flashwright.drive.mqsim import convert
from flashwright.errors import FlashwrightError

# Time that flows play, nanoseconds of the simulation: 0.2 s, thousands of requests of each.
STOP_NS = 200_000_000
# Seconds that one run of either program may take.
LONGEST_S = 600
# What a flow names of the drive, and the elements that say how many there are in all.
PARTS = {
    "Channel_IDs": "Flash_Channel_Count",
    "Chip_IDs": "Chip_No_Per_Channel",
    "Die_IDs": "Die_No_Per_Chip",
    "Plane_IDs": "Plane_No_Per_Die",
}


# What names a flow in the table.
NAMES = ("ssd", "workload", "scenario", "flow")


@dataclass(frozen=True)
class Row:
    """A flow, played alone by both. Figures are empty where there is no run; `says` tells why."""

    ssd: str
    workload: str
    scenario: int
    flow: int
    requests: int | None = None
    mqsim_iops: float | None = None
    mqsim_mean_us: float | None = None
    converted_iops: float | None = None
    converted_mean_us: float | None = None
    equal: str = ""
    equal_iops: float | None = None
    equal_mean_us: float | None = None
    says: str = ""


@dataclass(frozen=True)
class Flow:
    """A flow of a scenario in a file, as text."""

    ssd: Path
    workload: Path
    scenario: int
    number: int
    text: str

    @property
    def alone(self) -> str:
        """A file of this flow alone that ends after `STOP_NS`."""
        ends = re.sub(r"<Stop_Time>\s*\d+", f"<Stop_Time>{STOP_NS}", self.text)
        return (
            '<?xml version="1.0" encoding="us-ascii"?>\n<MQSim_IO_Scenarios><IO_Scenario>\n'
            f"{ends}\n</IO_Scenario></MQSim_IO_Scenarios>\n"
        )

    @property
    def same_as(self) -> tuple[str, str]:
        """What makes two flows the same run: all but layout, seed, and an element that MQSim does not read."""
        return (
            re.sub(r"\s", "", self.ssd.read_text(encoding="ascii")),
            re.sub(r"\s|<(Seed|Intensity)>\d*</\1>", "", self.text),
        )

    def says(self, name: str) -> str:
        """The value of an element of the flow, else of the SSD."""
        for text in (self.text, self.ssd.read_text(encoding="ascii")):
            found = re.search(rf"<{name}>\s*([^<]*?)\s*</{name}>", text)
            if found is not None:
                return found[1]
        return ""


def flows(folder: Path) -> Iterator[Flow]:
    """Each flow of the repository, with the SSD that it is meant for."""
    pairs = [(folder / "ssdconfig.xml", folder / "workload.xml")]
    for each in sorted((folder / "fast18").iterdir()):
        ssds, workloads = sorted(each.glob("ssd*.xml")), sorted(each.glob("workload*.xml"))
        pairs += [(ssd, workload) for ssd in ssds for workload in workloads]
    for ssd, workload in pairs:
        text = workload.read_text(encoding="ascii")
        scenarios = re.findall(r"<IO_Scenario>(.*?)</IO_Scenario>", text, re.DOTALL)
        for number, scenario in enumerate(scenarios, 1):
            found = re.findall(r"<(IO_Flow_Parameter_Set_\w+)>(.*?)</\1>", scenario, re.DOTALL)
            for place, (kind, inner) in enumerate(found, 1):
                yield Flow(ssd, workload, number, place, f"<{kind}>{inner}</{kind}>")


def by_mqsim(folder: Path, flow: Flow, room: Path) -> tuple[int, float, float]:
    """Requests, requests a second, and mean response in microseconds; refuses where MQSim fails or takes too long."""
    file = room / "alone.xml"
    file.write_text(flow.alone, encoding="ascii")
    done = subprocess.run(
        [folder / "MQSim", "-i", flow.ssd, "-w", file],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        raise FlashwrightError(said[-1] if said else f"exit status {done.returncode}")
    (found,) = ElementTree.parse(room / "alone_scenario_1.xml").iterfind("./Host/Host.IO_Flow")
    requests = int(found.findtext("Request_Count", "0"))
    mean_us = float(found.findtext("End_to_End_Request_Delay", "nan"))
    # Its own rate divides by a time that can be 0. A trace ends by itself.
    rate = requests / (STOP_NS / 1e9)
    return (
        requests,
        rate if "<Stop_Time>" in flow.text else float(found.findtext("IOPS", "nan")),
        mean_us,
    )


def here(
    command: tuple[str, ...], room: Path, requests: int | None, *more: str
) -> tuple[float, float]:
    """Requests a second and their mean response in microseconds of a converted command."""
    words = [*command, *more, "--quiet"]
    if requests and "--requests" in words:
        words[words.index("--requests") + 1] = str(requests)
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=room,
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )
    if done.returncode:
        raise FlashwrightError(done.stderr.strip().splitlines()[0])
    found = json.loads((room / words[words.index("--json") + 1]).read_text(encoding="utf-8"))
    return found["throughput"]["iops"], found["response_time_ns"]["all"]["mean"] / 1e3


def equal(flow: Flow, command: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The command, and settings, by which policies are equal; None where nothing makes them so: a trace, a mix.

    The drive has the parts alone that the flow is kept to. MQSim gives a chip one command at a time, so that a chip is
    one die here, with the planes of all. The sectors alone that a request asks for cross the bus. Writes are done once
    there is room for what is on its way to flash, which MQSim counts in sectors and this drive in pages; no write waits
    for the map, and the number of a page says its plane.
    """
    if "--workload" not in command or flow.says("Read_Percentage") not in ("0", "100"):
        return None
    named = {part: len(flow.says(part).split(",")) for part in PARTS}
    whole = {part: int(flow.says(count)) for part, count in PARTS.items()}
    settings = [
        f"geometry.channels={named['Channel_IDs']}",
        f"geometry.dies-per-channel={named['Chip_IDs']}",
        "geometry.dies-per-way=1",
        f"geometry.planes-per-die={named['Die_IDs'] * named['Plane_IDs']}",
    ]
    share = math.prod(named[part] / whole[part] for part in PARTS)
    words = list(command)
    at = words.index("--workload") + 1
    words[at] = re.sub(r"range=([\d.]+)", lambda m: f"range={float(m[1]) / share:g}", words[at])
    asked, page = int(flow.says("Average_Request_Size")) * 512, int(flow.says("Page_Capacity"))
    if asked < page:
        rate = int(flow.says("Channel_Transfer_Rate")) * page // asked
        settings.append(f"timing.bus-rate={rate} MB/s")
    if flow.says("Read_Percentage") == "0":
        # As many requests as there are of their sectors in a page of each plane.
        room = math.prod(whole.values()) * page // min(asked, page) * page
        settings += ["ram.manager=none", "ram.size=0 B", f"chips.write-ram={room} B"]
        settings += ["ftl.scheme=page", "placement.allocation=static"]
    return tuple(words), tuple(settings)


def compared(folder: Path, flow: Flow) -> Row:
    """A flow by both."""
    row = Row(flow.ssd.name, flow.workload.name, flow.scenario, flow.number)
    with tempfile.TemporaryDirectory() as name:
        room = Path(name)
        failed = ""
        try:
            requests, mqsim_iops, mqsim_mean_us = by_mqsim(folder, flow, room)
        except (FlashwrightError, OSError, ElementTree.ParseError, ValueError) as error:
            failed = str(error).splitlines()[0][:200]
        except subprocess.TimeoutExpired:
            failed = f"takes more than {LONGEST_S} s"
        if failed:
            # There is nothing to compare with.
            return replace(row, says=f"MQSim: {failed}")
        row = replace(row, requests=requests, mqsim_iops=mqsim_iops, mqsim_mean_us=mqsim_mean_us)
        try:
            # Beside the trace that it may name.
            beside = flow.workload.with_name("alone.xml")
            text = flow.alone.replace("<File_Path>", f"<File_Path>{flow.workload.parent}/")
            (room / beside.name).write_text(text, encoding="ascii")
            found = convert(flow.ssd, room / beside.name, out=room)
            found.write(room)
            command = found.runs[0].command
            iops, mean_us = here(command, room, row.requests)
            row = replace(row, converted_iops=iops, converted_mean_us=mean_us)
            changed = equal(flow, command)
            if changed is not None:
                options = [word for each in changed[1] for word in ("--set", each)]
                iops, mean_us = here(changed[0], room, row.requests, *options)
                row = replace(
                    row, equal="; ".join(changed[1]), equal_iops=iops, equal_mean_us=mean_us
                )
        except FlashwrightError as error:
            row = replace(row, says=f"converted: {str(error).splitlines()[0][:200]}")
        except subprocess.TimeoutExpired:
            row = replace(row, says=f"converted: takes more than {LONGEST_S} s")
    return row


def read_table(path: Path) -> dict[tuple[str, ...], dict[str, str]]:
    """The lines of a table by what names their flow; none where there is no table."""
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {tuple(line[name] for name in NAMES): line for line in csv.DictReader(file)}


def write_table(path: Path, rows: Iterable[Row]) -> None:
    """Write the flows so far, in the place of their lines in the table that is there."""
    lines = read_table(path)
    for row in rows:
        line = {
            k: "" if v is None else f"{v:.6g}" if isinstance(v, float) else str(v)
            for k, v in asdict(row).items()
        }
        lines[tuple(line[name] for name in NAMES)] = line
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, [each.name for each in fields(Row)], lineterminator="\n")
        table.writeheader()
        table.writerows(lines.values())


def main() -> int:
    """Play all, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="a part of the name of an SSD's file")
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args()
    folder = options.folder.resolve()
    rows: dict[tuple[str, str], Row] = {}
    for flow in flows(folder):
        if options.only in flow.ssd.name and flow.same_as not in rows:
            rows[flow.same_as] = compared(folder, flow)
            print(*asdict(rows[flow.same_as]).values(), sep="\t", flush=True)
            if options.csv is not None:
                write_table(options.csv, rows.values())
    return int(any(row.says for row in rows.values()))


if __name__ == "__main__":
    raise SystemExit(main())
