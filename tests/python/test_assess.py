"""Assessments: each sentence against the run or the counters behind it; parts that are missing; warnings everywhere."""

from __future__ import annotations

import contextlib
import io
import json
import re
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

import check_assessment

import test_hosting
from conftest import SMALL, Cli, wait_for_work
from flashwright import Ssd, cli, errors, smart, tracefiles, workloads
from flashwright.advice import assessment_lines
from flashwright.advice.assess import Plan, assess
from flashwright.advice.assessment import HALF_PACE, PRESENT
from flashwright.advice.assessment_lines import parts
from flashwright.advice.host import host_advice, profile_of_model
from flashwright.endurance.evenwear import EvenWear
from flashwright.endurance.lifetime import YEAR_S
from flashwright.endurance.pages import in_years
from flashwright.report import text
from flashwright.simulation.played import played
from flashwright.simulation.run import RunSettings
from flashwright.twin.profile import Profile
from test_every_drive import briefly, made_small
from test_report import Tags, embedded

__all__ = ["briefly"]

# Each a kilobyte's worth of counters: a drive that wrote 10.24 TB more, and 2.5 times as much to its flash.
UNIT = 512_000
BEFORE = {"power_on_hours": 1000, "data_units_written": 10_000_000, "percent_used": 1}
NOW = {"power_on_hours": 2000, "data_units_written": 30_000_000, "percent_used": 4}
FLASH = {"before": 20_000_000 * UNIT, "now": 70_000_000 * UNIT}
# Long enough for all runs on any machine.
AMPLE = ("--time-limit", 600)


@pytest.fixture
def logs(tmp_path: Path) -> dict[str, Path]:
    """Two readings of a drive over NVMe, and its counters of the flash."""
    found = {}
    for name, log in (("before", BEFORE), ("now", NOW)):
        found[name] = tmp_path / f"{name}.json"
        found[name].write_text(json.dumps(log))
        found[f"{name}-ocp"] = tmp_path / f"{name}-ocp.json"
        found[f"{name}-ocp"].write_text(json.dumps({"physical_media_units_written": FLASH[name]}))
    return found


def writes(path: Path, *, kind: str = "w", count: int = 3000, gap_s: float = 2e-3) -> Path:
    """A trace of requests of 4 KiB all over 800 KiB of the drive `small`."""
    lines = (
        f"0,{i * 7919 % 800 * 8},4096,{'r' if i % 3 == 0 else kind},{i * gap_s:.6f}\n"
        for i in range(count)
    )
    path.write_text("".join(lines))
    return path


@dataclass(frozen=True)
class Assessed:
    """A trace on the drive `small`, assessed once for all that look at it."""

    drive: str
    trace: Path
    said: str
    page: str
    json: str

    @property
    def document(self) -> dict[str, Any]:
        """What --json wrote, the reader's own."""
        found: dict[str, Any] = json.loads(self.json)
        return found


@pytest.fixture(scope="module")
def assessed(tmp_path_factory: pytest.TempPathFactory) -> Assessed:
    folder = tmp_path_factory.mktemp("assessed")
    drive, trace = folder / "small.toml", writes(folder / "load.spc")
    drive.write_text(SMALL)
    page, figures, said = folder / "a.html", folder / "a.json", io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(said):
        patch.delenv("COLUMNS", raising=False)
        status = cli.run(
            [
                "assess", "--drive", str(drive), "--trace", str(trace), "--cycles", "3000",
                "--time-limit", "600", "--report", str(page), "--json", str(figures),
            ]
        )  # fmt: skip
    assert status == 0
    return Assessed(str(drive), trace, said.getvalue(), page.read_text(), figures.read_text())


def line(document: dict[str, Any], part: str, topic: str) -> str:
    """What a document says of a topic."""
    (found,) = [each for each in document["answer"] if each["part"] == part]
    (said,) = [each["text"] for each in found["lines"] if each["topic"] == topic]
    return str(said)


def test_each_sentence_is_that_of_its_run(
    command: Cli, small: str, tmp_path: Path, logs: dict[str, Path]
) -> None:
    trace = writes(tmp_path / "load.spc")
    said = command(
        "assess", "--drive", small, "--trace", trace, "--cycles", 3000, *AMPLE, "--json", "-",
        *(option for path in logs.values() for option in ("--smart", path)),
        "--capacity", "800GB", "--endurance", "600TB",
    )  # fmt: skip
    assert said.status == 0, said.err
    found = said.json
    # The load, as `trace info` says it.
    info = tracefiles.info(trace)
    assert found["load"].items() >= info.items()
    day = info["written_bytes"] / info["span_ns"] * 86400e9
    assert found["load"]["written_bytes_per_day"] == pytest.approx(day)
    assert line(found, "The load", "reads") == f"{info['read_percent']:.1f} % of reads and writes"
    assert found["load"]["unaligned"] == {"reads": 0, "writes": 0}
    # Write amplification, of runs that `simulate` plays too.
    alone = command(
        "simulate", small, "--trace", trace, "--precondition", "workload", "--json", "-"
    ).json
    present, *more = found["write_amplification"]["model"]
    assert (present["name"], present["digest"]) == (PRESENT, alone["digest"])
    assert found["runs"][PRESENT]["digest"] == alone["digest"]
    shown = line(found, "Write amplification", f"by the model, {PRESENT}")
    # It still changes, so that it has no interval.
    assert shown.startswith(f"{alone['write_amplification']:.3f}, NOT settled")
    assert [each["name"] for each in more] == [f"{n} % left unused" for n in (10, 20, 30)]
    logical = found["runs"]["20 % left unused"]["set"]["capacity.logical"]
    less = command(
        "simulate", small, "--trace", trace, "--precondition", "workload", "--json", "-",
        "--set", f"capacity.logical={logical}",
    ).json  # fmt: skip
    assert less["digest"] == more[1]["digest"] and more[1]["reserved"] > present["reserved"]
    # Counters, as `lifetime smart` says them.
    counted = command("lifetime", "smart", *logs.values(), "--endurance", "600TB", "--json", "-")
    assert (
        found["smart"].items()
        == {
            key: value for key, value in counted.json.items() if key not in ("version", "method")
        }.items()
    )
    assert found["write_amplification"]["counters"] == {
        "value": 2.5,
        "over": "between the readings",
    }
    assert line(found, "Write amplification", "by counters").startswith("2.5 between the readings")
    ratio = alone["write_amplification_bytes"] / 2.5
    assert line(found, "Write amplification", "model over counters").startswith(f"{ratio:.2g}")
    off = "model-off" in {each["code"] for each in found["warnings"]}
    assert off == (abs(ratio - 1) > 0.1)
    # Life.
    left = counted.json["interval"]["years_left"]
    assert line(found, "Life", "by counters").startswith(f"{in_years(left)} left")
    rate = 20_000_000 * UNIT / (1000 * 3600)
    assert found["life"]["write_rate_bytes_per_s"] == pytest.approx(rate)
    to_rating = (600e12 - 30_000_000 * UNIT) / rate / YEAR_S
    assert found["life"]["rating_years"] == pytest.approx(to_rating)
    run = Ssd.find(small).precondition("auto").play(workloads.trace(trace))
    even = EvenWear.of(run, 3000)
    assert even is not None
    years = even.end.drive_writes * 800e9 / rate / YEAR_S
    assert found["life"]["model"]["years"] == pytest.approx(years)
    assert found["life"]["model"]["years_min"] <= years <= found["life"]["model"]["years_max"]
    # Reads.
    times = alone["response_time_ns"]["read"]
    tails = found["read_tails"]
    assert (tails["p99_ns"], tails["p99_9_ns"]) == (times["p99"], times["p99_9"])
    assert text.time_ns(times["p99_9"]) in line(found, "Reads", "response")
    assert tails["p99_9_ns_low"] <= tails["p99_9_ns"] <= tails["p99_9_ns_high"]
    # By rank: a thousandth of the requests lies above p99.9, give or take 1.96 standard deviations of that count.
    # Of the points of the distribution it is the next one outwards.
    points, shares = run.response_distribution["read"]
    width = 1.96 * (0.999 * 0.001 / times["count"]) ** 0.5
    low, high = (int(np.searchsorted(points, tails[f"p99_9_ns_{end}"])) for end in ("low", "high"))
    assert shares[low] <= 0.999 - width < shares[low + 1]
    assert shares[high - 1] < min(0.999 + width, 1) <= shares[high]
    slow = command(
        "simulate", small, "--trace", trace, "--precondition", "workload", "--json", "-",
        "--time-scale", 2,
    ).json  # fmt: skip
    (half,) = [each for each in tails["what_ifs"] if each["name"] == HALF_PACE]
    assert half["p99_9_ns"] == slow["response_time_ns"]["read"]["p99_9"]
    # Settings, as `advise host` gives them; the depth is for the requests that were played.
    hosted = {each.topic: each for each in host_advice(profile_of_model(Ssd.find(small))).lines}
    for each in found["settings"]:
        if each["topic"] != "queue depth":
            assert each["advice"] == hosted[each["topic"]].text
    (scheduler,) = [each for each in found["settings"] if each["topic"] == "linux scheduler"]
    other = command(
        "simulate", small, "--trace", trace, "--precondition", "workload", "--json", "-",
        "--set", "host.scheduler=mq-deadline",
    ).json  # fmt: skip
    assert scheduler["gain"]["read_p99_9_ns"] == times["p99_9"]
    assert scheduler["gain"]["read_p99_9_ns_without"] == other["response_time_ns"]["read"]["p99_9"]


def test_each_sentence_is_recomputed_by_other_commands(
    command: Cli, assessed: Assessed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def simulate(*arguments: object) -> dict[str, Any]:
        return command("simulate", *arguments, "--quiet", "--json", "-").json

    monkeypatch.setattr(check_assessment, "simulate", simulate)
    found = assessed.document
    evidence = check_assessment.evidence_of(found, assessed.drive, assessed.trace)
    assert list(check_assessment.faults(found, evidence)) == []
    # A figure that is off is found, in whichever sentence.
    for part in found["answer"]:
        for each in part["lines"]:
            text = each["text"]
            for number in re.finditer(r"\d(?=[\d,.]*\D*$)(?<![\d,.]\d)", text):
                off = str((int(number[0]) + 5) % 10)
                each["text"] = text[: number.start()] + off + text[number.end() :]
                wrong = list(check_assessment.sentences(found, evidence.known))
                assert len(wrong) == 1 and wrong[0].startswith(f"{part['part']}, {each['topic']}")
            each["text"] = text
    found["runs"][PRESENT]["digest"] = "0"
    assert any("digest" in each for each in check_assessment.faults(found, evidence))


def test_trims_and_flushes_have_no_part_in_sizes_and_alignment(
    command: Cli, small: str, tmp_path: Path
) -> None:
    trace = tmp_path / "load.fio"
    moves = "".join(
        f"/dev/a write {i * 7919 % 800 * 4096} 4096\n/dev/a trim 409600 409600\n/dev/a sync\n"
        f"/dev/a read {i * 31 % 800 * 4096 + 512} 1024\n"
        for i in range(1500)
    )
    trace.write_text(f"fio version 2 iolog\n/dev/a add\n/dev/a open\n{moves}/dev/a close\n")
    found = command("assess", "--drive", small, "--trace", trace, *AMPLE, "--json", "-").json
    assert found["load"]["trims"] == found["load"]["flushes"] == 1500
    assert "reads and writes of 2.5 KiB, as played" in line(
        found, "Settings of Linux", "queue depth"
    )
    assert found["load"]["unaligned"] == {"reads": 1, "writes": 0}
    assert line(found, "Settings of Linux", "alignment").endswith(
        "; 100 % of the reads and 0 % of the writes are not aligned"
    )


def test_a_load_that_is_fitted_to_the_model_is_told_as_such(
    command: Cli, assessed: Assessed
) -> None:
    asked = ("assess", "--drive", assessed.drive, "--trace", assessed.trace)
    # The load is told whether or not it was played in time.
    others = [
        command(*asked, "--time-limit", 0.01, "--addresses", fit, "--json", "-").json
        for fit in ("wrap", "scale")
    ]
    fitted = [
        line(each, "The load", "footprint").endswith(", to which its addresses are fitted")
        for each in (assessed.document, *others)
    ]
    assert fitted == [False, False, True]


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (0, 0, "no change"),
        (1000, 1004, "no change"),
        (1000, 1010, "+1 %"),
        (1000, 110, "−89 %"),
        (1000, 100, "10 times shorter"),
        (5_570_000, 2_099, "2,654 times shorter"),
        (1000, 9900, "+890 %"),
        (1000, 12_345, "12 times longer"),
        (0, 5, "from nothing"),
    ],
)
def test_how_a_change_of_a_time_is_told(before: int, after: int, text: str) -> None:
    assert assessment_lines._change(before, after) == text


def test_the_screen_and_the_page_say_what_the_json_says(command: Cli, assessed: Assessed) -> None:
    found = assessed.document
    assert embedded(assessed.page, "results") == found
    tags = Tags(assessed.page)
    words = " ".join(" ".join(tags.texts).split())
    screen = " ".join(assessed.said.split())
    for each in found["answer"]:
        for one in each["lines"]:
            assert one["text"] in screen and one["text"] in words, one
    # What runs and the length of the trace warn of is in all three.
    assert {"brief", "few-spare-blocks"} & {each["code"] for each in found["warnings"]} >= {"brief"}
    own = command(
        "simulate",
        assessed.drive,
        "--trace",
        assessed.trace,
        "--precondition",
        "auto",
        "--json",
        "-",
    ).json["warnings"]
    assert {each["code"] for each in own} <= {each["code"] for each in found["warnings"]}
    for each in found["warnings"]:
        assert each["text"] in screen and each["text"] in words, each
    # Nothing from elsewhere.
    for name, attributes in tags.tags:
        for key in ("src", "href"):
            value = attributes.get(key) or "#"
            assert value.startswith(("#", "data:", "blob:")), (name, value)


def test_advice_that_costs_on_the_model_is_told(small: str, tmp_path: Path) -> None:
    """A drive that falls behind, before which mq-deadline lets reads pass and none does not."""
    trace = workloads.trace(writes(tmp_path / "load.spc", gap_s=1e-4))
    found = assess(Plan.of(Ssd.find(small), trace), seconds=600)
    gain = found.gain("linux scheduler")
    assert gain is not None and gain.advised is found.present and found.falls_behind
    reads = [run.json["response_time_ns"]["read"] for run in (gain.without, gain.advised)]
    longer = {
        "p99": (reads[1]["p99"] or 0) / (reads[0]["p99"] or 1) - 1,
        "p99.9": (reads[1]["p99_9"] or 0) / (reads[0]["p99_9"] or 1) - 1,
    }
    worst = max(longer, key=lambda name: longer[name])
    cost = found.cost("linux scheduler")
    assert cost is not None and cost[0] == worst and cost[1] == pytest.approx(longer[worst])
    assert longer[worst] > 0.1 and found.cost("queue depth") is None
    (warned,) = [each for each in found.warnings if each.code == "advice-costs"]
    assert warned.text.startswith(
        f"linux scheduler: on the model, what is advised makes {worst} of reads"
    )
    # What runs warn of names no option that an assessment lacks.
    assert not any("--time-scale" in str(each) for each in found.warnings)
    assert found.limited_by == "programs and erases in no time"


def test_a_profile_is_assessed_by_what_probes_found(command: Cli, tmp_path: Path) -> None:
    path = tmp_path / "probed.toml"
    known = test_hosting.profile(
        test_hosting.found("clustered-block", 256 * test_hosting.KIB), capacity=6709248
    )
    twin = Ssd.from_text(SMALL, "twin")
    replace(known, twin=twin, twin_record={"error": 0.5}).save(path)
    said = command(
        "assess",
        "--drive",
        path,
        "--workload",
        "uniform",
        "--requests",
        2000,
        *AMPLE,
        "--json",
        "-",
    )
    assert said.status == 0, said.err
    of_profile = {each.topic: each.text for each in host_advice(Profile.from_toml(path)).lines}
    for each in said.json["settings"]:
        if each["topic"] != "queue depth":
            assert each["advice"] == of_profile[each["topic"]]
    doubts = Profile.from_toml(path).twin_doubts
    warned = [each["text"] for each in said.json["warnings"] if each["code"] == "twin-doubt"]
    assert warned == [f"don't rely on the model's figures: {doubt}" for doubt in doubts] != []


@pytest.mark.usefixtures("briefly")
@pytest.mark.parametrize(
    "drive", ["dftl-large-block", "samsung-470", "crucial-p1", "ssd-b", "dram-less"]
)
def test_drives_of_other_makes(drive: str, command: Cli, tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_text(made_small(drive))
    said = command(
        "assess", "--drive", path, "--workload", "uniform:depth=4", "--requests", 1000,
        "--precondition", "random", "--time-limit", 20, "--json", "-",
    )  # fmt: skip
    assert said.status == 0, said.err
    runs, gone = said.json["runs"], {*said.json["failures"], *said.json["left_out"]}
    assert runs and not set(runs) & gone


@pytest.mark.parametrize("order", [("now", "before"), ("before", "now")])
def test_readings_in_either_order(
    order: tuple[str, str], command: Cli, logs: dict[str, Path]
) -> None:
    files = [logs[f"{name}{kind}"] for name in order for kind in ("", "-ocp")]
    said = command("assess", *(o for path in files for o in ("--smart", path)), "--json", "-")
    assert said.status == 0, said.err
    assert said.json["write_amplification"]["counters"]["value"] == 2.5
    assert said.json["life"]["counters"]["over"] == "between the readings"
    assert said.json["write_amplification"]["model"] == [] and said.json["read_tails"] is None
    assert "nothing is played" in said.err


def test_one_reading_tells_no_present_figure(command: Cli, logs: dict[str, Path]) -> None:
    both = command("assess", "--smart", logs["now"], "--smart", logs["now-ocp"], "--json", "-").json
    assert both["write_amplification"]["counters"]["over"] == "since the drive was new"
    assert "one reading does not say how it is now" in line(
        both, "Write amplification", "by counters"
    )
    alone = command("assess", "--smart", logs["now"], "--json", "-").json
    assert alone["write_amplification"]["counters"] is None
    why = smart.parse(NOW).why_no_amplification
    assert why and line(alone, "Write amplification", "by counters") == f"not known: {why}"


def test_notes_of_the_counters_are_warnings(command: Cli, tmp_path: Path) -> None:
    log = tmp_path / "odd.json"
    odd = NOW | {"data_units_written": 1, "physical_media_units_written": 10 * UNIT * 1000}
    log.write_text(json.dumps(odd))
    notes = smart.read(log).notes
    said = command("assess", "--smart", log)
    for note in notes:
        assert note in said.out
    assert command("assess", "--smart", log, "--json", "-").json["smart"]["notes"] == list(notes)


def test_without_smart_it_says_what_that_leaves_out(
    command: Cli, small: str, tmp_path: Path
) -> None:
    trace = writes(tmp_path / "load.spc")
    found = command("assess", "--drive", small, "--trace", trace, *AMPLE, "--json", "-").json
    assert found["smart"] is None and found["life"]["counters"] is None
    assert "--smart" in line(found, "Not known", "counters")
    assert "--cycles" in line(found, "Not known", "life by the model")
    assert "--endurance" in line(found, "Not known", "life by the rating")


def test_a_trace_without_writes(command: Cli, small: str, tmp_path: Path) -> None:
    trace = writes(tmp_path / "reads.spc", kind="r")
    said = command(
        "assess", "--drive", small, "--trace", trace, "--cycles", 3000, *AMPLE, "--json", "-"
    )
    assert said.status == 0, said.err
    found = said.json
    assert line(found, "Write amplification", f"by the model, {PRESENT}").startswith(
        "none: nothing"
    )
    assert found["life"]["model"] is None and found["life"]["write_rate_bytes_per_s"] is None
    assert found["read_tails"]["p99_ns"] > 0


def test_a_drive_on_which_nothing_settles(command: Cli) -> None:
    """Before wear levelling begins nothing settles."""
    said = command(
        "assess", "--drive", "default", "--set", "geometry.blocks-per-plane=64", "--set", "timing.model=none",
        "--set", "gc.victim=fifo", "--set", "wear.policy=threshold", "--workload", "uniform",
        "--requests", 20_000, *AMPLE, "--json", "-",
    )  # fmt: skip
    assert said.status == 0, said.err
    found = said.json
    assert {each["settled"] for each in found["write_amplification"]["model"]} == {"transient"}
    # What still changes has no interval.
    assert re.fullmatch(
        r"[\d.]+, NOT settled: .*", line(found, "Write amplification", f"by the model, {PRESENT}")
    )
    assert "not-settled" in {each["code"] for each in found["warnings"]}
    assert found["read_tails"] is None  # a drive without times


def test_time_limits_leave_runs_out_and_say_so(small: str, tmp_path: Path) -> None:
    plan = Plan.of(Ssd.find(small), workloads.uniform(write=1), RunSettings(requests=2_000_000_000))
    found = assess(plan, seconds=0.5)
    assert found.out_of_time and not found.interrupted and found.present is None
    assert PRESENT in found.left_out
    (warned,) = [each for each in found.warnings if each.code == "out-of-time"]
    assert PRESENT in warned.text
    said = {part.title: dict(part.lines) for part in parts(found)}
    assert said["Not known"]["runs not played"].startswith(f"{PRESENT}; ")
    assert said["Not known"]["runs not played"].endswith(": the time was over")
    # Short runs are left out with them.
    assert "no-short-runs" in {each.code for each in found.warnings}
    assert found.hosted is not None and "best-request" not in found.hosted.profile.findings


def test_runs_side_by_side_end_with_their_time() -> None:
    plan = Plan.of(
        Ssd.named("default"), workloads.uniform(write=1), RunSettings(requests=2_000_000_000)
    )
    for jobs in (1, 2):
        found = played([trial.variant for trial in plan.trials], jobs=jobs, seconds=0.3)
        assert found.out_of_time and not found.interrupted and not found.errors
        assert all(run.json["ended"] == "interrupted" for run in found.results.values())


def test_another_size_is_told_and_scales_the_years(command: Cli, assessed: Assessed) -> None:
    own = assessed.document
    larger = command(
        "assess", "--drive", assessed.drive, "--trace", assessed.trace, "--cycles", 3000, *AMPLE,
        "--capacity", "1TB", "--json", "-",
    ).json  # fmt: skip
    assert "other-size" in {each["code"] for each in larger["warnings"]}
    assert "capacity" in {each["code"] for each in own["warnings"]}
    ratio = larger["life"]["model"]["years"] / own["life"]["model"]["years"]
    assert ratio == pytest.approx(1e12 / own["capacity_bytes"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "found neither --smart nor --drive"),
        (("--drive", "default"), "found neither --smart nor --drive"),
        (("--trace", "bundled:pgbench"), "found neither --smart nor --drive"),
        (("--drive", "unheard-of", "--trace", "bundled:pgbench"), 'found "unheard-of"'),
        (("--smart", "{folder}/no-smart.json"), "not SMART data"),
        (("--smart", "{folder}/now.json", "--smart", "{folder}/less.json"), "expected no less"),
        (("--smart", "{folder}/now.json", "--set", "gc.victim=fifo"), "--set: found without --drive"),
        (("--smart", "{folder}/now.json", "--addresses", "scale"), "--addresses: found with"),
        (("--smart", "{folder}/now.json", "--capacity", "much"), "capacity: found 'much'"),
        (("--smart", "{folder}/now.json", "--cycles", "0"), "--cycles: found 0"),
        (("--smart", "{folder}/now.json", "--time-limit", "0"), "--time-limit: found 0"),
        (
            ("--drive", "default", "--set", "capacity.utilization=0.2", "--trace", "bundled:pgbench"),
            "reach past the end of the drive",
        ),
    ],
)  # fmt: skip
def test_bad_input_gives_a_line(
    arguments: tuple[str, ...], message: str, command: Cli, tmp_path: Path, logs: dict[str, Path]
) -> None:
    (tmp_path / "no-smart.json").write_text('{"x": 1}')
    (tmp_path / "less.json").write_text(json.dumps(BEFORE | {"power_on_hours": 3000}))
    said = command("assess", *(each.format(folder=tmp_path) for each in arguments))
    assert said.status == 2 and said.err.count("error:") == 1 and message in said.err, said.err
    assert not said.out


def test_two_drives_are_refused(command: Cli, tmp_path: Path) -> None:
    for name in ("a", "b"):
        drive = {
            "model_name": "M", "serial_number": name, "device": {"protocol": "NVMe"},
            "nvme_smart_health_information_log": NOW,
        }  # fmt: skip
        (tmp_path / f"{name}.json").write_text(json.dumps(drive))
    said = command("assess", "--smart", tmp_path / "a.json", "--smart", tmp_path / "b.json")
    assert said.status == 2 and "--smart: found 2 drives (a, b)" in said.err


def test_nothing_to_go_by_is_refused_in_python_too() -> None:
    with pytest.raises(errors.ConfigError, match="neither SMART data nor a load"):
        assess(Plan.of(Ssd.named("default"), None))


def test_ctrl_c_gives_what_there_is(tmp_path: Path, logs: dict[str, Path]) -> None:
    figures = tmp_path / "out.json"
    process = subprocess.Popen(
        [
            sys.executable, "-m", "flashwright", "assess", "--drive", "default", "--workload",
            "uniform", "--requests", "2000000000", "--smart", logs["now"], "--json", figures,
        ],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_for_work(process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and "note: interrupted" in err, err
    found = json.loads(figures.read_text())
    assert found["finished"] is False and "interrupted" in {w["code"] for w in found["warnings"]}
    assert re.search(r"years left", out) and found["life"]["counters"]["years_left"] > 0
