"""The columns of a partition's state, with their meanings; every table of such states has them."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

INTS: Final = pa.list_(pa.int32())

PARTITION_STATE: Final[tuple[tuple[pa.Field, str], ...]] = (
    (pa.field("topic", pa.string(), nullable=False), "the topic's name"),
    (
        pa.field("topic_id", pa.string(), nullable=False),
        "the topic's id in Kafka's 22-character base64; a topic that is deleted and created again has another one",
    ),
    (pa.field("partition", pa.int32(), nullable=False), "the partition's number in its topic"),
    (pa.field("leader", pa.int32(), nullable=False), "the id of the leader, -1 for none"),
    (pa.field("leader_epoch", pa.int32(), nullable=False), "how often a leader was elected"),
    (pa.field("partition_epoch", pa.int32(), nullable=False), "how often anything of the partition was changed"),
    (pa.field("replicas", INTS, nullable=False), "the brokers that host it, preferred leader first"),
    (pa.field("isr", INTS, nullable=False), "the replicas that are in sync"),
    (pa.field("elr", INTS, nullable=False), "the eligible leader replicas (KIP-966)"),
    (pa.field("last_known_elr", INTS, nullable=False), "the last known ELR: the last leader, where none is eligible"),
    (pa.field("adding_replicas", INTS, nullable=False), "the replicas that a reassignment adds"),
    (pa.field("removing_replicas", INTS, nullable=False), "the replicas that a reassignment removes"),
    (
        pa.field("leader_recovery_state", pa.int32(), nullable=False),
        "0: recovered; 1: elected uncleanly and still recovering",
    ),
    (
        pa.field("directories", pa.list_(pa.string()), nullable=False),
        "the id of each replica's log directory, in the replicas' order; Kafka's MIGRATING id where it is unknown",
    ),
)
"""Each column with its meaning, in the order in which all tables have them."""

PARTITION_SCHEMA: Final = pa.schema([field for field, _ in PARTITION_STATE])
