"""What the tests of claims share: a judge on rows made by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flashwright.papers import Answer, Paper, Verdict


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
