"""Advice for a drive's host: what follows from which finding, what is left unsaid, and the files for a machine."""

from __future__ import annotations

import os
import re
import stat
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

import needs
from conftest import SMALL, Cli
from flashwright import Ssd
from flashwright.advice import short_runs
from flashwright.advice.files import machine_files, write_files
from flashwright.advice.host import host_advice
from flashwright.advice.lines import BlockDevice, HostAdvice, Line
from flashwright.advice.space import advise
from flashwright.drive.profilefile import TargetFacts
from flashwright.errors import ConfigError, OutputError
from flashwright.probing.probes import Finding
from flashwright.simulation.run import RunSettings
from flashwright.twin.profile import Profile
from test_report import embedded

KIB, MIB, GB = 1 << 10, 1 << 20, 10**9
DISK = BlockDevice("/dev/sdb")


def found(parameter: str, value: float | str, unit: str = "B", sure: float = 0.9) -> Finding:
    return Finding(parameter, "found", value, unit, confidence=sure)


def absent(parameter: str) -> Finding:
    return Finding(parameter, "absent", None, "B", confidence=0.8)


# A drive of 64 GB as Kim et al. found it, and what newer probes add.
KNOWN = (
    found("clustered-page", 16 * KIB, sure=0.97),
    found("clustered-block", 4 * MIB, sure=0.7),
    found("read-buffer", 256 * KIB),
    found("write-buffer", 255 * KIB, sure=0.95),
    found("parallel-units", 10, "units"),
    found("mapping", "page", "", 0.85),
    found("spare-space", 1.1, "", 0.8),
)
BEST = {"best_size_bytes": 40 * KIB, "best_depth_requests": 12.0}


def profile(*findings: Finding, without: str = "", capacity: int = 64 * GB) -> Profile:
    """A profile with what is known, changed by some findings."""
    known = {finding.parameter: finding for finding in (*KNOWN, *findings)}
    known.pop(without, None)
    return Profile(TargetFacts("/dev/sdb", "block-device", capacity, 512, True), known)


def about(advice: HostAdvice, topic: str) -> Line:
    lines = [line for line in advice.lines if line.topic == topic]
    assert len(lines) == 1
    return lines[0]


def test_each_line_names_what_it_rests_on() -> None:
    advice = host_advice(profile())
    assert advice.device == DISK
    for line in advice.lines:
        for name in line.rests_on:
            assert name in advice.profile.findings
        if line.rests_on and line.given:
            sure = [advice.profile.findings[name].confidence for name in line.rests_on]
            assert line.confidence == min(sure)
        if not line.rests_on and line.given:
            assert "as a rule of thumb" in line.text and line.confidence is None
    assert {line.topic: line.confidence for line in advice.lines if line.given} == {
        "alignment": 0.97,
        "request size": None,
        "largest write": 0.95,
        "queue depth": 0.9,
        "flashwright scheduler": 0.9,
        "linux scheduler": 0.97,
        "max_sectors_kb": 0.95,
        "read_ahead_kb": 0.9,
        "spare space": 0.8,
        "partition": 0.7,
        "ext4": 0.7,
        "xfs": 0.7,
        "discard": 0.85,
    }


@pytest.mark.parametrize("parameter", [finding.parameter for finding in KNOWN])
def test_what_is_unknown_gives_a_sentence_and_no_advice(parameter: str) -> None:
    blind = Finding(parameter, "unknown", why="two sizes fit alike")
    advice = host_advice(profile(blind))
    assert not any(line.given and parameter in line.rests_on for line in advice.lines)
    notes = [line for line in advice.lines if not line.given and parameter in line.rests_on]
    if parameter not in ("parallel-units", "clustered-block"):
        assert notes and all(
            f"{parameter} is unknown (two sizes fit alike)" in t.text for t in notes
        )
        left_out = host_advice(profile(without=parameter))
        assert any(f"{parameter} was not looked for" in line.text for line in left_out.lines)


def test_nothing_known_is_nothing_advised() -> None:
    facts = TargetFacts("a file", "file", 64 * GB)
    advice = host_advice(Profile(facts), device=DISK)
    assert [line.topic for line in advice.lines if line.given] == ["request size", "queue depth"]
    assert all("as a rule of thumb" in line.text for line in advice.lines if line.given)
    assert (advice.queue, advice.mkfs, advice.partition, advice.scheduler) == ({}, {}, None, None)
    assert machine_files(advice) == {}
    with pytest.raises(ConfigError, match="found no advice for a file"):
        write_files(advice, Path("nowhere"))


def test_sizes_and_depth_that_were_measured_stand_before_the_rule_of_thumb() -> None:
    measured = replace(found("parallel-units", 10, "units", 0.6), figures=BEST)
    advice = host_advice(profile(measured))
    assert about(advice, "request size").text.startswith(
        "48 KiB, 40 KiB rounded up to whole clustered pages: the size"
    )
    assert about(advice, "request size").rests_on == ("parallel-units", "clustered-page")
    assert about(advice, "queue depth").text.startswith("12, for requests of 40 KiB: ")
    assert advice.queue["nr_requests"] == "24" and advice.depth == 12
    thumb = host_advice(profile(found("clustered-page", 24 * KIB), without="clustered-block"))
    assert about(thumb, "request size").text.startswith("72 KiB, 64 KiB rounded up")


def test_the_queue_is_set_to_what_the_drive_takes() -> None:
    assert host_advice(profile()).queue == {
        "scheduler": "mq-deadline",
        # 255 KiB hold 15 pages of 16 KiB.
        "max_sectors_kb": "240",
        "read_ahead_kb": "256",
    }
    fine = host_advice(profile(found("clustered-page", 4 * KIB), found("write-buffer", 8 * MIB)))
    assert fine.queue == {"scheduler": "none", "read_ahead_kb": "256"}
    assert "Linux cuts requests at 1.25 MiB" in about(fine, "max_sectors_kb").text
    # Pages of 2.5 KiB: the kernel takes whole KiB, and pages of memory for reads ahead.
    odd = host_advice(
        profile(found("clustered-page", 2560), found("clustered-block", 2560 * 1024))
    ).queue
    assert odd == {"scheduler": "none", "max_sectors_kb": "255", "read_ahead_kb": "240"}
    bare = host_advice(profile(absent("write-buffer"), absent("read-buffer"))).queue
    assert bare == {"scheduler": "mq-deadline"}
    tiny = host_advice(profile(found("write-buffer", 2 * KIB), found("read-buffer", 2 * KIB))).queue
    assert tiny["max_sectors_kb"] == "16" and tiny["read_ahead_kb"] == "4"


@pytest.mark.parametrize(
    ("change", "scheduler"),
    [
        (found("clustered-page", 16 * KIB), "pasa+pai"),
        (absent("read-buffer"), "pasa+pai"),
        (Finding("read-buffer", "unknown"), "pai"),
        (Finding("clustered-page", "unknown"), "pas"),
    ],
)
def test_the_scheduler_that_is_advised_runs(command: Cli, change: Finding, scheduler: str) -> None:
    line = about(host_advice(profile(change)), "flashwright scheduler")
    assert line.text.startswith(f"{scheduler}: ")
    # As a shell would split it; the drive and the trace are ours.
    words = re.findall(r"--set (?:'([^']*)'|(\S+))", line.commands[0])
    settings = [word for pair in words for word in pair if word]
    assert len(settings) == 5
    options = [part for setting in settings for part in ("--set", setting)]
    said = command(
        "replay", "sim:default", "--workload", "uniform", "--requests", 200, *options, "--json", "-"
    )
    assert said.status == 0, said.err
    assert "+".join(layer["scheduler"] for layer in said.json["host_layers"]) == scheduler


def test_space_to_reserve_follows_theory_where_nothing_was_played() -> None:
    # At 0.7213 of the flash, uniform writes cost 2; the flash is 1.1 times as large as the drive.
    advice = host_advice(profile())
    line = about(advice, "spare space")
    assert "leave 20.7 % of it unused" in line.text
    assert line.commands == ("blkdiscard /dev/sdb",)
    assert advice.partition is not None
    assert advice.partition.reserved_bytes / (64 * GB) == pytest.approx(0.2066, abs=2e-4)
    roomy = host_advice(profile(found("spare-space", 40 * GB)))
    assert about(roomy, "spare space").text.startswith("nothing more to reserve: ")
    hybrid = host_advice(profile(found("mapping", "log-block", "")))
    assert about(hybrid, "spare space").text.startswith("nothing more: a log-block map")


def test_space_to_reserve_follows_runs_on_the_twin() -> None:
    twin = Ssd.from_text(SMALL, "twin").with_({"timing.model": "none"})
    capacity = 6709248
    known = replace(
        profile(capacity=capacity, without="clustered-block"),
        twin=twin,
        target=TargetFacts("/dev/sdb", "block-device", capacity),
    )

    def spare(*targets: str) -> Line:
        runs = advise(
            twin,
            "uniform:write=1",
            utilizations=[0.5, 0.6, 0.7, 0.8],
            targets=targets,
            settings=RunSettings(requests=5000),
        )
        return about(host_advice(known, runs), "spare space")

    met = spare("write-amplification<=1.6")
    share = float(re.findall(r"leave (\S+) %", met.text)[0]) / 100
    used = float(re.findall(r"utilization=([0-9.]+)", met.text)[0])
    assert used < 0.8 and share == pytest.approx(1 - used / 0.8, abs=1e-3)
    assert met.rests_on == ("twin",) and "least that meets write-amplification<=1.6" in met.text
    unmet = spare("write-amplification<=0.5")
    assert not unmet.given and "no reservation meets write-amplification<=0.5" in unmet.text


@pytest.mark.parametrize(
    ("page", "block", "capacity"),
    [
        (16 * KIB, 4 * MIB, 64 * GB),
        (3 * KIB, 3 * KIB * 96, 2 * GB),
        (160 * KIB, 20 * MIB, GB),
        (64 * KIB, MIB // 2, 1024 * MIB),
    ],
)
def test_partitions_begin_and_end_at_whole_blocks(page: int, block: int, capacity: int) -> None:
    # Nothing is reserved but room for the table's copy.
    sizes = (found("clustered-page", page), found("clustered-block", block))
    advice = host_advice(profile(*sizes, found("mapping", "log-block", ""), capacity=capacity))
    cut = advice.partition
    assert cut is not None
    for edge in (cut.start_bytes, cut.end_bytes):
        assert edge % block == 0 and edge % 4096 == 0
    assert cut.start_bytes >= MIB and cut.end_bytes + MIB <= capacity
    sgdisk, parted = about(advice, "partition").commands
    first, last = map(int, re.findall(r"--new=1:(\d+):(\d+) /dev/sdb$", sgdisk)[0])
    assert (first * 512, (last + 1) * 512) == (cut.start_bytes, cut.end_bytes)
    assert parted.endswith(f" {cut.start_bytes}B {cut.end_bytes - 1}B")


def test_drives_of_4_kib_blocks_are_partitioned_in_those() -> None:
    large = replace(profile(), target=TargetFacts("/dev/sdb", "block-device", 64 * GB, 4096, True))
    advice = host_advice(large)
    assert advice.partition is not None
    first = advice.partition.start_bytes // 4096
    assert f"--new=1:{first}:" in about(advice, "partition").commands[0]
    small = host_advice(profile(found("clustered-block", 64 * MIB), capacity=100 * MIB))
    assert small.partition is None and "no room" in about(small, "partition").text


@pytest.mark.parametrize(
    ("page", "block", "ext4", "xfs", "text"),
    [
        (16 * KIB, 4 * MIB, "stride=4,stripe-width=1024", "su=16384,sw=256", ""),
        # Three blocks of 4 KiB are two pages of 6 KiB.
        (6 * KIB, 384 * KIB, "stride=3,stripe-width=96", "su=12288,sw=32", "so it is 12 KiB"),
        (6 * KIB, 18 * KIB, "stride=3,stripe-width=9", "su=12288,sw=3", "rounded up to 36 KiB"),
        (2 * KIB, 256 * KIB, "stride=1,stripe-width=64", "su=4096,sw=64", "so it is 4 KiB"),
        (64 * KIB, 256 * MIB, "stride=16", "su=65536,sw=4096", "ext4 goes by none above 128 MiB"),
    ],
)
def test_file_systems_are_laid_out_in_whole_pages(
    page: int, block: int, ext4: str, xfs: str, text: str
) -> None:
    advice = host_advice(profile(found("clustered-page", page), found("clustered-block", block)))
    assert advice.mkfs == {"mkfs.ext4": f"-b 4096 -E {ext4}", "mkfs.xfs": f"-d {xfs}"}
    assert text in about(advice, "ext4").text
    assert about(advice, "ext4").commands == (f"mkfs.ext4 -b 4096 -E {ext4} /dev/sdb1",)


def test_the_stripe_is_preferred_to_the_block() -> None:
    advice = host_advice(profile(found("stripe", 160 * KIB)))
    assert advice.mkfs["mkfs.ext4"].endswith("stride=4,stripe-width=40")
    alone = host_advice(profile(without="clustered-block"))
    assert alone.mkfs["mkfs.xfs"] == "-d su=16384,sw=1"
    assert "neither stripe nor clustered block" in about(alone, "xfs").text
    assert "the clustered block is not known" in about(alone, "partition").text


def test_mkfs_takes_the_options(tmp_path: Path) -> None:
    mkfs, dumpe2fs = needs.need("mkfs.ext4"), needs.need("dumpe2fs")
    image = tmp_path / "fs.img"
    advice = host_advice(profile(found("clustered-page", 6 * KIB), found("stripe", 18 * KIB)))
    with image.open("wb") as file:
        file.truncate(64 * MIB)
    words = about(advice, "ext4").commands[0].split()
    done = subprocess.run(
        [mkfs, *words[1:-1], "-F", str(image)],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert "arning" not in done.stderr
    shown = subprocess.run(
        [dumpe2fs, "-h", str(image)], capture_output=True, text=True, timeout=30, check=True
    ).stdout
    assert re.search(r"RAID stride:\s+3\n", shown) and re.search(r"stripe width:\s+9\n", shown)


def test_discards_go_by_the_map() -> None:
    assert about(host_advice(profile()), "discard").commands == ("fstrim --verbose MOUNTPOINT",)
    hybrid = host_advice(profile(found("mapping", "log-block", "")))
    assert about(hybrid, "discard").commands == ("fstrim --verbose --minimum 4194304 MOUNTPOINT",)


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """What the kernel shows of a disk, as plain files."""
    queue = tmp_path / "sys" / "block" / "sdb" / "queue"
    queue.mkdir(parents=True)
    for name in ("scheduler", "nr_requests", "max_sectors_kb", "read_ahead_kb"):
        (queue / name).write_text("1\n")
    return queue


MEASURED = replace(found("parallel-units", 10, "units"), figures=BEST)


def apply(script: Path, machine: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    system = machine.parents[2]
    return subprocess.run(
        ["sh", str(script), *arguments],
        env={**os.environ, "FLASHWRIGHT_SYS": str(system)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def test_the_script_sets_the_queue_and_reads_it_back(tmp_path: Path, machine: Path) -> None:
    folder = tmp_path / "made" / "for sdb"
    write_files(host_advice(profile(MEASURED)), folder)
    script = folder / "apply.sh"
    assert script.stat().st_mode & stat.S_IXUSR
    done = apply(script, machine)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "scheduler: asked mq-deadline, got mq-deadline",
        "max_sectors_kb: asked 240, got 240",
        "nr_requests: asked 24, got 24",
        "read_ahead_kb: asked 256, got 256",
    ]
    assert (machine / "nr_requests").read_text() == "24\n"
    # The kernel keeps its own value in silence.
    (machine / "max_sectors_kb").unlink()
    (machine / "max_sectors_kb").symlink_to("/dev/null")
    clamped = apply(script, machine)
    assert clamped.returncode == 1
    assert "max_sectors_kb: asked 240, got \n" in clamped.stdout
    assert "nr_requests: asked 24, got 24\n" in clamped.stdout
    # It refuses, or has no such setting.
    (machine / "nr_requests").unlink()
    (machine / "nr_requests").mkdir()
    refused = apply(script, machine)
    assert refused.returncode == 1
    assert "nr_requests: asked 24, got nothing (refused)\n" in refused.stdout
    missing = apply(script, machine, "sdb1")
    assert missing.returncode == 2 and "expected the name of a whole disk" in missing.stderr


def test_the_script_reads_the_scheduler_as_the_kernel_shows_it(
    tmp_path: Path, machine: Path
) -> None:
    write_files(host_advice(profile()), tmp_path)
    text = (tmp_path / "apply.sh").read_text()
    # A kernel does not keep what is written, it shows all schedulers with one in brackets.
    shows = text.replace('cat "$file"', f'cat "{tmp_path}/shown"')
    assert shows != text
    (tmp_path / "apply.sh").write_text(shows)
    for shown in ("none [mq-deadline] kyber", "[none] mq-deadline"):
        (tmp_path / "shown").write_text(shown + "\n")
        done = apply(tmp_path / "apply.sh", machine)
        inner = shown[shown.index("[") + 1 : shown.index("]")]
        assert done.stdout.startswith(f"scheduler: asked mq-deadline, got {inner}\n")


def test_files_are_sound(tmp_path: Path) -> None:
    paths = write_files(host_advice(profile(MEASURED)), tmp_path)
    assert [path.name for path in paths] == [
        "60-flashwright-sdb.rules",
        "apply.sh",
        "layout.sh",
        "measure.fio",
        "measure-destroys-data.fio",
    ]
    for path in paths:
        if path.suffix == ".sh":
            subprocess.run(["sh", "-n", str(path)], timeout=30, check=True)
    rules = paths[0].read_text().splitlines()[-1]
    assert 'KERNEL=="sdb", ATTR{queue/scheduler}="mq-deadline", ATTR{queue/max' in rules
    reads, writes = (path.read_text() for path in paths[3:])
    assert "rw=randread" in reads and "write" not in reads.replace("allow_mounted_write=0", "")
    assert "rw=randwrite" in writes and "OVERWRITES" in writes
    assert "blockalign=16384\niodepth=1\noffset=8192" in reads
    assert "[best-reads]\nstonewall\nbs=40960\niodepth=12\n" in reads


def test_fio_takes_the_jobs(tmp_path: Path) -> None:
    fio = needs.need("fio")
    jobs = [
        path
        for path in write_files(host_advice(profile(MEASURED)), tmp_path)
        if path.suffix == ".fio"
    ]
    assert len(jobs) == 2
    for path in jobs:
        subprocess.run([fio, "--parse-only", str(path)], timeout=30, check=True)


def test_the_layout_is_printed_and_nothing_run(tmp_path: Path) -> None:
    write_files(host_advice(profile()), tmp_path)
    script = tmp_path / "layout.sh"
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("sgdisk", "parted", "mkfs.ext4", "mkfs.xfs", "blkdiscard", "fstrim"):
        (tools / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
        (tools / name).chmod(0o755)
    done = subprocess.run(
        ["sh", str(script), "/dev/nvme3n1"],
        env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert not (tmp_path / "ran").exists()
    lines = done.stdout.splitlines()
    assert "mkfs.ext4 -b 4096 -E stride=4,stripe-width=1024 /dev/nvme3n1p1" in lines
    assert "blkdiscard /dev/nvme3n1" in lines
    assert not [line for line in lines if "sdb" in line]
    plain = subprocess.run(
        ["sh", str(script)], capture_output=True, text=True, timeout=30, check=True
    )
    assert "mkfs.xfs -d su=16384,sw=256 /dev/sdb1\n" in plain.stdout


def test_names_from_outside_stay_text(tmp_path: Path) -> None:
    odd = replace(
        profile(),
        target=TargetFacts("a\n$(touch ran); `touch ran`", "file", 64 * GB),
        made_by='x\nreboot "now"',
        declared={"model": 'Nasty "Drive", RUN+="reboot"  ', "serial": "S1"},
    )
    files = machine_files(host_advice(odd, device=BlockDevice("/dev/nvme0n1")))
    for name, text in files.items():
        assert "touch ran" not in re.sub(r"(?m)^#.*$", "", text), name
        assert not re.search(r"(?m)^reboot", text)
    rule = files["60-flashwright-nvme0n1.rules"].splitlines()[-1]
    assert 'ATTRS{model}=="Nasty ?Drive?? RUN???reboot?*", ATTRS{serial}=="S1*", ATTR{' in rule


@pytest.mark.parametrize(
    "text", ["sdb", "/dev/", "/dev/sd b", "/dev/../etc", "/dev/sdb;reboot", ""]
)
def test_what_is_no_disk_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^device: found"):
        BlockDevice.parse(text)


def test_a_link_stands_for_its_disk(tmp_path: Path) -> None:
    (tmp_path / "by-id").symlink_to("/dev/sdz")
    assert BlockDevice.parse(str(tmp_path / "by-id")).kernel_name == "sdz"


def test_files_that_are_there_are_kept_unless_forced(tmp_path: Path) -> None:
    advice = host_advice(profile())
    (tmp_path / "apply.sh").write_text("mine")
    with pytest.raises(OutputError, match=r"apply\.sh: found a file there, expected none"):
        write_files(advice, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["apply.sh"]
    write_files(advice, tmp_path, force=True)
    assert (tmp_path / "apply.sh").read_text().startswith("#!/bin/sh\n")
    with pytest.raises(OutputError, match="can't be created"):
        write_files(advice, tmp_path / "apply.sh" / "below")


# The command.


@pytest.fixture
def probed(tmp_path: Path) -> Path:
    """A profile with a twin, as a file."""
    path = tmp_path / "probed.toml"
    known = profile(found("clustered-block", 256 * KIB), capacity=6709248)
    replace(known, twin=Ssd.from_text(SMALL, "twin")).save(path)
    return path


def test_a_profile_alone_gives_advice_for_the_host(command: Cli, probed: Path) -> None:
    report = probed.with_name("advice.html")
    said = command("advise", "host", probed, "--json", "-", "--report", report)
    assert (said.status, said.err) == (0, "")
    assert said.json["points"] == [] and said.json["workload"] is None
    hosted = said.json["host_advice"]
    assert hosted == host_advice(Profile.from_toml(probed)).document()
    page = report.read_text(encoding="utf-8")
    assert embedded(page, "results") == said.json
    assert "Advice for the host: /dev/sdb" in page and "mkfs.ext4 -b 4096" in page
    shown = command("advise", "host", probed).out
    assert "begin and end requests at multiples of 16 KiB" in shown
    assert "  mkfs.ext4 -b 4096 -E stride=4,stripe-width=64 /dev/sdb1\n" in shown


def test_with_a_workload_the_twin_is_played_too(command: Cli, probed: Path) -> None:
    load = ("--workload", "uniform", "--requests", 2000, "--utilizations", "0.5,0.6,0.7,0.8")
    report = probed.with_name("advice.html")
    said = command("advise", "space", probed, *load, "--jobs", 1, "--json", "-", "--report", report)
    assert said.status == 0, said.err
    assert [point["utilization"] for point in said.json["points"]] == [0.5, 0.6, 0.7, 0.8]
    by_topic = {line["topic"]: line for line in said.json["host_advice"]["lines"]}
    assert by_topic["spare space"]["rests_on"] == ["twin"]
    page = report.read_text(encoding="utf-8")
    assert "For the host" in page and "advise-wa" in embedded(page, "plots")["charts"]
    alone = command("advise", "space", probed, *load, "--jobs", 1, "--no-host", "--json", "-")
    assert alone.json["host_advice"] is None
    assert alone.json["points"] == said.json["points"]


def test_a_bundled_drive_gives_advice_when_asked(command: Cli, tmp_path: Path) -> None:
    load = ("--workload", "uniform", "--requests", 500, "--utilizations", "0.5,0.7", "--jobs", 1)
    cheap = ("--set", "timing.model=none", "--set", "geometry.blocks-per-plane=64")
    size = ("--set", "host.profile.clustered-page=16 KiB", "--set", "host.profile.read-buffer=none")
    drive = ("advise", "space", "default", *load, *cheap, *size, "--json", "-")
    plain = command(*drive)
    assert plain.status == 0 and plain.json["host_advice"] is None
    files = tmp_path / "files"
    said = command(*drive, "--host", "--block-device", "/dev/sdc", "--write-to", files)
    assert said.status == 0, said.err
    lines = {line["topic"]: line for line in said.json["host_advice"]["lines"]}
    assert lines["alignment"]["given"] and lines["alignment"]["confidence"] is None
    assert not lines["nr_requests"]["given"]
    assert said.json["points"] == plain.json["points"]
    assert f"note: wrote {files / 'apply.sh'}" in said.err
    assert "disk=${1:-sdc}" in (files / "apply.sh").read_text()
    again = command(*drive, "--host", "--block-device", "/dev/sdc", "--write-to", files)
    assert again.status == 2 and again.out == "" and "--force replaces it" in again.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--no-host", "--write-to", "out"), "--write-to: found without advice for a host"),
        (("--no-host", "--block-device", "/dev/sdb"), "--block-device: found without advice"),
        (("--force",), "--force: found without --write-to, expected both"),
        (("--block-device", "sdb"), "--block-device: found 'sdb', expected the name of a disk"),
    ],
)
def test_options_that_would_have_no_effect_are_refused(
    command: Cli, probed: Path, arguments: tuple[str, ...], says: str
) -> None:
    said = command("advise", "space", probed, *arguments)
    assert said.status == 2 and said.err.startswith(f"error: {says}")


def test_advice_for_the_host_of_a_described_drive_plays_nothing(command: Cli) -> None:
    said = command("advise", "host", "ssd-a", "--json", "-")
    assert said.status == 0 and said.json["points"] == [] and said.json["host_advice"]
    assert said.json["config"]["name"] == "ssd-a"
    other = command("advise", "host", "ssd-a", "--set", "geometry.channels=8", "--json", "-")
    assert other.json["config"]["geometry"]["channels"] == 8


def test_settings_of_a_profile_are_refused(command: Cli, probed: Path) -> None:
    said = command("advise", "host", probed, "--set", "geometry.channels=8")
    assert said.status == 2 and said.err.startswith("error: --set: found with a profile")


def test_files_need_the_name_of_a_disk(command: Cli, tmp_path: Path) -> None:
    path = tmp_path / "probed.toml"
    replace(profile(), target=TargetFacts("sim:ssd-a", "simulated", 64 * GB)).save(path)
    said = command("advise", "host", path, "--write-to", tmp_path / "out")
    assert said.status == 2
    assert "found a profile of sim:ssd-a, which is no disk" in said.err
    assert "/dev/DEVICE" in command("advise", "host", path).out
    bare = command("advise", "space", path, "--workload", "uniform")
    assert bare.status == 2 and "found a profile without a twin" in bare.err


def test_queue_depth_is_advised_for_the_sizes_that_are_played() -> None:
    """Large requests reach their peak with few outstanding, small reads with many: the pair of one size is no rule."""
    depths = {
        f"depth_of_{kind}s_of_{size}_bytes": float(depth)
        for size, reads, writes in ((4096, 32, 16), (65536, 16, 4), (262144, 4, 2))
        for kind, depth in (("read", reads), ("write", writes))
    }
    measured = replace(
        found("best-request", 262144),
        figures={"best_size_bytes": 262144, "best_depth_requests": 4} | depths,
    )
    line = about(host_advice(profile(measured)), "queue depth")
    assert line.text.startswith("32: for random reads and writes of 4 KiB, the smallest measured")
    assert "256 KiB reach theirs with 4" in line.text

    def played(spec: str) -> Line:
        twin = Ssd.from_text(SMALL, "twin").with_({"timing.model": "none"})
        runs = advise(twin, spec, utilizations=[0.5], settings=RunSettings(requests=5000))
        return about(host_advice(profile(measured), runs), "queue depth")

    assert played("uniform:write=0.5,size=4KiB").text.startswith(
        "32: for reads and writes of 4 KiB"
    )
    assert played("uniform:write=1,size=4KiB").text.startswith("16: for writes of 4 KiB, as played")
    assert played("uniform:write=1,size=64KiB").text.startswith("4: for writes of 64 KiB")


def test_which_requests_suit_a_large_drive_is_asked_of_fewer_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(short_runs, "_SIZES_KIB", (4,))
    ssd = Ssd.named("default").with_({"capacity.logical": "3 GiB"})
    of_all_blocks = short_runs.best_request(ssd)
    monkeypatch.setattr(short_runs, "_PAGES_PLAYED", 1 << 16)
    fewer = short_runs._with_fewer_blocks(ssd)
    assert fewer.config["geometry"]["blocks-per-plane"] == 256
    assert fewer.config["capacity"]["logical"] == "768 MiB"
    of_fewer = short_runs.best_request(ssd)
    assert of_fewer.figures == of_all_blocks.figures
    # What maps, logs and caches of one bit a cell are to the drive would change with it.
    schemes = [ssd.with_({"ftl.scheme": scheme}) for scheme in ("dftl", "fast")]
    for other in (*schemes, Ssd.named("consumer-tlc")):
        assert short_runs._with_fewer_blocks(other) is other
