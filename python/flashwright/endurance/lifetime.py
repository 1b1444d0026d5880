"""How long a drive lasts: by formula, played to its end, extrapolated from its steady state, from its SMART data.

Amounts of data are bytes that the host writes, times of life are years of 365.25 days.
"""

from __future__ import annotations

from flashwright.endurance.amounts import (
    YEAR_S,
    parse_endurance,
    parse_rate,
    parse_rating,
    parse_share,
    parse_size,
    parse_years,
)
from flashwright.endurance.evenwear import EvenWear, even_wear
from flashwright.endurance.forecasts import (
    Forecast,
    begin,
    extrapolate,
    forecast,
    play_to_end,
    spare_share,
)
from flashwright.endurance.formulas import Endurance, effective_range, figures, residual, writable

__all__ = [
    "YEAR_S",
    "Endurance",
    "EvenWear",
    "Forecast",
    "begin",
    "effective_range",
    "even_wear",
    "extrapolate",
    "figures",
    "forecast",
    "parse_endurance",
    "parse_rate",
    "parse_rating",
    "parse_share",
    "parse_size",
    "parse_years",
    "play_to_end",
    "residual",
    "spare_share",
    "writable",
]
