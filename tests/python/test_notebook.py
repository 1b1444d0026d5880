"""What a notebook needs: names at the top, tables of all results, small HTML, a bar, and nothing lost on Ctrl-C."""

from __future__ import annotations

import builtins
import importlib.util
import inspect
import sys
import types
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pandas
import pyarrow as pa
import pyarrow.parquet
import pytest

import flashwright
from conftest import SMALL, Cli
from flashwright import (
    CompareInterrupted,
    MissingPackageError,
    ProgressBar,
    RunInterrupted,
    RunResult,
    Runs,
    Ssd,
    advise,
    characterize,
    compare,
    lifetime,
    probe,
    replay,
    sweep,
    table,
)
from flashwright.characterization import EXPERIMENTS
from flashwright.drive.policies import VictimPolicy
from flashwright.errors import PolicyError
from flashwright.support.progress import Progress
from flashwright.support.tabular import html_table
from flashwright.sweeps.points import Outcome, Point
from flashwright_papers import Answer, Claim, ClaimVerdict, Reproduction, Setting, Verdict
from flashwright_papers.session import Spent


@pytest.fixture(scope="module")
def ssd() -> Ssd:
    return Ssd.from_text(SMALL, "small").precondition("random")


@pytest.fixture(scope="module")
def runs(ssd: Ssd) -> Runs:
    return compare(ssd, "uniform", {"gc.victim": ["greedy", "fifo"]}, requests=2000, depth=2)


@pytest.fixture(scope="module")
def results(ssd: Ssd, runs: Runs) -> dict[str, Any]:
    """One of each kind."""
    claim = Claim("T1", "toy", "table-1", "Table 1", "B", "<b>two</b> & two", "exact")
    verdicts = (
        ClaimVerdict(claim, Answer(Verdict.REPRODUCED, "2")),
        ClaimVerdict(claim, None, "its judge failed"),
    )
    small = Ssd.named("default").with_(blocks_per_plane=32, utilization=0.7)
    run = ssd.play("uniform", requests=2000, snapshots=3)
    return {
        "run": run,
        "runs": runs,
        "latencies": run.latency_ns,
        "snapshots": run.snapshots,
        "replay": replay(ssd, "uniform", requests=500, depth=2),
        "advice": advise(ssd, "uniform", utilizations=[0.5, 0.7, 0.8], requests=2000),
        "probe": probe(small, mode="quick", only=["read-buffer"]),
        "mixing": characterize(small, ["mixing"], mode="quick").result("mixing"),
        "sweep": sweep(ssd, "uniform", {"depth": [1, 2]}, seeds=2, requests=200, jobs=1),
        "reproduction": Reproduction(
            verdicts, Setting(), "0", "2026-01-01", {"toy/runs": Spent(1, 0.0)}, 1, 0.0, 1
        ),
    }


KINDS = (
    "run", "runs", "latencies", "snapshots", "replay", "advice", "probe", "mixing", "sweep", "reproduction",
)  # fmt: skip


def test_every_public_name_is_there_and_documented() -> None:
    for name in flashwright.__all__:
        value = getattr(flashwright, name)
        if name != "__version__":
            assert inspect.getdoc(value), name
    assert len(set(flashwright.__all__)) == len(flashwright.__all__)


def test_no_module_stands_in_the_place_of_a_function() -> None:
    for name in ("advise", "characterize", "compare", "probe", "replay", "reproduce", "sweep"):
        assert inspect.isfunction(getattr(flashwright, name)), name
        assert importlib.util.find_spec(f"flashwright.{name}") is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_is_a_table(results: dict[str, Any], kind: str) -> None:
    result = results[kind]
    arrow, frame = result.to_arrow(), result.to_pandas()
    assert isinstance(arrow, pa.Table) and arrow.num_rows > 0
    assert isinstance(frame, pandas.DataFrame)
    assert frame.shape == (arrow.num_rows, arrow.num_columns)
    assert list(frame.columns) == arrow.column_names


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_says_what_it_is_in_a_line(results: dict[str, Any], kind: str) -> None:
    if kind not in ("runs", "mixing"):
        said = repr(results[kind])
        assert "\n" not in said and len(said) < 200
        assert said.startswith(type(results[kind]).__name__)


def test_the_table_of_runs_is_what_compare_writes(ssd: Ssd, command: Cli, tmp_path: Any) -> None:
    drive, file = tmp_path / "small.toml", tmp_path / "runs.parquet"
    drive.write_text(SMALL)
    said = command(
        "compare", drive, "--precondition", "random", "--workload", "uniform", "--requests", 2000,
        "--vary", "depth=1,4", "--out", file, "--quiet",
    )  # fmt: skip
    assert said.status == 0
    written = pyarrow.parquet.read_table(file)
    runs = compare(
        Ssd.from_toml(drive).precondition("random"), "uniform", {"depth": [1, 4]}, requests=2000
    )
    made = table(runs)
    assert made.schema == written.schema
    # The processor's time and memory are of each run.
    names = [name for name in made.column_names if not name.startswith("run.")]
    assert made.select(names).to_pydict() == written.select(names).to_pydict()
    assert made["depth"].to_pylist() == [1, 4]
    assert "config.gc.victim" in made.column_names
    assert "config.gc.victim" not in table(runs, config=False).column_names


def test_one_run_is_a_row(runs: Runs) -> None:
    row = table(runs[0])
    assert row.num_rows == 1
    assert row["label"].to_pylist() == ["gc.victim=greedy"]
    assert row["flash.erases.total"].to_pylist() == [runs[0].json["flash"]["erases"]["total"]]


def test_runs_are_a_list_with_names(runs: Runs) -> None:
    assert isinstance(runs, list) and len(runs) == 2
    assert runs["gc.victim=fifo"] is runs[1]
    assert isinstance(runs[:1], Runs) and runs[:1] == [runs[0]]
    with pytest.raises(KeyError, match=r"gc\.victim=greedy"):
        runs["gc.victim=random"]


def test_a_column_can_be_added_without_a_warning(runs: Runs) -> None:
    frame = runs.to_pandas()
    frame["mean_ms"] = frame["response_time_ns.all.mean"] / 1e6
    assert (frame["mean_ms"] > 0).all()


def test_without_pandas_there_is_one_clear_line(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: Callable[..., Any] = builtins.__import__

    def absent(name: str, *rest: Any) -> Any:
        if name == "pandas":
            raise ImportError(name)
        return found(name, *rest)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(MissingPackageError, match="pandas: not installed") as caught:
        runs.to_pandas()
    assert len(str(caught.value).splitlines()) == 1
    assert "flashwright[pandas]" in caught.value.hint
    assert runs.to_arrow().num_rows == 2


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize(
    "kind", ["run", "runs", "replay", "advice", "probe", "sweep", "reproduction"]
)
def test_html_is_small_whole_and_has_no_scripts(results: dict[str, Any], kind: str) -> None:
    html = results[kind]._repr_html_()
    tags = _Tags()
    tags.feed(html)
    assert tags.open == []
    assert tags.seen <= {"table", "caption", "thead", "tbody", "tr", "th", "td", "p"}
    assert len(html) < 20_000


def test_html_is_escaped(results: dict[str, Any], runs: Runs) -> None:
    assert "&lt;b&gt;two&lt;/b&gt; &amp; two" in results["reproduction"]._repr_html_()
    named = Runs([runs[0].labelled("<script>alert(1)</script>"), runs[1]])
    assert "<script" not in named._repr_html_()
    assert "<i>" not in html_table(["<i>"], [["<i>", "<i>"]], "<i>", "<i>")


def test_html_of_a_characterization() -> None:
    drive = Ssd.named("default").with_(blocks_per_plane=32, utilization=0.7)
    found = characterize(drive, ["mixing"], mode="quick")
    assert "mixing" in found._repr_html_() and "mixing" in repr(found)


def test_ctrl_c_keeps_the_runs_that_are_finished(ssd: Ssd) -> None:
    def each(label: str, drive: Ssd) -> RunResult:
        if "fifo" in label:
            raise RunInterrupted(None)
        return drive.play("uniform", requests=100)

    with pytest.raises(CompareInterrupted) as stop:
        compare(ssd, "uniform", {"gc.victim": ["greedy", "fifo", "random"]}, each=each)
    assert [run.varied for run in stop.value.runs] == [{"gc.victim": "greedy"}]
    assert isinstance(stop.value, KeyboardInterrupt)


def test_settings_of_a_run_are_given_by_name(ssd: Ssd) -> None:
    found = advise(ssd, "uniform", utilizations=[0.5, 0.7], requests=300, seed=9)
    assert [point.result.json["seed"] for point in found.points] == [9, 9]
    worn = lifetime.begin(ssd.with_(pe_cycles_max=5), "uniform", seed=9)
    assert lifetime.play_to_end(worn).json["seed"] == 9


def test_a_sweep_refuses_what_other_processes_could_not_make(ssd: Ssd) -> None:
    class Own(VictimPolicy):
        def pick(self, unit: Any) -> int:
            return int(unit.blocks[unit.valid.argmin()])

    with pytest.raises(PolicyError, match="found a class of this program, expected") as caught:
        sweep(ssd, "uniform", {"gc.victim": ["greedy", Own]}, requests=100, jobs=1)
    assert len(str(caught.value).splitlines()) == 1
    own = compare(ssd, "uniform", {"gc.victim": ["greedy", Own]}, requests=2000).to_pandas()
    assert own["gc.victim"].tolist() == ["greedy", "python:Own"]
    assert own["flash.erases.total"].nunique() == 1


class _Handle:
    def __init__(self) -> None:
        self.shown: list[str] = []

    def update(self, html: str) -> None:
        self.shown.append(html)


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> list[_Handle]:
    """A kernel that shows nothing and remembers all."""
    handles: list[_Handle] = []

    def display(html: str, *, display_id: bool) -> _Handle:
        assert display_id
        handles.append(_Handle())
        handles[-1].shown.append(html)
        return handles[-1]

    shell = types.SimpleNamespace(kernel=object())
    inside = types.SimpleNamespace(display=display, HTML=lambda text: text)
    outside = types.SimpleNamespace(get_ipython=lambda: shell, display=inside)
    monkeypatch.setitem(sys.modules, "IPython", outside)
    monkeypatch.setitem(sys.modules, "IPython.display", inside)
    monkeypatch.setattr("flashwright.support.progressbar._WAIT_S", -1.0)
    monkeypatch.setattr("flashwright.support.progressbar._REDRAW_S", -1.0)
    return handles


def test_a_bar_in_a_notebook(ssd: Ssd, notebook: list[_Handle]) -> None:
    with ProgressBar("a <run>") as bar:
        ssd.play("uniform", requests=20_000, progress=bar)
    (handle,) = notebook
    assert "a &lt;run&gt;: measured" in "".join(handle.shown)
    assert "<progress value=" in "".join(handle.shown)
    assert handle.shown[-1] == ""


def test_a_bar_takes_what_every_call_tells(ssd: Ssd, notebook: list[_Handle]) -> None:
    with ProgressBar() as bar:
        advise(ssd, "uniform", utilizations=[0.5, 0.7], requests=100, progress=bar)
    with ProgressBar() as bar:
        bar("depth=8", Progress("settling", 1, 2, None, 1))
        bar("clustered-page", 3, 4)
        bar(Outcome(Point("math:dist", {}, "a point"), None), 1, 2)
        bar(EXPERIMENTS[0], 0.25)
        bar(0.5)
    shown = notebook[-1].shown
    assert [text.rpartition(" ")[2] for text in shown] == ["50%", "75%", "50%", "25%", "50%", ""]
    assert "depth=8: settling" in shown[0] and "clustered-page" in shown[1]
    assert "a point" in shown[2] and "fills" in shown[3]


def test_a_bar_outside_of_a_notebook_is_silent_where_nobody_watches(
    ssd: Ssd, capfd: pytest.CaptureFixture[str]
) -> None:
    with ProgressBar() as bar:
        ssd.play("uniform", requests=5000, progress=bar)
        bar("depth=8", Progress("measured", 1, 2, None, 1))
    assert capfd.readouterr() == ("", "")
