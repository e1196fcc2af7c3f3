"""Handlers for the leader of the quorum and the endpoints of its controllers.

Source: kafka.server.ControllerApis, KIP-919.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any, Final

from kraftlake.controller.cluster.controllers import ControllerRegistrationRequest, register_controller
from kraftlake.controller.errors import ControllerApiError
from kraftlake.controller.result import ControllerResult
from kraftlake.controller.state import ControllerState
from kraftlake.image.kafka_names import AclOperation
from kraftlake.protocol.describe import BROKERS, CONTROLLERS, METADATA_TOPIC
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.ids import kafka_id, wire_id
from kraftlake.records.metadata_records import ControllerEndpoint, ControllerFeature
from kraftlake.server.controller.controller_node import ControllerNode
from kraftlake.server.controller.quorum_view import NOBODY
from kraftlake.server.controller.replica_progress import NodeProgress
from kraftlake.server.requests.dispatcher import Request
from kraftlake.server.requests.handlers import Answering, Handler, NotReadyError, RefusedError, response_to
from kraftlake.server.requests.messages import of_version

_NOT_ASKED_FOR: Final = -(2**31)
_OF_A_CLUSTER: Final = (
    AclOperation.CREATE, AclOperation.CLUSTER_ACTION, AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS,
    AclOperation.IDEMPOTENT_WRITE, AclOperation.ALTER, AclOperation.DESCRIBE,
)  # fmt: skip


def quorum_handlers(node: ControllerNode) -> Mapping[str, Handler]:
    """The handlers of DescribeCluster, DescribeQuorum and ControllerRegistration."""
    return {
        "describe_cluster": Handler(begin=partial(_describe_cluster, node)),
        "describe_quorum": Handler(begin=partial(_describe_quorum, node)),
        "controller_registration": Handler(begin=partial(_register, node)),
    }


def _describe_cluster(node: ControllerNode, request: Request) -> Answering:
    if not node.view.published.is_set():
        raise NotReadyError("There is no image yet.")
    version = node.view.image.features.metadata_version
    if version is None or not version.is_controller_registration_supported:
        raise RefusedError(
            ErrorCode.UNSUPPORTED_VERSION, "Clients can ask controllers from metadata.version 3.7-IV0 on."
        )
    node.check_cluster(request, AclOperation.ALTER)
    _check_type(request)
    endpoints = node.view.endpoints(request.peer.listener)

    def answer(leader: int) -> Any:
        brokers = tuple(
            of_version(
                request.module.DescribeClusterBroker, broker_id=id_, host=one.host, port=one.port, rack=None,
                is_fenced=False,
            )
            for id_, one in endpoints.items()
        )  # fmt: skip
        return response_to(
            request, error_code=ErrorCode.NONE, error_message=None, endpoint_type=CONTROLLERS,
            cluster_id=node.cluster_id, controller_id=leader if leader in endpoints else NOBODY, brokers=brokers,
            cluster_authorized_operations=_allowed(node, request),
        )  # fmt: skip

    leader = node.view.leader_id
    if leader != node.node_id:
        return answer(leader)
    told: Future[Any] = Future()
    # only an active controller that has committed lately knows that none has claimed the log since
    node.controller.read(lambda _: None).add_done_callback(
        lambda read: told.set_result(answer(leader if read.exception() is None else NOBODY))
    )
    return told


def _check_type(request: Request) -> None:
    """Raise RefusedError for a request for any nodes but controllers."""
    wanted = int(getattr(request.body, "endpoint_type", BROKERS))
    if wanted == CONTROLLERS:
        return
    error = ErrorCode.MISMATCHED_ENDPOINT_TYPE if wanted == BROKERS else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
    reason = f"This node is a controller, and endpoints of type {wanted} were asked for."
    raise RefusedError(ErrorCode.INVALID_REQUEST if request.version == 0 else error, reason)


def _allowed(node: ControllerNode, request: Request) -> int:
    """The operations on the cluster that are allowed to the peer, as a bit field, if requested."""
    if not request.body.include_cluster_authorized_operations:
        return _NOT_ASKED_FOR
    if not node.authorization.allows_on_cluster(request.peer, AclOperation.DESCRIBE):
        return 0
    allowed = [one for one in _OF_A_CLUSTER if node.authorization.allows_on_cluster(request.peer, one)]
    return sum(1 << int(one) for one in allowed)


def _describe_quorum(node: ControllerNode, request: Request) -> Answering:
    node.check_cluster(request, AclOperation.DESCRIBE)
    asked, module = request.body, request.module
    partitions = [(topic.topic_name, int(one.partition_index)) for topic in asked.topics for one in topic.partitions]

    def answer(partition: Any, nodes: Any = ()) -> Any:
        topic = module.TopicData(topic_name=METADATA_TOPIC, partitions=(partition,))
        return response_to(request, error_code=ErrorCode.NONE, error_message=None, topics=(topic,), nodes=nodes)

    if partitions != [(METADATA_TOPIC, 0)]:
        return response_to(
            request, error_code=ErrorCode.NONE, error_message=None, nodes=(),
            topics=tuple(
                module.TopicData(
                    topic_name=topic.topic_name,
                    partitions=tuple(_unknown(request, int(one.partition_index)) for one in topic.partitions),
                )
                for topic in asked.topics
            ),
        )  # fmt: skip

    def describe(state: ControllerState) -> ControllerResult[tuple[int, int]]:
        return ControllerResult((), (state.next_offset, node.controller.epoch))

    def described(end_offset: int, epoch: int) -> Any:
        view = node.view
        voters, observers = node.progress.described(
            leader=node.node_id, controllers=view.image.cluster.controllers, brokers=view.image.cluster.brokers,
            end_offset=end_offset,
        )  # fmt: skip
        partition = of_version(
            module.PartitionData, partition_index=0, error_code=ErrorCode.NONE, error_message=None,
            leader_id=node.node_id, leader_epoch=epoch, high_watermark=end_offset,
            current_voters=tuple(_replica(module, one) for one in voters),
            observers=tuple(_replica(module, one) for one in observers),
        )  # fmt: skip
        return answer(partition, _nodes(node, module))

    told: Future[Any] = Future()

    def done(future: Future[tuple[int, int]]) -> None:
        fault = future.exception()
        if fault is None:
            told.set_result(described(*future.result()))
        elif isinstance(fault, ControllerApiError):
            told.set_result(answer(_unknown(request, 0, ErrorCode.NOT_LEADER_OR_FOLLOWER, node)))
        else:
            told.set_exception(fault)

    node.controller.submit(describe).add_done_callback(done)
    return told


def _unknown(
    request: Request, index: int, error: ErrorCode = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    node: ControllerNode | None = None,
) -> Any:  # fmt: skip
    """Return an unknown partition of DescribeQuorum, with nothing but the leader, if known."""
    leader, epoch = 0, 0
    if node is not None:
        known = node.leader
        leader, epoch = NOBODY if known.leader_id is None else known.leader_id, known.epoch
    reason = "The node does not lead the quorum." if node else "There is no such partition of the metadata log."
    return of_version(
        request.module.PartitionData, partition_index=index, error_code=error, error_message=reason, leader_id=leader,
        leader_epoch=epoch, high_watermark=0, current_voters=(), observers=(),
    )  # fmt: skip


def _replica(module: Any, replica: NodeProgress) -> Any:
    return of_version(
        module.ReplicaState, replica_id=replica.id, replica_directory_id=wire_id(replica.directory_id),
        log_end_offset=replica.log_end_offset, last_fetch_timestamp=replica.last_fetch_ms,
        last_caught_up_timestamp=replica.last_caught_up_ms,
    )  # fmt: skip


def _nodes(node: ControllerNode, module: Any) -> Any:
    """The endpoints of the voters, in the versions that carry them."""
    if not hasattr(module, "Node"):
        return ()
    return tuple(
        module.Node(
            node_id=id_,
            listeners=tuple(
                module.Listener(name=name, host=one.host, port=one.port)
                for name, one in sorted(registration.listeners.items())
            ),
        )
        for id_, registration in sorted(node.view.image.cluster.controllers.items())
    )


def _register(node: ControllerNode, request: Request) -> Future[Any]:
    node.check_cluster(request, AclOperation.CLUSTER_ACTION)
    asked = request.body
    registration = ControllerRegistrationRequest(
        controller_id=int(asked.controller_id),
        incarnation_id=kafka_id(asked.incarnation_id),
        listeners=tuple(
            ControllerEndpoint(
                name=one.name, host=one.host, port=int(one.port), security_protocol=int(one.security_protocol)
            )
            for one in asked.listeners
        ),
        features=tuple(
            ControllerFeature(
                name=one.name,
                min_supported_version=int(one.min_supported_version),
                max_supported_version=int(one.max_supported_version),
            )
            for one in asked.features
        ),
    )
    return node.run(
        lambda state: register_controller(state, registration),
        lambda _: response_to(request, error_code=ErrorCode.NONE, error_message=None),
    )
