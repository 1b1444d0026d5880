"""One self-contained HTML file from one run or from several side by side.

The file loads nothing: styles, scripts and data are inside it, and its content security policy
forbids the rest. This package reads results only; it never runs a simulation.
"""

from flashwright.report.page import Findings, RunsPage, write_findings, write_report
from flashwright.report.runs import RunView

__all__ = ["Findings", "RunView", "RunsPage", "write_findings", "write_report"]
