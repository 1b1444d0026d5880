"""What a closed drive is like inside: probes, the session that asks them, what they cost, the page of the findings."""
