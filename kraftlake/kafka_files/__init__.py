"""Reads and writes Kafka's own files: segments, snapshots, metadata directories and archives of them."""
