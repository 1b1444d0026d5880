"""What to do with a drive: how much space to reserve, and how to set up its host."""
