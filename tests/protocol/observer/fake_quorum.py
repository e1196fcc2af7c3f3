"""Controllers on loopback whose answers come of a model quorum; their bytes may be broken on the way."""

from __future__ import annotations

import socket
import struct
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from importlib import import_module
from typing import Any

from kio.schema.api_versions.v3.response import ApiVersion, ApiVersionsResponse
from kio.schema.broker_heartbeat.v1.response import BrokerHeartbeatResponse
from kio.schema.describe_cluster.v1.response import DescribeClusterBroker, DescribeClusterResponse
from kio.schema.types import BrokerId, TopicName
from kio.serial import entity_reader
from kio.static.primitive import i16, i32, i32Timedelta, i64, u16

from kraftlake.protocol.address import Address
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.observer.requests import FetchedLogPart
from kraftlake.records.offset_and_epoch import OffsetAndEpoch
from tests.protocol.fake_nodes import CLUSTER_ID, encoded, frame, receive_frame, serving
from tests.protocol.observer.model_quorum import ModelQuorum

_NOW = i32Timedelta.parse(timedelta(0))
_NONE = uuid.UUID(int=0)


class FakeQuorum:
    """Three controllers over one model. `spoil` gets each answer's frame; `refusal` is answered to every Fetch.

    `replicas` is what a DescribeQuorum says: log end offset, times of the last Fetch and of having caught up, by node.
    """

    def __init__(self, model: ModelQuorum, *, fetch_version: int = 18) -> None:
        self.model = model
        self.fetch_version = fetch_version
        self.cluster_id = CLUSTER_ID
        self.cluster_error = ErrorCode.NONE
        self.refusal = ErrorCode.NONE
        self.snapshot_error = ErrorCode.NONE
        self.snapshot_file = b""
        self.spoil: Callable[[bytes], bytes] = lambda data: data
        self.addresses: list[Address] = []
        self.named: list[Address] = []
        self.fetches = 0
        self.heartbeats: list[tuple[int, int]] = []
        self.heartbeat_error = ErrorCode.NONE
        self.lists_controllers = False
        self.down: set[int] = set()
        self.part_bytes = 1 << 20
        self.replicas: dict[int, tuple[int, int, int]] = {}

    @contextmanager
    def serving(self) -> Iterator[list[Address]]:
        with ExitStack() as stack:
            for node in range(3):
                talk = lambda connection, node=node: self._talk(connection, node)  # noqa: E731
                self.addresses.append(stack.enter_context(serving(talk)))
            self.named = list(self.addresses)
            yield self.addresses

    def _talk(self, connection: socket.socket, node: int) -> None:
        while True:
            data = receive_frame(connection)
            if node in self.down:
                return
            api_key, version, correlation_id = struct.unpack(">hhi", data[:8])
            body = {
                18: self._api_versions,
                60: self._cluster,
                1: self._fetch,
                59: self._fetch_snapshot,
                55: self._quorum,
                63: self._heartbeat,
            }[api_key]
            answer = body(node, version, data)
            tags = b"" if api_key == 18 else b"\0"
            connection.sendall(self.spoil(frame(struct.pack(">i", correlation_id) + tags + encoded(answer))))

    def _api_versions(self, node: int, version: int, data: bytes) -> Any:
        versions = {18: (0, 4), 1: (13, self.fetch_version), 59: (0, 1), 60: (0, 1), 55: (0, 1), 63: (0, 1)}
        keys = [ApiVersion(api_key=i16(k), min_version=i16(a), max_version=i16(b)) for k, (a, b) in versions.items()]
        return ApiVersionsResponse(error_code=ErrorCode.NONE, api_keys=tuple(keys), throttle_time=_NOW)

    def _cluster(self, node: int, version: int, data: bytes) -> Any:
        brokers = tuple(
            DescribeClusterBroker(broker_id=BrokerId(id_), host=where.host, port=i32(where.port))
            for id_, where in enumerate(self.named if self.lists_controllers else ())
        )
        return DescribeClusterResponse(
            throttle_time=_NOW, error_code=self.cluster_error, cluster_id=self.cluster_id, controller_id=BrokerId(-1),
            brokers=brokers,
        )  # fmt: skip

    def _heartbeat(self, node: int, version: int, data: bytes) -> Any:
        request = self._request("broker_heartbeat", version, data)
        self.heartbeats.append((node, int(request.broker_id)))
        error = self.heartbeat_error if node == self.model.leader else ErrorCode.NOT_CONTROLLER
        return BrokerHeartbeatResponse(throttle_time=_NOW, error_code=error, should_shut_down=False)

    def _request(self, name: str, version: int, data: bytes) -> Any:
        module = import_module(f"kio.schema.{name}.v{version}.request")
        kind = getattr(module, "".join(word.capitalize() for word in name.split("_")) + "Request")
        _, size = entity_reader(kind.__header_schema__)(data, 0)
        request, _ = entity_reader(kind)(data, size)
        return request

    def _fetch(self, node: int, version: int, data: bytes) -> Any:
        self.fetches += 1
        request = self._request("fetch", version, data)
        m = import_module(f"kio.schema.fetch.v{version}.response")
        (asked,) = request.topics[0].partitions
        at = OffsetAndEpoch(offset=int(asked.fetch_offset), epoch=int(asked.last_fetched_epoch))
        answer = self.model.answer(at, epoch=int(asked.current_leader_epoch), max_batches=2)
        if node != self.model.leader and answer.error == ErrorCode.NONE:
            answer = FetchedLogPart(error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=answer.leader)
        error = answer.error if self.refusal == ErrorCode.NONE else self.refusal
        options: dict[str, Any] = {}
        if answer.diverging is not None:
            options["diverging_epoch"] = m.EpochEndOffset(
                epoch=i32(answer.diverging.epoch), end_offset=i64(answer.diverging.offset)
            )
        if answer.snapshot is not None:
            options["snapshot_id"] = m.SnapshotId(
                epoch=i32(answer.snapshot.epoch), end_offset=i64(answer.snapshot.offset)
            )
        partition = m.PartitionData(
            partition_index=i32(0), error_code=error, high_watermark=i64(answer.high_watermark),
            log_start_offset=i64(answer.log_start_offset), aborted_transactions=(),
            current_leader=self._leader(m),
            records=b"".join(batch.data for batch in answer.batches), **options,
        )  # fmt: skip
        topic = m.FetchableTopicResponse(topic_id=uuid.UUID(int=1), partitions=(partition,))
        return m.FetchResponse(
            throttle_time=_NOW, error_code=ErrorCode.NONE, responses=(topic,), node_endpoints=self._endpoints(m)
        )

    def _fetch_snapshot(self, node: int, version: int, data: bytes) -> Any:
        request = self._request("fetch_snapshot", version, data)
        m = import_module(f"kio.schema.fetch_snapshot.v{version}.response")
        (asked,) = request.topics[0].partitions
        at = int(asked.position)
        error = self.snapshot_error
        if int(asked.current_leader_epoch) < self.model.epoch:
            error = ErrorCode.FENCED_LEADER_EPOCH
        elif node != self.model.leader:
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        partition = m.PartitionSnapshot(
            index=i32(0), error_code=error, size=i64(len(self.snapshot_file)), position=i64(at),
            snapshot_id=m.SnapshotId(end_offset=asked.snapshot_id.end_offset, epoch=asked.snapshot_id.epoch),
            current_leader=self._leader(m),
            unaligned_records=self.snapshot_file[at : at + self.part_bytes],
        )  # fmt: skip
        topic = m.TopicSnapshot(name=TopicName("__cluster_metadata"), partitions=(partition,))
        return m.FetchSnapshotResponse(
            throttle_time=_NOW, error_code=ErrorCode.NONE, topics=(topic,), node_endpoints=self._endpoints(m)
        )

    def _quorum(self, node: int, version: int, data: bytes) -> Any:
        m = import_module(f"kio.schema.describe_quorum.v{version}.response")
        leads = node == self.model.leader
        states = {
            id_: m.ReplicaState(
                replica_id=BrokerId(id_), log_end_offset=i64(end), last_fetch_timestamp=i64(fetched),
                last_caught_up_timestamp=i64(caught_up),
            )
            for id_, (end, fetched, caught_up) in self.replicas.items()
        }  # fmt: skip
        partition = m.PartitionData(
            partition_index=i32(0), error_code=ErrorCode.NONE if leads else ErrorCode.NOT_LEADER_OR_FOLLOWER,
            leader_id=BrokerId(self.model.leader), leader_epoch=i32(self.model.epoch),
            high_watermark=i64(self.model.high_watermark),
            current_voters=tuple(state for id_, state in states.items() if id_ < len(self.model.logs)),
            observers=tuple(state for id_, state in states.items() if id_ >= len(self.model.logs)),
        )  # fmt: skip
        topic = m.TopicData(topic_name=TopicName("__cluster_metadata"), partitions=(partition,))
        return m.DescribeQuorumResponse(error_code=ErrorCode.NONE, topics=(topic,))

    def _leader(self, m: Any) -> Any:
        return m.LeaderIdAndEpoch(leader_id=BrokerId(self.model.leader), leader_epoch=i32(self.model.epoch))

    def _endpoints(self, m: Any) -> tuple[Any, ...]:
        leader = self.named[self.model.leader]
        port = (u16 if "snapshot" in m.__name__ else i32)(leader.port)
        return (m.NodeEndpoint(node_id=BrokerId(self.model.leader), host=leader.host, port=port),)


LED_SINCE = 1_700_000_000_001
NOW = LED_SINCE + 60_000


@contextmanager
def running(**replicas: tuple[int, int, int]) -> Iterator[str]:
    """The addresses of a quorum of voters 0 to 2, whose log ends with offset 7; by a DescribeQuorum all are level.

    `replicas` (`n2=…`) are those of which the leader 0 says something else (see `FakeQuorum.replicas`).
    """
    model = ModelQuorum()
    model.elect(0, 1)
    model.append(7)
    model.replicate(1, 9)
    fake = FakeQuorum(model)
    level = (8, NOW, NOW)
    fake.replicas = {0: level, 1: level, 2: level} | {int(name[1:]): progress for name, progress in replicas.items()}
    with fake.serving() as addresses:
        yield ",".join(map(str, addresses))
