"""A drive under test: one set of calls for devices, files, exports and simulated drives, a guard before them, and what
every question to it shares: its costs, its time limit, the drive's own counters, statistics."""
