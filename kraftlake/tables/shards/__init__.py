"""A log dealt out by topic id: tasks of shards make the rows of topics, one task those of the rest. No Spark."""
