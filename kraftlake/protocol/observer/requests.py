"""Requests of an observer to a controller: Fetch and FetchSnapshot of the metadata log.

Source: KIP-595, KIP-630, KIP-853 and KIP-1166; org.apache.kafka.raft.KafkaRaftClient.
"""

from __future__ import annotations

from typing import Any, Final

import attrs
from kio.schema.types import TopicName
from kio.static.primitive import i32, i64

from kraftlake.protocol.describe import METADATA_TOPIC, UNKNOWN_LEADER, Leader, leader_of, only_partition
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.fetch_request import FETCH, FetchHeader, encode_fetch, encode_partition
from kraftlake.protocol.fetch_response import decode_fetch
from kraftlake.protocol.node_client import NodeClient
from kraftlake.protocol.node_error import NodeError
from kraftlake.protocol.observer.raw_batch import RawBatch, split_batches
from kraftlake.records.offset_and_epoch import OffsetAndEpoch
from kraftlake.runtime.errors import CorruptDataError

METADATA_TOPIC_ID: Final = (1).to_bytes(16, "big")
MAX_FETCH_BYTES: Final = 8 * 1024 * 1024
"""The same limit as KafkaRaftClient.MAX_FETCH_SIZE_BYTES; a batch is never larger."""
_FETCH_VERSIONS = range(
    16, 19
)  # from Kafka 3.7 on: the answer names the leader's endpoint; 18 waits for the high watermark
_SNAPSHOT_VERSIONS = range(2)
_ANSWER_SECONDS = 5.0


@attrs.frozen(kw_only=True)
class FetchedLogPart:
    """The answer to a Fetch: batches, or the position at which the logs diverge, or the snapshot to load instead.

    `high_watermark` is −1 while unknown to the leader. `leader` is set with the errors that concern it.
    """

    error: ErrorCode
    leader: Leader
    high_watermark: int = -1
    log_start_offset: int = -1
    diverging: OffsetAndEpoch | None = None
    snapshot: OffsetAndEpoch | None = None
    batches: tuple[RawBatch, ...] = ()


@attrs.frozen(kw_only=True)
class FetchedSnapshotPart:
    """The answer to a FetchSnapshot: `data` from the requested position on, of a file of `size` bytes."""

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
    replica_id: int = -1,
) -> FetchedLogPart:
    """Fetch the log from `at` on. The leader waits up to `wait_ms` for records, or for a higher high watermark.

    With `replica_id` the leader lists the replica, at `at`. Raises NodeError if the node does not answer, or sends an
    invalid answer.
    """

    header = FetchHeader(cluster_id=cluster_id, max_wait_ms=wait_ms, max_bytes=MAX_FETCH_BYTES, replica_id=replica_id)

    def request(version: int) -> bytes:
        partition = encode_partition(
            version, index=0, current_leader_epoch=leader_epoch, fetch_offset=at.offset, last_fetched_epoch=at.epoch,
            log_start_offset=-1, max_bytes=MAX_FETCH_BYTES, high_watermark=high_watermark,
        )  # fmt: skip
        return encode_fetch(version, header, [(METADATA_TOPIC_ID, [partition])])

    answer = node.ask_encoded(
        FETCH, _FETCH_VERSIONS, request, decode_fetch, timeout=wait_ms / 1000 + _ANSWER_SECONDS
    )  # fmt: skip
    if answer.error:
        return FetchedLogPart(error=_error(node, answer.error), leader=UNKNOWN_LEADER)
    if len(answer.partitions) != 1:
        node.close()
        raise NodeError(f"{node.address} answered for {len(answer.partitions)} partitions, and was asked for one.")
    (partition,) = answer.partitions
    diverging, snapshot = partition.diverging, partition.snapshot
    try:
        batches = tuple(split_batches(partition.records))
    except CorruptDataError as fault:
        node.close()
        raise NodeError(f"{node.address} sent a broken part of the metadata log: {fault}.") from None
    leader_id, epoch = partition.leader
    return FetchedLogPart(
        error=_error(node, partition.error),
        leader=Leader(id=leader_id, epoch=epoch, address=answer.endpoints.get(leader_id)),
        high_watermark=partition.high_watermark,
        log_start_offset=partition.log_start_offset,
        diverging=None if diverging is None else OffsetAndEpoch(offset=diverging[1], epoch=diverging[0]),
        snapshot=None if snapshot is None else OffsetAndEpoch(offset=snapshot[0], epoch=snapshot[1]),
        batches=batches,
    )


def _error(node: NodeClient, code: int) -> ErrorCode:
    try:
        return ErrorCode(code)
    except ValueError:
        node.close()
        raise NodeError(f"{node.address} answered with the error {code}, which is not expected.") from None


def fetch_snapshot(
    node: NodeClient, id_: OffsetAndEpoch, position: int, *, leader_epoch: int, cluster_id: str | None
) -> FetchedSnapshotPart:
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
        return FetchedSnapshotPart(error=partition, leader=UNKNOWN_LEADER)
    leader = leader_of(partition.current_leader, getattr(answer, "node_endpoints", ()))
    if partition.error_code == ErrorCode.NONE and (int(partition.position), int(partition.snapshot_id.end_offset)) != (
        position,
        id_.offset,
    ):
        node.close()
        raise NodeError(f"{node.address} sent another part of a snapshot than the one that was asked for.")
    return FetchedSnapshotPart(
        error=partition.error_code, leader=leader, size=int(partition.size), data=bytes(partition.unaligned_records)
    )
