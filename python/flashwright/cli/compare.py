"""``flashwright compare``: the same workload under several settings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

from flashwright._core import __version__
from flashwright.cli.options import (
    DEFAULT_TRACE,
    OLD,
    Device,
    PolicyFiles,
    RunOptions,
    add_options,
    check_closeup,
    check_snapshots,
    renamed,
)
from flashwright.cli.outputs import TABLE, OutputOptions
from flashwright.cli.render import Shown, errors, put_json, put_page
from flashwright.cli.render.comparison import show_comparison, show_over_seeds
from flashwright.drive import policies
from flashwright.errors import (
    ConfigError,
    DeviceError,
    FlashwrightError,
    PolicyError,
    WorkloadError,
)
from flashwright.simulation.compare import seeded, variants
from flashwright.simulation.identity import names_of
from flashwright.simulation.played import played
from flashwright.simulation.results import RunResult, Runs, table
from flashwright.simulation.run_keys import as_source
from flashwright.simulation.ssd import Ssd
from flashwright.simulation.variant import repeated
from flashwright.simulation.warnings import gathered, gathered_json
from flashwright.support.bars import Bar
from flashwright.support.tablefiles import write_table
from flashwright.support.tabular import column
from flashwright.traces import workloads
from flashwright.traces.sources import expect_addresses
from flashwright.traces.tenants import Load

__all__ = ["compare"]


@add_options
def compare(
    device: Device,
    run: RunOptions,
    output: OutputOptions,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=A,B,C",
            help="Try these values of a setting of the drive, of a key of the workload (workload.rate), or of depth, "
            "time-scale, requests, warmup or precondition. workload='A;B' plays several workloads, trace=A,B several "
            "trace files, each read as the options of --trace say; "
            "gc.victim=greedy,FILE.py:CLASS tries a policy of your own. Repeatable: several make a grid.",
            rich_help_panel="Variations",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help=f"A row for each run, with all its figures: {TABLE}.",
            rich_help_panel="Output",
        ),
    ] = None,
    seeds: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Play each run with N seeds, from --seed on; the table has means and 95 % intervals.",
            rich_help_panel="Workload",
        ),
    ] = 1,
    policy: PolicyFiles = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="What the report and the figures call a run; one for each, in the order of the table. Repeatable.",
            rich_help_panel="Output",
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Play N runs at a time; by default one a core, as far as memory allows.",
            rich_help_panel="Processes",
        ),
    ] = None,
    parquet: Annotated[Path | None, OLD] = None,
) -> int:
    """Play the same workload under several settings, and show the results side by side."""
    out = renamed("--parquet", parquet, "--out", out, quiet=output.quiet)
    output.check(out=out)
    check_closeup(run, output)
    check_snapshots(run, output)
    varied = _varied(vary or [])
    if seeds < 1:
        raise ConfigError(f"--seeds: found {seeds}, expected 1 or more", "")
    ssd = run.drive(device).settling()
    settings = replace(run.settings(), policies=[policies.load(text) for text in policy or []])
    varied = _with_traces(run, varied)
    source = _source(run, varied)
    try:
        unlike = variants(ssd, source, varied, settings)
    except FlashwrightError as error:
        raise _of_varied(error, varied) from None
    made = seeded(unlike, seeds)
    names = _names(label or [], [each.label for each in made])
    notes = repeated(unlike)
    if not output.quiet:
        for line in notes:
            errors.note(line)
    if (
        not run.given(["workload", "trace", "tenant"])
        and "workload" not in varied
        and not output.quiet
    ):
        errors.note(f"neither --trace nor --workload: playing {DEFAULT_TRACE}")
    with Bar(output.bar) as bar:
        found = played(made, jobs=jobs, progress=lambda label, now: bar.update(now, label=label))
    failures = {made[at].label: failure for at, failure in sorted(found.errors.items())}
    for failure in failures.values():
        # That a drive or a policy can't do it says nothing of the others.
        if not isinstance(failure, DeviceError | PolicyError):
            raise failure
    results = [result for _, result in sorted(found.results.items())]
    _write(results, failures, varied, notes, ssd, output, out, names)
    for name, failure in failures.items():
        errors.fault(f"{name}: {failure}", failure.hint)
    if found.interrupted:
        errors.note(
            f"interrupted; {len(results)} of {len(made)} runs were started; the last ones may be incomplete"
        )
        return 130
    if failures:
        return 2
    return 1 if any(result.violations for result in results) else 0


def _names(given: Sequence[str], labels: Sequence[str]) -> dict[str, str]:
    """What runs are called in pictures, by their labels."""
    if given and len(given) != len(labels):
        raise ConfigError(
            f"--label: found {len(given)}, expected {len(labels)}, one for each run",
            f"the runs are {'; '.join(labels)}",
        )
    return dict(zip(labels, given, strict=False))


def _of_varied(error: FlashwrightError, varied: Iterable[str]) -> FlashwrightError:
    """The error, with lines about a key that is varied as what they are: about --vary."""
    about = tuple(f"{each}: found " for key in varied for each in (key, key.replace("-", "_")))
    lines = str(error).splitlines()
    if not any(line.startswith(about) for line in lines):
        return error
    option_lines = (f"--vary {line}" if line.startswith(about) else line for line in lines)
    return type(error)(
        "\n".join(option_lines).replace("--vary time_scale:", "--vary time-scale:"), error.hint
    )


def _with_traces(run: RunOptions, varied: dict[str, list[object]]) -> dict[str, list[object]]:
    """The same, with the traces of ``trace=A,B`` opened: they are workloads like others."""
    if "trace" not in varied:
        return varied
    others = run.given(["workload", "trace", "tenant"])
    for option in [*others, "--vary workload"] if "workload" in varied else others:
        raise WorkloadError(
            f"--vary trace and {option}: found both, expected one of them", "leave one of them out"
        )
    fitted = expect_addresses(run.addresses, "--addresses")
    opened: list[object] = [run.open(str(path), fitted, run.repeat) for path in varied["trace"]]
    return dict(
        ("workload", opened) if key == "trace" else (key, values) for key, values in varied.items()
    )


def _source(run: RunOptions, varied: dict[str, list[object]]) -> Load:
    """What keys of the workload are laid over."""
    if "workload" not in varied:
        return run.played()
    if isinstance(varied["workload"][0], workloads.Trace):
        return varied["workload"][0]
    for option in run.given(["workload", "trace", "tenant"]):
        raise WorkloadError(
            f"--vary workload and {option}: found both, expected one of them",
            "leave one of them out",
        )
    run.refuse_trace_options("--vary workload", but=["addresses"])
    if run.addresses is not None:
        fitted = expect_addresses(run.addresses, "--addresses")
        found = [workloads.find(str(value)) for value in varied["workload"]]
        varied["workload"] = [
            replace(each, addresses=fitted) if isinstance(each, workloads.Trace) else each
            for each in found
        ]
    return as_source(varied["workload"][0])


def _varied(texts: Sequence[str]) -> dict[str, list[object]]:
    varied: dict[str, list[object]] = {}
    for text in texts:
        key, values = _values(text)
        if key in varied:
            raise ConfigError(
                f"--vary: found {key} twice, expected each key once", "give all its values at once"
            )
        varied[key] = values
    return varied


def _values(text: str) -> tuple[str, list[object]]:
    before, equals, values = text.partition("=")
    key = before.strip()
    # A whole workload has commas of its own.
    found_parts = values.split(";") if key == "workload" else _COMMA.split(values)
    parts = [part.strip() for part in found_parts]
    found: list[object] = [_value(part) for part in parts if part]
    if not equals or not key or not found:
        raise ConfigError(
            f"--vary: found {text!r}, expected KEY=A,B,C",
            "such as --vary gc.victim=greedy,fifo,random",
        )
    return key, found


_COMMA = re.compile(r",(?![^()]*\))")  # not within brackets


def _value(text: str) -> object:
    """A number or a truth value as what it is, a policy's file as the policy; all else is text."""
    if policies.names_a_policy(text):
        return policies.load(text)
    try:
        value: object = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, (bool, int, float)) else text


def _write(
    results: Sequence[RunResult],
    failures: Mapping[str, FlashwrightError],
    varied: dict[str, list[object]],
    notes: Sequence[str],
    ssd: Ssd,
    output: OutputOptions,
    out: Path | None,
    names: Mapping[str, str],
) -> None:
    document = {
        "version": __version__,
        "vary": {key: names_of(values) for key, values in varied.items()},
        "notes": list(notes),
        "warnings": gathered_json(
            gathered((result.label, result.json["warnings"]) for result in results)
        ),
        "over_seeds": Runs(results).over_seeds().to_pylist()
        if any("seed" in result.varied for result in results)
        else None,
        "runs": [
            {"label": result.label, "varied": result.varied, **result.json} for result in results
        ],
        "failures": {label: str(failure) for label, failure in failures.items()},
    }
    put_json(document, output.json)
    if not results:
        return
    if out is not None:
        write_table(table(results), out)
    if output.closeup_out is not None:
        write_table(_closeups(results), output.closeup_out)
    title = f"{ssd.name}: {', '.join(varied)}"

    def shown() -> Shown:
        from flashwright.simulation.pages import RunsPage

        named = [run.labelled(names.get(run.label, run.label)) for run in results]
        return RunsPage(named, title)

    put_page(shown, output)
    if not output.silent:
        show_comparison(results, title, table_ram="ftl.scheme" in varied)
        if any("seed" in result.varied for result in results):
            show_over_seeds(Runs(results))


def _closeups(results: Sequence[RunResult]) -> pa.Table:
    """The requests looked at closely: the runs' rows below each other, with label and what was varied."""
    found = [(result, result.closeup) for result in results if result.closeup is not None]
    keys = dict.fromkeys(key for result in results for key in result.varied)
    columns: dict[str, object] = {
        "label": [result.label for result, rows in found for _ in range(rows.num_rows)]
    }
    for key in keys:
        values = column([result.varied.get(key) for result, _ in found]).to_pylist()
        counts = (rows.num_rows for _, rows in found)
        columns[key] = [
            value for value, count in zip(values, counts, strict=True) for _ in range(count)
        ]
    together = pa.concat_tables([rows.replace_schema_metadata(None) for _, rows in found])
    return pa.table(columns | {name: together[name] for name in together.column_names})
