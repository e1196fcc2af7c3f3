"""Handlers of partition reassignments and leader elections. Source: kafka.server.ControllerApis."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from itertools import groupby
from typing import Any, Final

from kraftlake.controller.errors import ApiError, ControllerApiError
from kraftlake.controller.replication.elections import ElectionType, elect_leaders
from kraftlake.controller.replication.reassignments import alter_partition_reassignments, list_partition_reassignments
from kraftlake.controller.result import ControllerResult
from kraftlake.controller.state import ControllerState
from kraftlake.image.kafka_names import AclOperation
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.server.controller.controller_node import ControllerNode, Handlers
from kraftlake.server.requests.dispatcher import Request
from kraftlake.server.requests.handlers import response_to, then
from kraftlake.server.requests.messages import of_version


def _reassign(node: ControllerNode, request: Request) -> Future[Any]:
    node.check_cluster(request, AclOperation.ALTER)
    asked = request.body
    targets = [
        ((topic.name, int(one.partition_index)), None if one.replicas is None else tuple(map(int, one.replicas)))
        for topic in asked.topics
        for one in topic.partitions
    ]
    allow = getattr(asked, "allow_replication_factor_change", True)

    return node.run(
        lambda state: alter_partition_reassignments(state, targets, allow_replication_factor_change=allow),
        lambda errors: _reassigned(request, errors),
        timeout=asked.timeout,
    )


def _reassigned(request: Request, errors: Mapping[tuple[str, int], ApiError]) -> Any:
    module = request.module
    topics = tuple(
        module.ReassignableTopicResponse(
            name=topic.name,
            partitions=tuple(
                module.ReassignablePartitionResponse(
                    partition_index=one.partition_index, error_code=error.error, error_message=error.message
                )
                for one in topic.partitions
                for error in (errors[topic.name, int(one.partition_index)],)
            ),
        )
        for topic in request.body.topics
    )
    return response_to(
        request, error_message=None, responses=topics,
        allow_replication_factor_change=getattr(request.body, "allow_replication_factor_change", True),
    )  # fmt: skip


def _list(node: ControllerNode, request: Request) -> Future[Any]:
    node.check_cluster(request, AclOperation.DESCRIBE)
    topics, module = request.body.topics, request.module
    names = None
    if topics is not None:
        names = [(topic.name, int(index)) for topic in topics for index in topic.partition_indexes]

    def answer(found: Mapping[tuple[str, int], Any]) -> Any:
        ongoing = tuple(
            module.OngoingTopicReassignment(
                name=name,
                partitions=tuple(
                    module.OngoingPartitionReassignment(
                        partition_index=index, replicas=one.replicas, adding_replicas=one.adding_replicas,
                        removing_replicas=one.removing_replicas,
                    )
                    for (_, index), one in group
                ),
            )
            for name, group in groupby(sorted(found.items(), key=lambda item: item[0]), key=lambda item: item[0][0])
        )  # fmt: skip
        return response_to(request, error_message=None, topics=ongoing)

    return then(node.controller.read(lambda image: list_partition_reassignments(image, names)), answer)


def _elect(node: ControllerNode, request: Request) -> Future[Any]:
    node.check_cluster(request, AclOperation.ALTER)
    asked = request.body
    try:
        kind = ElectionType(int(getattr(asked, "election_type", ElectionType.PREFERRED.value)))
    except ValueError:
        raise ControllerApiError(
            ErrorCode.INVALID_REQUEST, f"There is no election of type {asked.election_type}."
        ) from None
    topics = asked.topic_partitions
    names = None if topics is None else [(topic.topic, int(one)) for topic in topics for one in topic.partitions]

    def elect(state: ControllerState) -> ControllerResult[Any]:
        made = elect_leaders(state, kind, names)
        all_topics = sorted(state.image.topics.topics_by_name()) if names is None else ()
        return ControllerResult(made.records, (made.response, all_topics), atomic=made.atomic)

    def answer(response: Any) -> Any:
        errors, all_topics = response
        # who asks for all partitions gets those that needed an election, and the names of all topics
        needed = [key for key, one in errors.items() if one.error is not ErrorCode.ELECTION_NOT_NEEDED]
        by_topic: dict[str, list[tuple[int, ApiError]]] = {name: [] for name in all_topics}
        for topic, index in needed if names is None else names:
            by_topic.setdefault(topic, []).append((index, errors[topic, index]))
        return _elected(request, by_topic.items())

    return node.run(elect, answer, timeout=asked.timeout)


def _elected(request: Request, topics: Iterable[tuple[str, Iterable[tuple[int, ApiError]]]]) -> Any:
    module = request.module
    results = tuple(
        module.ReplicaElectionResult(
            topic=name,
            partition_result=tuple(
                of_version(
                    module.PartitionResult, partition_id=index, error_code=one.error,
                    error_message=one.message,
                )
                for index, one in partitions
            ),
        )
        for name, partitions in topics
    )  # fmt: skip
    return response_to(request, replica_election_results=results)


PARTITION_HANDLERS: Final[Handlers] = {
    "alter_partition_reassignments": _reassign,
    "list_partition_reassignments": _list,
    "elect_leaders": _elect,
}
"""The handlers of AlterPartitionReassignments, ListPartitionReassignments and ElectLeaders."""
