"""How long a drive lasts and what spare space costs: formulas, forecasts, SMART data, advice on utilization."""
