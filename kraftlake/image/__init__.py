"""Immutable snapshots of the cluster: `MetadataImage`, its nine parts, and their forms as records and JSON. No I/O."""
