"""The history tables: one row for each state of a partition, topic, broker, config and so on, with its interval."""
