"""A leader on another broker, over the network."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from threading import Lock
from typing import Any, Final, TypeVar

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.protocol.abort import Abort
from kraftlake.protocol.address import Address
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.fetch_request import FETCH, FETCH_VERSIONS, FetchHeader, encode_fetch, encode_partition
from kraftlake.protocol.fetch_response import PartitionData, decode_fetch
from kraftlake.protocol.node_client import NodeClient
from kraftlake.protocol.node_connector import NodeConnector
from kraftlake.protocol.node_error import NodeError
from kraftlake.records.offset_and_epoch import OffsetAndEpoch
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.errors import FencedLeaderEpochError, ReplicationError
from kraftlake.replica_manager.fetch.fetch_session import FIRST_EPOCH
from kraftlake.replica_manager.fetch.fetcher import BrokerEndPoint
from kraftlake.replica_manager.fetch.leader_end_point import (
    EpochEndOffset,
    FetchedPartition,
    FetchRequest,
    FetchResponse,
    LeaderUnreachableError,
)
from kraftlake.replica_manager.logs.log_values import FetchIsolation
from kraftlake.replica_manager.logs.timestamps import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from kraftlake.replica_manager.partition.leader import FetchPartition

T = TypeVar("T")
_EPOCH_VERSIONS: Final = range(4, 5)
_OFFSET_VERSIONS: Final = range(6, 10)
_NO_ANSWER = EpochEndOffset(error=ErrorCode.UNKNOWN_SERVER_ERROR)


class RemoteLeaderEndPoint:
    """A `LeaderEndPoint` with one connection, opened by the first call, and reopened by the first call after a failure.

    `connect` has the connection's security (TLS, SASL), its timeout, and the maximum size of an answer: more than
    `replica.fetch.response.max.bytes` and the largest batch together. The leader has `timeout_s`
    (`replica.socket.timeout.ms`) for each answer. Fetches name topics by the ids in the request; the ids of a session
    are kept, since partitions that leave it are also named by id. Source: kafka.server.RemoteLeaderEndPoint,
    kafka.server.BrokerBlockingSender.
    """

    is_truncation_on_fetch_supported = True

    def __init__(
        self, broker_end_point: BrokerEndPoint, connect: NodeConnector, *, replica_id: int, timeout_s: float = 30.0
    ) -> None:
        self.broker_end_point = broker_end_point
        self._connect = connect
        self._replica_id = replica_id
        self._timeout_s = timeout_s
        self._abort = Abort()
        self._calling = Lock()
        self._node: NodeClient | None = None
        self._ids: dict[TopicPartition, Uuid] = {}
        self._names: dict[tuple[Uuid, int], TopicPartition] = {}
        """The partitions of the session by topic id and number; `_ids` has the ids."""

    def fetch(self, request: FetchRequest) -> FetchResponse:
        """Fetch; a partition is answered under the name that its id had in the request that added it to the session."""
        params = request.params
        header = FetchHeader(
            replica_id=params.replica_id,
            replica_epoch=params.replica_epoch,
            max_wait_ms=params.max_wait_ms,
            min_bytes=params.min_bytes,
            max_bytes=params.max_bytes,
            isolation_level=int(params.isolation is FetchIsolation.TXN_COMMITTED),
            session_id=request.session_id,
            session_epoch=request.session_epoch,
            rack=params.rack or "",
        )
        forgotten = self._update_session(request)

        def encode(version: int) -> bytes:
            return encode_fetch(version, header, _topics(version, request.partitions), forgotten)

        def ask(node: NodeClient) -> FetchResponse:
            answer = node.ask_encoded(FETCH, FETCH_VERSIONS, encode, decode_fetch, timeout=self._timeout_s)
            try:
                fetched = {self._names[one.topic_id, one.index]: _fetched(one) for one in answer.partitions}
            except KeyError:
                raise NodeError(f"{node.address} answered for a partition that was not asked for.") from None
            return FetchResponse(error=ErrorCode.of(answer.error), session_id=answer.session_id, partitions=fetched)

        return self._ask(ask)

    def _update_session(self, request: FetchRequest) -> list[tuple[Uuid, list[int]]]:
        """Note the partitions that the leader will have in the session; returns the leaving ones, by topic id."""
        if request.session_epoch <= FIRST_EPOCH:
            self._ids.clear()
            self._names.clear()
        leaving: dict[Uuid, list[int]] = defaultdict(list)
        anew = [name for name, one in request.partitions.items() if self._ids.get(name, one.topic_id) != one.topic_id]
        for name in (*request.forgotten, *anew):
            topic_id = self._ids.pop(name)
            del self._names[topic_id, name.partition]
            leaving[topic_id].append(name.partition)
        for name, one in request.partitions.items():
            assert one.topic_id is not None, "the topics of a KRaft cluster have ids"
            self._ids[name] = one.topic_id
            self._names[one.topic_id, name.partition] = name
        return list(leaving.items())

    def epoch_end_offsets(
        self, epochs: Mapping[TopicPartition, tuple[int, int]]
    ) -> Mapping[TopicPartition, EpochEndOffset]:
        """The ends of leader epochs; UNKNOWN_SERVER_ERROR for a partition that the leader leaves out."""

        def request(module: Any) -> Any:
            partition = module.OffsetForLeaderPartition
            return module.OffsetForLeaderEpochRequest(
                replica_id=self._replica_id,
                topics=tuple(
                    module.OffsetForLeaderTopic(
                        topic=topic,
                        partitions=tuple(
                            partition(partition=index, current_leader_epoch=current, leader_epoch=epoch)
                            for index, (current, epoch) in partitions
                        ),
                    )
                    for topic, partitions in _by_topic(epochs)
                ),
            )

        answer = self._ask(
            lambda node: node.ask("offset_for_leader_epoch", _EPOCH_VERSIONS, request, timeout=self._timeout_s)
        )
        ends = {
            TopicPartition(topic.topic, one.partition): EpochEndOffset(
                error=ErrorCode.of(one.error_code),
                end=None if one.end_offset < 0 else OffsetAndEpoch(int(one.end_offset), int(one.leader_epoch)),
            )
            for topic in answer.topics
            for one in topic.partitions
        }
        return {name: ends.get(name, _NO_ANSWER) for name in epochs}

    def earliest_offset(self, partition: TopicPartition, current_leader_epoch: int) -> int:
        """The leader's log start offset. Raises ReplicationError with the leader's error."""
        return self._offset(partition, current_leader_epoch, EARLIEST_TIMESTAMP)

    def latest_offset(self, partition: TopicPartition, current_leader_epoch: int) -> int:
        """The leader's log end offset. Raises ReplicationError with the leader's error."""
        return self._offset(partition, current_leader_epoch, LATEST_TIMESTAMP)

    def _offset(self, name: TopicPartition, current_leader_epoch: int, timestamp: int) -> int:
        def request(module: Any) -> Any:
            partition = module.ListOffsetsPartition(
                partition_index=name.partition, current_leader_epoch=current_leader_epoch, timestamp=timestamp
            )
            topic = module.ListOffsetsTopic(name=name.topic, partitions=(partition,))
            return module.ListOffsetsRequest(replica_id=self._replica_id, isolation_level=0, topics=(topic,))

        def ask(node: NodeClient) -> Any:
            answer = node.ask("list_offsets", _OFFSET_VERSIONS, request, timeout=self._timeout_s)
            for topic in answer.topics:
                for one in topic.partitions:
                    if TopicPartition(topic.name, one.partition_index) == name:
                        return one
            raise NodeError(f"{node.address} did not answer for {name}, whose offset was asked for.")

        answer = self._ask(ask)
        error = ErrorCode.of(answer.error_code)
        if error is ErrorCode.FENCED_LEADER_EPOCH:
            raise FencedLeaderEpochError(f"The leader of {name} has a later epoch than {current_leader_epoch}.")
        if error is not ErrorCode.NONE:
            raise ReplicationError(f"The leader of {name} does not tell an offset: {error.name}.", error)
        return int(answer.offset)

    def close(self) -> None:
        """Close at once, from any thread."""
        self._abort.set()
        self._maybe_disconnect()

    def _ask(self, question: Callable[[NodeClient], T]) -> T:
        id_, host, port = self.broker_end_point
        try:
            with self._calling:
                if self._node is None and not self._abort.is_set:
                    self._node = self._connect(Address(host, port), abort=self._abort)
                if self._node is not None:
                    answer = question(self._node)
        except NodeError as fault:
            self._maybe_disconnect()
            if not self._abort.is_set:
                raise LeaderUnreachableError(f"Leader {id_}: {fault}") from None
        if self._abort.is_set:
            self._maybe_disconnect()  # not closed by `close` where that came during the call
            raise LeaderUnreachableError(f"The connection to leader {id_} has been closed on this side.")
        return answer

    def _maybe_disconnect(self) -> None:
        """Close the connection; if a call uses it, the call closes it at its end."""
        if self._calling.acquire(blocking=False):
            try:
                node, self._node = self._node, None
            finally:
                self._calling.release()
            if node is not None:
                node.close()


def _topics(version: int, partitions: Mapping[TopicPartition, FetchPartition]) -> list[tuple[bytes, list[bytes]]]:
    """The encoded partitions, in their order: the leader fills its answer in this order."""
    topics: list[tuple[bytes, list[bytes]]] = []
    last: Uuid | None = None
    for name, one in partitions.items():
        if one.topic_id != last or not topics:
            assert one.topic_id is not None, "the topics of a KRaft cluster have ids"
            last = one.topic_id
            topics.append((last, []))
        topics[-1][1].append(
            encode_partition(
                version,
                index=name.partition,
                current_leader_epoch=-1 if one.current_leader_epoch is None else one.current_leader_epoch,
                fetch_offset=one.fetch_offset,
                last_fetched_epoch=-1 if one.last_fetched_epoch is None else one.last_fetched_epoch,
                log_start_offset=one.log_start_offset,
                max_bytes=one.max_bytes,
            )
        )
    return topics


def _fetched(one: PartitionData) -> FetchedPartition:
    return FetchedPartition(
        error=ErrorCode.of(one.error),
        data=one.records,
        high_watermark=one.high_watermark,
        log_start_offset=one.log_start_offset,
        diverging_epoch=None if one.diverging is None else OffsetAndEpoch(one.diverging[1], one.diverging[0]),
    )


def _by_topic(epochs: Mapping[TopicPartition, T]) -> Iterable[tuple[str, list[tuple[int, T]]]]:
    for topic, group in groupby(sorted(epochs.items(), key=lambda item: item[0]), key=lambda item: item[0].topic):
        yield topic, [(name.partition, value) for name, value in group]
