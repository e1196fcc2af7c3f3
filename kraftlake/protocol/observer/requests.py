"""What an observer asks a controller: Fetch and FetchSnapshot of the metadata log.

Source: KIP-595, KIP-630, KIP-853 and KIP-1166; org.apache.kafka.raft.KafkaRaftClient.
"""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any, Final

import attrs
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName
from kio.static.primitive import i32, i32Timedelta, i64

from kraftlake.protocol.connection import NodeError
from kraftlake.protocol.describe import METADATA_TOPIC, UNKNOWN_LEADER, Leader, leader_of, only_partition
from kraftlake.protocol.node_client import NodeClient
from kraftlake.protocol.observer.raw_batch import RawBatch, split_batches
from kraftlake.runtime.errors import CorruptDataError

METADATA_TOPIC_ID: Final = uuid.UUID(int=1)
MAX_FETCH_BYTES: Final = 8 * 1024 * 1024
"""As KafkaRaftClient.MAX_FETCH_SIZE_BYTES; a batch is never larger."""
_FETCH_VERSIONS = range(
    16, 19
)  # from Kafka 3.7 on: the answer names the leader's endpoint; 18 waits for the high watermark
_SNAPSHOT_VERSIONS = range(2)
_ANSWER_SECONDS = 5.0


@attrs.frozen(kw_only=True, order=True)
class OffsetAndEpoch:
    """An offset, and the epoch of the record before it: a place in a log, or the id of a snapshot that ends there."""

    offset: int
    epoch: int


@attrs.frozen(kw_only=True)
class FetchAnswer:
    """The answer to a Fetch: batches, or the place from which on the logs differ, or the snapshot to load instead.

    `high_watermark` is −1 while the leader knows none yet. `leader` is set with the errors that concern it.
    """

    error: ErrorCode
    leader: Leader
    high_watermark: int = -1
    log_start_offset: int = -1
    diverging: OffsetAndEpoch | None = None
    snapshot: OffsetAndEpoch | None = None
    batches: tuple[RawBatch, ...] = ()


@attrs.frozen(kw_only=True)
class SnapshotPart:
    """The answer to a FetchSnapshot: `data` from the asked position on, of a file of `size` bytes."""

    error: ErrorCode
    leader: Leader
    size: int = 0
    data: bytes = attrs.field(default=b"", repr=False)


def fetch(
    node: NodeClient,
    at: OffsetAndEpoch,
    *,
    leader_epoch: int,
    cluster_id: str | None,
    high_watermark: int,
    wait_ms: int,
) -> FetchAnswer:
    """Fetch the log from `at` on. The leader waits up to `wait_ms` for records, or for a higher high watermark.

    Raises NodeError where the node does not answer, or answers what can't be.
    """

    def request(module: Any) -> Any:
        newer = {"high_watermark": i64(high_watermark)} if module.FetchRequest.__version__ >= 18 else {}
        partition = module.FetchPartition(
            partition=i32(0), current_leader_epoch=i32(leader_epoch), fetch_offset=i64(at.offset),
            last_fetched_epoch=i32(at.epoch), log_start_offset=i64(-1), partition_max_bytes=i32(MAX_FETCH_BYTES),
            **newer,
        )  # fmt: skip
        topic = module.FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=(partition,))
        return module.FetchRequest(
            cluster_id=cluster_id, max_wait=i32Timedelta.parse(timedelta(milliseconds=wait_ms)), min_bytes=i32(1),
            max_bytes=i32(MAX_FETCH_BYTES), topics=(topic,), forgotten_topics_data=(),
        )  # fmt: skip

    answer = node.ask("fetch", _FETCH_VERSIONS, request, timeout=wait_ms / 1000 + _ANSWER_SECONDS)
    partition = only_partition(node, answer.error_code, answer.responses)
    if not hasattr(partition, "error_code"):
        return FetchAnswer(error=partition, leader=UNKNOWN_LEADER)
    diverging, snapshot = partition.diverging_epoch, partition.snapshot_id
    try:
        batches = tuple(split_batches(partition.records or b""))
    except CorruptDataError as fault:
        node.close()
        raise NodeError(f"{node.address} sent a broken part of the metadata log: {fault}.") from None
    return FetchAnswer(
        error=partition.error_code,
        leader=leader_of(partition.current_leader, answer.node_endpoints),
        high_watermark=int(partition.high_watermark),
        log_start_offset=int(partition.log_start_offset),
        diverging=_place(diverging.end_offset, diverging.epoch),
        snapshot=_place(snapshot.end_offset, snapshot.epoch),
        batches=batches,
    )


def fetch_snapshot(
    node: NodeClient, id_: OffsetAndEpoch, position: int, *, leader_epoch: int, cluster_id: str | None
) -> SnapshotPart:
    """Fetch a part of the snapshot `id_`, from a byte position on. Raises NodeError as `fetch`."""

    def request(module: Any) -> Any:
        partition = module.PartitionSnapshot(
            partition=i32(0), current_leader_epoch=i32(leader_epoch), position=i64(position),
            snapshot_id=module.SnapshotId(end_offset=i64(id_.offset), epoch=i32(id_.epoch)),
        )  # fmt: skip
        topic = module.TopicSnapshot(name=TopicName(METADATA_TOPIC), partitions=(partition,))
        return module.FetchSnapshotRequest(cluster_id=cluster_id, max_bytes=i32(MAX_FETCH_BYTES), topics=(topic,))

    answer = node.ask("fetch_snapshot", _SNAPSHOT_VERSIONS, request)
    partition = only_partition(node, answer.error_code, answer.topics)
    if not hasattr(partition, "error_code"):
        return SnapshotPart(error=partition, leader=UNKNOWN_LEADER)
    leader = leader_of(partition.current_leader, getattr(answer, "node_endpoints", ()))
    if partition.error_code is ErrorCode.none and (int(partition.position), int(partition.snapshot_id.end_offset)) != (
        position,
        id_.offset,
    ):
        node.close()
        raise NodeError(f"{node.address} sent another part of a snapshot than the one that was asked for.")
    return SnapshotPart(
        error=partition.error_code, leader=leader, size=int(partition.size), data=bytes(partition.unaligned_records)
    )


def _place(offset: int, epoch: int) -> OffsetAndEpoch | None:
    return OffsetAndEpoch(offset=int(offset), epoch=int(epoch)) if epoch >= 0 and offset >= 0 else None
