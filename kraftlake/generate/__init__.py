"""Generates the history of a cluster of any size: seeded logs for benchmarks, demonstrations and tests.

`generate_lake(path, plan)` is the entry point. Source of the records: org.apache.kafka.controller.
"""
