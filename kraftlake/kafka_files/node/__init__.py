"""The files beside a log that describe a Kafka node: its identity, its vote, and what keeps it from starting."""
