"""Charts as files: drawings and their numbers, from the same objects as the page."""

from __future__ import annotations

import csv
import importlib.util
import re
import shutil
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from conftest import Cli
from flashwright import Ssd, compare
from flashwright.errors import ArgumentError, MissingPackageError, MissingResultError, OutputError
from flashwright.report.charts import Chart, Columns, axis, categories, series
from flashwright.report.paper import check_figures, write_figures
from flashwright.simulation.pages import RunsPage
from test_report import a_closeup, a_run, comparison, looks

pytest.importorskip("matplotlib", reason="needs Matplotlib (pip install flashwright[plots])")

ENDS = [".svg", ".pdf", ".png", ".csv"]
SPACE = "{http://www.w3.org/2000/svg}"


def words(path: Path) -> list[str]:
    """The texts of a drawing."""
    return ["".join(each.itertext()) for each in ElementTree.parse(path).iter(f"{SPACE}text")]


def numbers(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def drawn(folder: Path, kind: Any, view: dict[str, Any], columns: Columns) -> tuple[Path, Path]:
    charts = [Chart("one", "A chart", "What it <code>shows</code>.", kind=kind, views=[view])]
    drawing, *_, rows = write_figures(folder, charts, columns, ["run"], "All")
    return drawing, rows


@pytest.fixture
def three_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page's figures are those of its first three charts: drawing all of them takes most of a test's time."""

    def few(folder: Path, charts: Sequence[Chart], *rest: Any) -> list[Path]:
        return write_figures(folder, charts[:3], *rest)

    monkeypatch.setattr("flashwright.report.page.write_figures", few)


def test_a_run_becomes_a_drawing_and_a_table_a_view(tmp_path: Path) -> None:
    run = a_run()
    run.closeup, run.snapshots = a_closeup(1), looks(run, 5)
    files = RunsPage([run], "A run").figures(tmp_path / "figures")
    stems = [path.stem for path in files[:: len(ENDS)]]
    assert stems[:5] == [
        "01-write-amplification", "01-write-amplification-by-requests",
        "02-throughput", "02-throughput-by-requests", "03-response-time",
    ]  # fmt: skip
    assert stems[-2:] == [
        "16-how-busy-dies-and-channels-were",
        "16-how-busy-dies-and-channels-were-channels",
    ]
    assert sorted(files) == sorted((tmp_path / "figures").iterdir())
    assert all(path.suffix == end for path, end in zip(files, ENDS * len(stems), strict=True))
    for drawing, printed, pixels, table in zip(*(files[n::4] for n in range(4)), strict=True):
        assert (
            printed.read_bytes().startswith(b"%PDF-")
            and b"/Creator (Flashwright)" in printed.read_bytes()
        )
        assert pixels.read_bytes().startswith(b"\x89PNG")
        # A column's width, in words of 8 pt that stay words.
        assert ElementTree.parse(drawing).getroot().get("width") == "244.8pt"
        assert "font-size: 8px" in drawing.read_text()
        head, *rows = numbers(table)
        assert rows and all(len(row) == len(head) for row in rows), table
    response = tmp_path / "figures/03-response-time"
    shown = words(response.with_suffix(".svg"))
    assert {"drive's time [s]", "response time [ms]", "mean", "99th percentile"} <= set(shown)
    assert {"0.2", "0.5", "1", "2", "5"} <= set(shown), "a log axis, as on the page"
    assert numbers(response.with_suffix(".csv"))[0] == [
        "series", "drive's time [ns]", "response time [ns]",
    ]  # fmt: skip
    film = numbers(tmp_path / "figures/14-erases-over-time.csv")
    assert film[0][:2] == ["requests completed", "drive's time [ns]"]
    assert {row[0] for row in film[1:]} == {"1250000"}, "the last moment"


def test_a_drawing_of_each_kind_is_the_same_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def few(folder: Path, charts: Sequence[Chart], *rest: Any) -> list[Path]:
        return write_figures(folder, list({chart.kind: chart for chart in charts}.values()), *rest)

    monkeypatch.setattr("flashwright.report.page.write_figures", few)
    run = a_run()
    run.closeup, run.snapshots = a_closeup(1), looks(run, 5)
    files, again = (RunsPage([run], "A run").figures(tmp_path / name) for name in ("a", "b"))
    assert len({path.name[:2] for path in files}) == 6
    for path, other in zip(files, again, strict=True):
        assert path.name == other.name and path.read_bytes() == other.read_bytes(), path.name


@pytest.mark.usefixtures("three_charts")
def test_what_runs_share_is_left_out_of_their_names(tmp_path: Path) -> None:
    RunsPage(comparison(), "Four").figures(tmp_path)
    assert {"greedy", "fifo", "cost-benefit"} <= set(words(tmp_path / "01-write-amplification.svg"))
    table = numbers(tmp_path / "03-response-time.csv")
    assert {row[0] for row in table[1:]} >= {"greedy, mean", "greedy, 99th percentile"}


def test_intervals_references_and_published_values_are_in_both(tmp_path: Path) -> None:
    columns = Columns()
    view = {
        "name": "",
        "x": categories("trace", ["one", "two"]),
        "y": axis("erases", "count", zero=True),
        "series": [
            series(columns, "ours", [2, 5], name="fifo", low=[1, 4], high=[3, 6]),
            series(columns, "paper", [2.5, 5], name="paper", look="published", of="fifo"),
        ],
        "levels": [[4, "enough"]],
    }
    drawing, table = drawn(tmp_path, "bars", view, columns)
    assert {"one", "two", "erases", "fifo", "fifo, paper", "enough"} <= set(words(drawing))
    text = drawing.read_text()
    # Two bars of error with a cap at each end, a line of reference, a diamond a published value.
    assert len(re.findall(r'id="LineCollection', text)) == 1
    assert "<dc:title>A chart</dc:title>" in text and "All. What it shows." in text
    assert numbers(table) == [
        ["series", "trace", "erases", "low", "high"],
        ["fifo", "one", "2", "1", "3"],
        ["fifo", "two", "5", "4", "6"],
        ["fifo, paper", "one", "2.5", "", ""],
        ["fifo, paper", "two", "5", "", ""],
        ["reference: enough", "", "4", "", ""],
    ]


def test_units_stand_in_titles_and_heads(tmp_path: Path) -> None:
    columns = Columns()
    line = series(columns, "a", [1e6, 4e6], x=[4096, 1 << 20], name="a")
    view = {
        "name": "",
        "x": axis("request size", "bytes", log=True),
        "y": axis("rate", "bytes", per="s", zero=True),
        "series": [line],
    }
    drawing, table = drawn(tmp_path, "lines", view, columns)
    shown = words(drawing)
    assert {"request size [bytes]", "rate [MiB/s]", "4 KiB", "1 MiB", "3"} <= set(shown)
    assert numbers(table)[0] == ["series", "request size [bytes]", "rate [bytes/s]"]


def test_places_with_names_keep_them(tmp_path: Path) -> None:
    columns = Columns()
    view = {
        "name": "",
        "x": axis("workload", "index", ticks=[[0, "Financial"], [1, "TPC-H"]]),
        "y": axis("merges", "count", log=True),
        "series": [series(columns, "a", [10, 1000], x=[0, 1], name="a", look="points")],
        "bands": [[0.5, None, "settled"]],
    }
    drawing, table = drawn(tmp_path, "lines", view, columns)
    assert [row[1] for row in numbers(table)[1:]] == ["Financial", "TPC-H"]
    assert {"Financial", "TPC-H"} <= set(words(drawing))
    assert "settled" in [text.strip() for text in words(drawing)]


@pytest.mark.usefixtures("three_charts")
def test_other_files_of_the_folder_stay(command: Cli, small: str, tmp_path: Path) -> None:
    folder = tmp_path / "figures"
    folder.mkdir()
    kept, replaced = folder / "notes.txt", folder / "01-write-amplification.csv"
    kept.write_text("mine")
    replaced.write_text("old")
    said = command("simulate", small, "--workload", "uniform", "--requests", 2000, "--figures", folder)  # fmt: skip
    assert said.status == 0, said.err
    assert kept.read_text() == "mine" and replaced.read_text().startswith("series,")
    assert not list(folder.glob(".*")), "nothing half-written"


@pytest.mark.usefixtures("three_charts")
def test_compare_and_the_formula_have_them_too(command: Cli, small: str, tmp_path: Path) -> None:
    folder = tmp_path / "compared"
    said = command(
        "compare", small, "--workload", "uniform", "--requests", 2000, "--quiet",
        "--vary", "capacity.utilization=0.6,0.8", "--figures", folder,
    )  # fmt: skip
    assert said.status == 0, said.err
    assert (folder / "01-mean-response-time.svg").exists()
    folder = tmp_path / "formula"
    said = command(
        "lifetime", "formula", "--capacity", "100GB", "--cycles", 10_000, "--written", "50TB", "--figures", folder,
    )  # fmt: skip
    assert said.status == 0, said.err
    assert sorted(path.name for path in folder.iterdir()) == [
        "01-residual-lifetime.csv",
        "01-residual-lifetime.pdf",
        "01-residual-lifetime.png",
        "01-residual-lifetime.svg",
    ]


def inches(path: Path) -> tuple[float, float]:
    """Width and height of a drawing of vectors, or of pixels at 300 to the inch."""
    if path.suffix == ".png":
        width, height = struct.unpack(">II", path.read_bytes()[16:24])
        return width / 300, height / 300
    if path.suffix == ".pdf":
        box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]", path.read_bytes())
        assert box is not None
        return float(box[1]) / 72, float(box[2]) / 72
    root = ElementTree.parse(path).getroot()
    return tuple(float(str(root.get(end)).removesuffix("pt")) / 72 for end in ("width", "height"))  # type: ignore[return-value]


def test_figures_have_the_size_that_was_asked_for(command: Cli, tmp_path: Path) -> None:
    said = command(
        "lifetime", "formula", "--capacity", "100GB", "--cycles", 10_000, "--written", "50TB",
        "--figures", tmp_path / "of-paper", "--figures-size", "84mm,60mm",
    )  # fmt: skip
    assert said.status == 0, said.err
    drawings = [path for path in (tmp_path / "of-paper").iterdir() if path.suffix != ".csv"]
    assert {path.suffix for path in drawings} == {".svg", ".pdf", ".png"}
    for path in drawings:
        assert inches(path) == pytest.approx((84 / 25.4, 60 / 25.4), abs=0.01), path.name


def test_runs_have_names_of_ones_own(command: Cli, small: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    said = command(
        "compare", small, "--workload", "uniform", "--requests", 2000, "--quiet", "--vary",
        "gc.victim=greedy,fifo", "--label", "Fewest", "--label", "Oldest", "--report", page,
    )  # fmt: skip
    assert said.status == 0, said.err
    assert "Fewest" in page.read_text() and "Oldest" in page.read_text()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--figures-size", "84,60"], "figures-size: found '84,60', expected a width and a height"),
        (["--figures-size", "84mm,0mm"], "0.5 to 40 in"),
        (["--label", "Fewest"], "--label: found 1, expected 2, one for each run"),
    ],
)
def test_sizes_and_names_that_do_not_fit(
    command: Cli, small: str, tmp_path: Path, options: list[str], said: str
) -> None:
    found = command(
        "compare", small, "--workload", "uniform", "--requests", 2000, "--vary",
        "gc.victim=greedy,fifo", "--figures", tmp_path / "none", *options,
    )  # fmt: skip
    assert found.status == 2 and said in found.err
    assert not (tmp_path / "none").exists() or not list((tmp_path / "none").iterdir())


@pytest.mark.parametrize(("option", "value"), [("size", "84mm,60mm"), ("style", "serif")])
def test_a_look_without_figures(command: Cli, small: str, option: str, value: str) -> None:
    found = command("simulate", small, "--workload", "uniform", f"--figures-{option}", value)
    assert found.status == 2 and f"--figures-{option}: found without --figures" in found.err


def styled(folder: Path, *styles: str) -> tuple[str, tuple[float, float]]:
    """A drawing of two lines in some styles, as text, and its size."""
    columns = Columns()
    lines = [
        {**series(columns, name, [1.0, 2.0], x=[0, 1], name=name), "colour": hue}
        for hue, name in enumerate("ab")
    ]
    view = {
        "name": "",
        "x": axis("time", "number"),
        "y": axis("rate", "number"),
        "series": lines,
        "levels": [[1.5, "a level"]],
    }
    chart = Chart("one", "A chart", "", kind="lines", views=[view])
    path = write_figures(folder, [chart], columns, ["a", "b"], "t", style=list(styles))[0]
    return path.read_text(), inches(path)


def test_figures_in_the_style_of_a_paper(tmp_path: Path) -> None:
    plain, (wide, _) = styled(tmp_path / "plain")
    assert "DejaVu Sans" in plain and "STIXGeneral" not in plain and wide == pytest.approx(3.4)
    serif, _ = styled(tmp_path / "serif", "serif")
    assert "STIXGeneral" in serif and "DejaVu Sans" not in serif
    assert styled(tmp_path / "sans", "serif", "sans")[0] == plain, "the later comes before"
    style = tmp_path / "journal.mplstyle"
    style.write_text(
        "font.size: 16\naxes.prop_cycle: cycler('color', ['123456', '654321'])\n"
        "lines.linewidth: 3\nfigure.figsize: 6, 3\n"
    )
    ours, size = styled(tmp_path / "ours", str(style), "serif")
    # What the file leaves alone stays ours.
    for each in ("#123456", "#654321", "stroke-width: 3", "STIXGeneral", "stroke-width: 0.6"):
        assert each in ours, each
    assert size == pytest.approx((6, 3), abs=0.01)
    assert {"16px", "14px"} <= set(re.findall(r"font(?:-size)?: (\d+px)", ours)), (
        "labels, and a level"
    )
    assert "#cbcbcb" in styled(tmp_path / "named", "fivethirtyeight")[0]


def test_styles_that_are_none(command: Cli, small: str, tmp_path: Path) -> None:
    broken = tmp_path / "broken.mplstyle"
    for text, said in (
        ("font.size: large thing\n", "line 1"),
        ("no.such.key: 1\n", "no.such.key"),
        ("text.usetex: True\n", "LaTeX is not installed"),
    ):
        broken.write_text(text)
        found = command(
            "simulate", small, "--workload", "uniform", "--requests", 2000,
            "--figures", tmp_path / "none", "--figures-style", broken,
        )  # fmt: skip
        if "usetex" not in text or shutil.which("latex") is None:
            assert found.status == 2 and said in found.err and len(found.err.splitlines()) <= 2, (
                text
            )
            assert not list((tmp_path / "none").iterdir())
    with pytest.raises(ArgumentError, match="found 'gone', expected serif, sans, a style of Matpl"):
        styled(tmp_path / "none", "gone")


def test_results_plot_themselves() -> None:
    ssd = Ssd.named("default").with_(blocks_per_plane=64)
    runs = compare(ssd, "uniform", {"gc.victim": ["greedy", "fifo"]}, requests=2_000)
    figure = runs.plot("response-time", size="5in,3in")
    assert tuple(figure.get_size_inches()) == (5, 3)
    assert len(runs[0].plot().axes) >= 1
    # A title is no longer than its axis.
    low = runs.plot("write-amplification", size="3in,1.6in")
    low.draw_without_rendering()
    [axes] = low.axes
    assert axes.get_ylabel() == "write\namplification"
    assert axes.yaxis.label.get_window_extent().height <= axes.get_window_extent().height
    with pytest.raises(MissingResultError, match="found 'nothing', expected one of write-ampl"):
        runs[0].plot("nothing")


@pytest.mark.parametrize(
    "name",
    ["simulate", "compare", "advise space", "advise placement", "advise host", "lifetime formula",
     "lifetime simulate", "lifetime forecast", "sweep", "replay", "probe", "characterize", "reproduce"],
)  # fmt: skip
def test_every_command_with_a_page_takes_it(command: Cli, name: str) -> None:
    said = command(*name.split(), "--help")
    assert "--report FILE.html" in said.out and "--figures FOLDER" in said.out


def test_nothing_is_played_where_they_could_not_be_written(
    command: Cli, small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    said = command("simulate", small, "--figures", file)
    assert said.status == 2 and said.out == ""
    assert said.err.splitlines()[0] == f"error: {file}: is a file; expected a folder"
    with pytest.raises(OutputError, match="can't be created: no such file"):
        check_figures(tmp_path / "none" / "deeper")
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "matplotlib" else find(name)
    )
    said = command("simulate", small, "--figures", tmp_path / "new")
    assert said.status == 2 and not (tmp_path / "new").exists()
    assert said.err == (
        "error: --figures: Matplotlib is not installed\nhint: pip install flashwright[plots]\n"
    )
    with pytest.raises(MissingPackageError):
        RunsPage([a_run()], "A run").figures(tmp_path / "new")
