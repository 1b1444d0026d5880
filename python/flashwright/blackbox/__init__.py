"""A drive that nobody can open: probes, experiments, the profile of what was found, its twin, advice for its host."""
