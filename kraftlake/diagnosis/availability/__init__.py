"""The time that partitions spent offline, or close to it, and whose loss began it."""
