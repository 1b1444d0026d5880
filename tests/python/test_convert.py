"""``flashwright convert``: what MQSim reads as our drive and commands, worked out by hand, run, broken and fuzzed."""

from __future__ import annotations

import json
import math
import os
import random
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import mqsimfiles as files
from conftest import Cli
from flashwright import Ssd
from flashwright.drive import mqsim
from flashwright.drive.mqsim.device import dram_ns
from flashwright.drive.mqsim.element import Values
from flashwright.drive.mqsim.xmlfile import MOST_BYTES
from flashwright.errors import FlashwrightError

Changes = Mapping[str, str | None]


def converted(folder: Path, changes: Changes | None = None, *flows: Changes) -> mqsim.Conversion:
    return mqsim.convert(
        *files.write(folder, files.config(changes), files.scenarios(*flows) if flows else None),
        out=folder,
    )


def settings(found: mqsim.Conversion) -> dict[str, Any]:
    """Those that the file of the drive says, by their dotted keys."""

    def flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
        keys: dict[str, Any] = {}
        for key, value in tree.items():
            keys |= (
                flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
            )
        return keys

    return flat(tomllib.loads(found.toml))


def options(run: mqsim.Run) -> dict[str, str]:
    """What the options of a command say; those that stand alone have no text."""
    words, found = shlex.split(run.text), {}
    assert words[:3] == ["flashwright", "simulate", "drive.toml"]
    for at, word in enumerate(words):
        if word.startswith("--"):
            nothing = at + 1 == len(words) or words[at + 1].startswith("--")
            found[word] = "" if nothing else words[at + 1]
    return found


def said_of(found: mqsim.Conversion, name: str) -> list[str]:
    return [str(note) for note in found.notes if name in note.about]


def test_a_drive_is_as_worked_out_by_hand(tmp_path: Path) -> None:
    assert settings(converted(tmp_path)) == {
        "name": "ssd",
        "about": "Converted from MQSim's ssd.xml.",
        "geometry.channels": 2,
        "geometry.dies-per-channel": 2,
        "geometry.dies-per-way": 1,
        "geometry.planes-per-die": 1,
        "geometry.blocks-per-plane": 200,
        "geometry.pages-per-block": 32,
        "geometry.page-size": "4 KiB",
        "geometry.spare-size": "64 B",
        "geometry.bits-per-cell": 1,
        "capacity.utilization": 0.7,
        "timing.read": "40 us",
        "timing.program": "300 us",
        "timing.erase": "2 ms",
        "timing.command": "290 ns",
        "timing.bus-rate": "100 MB/s",
        "timing.die-order": "reads-first",
        "chips.copyback": False,
        "chips.suspends": "nothing",
        # Four planes of a page.
        "chips.write-ram": "16 KiB",
        "ftl.scheme": "page",
        "ram.size": "1 MiB",
        "ram.manager": "fifo",
        # 5 % of 200 are 10 blocks, and cleaning begins below.
        "gc.free-blocks-min": 9,
        "gc.victim": "d-choices",
        "gc.d-choices.d": 7,
        "gc.d-choices.with-replacement": False,
        "placement.order": "WCDP",
        "placement.allocation": "static",
        "placement.policy": "gc-separate",
        "wear.pe-cycles-max": 5000,
        "wear.free-block": "least-worn",
        "wear.policy": "threshold",
        "wear.threshold.gap": 100,
        "host.partial-pages": "read-modify-write",
        # 0.5 GB/s times 2 lanes, of 156 B 128 are data.
        "controller.interface-rate": "820.513 MB/s",
        "controller.interface": "full-duplex",
        "host.queue-depth": 64,
        # 10 + 11 ns, and 4096 B in bursts of 4 B, two of them in a nanosecond.
        "controller.write-overhead": "533 ns",
    }


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"GC_Block_Selection_Policy": "GREEDY"}, {"gc.victim": "greedy"}),
        ({"GC_Block_Selection_Policy": "fifo"}, {"gc.victim": "fifo"}),
        (
            {"GC_Block_Selection_Policy": "RANDOM"},
            {"gc.victim": "random", "gc.random.invalid-min": 1},
        ),
        (
            {"GC_Block_Selection_Policy": "RANDOM_P"},
            {"gc.victim": "random", "gc.random.invalid-min": 1},
        ),
        (
            {"Preemptible_GC_Enabled": "true"},
            {
                "gc.schedule": "preemptive",
                "gc.preemptive.start-blocks": 10,
                "gc.free-blocks-min": 3,
                "timing.die-order": "by-class",
            },
        ),
        ({"GC_Exec_Threshold": "0.1"}, {"gc.free-blocks-min": 19}),
        ({"GC_Exec_Threshold": "0.01"}, {"gc.free-blocks-min": 9}),
        ({"Use_Copyback_for_GC": "TRUE"}, {"chips.copyback": True}),
        ({"Static_Wearleveling_Enabled": "false"}, {"wear.policy": "none"}),
        ({"Static_Wearleveling_Threshold": "5"}, {"wear.threshold.gap": 5}),
        ({"Dynamic_Wearleveling_Enabled": "false"}, {"wear.free-block": "fifo"}),
        ({"Overprovisioning_Ratio": "0.127"}, {"capacity.utilization": 0.873}),
        # 25,600 pages, log2 of which is 14.64: 29.3 bits, and 8 sectors, in 5 B.
        (
            {"Ideal_Mapping_Table": "false"},
            {
                "ftl.scheme": "dftl",
                "ftl.dftl.cmt-entries": 819,
                "ftl.dftl.replacement": "lru",
                "placement.allocation": "dynamic",
            },
        ),
        (
            {"Flash_Technology": "MLC"},
            {
                "geometry.bits-per-cell": 2,
                "timing.read": "50 us",
                "chips.read-times": "40 us, 60 us",
                "chips.program-times": "300 us, 700 us",
            },
        ),
        (
            {"Flash_Technology": "TLC"},
            {
                "geometry.bits-per-cell": 3,
                "timing.program": "500 us",
                "chips.read-times": "40 us, 50 us, 60 us",
            },
        ),
        (
            {"CMD_Suspension_Support": "ERASE"},
            {"chips.suspends": "erases", "chips.suspend": "6 us", "chips.resume": "0 ns"},
        ),
        (
            {"CMD_Suspension_Support": "PROGRAM"},
            {"chips.suspends": "programs-and-erases", "chips.suspend": "4 us"},
        ),
        (
            {"CMD_Suspension_Support": "PROGRAM_ERASE"},
            {"chips.suspends": "programs-and-erases", "chips.suspend": "6 us"},
        ),
        (
            {"Flash_Channel_Width": "2", "Channel_Transfer_Rate": "333"},
            {"timing.bus-rate": "666 MB/s"},
        ),
        (
            {"HostInterface_Type": "SATA", "IO_Queue_Depth": "32"},
            {
                "host.queue-depth": 32,
                "controller.read-overhead": "1 us",
                "controller.write-overhead": "1 us",
            },
        ),
        (
            {"Chip_No_Per_Channel": "3", "Die_No_Per_Chip": "2"},
            {"geometry.dies-per-channel": 6, "geometry.dies-per-way": 2},
        ),
    ],
    ids=str,
)
def test_an_element_becomes(changes: Changes, expected: dict[str, Any], tmp_path: Path) -> None:
    found = settings(converted(tmp_path, changes))
    assert {key: found.get(key) for key in expected} == expected


@pytest.mark.parametrize(
    ("changes", "name", "words"),
    [
        ({"Data_Cache_Sharing_Mode": "EQUAL_PARTITIONING"}, "Data_Cache_Sharing_Mode", "no equal"),
        ({"CMT_Sharing_Mode": "EQUAL_PARTITIONING"}, "CMT_Sharing_Mode", "no equal"),
        ({"Address_Mapping": "HYBRID"}, "Address_Mapping", "MQSim does not implement it"),
        ({"Caching_Mechanism": "SIMPLE"}, "Caching_Mechanism", "approximated"),
        (
            {"GC_Block_Selection_Policy": "RANDOM"},
            "GC_Block_Selection_Policy",
            "blocks that are being filled too",
        ),
        (
            {"GC_Exec_Threshold": "0.01"},
            "GC_Exec_Threshold",
            "there 2 blocks asked, and 10 at least; here 10",
        ),
        ({"Dynamic_Wearleveling_Enabled": "false"}, "Dynamic_Wearleveling_Enabled", "there on"),
        (
            {"Static_Wearleveling_Threshold": "5"},
            "Static_Wearleveling_Threshold",
            "there on at 100",
        ),
        ({"Channel_Transfer_Rate": "400"}, "Channel_Transfer_Rate", "500 MB/s; here 400 MB/s"),
        ({"CMD_Suspension_Support": "ERASE"}, "Preferred_suspend_erase_time_for_read", "no equal"),
        (
            {"CMD_Suspension_Support": "PROGRAM"},
            "Preferred_suspend_write_time_for_read",
            "no equal",
        ),
        (
            {"HostInterface_Type": "SATA"},
            "SATA_Processing_Delay",
            "before a command and again after it",
        ),
        ({"Flash_Technology": "TLC"}, "Flash_Technology", "approximated"),
        ({}, "Seed", "no equal"),
        ({}, "GC_Hard_Threshold", "no effect"),
        ({"Overprovisioning_Ratio": None}, "Overprovisioning_Ratio", "missing: MQSim takes 0.07"),
    ],
    ids=str,
)
def test_what_is_not_the_same_is_said(
    changes: Changes, name: str, words: str, tmp_path: Path
) -> None:
    if "Overprovisioning_Ratio" in changes:
        changes = {**changes, "GC_Exec_Threshold": "0.01", "Block_No_Per_Plane": "400"}
    [line] = said_of(converted(tmp_path, changes), name)
    assert words in line


def test_every_element_of_the_tables_is_in_the_fixture_and_spoken_of_or_mapped(
    tmp_path: Path,
) -> None:
    fixture = {
        "Host_Parameter_Set": files.HOST,
        "Device_Parameter_Set": files.SSD,
        "Flash_Parameter_Set": files.FLASH,
        "IO_Flow_Parameter_Set_Synthetic": files.SYNTHETIC,
        "IO_Flow_Parameter_Set_Trace_Based": files.TRACE,
    }
    assert {name: [row.name for row in rows] for name, rows in mqsim.SETS.items()} == {
        name: list(values) for name, values in fixture.items()
    }
    for name, rows in mqsim.SETS.items():
        for row in rows:
            row.kind.read(fixture[name][row.name])
            assert row.ours or row.fate in ("no effect", "no equal") or row.name in _BESIDE_OTHERS


_BESIDE_OTHERS = {"Memory_Type", "HostInterface_Type", "Variance_Request_Size"}
"""Elements that become nothing of their own."""


def test_a_flow_is_as_worked_out_by_hand(tmp_path: Path) -> None:
    [run] = converted(tmp_path, {}, {}).runs
    assert options(run) == {
        "--workload": "uniform:range=1,depth=1,write=1,align=4KiB,size=4KiB",
        "--seed": "11",
        "--requests": "2000",
        "--precondition": "workload",
        # It would begin after some hundred turns only, and no drive settles before.
        "--set": "wear.policy=none",
        "--json": "scenario-1-flow-1.json",
    }


@pytest.mark.parametrize(
    ("flow", "spec"),
    [
        (
            {"Address_Distribution": "STREAMING"},
            "sequential:range=1,depth=1,write=1,align=4KiB,size=4KiB",
        ),
        (
            {"Address_Distribution": "RANDOM_HOTCOLD", "Read_Percentage": "30"},
            "hot-cold:range=1,depth=1,write=0.7,hot-space=0.2,hot-access=0.8,align=4KiB,size=4KiB",
        ),
        # 40,960,000 B are 80,000 sectors, 10,000 requests of 8, one each 100 us.
        (
            {"Synthetic_Generator_Type": "BANDWIDTH"},
            "uniform:range=1,rate=10000,write=1,align=4KiB,size=4KiB",
        ),
        (
            {"Generated_Aligned_Addresses": "false", "Working_Set_Percentage": "50"},
            "uniform:range=0.5,depth=1,write=1,align=512B,size=4KiB",
        ),
        (
            {"Average_Request_Size": "3", "Average_No_of_Reqs_in_Queue": "9"},
            "uniform:range=1,depth=9,write=1,align=4KiB,size=1.5KiB",
        ),
    ],
    ids=str,
)
def test_a_flow_becomes(flow: Changes, spec: str, tmp_path: Path) -> None:
    [run] = converted(tmp_path, {}, flow).runs
    assert options(run)["--workload"] == spec


def test_a_flow_that_ends_by_time_plays_as_many_as_arrive(tmp_path: Path) -> None:
    by_time = {"Stop_Time": "500000000"}
    [open_loop] = converted(tmp_path, {}, {**by_time, "Synthetic_Generator_Type": "BANDWIDTH"}).runs
    assert options(open_loop)["--requests"] == "5000"
    found = converted(tmp_path, {}, by_time)
    assert options(found.runs[0])["--requests"] == "100000"
    assert "there as many as end in 500 ms; here 100,000 requests" in said_of(found, "Stop_Time")[0]


def test_flows_share_the_space_by_the_planes_they_have(tmp_path: Path) -> None:
    """One flow on all four planes, one on the two of channel 1: three quarters and a half of two planes each."""
    found = converted(tmp_path, {}, {}, {"Channel_IDs": "1", "Working_Set_Percentage": "40"})
    ranges = [
        options(run)["--workload"].partition("range=")[2].partition(",")[0] for run in found.runs
    ]
    # 2 x 1 + 2 x 1/2 of 4 planes; 2 x 1/2 of 4, and 40 % of that.
    assert ranges == ["0.75", "0.1"]
    assert "Channel_IDs = 1: no equal" in said_of(found, "Channel_IDs")[0]
    assert said_of(found, "scenario 1")[-1].endswith(
        "its 2 flows run at once there, one after the other here"
    )


def test_caching_is_of_the_drive_where_all_flows_agree_and_of_the_command_where_not(
    tmp_path: Path,
) -> None:
    found = converted(
        *(tmp_path, {}),
        {"Device_Level_Data_Caching_Mode": "WRITE_READ_CACHE"},
        {"Device_Level_Data_Caching_Mode": "TURNED_OFF"},
    )
    assert settings(found)["ram.manager"] == "lru"
    assert "ram." not in found.runs[0].text
    assert "ram.manager=none" in found.runs[1].text
    assert "ram.size=0 B" in found.runs[1].text
    assert "chips.write-ram=0 B" in found.runs[1].text


def test_a_trace_becomes(tmp_path: Path) -> None:
    (tmp_path / "requests.trace").write_text(
        "".join(f"{i * 1000} 0 {i * 8} 8 0\n" for i in range(10))
    )
    found = converted(tmp_path, {}, {"File_Path": "requests.trace", "Time_Unit": "MICROSECOND"})
    assert options(found.runs[0]) == {
        "--trace": "requests.trace",
        "--format": "mqsim",
        "--overlay": "",
        "--addresses": "wrap",
        # Half of ten lines, played twice.
        "--requests": "10",
        "--repeat": "2",
        "--time-unit": "us",
        "--precondition": "workload",
        # It would begin after some hundred turns only, and no drive settles before.
        "--set": "wear.policy=none",
        "--json": "scenario-1-flow-1.json",
    }
    assert "there nanoseconds, whatever it says" in said_of(found, "Time_Unit")[0]
    assert "here one mean gap of the trace after it" in said_of(found, "Relay_Count")[0]


def test_what_only_reads_is_not_played_in_advance(tmp_path: Path) -> None:
    (tmp_path / "requests.trace").write_text("0 0 0 8 1\n5 0 8 8 1\n")
    found = converted(tmp_path, {}, {"File_Path": "requests.trace"}, {"Read_Percentage": "100"}, {})
    said = [options(run)["--precondition"] for run in found.runs]
    assert said == ["sequential", "sequential", "workload"]


def test_a_trace_that_is_not_there_is_said(tmp_path: Path) -> None:
    found = converted(tmp_path, {}, {"File_Path": "gone.trace"})
    assert "not found" in said_of(found, "File_Path")[0]


def test_fewer_blocks_keep_the_shares(tmp_path: Path) -> None:
    paths = files.write(
        tmp_path, files.config({"Block_No_Per_Plane": "2000", "Data_Cache_Capacity": "8388608"})
    )
    whole, part = (settings(mqsim.convert(*paths, blocks_per_plane=n)) for n in (None, 250))
    assert (whole["geometry.blocks-per-plane"], part["geometry.blocks-per-plane"]) == (2000, 250)
    assert (whole["gc.free-blocks-min"], part["gc.free-blocks-min"]) == (99, 11)
    assert (whole["ram.size"], part["ram.size"]) == ("8 MiB", "1 MiB")


def test_the_values_of_mqsims_own_configuration(tmp_path: Path) -> None:
    """Worked out from what its file says: 8 x 4 x 2 x 2 planes of 2,048 blocks of 256 pages of 8 KiB."""
    own = {
        "PCIe_Lane_Bandwidth": "1.00000",
        "PCIe_Lane_Count": "4",
        "Queue_Fetch_Size": "512",
        "Data_Cache_Capacity": "268435456",
        "Data_Cache_DRAM_Data_Rate": "100",
        "Data_Cache_DRAM_Data_Busrt_Size": "1",
        "Data_Cache_DRAM_tRCD": "13",
        "Data_Cache_DRAM_tCL": "13",
        "Ideal_Mapping_Table": "false",
        "CMT_Capacity": "2097152",
        "Overprovisioning_Ratio": "0.07",
        "Flash_Channel_Count": "8",
        "Page_Capacity": "8192",
        "Chip_No_Per_Channel": "4",
        "Die_No_Per_Chip": "2",
        "Plane_No_Per_Die": "2",
        "Block_No_Per_Plane": "2048",
        "Page_No_Per_Block": "256",
        "IO_Queue_Depth": "65535",
    }
    found = settings(converted(tmp_path, own))
    expected = {
        # 4 GB/s x 128/156.
        "controller.interface-rate": "3282.05 MB/s",
        "host.queue-depth": 512,
        # 13 + 13 ns, and 4,096 times two bursts of a byte, 10 ns each pair.
        "controller.write-overhead": "40.986 us",
        # 2^26 pages: 52 bits, and 16 sectors, in 9 B.
        "ftl.dftl.cmt-entries": 2_097_152 // 9,
        "gc.free-blocks-min": 101,
        "gc.d-choices.d": 11,
        "chips.write-ram": "1 MiB",
        "capacity.utilization": 0.93,
    }
    assert {key: found[key] for key in expected} == expected


def test_time_in_the_dram() -> None:
    """Rows of 1,024 B, 4 B a burst, two bursts in 2 ns: a row takes 5 + 6 + 256 ns, 7 lie between rows."""
    names = {"Data_Busrt_Size": 4, "Row_Size": 1024, "tRCD": 5, "tCL": 6, "tRP": 7}
    v = Values({f"Data_Cache_DRAM_{name}": n for name, n in (names | {"Data_Rate": 500}).items()})
    assert dram_ns(v, 1024) == 267
    assert dram_ns(v, 2048) == 2 * 267 + 7
    assert dram_ns(v, 2560) == 2 * 267 + 2 * 7 + 11 + 128


# What was converted is run.


def play(found: mqsim.Conversion, folder: Path, command: Cli, *more: str) -> dict[str, Any]:
    """The figures of the first run, played in its folder."""
    found.write(folder)
    words = shlex.split(found.runs[0].text)[2:]
    words[0] = str(folder / words[0])
    words = [
        str(folder / word) if word.endswith((".trace", ".csv", ".json")) else word for word in words
    ]
    said = command("simulate", *words, *more, "--quiet")
    assert said.status == 0, said.err
    figures: dict[str, Any] = json.loads((folder / "scenario-1-flow-1.json").read_text())
    return figures


_LINK_NS = 4096 / 0.820513
"""4 KiB over the link."""
_BUS_NS = 40_960 + 290
"""4 KiB over a channel, and the command."""


def test_a_read_takes_the_times_of_the_elements(tmp_path: Path, command: Cli) -> None:
    reads = play(converted(tmp_path, {}, {"Read_Percentage": "100"}), tmp_path, command)
    # One after the other: command, array, channel, link.
    expected = 40_000 + _BUS_NS + _LINK_NS
    assert reads["response_time_ns"]["read"]["mean"] == pytest.approx(expected, rel=1e-3)
    assert reads["throughput"]["iops"] == pytest.approx(1e9 / expected, rel=1e-2)


def test_a_write_takes_the_times_of_the_elements(tmp_path: Path, command: Cli) -> None:
    empty = {"Enabled_Preconditioning": "false"}
    writes = play(converted(tmp_path, empty, {}), tmp_path, command)
    expected = _LINK_NS + _BUS_NS + 300_000
    assert writes["response_time_ns"]["write"]["mean"] == pytest.approx(expected, rel=1e-3)


def test_four_dies_take_four_times_as_much(tmp_path: Path, command: Cli) -> None:
    flow = {"Average_No_of_Reqs_in_Queue": "32", "Total_Requests_To_Generate": "8000"}
    writes = play(
        converted(tmp_path, {"Enabled_Preconditioning": "false"}, flow), tmp_path, command
    )
    # Of a random deep queue at least 90 % of 4 dies work, each for a channel's and an array's time a page.
    assert 0.9 < writes["throughput"]["iops"] / (4e9 / (300_000 + _BUS_NS)) <= 1


def test_write_amplification_in_order_is_one_and_at_random_that_of_the_theory(
    tmp_path: Path, command: Cli
) -> None:
    flow = {"Total_Requests_To_Generate": "60000"}
    stream = {**flow, "Address_Distribution": "STREAMING"}
    greedy = {"GC_Block_Selection_Policy": "GREEDY"}
    in_order = play(converted(tmp_path, greedy, stream), tmp_path, command)
    assert in_order["write_amplification"] == pytest.approx(1, abs=0.02)
    at_random = play(converted(tmp_path, {}, flow), tmp_path, command)
    # 140 of 200 blocks hold data; 9 to 10 are free and two open, which leaves 188 for cleaning.
    used = 140 / 188
    # FIFO: the valid share p of a victim solves p = exp(-(1 - p) / used) (Desnoyers 2012). The best of 7 is better.
    p = 0.5
    for _ in range(200):
        p = math.exp(-(1 - p) / used)
    assert 1.3 < at_random["write_amplification"] < 1 / (1 - p)


def test_run_sh_runs_all_flows_and_takes_options(tmp_path: Path) -> None:
    out = tmp_path / "a folder"
    changes = {"Enable_ResponseTime_Logging": "true"}
    (tmp_path / "requests.trace").write_text(
        "".join(f"{i * 1000} 0 {i * 8} 8 {i % 2}\n" for i in range(10))
    )
    flows = files.scenarios({}, {"File_Path": "requests.trace"})
    found = mqsim.convert(*files.write(tmp_path, files.config(changes), flows), out=out)
    found.write(out)
    done = subprocess.run(
        ["sh", str(out / "run.sh"), "--requests", "7", "--quiet"],
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    results = [json.loads((out / f"scenario-1-flow-{n}.json").read_text()) for n in (1, 2)]
    assert [each["measured"]["requests"] for each in results] == [7, 7]
    assert "time=2ms" in found.runs[0].text
    assert (out / "scenario-1-flow-1.csv").read_text().count("\n") > 1


def test_the_command_writes_and_says(tmp_path: Path, command: Cli) -> None:
    out = tmp_path / "out"
    paths = files.write(tmp_path, files.config(), files.scenarios({}))
    said = command("convert", "mqsim", *paths, "--out", out, "--blocks-per-plane", "150")
    assert said.status == 0
    assert said.out.splitlines() == [
        f"{out}/drive.toml: the drive",
        f"{out}/run.sh: a command for each flow, to run in {out}:",
        "flashwright simulate drive.toml --workload uniform:range=1,depth=1,write=1,align=4KiB,size=4KiB "
        "--seed 11 --requests 2000 --precondition workload --set wear.policy=none --json scenario-1-flow-1.json",
    ]
    assert all(line.startswith("note: ") for line in said.err.splitlines())
    drive = Ssd.find(str(out / "drive.toml"))
    assert drive.config["geometry"]["blocks-per-plane"] == 150
    assert drive.play("uniform:write=1", requests=100).json["host"]["pages_written"] == 100


# What is wrong is said in one line.


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "line 1: found no XML: no element found"),
        ("not XML", "line 1: found no XML: syntax error"),
        ("<a></b>", "found no XML: mismatched tag"),
        (
            "<MQSim_IO_Scenarios/>",
            "line 1: found <MQSim_IO_Scenarios>, expected <Execution_Parameter_Set>",
        ),
        ('<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "found a DTD"),
        ('<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>', "found a DTD"),
        ("<Execution_Parameter_Set>&lots;</Execution_Parameter_Set>", "undefined entity"),
        ('<?xml version="1.0" encoding="none-such"?><a/>', "found"),
        ('<Execution_Parameter_Set a="1"/>', "found attributes"),
        ("<a>" * 20 + "</a>" * 20, "more than 8 elements within one another"),
        ("<Execution_Parameter_Set/>", "found 0 of <Host_Parameter_Set>"),
        ("<a>" + "x" * MOST_BYTES + "</a>", "found more than 1,048,576 bytes"),
        (
            files.config({"Page_Capacity": None}),
            "Page_Capacity: found none in <Flash_Parameter_Set>",
        ),
        (
            files.config({"Page_Capacity": "big"}),
            "Page_Capacity: found 'big', expected a whole number from 512",
        ),
        (files.config({"Page_Capacity": "1" * 3000}), "expected a whole number from 512"),
        (files.config({"Page_Capacity": "<a>4096</a>"}), "Page_Capacity: found <a> in it"),
        (files.config({"Page_Capacity": "5000"}), "geometry.page-size (Page_Capacity)"),
        (
            files.config({"Flash_Channel_Count": "65"}),
            "Flash_Channel_Count: found '65', expected a whole number from 1 to 64",
        ),
        (files.config({"Flash_Channel_Count": "-1"}), "Flash_Channel_Count: found '-1'"),
        (
            files.config({"Chip_No_Per_Channel": "64", "Die_No_Per_Chip": "2"}),
            "geometry.dies-per-channel (Chip_No_Per_Channel x Die_No_Per_Chip): found 128",
        ),
        (
            files.config({"Overprovisioning_Ratio": "1.5"}),
            "Overprovisioning_Ratio: found '1.5', expected a number above 0 and below 1",
        ),
        (
            files.config({"Overprovisioning_Ratio": "0.02"}),
            "capacity.utilization (1 - Overprovisioning_Ratio)",
        ),
        (
            files.config({"Ideal_Mapping_Table": "maybe"}),
            "Ideal_Mapping_Table: found 'maybe', expected true or false",
        ),
        (
            files.config({"Plane_Allocation_Scheme": "CWCP"}),
            "Plane_Allocation_Scheme: found 'CWCP'",
        ),
        (files.config({"Block_No_Per_Plane": "4000000000"}), "geometry: found 512000000000 pages"),
        (files.config(extra="<Seed>1</Seed>"), "Seed: found it twice"),
    ],
    ids=lambda value: value[-40:] if isinstance(value, str) else None,
)
def test_a_broken_drive_is_refused_in_a_line_a_fault(
    text: str, line: str, tmp_path: Path, command: Cli
) -> None:
    said = command("convert", "mqsim", *files.write(tmp_path, text), "--out", tmp_path / "out")
    assert said.status == 2
    *faults, hint = said.err.splitlines() if "hint: " in said.err else (*said.err.splitlines(), "")
    assert hint == "" or hint.startswith("hint: ")
    assert all(each.startswith("error: ") for each in faults)
    [error] = [each for each in faults if line in each]
    assert "ssd.xml: " in error or "error: ssd: " in error
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("flow", "line"),
    [
        ({"Read_Percentage": "101"}, "Read_Percentage: found '101'"),
        (
            {"Read_Percentage": None},
            "Read_Percentage: found none in <IO_Flow_Parameter_Set_Synthetic>",
        ),
        (
            {"Channel_IDs": "0,2"},
            "Channel_IDs: found 2, expected less than Flash_Channel_Count = 2",
        ),
        ({"Channel_IDs": "0,0"}, "Channel_IDs: found '0,0'"),
        ({"Channel_IDs": ""}, "Channel_IDs: found ''"),
        (
            {"Address_Distribution": "MIXED_STREAMING_RANDOM"},
            "Address_Distribution: found 'MIXED_STREAMING_RANDOM'",
        ),
        (
            {"Address_Distribution": "RANDOM_HOTCOLD", "Percentage_of_Hot_Region": "0"},
            "Percentage_of_Hot_Region: found 0",
        ),
        (
            {"Synthetic_Generator_Type": "BANDWIDTH", "Bandwidth": "100"},
            "Bandwidth: found 100, which can't be played",
        ),
        (
            {"Total_Requests_To_Generate": "0"},
            "Total_Requests_To_Generate: found 0, which can't be played",
        ),
        ({"File_Path": "a\x0bb"}, "found no XML"),
        ({"File_Path": ""}, "File_Path: found ''"),
    ],
    ids=str,
)
def test_a_broken_flow_is_refused_in_one_line(
    flow: Changes, line: str, tmp_path: Path, command: Cli
) -> None:
    paths = files.write(tmp_path, files.config(), files.scenarios(flow))
    said = command("convert", "mqsim", *paths, "--out", tmp_path / "out")
    assert said.status == 2
    [error] = [each for each in said.err.splitlines() if each.startswith("error: ")]
    assert line in error and "flows.xml" in error


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("<MQSim_IO_Scenarios/>", "found no <IO_Scenario>"),
        (
            "<MQSim_IO_Scenarios><IO_Scenario/></MQSim_IO_Scenarios>",
            "found 0 flows in a scenario, expected 1 to 8",
        ),
        (files.scenarios(*[{}] * 9), "found 9 flows in a scenario, expected 1 to 8"),
    ],
    ids=["none", "empty", "nine"],
)
def test_scenarios_without_flows_or_with_too_many(
    text: str, line: str, tmp_path: Path, command: Cli
) -> None:
    said = command(
        "convert", "mqsim", *files.write(tmp_path, files.config(), text), "--out", tmp_path / "out"
    )
    assert said.status == 2 and line in said.err


def test_files_that_are_not_there_and_folders_that_can_not_be(tmp_path: Path, command: Cli) -> None:
    gone = command("convert", "mqsim", tmp_path / "gone.xml", "--out", tmp_path / "out")
    assert gone.status == 2 and "gone.xml: no such file or directory" in gone.err
    [path] = files.write(tmp_path, files.config())
    assert "is a file; expected a folder" in command("convert", "mqsim", path, "--out", path).err
    assert (
        "--blocks-per-plane: found 201"
        in command("convert", "mqsim", path, "--blocks-per-plane", "201").err
    )


def test_an_unknown_element_is_named_and_what_it_may_mean(tmp_path: Path) -> None:
    extra = "stray <Sed>1</Sed><Data_Cache_DRAM_Data_Burst_Size>4</Data_Cache_DRAM_Data_Burst_Size>"
    found = mqsim.convert(*files.write(tmp_path, files.config(extra=extra)))
    said = [str(note) for note in found.notes if note.fate == "not known"]
    assert len(said) == 3
    assert (
        said.pop(0)
        == "'stray': not known: text between the elements of <Device_Parameter_Set> in ssd.xml"
    )
    assert said[0].startswith("Sed: not known: line ") and said[0].endswith("did you mean Seed?")
    assert said[1].endswith("did you mean Data_Cache_DRAM_Data_Busrt_Size?")


@pytest.mark.parametrize("seed", range(4))
def test_damaged_files_are_converted_or_refused(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    whole = [files.config(), files.scenarios({}, {"File_Path": "requests.trace"})]
    outcomes = set()
    for _ in range(60):
        texts = list(whole)
        at = draw.randrange(2)
        for _ in range(draw.randint(1, 3)):
            texts[at] = _damaged(texts[at], draw)
        try:
            found = mqsim.convert(*files.write(tmp_path, *texts), out=tmp_path)
        except FlashwrightError as refused:
            outcomes.add("refused" if 0 < len(str(refused)) < 2000 else f"refused with {refused}")
        else:
            assert found.runs and found.script
            outcomes.add("converted")
    assert outcomes == {"refused", "converted"}


def _damaged(text: str, draw: random.Random) -> str:
    """A file with a piece of it lost, doubled, moved or replaced."""
    start = draw.randrange(len(text))
    end = min(len(text), start + draw.choice([1, 1, 2, 5, 30]))
    piece = text[start:end]
    lines = text.splitlines(keepends=True)
    kind = draw.randrange(5)
    if kind == 0:
        return text[:start] + text[end:]
    if kind == 1:
        return text[:end] + piece + text[end:]
    if kind == 2:
        return (
            text[:start] + draw.choice(["<", "&", "\x00", "-", "9", "é", "]]>", "1e9"]) + text[end:]
        )
    line = draw.randrange(len(lines))
    if kind == 3:
        del lines[line]
    else:
        lines.insert(draw.randrange(len(lines)), lines[line])
    return "".join(lines)
