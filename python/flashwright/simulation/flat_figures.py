"""Figures of runs as rows: what ``compare --out``, ``sweep`` and notebooks show side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from flashwright.support.arguments import checked
from flashwright.support.tabular import html_table, of_rows

if TYPE_CHECKING:
    import pyarrow as pa


__all__ = ["Figures", "flat_figures", "runs_html", "table"]


class Figures(Protocol):
    """A run's figures: of a :class:`RunResult` or of a replay."""

    @property
    def json(self) -> Mapping[str, Any]:
        """The documented figures."""
        ...

    @property
    def label(self) -> str:
        """What the run is called."""
        ...

    @property
    def varied(self) -> Mapping[str, object]:
        """What was set for it, by key."""
        ...


@checked()
def table(runs: Figures | Iterable[Figures], *, config: bool = True) -> pa.Table:
    """All figures of runs, a row for each; ``compare --out`` writes the same.

    Parameters
    ----------
    runs : RunResult, ReplayResult, or iterable of them
        The runs.
    config : bool, optional
        Whether the drives' configuration is there too, a column a key: more than all figures.

    Returns
    -------
    pyarrow.Table
        ``label``, what was varied by its key, then every figure of the run's JSON by its dotted name, such as
        ``flash.erases.total`` or ``response_time_ns.all.p99``, and ``config.gc.victim``.

    Examples
    --------
    >>> from flashwright import Ssd, compare
    >>> runs = compare(Ssd.named("default"), "uniform", {"depth": [1, 4]}, requests=1000)
    >>> found = table(runs).select(["label", "depth", "seed", "measured.requests"])
    >>> found.to_pylist()[1]
    {'label': 'depth=4', 'depth': 4, 'seed': 1, 'measured.requests': 1000}
    """
    listed = list(runs) if isinstance(runs, Iterable) else [runs]
    return of_rows(
        {"label": run.label, **run.varied, **flat_figures(_chosen(run.json, config))}
        for run in listed
    )


def _chosen(figures: Mapping[str, Any], config: bool) -> Mapping[str, Any]:
    return figures if config else {key: part for key, part in figures.items() if key != "config"}


def runs_html(runs: Sequence[Any]) -> str:
    """The key figures of runs as a small HTML table: of one run a row a figure, of several a row a run."""
    from flashwright.simulation.pages.keyfigures import key_figures

    if not runs:
        return html_table(["Run"], [])
    made = key_figures(runs)
    rows = [[cell.shown for cell in row] for row in made.rows]
    if len(runs) > 1:
        return html_table(made.header, rows)
    figures = runs[0].json
    asked = f"{figures['workload']}, {figures['measured']['requests']:,} requests"
    notes = [*(figures.get("workload_notes") or ()), *runs[0].violations[:3]]
    if figures["ended"] != "complete":
        notes.insert(0, f"ended early: {figures['ended']}")
    pairs = zip(made.header[1:], rows[0][1:], strict=True)
    return html_table([], pairs, f"{figures['config']['name']}: {asked}", "; ".join(notes))


_LISTS = ("merges.full_by_data_blocks",)


def flat_figures(figures: Mapping[str, Any], prefix: str = "") -> dict[str, object]:
    """All figures of a run in one level, by dotted name; of lists only tenants, by their names, and merges.

    Parameters
    ----------
    figures : mapping
        The documented figures (:attr:`RunResult.json`) or a part of them.
    prefix : str, optional
        What stands before each name.

    Examples
    --------
    >>> flat_figures({"host": {"pages_read": 7}, "busy": {"dies": [0.5]}})
    {'host.pages_read': 7}
    """
    flat: dict[str, object] = {}
    for key, value in figures.items():
        if isinstance(value, dict):
            flat.update(flat_figures(value, f"{prefix}{key}."))
        elif prefix + key == "tenants":
            flat.update(flat_figures({each["name"]: each for each in value}, "tenants."))
        elif not isinstance(value, list) or prefix + key in _LISTS:
            flat[prefix + key] = value
    return flat
