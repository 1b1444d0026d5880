"""What several probes share: requests and regions, edges between sizes, overwriting, RAM that takes writes."""
