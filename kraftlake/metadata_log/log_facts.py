"""The names of what a lake's log says of itself in its table, beside its rows: properties, and where it ends."""

from __future__ import annotations

LOG_TABLE = "log"
SNAPSHOTS_TABLE = "snapshots"
"""The tables of a lake, as folders of it."""

ROLES = ("imported", "controlled")
"""Who appends: imports of a cluster's log, or a controller of ours."""

CLUSTER_ID = "kraftlake.cluster_id"
ROLE = "kraftlake.role"
START_OFFSET = "kraftlake.log_start_offset"
CHAIN_BASE = "kraftlake.chain_base"
"""Properties of the table. The base is the last link of the chain that a trim took away, as OFFSET:HASH."""

END_OFFSET = "kraftlake.end_offset"
EPOCH = "kraftlake.epoch"
COMMITTED_TO = "kraftlake.committed_to"
CHAIN = "kraftlake.chain"
CHAIN_START = "kraftlake.chain_start"
CHAIN_END = "kraftlake.chain_end"
"""Application ids of txn actions, whose version is the value. Of the chain: its hash, the offset of its first row, and
the one after its last row, which is below the log's end where a release that keeps no chain appended since."""

CHAIN_BEFORE = "kraftlake.chain_before"
"""In the commitInfo of an append: the chain's hash, or null, in the version that it was made upon."""

NO_EPOCH = -1
"""The epoch of a log without a record."""
