"""The Delta table `events/`: the events of a cluster, a readable row for each thing that changed.

The rows of a metadata delta compare the image before it with the one after it, so a change that was undone within one
log batch or metadata transaction doesn't show. Secrets are redacted as everywhere.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from kraftlake.tables.lake_table import TableDescription

KINDS: Final = {
    "topic_created": "a topic was created, with its partitions",
    "topic_deleted": "a topic was deleted, with its partitions",
    "partitions_added": "a topic has more partitions",
    "leader_moved": "another broker leads a partition",
    "leader_lost": "a partition lost its leader",
    "leader_elected": "a partition without a leader has one again",
    "recovery_state_changed": "a leader was elected uncleanly (RECOVERING), or has recovered (RECOVERED)",
    "isr_shrank": "replicas left the ISR",
    "isr_expanded": "replicas joined the ISR",
    "isr_changed": "some replicas left the ISR, others joined it",
    "elr_changed": "the eligible leader replicas changed",
    "reassignment_started": "a reassignment of a partition began",
    "reassignment_changed": "a reassignment under way got other target replicas",
    "reassignment_finished": "a reassignment of a partition was completed",
    "reassignment_cancelled": "a reassignment was cancelled: the partition keeps its replicas",
    "replicas_changed": "the replicas of a partition or their order changed without a reassignment",
    "broker_registered": "a broker was registered, or restarted (another incarnation)",
    "broker_unregistered": "a broker was unregistered",
    "broker_fenced": "a broker was fenced",
    "broker_unfenced": "a broker was unfenced",
    "broker_in_controlled_shutdown": "a broker began a controlled shutdown",
    "broker_changed": "another field of a broker's registration changed",
    "controller_registered": "a controller was registered, or restarted",
    "controller_unregistered": "a controller was unregistered",
    "controller_changed": "another field of a controller's registration changed",
    "controller_elected": "another controller leads the quorum, or the same one in a new epoch",
    "config_changed": "a config was set, changed or removed",
    "quota_changed": "a client quota was set, changed or removed",
    "acl_added": "an ACL was added",
    "acl_removed": "an ACL was removed",
    "feature_changed": "a feature's finalized level changed",
    "scram_changed": "a user's SCRAM credential was set, changed or removed; the credential is never shown",
    "delegation_token_changed": "a delegation token was issued, renewed or removed; only its id is shown",
    "voter_added": "a controller became a voter of the quorum",
    "voter_removed": "a controller is no longer a voter of the quorum",
    "voter_changed": "a voter has another directory of the metadata log, endpoints or supported levels",
}
"""The values of `kind`, with their meanings."""

KIND_WORDS: Final = {
    "offline": ("leader_lost",),
    "online": ("leader_elected",),
    "leader": ("leader_*",),
    "election": ("leader_*", "controller_elected"),
    "unclean": ("recovery_state_changed",),
    "isr": ("isr_*",),
    "shrink": ("isr_shrank",),
    "expand": ("isr_expanded",),
    "elr": ("elr_changed",),
    "fenced": ("broker_fenced",),
    "unfenced": ("broker_unfenced",),
    "registered": ("*_registered",),
    "unregistered": ("*_unregistered",),
    "restart": ("broker_registered",),
    "shutdown": ("broker_in_controlled_shutdown",),
    "broker": ("broker_*",),
    "controller": ("controller_*",),
    "topic": ("topic_*", "partitions_added"),
    "created": ("topic_created",),
    "deleted": ("topic_deleted",),
    "reassignment": ("reassignment_*", "replicas_changed"),
    "reassign": ("reassignment_*", "replicas_changed"),
    "replica": ("reassignment_*", "replicas_changed"),
    "config": ("config_changed",),
    "quota": ("quota_changed",),
    "acl": ("acl_*",),
    "feature": ("feature_changed",),
    "scram": ("scram_changed",),
    "token": ("delegation_token_changed",),
    "voter": ("voter_*",),
}
"""Common words in the singular, with the kinds, as shell patterns, that they stand for."""

COLUMNS: Final = (
    (
        pa.field("offset", pa.int64(), nullable=False),
        "the last offset of the metadata delta that did it: of a log batch, or of the EndTransactionRecord",
    ),
    (pa.field("epoch", pa.int32(), nullable=False), "the epoch of that offset's batch"),
    (
        pa.field("timestamp", pa.timestamp("us", tz="UTC")),
        "the time of that offset's batch by its controller's clock; null where the batch has none",
    ),
    (pa.field("kind", pa.string(), nullable=False), "what happened, one of the kinds below"),
    (pa.field("subject", pa.string(), nullable=False), "what it happened to: `foo-3`, `broker 2`, `topic foo`, …"),
    (pa.field("topic", pa.string()), "the name of the topic, in events of topics, partitions and their configs"),
    (pa.field("topic_id", pa.string()), "its id in Kafka's 22-character base64, in events of topics and partitions"),
    (pa.field("partition", pa.int32()), "the partition's number, in events of partitions"),
    (pa.field("broker", pa.int32()), "the broker's id, in events of brokers and their configs"),
    (pa.field("field", pa.string()), "what of it changed: `leader`, `isr`, a config's, quota's or feature's name, …"),
    (pa.field("before", pa.string()), "what it was, as text; null for nothing, `(redacted)` for a secret"),
    (pa.field("after", pa.string()), "what it is from then on, likewise"),
    (pa.field("sentence", pa.string(), nullable=False), "all of that in one sentence"),
)

EVENTS = TableDescription("events", "What happened in the cluster, in words.", COLUMNS, unlike=("subject", "sentence"))

ENCODED_EVENTS: Final = EVENTS.encoded_schema
"""The schema in which rows of `events/` are made of many records."""

Event = tuple[Any, ...]
"""The columns of a row of `events/` from `kind` on."""
