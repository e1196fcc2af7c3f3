"""The Delta protocol: actions, commits, checkpoints, and the Parquet files of a table."""
