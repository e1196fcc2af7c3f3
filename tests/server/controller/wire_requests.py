"""Requests as brokers and clients send them to controllers, in kio's classes."""

from __future__ import annotations

import io
import ipaddress
import struct
import uuid
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

from kio.schema.default_principal_data.v0.data import DefaultPrincipalData
from kio.serial import entity_reader, entity_writer

from tests.controller.both_sides import wire_uuid
from tests.controller.controlled_cluster import ALL_FEATURES, CLUSTER_ID, directory, incarnation
from tests.server.controller.both_wires import kio, timeout

LOG = "__cluster_metadata"
LOG_ID = uuid.UUID(int=1)


def registration(
    broker: int, *, process: int = 0, cluster_id: str = CLUSTER_ID, dirs: int = 1, version: int = 4
) -> Any:
    m = kio("broker_registration", version)
    listener = m.Listener(name="PLAINTEXT", host="127.0.0.1", port=9092 + broker, security_protocol=0)
    features = tuple(
        m.Feature(
            name=f.name, min_supported_version=f.min_supported_version, max_supported_version=f.max_supported_version
        )
        for f in ALL_FEATURES
    )
    return m.BrokerRegistrationRequest(
        broker_id=broker, cluster_id=cluster_id, incarnation_id=wire_uuid(incarnation(broker, process)),
        listeners=(listener,), features=features, rack=None,
        log_dirs=tuple(wire_uuid(directory(broker, number)) for number in range(dirs)),
        **({"previous_broker_epoch": -1} if version > 2 else {}),
    )  # fmt: skip


def heartbeat(broker: int, epoch: int, *, offset: int = 1 << 40, fence: bool = False, shut_down: bool = False) -> Any:
    return kio("broker_heartbeat", 1).BrokerHeartbeatRequest(
        broker_id=broker, broker_epoch=epoch, current_metadata_offset=offset, want_fence=fence,
        want_shut_down=shut_down, offline_log_dirs=(),
    )  # fmt: skip


def create_topics(
    topics: Iterable[tuple[str, Mapping[str, Any]]],
    *,
    version: int = 7,
    validate_only: bool = False,
    seconds: float = 60,
) -> Any:
    m = kio("create_topics", version)
    made = tuple(
        m.CreatableTopic(
            name=name, num_partitions=of.get("partitions", -1), replication_factor=of.get("factor", -1),
            assignments=tuple(
                m.CreatableReplicaAssignment(partition_index=index, broker_ids=tuple(brokers))
                for index, brokers in enumerate(of.get("assignments", ()))
            ),
            configs=tuple(m.CreatableTopicConfig(name=key, value=of["configs"][key]) for key in of.get("configs", ())),
        )
        for name, of in topics
    )  # fmt: skip
    return m.CreateTopicsRequest(topics=made, timeout=timeout(seconds), validate_only=validate_only)


def delete_topics(*topics: tuple[str | None, uuid.UUID | None]) -> Any:
    m = kio("delete_topics", 6)
    made = tuple(m.DeleteTopicState(name=name, topic_id=id_) for name, id_ in topics)
    return m.DeleteTopicsRequest(topics=made, timeout=timeout())


def create_partitions(*topics: tuple[str, int, Sequence[Sequence[int]] | None], validate_only: bool = False) -> Any:
    m = kio("create_partitions", 3)
    made = tuple(
        m.CreatePartitionsTopic(
            name=name, count=count,
            assignments=None if new is None
            else tuple(m.CreatePartitionsAssignment(broker_ids=tuple(brokers)) for brokers in new),
        )
        for name, count, new in topics
    )  # fmt: skip
    return m.CreatePartitionsRequest(topics=made, timeout=timeout(), validate_only=validate_only)


def change_configs(
    *resources: tuple[int, str, Sequence[tuple[str, int, str | None]]], validate_only: bool = False
) -> Any:
    m = kio("incremental_alter_configs", 1)
    made = tuple(
        m.AlterConfigsResource(
            resource_type=kind, resource_name=name,
            configs=tuple(m.AlterableConfig(name=key, config_operation=op, value=value) for key, op, value in configs),
        )
        for kind, name, configs in resources
    )  # fmt: skip
    return m.IncrementalAlterConfigsRequest(resources=made, validate_only=validate_only)


def replace_configs(*resources: tuple[int, str, Mapping[str, str | None]]) -> Any:
    m = kio("alter_configs", 2)
    made = tuple(
        m.AlterConfigsResource(
            resource_type=kind, resource_name=name,
            configs=tuple(m.AlterableConfig(name=key, value=value) for key, value in configs.items()),
        )
        for kind, name, configs in resources
    )  # fmt: skip
    return m.AlterConfigsRequest(resources=made, validate_only=False)


def reassign(*targets: tuple[str, int, Sequence[int] | None], version: int = 1, **options: Any) -> Any:
    m = kio("alter_partition_reassignments", version)
    made = tuple(
        m.ReassignableTopic(name=name, partitions=(m.ReassignablePartition(partition_index=index, replicas=replicas),))
        for name, index, replicas in targets
    )
    return m.AlterPartitionReassignmentsRequest(topics=made, timeout=timeout(), **options)


def list_reassignments(*names: tuple[str, Sequence[int]]) -> Any:
    m = kio("list_partition_reassignments", 0)
    topics = tuple(
        m.ListPartitionReassignmentsTopics(name=name, partition_indexes=tuple(indexes)) for name, indexes in names
    )
    return m.ListPartitionReassignmentsRequest(topics=topics or None, timeout=timeout())


def elect(kind: int, *names: tuple[str, Sequence[int]]) -> Any:
    m = kio("elect_leaders", 2)
    topics = tuple(m.TopicPartitions(topic=name, partitions=tuple(indexes)) for name, indexes in names)
    return m.ElectLeadersRequest(election_type=kind, topic_partitions=topics or None, timeout=timeout())


def alter_partition(
    broker: int, epoch: int, topic: uuid.UUID, index: int, isr: Sequence[tuple[int, int]], *,
    leader_epoch: int = 0, partition_epoch: int = 0,
) -> Any:  # fmt: skip
    m = kio("alter_partition", 3)
    partition = m.PartitionData(
        partition_index=index, leader_epoch=leader_epoch, leader_recovery_state=0, partition_epoch=partition_epoch,
        new_isr_with_epochs=tuple(m.BrokerState(broker_id=one, broker_epoch=of) for one, of in isr),
    )  # fmt: skip
    topics = (m.TopicData(topic_id=topic, partitions=(partition,)),)
    return m.AlterPartitionRequest(broker_id=broker, broker_epoch=epoch, topics=topics)


def assign(broker: int, epoch: int, number: int, topic: uuid.UUID, *indexes: int) -> Any:
    m = kio("assign_replicas_to_dirs", 0)
    partitions = tuple(m.PartitionData(partition_index=index) for index in indexes)
    places = m.TopicData(topic_id=topic, partitions=partitions)
    directories = (m.DirectoryData(id_=wire_uuid(directory(broker, number)), topics=(places,)),)
    return m.AssignReplicasToDirsRequest(broker_id=broker, broker_epoch=epoch, directories=directories)


def producer_ids(broker: int, epoch: int) -> Any:
    return kio("allocate_producer_ids", 0).AllocateProducerIdsRequest(broker_id=broker, broker_epoch=epoch)


def unregister(broker: int) -> Any:
    return kio("unregister_broker", 0).UnregisterBrokerRequest(broker_id=broker)


def describe_cluster(kind: int = 2, *, version: int = 1, operations: bool = False) -> Any:
    more: dict[str, Any] = {"endpoint_type": kind} if version else {}
    more |= {"include_fenced_brokers": False} if version > 1 else {}
    return kio("describe_cluster", version).DescribeClusterRequest(
        include_cluster_authorized_operations=operations, **more
    )


def describe_quorum(topic: str = LOG, index: int = 0, *, version: int = 2) -> Any:
    m = kio("describe_quorum", version)
    topics = (m.TopicData(topic_name=topic, partitions=(m.PartitionData(partition_index=index),)),)
    return m.DescribeQuorumRequest(topics=topics)


def fetch(
    epoch: int, offset: int = 0, last_epoch: int = 0, *, topic: uuid.UUID = LOG_ID, index: int = 0, wait: float = 0,
    cluster_id: str | None = None, version: int = 17, replica: int = -1, max_bytes: int = 1 << 20,
    high_watermark: int | None = None,
) -> Any:  # fmt: skip
    m = kio("fetch", version)
    known = {} if high_watermark is None else {"high_watermark": high_watermark}
    partition = m.FetchPartition(
        partition=index, current_leader_epoch=epoch, fetch_offset=offset, last_fetched_epoch=last_epoch,
        partition_max_bytes=max_bytes, **({"replica_directory_id": None} if version >= 17 else {}), **known,
    )  # fmt: skip
    named = {"topic_id": topic} if version >= 13 else {"topic": LOG}
    state = {"replica_state": m.ReplicaState(replica_id=replica)} if version >= 15 else {"replica_id": replica}
    topics = (m.FetchTopic(**named, partitions=(partition,)),)
    return m.FetchRequest(
        cluster_id=cluster_id, max_wait=timeout(wait), min_bytes=0, topics=topics, forgotten_topics_data=(),
        rack_id="", **state,
    )  # fmt: skip


def fetch_snapshot(
    epoch: int, end_offset: int, end_epoch: int, position: int = 0, *, cluster_id: str | None = None
) -> Any:
    m = kio("fetch_snapshot", 1)
    partition = m.PartitionSnapshot(
        partition=0, current_leader_epoch=epoch, position=position, replica_directory_id=None,
        snapshot_id=m.SnapshotId(end_offset=end_offset, epoch=end_epoch),
    )  # fmt: skip
    topics = (m.TopicSnapshot(name=LOG, partitions=(partition,)),)
    return m.FetchSnapshotRequest(cluster_id=cluster_id, topics=topics, max_bytes=1 << 20)


def encoded(request: Any, correlation: int = 7, client: bytes = b"inner") -> bytes:
    """A request with its header, as an envelope has it."""
    cls = type(request)
    buffer = io.BytesIO()
    buffer.write(struct.pack(">hhih", cls.__api_key__, cls.__version__, correlation, len(client)) + client)
    if cls.__flexible__:
        buffer.write(b"\0")
    entity_writer(cls)(buffer, request)
    return buffer.getvalue()


def principal(name: str) -> bytes:
    """`User:name` as brokers write it."""
    buffer = io.BytesIO(struct.pack(">h", 0))
    buffer.seek(2)
    data = DefaultPrincipalData(type_="User", name=name, token_authenticated=False)
    entity_writer(DefaultPrincipalData)(buffer, data)
    return buffer.getvalue()


def envelope(frame: bytes, *, user: bytes | None = None, host: bytes | None = None) -> Any:
    return kio("envelope", 0).EnvelopeRequest(
        request_data=frame, request_principal=principal("alice") if user is None else user,
        client_host_address=ipaddress.ip_address("10.1.2.3").packed if host is None else host,
    )  # fmt: skip


def inside(request: Any, answer: Any) -> Any:
    """The response in the answer to an envelope with `request`."""
    module = import_module(type(request).__module__.replace(".request", ".response"))
    kind = getattr(module, type(request).__name__.replace("Request", "Response"))
    _, at = entity_reader(kind.__header_schema__)(answer.response_data, 0)
    return entity_reader(kind)(answer.response_data, at)[0]


def controller_registration(controller: int) -> Any:
    m = kio("controller_registration", 0)
    listener = m.Listener(name="CONTROLLER", host="127.0.0.1", port=1, security_protocol=0)
    feature = m.Feature(name="metadata.version", min_supported_version=7, max_supported_version=33)
    return m.ControllerRegistrationRequest(
        controller_id=controller, incarnation_id=uuid.UUID(int=77), zk_migration_ready=False, listeners=(listener,),
        features=(feature,),
    )  # fmt: skip


def describe_configs(*resources: tuple[int, str, Sequence[str] | None], version: int = 4) -> Any:
    m = kio("describe_configs", version)
    asked = tuple(
        m.DescribeConfigsResource(
            resource_type=kind, resource_name=name, configuration_keys=None if keys is None else tuple(keys)
        )
        for kind, name, keys in resources
    )
    return m.DescribeConfigsRequest(resources=asked, include_synonyms=False, include_documentation=False)
