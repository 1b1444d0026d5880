"""Reports in a real browser: charts are drawn; zoom, read-outs, legends, sorting and themes work.

Needs Playwright and a Chromium; without them the tests are skipped and say so. The browser is
looked for in ``FLASHWRIGHT_CHROMIUM``, then on the path.
"""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import needs
from flashwright import Ssd, advise
from flashwright.advice.pages import write_advice
from flashwright.endurance.pages import write_formula
from flashwright.report import Findings, write_findings
from flashwright.report.charts import Chart, Columns, Section, axis, categories, series
from flashwright.report.tables import Badge, Cell, Table, Tone
from flashwright.simulation.pages import RunsPage, write_report
from flashwright.simulation.run import RunSettings
from test_report import HOSTILE, MadeUp, a_closeup, a_run, comparison, looks, schemes
from test_report_verdicts import SETTLED, TRANSIENT, WARNING

sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")


def chromium() -> str:
    return os.environ.get("FLASHWRIGHT_CHROMIUM") or needs.need("chromium")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    path = chromium()
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


Open = Callable[..., Any]
UNDRAWN = ".plot:not(:has(> svg))"


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Opens reports; fails at the end if a page complained or asked for anything."""
    complaints: list[str] = []
    contexts: list[Any] = []

    def open_report(
        *shown: MadeUp | Findings, width: int = 1200, scheme: str = "light", touch: bool = False
    ) -> Any:
        path = tmp_path / "report.html"
        if isinstance(shown[0], Findings):
            write_findings(path, shown[0])
        else:
            write_report(path, [run for run in shown if isinstance(run, MadeUp)], "A report")
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            accept_downloads=True,
            has_touch=touch,
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on("request", lambda request: ask(request.url, path))
        page.goto(path.as_uri())
        page.wait_for_selector(UNDRAWN, state="detached")
        return page

    def ask(url: str, path: Path) -> None:
        if url != path.as_uri() and not url.startswith(("blob:file:", "data:,")):
            complaints.append(f"request: {url}")

    yield open_report
    for context in contexts:
        context.close()
    assert complaints == []


def ticks(page: Any, chart: str) -> list[str]:
    """The tick labels of a chart, vertical axis first."""
    texts: list[str] = page.locator(f"#chart-{chart} svg .tick").all_text_contents()
    return texts


def axis_titles(page: Any, chart: str) -> list[str]:
    """The titles of a chart's axes, vertical one first."""
    texts: list[str] = page.locator(f"#chart-{chart} svg .label").all_text_contents()
    return texts


def not_a_number(page: Any) -> int:
    """Drawings with a coordinate that is none."""
    count: int = page.evaluate(
        "[...document.querySelectorAll('.plot')].filter(p => p.innerHTML.includes('NaN')).length"
    )
    return count


def drag(page: Any, chart: str, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Drags between two points, given as shares of the width and height of a chart."""
    plot = page.locator(f"#chart-{chart} .plot")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    at = [(box["x"] + box["width"] * x, box["y"] + box["height"] * y) for x, y in (start, end)]
    page.mouse.move(*at[0])
    page.mouse.down()
    page.mouse.move(*at[1], steps=5)
    page.mouse.up()


def test_every_chart_is_drawn(opened: Open) -> None:
    page = opened(a_run())
    plots = page.locator(".plot").count()
    assert plots == 13
    assert page.locator(".plot svg").count() == plots
    drawn = "path.line, path.bar, path.cells, rect.part"
    empty = page.eval_on_selector_all(
        ".plot",
        f"plots => plots.filter(p => !p.querySelector('{drawn}')).map(p => p.dataset.chart)",
    )
    assert empty == []
    assert not_a_number(page) == 0


def test_no_time_and_nothing_at_all(opened: Open) -> None:
    assert opened(a_run(timed=False)).locator(".plot svg").count() == 8


@pytest.mark.parametrize("width", [1200, 390])
def test_nothing_overlaps_or_sticks_out(opened: Open, width: int) -> None:
    page = opened(*comparison(), *schemes(), width=width)
    sticks_out = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    assert not page.evaluate(sticks_out)
    faults = page.evaluate(
        """() => [...document.querySelectorAll('.plot svg')].flatMap((svg) => {
          const chart = svg.parentElement.dataset.chart;
          const frame = svg.getBoundingClientRect();
          const texts = [...svg.querySelectorAll('text')].map((text) => [
            text.textContent, text.getBoundingClientRect()]);
          const outside = (b) => b.left < frame.left - 1 || b.right > frame.right + 1
            || b.top < frame.top - 2 || b.bottom > frame.bottom + 2;
          const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1
            && a.top < b.bottom - 3 && b.top < a.bottom - 3;
          const out = texts.filter(([, box]) => outside(box))
            .map(([text]) => `${chart}: ${text} sticks out`);
          const over = texts.flatMap(([text, box], i) => texts.slice(i + 1)
            .filter(([, other]) => meet(box, other))
            .map(([other]) => `${chart}: ${text} over ${other}`));
          return [...out, ...over];
        })"""
    )
    assert faults == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_sweeps_merges_and_requests_are_drawn(opened: Open, scheme: str) -> None:
    page = opened(*schemes(), scheme=scheme)
    drawn = page.eval_on_selector_all(
        ".plot",
        "plots => Object.fromEntries(plots.map(p => [p.dataset.chart, "
        "p.querySelectorAll('path.line, path.bar').length]))",
    )
    assert {key: drawn[key] for key in ("sweep0-wa", "sweep0-hits", "sweep1-wa", "merges")} == {
        "sweep0-wa": 3, "sweep0-hits": 2, "sweep1-wa": 6, "merges": 3,
    }  # fmt: skip
    assert [drawn[f"closeup-{i}"] for i in range(9)] == [2] * 9
    assert page.locator("#chart-sweep1-wa path.level").count() == 3
    assert ticks(page, "sweep0-response")[-3:] == ["5", "20", "80"]
    assert ticks(page, "sweep1-wa")[-2:] == ["4 KiB", "16 KiB"]
    assert not_a_number(page) == 0


def test_lines_of_a_sweep_hide_together(opened: Open) -> None:
    page = opened(*schemes())
    page.locator("#chart-sweep0-wa").get_by_role("button", name="ftl.scheme=fast").click()
    assert page.locator("#chart-sweep0-wa path.line").count() == 2
    assert page.locator("#chart-sweep0-response path.line").count() == 2
    assert page.locator("#chart-sweep1-wa path.line").count() == 6
    drag(page, "sweep0-wa", (0.55, 0.4), (0.98, 0.4))
    assert not_a_number(page) == 0 and page.locator("#chart-sweep0-wa circle").count() == 2


def test_panels_of_requests_share_zoom_and_scale(opened: Open) -> None:
    page = opened(*schemes()[:3])
    panels = [f"closeup-{i}" for i in range(3)]
    before = [ticks(page, panel) for panel in panels]
    assert before[0] == before[1] == before[2]
    page.locator("#chart-closeup-1").get_by_role("button", name="each its own").click()
    own = [ticks(page, panel) for panel in panels]
    assert own[0] == before[0] and own[2] != before[2]
    page.locator("#chart-closeup-2").get_by_role("button", name="common scale").click()
    assert [ticks(page, panel) for panel in panels] == before
    drag(page, "closeup-1", (0.4, 0.5), (0.5, 0.5))
    after = [ticks(page, panel) for panel in panels]
    assert after[0] == after[1] == after[2] != before[0]
    page.locator("#chart-closeup-0 .plot").dblclick()
    page.locator("#chart-closeup-0").get_by_role("button", name="queueing").click()
    assert page.locator("#chart-closeup-2 path.bar[d='']").count() == 1
    marks = page.locator("#chart-closeup-0 path.mark").get_attribute("d")
    assert marks.count("z") == 5


def test_a_request_can_be_read(opened: Open) -> None:
    run = a_run()
    run.closeup = a_closeup(1)
    page = opened(run)
    plot = page.locator("#chart-closeup-0 .plot")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    # The eighth of the hundred requests between the margins.
    page.mouse.move(box["x"] + 56 + (box["width"] - 72) * 0.075, box["y"] + 60)
    said = page.locator("#chart-closeup-0 .readout").text_content()
    assert re.match(
        r"request 4,927: (read|write), 2 pagesqueueing0 nsservice400 ms"
        r"flash operations700erases9$",
        said,
    )


def fills(page: Any, chart: str) -> list[str]:
    """The colours of a map with the shapes that have them."""
    shown: list[str] = page.eval_on_selector_all(
        f"#chart-{chart} path.cells",
        "paths => paths.map(path => path.getAttribute('fill') + path.getAttribute('d'))",
    )
    return shown


def moment(page: Any, chart: str) -> str:
    text: str = page.locator(f"#chart-{chart} .moment").text_content()
    return text


def test_a_film_can_be_wound_through(opened: Open) -> None:
    run, other = a_run("k = 1"), a_run("k = 2", seed=2)
    run.snapshots, other.snapshots = looks(run, 21), looks(other, 11)
    page = opened(run, other)
    films = ("film-erases-0", "film-valid-0", "film-erases-1", "film-valid-1")
    assert [moment(page, key) for key in films] == ["1,250,000 requests, 26.25 s"] * 4
    # The last moment is the still map of the end, but for the scale.
    slider = page.locator("#chart-film-erases-0 input")
    end = fills(page, "film-erases-0")
    slider.focus()
    page.keyboard.press("Home")
    assert [moment(page, key) for key in films] == ["0 requests, 0 ns"] * 4
    assert page.locator("#chart-film-erases-0 path.cells").count() == 1
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    assert [moment(page, key) for key in films] == ["625,000 requests, 13.13 s"] * 4
    assert slider.get_attribute("aria-valuetext") == "625,000 requests, 13.13 s"
    assert fills(page, "film-erases-0") != end
    page.keyboard.press("End")
    assert fills(page, "film-erases-0") == end
    box = page.locator("#chart-film-valid-0 .plot").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.14, box["y"] + box["height"] * 0.11)
    page.locator("#chart-film-valid-0 .plot").hover(
        position={"x": box["width"] * 0.14, "y": box["height"] * 0.2}
    )
    said = page.locator("#chart-film-valid-0 .readout").text_content()
    assert re.match(r"channel 0, die \dblocks \d+–\d+, meanabout \d[\d.]* valid pages$", said)


def test_a_film_plays_to_its_end_and_stops(opened: Open) -> None:
    run = a_run()
    run.snapshots = looks(run, 8)
    page = opened(run)
    play = page.locator("#chart-film-erases-0 .play")
    assert play.text_content() == "▶ play"
    page.clock.install()
    play.click()
    assert (moment(page, "film-valid-0"), play.text_content()) == ("0 requests, 0 ns", "❚❚ pause")
    page.clock.run_for(3 * 750 + 10)
    assert moment(page, "film-valid-0").startswith("535,714 requests")
    page.locator("#chart-film-valid-0 .play").click()
    page.clock.run_for(3000)
    assert moment(page, "film-erases-0").startswith("535,714 requests")
    play.click()
    page.clock.run_for(10_000)
    assert moment(page, "film-erases-0").startswith("1,250,000 requests")
    assert play.get_attribute("aria-pressed") == "false"


@pytest.mark.parametrize("width", [1200, 390])
def test_a_film_fits_any_width_and_paper(opened: Open, width: int) -> None:
    run = a_run()
    run.snapshots = looks(run, 8)
    page = opened(run, width=width, scheme="dark")
    sticks_out = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    assert not page.evaluate(sticks_out)
    frame = page.locator("#chart-film-valid-0 svg").bounding_box()
    texts = page.locator("#chart-film-valid-0 svg text")
    boxes = [texts.nth(k).bounding_box() for k in range(texts.count())]
    for k, box in enumerate(boxes):
        assert box["x"] >= frame["x"] - 1
        assert box["x"] + box["width"] <= frame["x"] + frame["width"] + 1
        assert box["y"] + box["height"] <= frame["y"] + frame["height"] + 2
        for other in boxes[k + 1 :]:
            apart = (
                box["x"] + box["width"] <= other["x"] + 1
                or other["x"] + other["width"] <= box["x"] + 1
                or box["y"] + box["height"] <= other["y"] + 3
                or other["y"] + other["height"] <= box["y"] + 3
            )
            assert apart
    page.emulate_media(media="print")
    assert page.locator("#chart-film-erases-0 input").is_hidden()
    assert moment(page, "film-erases-0").startswith("1,250,000 requests")
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_zoom_by_drag_is_shared_and_reset_by_double_click(opened: Open) -> None:
    page = opened(a_run())
    before = {key: ticks(page, key) for key in ("wa", "iops", "cdf")}
    assert before["wa"][-1] == "25" and axis_titles(page, "wa")[1].endswith("[s]")
    drag(page, "wa", (0.45, 0.4), (0.55, 0.4))
    after = {key: ticks(page, key) for key in before}
    assert after["wa"] != before["wa"] and after["iops"] != before["iops"]
    assert after["cdf"] == before["cdf"]
    assert all(10 < float(label.removesuffix(" s")) < 16 for label in after["wa"] if " s" in label)
    page.locator("#chart-iops .plot").dblclick()
    assert {key: ticks(page, key) for key in before} == before


def test_zoom_of_both_axes_and_the_reset_button(opened: Open) -> None:
    page = opened(a_run())
    for chart in ("cdf", "erases-map-0", "busy", "causes"):
        before = page.locator(f"#chart-{chart} svg").inner_html()
        reset = page.locator(f"#chart-{chart} .reset")
        assert reset.is_hidden()
        drag(page, chart, (0.3, 0.3), (0.6, 0.6))
        assert page.locator(f"#chart-{chart} svg").inner_html() != before
        reset.click()
        assert page.locator(f"#chart-{chart} svg").inner_html() == before


def test_a_click_alone_zooms_nothing(opened: Open) -> None:
    page = opened(a_run())
    before = ticks(page, "wa")
    drag(page, "wa", (0.5, 0.5), (0.503, 0.5))
    assert ticks(page, "wa") == before


def test_the_choice_of_axis_is_shared(opened: Open) -> None:
    page = opened(a_run())
    page.locator("#chart-wa").get_by_role("button", name="by requests").click()
    assert ticks(page, "iops")[-1] == "1.2 M"
    page.locator("#chart-cdf").get_by_role("button", name="reads").click()
    pressed = page.locator("#chart-cdf .choices [aria-pressed=true]").all_text_contents()
    assert pressed == ["reads"]


def test_the_log_scale_can_be_turned_on_and_off(opened: Open) -> None:
    page = opened(a_run())
    page.locator("#chart-response").get_by_role("button", name="log scale").click()
    assert "0" in ticks(page, "response")[0] and "1" in ticks(page, "response")
    assert axis_titles(page, "response")[0] == "response time [ms]"
    page.locator("#chart-wa").get_by_role("button", name="log scale").click()
    assert "0" not in ticks(page, "wa")


READ_OUTS = (
    ("wa", (0.5, 0.5), "drive's time: "),
    ("cdf", (0.5, 0.5), "response time: "),
    ("causes", (0.3, 0.3), ".*host1gc1.6"),
    ("erases-histogram", (0.5, 0.5), "erases of a block: "),
    ("erases-map-0", (0.14, 0.11), r"channel 0, die 0block \d+\d\d erases"),
    ("busy", (0.1, 0.5), "die 0"),
)


def test_read_outs(opened: Open) -> None:
    page = opened(a_run())
    for chart, at, expected in READ_OUTS:
        plot = page.locator(f"#chart-{chart} .plot")
        plot.scroll_into_view_if_needed()
        box = plot.bounding_box()
        page.mouse.move(box["x"] + box["width"] * at[0], box["y"] + box["height"] * at[1])
        readout = page.locator(f"#chart-{chart} .readout")
        assert readout.is_visible()
        assert re.match(expected, readout.text_content())
        page.mouse.move(0, 0)
        assert readout.is_hidden()


def test_values_can_be_read_and_zoomed_by_keys(opened: Open) -> None:
    page = opened(a_run())
    plot = page.locator("#chart-wa .plot")
    plot.focus()
    before = ticks(page, "wa")
    page.keyboard.press("ArrowRight")
    first = page.locator("#chart-wa .readout").text_content()
    page.keyboard.press("ArrowRight")
    assert page.locator("#chart-wa .readout").text_content() != first
    page.keyboard.press("+")
    assert ticks(page, "wa") != before
    page.keyboard.press("Escape")
    assert ticks(page, "wa") == before


def test_a_finger_zooms_and_reads(opened: Open) -> None:
    page = opened(a_run(), width=390, touch=True)
    plot = page.locator("#chart-wa .plot")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    at = box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.5
    page.touchscreen.tap(*at)
    assert page.locator("#chart-wa .readout").is_visible()
    before = ticks(page, "wa")
    # What a browser makes of a finger that moves sideways.
    for kind, x in (("pointerdown", at[0]), ("pointermove", at[0] + 60), ("pointerup", at[0] + 60)):
        where = {
            "clientX": x,
            "clientY": at[1],
            "pointerType": "touch",
            "pointerId": 1,
            "button": 0,
        }
        plot.evaluate(
            "(plot, [kind, where]) => { plot.setPointerCapture = () => {};"
            " plot.dispatchEvent(new PointerEvent(kind, where)); }",
            [kind, where],
        )
    assert ticks(page, "wa") != before
    page.locator("#chart-wa .reset").click()
    assert ticks(page, "wa") == before


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (("gc.victim=greedy", "gc.victim=fifo"), ["greedy", "fifo"]),
        (("gc.victim = greedy", "gc.victim = fifo"), ["greedy", "fifo"]),
        (("a=1, workload=zipf:write=0.7,depth=2", "a=2, workload=zipf:write=0.7,depth=4"),
         ["1, zipf:write=0.7,depth=2", "2, zipf:write=0.7,depth=4"]),
        (("a=1, b=2", "a=1"), ["a=1, b=2", "a=1"]),
        (("some trace", "another = x"), ["some trace", "another = x"]),
    ],
)  # fmt: skip
def test_legends_leave_out_keys_that_all_runs_set(
    opened: Open, labels: tuple[str, ...], names: list[str]
) -> None:
    page = opened(*(a_run(label) for label in labels))
    assert page.locator("#chart-cdf .legend").all_text_contents() == names


def test_an_axis_of_nothing_but_zero_ends_at_one(opened: Open) -> None:
    columns = Columns()
    view = {
        "name": "", "x": axis("x", "index"), "y": axis("erases", "count", zero=True),
        "series": [series(columns, "s", [0, 0], x=[1, 2], name="s")],
    }  # fmt: skip
    part = Section("p", "P", [Chart("zero", "Zero", "", views=[view])])
    table = Table(["a"], [[Cell("b")]])
    page = opened(Findings("Zero", [], [], table, [], [part], columns, {}))
    assert ticks(page, "zero")[0] == "0" and "1" in ticks(page, "zero")


def test_cells_of_a_map_leave_no_gaps(opened: Open) -> None:
    page = opened(a_run())
    ends = page.eval_on_selector_all(
        "#chart-erases-map-0 path.cells",
        """paths => {
          const edges = [new Set(), new Set()];
          for (const path of paths) for (const [, , top, bottom] of
            path.getAttribute('d').matchAll(/M([\\d.]+) ([\\d.]+)H[\\d.]+V([\\d.]+)/g)) {
            edges[0].add(top); edges[1].add(bottom);
          }
          return edges.map((each) => each.size - [...each].filter((y) => edges[0].has(y)).length);
        }""",
    )
    # Every row ends where the next begins, but for the last of each of the two dies.
    assert ends == [0, 2]


def test_a_run_hidden_in_one_legend_is_hidden_in_all(opened: Open) -> None:
    page = opened(*comparison())
    lines = "path.line"
    assert page.locator(f"#chart-cdf {lines}").count() == 4
    page.locator("#chart-wa").get_by_role("button", name="fifo").click()
    assert page.locator(f"#chart-cdf {lines}").count() == 3
    assert page.locator("#chart-causes rect.part").count() == 6
    assert page.locator("#chart-busy path.bar").count() == 3
    page.locator("#chart-busy").get_by_role("button", name="fifo").click()
    assert page.locator(f"#chart-wa {lines}").count() == 4


def test_all_runs_may_be_hidden(opened: Open) -> None:
    page = opened(*comparison())
    for name in ("greedy", "cost-benefit", "d-choice", "fifo"):
        page.locator("#chart-wa").get_by_role("button", name=name).click()
    assert page.locator("#chart-busy path.bar").count() == 0
    page.locator("#chart-wa .plot").hover()
    assert not_a_number(page) == 0


def test_a_part_can_be_hidden(opened: Open) -> None:
    page = opened(a_run())
    page.locator("#chart-response").get_by_role("button", name="99th percentile").click()
    assert page.locator("#chart-response path.line").count() == 1


def test_tables_sort_and_unsort(opened: Open) -> None:
    runs = comparison()
    runs[1].json["write_amplification"] = None
    page = opened(*runs)
    table = page.locator("#summary table").first

    def order() -> list[str]:
        names: list[str] = table.locator("tbody th").all_text_contents()
        return [name.removeprefix("gc.victim = ") for name in names]

    head = table.get_by_role("button", name="Write amplification")
    original = ["greedy", "cost-benefit", "d-choice", "fifo"]
    assert order() == original
    head.click()
    assert order() == ["greedy", "d-choice", "fifo", "cost-benefit"]
    assert table.locator("[aria-sort=ascending]").count() == 1
    head.click()
    assert order() == ["fifo", "d-choice", "greedy", "cost-benefit"]
    head.click()
    assert order() == original
    table.get_by_role("button", name="Run", exact=True).click()
    assert order() == sorted(original)


def background(page: Any) -> str:
    colour: str = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return colour


def test_themes(opened: Open) -> None:
    light, dark = "rgb(255, 255, 255)", "rgb(20, 23, 27)"
    page = opened(a_run(), scheme="dark")
    button = page.locator("#theme")
    assert (button.text_content(), background(page)) == ("Theme: auto", dark)
    button.click()
    assert (button.text_content(), background(page)) == ("Theme: light", light)
    button.click()
    assert (button.text_content(), background(page)) == ("Theme: dark", dark)
    page.emulate_media(media="print")
    assert background(page) == light
    assert background(opened(a_run(), scheme="light")) == light


def test_the_json_can_be_downloaded(opened: Open) -> None:
    run = a_run()
    page = opened(run)
    with page.expect_download() as download:
        page.locator("#download").click()
    assert download.value.suggested_filename == "A-report.json"
    assert json.loads(Path(download.value.path()).read_text(encoding="utf-8")) == run.json


def test_printing_changes_nothing_for_good(opened: Open) -> None:
    page = opened(a_run())
    before = page.locator("#chart-wa svg").get_attribute("viewBox")
    assert page.pdf(format="A4").startswith(b"%PDF")
    assert page.locator("#chart-wa svg").get_attribute("viewBox") == before


def advice(path: Path) -> None:
    """The page of `flashwright advise` for a small drive."""
    ssd = Ssd.named("default").with_(blocks_per_plane=32).precondition("random")
    found = advise(
        ssd,
        "uniform:write=1,depth=4",
        utilizations=[0.5, 0.65, 0.8, 0.85],
        targets=["write-amplification<=2"],
        settings=RunSettings(requests=8000),
    )
    document = {"workload": HOSTILE, "precondition": "random", "seed": 1, "notes": [HOSTILE]}
    write_advice(path, found, document | {"targets": [t.text for t in found.targets]})


def formula(path: Path) -> None:
    """The page of Equation 1."""
    row = {"used": 0.5, "writable_bytes": 5e14, "residual": [0.9, 0.8]}
    write_formula(
        path, {"rows": [row]}, capacity=1e11, cycles=10_000, written=[5e13, 1e14], factor=1
    )


@pytest.mark.parametrize(("write", "charts"), [(advice, 3), (formula, 1)])
def test_pages_about_no_run(
    browser: Any, tmp_path: Path, write: Callable[[Path], None], charts: int
) -> None:
    path = tmp_path / "page.html"
    write(path)
    for width in (1200, 390):
        complaints: list[str] = []
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme="dark")
        page.on("console", lambda message, said=complaints: said.append(message.text))
        page.on("pageerror", lambda error, said=complaints: said.append(str(error)))
        page.goto(path.as_uri())
        page.wait_for_selector(UNDRAWN, state="detached")
        assert page.locator(".plot svg").count() == charts
        assert not_a_number(page) == 0
        assert page.locator("img").count() == 0
        sticks_out = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        assert not page.evaluate(sticks_out)
        first = page.locator("path.line").count()
        page.locator(".chart .legend").first.click()
        assert page.locator("path.line").count() < first
        page.locator(".chart .legend").first.click()
        page.locator(".plot").first.hover()
        assert page.locator(".readout .value").first.is_visible()
        assert page.pdf(format="A4").startswith(b"%PDF")
        page.close()
        assert complaints == []


def with_marks() -> Findings:
    """A page with intervals, published values and lines of reference, on lines and on bars."""
    columns = Columns()
    shares, ours, paper = [0.5, 0.7, 0.9], [1.2, 2.0, 5.5], [2.2, 4.9]
    ends: dict[str, Any] = {"low": [1.1, 1.9, 5.0], "high": [1.3, 2.1, 6.0]}
    points = {
        "name": "",
        "x": axis("utilisation", "share"),
        "y": axis("write amplification", "number", zero=True),
        "series": [
            series(columns, "wa", ours, x=shares, name="ours", look="points", **ends),
            series(columns, "p", paper, x=[0.7, 0.9], name="paper", look="published", of="ours"),
        ],
        "levels": [[9, "reading of others"], [9.1, "another"]],
        "marks": [[0.7, "knee"], [0.71, "second"]],
    }
    names = [f"a trace with a long name, {k}" for k in range(6)]
    schemes = ("BAST", "FAST")
    bars = {
        "name": "",
        "x": categories("trace", names),
        "y": axis("erases", "count", zero=True),
        "series": [
            *(
                series(columns, f"b{k}", [100 * k + 50 + i for i in range(6)], name=name, colour=k)
                for k, name in enumerate(schemes)
            ),
            series(columns, "bp", [160] * 6, name="paper", look="published", of="FAST"),
        ],
    }
    charts = [
        Chart("points", "Points", "", views=[points]),
        Chart("groups", "Groups", "", kind="bars", views=[bars]),
    ]
    table = Table(
        ["Request", "Kind"], [[Cell("987", 987), Cell("b")], [Cell("1,204", 1204), Cell("a")]]
    )
    part = Section("marks", "Marks", charts)
    return Findings("Marks", [], [], table, [], [part], columns, {"a": 1})


def test_intervals_published_values_and_references(opened: Open) -> None:
    page = opened(with_marks())
    points, groups = page.locator("#chart-points"), page.locator("#chart-groups")
    assert points.locator("path.interval").count() == points.locator("circle").count() == 3
    assert points.locator("path.line").count() == 0
    assert points.locator("svg path.published").count() == 2
    assert points.locator(".halo").all_text_contents() == [
        "knee", "second", "reading of others", "another",
    ]  # fmt: skip
    # A line of reference beyond the values is in sight.
    assert ticks(page, "points")[2] == "10" or "8" in ticks(page, "points")
    box = points.locator(".plot").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.52, box["y"] + 60)
    said = points.locator(".readout").text_content()
    assert said == "utilisation: 70 %ours2 (1.9 to 2.1)ours, paper2.2"
    points.get_by_role("button", name="ours").click()
    assert points.locator("svg path.published, path.interval, circle").count() == 0
    assert groups.locator("path.bar").count() == 2
    assert groups.locator("svg path.published").count() == 6
    groups.locator(".plot").hover()
    assert re.match(
        r"a trace with a long name, \dBAST5\dFAST15\dFAST, paper160",
        groups.locator(".readout").text_content(),
    )
    groups.get_by_role("button", name="FAST").click()
    assert groups.locator("svg path.published").count() == 0
    assert not_a_number(page) == 0


def test_first_columns_sort_by_value_and_columns_without_values_by_words(opened: Open) -> None:
    page = opened(with_marks())
    first = page.locator("#summary tbody th")
    page.locator("#summary").get_by_role("button", name="Request").focus()
    page.keyboard.press("Enter")
    assert first.all_text_contents() == ["987", "1,204"]
    page.keyboard.press("Enter")
    assert first.all_text_contents() == ["1,204", "987"]
    assert page.locator("#summary th[aria-sort=descending]").text_content() == "Request"
    page.keyboard.press("Enter")
    page.locator("#summary").get_by_role("button", name="Kind").click()
    assert first.all_text_contents() == ["1,204", "987"]


@pytest.mark.parametrize("width", [1200, 390])
def test_slanted_names_and_references_do_not_overlap(opened: Open, width: int) -> None:
    page = opened(with_marks(), width=width)
    faults = page.evaluate(
        """() => [...document.querySelectorAll('.plot svg')].flatMap((svg) => {
          const frame = svg.getBoundingClientRect();
          const boxes = [...svg.querySelectorAll('text')].map((text) => text.getBoundingClientRect());
          const upright = [...svg.querySelectorAll('text:not([transform])')].map((t) => t.getBoundingClientRect());
          const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1
            && a.top < b.bottom - 3 && b.top < a.bottom - 3;
          return [
            ...boxes.filter((b) => b.left < frame.left - 1 || b.right > frame.right + 1 || b.bottom > frame.bottom + 2),
            ...upright.filter((a, i) => upright.slice(i + 1).some((b) => meet(a, b))),
          ].map(String);
        })"""
    )
    assert faults == []


VERDICTS: tuple[tuple[str, Tone], ...] = (
    ("reproduced", "good"),
    ("direction only", "warn"),
    ("not reproduced", "bad"),
)


def many(count: int = 150, papers: int = 5) -> Findings:
    """A page of very many small charts, each with a row in a table that filters."""
    columns = Columns()
    rows = []
    parts = []
    for paper in range(papers):
        charts = []
        for k in range(count // papers):
            key, (verdict, tone) = f"p{paper}-{k}", VERDICTS[k % 3]
            value = 1.5 + (7 * k + paper) % 13
            view = {
                "name": "",
                "x": axis("share", "share"),
                "y": axis("response", "ns", zero=True),
                "series": [
                    series(columns, f"{key}.{i}", [value * i * j for j in range(30)],
                           x=[j / 30 for j in range(30)], name=f"scheme {i}", colour=i)
                    for i in range(4)
                ],
            }  # fmt: skip
            badge = Badge(tone, verdict, "by the claim's own rule")
            notes = ("What was tried, and the most likely cause.",)
            charts.append(Chart(key, f"Claim {key}", "", views=[view], badge=badge, notes=notes))
            rows.append(
                [
                    Cell(key, to=key),
                    Cell(f"paper {paper}", f"paper {paper}"),
                    Cell(f"what claim {k} says, in words of ours that are long enough to wrap"),
                    Cell(f"{value * 1000:,.1f}", value * 1000),
                    Cell(verdict, verdict, tone=tone),
                ]
            )
        about = ("What the paper is about.",)
        parts.append(Section(f"paper{paper}", f"Paper {paper}", charts, small=True, about=about))
    header = ["Claim", "Paper", "What it says", "Ours", "Verdict"]
    table = Table(header, rows, filters=["Paper", "Verdict"])
    return Findings("All claims", [], [], table, [], parts, columns, {"a": 1})


def test_a_page_of_very_many_charts(opened: Open, tmp_path: Path) -> None:
    page = opened(many())
    assert (tmp_path / "report.html").stat().st_size < 1_000_000
    assert page.locator(".plot svg").count() == 150
    rows, charts = page.locator("#summary tbody tr:visible"), page.locator("figure.chart:visible")
    status = page.locator(".filters [role=status]")
    assert (rows.count(), status.text_content()) == (150, "150 rows")
    page.get_by_label("Verdict").select_option(label="not reproduced (50)")
    assert (rows.count(), charts.count(), status.text_content()) == (50, 50, "50 of 150")
    page.get_by_label("Filter by words").fill("p4 SAYS 29")
    assert rows.locator("th").all_text_contents() == ["p4-29"]
    assert page.locator("main > section:visible h2").all_text_contents() == ["Summary", "Paper 4"]
    page.get_by_label("Filter by words").fill("nothing has this")
    assert (rows.count(), charts.count()) == (0, 0)
    page.get_by_label("Filter by words").fill("")
    page.get_by_label("Verdict").select_option(label="Verdict: all")
    page.get_by_label("Paper", exact=True).select_option(label="paper 2 (30)")
    page.get_by_role("button", name="Ours").click()
    values = [
        float(cell.replace(",", "")) for cell in rows.locator("td:nth-child(4)").all_text_contents()
    ]
    assert values == sorted(values) and len(values) == 30
    rows.locator("a").first.click()
    assert page.locator("figure.chart:target").count() == 1


def test_a_page_of_very_many_charts_opens_at_once(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "many.html"
    write_findings(path, many())
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    # Nothing is ever idle, so only what comes into sight is drawn.
    page.add_init_script("window.requestIdleCallback = () => {}")
    page.goto(path.as_uri())
    drawn = page.locator(".plot svg")
    assert drawn.count() < 30
    page.locator("#chart-p2-20 .plot").scroll_into_view_if_needed()
    page.wait_for_selector("#chart-p2-20 svg")
    assert drawn.count() < 60
    pdf = page.pdf(format="A4")
    assert drawn.count() == 150 and len(pdf) > 100_000
    page.close()


def test_a_comparison_on_paper_has_every_chart_and_fits(opened: Open) -> None:
    runs = comparison()[:2]
    for k, run in enumerate(runs):
        run.closeup, run.snapshots = a_closeup(k + 1), looks(run, 6)
    page = opened(*runs, scheme="dark")
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    figures = page.locator("figure.chart")
    assert figures.count() == page.locator("figure.chart:visible").count()
    assert page.locator("main > section:visible").count() == page.locator("main > section").count()
    wide = page.eval_on_selector_all(
        ".plot svg", "all => all.filter(each => each.viewBox.baseVal.width !== 660).length"
    )
    assert wide == 0
    assert page.locator("#configuration table").is_visible()
    assert (
        page.locator(".option:visible, .tools:visible, .winder:visible, .contents:visible").count()
        == 0
    )
    assert background(page) == "rgb(255, 255, 255)"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_hostile_text_stays_text(opened: Open) -> None:
    run = a_run(HOSTILE, workload=HOSTILE, note=HOSTILE)
    run.json["config"]["name"] = HOSTILE
    page = opened(run, a_run("other " + HOSTILE))
    page.locator("#chart-wa .plot").hover()
    assert HOSTILE in page.locator("#chart-wa .readout").text_content()
    assert page.locator("img").count() == 0


def saved(page: Any, chart: str, kind: str) -> tuple[str, str]:
    """What a chart's button saves: the name of the file and its content."""
    with page.expect_download() as download:
        page.locator(f"#chart-{chart}").get_by_role("button", name=f"Save as {kind}").click()
    path = download.value.path()
    return download.value.suggested_filename, Path(path).read_text(encoding="utf-8")


SVG_SPACE = "{http://www.w3.org/2000/svg}"


def test_a_chart_is_saved_as_a_drawing_that_stands_alone(opened: Open) -> None:
    page = opened(*comparison(), scheme="dark")
    before = page.locator("#chart-response svg").inner_html()
    name, text = saved(page, "response", "SVG")
    assert name == "03-response-time.svg"
    root = ElementTree.fromstring(text)
    assert root.findtext(f"{SVG_SPACE}title") == "Response time"
    assert root.get("font-family") == "sans-serif" and root.get("width") == "440"
    ground = root.find(f"{SVG_SPACE}rect")
    assert ground is not None and ground.attrib == {
        "width": root.get("width"), "height": root.get("height"), "fill": "#ffffff",
    }  # fmt: skip
    shown = ["".join(each.itertext()) for each in root.iter(f"{SVG_SPACE}text")]
    assert {"response time [ms]", "drive's time [s]", "greedy", "fifo", "99th percentile"} <= set(
        shown
    )
    assert not re.search(r"var\(|class=|light-dark|rgb\(|href", text), (
        "nothing of the page is needed"
    )
    # The colours of the light theme, whatever the page's.
    strokes = {each.get("stroke") for each in root.iter(f"{SVG_SPACE}path")}
    assert {"#0072b2", "#d55e00"} <= strokes
    assert page.evaluate("document.documentElement.dataset.theme") is None
    assert page.locator("#chart-response svg").inner_html() == before


def test_what_is_hidden_is_not_in_the_drawing_but_in_the_numbers(opened: Open) -> None:
    page = opened(*comparison())
    page.locator("#chart-wa").get_by_role("button", name="fifo").click()
    assert ">fifo<" not in saved(page, "wa", "SVG")[1]
    assert "\nfifo," in saved(page, "wa", "CSV")[1]


def cells_of(text: str) -> list[list[str | float]]:
    def value(cell: str) -> str | float:
        try:
            return float(cell)
        except ValueError:
            return cell

    return [[value(cell) for cell in row] for row in csv.reader(text.splitlines())]


def test_the_page_saves_the_numbers_that_the_files_have(opened: Open, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    run = a_run()
    run.closeup, run.snapshots = a_closeup(1), looks(run, 4)
    page = opened(run)
    RunsPage([run], "A report").figures(tmp_path / "figures")
    for key in (
        "wa", "response", "tail", "closeup-0", "causes", "busy", "erases-map-0", "film-valid-0",
    ):  # fmt: skip
        name, text = saved(page, key, "CSV")
        assert cells_of(text) == cells_of((tmp_path / "figures" / name).read_text()), name


def test_saving_by_keyboard_and_not_in_print(opened: Open) -> None:
    page = opened(a_run())
    element = page.locator("#chart-wa").get_by_role("button", name="Save as CSV")
    element.focus()
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    assert download.value.suggested_filename == "01-write-amplification.csv"
    page.emulate_media(media="print")
    assert page.locator(".save:visible").count() == 0


def test_paper_says_what_figures_mean_and_repeats_heads(opened: Open) -> None:
    page = opened(a_run(settled=TRANSIENT))
    meanings = page.locator(".meanings dl")
    assert not meanings.is_visible()
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert meanings.is_visible() and page.locator("#configuration table").is_visible()
    heads = "getComputedStyle(document.querySelector('thead')).display"
    assert page.evaluate(heads) == "table-header-group"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    assert not meanings.is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_transient_tile_is_told_apart_without_colour(opened: Open, scheme: str) -> None:
    page = opened(a_run(settled=TRANSIENT, warnings=[WARNING]), scheme=scheme)
    styles = page.eval_on_selector_all(
        ".tiles > div",
        "tiles => tiles.map(t => [getComputedStyle(t).borderStyle, t.innerText.includes('not settled')])",
    )
    assert styles[0] == ["dashed", True] and ["solid", False] in styles
    assert page.get_by_role("region", name="Warnings").is_visible()


def test_the_settled_stretch_is_shaded_and_named(opened: Open) -> None:
    page = opened(a_run(settled=SETTLED))
    box = page.locator("#chart-wa .stretch").bounding_box()
    plot = page.locator("#chart-wa .plot").bounding_box()
    assert 0.5 * plot["width"] < box["width"] < 0.8 * plot["width"]
    assert "settled" in page.locator("#chart-wa svg .halo").all_text_contents()
    assert page.locator("#chart-iops .stretch").count() == 0
