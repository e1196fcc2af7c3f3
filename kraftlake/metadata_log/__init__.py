"""The metadata log as a Delta table: the lake's one writer and its reader, and the snapshots kept beside it."""
