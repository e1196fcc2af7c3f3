"""Commands on topics and partitions: creation, placement, leaders, ISRs, reassignments, log directories."""
