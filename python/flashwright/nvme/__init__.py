"""What an NVMe drive says of itself, by the kernel's passthrough: Identify, namespaces, zones, placement, counters."""
