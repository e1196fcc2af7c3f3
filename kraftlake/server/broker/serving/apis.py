"""The APIs that a broker serves, and their handlers. Source: kafka.server.KafkaApis.handle."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any, Final

from kraftlake.image.kafka_names import AclOperation
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.replica_manager.logs.disk.disk_log_manager import DiskLogManager
from kraftlake.replica_manager.replication_quota import ReplicationQuota
from kraftlake.replica_manager.requests.fetch_contexts import FetchManager
from kraftlake.replica_manager.requests.request_server import RequestServer
from kraftlake.server.broker.broker_config import BrokerConfig
from kraftlake.server.broker.directories import describe_log_dirs
from kraftlake.server.broker.serving.access import AccessHandlers, TokenForwarding
from kraftlake.server.broker.serving.config_changes import ConfigChangesHandler
from kraftlake.server.broker.serving.configs import DescribeConfigsHandler, list_config_resources
from kraftlake.server.broker.serving.context import ServingContext
from kraftlake.server.broker.serving.fetch import FetchHandler
from kraftlake.server.broker.serving.forwarding import ForwardingManager
from kraftlake.server.broker.serving.metadata import MetadataHandler
from kraftlake.server.broker.serving.offsets import OffsetsHandler
from kraftlake.server.broker.serving.produce import ProduceHandler
from kraftlake.server.broker.serving.producer_ids import InitProducerIdHandler, ProducerIdManager
from kraftlake.server.broker.serving.topic_creation import AutoTopicCreation
from kraftlake.server.requests.dispatcher import Answering, Handler, Request
from kraftlake.server.requests.handlers import SASL_HANDLERS
from kraftlake.server.requests.tokens import SECRET_KEY

_VERSIONS: Final = {"init_producer_id": range(6), "find_coordinator": range(1)}
"""The served versions of APIs of which kio knows more.

The newest of InitProducerId is not stable in Kafka (KIP-939). librdkafka compresses with lz4 only where version 0 of
FindCoordinator is served.
"""
_FORWARDED: Final = (
    "create_topics", "delete_topics", "create_partitions", "alter_partition_reassignments",
    "list_partition_reassignments", "elect_leaders", "describe_quorum", "unregister_broker", "create_acls",
    "delete_acls", "alter_client_quotas", "alter_user_scram_credentials", "update_features",
)  # fmt: skip


def _no_coordinator(request: Request) -> Any:
    """Answer that no coordinator exists on this broker.

    After BROKER_NOT_AVAILABLE Java clients give up their group; librdkafka consumers with assigned partitions, which
    must name a group, continue.
    """
    error = ErrorCode.BROKER_NOT_AVAILABLE
    return request.module.FindCoordinatorResponse(error_code=error, node_id=-1, host="", port=-1)


def broker_handlers(
    context: ServingContext,
    config: BrokerConfig,
    *,
    server: RequestServer,
    sessions: FetchManager,
    forwarding: ForwardingManager,
    producer_ids: ProducerIdManager,
    leader_quota: ReplicationQuota,
    logs: DiskLogManager,
    cordoned: Callable[[], Collection[str]],
) -> dict[str, Handler]:
    """The handlers of what a broker advertises."""
    creation = AutoTopicCreation(forwarding) if config.auto_create_topics else None

    def log_dirs(request: Request) -> None:
        is_allowed = context.authorization.allows_on_cluster(request, AclOperation.DESCRIBE)
        answer = describe_log_dirs(request.frame, logs, cordoned=cordoned(), is_allowed=is_allowed)
        assert answer is not None, "it is a request for log directories"
        request.answer_frame(answer)

    metadata = MetadataHandler(context, creation, most_partitions=config.value("max.request.partition.size.limit"))
    offsets = OffsetsHandler(context, server)
    access = AccessHandlers(context, config.value(SECRET_KEY))
    tokens = TokenForwarding(context, forwarding)
    handlers: dict[str, Callable[[Request], Answering]] = {
        "produce": ProduceHandler(context, server),
        "fetch": FetchHandler(
            context, server, sessions, fetch_max_bytes=config.value("fetch.max.bytes"), leader_quota=leader_quota
        ),
        "list_offsets": offsets.list_offsets,
        "offset_for_leader_epoch": offsets.offset_for_leader_epoch,
        "delete_records": offsets.delete_records,
        "init_producer_id": InitProducerIdHandler(context, producer_ids),
        "metadata": metadata.metadata,
        "describe_topic_partitions": metadata.describe_topic_partitions,
        "describe_cluster": metadata.describe_cluster,
        "describe_configs": DescribeConfigsHandler(context, config),
        "list_config_resources": partial(list_config_resources, context),
        "describe_log_dirs": log_dirs,
        "find_coordinator": _no_coordinator,
        **dict.fromkeys(
            ("alter_configs", "incremental_alter_configs"), ConfigChangesHandler(context, config, forwarding)
        ),
        "describe_acls": access.acls,
        "describe_client_quotas": access.client_quotas,
        "describe_user_scram_credentials": access.scram_credentials,
        "create_delegation_token": tokens.create,
        "describe_delegation_token": access.tokens,
        **dict.fromkeys(("renew_delegation_token", "expire_delegation_token"), tokens.change),
        **dict.fromkeys(_FORWARDED, forwarding),
    }
    made = {name: Handler(begin=handle, versions=_VERSIONS.get(name)) for name, handle in handlers.items()}
    return {**made, **SASL_HANDLERS}
