"""The table of a lake's snapshots."""
