"""The Delta table `local_changes/`: the local changes of each broker in each published metadata delta.

One row for a broker and a partition of a published delta. Read at one offset and broker, the rows are Kafka's
`TopicsDelta.localChanges` of the delta that ends there: `deletes` are the rows with change `delete`, `electedLeaders`
those with `leader_elected`, `leaders` those with `leader` or `leader_elected`, `followers` those with `follower`,
`directoryIds` those that have a `directory`. Read in offset order they are a broker's whole history.

If the log starts above 0, the first rows are those of loading the snapshot that covers its start, as a broker that
starts with it does.
"""

from __future__ import annotations

import pyarrow as pa

from kraftlake.tables.lake_table import TableDescription

CHANGES_BY_NAME = ("delete", "directory", "follower", "leader", "leader_elected")
"""The values of `change`, sorted; see its comment in `COLUMNS`."""

COLUMNS: tuple[tuple[pa.Field, str], ...] = (
    (
        pa.field("offset", pa.int64(), nullable=False),
        "the last offset of the published delta: of a log batch, or of the EndTransactionRecord of a transaction",
    ),
    (pa.field("epoch", pa.int32(), nullable=False), "the epoch of that offset's batch"),
    (
        pa.field("timestamp", pa.timestamp("us", tz="UTC")),
        "the time of that offset's batch by its controller's clock; null where the batch has none",
    ),
    (pa.field("broker", pa.int32(), nullable=False), "the broker's id"),
    (
        pa.field("change", pa.string(), nullable=False),
        "delete: stop hosting it; leader_elected: lead it from a new leader epoch on; leader: go on leading it in a "
        "new partition epoch; follower: host it without leading it; directory: nothing but its directory changed",
    ),
    (pa.field("topic", pa.string(), nullable=False), "the topic's name"),
    (pa.field("topic_id", pa.string(), nullable=False), "the topic's id in Kafka's 22-character base64"),
    (pa.field("partition", pa.int32(), nullable=False), "the partition's number in its topic"),
    (pa.field("leader", pa.int32()), "the leader after the change, -1 for none; null in a delete"),
    (pa.field("leader_epoch", pa.int32()), "the leader epoch after the change; null in a delete"),
    (pa.field("partition_epoch", pa.int32()), "the partition epoch after the change; null in a delete"),
    (pa.field("replicas", pa.list_(pa.int32())), "the brokers that host it, preferred leader first; null in a delete"),
    (pa.field("isr", pa.list_(pa.int32())), "the replicas that are in sync; null in a delete"),
    (
        pa.field("directory", pa.string()),
        "the id of the broker's log directory for it where the delta assigns one, else null",
    ),
)

LOCAL_CHANGES = TableDescription("local_changes", "What each metadata delta means to each broker.", COLUMNS)
SCHEMA = LOCAL_CHANGES.schema
ENCODED_SCHEMA = LOCAL_CHANGES.encoded_schema
