"""Drives that real software uses: a simulated drive over NBD, and talking to a server that runs."""
