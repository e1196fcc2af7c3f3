"""Upkeep of a lake's tables: checkpoints, compaction, trim, vacuum, and checks of a table's files."""
