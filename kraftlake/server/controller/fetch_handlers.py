"""Handlers of Fetch and FetchSnapshot of the metadata log, from which followers also learn the leader.

Source: org.apache.kafka.raft.KafkaRaftClient (handleFetchRequest, handleFetchSnapshotRequest), KIP-595, KIP-630.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from datetime import timedelta
from functools import partial
from itertools import count
from typing import Any, Final

import attrs

from kraftlake.controller.errors import ControllerApiError
from kraftlake.image.endpoint import Endpoint
from kraftlake.image.kafka_names import AclOperation
from kraftlake.protocol.describe import METADATA_TOPIC
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.ids import kafka_id, wire_id
from kraftlake.protocol.observer.requests import METADATA_TOPIC_ID
from kraftlake.records.offset_and_epoch import OffsetAndEpoch
from kraftlake.records.uuid import Uuid
from kraftlake.replay.loader.manifest import LeaderAndEpoch
from kraftlake.runtime.event_order import EventQueueClosedError
from kraftlake.runtime.event_queue import FunctionEvent
from kraftlake.server.controller.controller_node import ControllerNode
from kraftlake.server.controller.quorum_view import NOBODY
from kraftlake.server.controller.served_log import LogRead, ServedLog
from kraftlake.server.requests.dispatcher import Answering, Handler, Request
from kraftlake.server.requests.handlers import response_to, then
from kraftlake.server.requests.messages import of_version

_TOPIC_ID: Final = Uuid(METADATA_TOPIC_ID)
_UNKNOWN: Final = -1
_ENDPOINTS_SINCE: Final = {"fetch": 17, "fetch_snapshot": 1}
"""The first version in which Kafka's controllers send the leader's address."""


class FetchHandlers:
    """Answers fetches from the log while the controller leads; fetches at the log's end wait for more."""

    def __init__(self, node: ControllerNode, log: ServedLog) -> None:
        self._node = node
        self._log = log
        self._numbers = count()
        self._waiting: dict[int, _Fetch] = {}
        """The waiting fetches, by number; the caller that removes one answers it."""
        node.view.listeners.append(self.wake)

    @property
    def waiting(self) -> int:
        """The number of waiting fetches."""
        return len(self._waiting)

    def handlers(self) -> Mapping[str, Handler]:
        """The handlers by API."""
        return {
            "fetch": Handler(begin=self._fetch),
            "fetch_snapshot": Handler(begin=self._fetch_snapshot),
        }

    def _fetch(self, request: Request) -> Answering:
        self._node.check_cluster(request, AclOperation.CLUSTER_ACTION)
        asked = request.body
        if getattr(asked, "cluster_id", None) not in (None, self._node.cluster_id):
            return response_to(request, error_code=ErrorCode.INCONSISTENT_CLUSTER_ID, responses=())
        partitions = [(_names_the_log(topic), one) for topic in asked.topics for one in topic.partitions]
        if len(partitions) != 1 or not partitions[0][0] or int(partitions[0][1].partition) != 0:
            return response_to(request, error_code=ErrorCode.INVALID_REQUEST, responses=())
        partition = partitions[0][1]
        epoch, last = int(getattr(partition, "current_leader_epoch", -1)), getattr(partition, "last_fetched_epoch", -1)
        if asked.max_wait < timedelta(0) or partition.fetch_offset < 0 or last < 0 or last > epoch:
            return self._error(request, ErrorCode.INVALID_REQUEST, self._node.leader)
        answer: Future[Any] = Future()
        at = OffsetAndEpoch(offset=int(partition.fetch_offset), epoch=int(last))
        request = request.reduced(asked)
        fetch = _Fetch(request=request, answer=answer, at=at, leader_epoch=epoch, partition=partition)
        self._try(fetch, request.wait_ms(asked.max_wait))
        return answer

    def _try(self, fetch: _Fetch, wait_ms: float, *, is_new: bool = True) -> None:
        """Answer a fetch, or let it wait if nothing can be sent yet."""

        def refuse(error: ErrorCode, leader: LeaderAndEpoch) -> None:
            fetch.answer.set_result(self._error(fetch.request, error, leader))

        error, leader = self._problem(fetch.leader_epoch)
        if error != ErrorCode.NONE:
            refuse(error, leader)
            return

        def leads(read: Future[None]) -> None:
            fault = read.exception()
            error, leader = self._problem(fetch.leader_epoch)
            if error != ErrorCode.NONE:
                refuse(error, leader)
            elif isinstance(fault, ControllerApiError):
                refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER, leader)
            elif fault is not None:
                fetch.answer.set_exception(fault)
            else:
                self._log.read(fetch.at, max_bytes=int(fetch.partition.partition_max_bytes)).add_done_callback(was_read)

        def was_read(future: Future[LogRead]) -> None:
            fault = future.exception()
            error, leader = self._problem(fetch.leader_epoch)
            if fault is not None:
                closing = isinstance(fault, EventQueueClosedError)
                refuse(ErrorCode.BROKER_NOT_AVAILABLE if closing else ErrorCode.UNKNOWN_SERVER_ERROR, leader)
                return
            read = future.result()
            if error == ErrorCode.NONE and read.epoch > fetch.leader_epoch:
                # a follower that has records of an epoch can't ask for more as one of an earlier epoch
                error, leader = ErrorCode.FENCED_LEADER_EPOCH, LeaderAndEpoch(leader_id=None, epoch=read.epoch)
            if error != ErrorCode.NONE:
                refuse(error, leader)
                return
            if is_new and read.diverging is None:
                self._note(fetch, read.end_offset)
            known = int(getattr(fetch.partition, "high_watermark", read.end_offset))
            if read.is_empty and wait_ms > 0 and known >= read.end_offset:
                self._wait(fetch, wait_ms)
                return
            fetch.answer.set_result(self._answer(fetch.request, read, leader))

        # only an active controller that has committed lately knows that none has claimed the log since
        self._node.controller.read(lambda _: None).add_done_callback(leads)

    def _problem(self, epoch: int) -> tuple[ErrorCode, LeaderAndEpoch]:
        """The error with which this node refuses to act as the leader of an epoch, and the leader it knows."""
        leader = self._node.leader
        if epoch < leader.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH, leader
        if epoch > leader.epoch:
            return ErrorCode.UNKNOWN_LEADER_EPOCH, leader
        controller = self._node.controller
        if controller.epoch == epoch:
            return ErrorCode.NONE, leader
        if leader.is_leader(self._node.node_id) and controller.resigned_epoch < epoch:
            # its claim is in the log, and it begins to lead: NOT_LEADER_OR_FOLLOWER would call for another claim
            return ErrorCode.BROKER_NOT_AVAILABLE, leader
        return ErrorCode.NOT_LEADER_OR_FOLLOWER, leader

    def _wait(self, fetch: _Fetch, wait_ms: float) -> None:
        number = next(self._numbers)
        self._waiting[number] = fetch
        queue = self._log.queue
        due = queue.clock.nanoseconds() + round(wait_ms * 1e6)
        event = FunctionEvent(partial(self._go_on, number), lambda _: self._go_on(number))
        queue.schedule_deferred(f"fetch-{number}", due, event)
        if self._has_news(fetch):  # it came meanwhile
            self._go_on(number)

    def _has_news(self, fetch: _Fetch) -> bool:
        """Whether a fetch has new records, or another leader."""
        return self._node.view.image.offset >= fetch.at.offset or self._problem(fetch.leader_epoch)[0] != ErrorCode.NONE

    def _go_on(self, number: int) -> None:
        fetch = self._waiting.pop(number, None)
        if fetch is not None:
            self._log.queue.cancel_deferred(f"fetch-{number}")
            self._try(fetch, 0, is_new=False)

    def wake(self) -> None:
        """Check the waiting fetches again: the log may have grown, or the leader may have changed."""
        if self._waiting:
            self._log.queue.append(FunctionEvent(self._wake_now, lambda _: self._wake_now()))

    def _wake_now(self) -> None:
        for number, fetch in list(self._waiting.items()):
            if self._has_news(fetch):
                self._go_on(number)

    def _note(self, fetch: _Fetch, end_offset: int) -> None:
        """Note the progress of a replica that sends its id."""
        body = fetch.request.body
        state = getattr(body, "replica_state", None)
        replica_id = int(body.replica_id if state is None else state.replica_id)
        if replica_id >= 0:
            directory = kafka_id(getattr(fetch.partition, "replica_directory_id", None))
            self._node.progress.note(replica_id, fetch.at.offset, end_offset=end_offset, directory_id=directory)

    def _answer(self, request: Request, read: LogRead, leader: LeaderAndEpoch) -> Any:
        module = request.module
        more: dict[str, Any] = {}
        if read.diverging is not None and hasattr(module, "EpochEndOffset"):
            diverging = read.diverging
            more["diverging_epoch"] = module.EpochEndOffset(epoch=diverging.epoch, end_offset=diverging.offset)
        if read.snapshot is not None and hasattr(module, "SnapshotId"):
            more["snapshot_id"] = module.SnapshotId(end_offset=read.snapshot.offset, epoch=read.snapshot.epoch)
        return self._partition(
            request, ErrorCode.NONE, leader, high_watermark=read.end_offset, log_start_offset=read.start_offset,
            records=read.records, **more,
        )  # fmt: skip

    def _error(self, request: Request, error: ErrorCode, leader: LeaderAndEpoch) -> Any:
        """Return an error of the partition, with the leader."""
        return self._partition(
            request, error, leader, high_watermark=_UNKNOWN, log_start_offset=self._log.start_offset, records=b""
        )

    def _partition(self, request: Request, error: ErrorCode, leader: LeaderAndEpoch, **values: Any) -> Any:
        module, endpoint = request.module, self._endpoint(request, leader)
        if hasattr(module, "LeaderIdAndEpoch"):
            values["current_leader"] = _current_leader(module, leader, endpoint)
        partition = of_version(
            module.PartitionData, partition_index=0, error_code=error, aborted_transactions=(), **values
        )
        kind = module.FetchableTopicResponse
        topic = of_version(kind, topic=METADATA_TOPIC, topic_id=wire_id(_TOPIC_ID), partitions=(partition,))
        return response_to(
            request,
            session_id=0,
            responses=(topic,),
            node_endpoints=_endpoints(request, leader, endpoint),
        )

    def _endpoint(self, request: Request, leader: LeaderAndEpoch) -> Endpoint | None:
        """The leader's endpoint for the listener that received the request."""
        listener = request.peer.listener
        if leader.is_leader(self._node.node_id):  # it may lead before it is registered
            return self._node.listeners.get(listener)
        return None if leader.leader_id is None else self._node.view.endpoints(listener).get(leader.leader_id)

    def _fetch_snapshot(self, request: Request) -> Answering:
        self._node.check_cluster(request, AclOperation.CLUSTER_ACTION)
        asked = request.body
        if asked.cluster_id not in (None, self._node.cluster_id):
            return response_to(request, error_code=ErrorCode.INCONSISTENT_CLUSTER_ID, topics=())
        partitions = [(topic.name, one) for topic in asked.topics for one in topic.partitions]
        if len(partitions) != 1:
            return response_to(request, error_code=ErrorCode.INVALID_REQUEST, topics=())
        name, partition = partitions[0]
        if name != METADATA_TOPIC or int(partition.partition) != 0:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return self._part(request, name, partition, error, self._node.leader)
        error, leader = self._problem(int(partition.current_leader_epoch))
        if error != ErrorCode.NONE:
            return self._part(request, name, partition, error, leader)
        id_ = OffsetAndEpoch(offset=int(partition.snapshot_id.end_offset), epoch=int(partition.snapshot_id.epoch))

        def answer(data: bytes | None) -> Any:
            error, leader = self._problem(int(partition.current_leader_epoch))
            at, part = int(partition.position), b""
            if error != ErrorCode.NONE:
                pass
            elif data is None:
                error = ErrorCode.SNAPSHOT_NOT_FOUND
            elif not 0 <= at < len(data):
                error = ErrorCode.POSITION_OUT_OF_RANGE
            else:
                part = data[at : at + max(1, int(asked.max_bytes))]
            size = len(data) if data and part else 0
            return self._part(request, name, partition, error, leader, size=size, data=part)

        return then(self._log.snapshot(id_), answer)

    def _part(
        self, request: Request, name: str, partition: Any, error: ErrorCode, leader: LeaderAndEpoch, *, size: int = 0,
        data: bytes = b"",
    ) -> Any:  # fmt: skip
        module, id_, endpoint = request.module, partition.snapshot_id, self._endpoint(request, leader)
        part = module.PartitionSnapshot(
            index=partition.partition, error_code=error,
            snapshot_id=module.SnapshotId(end_offset=id_.end_offset, epoch=id_.epoch),
            current_leader=_current_leader(module, leader, endpoint), size=size,
            position=partition.position if data else 0, unaligned_records=data,
        )  # fmt: skip
        topic = module.TopicSnapshot(name=name, partitions=(part,))
        endpoints = _endpoints(request, leader, endpoint)
        return response_to(request, topics=(topic,), node_endpoints=endpoints)


@attrs.frozen(kw_only=True, eq=False)
class _Fetch:
    """A fetch from a position in the log, sent to this node as the leader of an epoch."""

    request: Request
    answer: Future[Any]
    at: OffsetAndEpoch
    leader_epoch: int
    partition: Any


def _current_leader(module: Any, leader: LeaderAndEpoch, endpoint: Endpoint | None) -> Any:
    """Return the epoch, and its leader if that is reachable: Kafka's brokers end without its address."""
    id_ = NOBODY if endpoint is None else leader.leader_id
    return module.LeaderIdAndEpoch(leader_id=id_, leader_epoch=leader.epoch)


def _endpoints(request: Request, leader: LeaderAndEpoch, endpoint: Endpoint | None) -> tuple[Any, ...]:
    """The leader's endpoint, in the versions that carry it."""
    if endpoint is None or request.version < _ENDPOINTS_SINCE.get(request.name, 0):
        return ()
    kind = request.module.NodeEndpoint
    return (of_version(kind, node_id=leader.leader_id, host=endpoint.host, port=endpoint.port, rack=None),)


def _names_the_log(topic: Any) -> bool:
    """Whether a topic of a Fetch names the log by its id, which Kafka's controllers require."""
    return hasattr(topic, "topic_id") and kafka_id(topic.topic_id) == _TOPIC_ID
