"""How long a drive lasts: formulas, forecasts, SMART data."""
