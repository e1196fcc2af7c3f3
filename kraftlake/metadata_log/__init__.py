"""The metadata log as a Delta table: the lake's writer and reader, and its snapshots."""
