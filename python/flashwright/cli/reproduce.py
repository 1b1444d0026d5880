"""``flashwright reproduce``: the papers' claims, run again and judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from flashwright.cli.options import ResultOptions, WorkerOptions, add_options
from flashwright.cli.progress import PointsBar
from flashwright.cli.render import errors, page, put_json, put_page, units
from flashwright.files import write_beside
from flashwright.points import Store
from flashwright.report.claims import claims_page
from flashwright.reproduce import Claim, Paper, Plan, Reproduction, choose, papers
from flashwright.reproduce import reproduce as carry_out
from flashwright.reproduce.page import markdown, verdict_of

__all__ = ["reproduce"]

# Up to so many claims are told in full; of more there is a table.
_TOLD_IN_FULL = 3


@dataclass
class ReproduceOptions:
    """What is judged, and on what it rests."""

    list: Annotated[
        bool, typer.Option("--list", help="Name the claims with what they say, and do nothing.")
    ] = False
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Scaled down: minutes for all claims; shapes, no magnitudes."),
    ] = False
    traces: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            envvar="FLASHWRIGHT_TRACES",
            help="Real traces, by the names that README gives; without them stand-ins are played, and labelled.",
        ),
    ] = None
    store: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER",
            help="Where the results of runs are kept: what is there is not run again.",
        ),
    ] = Path(".flashwright/claims")
    experiments: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            envvar="FLASHWRIGHT_EXPERIMENTS",
            help="The papers; by default those of the repository. Workers of --dask need them at the same place.",
        ),
    ] = None
    markdown: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The page of the claims as Markdown.")
    ] = None


@add_options
def reproduce(
    run: ReproduceOptions,
    workers: WorkerOptions,
    output: ResultOptions,
    claim: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CLAIM]",
            help="A paper (dftl), a figure or table of it (container-marking/table-4) or a claim (G8); all if none.",
        ),
    ] = None,
) -> int:
    """Run the tables and figures of papers again, and hold our numbers against theirs.

    The exit status is 1 if a claim did not come out as its rule asks.
    """
    output.check(run.markdown)
    wanted = claim or []
    if run.list:
        read = papers(run.experiments)
        return _list(read, choose(read, wanted), output)
    workers.check()
    try:
        with PointsBar(output.bar) as bar:
            found = carry_out(
                wanted,
                quick=run.quick,
                traces=run.traces,
                store=run.store,
                experiments=run.experiments,
                workers=workers.jobs,
                dask=workers.dask,
                told=None if output.quiet else _tell,
                progress=bar.update,
            )
    except KeyboardInterrupt:
        errors.note("interrupted; the runs that were finished are kept, the same command goes on")
        return 130
    for outcome in found.failures:
        errors.fault(f"{outcome.point.label}: {outcome.error}")
        if outcome.traceback is not None:
            errors.note(f"its traceback: {Store(run.store).traceback_path(outcome.point)}")
    document = found.to_json()
    put_json(document, output.json)
    if run.markdown is not None:
        with write_beside(run.markdown) as part:
            part.write_text(markdown(document), encoding="utf-8")
    put_page(lambda: claims_page(document), output)
    if not output.silent:
        _show(found, document)
    judged = [each for each in document["claims"] if each["verdict"] != "not testable"]
    return 0 if all(each["verdict"] == "reproduced" for each in judged) else 1


def _list(read: Mapping[str, Paper], claims: Sequence[Claim], output: ResultOptions) -> int:
    rows = [
        {
            "id": each.id,
            "name": f"{each.paper}/{each.entry}",
            "where": each.where,
            "kind": each.kind,
            "says": each.says,
            "rule": each.rule,
        }
        for each in claims
    ]
    named = {each.paper: read[each.paper] for each in claims}
    cited = [{"paper": name, "title": of.title, "cited": of.cited} for name, of in named.items()]
    put_json({"papers": cited, "claims": rows}, output.json)
    if not output.silent:
        table = page.plain_table(
            page.Column("claim", 100, number=False),
            page.Column("name", 60, number=False),
            page.Column("class", 50, number=False),
            page.Column("the paper says", 90, number=False),
        )
        for row in rows:
            table.add_row(row["id"], row["name"], row["kind"], row["says"])
        out = page.console()
        out.print(table)
        out.print(page.grid([(name, f"{of.cited}: {of.title}") for name, of in named.items()]))
        out.print(f"{len(rows)} claims")
    return 0


def _tell(made: Plan) -> None:
    """Say what is to come."""
    left = made.runs - made.kept
    told = f"{units.count(len(made.claims))} claims rest on {units.count(made.runs)} runs"
    if made.kept:
        told += f", of which {units.count(made.kept)} are kept"
    if left:
        minutes = made.cpu_s / 60
        lasts = f"about {minutes:.0f} minutes" if minutes >= 1.5 else "a minute or two"
        told += f"; {lasts} of one core to go"
    errors.note(told)


def _show(found: Reproduction, document: Mapping[str, Any]) -> None:
    out = page.console()
    claims: list[dict[str, Any]] = document["claims"]
    if len(claims) <= _TOLD_IN_FULL:
        for each in claims:
            out.print(page.grid(_in_full(each)))
            out.print()
    else:
        table = page.plain_table(
            page.Column("claim", 100, number=False),
            page.Column("name", 60, number=False),
            page.Column("verdict", 95, number=False),
            page.Column("ours", 90, number=False),
        )
        for each in claims:
            table.add_row(
                each["id"],
                f"{each['paper']}/{each['entry']}",
                verdict_of(each),
                each["ours"] or each["error"] or "",
            )
        out.print(table)
    counts = ", ".join(f"{count} {name}" for name, count in found.counts.items())
    kept = found.runs - found.computed
    out.print(
        f"{len(claims)} claims: {counts}. {units.count(found.runs)} runs"
        + (f", {units.count(kept)} of them kept from before" if kept else "")
        + f"; {found.cpu_s / 60:.1f} minutes of one core, {found.wall_s / 60:.1f} minutes on {found.workers}."
    )
    if found.setting.quick:
        out.print("Quick runs show shapes; verdicts are those of a run without --quick.")


def _in_full(each: dict[str, Any]) -> list[tuple[str, str]]:
    rows = [
        (each["id"], f"{each['paper']}/{each['entry']} ({each['where']}), class {each['kind']}"),
        ("paper", each["says"]),
        ("rule", each["rule"]),
        ("drive", each["drive"]),
        ("workload", each["workload"]),
        ("ours", each["ours"]),
        ("verdict", ": ".join(filter(None, (verdict_of(each), each["error"])))),
        ("why", "" if each["verdict"] == "reproduced" else each["why"]),
    ]
    return [(name, text) for name, text in rows if text]
