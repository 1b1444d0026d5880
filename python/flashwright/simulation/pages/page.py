"""The page of one run or of several side by side."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flashwright.errors import FlashwrightError
from flashwright.report import text
from flashwright.report.charts import Columns, Section
from flashwright.report.page import figures_of, write_page
from flashwright.report.paper import plot_figure
from flashwright.report.tables import Badge
from flashwright.simulation.pages.figures import sections
from flashwright.simulation.pages.header import header, over
from flashwright.simulation.pages.keyfigures import (
    KEY_FIGURES,
    all_figures,
    configuration,
    key_figures,
)
from flashwright.simulation.pages.means import firsts, over_seeds, seeded, table_of
from flashwright.simulation.pages.settled import settled_badge, tiles_of, warnings_of
from flashwright.simulation.pages.tenants import tenant_table
from flashwright.simulation.pages.view import RunView, dig, number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["RunsPage", "write_report"]

VIOLATIONS_SHOWN = 50


class EmptyPageError(FlashwrightError, ValueError):
    """A page was asked for of no run."""


@dataclass(frozen=True)
class RunsPage:
    """A report about one run, or about several side by side: as a page, or as figures for a paper.

    Attributes
    ----------
    runs
        The runs, at least one. Their order is that of the tables, and gives them their colours.
    title
        The title of the page.
    """

    runs: Sequence[RunView]
    title: str

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write the page, as :func:`write_report`."""
        write_report(Path(path), self.runs, self.title)

    def figures(
        self,
        folder: str | os.PathLike[str],
        *,
        size: str | None = None,
        style: str | Sequence[str] | None = None,
    ) -> list[Path]:
        """Write each chart of the page into a folder, as :func:`flashwright.report.paper.write_figures`."""
        parts, columns, labels = self._drawn()
        return figures_of(folder, parts, columns, labels, self.title, size, style)

    def plot(
        self, chart: str | None, size: str | None, style: str | Sequence[str] | None
    ) -> Figure:
        """Draw one chart of the page, as :func:`flashwright.report.paper.plot_figure`."""
        parts, columns, labels = self._drawn()
        charts = [each for part in parts for each in part.charts]
        return plot_figure(chart, charts, columns, labels, size, style)

    def _drawn(self) -> tuple[list[Section], Columns, list[str]]:
        columns = Columns()
        groups = seeded(self.runs)
        # Of seeds means with intervals are drawn, and not a line each.
        shown = firsts(groups) or self.runs
        parts = [*over_seeds(groups, columns), *_drop_empty_charts(shown, sections(shown, columns))]
        return parts, columns, [run.label for run in shown]


def write_report(path: Path, runs: Sequence[RunView], title: str) -> None:
    """Writes one self-contained HTML file about one run, or about several side by side.

    The file needs no network, and nothing beside it. It is written under another name in the same
    folder and then renamed, so that a reader never finds half a report.

    Parameters
    ----------
    path
        The file to write; an older one is replaced. Its folder must exist.
    runs
        The runs, at least one. Their order is that of the tables, and gives them their colours.
    title
        The title of the page.

    Raises
    ------
    EmptyPageError
        If there is no run.
    OutputError
        If the file can't be written.
    """
    if not runs:
        raise EmptyPageError("report: found no run, expected at least one run")
    columns = Columns()
    all_runs, groups = runs, seeded(runs)
    runs = firsts(groups) or runs
    parts = [*over_seeds(groups, columns), *_drop_empty_charts(runs, sections(runs, columns))]
    settings, differ = configuration(runs)
    several = len(runs) > 1
    badges = [_badges(run) for run in runs]
    write_page(
        Path(path),
        "report",
        [run.label for run in runs],
        parts,
        columns,
        _results(all_runs),
        title=title,
        runs=runs,
        several=several,
        workloads=_distinct(runs, "workload"),
        drive=header(runs),
        facts=_facts(runs),
        warnings=warnings_of(all_runs),
        badges=badges,
        badges_differ=any(own != badges[0] for own in badges),
        tiles=tiles_of(runs[0]),
        key_figures=table_of(groups) if groups else key_figures(runs),
        meanings=_meanings(runs, badges),
        all_figures=all_figures(runs),
        tenants=tenant_table(all_runs),
        settings=settings,
        differ=differ,
        notes=[
            *(
                [
                    (
                        "seeds",
                        f"means are over up to {max(len(group.runs) for group in groups)} seeds; what shows single "
                        "runs is of the first",
                    )
                ]
                if groups
                else []
            ),
            *((run.label, note) for run in all_runs if (note := dig(run.json, "note"))),
        ],
        violations=[(run.label, list(run.violations)) for run in all_runs if run.violations],
        violations_shown=VIOLATIONS_SHOWN,
        commands=_commands(runs),
    )


def _drop_empty_charts(runs: Sequence[RunView], parts: Sequence[Section]) -> list[Section]:
    """The sections; for replays only what devices reveal, since an empty chart would say that nothing happened."""
    if any(dig(run.json, "target") is None for run in runs):
        return list(parts)
    shown = (
        replace(part, charts=[chart for chart in part.charts if chart.views]) for part in parts
    )
    return [part for part in shown if part.charts]


def _results(runs: Sequence[RunView]) -> object:
    """What the reader can download: the JSON of the run, or of all with their labels."""
    if len(runs) == 1:
        return runs[0].json
    return [{"label": run.label, "json": run.json} for run in runs]


def _distinct(runs: Sequence[RunView], path: str) -> list[str]:
    found = (dig(run.json, path) for run in runs)
    return list(dict.fromkeys(str(value) for value in found if value))


def _facts(runs: Sequence[RunView]) -> list[tuple[str, str]]:
    """Short facts for the header; of what the runs do not share, what it varies over."""
    facts: list[tuple[str, str, Callable[[Any], str]]] = [
        ("precondition", "precondition.spec", text.setting),
        ("pace", "pace", text.setting),
        ("requests", "measured.requests", text.setting),
        ("seed", "seed", str),
        ("version", "version", text.setting),
    ]
    found = []
    for name, path, show in facts:
        values = [dig(run.json, path) for run in runs]
        shown = over([None if value is None else show(value) for value in values])
        if shown is not None:
            found.append((name, shown))
    return found


def _badges(run: RunView) -> list[Badge]:
    badges = []
    if "stand-in" in str(dig(run.json, "workload") or "").lower():
        why = "The workload is synthetic, modelled on a trace; it is not that trace."
        badges.append(Badge("warn", "stand-in workload", why))
    ended = dig(run.json, "ended")
    if ended == "interrupted":
        why = "The run was stopped; the figures cover what was finished."
        badges.append(Badge("warn", "interrupted", why))
    elif ended == "failed":
        why = "The device failed; the figures cover what was finished."
        badges.append(Badge("bad", "failed", why))
    elif ended == "worn-out":
        why = "The drive could take no more writes; the figures cover what it took."
        badges.append(Badge("bad", "worn out", why))
    left_out = sum((dig(run.json, "left_out") or {}).values())
    if left_out:
        why = "Writes, trims and flushes are not played without consent; the figures cover reads only."
        badges.append(Badge("warn", f"reads only: {text.count(left_out)} requests left out", why))
    if dig(run.json, "precondition.steady") is False:
        why = "Preconditioning gave up before the drive was in a steady state."
        badges.append(Badge("warn", "not steady", why))
    badges += settled_badge(run)
    found = len(run.violations) or number(run.json, "verify.violations") or 0
    if found:
        s = "" if found == 1 else "s"
        why = "The verify mode found contradictions in the drive's state: do not trust the figures."
        badges.append(Badge("bad", f"verify: {text.count(found)} violation{s}", why))
    elif dig(run.json, "verify.enabled"):
        why = "Every read was checked and the state audited; there was no violation."
        badges.append(Badge("good", "verified", why))
    elif dig(run.json, "target") is None:
        badges.append(Badge("plain", "not verified", "The run was made without verify mode."))
    return badges


def _meanings(runs: Sequence[RunView], badges: Sequence[Sequence[Badge]]) -> list[tuple[str, str]]:
    """What the badges and key figures mean, for paper and for fingers, which cannot hover; each once."""
    found = dict.fromkeys((badge.shown, badge.why) for own in badges for badge in own if badge.why)
    known = (
        (text.in_words(figure.name) or figure.name, figure.about)
        for figure in KEY_FIGURES
        if figure.is_shown(runs)
    )
    return [*found, *known]


def _commands(runs: Sequence[RunView]) -> list[tuple[str, str]]:
    """Command lines that make the runs again, where the JSON has them; equal ones once."""
    commands: dict[str, str] = {}
    for run in runs:
        command = dig(run.json, "command") or dig(run.json, "run.command")
        if isinstance(command, list | tuple):
            command = shlex.join(str(word) for word in command)
        if command:
            commands.setdefault(str(command), run.label)
    return [(label, command) for command, label in commands.items()]
