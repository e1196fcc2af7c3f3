"""Kafka's own image classes and ours on the same bytes: `python -m benchmarks.image`."""
