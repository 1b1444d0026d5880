"""What is played: generated workloads, trace files and their formats, recording a device, the bundled recordings."""
