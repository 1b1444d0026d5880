"""Reports: what stands in the file, that it needs nothing beside it, that hostile text stays text.

The runs here are made up: smooth curves with a known answer, shaped like the real ones. What a
browser makes of the file is tested in ``test_report_browser.py``.
"""

from __future__ import annotations

import html.parser
import json
import math
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flashwright.errors import OutputError
from flashwright.report import tables, text
from flashwright.report.charts import Columns, series
from flashwright.simulation.pages import figures, film, write_report
from flashwright.simulation.pages import view as runs
from flashwright.simulation.pages.keyfigures import all_figures, configuration
from flashwright.simulation.parts import Snapshots

ROOT = Path(__file__).resolve().parents[2]
CHANNELS, DIES, PLANES, BLOCKS, PAGES = 4, 2, 1, 1024, 128
HOSTILE = "</script><script>alert('x')</script><img src=x onerror=alert(1)> \" ' & {{ 7 * 7 }}"


@dataclass
class MadeUp:
    """A run as the report sees it."""

    json: dict[str, Any]
    label: str
    windows: pa.Table
    erases_per_block: np.ndarray[Any, np.dtype[np.uint32]]
    valid_per_block: np.ndarray[Any, np.dtype[np.uint32]]
    response_distribution: Mapping[str, tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]
    violations: Sequence[str] = field(default_factory=list)
    varied: Mapping[str, object] = field(default_factory=dict)
    closeup: pa.Table | None = None
    snapshots: Snapshots | None = None


def times(count: int, middle: float) -> dict[str, float]:
    names = ("mean", "stdev", "p50", "p90", "p99", "p99_9", "max")
    factors = (1.2, 0.8, 1.0, 2.0, 6.0, 20.0, 60.0)
    return {"count": count} | {n: middle * f for n, f in zip(names, factors, strict=True)}


def nothing() -> dict[str, Any]:
    return {"count": 0} | dict.fromkeys(("mean", "stdev", "p50", "p90", "p99", "p99_9", "max"))


def a_run(
    label: str = "uniform:write=1",
    *,
    seed: int = 1,
    amplification: float = 2.6,
    timed: bool = True,
    rows: int = 2000,
    **changes: Any,
) -> MadeUp:
    """A run whose write amplification climbs to `amplification`."""
    rng = np.random.default_rng(seed)
    written, requests = 1_000_000, 1_250_000
    programs = int(written * amplification)
    by_cause = {"host": written, "gc": programs - written, "merge": 0, "padding": 0}
    by_cause |= {"translation": 0, "wear": 0, "total": programs, "translation_in_gc": 0}
    blocks = CHANNELS * DIES * PLANES * BLOCKS
    erases = rng.poisson(30 * amplification, blocks).astype(np.uint32)
    valid = np.clip(rng.normal(PAGES * 0.9, 14, blocks), 0, PAGES).astype(np.uint32)
    summary = {
        "all": times(requests, 4e5),
        "read": times(250_000, 9e4),
        "write": times(written, 6e5),
    }
    silent = {"all": nothing(), "read": nothing(), "write": nothing()}
    ended = requests * 21_000
    value: dict[str, Any] = {
        "version": "0.1.0",
        "config": {
            "name": "default",
            "about": "A small drive that fills and cleans within seconds.",
            "geometry": {
                "channels": CHANNELS,
                "dies-per-channel": DIES,
                "planes-per-die": PLANES,
                "blocks-per-plane": BLOCKS,
                "pages-per-block": PAGES,
                "page-size": "4 KiB",
            },
            "capacity": {"utilization": 0.9, "logical": "0 B"},
            "timing": {"model": "parallel" if timed else "none", "read": "50 us"},
            "gc": {"victim": {"policy": label.split(" = ")[-1]}, "free-blocks-min": 2},
        },
        "seed": 18446744073709551615,
        "workload": "uniform:write=0.8",
        "precondition": {
            "spec": "steady",
            "pages_written": 5_000_000,
            "steady": True,
            "write_amplification_rounds": [amplification * (1 - 0.5 / 1.8**k) for k in range(9)],
        },
        "pace": {"closed": {"depth": 32}},
        "ended": "complete",
        "note": None,
        "measured": {
            "requests": requests,
            "duration_ns": ended if timed else None,
            "warmup_requests": 0,
        },
        "host": {"pages_read": 250_000, "pages_written": written, "pages_trimmed": 0, "bytes": 5e9},
        "flash": {
            "reads": by_cause | {"host": 250_000},
            "programs": by_cause,
            "erases": by_cause | {"host": 0, "gc": 20_000, "total": 20_000},
            "oob_reads": dict.fromkeys(by_cause, 0),
            "reads_unmapped": 0,
        },
        "write_amplification": amplification,
        "gc": {"collections": 20_000, "efficiency": 1 / amplification},
        "merges": {"switch": None, "partial": None, "full": None, "full_by_data_blocks": None},
        "mapping_cache": {"lookups": None, "hits": None, "hit_ratio": None},
        "buffer": None,
        "scheme": {"ram_bytes": 4_194_304, "extra": {}},
        "wear": {
            "erases_per_block": {
                "min": int(erases.min()),
                "max": int(erases.max()),
                "mean": float(erases.mean()),
                "stdev": float(erases.std()),
            },
            "blocks_worn_out": 0,
            "endurance_efficiency": 0.31,
        },
        "response_time_ns": summary if timed else silent,
        "service_time_ns": summary if timed else silent,
        "throughput": {
            "iops": 47_619.05 if timed else None,
            "bytes_per_s": 195e6 if timed else None,
        },
        "busy": {
            "dies": (rng.uniform(0.7, 0.95, CHANNELS * DIES) * timed).tolist(),
            "channels": (rng.uniform(0.2, 0.3, CHANNELS) * timed).tolist(),
        },
        "verify": {"enabled": True, "violations": 0},
        "drive": {"logical_pages": 943_718, "physical_pages": 1_048_576, "logical_bytes": 3.9e9},
        "digest": "0123456789abcdef",
        "run": {"cpu_s": 1.25, "requests_per_cpu_s": 1e6, "peak_rss_bytes": 50_000_000},
    }
    run = MadeUp(
        value,
        label,
        windows(rows, amplification, timed, rng),
        erases,
        valid,
        {kind: distribution(3e5 * k, timed) for k, kind in enumerate(("read", "all", "write"), 1)},
    )
    run.json |= changes
    return run


def windows(rows: int, amplification: float, timed: bool, rng: np.random.Generator) -> pa.Table:
    """A drive that fills up and then cleans; the first tenth of the windows has no victims."""
    at = np.arange(1, rows + 1, dtype=np.float64)
    rise = 1 + (amplification - 1) * (1 - np.exp(-at / (rows / 5 or 1)))
    noisy = rise * rng.normal(1, 0.02, rows)
    written = np.full(rows, 500)
    no_time = np.full(rows, None)
    victims = np.where(at < rows / 10, np.nan, PAGES * (1 - 1 / noisy))
    return pa.table(
        {
            "requests_end": (at * 625).astype(np.uint64),
            "time_end_ns": (at * 13e6 * timed).astype(np.uint64),
            "requests": np.full(rows, 625, dtype=np.uint64),
            "pages_read": np.full(rows, 125, dtype=np.uint64),
            "pages_written": written.astype(np.uint64),
            "programs": (written * noisy).astype(np.uint64),
            "programs_gc": (written * (noisy - 1)).clip(0).astype(np.uint64),
            "reads_flash": np.full(rows, 300, dtype=np.uint64),
            "erases": np.full(rows, 8, dtype=np.uint64),
            "collections": np.full(rows, 8, dtype=np.uint64),
            "victim_pages_valid_mean": pa.array(victims, from_pandas=True, type=pa.float64()),
            "write_amplification": pa.array(noisy),
            "response_mean_ns": pa.array(noisy * 2e5 if timed else no_time, type=pa.float64()),
            "response_p99_ns": pa.array(
                (noisy * 2e6).astype(np.uint64) if timed else no_time, type=pa.uint64()
            ),
            "iops": pa.array(1e5 / noisy if timed else no_time, type=pa.float64()),
        }
    )


def distribution(
    middle: float, timed: bool = True
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Log-normal-like: some hundreds of points, dense at the slow end, the last share 1."""
    if not timed:
        return np.array([], dtype=np.uint64), np.array([])
    shares = np.append(1 - 0.5 ** np.linspace(0.02, 20, 430), 1.0)
    ns = middle * np.exp(0.25 * np.linspace(-3, 20, 431))
    return ns.astype(np.uint64), shares


def comparison() -> list[MadeUp]:
    """Four runs that differ in one key."""
    found = {"greedy": 2.2, "cost-benefit": 2.35, "d-choice": 2.6, "fifo": 3.5}
    return [
        a_run(f"gc.victim = {name}", seed=k, amplification=wa)
        for k, (name, wa) in enumerate(found.items())
    ]


def a_closeup(seed: int, slowest: float = 4e8, rows: int = 100) -> pa.Table:
    """Requests of which every twentieth cleans, and the next four wait for it."""
    rng = np.random.default_rng(seed)
    at = np.arange(rows)
    cleans = at % 20 == 7
    service = np.where(cleans, slowest, 4e5).astype(np.uint64)
    queue = np.where((at % 20 > 7) & (at % 20 < 12), slowest * (12 - at % 20) / 5, 0)
    kinds = pa.array(rng.choice(["read", "write"], rows)).dictionary_encode()
    return pa.table(
        {
            "request": (4920 + at).astype(np.uint64),
            "arrival_ns": (at * 1e7).astype(np.uint64),
            "queue_ns": queue.astype(np.uint64),
            "service_ns": service,
            "kind": kinds,
            "lpn": at.astype(np.uint32),
            "pages": np.full(rows, 2, dtype=np.uint32),
            "flash_ops": np.where(cleans, 700, 2).astype(np.uint32),
            "erases": np.where(cleans, 9, 0).astype(np.uint32),
        }
    )


def looks(run: MadeUp, moments: int = 20, joined: int = 1, requests: int = 1_250_000) -> Snapshots:
    """Looks at the blocks of a run, whose wear grows evenly to what it is in the end."""
    share = np.linspace(0, 1, moments)
    ends = [run.erases_per_block, run.valid_per_block]
    rows = [np.asarray(end, dtype=np.float32).reshape(-1, BLOCKS) for end in ends]
    cells = -(-BLOCKS // joined)
    starts = np.arange(0, BLOCKS, joined)
    counts = np.add.reduceat(np.ones(BLOCKS), starts)
    means = [(np.add.reduceat(row, starts, axis=1) / counts).ravel() for row in rows]
    assert len(means[0]) == CHANNELS * DIES * PLANES * cells
    erases, valid = (np.floor(np.outer(share, mean)).astype(np.float32) for mean in means)
    times = (share * requests * 21_000).astype(np.uint64)
    return Snapshots(joined, (share * requests).astype(np.uint64), times, erases, valid)


def schemes() -> list[MadeUp]:
    """Two schemes by three rates, one of them by two sizes of its RAM too, looked at closely."""
    found: list[MadeUp] = []
    for rate in (5, 20, 80):
        for k, ram in enumerate((None, "4 KiB", "16 KiB")):
            scheme = "dftl" if ram else "fast"
            varied: dict[str, object] = {"ftl.scheme": scheme, "workload.rate": rate}
            if ram:
                varied["ftl.dftl.ram"] = ram
            label = ", ".join(f"{key}={value}" for key, value in varied.items())
            run = a_run(label, seed=len(found), amplification=4.0 - k, rows=200)
            run.json["response_time_ns"]["all"] = times(1_250_000, 1e5 * rate * (3 - k))
            if ram:
                run.json["mapping_cache"] = {"lookups": 100, "hits": 30 * k, "hit_ratio": 0.3 * k}
            else:
                run.json["merges"] = {"full": 9, "full_by_data_blocks": [5, 1, 0, 2, 1]}
            run.varied, run.closeup = varied, a_closeup(k, 4e8 / (k + 1))
            found.append(run)
    return found


def written(tmp_path: Path, *shown: MadeUp, title: str = "A run") -> str:
    path = tmp_path / "report.html"
    write_report(path, shown, title)
    return path.read_text(encoding="utf-8")


def embedded(page: str, key: str) -> Any:
    found = re.search(rf'<script type="application/json" id="{key}">(.*?)</script>', page, re.S)
    assert found
    return json.loads(found[1])


class Tags(html.parser.HTMLParser):
    """All start tags with their attributes, and all text outside of scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.inside: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self.inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style"):
            self.inside.pop()

    def handle_data(self, data: str) -> None:
        if not self.inside:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


def test_one_run_is_one_small_file_with_every_chart(tmp_path: Path) -> None:
    page = written(tmp_path, a_run())
    assert len(page.encode()) < 400_000
    tags = Tags(page)
    plots = [a["data-chart"] for _, a in tags.tags if "data-chart" in a]
    assert plots == [
        "wa",
        "iops",
        "response",
        "victims",
        "cdf",
        "tail",
        "causes",
        "rounds",
        "erases-histogram",
        "erases-map-0",
        "valid-histogram",
        "valid-map-0",
        "busy",
    ]
    assert set(plots) == set(embedded(page, "plots")["charts"])
    assert [a for tag, a in tags.tags if tag == "p" and a.get("class") == "missing"] == []
    assert list(tmp_path.iterdir()) == [tmp_path / "report.html"]


@pytest.mark.parametrize("count", [2, 4, 12])
def test_several_runs_stay_small(tmp_path: Path, count: int) -> None:
    shown = [a_run(f"seed = {k}", seed=k, amplification=2 + k / 10) for k in range(count)]
    assert len(written(tmp_path, *shown).encode()) < 1_000_000


def test_sweeps_merges_and_close_ups(tmp_path: Path) -> None:
    page = written(tmp_path, *schemes())
    assert len(page.encode()) < 1_000_000
    plots = embedded(page, "plots")
    charts, columns = plots["charts"], plots["columns"]
    sections = re.findall(r'<h2 id="(\w+)-title">(?:By )?([^<]*)<', page)
    assert ("sweep0", "workload.rate") in sections and ("sweep1", "ftl.dftl.ram") in sections
    # By rate: a line for each scheme and RAM; by RAM: FAST, which has none of it, is level.
    parts = {key: [line["part"] for line in charts[key]["views"][0]["series"]] for key in charts
             if key.startswith("sweep")}  # fmt: skip
    assert parts["sweep0-wa"] == [
        "ftl.scheme=fast",
        "ftl.scheme=dftl, ftl.dftl.ram=4 KiB",
        "ftl.scheme=dftl, ftl.dftl.ram=16 KiB",
    ]
    assert parts["sweep0-hits"] == parts["sweep0-wa"][1:]
    levels = [line["level"] for line in charts["sweep1-wa"]["views"][0]["series"]]
    assert levels == [True, False] * 3
    assert columns["sweep0.x"] == [5, 20, 80] and columns["sweep1.x"] == [4096, 16384]
    assert columns["sweep0.wa.1"] == [3, 3, 3]
    assert columns["0.merges"] == [0, 0.25, 0.25, 0.75, 1]
    assert [run["run"] for run in charts["merges"]["views"][0]["series"]] == [0, 3, 6]
    assert "Without data for this: ftl.scheme=dftl" not in Tags(page).text
    assert columns["0.closeup.service_ns"][7] == 4e8 and columns["0.closeup.erases"][7] == 9
    assert len([key for key in charts if key.startswith("closeup")]) == 9


def test_a_sweep_needs_numbers_of_one_kind(tmp_path: Path) -> None:
    def sections_of(*values: object) -> list[str]:
        shown = [a_run(f"k={value}", rows=9) for value in values]
        for run, value in zip(shown, values, strict=True):
            run.varied = {"k": value}
        return [part.key for part in figures.sections(shown, Columns())]

    assert "sweep0" in sections_of(1, 2.5)
    assert "sweep0" in sections_of("70%", "80 %")
    assert "sweep0" in sections_of("10 ms", "1 s")
    assert "sweep0" not in sections_of("greedy", "fifo")
    assert "sweep0" not in sections_of(1, "1 KiB")
    assert "sweep0" not in sections_of(3, 3)


def test_a_long_close_up_is_cut_short_in_the_page_only(tmp_path: Path) -> None:
    run = a_run()
    run.closeup = a_closeup(1, rows=5000)
    page = written(tmp_path, run)
    assert len(embedded(page, "plots")["columns"]["0.closeup.erases"]) == 2000
    assert "The first 2,000 of 5,000." in Tags(page).text
    silent = a_run(timed=False)
    silent.closeup = a_closeup(1)
    assert "so no request waited" in written(tmp_path, silent)
    run.closeup = a_closeup(1, rows=0)
    assert "The run ended before these requests." in written(tmp_path, run)


def decoded(view: dict[str, Any]) -> np.ndarray[Any, Any]:
    """The cells of a film as its script reads them, a row a moment."""
    levels = {letter: level for level, letter in enumerate(view["alphabet"])}
    low, high = view["scale"]
    frames = np.asarray([[levels[letter] for letter in frame] for frame in view["frames"]])
    cells: np.ndarray[Any, Any] = low + frames * (high - low) / (len(levels) - 1)
    return cells


def test_a_film_holds_what_was_looked_at(tmp_path: Path) -> None:
    run = a_run()
    run.snapshots = looks(run, moments=5)
    plots = embedded(written(tmp_path, run), "plots")
    view = plots["charts"]["film-erases-0"]["views"][0]
    assert plots["columns"][view["requests"]] == [0, 312_500, 625_000, 937_500, 1_250_000]
    low, high = view["scale"]
    assert (low, high) == (0, int(run.erases_per_block.max()))
    half_a_level = (high - low) / 63 / 2
    assert np.abs(decoded(view) - run.snapshots.erases).max() <= half_a_level + 1e-9
    valid = plots["charts"]["film-valid-0"]["views"][0]
    assert np.abs(decoded(valid) - run.snapshots.valid).max() <= PAGES / 63 / 2 + 1e-9
    # Few levels are told exactly.
    few = a_run()
    few.erases_per_block = few.erases_per_block % 41
    few.snapshots = looks(few)
    plots = embedded(written(tmp_path, few), "plots")
    view = plots["charts"]["film-erases-0"]["views"][0]
    assert view["exact"]
    assert np.array_equal(np.rint(decoded(view)), few.snapshots.erases)


def test_no_film_without_looks(tmp_path: Path) -> None:
    charts = embedded(written(tmp_path, a_run()), "plots")["charts"]
    assert not any(key.startswith("film") for key in charts)


@pytest.mark.parametrize(("count", "moments"), [(1, 1000), (3, 200), (24, 100)])
def test_films_fit_the_budget(tmp_path: Path, count: int, moments: int) -> None:
    shown = [a_run(f"seed = {seed}", seed=seed) for seed in range(count)]
    for run in shown:
        run.snapshots = looks(run, moments)
    page = written(tmp_path, *shown)
    assert len(page) < 2_000_000
    views = [chart["views"][0] for chart in embedded(page, "plots")["charts"].values()]
    films = [view for view in views if "frames" in view]
    assert len(films) == 2 * count
    letters = sum(len(frame) for view in films for frame in view["frames"])
    assert 0.3 * film.CHARACTERS_MAX < letters <= film.CHARACTERS_MAX
    first = films[0]
    cells = CHANNELS * DIES * PLANES * first["cells"]
    assert all(len(frame) == cells for frame in first["frames"])
    # Both ends are kept, and a joined cell is the mean of its blocks.
    taken = shown[0].snapshots
    assert taken is not None
    last = taken.erases[-1].reshape(CHANNELS * DIES, BLOCKS)
    starts = np.arange(0, BLOCKS, first["joined"])
    wanted = np.add.reduceat(last, starts, axis=1) / np.add.reduceat(np.ones(BLOCKS), starts)
    low, high = first["scale"]
    assert np.abs(decoded(first)[-1] - wanted.ravel()).max() <= (high - low) / 63 / 2 + 1e-4


def test_cells_that_the_simulator_joined_are_joined_further(tmp_path: Path) -> None:
    run = a_run()
    run.snapshots = looks(run, moments=900, joined=3)
    view = embedded(written(tmp_path, run), "plots")["charts"]["film-valid-0"]["views"][0]
    assert view["joined"] % 3 == 0 and view["joined"] > 3
    assert view["cells"] == math.ceil(math.ceil(BLOCKS / 3) / (view["joined"] // 3))
    whole = run.valid_per_block.mean()
    shares = np.minimum(view["joined"], BLOCKS - view["joined"] * np.arange(view["cells"]))
    last = decoded(view)[-1].reshape(-1, view["cells"])
    assert (last @ shares).sum() / len(run.valid_per_block) == pytest.approx(whole, rel=0.03)


@pytest.mark.parametrize("count", [24, 60])
def test_large_grids_stay_below_two_megabytes(tmp_path: Path, count: int) -> None:
    shown = [a_run(f"k={k}", seed=k, rows=2000) for k in range(count)]
    for k, run in enumerate(shown):
        run.varied, run.closeup = {"k": k}, a_closeup(k, rows=1000)
    page = written(tmp_path, *shown)
    assert len(page.encode()) < 2_000_000
    assert ("Maps are omitted" in page) == (count > 24) == ("erases-map-0" not in page)


def test_a_large_drive_stays_small(tmp_path: Path) -> None:
    run = a_run()
    geometry = run.json["config"]["geometry"]
    geometry |= {
        "channels": 16,
        "dies-per-channel": 8,
        "planes-per-die": 2,
        "blocks-per-plane": 1001,
    }
    run.erases_per_block = np.arange(16 * 8 * 2 * 1001, dtype=np.uint32)
    run.valid_per_block = run.erases_per_block % 128
    page = written(tmp_path, run)
    assert len(page.encode()) < 700_000
    view = embedded(page, "plots")["charts"]["erases-map-0"]["views"][0]
    values = embedded(page, "plots")["columns"][view["values"]]
    assert view["joined"] == 8
    assert view["cells"] == 126
    assert len(values) == 16 * 8 * 2 * 126
    assert values[:2] == [3.5, 11.5]  # the means of 0-7 and 8-15


def test_nothing_is_loaded(tmp_path: Path) -> None:
    page = written(tmp_path, *comparison())
    tags = Tags(page)
    for tag, attributes in tags.tags:
        assert tag not in ("iframe", "object", "embed", "base", "img")
        for name in ("src", "href", "srcset", "action", "poster", "data"):
            assert (attributes.get(name) or "data:,").startswith(("data:", "#")), (tag, attributes)
    policy = next(a["content"] for _, a in tags.tags if a.get("http-equiv"))
    assert policy and "default-src 'none'" in policy and "http" not in policy
    style = page[page.index("<style>") : page.index("</style>")]
    assert "url(" not in style and "@import" not in style
    scripts = sorted((ROOT / "python/flashwright/report/static").rglob("*.js"))
    code = "".join(script.read_text(encoding="utf-8") for script in scripts)
    assert not re.search(r"fetch\(|XMLHttpRequest|import\(|WebSocket|sendBeacon", code)
    assert re.findall(r"https?://[^\"]*", code) == ["http://www.w3.org/2000/svg"]


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    run = a_run(HOSTILE)
    run.json |= {"workload": HOSTILE, "note": HOSTILE, "command": HOSTILE}
    run.json["config"] |= {"name": HOSTILE, "about": HOSTILE, HOSTILE: HOSTILE}
    run.json["scheme"]["extra"] = {HOSTILE: 3}
    run.violations = [HOSTILE]
    other = a_run("other " + HOSTILE, timed=False)
    page = written(tmp_path, run, other, title=HOSTILE)
    tags = Tags(page)
    assert [tag for tag, _ in tags.tags].count("script") == 4
    assert not [a for _, a in tags.tags if any(name.startswith("on") for name in a)]
    assert "img" not in [tag for tag, _ in tags.tags]
    assert "49" not in re.findall(r"alert\(1\)&gt; .{0,30}", page)[0]
    assert HOSTILE in " ".join(tags.texts)
    assert embedded(page, "results")[0]["json"]["workload"] == HOSTILE
    assert embedded(page, "plots")["runs"][0] == HOSTILE


def test_without_time_the_charts_of_time_say_why(tmp_path: Path) -> None:
    page = written(tmp_path, a_run(timed=False))
    charts = embedded(page, "plots")["charts"]
    assert not {"iops", "response", "cdf", "tail", "busy"} & set(charts)
    assert [view["name"] for view in charts["wa"]["views"]] == ["by requests"]
    assert Tags(page).text.count("No time was kept") == 5


def test_where_only_some_runs_kept_time_the_others_are_named(tmp_path: Path) -> None:
    page = written(tmp_path, a_run("a"), a_run("b", timed=False))
    assert "Without data for this: b." in Tags(page).text
    by_time, by_requests = embedded(page, "plots")["charts"]["wa"]["views"]
    assert [line["run"] for line in by_time["series"]] == [0]
    assert [line["run"] for line in by_requests["series"]] == [0, 1]


def test_a_run_of_nothing_still_makes_a_page(tmp_path: Path) -> None:
    empty = np.array([], dtype=np.uint32)
    none = MadeUp({}, "nothing", pa.table({}), empty, empty, {})
    page = written(tmp_path, none)
    assert embedded(page, "plots")["charts"] == {}
    assert "not verified" in page
    nulls = MadeUp(dict.fromkeys(a_run().json), "null", pa.table({}), empty, empty, {})
    written(tmp_path, none, nulls)


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_short_series(tmp_path: Path, rows: int) -> None:
    page = written(tmp_path, a_run(rows=rows))
    assert ("wa" in embedded(page, "plots")["charts"]) == (rows > 0)


def test_geometry_that_disagrees_is_one_long_row(tmp_path: Path) -> None:
    run = a_run()
    run.erases_per_block = np.arange(7, dtype=np.uint32)
    view = embedded(written(tmp_path, run), "plots")["charts"]["erases-map-0"]["views"][0]
    assert (view["channels"], view["dies"], view["planes"], view["cells"]) == (1, 1, 1, 7)


@pytest.mark.parametrize(
    ("changes", "badge"),
    [
        ({"workload": "stand-in:financial1, seed 3"}, "warn stand-in workload"),
        ({"ended": "interrupted"}, "warn interrupted"),
        ({"ended": "worn-out"}, "bad worn out"),
        ({"verify": {"enabled": True, "violations": 0}}, "good verified"),
        ({"verify": {"enabled": False, "violations": None}}, "plain not verified"),
        ({"verify": {"enabled": True, "violations": 2}}, "bad verify: 2 violations"),
        ({"precondition": {"spec": "steady", "steady": False}}, "warn not steady"),
    ],
)
def test_badges(tmp_path: Path, changes: dict[str, Any], badge: str) -> None:
    page = written(tmp_path, a_run(**changes))
    found = re.findall(r'class="badge (\w+)"[^>]*>([^<]*)<', page)
    assert badge in [f"{tone} {shown}" for tone, shown in found]


def test_many_violations_are_cut_short(tmp_path: Path) -> None:
    run = a_run()
    run.violations = [f"block {k} is lost" for k in range(1_234)]
    page = written(tmp_path, run)
    assert page.count("is lost") == 50
    assert "and 1,184 more" in page and "verify: 1,234 violations" in page


def test_the_json_survives_to_the_last_digit(tmp_path: Path) -> None:
    run = a_run(extra=float("nan"))
    kept = embedded(written(tmp_path, run), "results")
    assert kept.pop("extra") is None
    del run.json["extra"]
    assert kept == run.json


def test_best_values_are_marked_only_where_runs_differ() -> None:
    table = all_figures(comparison())
    best = {row[0].shown: [cell.best for cell in row[1:]] for row in table.rows}
    assert best["Write amplification"] == [True, False, False, False]
    assert best["Cleaning efficiency"] == [True, False, False, False]
    assert best["IOPS"] == [False] * 4
    assert "Merges: full" not in best


def test_settings_that_differ_are_named(tmp_path: Path) -> None:
    _, differ = configuration(comparison())
    assert differ == ["gc.victim.policy"]
    assert "The runs differ in <code>gc.victim.policy</code>" in written(tmp_path, *comparison())


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("flashwright simulate default --seed 1", "flashwright simulate default --seed 1"),
        (
            ["flashwright", "simulate", "my drive.toml"],
            "flashwright simulate &#39;my drive.toml&#39;",
        ),
    ],
)
def test_the_command_line_is_shown(tmp_path: Path, command: Any, shown: str) -> None:
    assert f"<pre><code>{shown}</code></pre>" in written(tmp_path, a_run(command=command))


def test_joined_windows_keep_sums_weights_and_the_largest_percentile() -> None:
    table = pa.table(
        {
            "requests_end": [10, 40, 50],
            "time_end_ns": [1e9, 2e9, 3e9],
            "requests": [10, 30, 10],
            "pages_written": [10, 30, 0],
            "programs": [20, 120, 5],
            "collections": [1, 3, 0],
            "victim_pages_valid_mean": [4.0, 8.0, None],
            "response_mean_ns": [100.0, 200.0, None],
            "response_p99_ns": [500, 300, None],
            "iops": [10.0, 30.0, None],
            "power_w": [2.0, 5.0, None],
        }
    )
    found = runs.series(table, 2)
    assert found["joined"] == [2]
    assert found["requests"].tolist() == [40, 50]
    # 140 programs over 40 written; (10 * 100 + 30 * 200) / 40; (4 + 3 * 8) / 4; 40 requests in 2 s;
    # 2 W and 5 W for 1 s each.
    expected = {"wa": 3.5, "mean": 175.0, "victims": 7.0, "p99": 500.0, "iops": 20.0, "power": 3.5}
    assert {name: found[name][0] for name in expected} == expected
    assert all(np.isnan(found[name][1]) for name in expected)


def test_power_is_drawn_where_energy_is_known() -> None:
    def keys(run: Any) -> list[str]:
        return [
            chart.key for section in figures.sections([run], Columns()) for chart in section.charts
        ]

    run = a_run()
    assert "wa" in keys(run) and "power" not in keys(run)
    run.json["energy"] = {"total_j": 1.0}
    watts = pa.array(np.full(run.windows.num_rows, 1.5))
    run.windows = run.windows.append_column("power_w", watts)
    assert "power" in keys(run)


def test_the_histogram_counts_every_block() -> None:
    run = a_run()
    columns = Columns()
    figures.sections([run], columns)
    shares = [share or 0 for share in columns.numbers["0.erases.histogram"]]
    assert sum(shares) == pytest.approx(1, abs=1e-3)
    assert columns.numbers["erases.edges"][1] == run.erases_per_block.min() - 0.5


def test_every_chart_has_its_figures_in_a_table() -> None:
    for part in figures.sections(comparison(), Columns()):
        for chart in part.charts:
            assert chart.table is not None
            assert chart.table.rows
            assert all(len(row) == len(chart.table.header) for row in chart.table.rows)


def test_blocks_belong_to_their_dies() -> None:
    run = a_run()
    run.erases_per_block = np.arange(CHANNELS * DIES * BLOCKS, dtype=np.uint32)
    blocks = next(part for part in figures.sections([run], Columns()) if part.key == "blocks")
    table = next(chart for chart in blocks.charts if chart.key == "erases-map-0").table
    assert table is not None
    last = [cell.shown for cell in table.rows[-1]]
    assert last == ["channel 3, die 1", "7,168", "7,680", "7,680", "8,191"]


def test_the_tail_is_the_rest_of_the_distribution() -> None:
    run = a_run()
    run.response_distribution = {"all": (np.array([100, 300]), np.array([0.75, 1.0]))}
    columns = Columns()
    figures.sections([run], columns)
    assert columns.numbers["0.all.ns"] == [100, 100, 300]
    assert columns.numbers["0.all.cdf"] == [0, 0.75, 1]
    assert columns.numbers["0.all.tail"] == [1, 0.25, None]


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (text.time_ns(999), "999 ns"),
        (text.time_ns(52_340), "52.34 µs"),
        (text.time_ns(0), "0 ns"),
        (text.share(0.12345), "12.35 %"),
        (text.size_bytes(4096), "4 KiB"),
        (text.size_bytes(512), "512 B"),
        (text.count(1_234_567), "1,234,567"),
        (text.count(1.5), "1.5"),
        (text.rate_bytes(195e6), "195 MB/s"),
        (text.setting({"open": {"time_scale": 0.5}}), "open: time_scale = 0.5"),
        (text.setting({}), "–"),
        (text.setting(float("inf")), "–"),
    ],
)
def test_numbers_read_well(shown: str, expected: str) -> None:
    assert shown == expected


def test_words_stand_left_and_numbers_right() -> None:
    rows = [[tables.Cell("a"), tables.Cell("–"), tables.Cell("yes", "yes"), tables.Cell("–")]]
    rows.append([tables.Cell("b"), tables.Cell("2", 2), tables.Cell("–"), tables.Cell("–")])
    assert tables.Table(["Run", "Erases", "Steady", "Nothing"], rows).words == {0, 2}


def test_a_series_keeps_its_columns_in_order_of_x() -> None:
    columns = Columns()
    found = series(
        columns, "s", [3, 1, math.nan], x=[9, 1, 4], name="n", low=[2, 0, 1], high=[4, 2, 1]
    )
    assert found == {
        "part": "n", "colour": 0, "x": "s.x", "y": "s.y", "low": "s.low", "high": "s.high",
    }  # fmt: skip
    assert columns.numbers == {
        "s.x": [1, 4, 9], "s.y": [1, None, 3], "s.low": [0, 1, 2], "s.high": [2, 1, 4],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"low": [1, 2]}, "series s: an interval has two ends"),
        ({"x": [1]}, r"series s: found columns of {'x': 1, 'y': 2}, expected one length"),
    ],
)
def test_a_series_of_unequal_columns_is_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        series(Columns(), "s", [1, 2], name="n", **wrong)


def test_it_needs_a_run_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least one run"):
        write_report(tmp_path / "report.html", [], "nothing")
    with pytest.raises(OutputError, match="no such file or directory"):
        write_report(tmp_path / "missing" / "report.html", [a_run(rows=1)], "nowhere")


def test_an_older_report_is_replaced_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.html"
    path.write_text("older")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", fail)
        with pytest.raises(OutputError, match="disk full"):
            write_report(path, [a_run(rows=1)], "new")
    assert path.read_text() == "older"
    assert list(tmp_path.iterdir()) == [path]
    write_report(path, [a_run(rows=1)], "new")
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert stat.S_IMODE(path.stat().st_mode) & 0o600 == 0o600
