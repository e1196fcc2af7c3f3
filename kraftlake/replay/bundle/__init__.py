"""Bundles: a log as Kafka's own files to hand over, without its secrets and, by choice, under other names."""
