"""How long a drive lasts: by formula, played to its end, extrapolated from its steady state, from its SMART data.

Amounts of data are bytes that the host writes, times of life are years of 365.25 days.
"""

from __future__ import annotations

from flashwright.life.amounts import YEAR_S, parse_rate, parse_size
from flashwright.life.forecasts import (
    Forecast,
    begin,
    extrapolate,
    forecast,
    play_to_end,
    spare_share,
)
from flashwright.life.formulas import Endurance, effective_range, figures, residual, writable

__all__ = [
    "YEAR_S",
    "Endurance",
    "Forecast",
    "begin",
    "effective_range",
    "extrapolate",
    "figures",
    "forecast",
    "parse_rate",
    "parse_size",
    "play_to_end",
    "residual",
    "spare_share",
    "writable",
]
