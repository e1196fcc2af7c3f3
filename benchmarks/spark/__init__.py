"""What Spark's jobs cost against one process: see `python -m benchmarks.spark --help`."""
