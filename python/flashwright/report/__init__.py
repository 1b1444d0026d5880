"""Self-contained HTML pages, and charts as files for a paper, from tables and columns of numbers alone.

A page loads nothing: styles, scripts and data are inside it, and its content security policy forbids the rest. Nothing
here knows a result: each room draws its own pages with this.
"""

from flashwright.report.page import Findings, write_findings

__all__ = ["Findings", "write_findings"]
