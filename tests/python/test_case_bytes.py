"""Figures in bytes follow what the host asked, and write amplification is told by pages and by bytes."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import flashwright
import nbdclient as nbd
from conftest import SMALL, Cli
from flashwright import Ssd, compare, lifetime, workloads
from flashwright.advice.space import advise
from flashwright.serving.control import ask
from flashwright.simulation.results import RunResult
from nbdclient import Nbd

PAGE = 8192
# One plane of 32 blocks of 16 pages of 8 KiB; one stream, so that placement decides nothing.
DRIVE = Ssd.named("default").with_(
    {
        "geometry.channels": 1,
        "geometry.dies-per-channel": 1,
        "geometry.blocks-per-plane": 32,
        "geometry.pages-per-block": 16,
        "geometry.page-size": "8 KiB",
        "capacity.utilization": 0.8,
        "placement.policy": "single",
        "timing.model": "none",
    }
)
SETTINGS = (
    "--set", "geometry.channels=1", "--set", "geometry.dies-per-channel=1", "--set", "geometry.blocks-per-plane=32",
    "--set", "geometry.pages-per-block=16", "--set", "geometry.page-size=8KiB", "--set", "capacity.utilization=0.8",
    "--set", "placement.policy=single", "--set", "timing.model=none",
)  # fmt: skip


def asked(run: dict[str, Any]) -> int:
    """Bytes that the host wrote: the fill in whole pages, then the requests."""
    filled: int = run["precondition"]["pages_written"] * PAGE
    return filled + int(run["requests"]["bytes_written"])


def life(command: Cli, how: str, size: str, *more: object) -> dict[str, Any]:
    return command(
        "lifetime", how, "default", *SETTINGS, "--cycles", 30, "--precondition", "random",
        "--workload", f"uniform:write=1,size={size}", "--json", "-", *more,
    ).json  # fmt: skip


def test_a_life_counts_the_bytes_of_requests(command: Cli) -> None:
    """The case of 512 B on pages of 8 KiB, on a smaller drive: 1/16 of the workload's part, not the same life."""
    lives = {
        size: life(command, "simulate", size, "--write-rate", "1GB/day") for size in ("512", "8KiB")
    }
    for found in lives.values():
        run = found["run"]
        assert found["host_bytes"] == asked(run) == run["wear"]["host_bytes_written"]
        assert found["drive_writes"] == pytest.approx(
            found["host_bytes"] / run["drive"]["logical_bytes"]
        )
        assert found["years"] == pytest.approx(found["host_bytes"] / 1e9 / 365.25)
    small, whole = (found["run"]["requests"]["bytes_written"] for found in lives.values())
    assert whole / small == pytest.approx(16, rel=0.05)
    # The flash is used as well by either, which is what its efficiency tells.
    ratio = lives["512"]["endurance_efficiency"] / lives["8KiB"]["endurance_efficiency"]
    assert ratio == pytest.approx(1, rel=0.05)


def test_a_forecast_counts_them_too(command: Cli) -> None:
    made = {
        size: life(command, "forecast", size, "--against-full", "--write-rate", "1dwpd")
        for size in ("512", "8KiB")
    }
    for found in made.values():
        assert found["host_bytes"] == found["forecast"]["host_bytes"]
        assert found["full"]["host_bytes"] == pytest.approx(found["host_bytes"], rel=0.1)
        assert abs(found["error"]) < 0.1
        assert found["years"] == pytest.approx(found["drive_writes"] / 365.25)
    filled = made["512"]["run"]["precondition"]["pages_written"] * PAGE
    small, whole = (found["host_bytes"] - filled for found in made.values())
    assert whole / small == pytest.approx(16, rel=0.1)


def test_the_life_of_advice_counts_them_too() -> None:
    """4 KiB on pages of 8 KiB last for half as many bytes."""
    lives = [
        advise(
            DRIVE,
            f"uniform:write=1,size={size}",
            utilizations=[0.7],
            cycles=100,
            write_rate=1e6,
            requests=20_000,
        ).points[0]
        for size in ("4KiB", "8KiB")
    ]
    small, whole = lives
    assert small.life_bytes is not None and whole.life_bytes is not None
    assert small.life_bytes / whole.life_bytes == pytest.approx(0.5, rel=0.08)
    assert small.life_years == pytest.approx(small.life_bytes / 1e6 / lifetime.YEAR_S)
    by_pages, by_bytes = (small.value(f"write-amplification{unit}") or 0 for unit in ("", "-bytes"))
    assert by_bytes == pytest.approx(2 * by_pages)


def test_a_mix_of_sizes_and_misaligned_requests(tmp_path: Path) -> None:
    """As of a database on pages larger than its own: 8 KiB from the middle of a page touch two."""
    path = tmp_path / "mix.spc"
    sizes = (512, 4096, 8192, 24576)
    path.write_text(
        "".join(
            f"0,{(at * 797) % 6000 + at % 3},{sizes[at % 4]},w,{at * 1e-3:.6f}\n"
            for at in range(2000)
        )
    )
    run = DRIVE.precondition("sequential").play(workloads.trace(str(path), addresses="wrap"))
    written = sum(sizes[at % 4] for at in range(2000))
    assert run.json["requests"]["bytes_written"] == written
    drive, pages_written = run.json["drive"], run.json["host"]["pages_written"]
    assert drive is not None and pages_written is not None
    assert run.json["wear"]["host_bytes_written"] == written + drive["logical_bytes"]
    assert lifetime_of(run) == asked(dict(run.json))
    ratio = pages_written * PAGE / written
    assert ratio > 1.3
    assert by_bytes(run) == pytest.approx(by_pages(run) * ratio)


def lifetime_of(run: RunResult) -> float:
    worn = run.json["config"]["wear"]["pe-cycles-max"]
    assert worn == 0, "a run without a limit of erases has written as much"
    return flashwright.Endurance.of(run).host_bytes


def by_pages(run: RunResult) -> float:
    assert run.write_amplification is not None
    return run.write_amplification


def by_bytes(run: RunResult) -> float:
    assert run.write_amplification_bytes is not None
    return run.write_amplification_bytes


@pytest.mark.parametrize("precondition", ["empty", "sequential"])
def test_small_writes_amplify_by_bytes(command: Cli, precondition: str) -> None:
    """16 on an empty drive, and 16 times as much as by pages on a full one."""
    arguments = (
        "simulate", "default", *SETTINGS, "--workload", "uniform:write=1,size=512", "--requests", 400,
        "--precondition", precondition,
    )  # fmt: skip
    found = command(*arguments, "--json", "-").json
    programs = found["flash"]["programs"]["total"]
    assert found["write_amplification"] == programs / 400
    assert found["write_amplification_bytes"] == programs * PAGE / (400 * 512)
    assert found["write_amplification_bytes"] == 16 * found["write_amplification"]
    if precondition == "empty":
        assert found["write_amplification_bytes"] == 16
    codes = [each["code"] for each in found["warnings"]]
    assert "parts-of-pages" in codes
    shown = command(*arguments).out
    assert f"{found['write_amplification']:.3f} by pages" in shown
    assert f"by bytes             {found['write_amplification_bytes']:.3f}" in shown
    assert "writes bring 512 B for each page of 8 KiB that they touch" in " ".join(shown.split())


def test_whole_pages_have_one_amplification(command: Cli) -> None:
    run = DRIVE.play("uniform:write=1,size=16KiB", requests=300)
    assert by_pages(run) == by_bytes(run)
    assert "parts-of-pages" not in [each.code for each in run.warnings]
    assert "by bytes" not in repr(run)
    shown = command(
        "simulate",
        "default",
        *SETTINGS,
        "--workload",
        "uniform:write=1,size=8KiB",
        "--requests",
        300,
    ).out
    assert "by bytes" not in shown and "by pages" not in shown
    none = DRIVE.play("uniform:write=0,size=512", requests=300)
    assert none.write_amplification_bytes is None and "by bytes" not in repr(none)


@pytest.mark.parametrize(
    "before",
    [
        {"ram.manager": "lru", "ram.size": "64 KiB"},
        {"controller.write-buffer.size": "64 KiB"},
        {"host.scheduler": "deadline"},
    ],
    ids=["ram", "controller", "scheduler"],
)
def test_layers_that_coalesce_change_no_bytes_of_the_host(before: dict[str, object]) -> None:
    ssd = DRIVE.with_({"timing.model": "parallel", **before}).precondition("sequential")
    run = ssd.play("sequential:write=1,size=512", requests=2000, depth=8)
    assert run.json["requests"]["bytes_written"] == 2000 * 512
    assert run.json["wear"]["host_bytes_written"] == asked(dict(run.json))
    programs = run.json["flash"]["programs"]["total"]
    assert programs is not None and by_bytes(run) == programs * PAGE / (2000 * 512)
    if "ram.manager" in before:
        assert by_bytes(run) < 4, "sixteen requests fill a page before it is programmed"


def test_comparisons_have_a_column_only_where_it_says_more(command: Cli) -> None:
    arguments = (
        "compare",
        "default",
        *SETTINGS,
        "--requests",
        300,
        "--vary",
        "gc.victim=greedy,fifo",
    )
    small = command(*arguments, "--workload", "uniform:write=1,size=512", "--seeds", 2).out
    assert "WA(bytes)" in small and "WA(bytes) ± 95 %" in small
    assert "WA(bytes)" not in command(*arguments, "--workload", "uniform:write=1,size=8KiB").out


def test_pages_show_both(tmp_path: Path) -> None:
    runs = compare(
        DRIVE, "uniform:write=1,size=512", {"gc.victim": ["greedy", "fifo"]}, requests=300
    )
    runs.report(tmp_path / "small.html")
    assert "Write amplification by bytes" in (tmp_path / "small.html").read_text(encoding="utf-8")
    row = runs.over_seeds().to_pylist()[0]
    assert row["write_amplification_bytes"] == pytest.approx(16 * row["write_amplification"])


def fetched(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        text: str = answer.read().decode()
        return text


def test_simulate_and_serve_agree_by_name_and_value(tmp_path: Path) -> None:
    """The same requests through a player and over NBD."""
    trace = tmp_path / "served.fwt"
    ssd = Ssd.from_text(SMALL).with_({"placement.policy": "single"}).precondition("sequential")
    with flashwright.serve(ssd, record=trace, metrics="127.0.0.1:0") as served:
        with Nbd(served.uri) as client:
            for at in range(3000):
                size = (512, 1536, 4096)[at % 3]
                client.write(at * 811 % 1600 * 4096, b"x" * size)
        stats = served.stats()
        lines = dict(
            line.rsplit(" ", 1)
            for line in fetched(served.addresses["metrics"]).splitlines()
            if line[0] != "#"
        )
    played = ssd.play(workloads.trace(str(trace)))
    assert served.result is not None
    for name in ("write_amplification", "write_amplification_bytes"):
        value = stats[name]
        assert value > 1
        assert value == played.json[name] == served.result.json[name]
        assert float(lines[f"flashwright_{name}"]) == pytest.approx(value)
    assert by_bytes(played) == pytest.approx(2 * by_pages(played), rel=0.01)
    assert stats["settled"]["verdict"] == played.settled.verdict
    assert stats["settled"]["why"] == played.settled.why
    said = [each["text"] for each in stats["warnings"] if each["code"] == "parts-of-pages"]
    assert said == [each.text for each in played.warnings if each.code == "parts-of-pages"] != []


def test_a_served_drive_tells_its_verdict(tmp_path_factory: pytest.TempPathFactory) -> None:
    """As a run does: nothing written, too little, in a transient, settled."""
    address = f"unix:{tmp_path_factory.mktemp('s') / 'c'}"
    ssd = Ssd.from_text(SMALL).with_({"placement.policy": "single"}).precondition("random")
    with flashwright.serve(ssd, ctl=address, metrics="127.0.0.1:0", watch="127.0.0.1:0") as served:

        def verdict() -> str:
            found: dict[str, Any] = ask(address, "stats")["settled"]
            metrics = fetched(served.addresses["metrics"]).splitlines()
            said = (
                f'flashwright_settled_info{{verdict="{found["verdict"]}",why="{found["why"]}"}} 1'
            )
            assert said in metrics
            assert f"flashwright_settled {int(found['verdict'] == 'settled')}" in metrics
            page = json.loads(fetched(served.addresses["watch"] + "data"))["stats"]["settled"]
            assert page == found and found["mend"] is None
            return str(found["verdict"])

        assert verdict() == "none"
        with Nbd(served.uri) as client:
            client.write(0, bytes(4096))
            assert verdict() == "transient"
            draw, seen = 1, set()
            for _ in range(60):
                for _ in range(250):
                    for _ in range(4):
                        draw = draw * 48271 % 0x7FFFFFFF
                        client.send(nbd.WRITE, draw % 1638 * 4096, 4096, bytes(4096))
                    for _ in range(4):
                        client.reply()
                seen.add(verdict())
                if "settled" in seen:
                    break
        assert "settled" in seen and "transient" in seen
    assert served.result is not None and served.result.settled.verdict == "settled"


@pytest.mark.parametrize("precondition", ["random", "empty"])
def test_a_preconditioned_drive_that_was_trimmed_says_so(precondition: str) -> None:
    """What mkfs does by default, on a drive that somebody filled to measure it."""
    with flashwright.serve(
        Ssd.from_text(SMALL).precondition(precondition),
        metrics="127.0.0.1:0",
        watch="127.0.0.1:0",
    ) as served:
        with Nbd(served.uri) as client:
            client.ask(nbd.TRIM, 0, client.size // 4096 * 4096)
            client.write(0, b"x" * 4096)
        stats = served.stats()
        metrics = fetched(served.addresses["metrics"])
        assert (stats["logical_pages"], stats["logical_pages_with_data"]) == (1638, 1)
        assert 'id="notes"' in fetched(served.addresses["watch"])
    codes = [each["code"] for each in stats["warnings"]]
    assert served.result is not None
    said = [str(each) for each in served.result.warnings if each.code == "trimmed"]
    if precondition == "empty":
        assert "trimmed" not in codes and not said and not served.notes
        return
    assert "trimmed" in codes and 'flashwright_warning_info{code="trimmed",text="trims' in metrics
    assert served.notes == said and len(said) == 1
    assert "100 % of the drive that --precondition random had filled" in said[0]
    assert "mkfs.ext4 -E nodiscard" in said[0] and "mkfs.xfs -K" in said[0]


def test_a_trace_with_trims_says_so_too(tmp_path: Path) -> None:
    """What was served, trims included, and is played again."""
    trace = tmp_path / "served.fwt"
    ssd = Ssd.from_text(SMALL)
    with flashwright.serve(ssd, record=trace) as served, Nbd(served.uri) as client:
        client.ask(nbd.TRIM, 0, 800 * 4096)
        client.write(0, b"x" * 4096)
    played = ssd.precondition("sequential").play(workloads.trace(str(trace)))
    found = next(each for each in played.warnings if each.code == "trimmed")
    assert "49 % of the drive" in found.text and found.mend == "--precondition workload"
    empty = ssd.precondition("empty").play(workloads.trace(str(trace)))
    assert "trimmed" not in [each.code for each in empty.warnings]
