"""The derived tables of a lake: their descriptions, rows, catch-up, and states at an offset. Needs no Spark."""
