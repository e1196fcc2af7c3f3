"""One broker: its partitions as leader and follower, the metadata deltas that change them, their replay from a log."""
