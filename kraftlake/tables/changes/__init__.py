"""The metadata deltas of a log, in bulk and as objects: transactions, boundaries, and the partitions they change."""
