"""What all rooms share: files, sealed states, checked arguments, tables, digests, signals and progress bars."""
