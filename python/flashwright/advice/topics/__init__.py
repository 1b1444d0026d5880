"""What follows from a profile for a drive's host, a file a group of topics."""
