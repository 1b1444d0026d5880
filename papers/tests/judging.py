"""What the tests of claims share: a judge on rows made by hand."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from flashwright_papers import Answer, Paper, Verdict


def together(folder: str, *names: str) -> SimpleNamespace:
    """What files of a paper's folder hold; the papers must have been read."""
    found = SimpleNamespace()
    for name in names:
        vars(found).update(vars(sys.modules[f"flashwright_experiments.{folder}.{name}"]))
    return found


def verdict_of(paper: Paper, id_: str, rows: Mapping[str, Any]) -> Verdict:
    """What a judge says, with words, and with plots that are whole and small."""
    judging = paper.judges[id_]
    answer = judging.judge({need: rows[need] for need in judging.needs})
    assert isinstance(answer, Answer)
    assert answer.ours
    for plot in answer.plots:
        assert all(len(line.x) == len(line.y) for line in plot.lines)
        assert sum(len(line.x) for line in plot.lines) <= 200
    return answer.verdict
