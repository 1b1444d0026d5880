"""``flashwright reproduce``: the papers' claims, run again and judged."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from flashwright.cli.options import add_options
from flashwright.cli.outputs import ResultOptions, WorkerOptions
from flashwright.cli.render import errors, page, put_json, put_page, units
from flashwright.errors import ConfigError
from flashwright.support.bars import PointsBar
from flashwright.support.files import check_folder, write_beside
from flashwright.sweeps.points import Outcome, Store
from flashwright_papers import Claim, Exhibit, Paper, Plan, Reproduction, choose, papers
from flashwright_papers import reproduce as carry_out
from flashwright_papers.claims import TOO_SMALL
from flashwright_papers.documents import read_kept, renewed, searched, written
from flashwright_papers.figures import paper_pages
from flashwright_papers.markdown import pages, verdict_in_full, why_in_full
from flashwright_papers.pages import claims_page
from flashwright_papers.planning import exhibits
from flashwright_papers.session import Judging, folder_of

__all__ = ["reproduce"]

_Texts = list[str]  # the options below have one named list
_TRACES = "FLASHWRIGHT_TRACES"
# Up to this many claims are printed in full; more are printed as a table.
_CLAIMS_IN_FULL_MAX = 3


@dataclass
class ReproduceOptions:
    """What is judged, and on what it rests."""

    list: Annotated[
        bool,
        typer.Option(
            "--list",
            help="List the claims with their statements, and run nothing.",
            rich_help_panel="Scope",
        ),
    ] = False
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Scale down: minutes for all claims; no verdict where size decides.",
            rich_help_panel="Scope",
        ),
    ] = False
    traces: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            envvar=_TRACES,
            help="Folder of real traces, named as the papers' READMEs say; without it, labelled stand-ins are played.",
            rich_help_panel="Scope",
        ),
    ] = None
    given: Annotated[
        _Texts | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Take this for something that a paper leaves open; --list names it. Repeatable.",
            rich_help_panel="Scope",
        ),
    ] = None
    search: Annotated[
        bool,
        typer.Option(
            "--search",
            help="Also try each other value for what the papers leave open, on drives as small as each says.",
            rich_help_panel="Scope",
        ),
    ] = False
    store: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER",
            help="Keep the results of runs here; runs that are already there are not repeated.",
            rich_help_panel="Saving and resuming",
        ),
    ] = Path(".flashwright/claims")
    experiments: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            envvar="FLASHWRIGHT_EXPERIMENTS",
            help="The papers; by default those in the package. Workers of --dask need them at the same place.",
            rich_help_panel="Scope",
        ),
    ] = None
    markdown: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Write the claims as Markdown: an index and a page for each paper.",
            rich_help_panel="Output",
        ),
    ] = None
    paper_page: Annotated[
        Path | None,
        typer.Option(
            "--paper-page",
            metavar="FOLDER",
            help="Write a page for each paper, figure by figure, and a list of all: Markdown and SVG.",
            rich_help_panel="Output",
        ),
    ] = None
    kept: Annotated[
        Path | None,
        typer.Option(
            "--from-json",
            metavar="FILE",
            help="Run nothing: write the outputs from an earlier --json FILE, with the papers' current classes. "
            "With --search its searches are made again, of all claims or those named.",
            rich_help_panel="Output",
        ),
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
    """Rerun papers' tables and figures, and compare our numbers with theirs.

    The exit status is 1 if a claim did not come out as its rule asks; a quick run does not judge what size decides. A
    claim that agrees because a constant was fitted to it, or because its result is among our inputs, counts as fitted
    or by construction, never as reproduced.
    """
    output.check()
    for folder in (run.markdown, run.paper_page):
        if folder is not None:
            check_folder(folder)
    wanted = claim or []
    if run.kept is not None:
        return _from_kept(run.kept, run, wanted, workers, output)
    if run.list:
        read = papers(run.experiments)
        return _list(read, choose(read, wanted), exhibits(read, wanted), output)
    workers.check()
    try:
        with PointsBar(output.bar) as bar:
            found = carry_out(
                wanted,
                quick=run.quick,
                traces=run.traces,
                given=_pairs(run.given or []),
                search=run.search,
                store=run.store,
                experiments=run.experiments,
                workers=workers.jobs,
                dask=workers.dask,
                announce=None if output.quiet else _tell,
                progress=bar.update,
            )
    except KeyboardInterrupt:
        return _interrupted()
    _tell_failures(found.failures, run.store)
    document = found.to_json()
    _put(document, run, output)
    if not output.silent:
        _show(found, document)
    return _status(document)


def _from_kept(
    kept: Path,
    run: ReproduceOptions,
    wanted: Sequence[str],
    workers: WorkerOptions,
    output: ResultOptions,
) -> int:
    """Write the outputs from an earlier run, with searches of its claims if they are asked for."""
    # A folder of traces in the environment is for all commands, and not asked for here.
    traces = run.traces is not None and str(run.traces) != os.environ.get(_TRACES)
    if run.list or run.quick or run.given or ((wanted or traces) and not run.search):
        raise ConfigError(
            "--from-json: found with claims, --list, --quick, --given or --traces, expected alone or with --search",
            "it writes what the file contains; --search adds searches to it, of the claims that are named",
        )
    read = papers(run.experiments)
    document = renewed(read_kept(kept), read)
    if run.search:
        workers.check()
        folder = None if run.traces is None else folder_of(run.traces)
        try:
            with PointsBar(output.bar) as bar:
                judging = Judging(
                    read,
                    Store(run.store),
                    workers.jobs,
                    workers.dask,
                    bar.update,
                    None if output.quiet else _tell,
                )
                document = searched(document, judging, wanted, folder)
        except KeyboardInterrupt:
            return _interrupted()
        _tell_failures(judging.failures, run.store)
    _put(document, run, output)
    if not output.silent:
        _show_claims(document)
        page.console().print(f"{len(document['claims'])} claims: {_counts(document)}.")
    return _status(document)


def _interrupted() -> int:
    errors.note("interrupted; the runs that were finished are kept, the same command continues")
    return 130


def _tell_failures(failures: Sequence[Outcome], store: Path) -> None:
    for outcome in failures:
        errors.fault(f"{outcome.point.label}: {outcome.error}")
        if outcome.traceback is not None:
            errors.note(f"its traceback: {Store(store).traceback_path(outcome.point)}")


def _pairs(given: Sequence[str]) -> dict[str, str]:
    pairs = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not (name and equals and value):
            raise ConfigError(f"--given: found {each!r}, expected NAME=VALUE", "")
        pairs[name] = value
    return pairs


def _put(document: Mapping[str, Any], run: ReproduceOptions, output: ResultOptions) -> None:
    put_json(document, output.json, written)
    for folder, write in ((run.markdown, pages), (run.paper_page, paper_pages)):
        if folder is None:
            continue
        for name, text in write(document).items():
            (folder / name).parent.mkdir(exist_ok=True)
            with write_beside(folder / name) as part:
                part.write_text(text, encoding="utf-8")
    put_page(lambda: claims_page(document), output)


def _status(document: Mapping[str, Any]) -> int:
    passed = ("reproduced", "not testable")
    failed = [
        each
        for each in document["claims"]
        if each["judged"] not in passed and each["verdict"] != TOO_SMALL
    ]
    return 1 if failed else 0


def _list(
    read: Mapping[str, Paper],
    claims: Sequence[Claim],
    shown: Sequence[Exhibit],
    output: ResultOptions,
) -> int:
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
    left_open = [(name, each) for name, of in named.items() for each in of.open]
    listed = [asdict(each) for each in shown]
    put_json({"papers": cited, "exhibits": listed, "claims": rows}, output.json)
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
        out.print(_listed(shown))
        out.print(table)
        out.print(page.grid([(name, f"{of.cited}: {of.title}") for name, of in named.items()]))
        if left_open:
            table = page.plain_table(
                page.Column("left open by", 60, number=False),
                page.Column("name", 100, number=False),
                page.Column("what", 90, number=False),
                page.Column("taken", 95, number=False),
                page.Column("others", 80, number=False),
            )
            for name, each in left_open:
                others = ", ".join(map(str, each.others))
                table.add_row(name, each.name, each.what, str(each.taken), others)
            out.print(table)
        out.print(f"{len(shown)} figures and tables, {len(rows)} claims")
    return 0


def _listed(shown: Sequence[Exhibit]) -> Any:
    """Figures and tables, with their claims or that there is nothing to compute."""
    table = page.plain_table(
        page.Column("figure or table", 100, number=False),
        page.Column("shows", 90, number=False),
        page.Column("claims", 60, number=False),
    )
    for each in shown:
        table.add_row(
            f"{each.paper}/{each.name}", each.shows, each.drawing or ", ".join(each.claims)
        )
    return table


def _tell(made: Plan) -> None:
    """Say what is to come."""
    if not made.claims:
        return
    left = made.runs - made.kept
    note = f"{units.count(len(made.claims))} claims rest on {units.count(made.runs)} runs"
    if made.kept:
        note += f", of which {units.count(made.kept)} are kept"
    if left:
        minutes = made.cpu_s / 60
        lasts = f"about {minutes:.0f} minutes" if minutes >= 1.5 else "a minute or two"
        note += f"; {lasts} of one core to go"
    errors.note(note)


def _counts(document: Mapping[str, Any]) -> str:
    return ", ".join(f"{count} {name}" for name, count in document["counts"].items())


def _show_claims(document: Mapping[str, Any]) -> None:
    out = page.console()
    claims_of = {each["paper"] for each in document["claims"]}
    for source in document["sources"]:
        if source["paper"] in claims_of and len(document["claims"]) > _CLAIMS_IN_FULL_MAX:
            continue  # a table of many claims is no place for drawings
        for each in source["exhibits"]:
            if each["drawing"]:
                rows = [("shows", each["shows"]), ("nothing to compute", each["drawing"])]
                out.print(page.grid([(each["name"], source["paper"]), *rows]))
                out.print()
    claims: list[dict[str, Any]] = document["claims"]
    if len(claims) <= _CLAIMS_IN_FULL_MAX:
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
                verdict_in_full(each),
                each["ours"] or each["error"] or "",
            )
        out.print(table)


def _show(found: Reproduction, document: Mapping[str, Any]) -> None:
    _show_claims(document)
    if not found.claim_verdicts:
        return
    out = page.console()
    kept = found.runs - found.computed
    out.print(
        f"{len(found.claim_verdicts)} claims: {_counts(document)}. {units.count(found.runs)} runs"
        + (f", {units.count(kept)} of them kept from before" if kept else "")
        + f"; {found.cpu_s / 60:.1f} minutes of one core, {found.wall_s / 60:.1f} minutes on {found.workers}."
    )
    if found.setting.quick:
        out.print(
            "Quick runs show trends; where size decides, only a run without --quick gives a verdict."
        )


def _in_full(each: dict[str, Any]) -> list[tuple[str, str]]:
    rows = [
        (each["id"], f"{each['paper']}/{each['entry']} ({each['where']}), class {each['kind']}"),
        ("paper", each["says"]),
        ("rule", each["rule"]),
        ("drive", each["drive"]),
        ("judged on", each.get("used", "")),
        ("workload", each["workload"]),
        ("ours", each["ours"]),
        ("verdict", ": ".join(filter(None, (verdict_in_full(each), each["error"])))),
        ("why", "" if each["verdict"] == "reproduced" else why_in_full(each)),
    ]
    return [(name, text) for name, text in rows if text]
