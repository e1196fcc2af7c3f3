"""The history tables of a lake: one row for each state of a partition, topic, broker, config, ACL and client quota."""
