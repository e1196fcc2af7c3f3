"""A log dealt out by topic id: each shard makes the rows of its topics, the driver those of all else. No Spark."""
