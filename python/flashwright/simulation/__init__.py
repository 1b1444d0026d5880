"""Playing a workload on a drive: one run, several side by side, replays on a device, their results and pages."""
