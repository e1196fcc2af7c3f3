"""The names of the facts that a lake's table stores about its log beside the rows: properties, and the log's end."""

from __future__ import annotations

LOG_TABLE = "log"
SNAPSHOTS_TABLE = "snapshots"
"""The tables of a lake, as folder names."""

ROLES = ("imported", "controlled")
"""The kind of writer that appends: imports of a cluster's log, or a kraftlake controller."""

CLUSTER_ID = "kraftlake.cluster_id"
ROLE = "kraftlake.role"
START_OFFSET = "kraftlake.log_start_offset"
CHAIN_BASE = "kraftlake.chain_base"
"""Properties of the table. The base is the last link of the trimmed part of the chain, as OFFSET:HASH."""

END_OFFSET = "kraftlake.end_offset"
EPOCH = "kraftlake.epoch"
COMMITTED_TO = "kraftlake.committed_to"
CHAIN = "kraftlake.chain"
CHAIN_START = "kraftlake.chain_start"
CHAIN_END = "kraftlake.chain_end"
"""Application ids of txn actions, whose version is the value. Of the chain: its hash, the offset of its first row, and
the one after its last row, which is below the log's end if a release that keeps no chain has appended since."""

CHAIN_BEFORE = "kraftlake.chain_before"
"""The key in the commitInfo of an append for the chain's hash, or null, in the version before the append."""

NO_EPOCH = -1
"""The epoch of a log without a record."""
