"""The quantitative claims of the six sources, each run again and compared with what its source says.

A paper is a folder, by default one of ``experiments/`` beside this file. What it claims is in its TOML files
(:class:`Claim`). What is run for that is in its Python files, as *parts* (:func:`part`), lists of jobs that several
claims may rest on, and *judges* (:func:`claim`), which compare the results of parts with a claim's own rule. ::

    experiments/dftl/   paper.toml   who and where
                        claims.toml  id, entry, where, class, says, rule, why
                        exhibits.toml  every figure and table: what it shows, its claims or why there are none
                        runs.py      @part("comparison", cpu_s=(20, 60)) -> jobs
                        judges.py    @claim("G8", needs="comparison") -> Answer
"""

from flashwright_papers.claims import (
    Answer,
    Claim,
    Exhibit,
    Found,
    Job,
    Line,
    Open,
    Plot,
    Setting,
    Table,
    Verdict,
    claim,
    part,
)
from flashwright_papers.papers import Paper, papers
from flashwright_papers.planning import Plan, choose, plan
from flashwright_papers.session import Reproduction, reproduce
from flashwright_papers.verdicts import ClaimVerdict, Reading

__all__ = [
    "Answer",
    "Claim",
    "ClaimVerdict",
    "Exhibit",
    "Found",
    "Job",
    "Line",
    "Open",
    "Paper",
    "Plan",
    "Plot",
    "Reading",
    "Reproduction",
    "Setting",
    "Table",
    "Verdict",
    "choose",
    "claim",
    "papers",
    "part",
    "plan",
    "reproduce",
]
