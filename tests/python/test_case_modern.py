"""Drives of today, words that people use, drives larger than memory: cases that once went wrong, and their sisters."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import Cli
from flashwright.advice.host import host_advice, profile_of_model
from flashwright.advice.space import Target as Wanted
from flashwright.advice.space import advise
from flashwright.drive.findings import Finding
from flashwright.endurance import lifetime
from flashwright.errors import ConfigError
from flashwright.probing.probes.flush import Flush
from flashwright.simulation.run import RunSettings
from flashwright.simulation.ssd import Ssd
from flashwright.support.core import _core
from flashwright.target.question import Context
from flashwright.target.target import Target
from flashwright.traces import workloads
from flashwright.twin.profile import Profile
from othermakes import FLUSH, MIB, WRITE, Model

# What people write for 16 TiB of pages of 4 KiB.
LARGE = (
    "geometry.channels=16", "geometry.dies-per-channel=16", "geometry.planes-per-die=4",
    "geometry.blocks-per-plane=4095", "geometry.pages-per-block=1023",
)  # fmt: skip
# Threads reserve address space, which is limited there.
FEW_THREADS = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
# Bundled drives that can't do without times: what a die takes next depends on them.
TIMED = ("enterprise-tlc", "consumer-tlc", "qlc-coarse", "dram-less")


def few_blocks(name: str) -> Ssd:
    """A drive with some of its blocks, and its cached map in proportion."""
    ssd = Ssd.named(name)
    fewer: dict[str, object] = {
        "geometry.blocks-per-plane": max(48, ssd.config["geometry"]["blocks-per-plane"] // 4),
        "capacity.utilization": 0.8,
    }
    if ssd.config["ftl"]["scheme"] == "dftl":
        fewer["ftl.dftl.cmt-entries"] = 30_000
    return ssd.with_(fewer)


# Workload words ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "theta"),
    [("zipf:theta=0.99,write=1", 0.99), ("zipf:1.2,write=1", 1.2), ("zipf:1", 1.0)],
)
def test_an_exponent_is_that_of_ycsb_and_fio(command: Cli, spec: str, theta: float) -> None:
    said = command(
        "simulate", "default", "--set", "geometry.blocks-per-plane=32", "--workload", spec,
        "--requests", 20_000, "--json", "-",
    )  # fmt: skip
    assert said.status == 0, said.err
    pages = said.json["drive"]["logical_pages"]
    k = np.arange(1, pages + 1, dtype=float) ** -theta
    share = k[: round(pages / 5)].sum() / k.sum()
    (note,) = [note for note in said.json["workload_notes"] if note.startswith("Zipf")]
    assert f"exponent {theta:.4f} over {pages} places of 4 KiB" in note
    assert f"get {share * 100:.1f} % of the accesses" in note


def test_shares_and_exponent_say_the_same_of_each_other(command: Cli) -> None:
    run = (
        "simulate",
        "default",
        "--set",
        "geometry.blocks-per-plane=32",
        "--requests",
        1000,
        "--json",
        "-",
    )
    (note,) = command(*run, "--workload", "zipf:accesses=0.8").json["workload_notes"]
    exponent = note.split()[3]
    (back,) = command(*run, "--workload", f"zipf:{exponent},chunk=256KiB").json["workload_notes"]
    assert back == note and "80.0 % of the accesses" in note and "chunks of 256 KiB" in note
    (pareto,) = command(*run, "--workload", "pareto:h=0.2").json["workload_notes"]
    assert "80.0 % of the accesses" in pareto


def test_two_ways_at_once_are_refused(command: Cli) -> None:
    said = command("simulate", "--workload", "zipf:theta=1.2,accesses=0.9")
    assert said.status == 2 and said.err.count("error:") == 1
    assert "theta=1.2 and accesses=0.9 together, expected one of the two" in said.err
    assert "did you mean theta?" in command("simulate", "--workload", "zipf:tetha=1.2").err


@pytest.mark.parametrize(
    ("text", "metric", "limit"),
    [
        ("WA<=2", "write-amplification", 2.0),
        ("waf <= 2", "write-amplification", 2.0),
        ("write amplification <= 2", "write-amplification", 2.0),
        ("WAF≤2.5", "write-amplification", 2.5),
        ("P99<=500µs", "p99", 500e3),
        ("p99 <= 1 msec", "p99", 1e6),
        ("IOPS>=10,000", "iops", 10_000.0),
        ("bandwidth>=1GB/s", "throughput", 1e9),
        ("life>=60 months", "life", 5.0),
        ("lifetime >= 1dwpd,5y", "life", 5.0),
        ("life>=1 DWPD for 5 years", "life", 5.0),
    ],
)
def test_targets_are_read_as_people_write_them(text: str, metric: str, limit: float) -> None:
    found = Wanted.parse(text)
    assert found.metric == metric
    assert found.limit == pytest.approx(limit)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("write-amplificatoin<=2", "did you mean write-amplification?"),
        ("WA>=2", "expected write-amplification<=LIMIT"),
        ("life>=soon", "such as life>=5y or life>=1dwpd,5y"),
        ("WA<=", "expected FIGURE<=LIMIT"),
    ],
)
def test_a_target_that_is_none_names_the_nearest(text: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Wanted.parse(text)
    assert says in f"{caught.value} {caught.value.hint}"


def test_shares_may_be_in_percent_wherever_they_are_taken(command: Cli) -> None:
    plain = command(
        "simulate",
        "--set",
        "capacity.utilization=0.87",
        "--requests",
        100,
        "--workload",
        "uniform",
        "--json",
        "-",
    )
    percent = command(
        "simulate",
        "--set",
        "capacity.utilization=87%",
        "--requests",
        100,
        "--workload",
        "uniform",
        "--json",
        "-",
    )
    assert plain.json["digest"] == percent.json["digest"]
    assert lifetime.parse_share("87%") == 0.87
    formula = command(
        "lifetime",
        "formula",
        "--capacity",
        "1TB",
        "--cycles",
        3000,
        "--used",
        "50%,0.5",
        "--json",
        "-",
    )
    first, second = formula.json["rows"]
    assert first == second
    assert command("advise", "space", "default", "--utilizations", "much").err.count("error:") == 1


def test_ratings_are_read_alike_everywhere() -> None:
    assert lifetime.parse_rating("1dwpd,5y", 864e9) == (1e7, 5.0)
    assert lifetime.parse_rating("20MB/s") == (20e6, None)
    assert lifetime.parse_endurance("600 TBW", None) == 600e12
    assert lifetime.parse_endurance("1 DWPD for 5 years", 1e12) == pytest.approx(1826.25e12)
    with pytest.raises(ConfigError, match="the drive's size is not known"):
        lifetime.parse_endurance("1dwpd,5y", None)
    assert _core.size_read("128K") == 128 << 10 and _core.size_read("1M") == 1 << 20
    assert _core.time_read("5µs") == _core.time_read("5 usec") == 5000


# Advice and life of modern drives ------------------------------------------------------------------


@pytest.mark.parametrize("name", TIMED)
def test_a_target_of_life_works_on_drives_that_need_times(name: str) -> None:
    ssd = few_blocks(name)
    with pytest.raises(ConfigError, match=r"timing\.die-order"):
        ssd.with_({"timing.model": "none"}).check()
    assert ssd.untimed().config["timing"]["model"] == "none"
    ssd.untimed().check()
    found = advise(
        ssd.precondition("random"), "uniform:write=1", utilizations=[0.75], cycles=100,
        targets=["life>=1dwpd,1y"], requests=2000,
    )  # fmt: skip
    (point,) = found.points
    assert point.life_years is not None and 0 < point.life_years < 1
    assert not found.failures


def test_what_cleans_by_time_keeps_its_times() -> None:
    ssd = Ssd.named("default").with_({"gc.schedule": "background"})
    assert ssd.untimed() == ssd


def test_a_refusal_comes_before_anything_is_played(monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[Any] = []
    monkeypatch.setattr("flashwright.advice.space._measured", lambda *given: played.append(given))
    monkeypatch.setattr(
        "flashwright.advice.space._wearing",
        lambda *_: Ssd.named("default").with_({"capacity.utilization": 0.9999}),
    )
    with pytest.raises(ConfigError):
        advise(Ssd.named("default"), "uniform", utilizations=[0.75], cycles=100, requests=100)
    assert not played


@pytest.mark.parametrize("name", ["enterprise-tlc", "dram-less", "tlc-nvme"])
def test_advice_for_the_host_of_a_model_comes_from_the_model(name: str) -> None:
    advice = host_advice(profile_of_model(few_blocks(name)))
    assert not [line.topic for line in advice.lines if not line.given]
    assert all(line.source for line in advice.lines)
    (depth,) = [line for line in advice.lines if line.topic == "queue depth"]
    assert depth.source == "short runs of the model" and "2012" not in depth.text
    assert advice.depth is not None and advice.depth >= 16


def test_the_advised_depth_is_the_least_near_the_best_rate() -> None:
    ssd = few_blocks("enterprise-tlc")
    figures = profile_of_model(ssd).findings["best-request"].figures
    depth = round(figures["depth_of_reads_of_4096_bytes"])

    def rate(at: int) -> float:
        run = ssd.precondition("random").play("uniform:write=0,size=4KiB", requests=4000, depth=at)
        found = run.json["throughput"]["iops"]
        assert found is not None
        return found

    best = max(rate(128), rate(256))
    assert rate(depth) > 0.92 * best
    assert rate(depth // 2) < 0.98 * best


def test_ram_that_outlives_a_loss_of_power_is_a_write_buffer(command: Cli) -> None:
    found = Profile.described(Ssd.named("enterprise-tlc")).findings["write-buffer"]
    assert (found.verdict, found.value) == ("found", 16 << 20)
    assert Profile.described(Ssd.named("default")).findings["write-buffer"].verdict == "absent"
    for name, warned in (("enterprise-tlc", False), ("default", True)):
        said = command(
            "simulate", name, "--set", "geometry.blocks-per-plane=128", "--trace", "bundled:sqlite",
            "--addresses", "scale", "--precondition", "sequential", "--requests", 2000, "--json", "-",
        )  # fmt: skip
        assert said.status == 0, said.err
        codes = [each["code"] for each in said.json["warnings"]]
        assert ("free-flushes" in codes) is warned, name


def test_a_forecast_answers_at_once_and_in_time(command: Cli) -> None:
    drive = Ssd.named("enterprise-tlc").with_(blocks_per_plane=48, utilization=0.7)
    said = command(
        "lifetime", "forecast", "enterprise-tlc", "--set", "geometry.blocks-per-plane=48",
        "--set", "capacity.utilization=70%", "--cycles", 3000, "--workload", "uniform:write=1",
        "--write-rate", "1dwpd,5y", "--measure-share", 0, "--json", "-",
    )  # fmt: skip
    assert said.status == 0, said.err
    assert "if all blocks wear evenly: 3,000 cycles x flash / write amplification" in said.err
    even = said.json["even_wear"]
    assert even["settled"] == "settled"
    assert even["host_bytes_low"] <= even["host_bytes"] <= even["host_bytes_high"]
    logical, pages, physical = _core.config_check(drive.toml)
    theory = 3000 * physical * (logical / pages) / even["write_amplification"]
    assert even["host_bytes"] == pytest.approx(theory, rel=1e-3)
    assert even["years"] == pytest.approx(theory / logical / 365.25, rel=1e-3)
    # Of a uniform workload the two agree, but for blocks that wear out first.
    assert said.json["method"] == "extrapolated"
    assert said.json["host_bytes"] == pytest.approx(theory, rel=0.1)


def test_a_forecast_ends_when_its_time_is_over() -> None:
    ssd = Ssd.named("default").with_(blocks_per_plane=32, pe_cycles_max=3000, utilization=0.8)
    run = lifetime.begin(ssd.untimed(), "uniform")
    assert lifetime.forecast(run, seconds=0) is None
    assert lifetime.even_wear(ssd, workloads.uniform(), RunSettings(), seconds=0) is None


def test_even_wear_is_near_a_life_that_wears_evenly() -> None:
    ssd = Ssd.named("default").with_(
        blocks_per_plane=16, pages_per_block=32, pe_cycles_max=200, utilization=0.7
    )
    even = lifetime.even_wear(ssd, workloads.uniform(), RunSettings(), seconds=60)
    assert even is not None
    whole = lifetime.Endurance.of(
        lifetime.play_to_end(lifetime.begin(ssd.untimed().precondition("random"), "uniform"))
    )
    assert even.end.host_bytes == pytest.approx(whole.host_bytes, rel=0.1)


def test_reserved_is_what_the_host_may_not_use(command: Cli) -> None:
    run = ("lifetime", "formula", "default", "--cycles", 3000, "--effective")
    shown = command(*run, "--used", "0.5").out
    # Nine tenths of the flash are the host's, and half of that is in use.
    assert "in use  reserved" in shown and "55.0 %" in shown
    old = command(*run, "--reserved", "0.9")
    assert old.status == 2 and "--reserved: found 0.9, expected --used 0.9" in old.err


# Drives larger than memory -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ("simulate", "default", "--requests", "1000", "--workload", "uniform"),
        ("compare", "default", "--vary", "depth=1,2", "--workload", "uniform", "--requests", "10"),
        ("advise", "space", "default", "--workload", "uniform", "--requests", "10", "--jobs", "1"),
        ("advise", "host", "default"),
        ("lifetime", "forecast", "default", "--cycles", "10", "--workload", "uniform"),
        ("probe", "sim:default"),
        ("replay", "sim:default", "--workload", "uniform"),
    ],
)
def test_a_drive_larger_than_memory_is_one_line(arguments: tuple[str, ...]) -> None:
    """Under a limit of 4 GiB, and in a process of its own, since a table that can't be made ends it."""
    sets = [part for each in LARGE for part in ("--set", each)]
    program = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30)); "
        "from flashwright import cli; sys.exit(cli.run(sys.argv[1:]))"
    )
    said = subprocess.run(
        [sys.executable, "-c", program, *arguments, *sets],
        capture_output=True, text=True, timeout=120, check=False, env=FEW_THREADS,
    )  # fmt: skip
    faults = [line for line in said.stderr.splitlines() if line.startswith("error: ")]
    assert said.returncode == 2, said.stderr
    assert len(faults) == 1 and "Traceback" not in said.stderr, said.stderr
    assert (
        "found 4289725440 pages, whose tables need 31.0 GiB of memory (7.8 B a page), expected no more"
        in faults[0]
    ), faults
    assert "ulimit -v" in faults[0]


@pytest.mark.parametrize("scheme", ["page", "dftl", "fast", "bast", "block"])
def test_what_a_drive_needs_is_what_it_takes(scheme: str) -> None:
    """Two million pages, filled, in a process of its own: the peak over that of a small drive."""
    settings = {
        "geometry.blocks-per-plane": 2048, "geometry.pages-per-block": 128, "capacity.utilization": 0.8,
        "ftl.scheme": scheme, "timing.model": "none",
    }  # fmt: skip
    needed = _core.memory_needed(Ssd.named("default").with_(settings).toml, False)
    program = (
        "import json, sys; from flashwright import Ssd; s = json.loads(sys.argv[1]); "
        "r = Ssd.named('default').with_(s).precondition('sequential').play('uniform', requests=1000, window='off'); "
        "print(r.json['run']['peak_rss_bytes'])"
    )

    def peak(blocks: int) -> int:
        given = json.dumps({**settings, "geometry.blocks-per-plane": blocks})
        said = subprocess.run(
            [sys.executable, "-c", program, given], capture_output=True, text=True, check=True
        )
        return int(said.stdout)

    took = peak(2048) - peak(64)
    assert 0.7 * needed < took < 1.35 * needed, (needed, took)


# The probe of how a buffer empties -----------------------------------------------------------------


class Dramless(Model):
    """A buffer before flash without RAM for its map: it empties, or does not; a flush writes a page of the map."""

    def __init__(
        self, *, eager: bool, buffer: int = MIB, map_ns: float = 1.5e6, ns_byte: float = 4.0
    ):
        super().__init__("dramless", 256 * MIB)
        self.eager, self.buffer, self.map_ns, self.ns_byte = eager, buffer, map_ns, ns_byte
        self.renew()

    def renew(self) -> None:
        self.held, self.at = 0.0, 0.0

    def empty(self, at: float) -> None:
        """What left the buffer since it was last looked at."""
        if self.eager:
            self.held = max(self.held - (at - self.at) / self.ns_byte, 0.0)
        self.at = at

    def serve(self, kind: int, offset: int, size: int, at: float) -> float:
        at = max(at, self.at)
        self.empty(at)
        if kind == FLUSH:
            end = (
                at
                + 10e3
                + (self.held * self.ns_byte + self.map_ns if self.wrote else 0.0) * self.jitter()
            )
            self.held, self.at, self.wrote = 0.0, end, False
            return end
        if kind != WRITE:
            return at + 80e3 * self.jitter()
        self.wrote = True
        over = max(self.held + size - self.buffer, 0.0)
        end = at + 10e3 + (0.3 * size + over * self.ns_byte) * self.jitter()
        self.empty(end)
        self.held = min(self.held - (0.0 if self.eager else over) + size, float(self.buffer))
        return end

    wrote = False


def drain_of(model: Model, buffer: int | None) -> Finding:
    known = (
        {} if buffer is None else {"write-buffer": Finding("write-buffer", "found", buffer, "B")}
    )
    if buffer is None:
        known = {
            "write-buffer": Finding(
                "write-buffer", "unknown", unit="B",
                figures={"flush_after_write_ns": 2e6, "flush_of_nothing_ns": 1e4, "read_ns": 8e4},
            )
        }  # fmt: skip
    with Target(model) as target:
        return Flush().run(Context(target, "quick", 1, known))[0]


@pytest.mark.parametrize("map_ns", [0.0, 1.5e6, 40e6])
def test_a_flush_that_writes_the_map_makes_no_buffer_lazy(map_ns: float) -> None:
    eager = drain_of(Dramless(eager=True, map_ns=map_ns), MIB)
    assert eager.value in ("eager", None), eager.why
    lazy = drain_of(Dramless(eager=False, map_ns=map_ns), MIB)
    assert lazy.value == "lazy", lazy.why


def test_without_the_size_of_the_buffer_the_flush_must_grow_with_the_data() -> None:
    assert drain_of(Dramless(eager=True), None).value != "lazy"
    assert drain_of(Dramless(eager=False), None).value == "lazy"


def test_where_nothing_discriminates_nothing_is_claimed() -> None:
    """Flash as fast as the link: no burst waits, and a flush takes what the map takes."""
    found = drain_of(Dramless(eager=True, ns_byte=0.01, map_ns=2e6), MIB)
    assert (
        found.verdict == "unknown" and "whether another burst finds room does not show" in found.why
    )
    assert math.isfinite(found.figures["flush_of_small_ns"])


def test_a_life_that_takes_hours_is_cut_off_and_says_so(command: Cli, tmp_path: Path) -> None:
    """A whole life of 3,000 cycles: the answer so far, and how to get the rest."""
    saved = tmp_path / "life.saved"
    run = ("lifetime", "simulate", "default", "--cycles", "3000", "--workload", "uniform:write=1")
    said = command(*run, "--time-limit", "0.5", "--checkpoint", saved, "--json", "-")
    assert said.status == 0
    document = json.loads(said.out)
    assert document["ended"] == "interrupted" and 0 < document["budget_used"] < 0.5
    assert "the time limit has passed at" in said.err and "lifetime forecast" in said.err
    more = command("lifetime", "simulate", "--resume", saved, "--time-limit", "0.5", "--json", "-")
    assert json.loads(more.out)["budget_used"] > document["budget_used"]
    said = command(*run, "--time-limit", "0")
    assert said.status == 2 and "--time-limit: found 0, expected seconds above 0" in said.err
