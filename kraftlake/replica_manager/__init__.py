"""One broker: its partitions as leader and follower, the metadata deltas that change them, and their replay from a log."""
