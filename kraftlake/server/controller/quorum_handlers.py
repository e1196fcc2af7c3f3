"""Handlers for the leader of the quorum and the endpoints of its controllers.

Source: kafka.server.ControllerApis, KIP-919.
"""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, Final

from kraftlake.controller.cluster.controllers import ControllerRegistrationRequest, register_controller
from kraftlake.controller.errors import ControllerApiError
from kraftlake.controller.result import ControllerResult
from kraftlake.controller.state import ControllerState
from kraftlake.image.kafka_names import AclOperation
from kraftlake.protocol.broker_requests import end_points_as, feature_levels_as
from kraftlake.protocol.describe import BROKERS, CONTROLLERS, METADATA_TOPIC
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.ids import kafka_id, wire_id
from kraftlake.records.metadata_records import ControllerEndpoint, ControllerFeature
from kraftlake.server.controller.controller_node import ControllerNode, Handlers
from kraftlake.server.controller.quorum_view import NOBODY
from kraftlake.server.controller.replica_progress import NodeProgress
from kraftlake.server.requests.authorization import NOT_ASKED_FOR
from kraftlake.server.requests.dispatcher import Answering, Request
from kraftlake.server.requests.handlers import response_to, then
from kraftlake.server.requests.messages import of_version


def _describe_cluster(node: ControllerNode, request: Request) -> Answering:
    if not node.view.published.is_set():
        request.close()  # as if the node had not started
        return None
    version = node.view.image.features.metadata_version
    if version is None or not version.is_controller_registration_supported:
        raise ControllerApiError(
            ErrorCode.UNSUPPORTED_VERSION, "Clients can ask controllers from metadata.version 3.7-IV0 on."
        )
    node.check_cluster(request, AclOperation.ALTER)
    _check_type(request)
    endpoints = node.view.endpoints(request.peer.listener)
    operations = NOT_ASKED_FOR
    if request.body.include_cluster_authorized_operations:
        operations = node.authorization.operations_on_cluster(request)

    def answer(leader: int) -> Any:
        brokers = tuple(
            of_version(
                request.module.DescribeClusterBroker, broker_id=id_, host=one.host, port=one.port, rack=None,
                is_fenced=False,
            )
            for id_, one in endpoints.items()
        )  # fmt: skip
        return response_to(
            request, error_message=None, endpoint_type=CONTROLLERS,
            cluster_id=node.cluster_id, controller_id=leader if leader in endpoints else NOBODY, brokers=brokers,
            cluster_authorized_operations=operations,
        )  # fmt: skip

    leader = node.view.leader_id
    if leader != node.node_id:
        return answer(leader)
    # only an active controller that has committed lately knows that none has claimed the log since
    return then(node.controller.read(lambda _: leader), answer, refused=lambda: answer(NOBODY))


def _check_type(request: Request) -> None:
    """Raise ControllerApiError for a request for any nodes but controllers."""
    wanted = int(getattr(request.body, "endpoint_type", BROKERS))
    if wanted == CONTROLLERS:
        return
    error = ErrorCode.MISMATCHED_ENDPOINT_TYPE if wanted == BROKERS else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
    reason = f"This node is a controller, and endpoints of type {wanted} were asked for."
    raise ControllerApiError(ErrorCode.INVALID_REQUEST if request.version == 0 else error, reason)


def _describe_quorum(node: ControllerNode, request: Request) -> Answering:
    node.check_cluster(request, AclOperation.DESCRIBE)
    asked, module = request.body, request.module
    partitions = [(topic.topic_name, int(one.partition_index)) for topic in asked.topics for one in topic.partitions]

    def answer(partition: Any, nodes: Any = ()) -> Any:
        topic = module.TopicData(topic_name=METADATA_TOPIC, partitions=(partition,))
        return response_to(request, error_message=None, topics=(topic,), nodes=nodes)

    if partitions != [(METADATA_TOPIC, 0)]:
        return response_to(
            request, error_message=None, nodes=(),
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

    def described(end: tuple[int, int]) -> Any:
        (end_offset, epoch), view = end, node.view
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

    def refused() -> Any:
        return answer(_unknown(request, 0, ErrorCode.NOT_LEADER_OR_FOLLOWER, node))

    return then(node.controller.submit(describe), described, refused=refused)


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
        listeners=end_points_as(ControllerEndpoint, asked.listeners),
        features=feature_levels_as(ControllerFeature, asked.features),
    )
    return node.run(
        lambda state: register_controller(state, registration),
        lambda _: response_to(request, error_message=None),
    )


QUORUM_HANDLERS: Final[Handlers] = {
    "describe_cluster": _describe_cluster,
    "describe_quorum": _describe_quorum,
    "controller_registration": _register,
}
"""The handlers of DescribeCluster, DescribeQuorum and ControllerRegistration."""
