"""What we do ourselves, since a library for it loads longer than a run lasts: it gives what the library gives."""

from __future__ import annotations

import math
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import pytest
import typer
from scipy.special import stdtrit
from typer.testing import CliRunner

from flashwright import RunResult, Ssd
from flashwright.cli.help import Command
from flashwright.support.estimate import _t
from flashwright.support.tabular import column


def test_students_t() -> None:
    # As printed: Abramowitz and Stegun, table 26.10.
    printed = {1: 12.706, 2: 4.303, 3: 3.182, 10: 2.228, 30: 2.042, 120: 1.980}
    assert {freedom: round(_t(freedom), 3) for freedom in printed} == printed
    for freedom in [*range(1, 200), 1000, 5001]:
        assert math.isclose(_t(freedom), stdtrit(freedom, 0.975), rel_tol=1e-12), freedom


@pytest.mark.parametrize(
    "values",
    [
        [],
        [None, None],
        [1, None, 3],
        [1, 2.5, None],
        [math.inf, 1],
        [2**63 - 1, -(2**63)],
        ["a", None, "é", ""],
        [True, False, None, True, True, False, True, False, True],
        [[1, 2], None, [3]],
    ],
    ids=str,
)
def test_a_column_is_the_one_of_arrow(values: Sequence[object]) -> None:
    ours, theirs = column(values), pa.array(values)
    ours.validate(full=True)
    assert ours.equals(theirs) and ours.type == theirs.type


def made(*arguments: str, plain: bool) -> str:
    """What a program is given for what was typed, or what it says to that, by us or by Typer alone."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)

    def program(
        text: str = "x",
        whole: Annotated[int, typer.Option(min=1, max=20)] = 3,
        part: float | None = None,
        path: Path = Path("of-no-one"),
        there: Annotated[Path | None, typer.Option(exists=True, dir_okay=False)] = None,
        several: list[str] | None = None,
        counts: list[int] | None = None,
        yes: bool = False,
        rest: Annotated[list[str] | None, typer.Argument()] = None,
    ) -> None:
        print(repr((text, whole, part, path, there, several, counts, yes, rest)))

    app.command(cls=Command if plain else None)(program)
    found = CliRunner().invoke(app, arguments)
    # Without the line on usage, which our commands word otherwise.
    return f"{found.exit_code}: {found.output.splitlines()[-1]}"


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        (
            "--text",
            "5",
            "--whole",
            "7",
            "--part",
            "0.25",
            "--path",
            "a/../b",
            "--yes",
            "one",
            "two",
        ),
        ("--whole", "-7"),
        ("--whole", "21"),
        ("--whole", "1e3"),
        ("--whole", "1_0"),
        ("--whole", " 5"),
        ("--part", "1e-3"),
        ("--part", ".5"),
        ("--part", "nan"),
        ("--part", "text"),
        ("--path", ""),
        ("--there", "/of-no-one"),
        ("--there", "/"),
        ("--several", "a", "--several", "b"),
        ("--counts", "1", "--counts", "2"),
        ("--counts", "one"),
        ("--text",),
    ],
    ids=" ".join,
)
def test_values_are_those_of_typer(arguments: Sequence[str]) -> None:
    assert made(*arguments, plain=True) == made(*arguments, plain=False)


def test_columns_that_nobody_has_asked_for_yet_are_saved_with_a_result() -> None:
    run = Ssd.named("default").play("uniform", requests=500, keep_requests=True, closeup=(10, 5))
    kept: RunResult = pickle.loads(pickle.dumps(run))
    again: RunResult = pickle.loads(pickle.dumps(kept))
    for each in (kept, again):
        assert each.windows.equals(run.windows)
        assert each.windows.schema.metadata == run.windows.schema.metadata
        assert each.requests().equals(run.requests())
        assert each.closeup is not None and each.closeup.equals(run.closeup)
        assert (each.erases_per_block == run.erases_per_block).all()
