"""One self-contained HTML file from one run or from several side by side.

These pages are drawn from results alone, by the names of the documented JSON; nothing here runs a simulation.
"""

from flashwright.simulation.pages.page import RunsPage, write_report
from flashwright.simulation.pages.view import RunView

__all__ = ["RunView", "RunsPage", "write_report"]
