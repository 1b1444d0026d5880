"""``flashwright rerun``: a result played again, to see whether it comes out the same."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from flashwright.cli.options import PolicyFiles, add_options
from flashwright.cli.outputs import ResultOptions
from flashwright.cli.render import errors, page, put_json, put_page
from flashwright.drive.policies.handing import load
from flashwright.errors import SavedStateError
from flashwright.simulation.rerun import rerun as play_again
from flashwright.simulation.results import Runs
from flashwright.support.bars import Bar
from flashwright.support.files import reason

__all__ = ["rerun"]


@add_options
def rerun(
    output: ResultOptions,
    result: Annotated[
        Path,
        typer.Argument(
            metavar="RESULT.json", help="What `simulate --json` or `compare --json` wrote."
        ),
    ],
    trace: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where the trace lies now; by default where it lay then.",
            rich_help_panel="Workload",
        ),
    ] = None,
    policy: PolicyFiles = None,
) -> int:
    """Play the runs of a result again, and say whether they come out the same.

    A result holds the drive, what was played, the options and the seed. Two runs are the same if their digests are:
    of every figure, and of the state in which they left the drive. The exit status is 1 if one differs. Policies
    written in Python are given again with --policy, as they were then.
    """
    output.check()
    given = [load(text) for text in policy or []]
    with Bar(output.bar) as bar:
        found = play_again(
            _without_rows(_document(result)),
            trace=trace,
            policies=given,
            progress=lambda label, now: bar.update(now, label=label),
        )
    put_json(
        {
            "runs": [
                {
                    "label": each.label,
                    "digest_then": each.digest_then,
                    "digest_now": each.digest_now,
                    "agrees": each.agrees,
                    "same_code": each.same_code,
                }
                for each in found
            ]
        },
        output.json,
    )
    put_page(lambda: Runs(each.result for each in found), output)
    if not output.silent:
        table = page.plain_table(
            page.Column("run", 100, number=False),
            page.Column("digest then", 90, number=False),
            page.Column("digest now", 90, number=False),
            page.Column("same", 80, number=False),
        )
        for each in found:
            table.add_row(
                each.label, each.digest_then, each.digest_now, "yes" if each.agrees else "NO"
            )
        page.console().print(table)
    if not output.quiet and not all(each.same_code for each in found):
        errors.note(
            "another version of the simulator made the result, whose source differs from this one's"
        )
    return 0 if all(each.agrees for each in found) else 1


def _without_rows(document: dict[str, Any]) -> dict[str, Any]:
    """The same runs without a row for every request, which would only fill memory here."""
    runs = document.get("runs", [document])
    for run in runs if isinstance(runs, list) else []:
        with contextlib.suppress(KeyError, TypeError):
            run["run"]["made"]["options"]["keep_requests"] = False
    return document


def _document(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SavedStateError(f"{path}: {reason(error)}", "") from None
    except ValueError as error:
        raise SavedStateError(f"{path}: found no JSON ({error}), expected a result", "") from None
    if not isinstance(found, dict):
        raise SavedStateError(f"{path}: found {type(found).__name__}, expected a result", "")
    return found
