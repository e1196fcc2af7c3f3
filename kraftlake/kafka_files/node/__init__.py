"""The files beside a log that describe a Kafka node: its identity, its vote, and faults that prevent its start."""
