"""Runs that differ stay apart, equal runs count once, and no advice comes from a load that decides nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import Cli
from flashwright import Ssd, compare, policies, sweep, workloads
from flashwright.errors import FlashwrightError
from flashwright.simulation.warnings import gathered
from flashwright.support.estimate import half_width_of_parts
from flashwright.support.names import distinct_names
from flashwright.traces import tracefiles
from flashwright.traces.compare import compare as compare_traces

# The drive of `small` has 1,638 logical pages of 4 KiB and 2,048 of flash.
LOGICAL = 1638
SECTORS = 8
PACE = ("--depth", "4", "--quiet")


def spc(path: Path, rows: Iterator[tuple[int, str]], page: int = 4096) -> str:
    """A trace in the format SPC, a millisecond from request to request."""
    lines = [
        f"0,{at * page // 512},{page},{kind},{n * 0.001:.6f}" for n, (at, kind) in enumerate(rows)
    ]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def random_writes(
    count: int, pages: int, seed: int = 1, step: int = 1
) -> Iterator[tuple[int, str]]:
    """Writes all over so many pages, `step` pages from one to the next."""
    return ((int(at) * step, "W") for at in np.random.default_rng(seed).integers(0, pages, count))


VICTIM = """
from flashwright.drive.policies import VictimPolicy

class Mine(VictimPolicy):
    def pick(self, unit):
        return unit.blocks[{pick}]
"""


class Window(policies.VictimPolicy):
    """The block with the fewest valid pages among the first few, or another than that."""

    def __init__(self, reach: int) -> None:
        self.reach = reach

    def pick(self, unit: policies.Unit) -> int:
        return int(unit.blocks[unit.valid[: self.reach].argmin()])


# Variants that vanish -----------------------------------------------------------------------------


def test_two_parameters_of_one_policy_are_two_runs() -> None:
    ssd = Ssd.named("default").with_(channels=1, dies_per_channel=1, blocks_per_plane=16)
    ssd = ssd.with_(utilization=0.7).precondition("random")
    runs = compare(ssd, "uniform", {"gc.victim": [Window(1), Window(99)]}, requests=3_000, depth=1)
    assert [run.label for run in runs] == [
        "gc.victim=python:Window (reach=1)",
        "gc.victim=python:Window (reach=99)",
    ]
    assert runs[0].json["digest"] != runs[1].json["digest"]
    assert runs["gc.victim=python:Window (reach=99)"].json["policies"][0]["settings"] == {
        "reach": 99
    }
    assert runs.to_arrow()["gc.victim"].to_pylist()[0] == "python:Window (reach=1)"


def test_classes_of_one_name_are_told_apart_by_their_files(
    tmp_path: Path, command: Cli, small: str
) -> None:
    for folder, pick in (("one", "unit.valid.argmin()"), ("two", "0")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text(VICTIM.format(pick=pick))
    values = ",".join(f"{tmp_path}/{folder}/mine.py:Mine" for folder in ("one", "two"))
    said = command(
        *("compare", small, "--workload", "uniform", "--precondition", "random", *PACE),
        *("--vary", f"gc.victim={values}", "--requests", "3000", "--seeds", "2", "--json", "-"),
    )
    assert said.status == 0, said.err
    labels = [
        f"gc.victim=python:Mine ({folder}/mine.py), seed={n}"
        for folder in ("one", "two")
        for n in (1, 2)
    ]
    assert [run["label"] for run in said.json["runs"]] == labels
    sources = {run["policies"][0]["source_sha256"] for run in said.json["runs"]}
    assert len(sources) == 2, "each says the file that it was read from"
    assert [row["gc.victim"] for row in said.json["over_seeds"]] == [
        "python:Mine (one/mine.py)",
        "python:Mine (two/mine.py)",
    ]
    assert said.json["vary"]["gc.victim"][1] == "python:Mine (two/mine.py)"


def test_a_trace_read_in_two_ways_is_two_workloads(tmp_path: Path) -> None:
    path = spc(tmp_path / "t.spc", random_writes(400, 50, step=20))
    ssd = Ssd.named("default").with_(blocks_per_plane=64)
    ways = [workloads.trace(path), workloads.trace(path, addresses="dense")]
    runs = compare(ssd.precondition("empty"), "uniform", {"workload": ways}, depth=1)
    assert len(runs) == 2 and len({run.label for run in runs}) == 2
    assert runs[1].label.endswith("(addresses=dense)")
    found = sweep(ssd.precondition("empty"), "uniform", {"workload": ways}, depth=1, jobs=1)
    assert [each.runs for each in found.summaries] == [1, 1]
    assert len({case.point.key for case in found.cases if case.point}) == 2


def test_what_is_asked_twice_is_played_once_and_said(
    command: Cli, small: str, tmp_path: Path
) -> None:
    run = ("compare", small, "--workload", "uniform", "--precondition", "empty", "--depth", "1")
    said = command(
        *run, "--vary", "gc.victim=fifo,fifo,greedy", "--requests", "50", "--no-progress"
    )
    assert said.status == 0
    assert "gc.victim=fifo: 2 combinations are this run, which is played once" in said.err
    file = tmp_path / "twice.toml"
    file.write_text(
        'workload = "uniform"\nprecondition = "empty"\nrequests = 50\ndepth = 1\n'
        '[grid]\n"gc.victim" = ["fifo", "fifo"]\n'
    )
    said = command("sweep", file, "--jobs", "1", "--no-progress")
    assert said.status == 0 and "2 combinations are this run" in said.out
    assert "points" in said.out and "1 points: 1 computed" in said.out
    ssd = Ssd.named("default").precondition("empty")
    runs = compare(ssd, "uniform", {"depth": [1, 1]}, requests=50)
    assert len(runs) == 1
    assert runs.notes == ["depth=1: 2 combinations are this run, which is played once"]


def test_settings_that_do_not_concern_a_run_are_said(command: Cli, small: str) -> None:
    said = command(
        *("compare", small, "--workload", "uniform", "--precondition", "empty", "--depth", "1"),
        *("--vary", "ftl.scheme=page,fast", "--vary", "ftl.fast.log-fraction=0.1,0.2"),
        *("--set", "capacity.utilization=0.5"),
        *("--requests", "50", "--no-progress"),
    )
    assert said.status == 0
    assert "ftl.scheme=page: 2 combinations are this run" in said.err
    assert "ftl.fast.log-fraction does not concern it" in said.err


def test_runs_of_one_label_are_not_taken_for_each_other() -> None:
    ssd = Ssd.named("default").precondition("empty")
    runs = compare(ssd, "uniform", {"depth": [1, 2]}, requests=50)
    equal_labels = type(runs)(run.labelled("same").with_varied({}) for run in runs)
    with pytest.raises(FlashwrightError, match="found 2 of the label 'same'"):
        equal_labels["same"]
    assert len(equal_labels.over_seeds()) == 2, "they differ in more than a seed"


def test_traces_of_one_name_in_two_folders(tmp_path: Path, command: Cli) -> None:
    paths = []
    for folder, pages in (("a", 50), ("b", 500)):
        (tmp_path / folder).mkdir()
        paths.append(spc(tmp_path / folder / "t.spc", random_writes(200, pages)))
    found = compare_traces(*paths)
    assert [found.first.name, found.second.name] == ["t.spc (a/t.spc)", "t.spc (b/t.spc)"]
    said = command("trace", "compare", *paths, "--drive", "default", "--json", "-", "--no-progress")
    assert said.status == 0
    assert [run["label"] for run in said.json["drive"]["runs"]] == [
        "t.spc (a/t.spc)",
        "t.spc (b/t.spc)",
    ]
    numbered = spc(tmp_path / "t-2.spc", random_writes(10, 10))
    done = tracefiles.merge([numbered, *paths], tmp_path / "all.fwt")
    assert len(set(done["tenants"])) == 3


def test_names_are_told_apart() -> None:
    assert distinct_names(
        ["p", "p"], ["1", "2"], [{"k": 1, "path": "x"}, {"k": 2, "path": "y"}]
    ) == [
        "p (k=1)",
        "p (k=2)",
    ]
    assert distinct_names(["p", "p", "q"], ["1", "1", "2"]) == ["p", "p", "q"]


# False certainty ----------------------------------------------------------------------------------


@pytest.fixture
def hot(tmp_path: Path) -> str:
    """Writes all over the drive of `small`, twice as often to its first part."""
    rng = np.random.default_rng(3)
    places = np.where(
        rng.random(4000) < 0.5, rng.integers(0, 400, 4000), rng.integers(0, 1600, 4000)
    )
    return spc(tmp_path / "hot.spc", ((int(at), "W") for at in places))


def test_seeds_over_a_trace_are_one_run(hot: str, command: Cli, small: str) -> None:
    run = ("compare", small, "--trace", hot, "--depth", "4", "--no-progress", "--seeds", "3")
    vary = ("--requests", "4000", "--vary", "gc.victim=greedy,fifo")
    found = command(*run, *vary, "--json", "-").json
    assert len({each["digest"] for each in found["runs"]}) == 2
    for row in found["over_seeds"]:
        assert (row["seeds"], row["different"], row["interval"]) == (3, 1, "parts of the run")
        assert row["write_amplification.ci95"] > 0, "not the certainty of a run played three times"
        assert row["response_time_ns.all.mean.ci95"] > 0
        assert row["response_time_ns.all.p99.ci95"] is None
    said = command(*run, *vary)
    assert (
        "the seed changes nothing in gc.victim=greedy; gc.victim=fifo (equal digests)" in said.out
    )
    assert "3 (1 different)" in said.out and "± 0.000" not in said.out


def test_seeds_that_change_the_run_give_an_interval_over_seeds(command: Cli, small: str) -> None:
    found = command(
        *("compare", small, "--workload", "uniform:write=1", "--requests", "4000", "--seeds", "3"),
        *("--vary", "gc.victim=greedy", "--json", "-", *PACE),
    ).json["over_seeds"][0]
    assert (found["different"], found["interval"]) == (3, "seeds")
    assert found["write_amplification.ci95"] > 0
    # Percentiles come from cells of three digits.
    assert found["response_time_ns.all.p99.ci95"] >= 0.0005 * found["response_time_ns.all.p99"]


def test_a_sweep_over_a_trace_counts_equal_runs_once(
    hot: str, command: Cli, small: str, tmp_path: Path
) -> None:
    file = tmp_path / "seeds.toml"
    file.write_text(
        f'drive = "small.toml"\ntrace = "{Path(hot).name}"\ndepth = 4\nseeds = 3\n'
        '[grid]\n"gc.victim" = ["greedy"]\n'
    )
    said = command("sweep", file, "--jobs", "1", "--no-progress")
    assert "the seed changes nothing in 1 of 1 combinations (equal digests)" in said.out
    assert "3 (1 different)" in said.out
    found = command("sweep", file, "--jobs", "1", "--quiet", "--json", "-").json["summary"][0]
    assert (found["runs"], found["different"]) == (3, 1)
    assert found["figures"]["write_amplification"]["ci95"] > 0
    assert found["figures"]["throughput.iops"]["ci95"] is None


def test_pages_and_figures_of_seeds_have_intervals_and_no_line_a_seed(
    command: Cli, small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The tables are looked at; drawing some twenty charts in three formats takes half a minute.
    drawn_as_nothing = "flashwright.report.paper.drawing.save"
    monkeypatch.setattr(drawn_as_nothing, lambda figure, view, path, *rest: path.touch())
    run = ("compare", small, "--workload", "uniform:write=1", "--requests", "2000", "--seeds", "3")
    folder, page = tmp_path / "drawn", tmp_path / "page.html"
    said = command(
        *(*run, "--vary", "capacity.utilization=0.6,0.7", *PACE),
        *("--figures", folder, "--report", page),
    )
    assert said.status == 0, said.err
    files = sorted(folder.glob("*.csv"))
    heads = {file.name: file.read_text().splitlines() for file in files}
    drawn = [lines for name, lines in heads.items() if "write-amplification" in name]
    assert any("low" in lines[0] and "high" in lines[0] for lines in drawn)
    assert not any("seed=" in line for lines in heads.values() for line in lines)
    assert "Over the seeds" in page.read_text()


def test_the_interval_of_parts_covers_what_it_says() -> None:
    # Means of 400 windows that hang together (a correlation of 0.7), whose true mean is 10.
    rng = np.random.default_rng(4)
    hits = 0
    for _ in range(200):
        noise = rng.normal(0, 1, 500)
        for at in range(1, 500):
            noise[at] += 0.7 * noise[at - 1]
        values = 10 + noise[100:]
        half = half_width_of_parts(values, np.ones(400))
        assert half is not None
        hits += abs(values.mean() - 10) <= half
    assert 0.86 <= hits / 200 <= 0.99
    assert half_width_of_parts(np.ones(5), np.ones(5)) is None


ADVISE = ("--utilizations", "0.6,0.8", "--jobs", "1", "--quiet", "--json", "-", "--depth", "4")


def test_a_trace_is_confirmed_from_its_middle_on(command: Cli, small: str, hot: str) -> None:
    target = ("--target", "write-amplification<=5")
    said = command("advise", "space", small, "--trace", hot, *ADVISE, *target)
    assert said.status == 0, said.err
    best = said.json["recommended"]
    assert best["confirmed_by"] == "with the trace begun in its middle"
    whole, turned = (
        Ssd.from_toml(small).play(workloads.trace(hot, start=start), depth=4).json
        for start in (0.0, 0.5)
    )
    assert whole["digest"] != turned["digest"]
    assert whole["host"]["pages_written"] == turned["host"]["pages_written"]
    columns = tracefiles.columns(workloads.trace(hot, start=0.5))
    first = tracefiles.columns(hot)
    half = first.num_rows // 2
    assert columns["first_sector"][0] == first["first_sector"][half]
    assert columns["first_sector"][half] == first["first_sector"][0]
    assert columns["arrival_ns"].to_pylist() == sorted(columns["arrival_ns"].to_pylist())


def test_what_no_seed_changes_is_not_confirmed(command: Cli, small: str) -> None:
    # Strides that come back before a block is invalid as a whole, so that cleaning moves pages; no chance in it.
    load = ("--workload", "strided:write=1,step=28KiB", "--requests", "4000")
    said = command(
        *("advise", "space", small, *load, "--utilizations", "0.6,0.8", "--jobs", "1"),
        *("--depth", "4", "--no-progress", "--target", "write-amplification<=40"),
    )
    found = command(
        "advise", "space", small, *load, *ADVISE, "--target", "write-amplification<=40"
    ).json
    if found["recommended"] is None:
        assert "no reservation can be recommended" in said.err
    else:
        assert found["recommended"]["confirmed_by"] is None
        assert "NOT CONFIRMED: the seed changes nothing in this run" in said.out


def test_a_seed_confirms_where_it_changes_the_run(command: Cli, small: str) -> None:
    load = ("--workload", "uniform:write=1", "--requests", "4000")
    found = command(
        "advise", "space", small, *load, *ADVISE, "--target", "write-amplification<=2.5"
    )
    assert found.json["recommended"]["confirmed_by"] == "under another seed"


def test_a_utilization_named_twice_is_said(command: Cli, small: str) -> None:
    said = command(
        *("advise", "space", small, "--workload", "uniform:write=1", "--requests", "2000"),
        *("--utilizations", "0.6,0.6", "--jobs", "1", "--depth", "4", "--no-progress"),
    )
    assert "--utilizations: found 0.6 more than once; each is played once" in said.err


# Traces that can't fill the drive -----------------------------------------------------------------


@pytest.fixture
def large(tmp_path: Path) -> str:
    """A trace of 2,000 pages over 20,000, of which the drive of `small` has the first 1,638."""
    return spc(tmp_path / "large.spc", random_writes(6000, 2000, step=10))


Run = Callable[..., Any]
PLAYING: Mapping[str, tuple[str, ...]] = {
    "simulate": ("simulate", "{drive}"),
    "compare": ("compare", "{drive}", "--vary", "gc.victim=greedy"),
    "advise": ("advise", "space", "{drive}", "--jobs", "1"),
    "simulated life": ("lifetime", "simulate", "{drive}", "--cycles", "20"),
    "forecast": ("lifetime", "forecast", "{drive}", "--cycles", "20"),
    "trace compare": ("trace", "compare", "uniform", "{trace}", "--drive", "{drive}"),
}


@pytest.mark.parametrize("name", PLAYING)
def test_a_trace_that_lies_beyond_the_drive_is_refused(
    name: str, command: Cli, small: str, large: str
) -> None:
    words = [word.format(drive=small, trace=large) for word in PLAYING[name]]
    trace = () if name == "trace compare" else ("--trace", large)
    said = command(*words, *trace)
    assert said.status == 2
    assert "% of the trace's 6000 requests reach past the end of the drive (" in said.err
    assert "Choose --addresses scale" in said.err
    assert said.err.count("error:") == 1
    assert "internal" not in said.err


def test_a_sweep_of_such_a_trace_fails_with_that_line(
    command: Cli, small: str, large: str, tmp_path: Path
) -> None:
    file = tmp_path / "large.toml"
    rows = f'drive = "small.toml"\ntrace = "{Path(large).name}"\ndepth = 4\nseeds = 1\n'
    file.write_text(rows)
    said = command("sweep", file, "--jobs", "1", "--no-progress")
    assert said.status == 2 and "reach past the end of the drive" in said.err
    file.write_text(
        rows.replace("trace =", "workload = {trace =").replace(
            '.spc"', '.spc", addresses = "wrap"}'
        )
    )
    said = command("sweep", file, "--jobs", "1", "--no-progress")
    assert said.status == 0, said.err
    assert (
        "92 % of the trace's requests reach past the end of the drive and were wrapped" in said.out
    )


def test_what_was_asked_to_wrap_is_a_warning_everywhere(
    command: Cli, small: str, large: str, tmp_path: Path
) -> None:
    wrapped = "requests reach past the end of the drive and were wrapped"
    how = ("--trace", large, "--addresses", "wrap", "--no-progress")
    for words in (
        ("compare", small, "--vary", "gc.victim=greedy,fifo", "--depth", "4"),
        ("advise", "space", small, "--utilizations", "0.7,0.8", "--jobs", "1", "--depth", "4"),
        ("lifetime", "forecast", small, "--cycles", "20"),
        ("simulate", small, "--depth", "4"),
    ):
        said = command(*words, *how)
        assert wrapped in said.out, words
        # Once, though several runs have it; of other reservations with other figures.
        assert said.out.count(wrapped) == (2 if words[0] == "advise" else 1), words
    found = command("compare", small, "--vary", "gc.victim=greedy,fifo", *how, "--json", "-").json
    codes = [each["code"] for each in found["warnings"]]
    assert codes[0] == "addresses-wrapped" and len(found["warnings"][0]["runs"]) == 2
    page = tmp_path / "page.html"
    command(
        "advise", "space", small, "--utilizations", "0.7", "--jobs", "1", *how, "--report", page
    )
    assert wrapped in page.read_text()


def test_traces_among_varied_workloads_are_fitted_too(command: Cli, small: str) -> None:
    run = (
        "compare",
        small,
        "--vary",
        "workload=uniform;bundled:pgbench",
        "--precondition",
        "empty",
    )
    said = command(*run, "--requests", "100", *PACE)
    assert said.status == 2 and "--addresses scale" in said.err
    said = command(*run, "--requests", "100", *PACE, "--addresses", "scale", "--json", "-")
    assert said.status == 0, said.err
    assert [each["label"] for each in said.json["runs"]] == [
        "workload=uniform",
        "workload=bundled:pgbench",
    ]


def test_a_few_requests_beyond_the_end_are_wrapped_as_before(
    command: Cli, small: str, tmp_path: Path
) -> None:
    places = [(n % 1600, "W") for n in range(990)] + [(5000 + n, "W") for n in range(10)]
    path = spc(tmp_path / "few.spc", iter(places))
    found = command("simulate", small, "--trace", path, "--json", "-", *PACE)
    assert found.status == 0
    assert "10 requests wrapped around the end of the drive" in found.json["workload_notes"]


def test_a_replay_fits_addresses_as_a_run_does(command: Cli, small: str, large: str) -> None:
    said = command("replay", f"sim:{small}", "--trace", large, "--destroys-data")
    assert said.status == 2 and "--addresses scale" in said.err
    for how in ("scale", "wrap"):
        said = command(
            *("replay", f"sim:{small}", "--trace", large, "--destroys-data"),
            *("--addresses", how, "--json", "-", "--quiet"),
        )
        assert said.status == 0, said.err
        codes = [each["code"] for each in said.json["warnings"]]
        assert codes == ([] if how == "scale" else ["addresses-wrapped"])


def starts(path: str, how: str, ssd: Ssd) -> list[int]:
    """The pages that the requests of a trace go to, as the run keeps them."""
    run = ssd.play(workloads.trace(path, addresses=how), depth=1, keep_requests=True)
    return [int(lpn) for lpn in run.requests()["lpn"].to_pylist()]


def test_scale_keeps_the_order_of_addresses(tmp_path: Path, small: str, large: str) -> None:
    ssd = Ssd.from_toml(small)
    places = [at for at, _ in random_writes(6000, 2000, step=10)]
    found = starts(large, "scale", ssd)
    order = np.argsort(places, kind="stable")
    assert (np.diff(np.array(found)[order]) >= 0).all()
    # 1,909 or so touched pages share the 1,638 of the drive, each a line through its rank.
    touched = np.unique(places)
    rank = {int(at): n for n, at in enumerate(touched)}
    assert found == [rank[at] * LOGICAL // len(touched) for at in places]
    assert max(starts(large, "scale:0.5", ssd)) == (LOGICAL // 2) - 1
    # Where what is touched fits, it keeps its size, and holes shrink evenly.
    path = spc(tmp_path / "sparse.spc", ((at, "W") for at in (0, 1, 2, 40_000, 40_001, 80_000)))
    assert starts(path, "scale", ssd) == [0, 1, 2, 818, 819, 1637]
    # And grow where there is room.
    path = spc(tmp_path / "near.spc", ((at, "W") for at in (0, 1, 11, 12)))
    assert starts(path, "scale", ssd) == [0, 1, LOGICAL - 2, LOGICAL - 1]


def test_compact_numbers_what_is_touched(tmp_path: Path, small: str, large: str) -> None:
    ssd = Ssd.from_toml(small)
    path = spc(tmp_path / "sparse.spc", ((at, "W") for at in (80_000, 7, 40_001, 40_000, 7)))
    assert starts(path, "compact", ssd) == [3, 0, 2, 1, 0]
    with pytest.raises(FlashwrightError, match=r"the trace touches .* and the drive has"):
        ssd.play(workloads.trace(large, addresses="compact"), depth=1)
    # Requests of half a page lie in the sectors that are touched.
    half = tmp_path / "half.spc"
    half.write_text("0,1004,2048,W,0.0\n0,5000,2048,W,0.001\n")
    assert starts(str(half), "compact", ssd) == [0, 0]


def test_a_wrong_way_to_fit_addresses_is_one_line(command: Cli, small: str, large: str) -> None:
    for how in ("fold", "scale:2", "scale:", "wrap:0.5"):
        said = command("simulate", small, "--trace", large, "--addresses", how)
        assert said.status == 2
        assert "expected wrap, reject, dense, compact or scale[:SHARE]" in said.err


# A load that needs no cleaning --------------------------------------------------------------------


@pytest.fixture
def tiny(tmp_path: Path) -> str:
    """A trace that writes the same eight pages again and again: whatever is erased is invalid as a whole."""
    return spc(tmp_path / "tiny.spc", ((n % 8, "W") for n in range(2000)))


def test_a_drive_that_moves_no_page_is_not_called_settled(
    command: Cli, small: str, tiny: str, tmp_path: Path
) -> None:
    how = ("--trace", tiny, "--depth", "4", "--no-progress")
    said = command("simulate", small, *how, "--precondition", "workload")
    assert "NO CLEANING: it moved no page under this load" in said.out
    found = command("simulate", small, *how, "--precondition", "workload", "--json", "-").json
    assert found["settled"]["verdict"] == "never-cleaned"
    assert found["flash"]["programs"]["gc"] == 0 and found["flash"]["erases"]["total"] > 0
    assert "never-cleaned" in [each["code"] for each in found["warnings"]]
    said = command("compare", small, *how, "--vary", "gc.victim=greedy,fifo", "--seeds", "2")
    assert "no cleaning" in said.out and "0 of 2" in said.out
    page = tmp_path / "page.html"
    command("compare", small, *how, "--vary", "gc.victim=greedy", "--report", page)
    assert "no cleaning" in page.read_text()
    run = Ssd.from_toml(small).precondition("workload").play(workloads.trace(tiny), depth=4)
    assert not run.settled and run.settled.verdict == "never-cleaned"


def test_no_reserve_is_recommended_from_it(command: Cli, small: str, tiny: str) -> None:
    said = command(
        *("advise", "space", small, "--trace", tiny, "--depth", "4", "--no-progress"),
        *("--utilizations", "0.7,0.8", "--jobs", "1", "--target", "write-amplification<=2"),
    )
    assert said.status == 1
    assert (
        "no reservation can be recommended: at 2 utilizations from 0.7 to 0.8 cleaning moved no page"
        in said.err
    )
    assert "reserve  " not in said.out


def test_a_drive_that_cleans_is_settled_as_before(command: Cli, small: str) -> None:
    found = command(
        *("simulate", small, "--workload", "uniform:write=1", "--precondition", "workload"),
        *("--requests", "20000", *PACE, "--json", "-"),
    ).json
    assert found["settled"]["verdict"] == "settled"


# Models and stand-ins -----------------------------------------------------------------------------


def test_a_model_needs_room_for_what_its_trace_uses(
    tmp_path: Path, command: Cli, small: str
) -> None:
    path = spc(tmp_path / "wide.spc", random_writes(3000, 20_000))
    model = tmp_path / "wide.toml"
    assert command("trace", "fit", path, "-o", model).status == 0
    how = ("--requests", "200", "--precondition", "empty", "--depth", "1", "--quiet")
    said = command("simulate", small, "--workload", f"model:{model}", *how)
    assert said.status == 2
    # 1,141 blocks of 64 KiB.
    assert "scale: found 1: the trace's requests use 73024 KiB" in said.err
    # The hint that it gives works.
    hint = said.err.split("or scale=")[1].split()[0]
    assert command("simulate", small, "--workload", f"model:{model},scale={hint}", *how).status == 0
    assert command("simulate", "default", "--workload", f"model:{model}", *how).status == 0


def test_a_stand_in_on_a_drive_too_small_is_a_warning(command: Cli, small: str) -> None:
    how = ("--requests", "200", "--precondition", "empty", "--quiet", "--json", "-")
    found = command("simulate", small, "--workload", "stand-in:financial1", *how).json
    warned = {each["code"]: each["text"] for each in found["warnings"]}
    assert "to fit the drive: this is another load" in warned["footprint-shrunk"]


# Warnings of many runs ----------------------------------------------------------------------------


def test_warnings_are_gathered() -> None:
    def warned(code: str, text: str) -> dict[str, str | None]:
        return {"code": code, "text": text, "mend": None}

    runs = [(f"run {n}", [warned("a", f"a {n}"), warned("b", "b")]) for n in range(9)]
    runs.append(("last", [warned("c", "c")]))
    found = gathered(runs)
    assert [each.code for each in found] == ["a", "b", "a", "a", "c"]
    assert sum(len(each.runs) for each in found if each.code == "a") == 9, "none is lost"
    assert str(found[-1]) == "last: c"
    assert str(found[1]).startswith("run 0; run 1; run 2; and 6 more runs: b")
    assert json.loads(json.dumps(found[0].runs)) == ["run 0"]
