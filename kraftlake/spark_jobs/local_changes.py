"""The Delta table `local_changes/`: what each published metadata delta told each broker to do.

One row for a broker and a partition of a published delta. Read at one offset and broker, the rows are Kafka's
`TopicsDelta.localChanges` of the delta that ends there: `deletes` are the rows with change `delete`, `electedLeaders`
those with `leader_elected`, `leaders` those with `leader` or `leader_elected`, `followers` those with `follower`,
`directoryIds` those that have a `directory`. Read in offset order they are a broker's whole history.

Where the log starts above 0, the first rows are those of the snapshot that covers its start: what a broker is told
that begins with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kraftlake.delta import LocalReplicaChanges, TopicsDelta
from kraftlake.image import MetadataProvenance
from kraftlake.metadata_log.delta_log import NotADeltaTableError, read_table
from kraftlake.records.uuid import Uuid

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = "local_changes"
APP_ID = f"kraftlake.{TABLE}"
"""The txnAppId of the table's writer; its txnVersion is the last offset that the table covers."""

CHANGES = ("delete", "leader_elected", "leader", "follower", "directory")
"""What `change` can be, see its comment in `COLUMNS`."""

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
    (pa.field("broker", pa.int32(), nullable=False), "the id of the broker that is told"),
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

SCHEMA = pa.schema([field for field, _ in COLUMNS])


def local_change_rows(topics: TopicsDelta, provenance: MetadataProvenance) -> Iterator[dict[str, Any]]:
    """The rows of one metadata delta as SCHEMA has them, by broker, topic, partition and change."""
    time = None if provenance.timestamp < 0 else provenance.timestamp * 1000
    head = {"offset": provenance.offset, "epoch": provenance.epoch, "timestamp": time}
    for broker, changes in topics.local_changes_all().items():
        rows = [head | {"broker": broker} | row for row in _rows_of(topics, changes)]
        yield from sorted(rows, key=lambda row: (row["topic"], row["partition"], row["change"]))


def _rows_of(topics: TopicsDelta, changes: LocalReplicaChanges) -> Iterator[dict[str, Any]]:
    directories = {key.topic_partition: (key.topic_id, str(value)) for key, value in changes.directory_ids.items()}
    for deleted in changes.deletes:
        before = topics.image.get_topic(deleted.topic)
        assert before is not None, "a delete is of a replica that the image before the delta had"
        yield _row("delete", deleted.topic, before.id, deleted.partition)
    for kind, infos in (("leader", changes.leaders), ("follower", changes.followers)):
        for key, info in infos.items():
            change = "leader_elected" if key in changes.elected_leaders else kind
            _, directory = directories.pop(key, (None, None))
            yield _row(change, key.topic, info.topic_id, key.partition) | {
                "leader": info.partition.leader,
                "leader_epoch": info.partition.leader_epoch,
                "partition_epoch": info.partition.partition_epoch,
                "replicas": list(info.partition.replicas),
                "isr": list(info.partition.isr),
                "directory": directory,
            }
    for key, (topic_id, directory) in directories.items():
        topic = topics.changed_topic(topic_id)
        partition = None if topic is None else topic.partition(key.partition)
        assert partition is not None, "a directory is assigned to a partition that the delta holds"
        yield _row("directory", key.topic, topic_id, key.partition) | {
            "leader": partition.leader,
            "leader_epoch": partition.leader_epoch,
            "partition_epoch": partition.partition_epoch,
            "replicas": list(partition.replicas),
            "isr": list(partition.isr),
            "directory": directory,
        }


def _row(change: str, topic: str, topic_id: Uuid, partition: int) -> dict[str, Any]:
    return {"change": change, "topic": topic, "topic_id": str(topic_id), "partition": partition}


class LocalChangesTable:
    """The table in a lake, written by Spark; nobody else writes it.

    An append and the offset that it reaches are one commit (Delta's txn action), so that a writer that starts anew
    knows where to go on whatever became of its stream's checkpoint.
    """

    def __init__(self, lake: Path) -> None:
        self.path = lake / TABLE

    def last_offset(self) -> int | None:
        """The last offset that the table covers; None where it covers nothing yet.

        Raises LakeError for a table that can't be read.
        """
        try:
            return read_table(self.path).transactions.get(APP_ID)
        except NotADeltaTableError:
            return None

    def create(self, spark: SparkSession) -> None:
        """Make the empty table, its columns commented, where there is none."""
        from delta.tables import DeltaTable
        from pyspark.sql.pandas.types import from_arrow_type

        table = DeltaTable.createIfNotExists(spark).location(str(self.path)).property("delta.appendOnly", "true")
        table = table.comment("What each metadata delta told each broker to do")
        for field, comment in COLUMNS:
            table = table.addColumn(field.name, from_arrow_type(field.type), nullable=field.nullable, comment=comment)
        table.execute()

    def append(self, spark: SparkSession, rows: pa.Table, last_offset: int) -> None:
        """Append rows of offsets up to `last_offset` and note that the table covers them; without rows, only that.

        An append that was made before changes nothing.
        """
        frame = spark.createDataFrame(rows.cast(SCHEMA))
        writer = frame.coalesce(1).write.format("delta").mode("append")
        writer.option("txnAppId", APP_ID).option("txnVersion", last_offset).save(str(self.path))
