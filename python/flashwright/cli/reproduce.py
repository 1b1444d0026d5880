"""``flashwright reproduce``: the papers' claims, run again and judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from flashwright.cli.options import ResultOptions, add_options
from flashwright.cli.progress import Bar
from flashwright.cli.render import errors, page, put_json, units
from flashwright.errors import WorkloadError
from flashwright.files import write_beside
from flashwright.points import Outcome
from flashwright.report.claims import write_claims
from flashwright.reproduce import Claim, Plan, Reproduction, choose, papers
from flashwright.reproduce import reproduce as carry_out
from flashwright.reproduce.page import markdown
from flashwright.run import Progress

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
    jobs: Annotated[
        int | None, typer.Option(metavar="N", help="Processes; by default one a core.")
    ] = None
    experiments: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            envvar="FLASHWRIGHT_EXPERIMENTS",
            help="The papers; by default those of the repository.",
        ),
    ] = None
    markdown: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The page of the claims as Markdown.")
    ] = None


@add_options
def reproduce(
    run: ReproduceOptions,
    output: ResultOptions,
    claim: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CLAIM]",
            help="A paper (dftl), a figure or table of it (container-marking/table-4) or a claim (G8); all if none.",
        ),
    ] = None,
) -> int:
    """Run papers' tables and figures again, and hold our numbers against what they claim.

    Exit status 1 says that a claim did not come out as its rule asks.
    """
    output.check(run.markdown)
    wanted = claim or []
    if run.list:
        return _list(choose(papers(run.experiments), wanted), output)
    if run.jobs is not None and run.jobs < 1:
        raise WorkloadError(f"--jobs: found {run.jobs}, expected 1 or more", "")
    told = _Told(output)
    try:
        found = carry_out(
            wanted,
            quick=run.quick,
            traces=run.traces,
            store=run.store,
            experiments=run.experiments,
            workers=run.jobs,
            told=told.plan,
            progress=told.progress,
        )
    except KeyboardInterrupt:
        told.close()
        errors.note("interrupted; the runs that were finished are kept, the same command goes on")
        return 130
    told.close()
    document = found.to_json()
    put_json(document, output.json)
    if run.markdown is not None:
        with write_beside(run.markdown) as part:
            part.write_text(markdown(document), encoding="utf-8")
    if output.report is not None:
        write_claims(output.report, document)
    if not output.silent:
        _show(found)
    judged = [each for each in document["claims"] if each["verdict"] != "not testable"]
    return 0 if all(each["verdict"] == "reproduced" for each in judged) else 1


def _list(claims: Sequence[Claim], output: ResultOptions) -> int:
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
    put_json({"claims": rows}, output.json)
    if not output.silent:
        table = page.plain_table("claim", "name", "class", "the paper says")
        for row in rows:
            table.add_row(row["id"], row["name"], row["kind"], row["says"])
        out = page.console()
        out.print(table)
        out.print(f"{len(rows)} claims")
    return 0


class _Told:
    """Says what is to come, and how far it is."""

    def __init__(self, output: ResultOptions) -> None:
        self._output = output
        self._bar = Bar(output.bar, "claims", "runs/s")

    def plan(self, made: Plan) -> None:
        """Take the plan."""
        if self._output.quiet:
            return
        left = made.runs - made.kept
        told = f"{units.count(len(made.claims))} claims rest on {units.count(made.runs)} runs"
        if made.kept:
            told += f", of which {units.count(made.kept)} are kept"
        if left:
            minutes = made.cpu_s / 60
            told += f"; {f'about {minutes:.0f} minutes' if minutes >= 1.5 else 'a minute or two'} of one core to go"
        errors.note(told)

    def progress(self, outcome: Outcome, done: int, total: int) -> None:
        """Take a finished run."""
        if outcome.error is not None:
            self._bar.close()
            errors.note(f"{outcome.point.label}: {outcome.error}")
        self._bar.update(Progress("measured", done, total, None, 0), "runs")

    def close(self) -> None:
        """End the bar."""
        self._bar.close()


def _show(found: Reproduction) -> None:
    out = page.console()
    claims: list[dict[str, Any]] = found.to_json()["claims"]
    if len(claims) <= _TOLD_IN_FULL:
        for each in claims:
            out.print(page.grid(_in_full(each)))
            out.print()
    else:
        table = page.plain_table("claim", "name", "verdict", "ours")
        for each in claims:
            table.add_row(
                each["id"],
                f"{each['paper']}/{each['entry']}",
                each["verdict"] or "could not be judged",
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
        ("verdict", each["verdict"] or f"could not be judged: {each['error']}"),
        ("why", "" if each["verdict"] == "reproduced" else each["why"]),
    ]
    return [(name, text) for name, text in rows if text]
