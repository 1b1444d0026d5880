"""``flashwright compare``: the same workload under several settings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer

from flashwright import __version__
from flashwright.cli.options import DEFAULT_TRACE, Device, OutputOptions, RunOptions, add_options
from flashwright.cli.progress import Bar
from flashwright.cli.render import errors, page, put_json
from flashwright.compare import variants
from flashwright.device import Ssd
from flashwright.errors import ConfigError, DeviceError, FlashwrightError
from flashwright.results import RunResult, write_table
from flashwright.run import Run, RunInterrupted

__all__ = ["compare"]


@add_options
def compare(
    device: Device,
    run: RunOptions,
    output: OutputOptions,
    vary: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=A,B,C", help="Values to try. Repeatable: several make a grid."),
    ] = None,
    parquet: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A row for each run with all its figures.")
    ] = None,
) -> int:
    """Play a workload under several settings, side by side."""
    output.check(parquet)
    varied = dict(_values(text) for text in vary or [])
    ssd, source, settings = run.drive(device), run.source(), run.settings()
    made = variants(ssd, varied)
    if run.workload is None and run.trace is None and not output.quiet:
        errors.note(f"neither --trace nor --workload: playing {DEFAULT_TRACE}")
    results: list[RunResult] = []
    failures: dict[str, FlashwrightError] = {}
    interrupted = False
    for label, variant in made.items():
        try:
            begun = Run.create(variant.toml, variant.preconditioning, source, settings)
            with Bar(False if output.quiet else output.progress, label) as bar:
                results.append(begun.go(progress=bar.update, label=label))
        except RunInterrupted as stop:
            interrupted = True
            results.extend([] if stop.result is None else [stop.result])
            break
        except DeviceError as error:
            # This drive can't do it, which says nothing of the others.
            failures[label] = error
    _write(results, failures, varied, ssd, output, parquet)
    for label, failure in failures.items():
        errors.fault(f"{label}: {failure}", failure.hint)
    if interrupted:
        errors.note(
            f"interrupted; {len(results)} of {len(made)} runs were begun, the last may be cut short"
        )
        return 130
    if failures:
        return 2
    return 1 if any(result.violations for result in results) else 0


def _values(text: str) -> tuple[str, list[object]]:
    key, equals, values = text.partition("=")
    found: list[object] = [_value(value.strip()) for value in values.split(",") if value.strip()]
    if not equals or not key.strip() or not found:
        raise ConfigError(
            f"--vary: found {text!r}, expected KEY=A,B,C",
            "such as --vary gc.victim=greedy,fifo,random",
        )
    return key.strip(), found


def _value(text: str) -> object:
    """A number or a truth value as what it is; all else is text."""
    try:
        value: object = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, (bool, int, float)) else text


def _write(
    results: list[RunResult],
    failures: Mapping[str, FlashwrightError],
    varied: dict[str, list[object]],
    ssd: Ssd,
    output: OutputOptions,
    parquet: Path | None,
) -> None:
    document = {
        "version": __version__,
        "vary": varied,
        "runs": [{"label": result.label, **result.json} for result in results],
        "failures": {label: str(failure) for label, failure in failures.items()},
    }
    put_json(document, output.json)
    if not results:
        return
    if parquet is not None:
        rows = [{"label": result.label, **_flat(result.json)} for result in results]
        names = list(dict.fromkeys(name for row in rows for name in row))
        write_table(pa.table({name: [row.get(name) for row in rows] for name in names}), parquet)
    title = f"{ssd.name}: {', '.join(varied)}"
    if output.report is not None:
        from flashwright.report import write_report

        write_report(output.report, results, title)
    if not output.silent:
        page.show_comparison(results, title)


def _flat(figures: dict[str, Any], prefix: str = "") -> dict[str, object]:
    """All figures in one level, by dotted name; lists are left out."""
    flat: dict[str, object] = {}
    for key, value in figures.items():
        if isinstance(value, dict):
            flat.update(_flat(value, f"{prefix}{key}."))
        elif not isinstance(value, list):
            flat[prefix + key] = value
    return flat
