"""The requests of steps: what is sent for each action, and the operation that it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final, NamedTuple

import attrs

from kraftlake.diagnosis.undo.step import Action, Step
from kraftlake.diagnosis.undo.subjects import acl_of, mechanism_number, resource_of
from kraftlake.protocol.admin_client import Answer

_TIMEOUT_MS: Final = 15_000
_SET, _DELETE = 0, 1
"""Operations of IncrementalAlterConfigs."""


class _Request(NamedTuple):
    """A request: its API, the versions that are sent, its fields, the answer in its response, the right it needs."""

    api: str
    versions: range
    make: Callable[[Any, Step, bool], Any]
    answer: Callable[[Any], Answer]
    right: str
    validates: bool = False
    """Whether it has `validateOnly`."""


def request_of(step: Step) -> _Request:
    """The request of a step that has one."""
    return _REQUESTS[step.action]


def request_timeout() -> Any:
    """The time that a node has for a request, as its requests state it."""
    from kio.static.primitive import i32Timedelta

    return i32Timedelta.parse(timedelta(milliseconds=_TIMEOUT_MS))


def _first(name: str) -> Callable[[Any], Answer]:
    """The answer in the one element of a list of results."""

    def answer(response: Any) -> Answer:
        (result,) = getattr(response, name)
        return Answer.of(result.error_code, result.error_message)

    return answer


def _create_topic(module: Any, step: Step, validate_only: bool) -> Any:
    replicas = step.after("replicas")
    sizes = (-1, -1) if replicas is not None else (step.after("partitions"), step.after("replicationFactor"))
    topic = module.CreatableTopic(
        name=step.subject["topic"],
        num_partitions=sizes[0],
        replication_factor=sizes[1],
        assignments=tuple(
            module.CreatableReplicaAssignment(partition_index=number, broker_ids=tuple(lists))
            for number, lists in enumerate(replicas or ())
        ),
        configs=(),
    )
    return module.CreateTopicsRequest(topics=(topic,), timeout=request_timeout(), validate_only=validate_only)


def _delete_topic(module: Any, step: Step, _: bool) -> Any:
    topic = module.DeleteTopicState(name=step.subject["topic"], topic_id=None)
    return module.DeleteTopicsRequest(topics=(topic,), timeout=request_timeout())


def _add_partitions(module: Any, step: Step, validate_only: bool) -> Any:
    replicas = step.after("replicas")
    topic = module.CreatePartitionsTopic(
        name=step.subject["topic"],
        count=step.after("partitions"),
        assignments=None
        if replicas is None
        else tuple(module.CreatePartitionsAssignment(broker_ids=tuple(lists)) for lists in replicas),
    )
    return module.CreatePartitionsRequest(topics=(topic,), timeout=request_timeout(), validate_only=validate_only)


def _reassign(module: Any, step: Step, _: bool) -> Any:
    partitions = tuple(
        module.ReassignablePartition(partition_index=int(change.field), replicas=tuple(change.after))
        for change in step.changes
    )
    topic = module.ReassignableTopic(name=step.subject["topic"], partitions=partitions)
    return module.AlterPartitionReassignmentsRequest(timeout=request_timeout(), topics=(topic,))


def _of_reassignment(response: Any) -> Answer:
    results = [one for topic in response.responses for one in topic.partitions]
    failed = next((one for one in (response, *results) if one.error_code != 0), response)
    return Answer.of(failed.error_code, failed.error_message)


def _alter_configs(module: Any, step: Step, validate_only: bool) -> Any:
    resource = resource_of(step)
    configs = tuple(
        module.AlterableConfig(
            name=change.field, config_operation=_DELETE if change.after is None else _SET, value=change.after
        )
        for change in step.changes
    )
    changed = module.AlterConfigsResource(resource_type=resource.type, resource_name=resource.name, configs=configs)
    return module.IncrementalAlterConfigsRequest(resources=(changed,), validate_only=validate_only)


def _alter_quotas(module: Any, step: Step, validate_only: bool) -> Any:
    entity = tuple(
        module.EntityData(entity_type=type_, entity_name=name) for type_, name in step.subject["entity"].items()
    )
    ops = tuple(
        module.OpData(key=change.field, value=float(change.after or 0.0), remove=change.after is None)
        for change in step.changes
    )
    entry = module.EntryData(entity=entity, ops=ops)
    return module.AlterClientQuotasRequest(entries=(entry,), validate_only=validate_only)


def _create_acl(module: Any, step: Step, _: bool) -> Any:
    fields = attrs.asdict(acl_of(step))
    fields["resource_pattern_type"] = fields.pop("pattern_type")
    return module.CreateAclsRequest(creations=(module.AclCreation(**fields),))


def _delete_acl(module: Any, step: Step, _: bool) -> Any:
    acl = acl_of(step)
    wanted = module.DeleteAclsFilter(
        resource_type_filter=acl.resource_type,
        resource_name_filter=acl.resource_name,
        pattern_type_filter=acl.pattern_type,
        principal_filter=acl.principal,
        host_filter=acl.host,
        operation=acl.operation,
        permission_type=acl.permission_type,
    )
    return module.DeleteAclsRequest(filters=(wanted,))


def _delete_scram(module: Any, step: Step, _: bool) -> Any:
    deletion = module.ScramCredentialDeletion(name=step.subject["user"], mechanism=mechanism_number(step))
    return module.AlterUserScramCredentialsRequest(deletions=(deletion,), upsertions=())


def _update_feature(module: Any, step: Step, validate_only: bool) -> Any:
    level = step.after("level") or 0
    is_lower = level < (step.before("level") or 0)
    update = module.FeatureUpdateKey(
        feature=step.subject["feature"], max_version_level=level, upgrade_type=2 if is_lower else 1
    )
    return module.UpdateFeaturesRequest(
        timeout=request_timeout(), feature_updates=(update,), validate_only=validate_only
    )


_REQUESTS: Final[Mapping[Action, _Request]] = {
    Action.CREATE_TOPIC: _Request(
        "create_topics", range(5, 8), _create_topic, _first("topics"), "Create on the topic", True
    ),
    Action.DELETE_TOPIC: _Request(
        "delete_topics", range(6, 7), _delete_topic, _first("responses"), "Delete on the topic"
    ),
    Action.ADD_PARTITIONS: _Request(
        "create_partitions", range(2, 4), _add_partitions, _first("results"), "Alter on the topic", True
    ),
    Action.REASSIGN: _Request(
        "alter_partition_reassignments", range(2), _reassign, _of_reassignment, "Alter on the cluster"
    ),
    Action.ALTER_CONFIGS: _Request(
        "incremental_alter_configs", range(2), _alter_configs, _first("responses"), "AlterConfigs on the resource", True
    ),
    Action.ALTER_QUOTAS: _Request(
        "alter_client_quotas", range(2), _alter_quotas, _first("entries"), "AlterConfigs on the cluster", True
    ),
    Action.CREATE_ACL: _Request("create_acls", range(1, 4), _create_acl, _first("results"), "Alter on the cluster"),
    Action.DELETE_ACL: _Request(
        "delete_acls", range(1, 4), _delete_acl, _first("filter_results"), "Alter on the cluster"
    ),
    Action.DELETE_SCRAM: _Request(
        "alter_user_scram_credentials", range(1), _delete_scram, _first("results"), "Alter on the cluster"
    ),
    Action.UPDATE_FEATURE: _Request(
        "update_features",
        range(1, 3),
        _update_feature,
        lambda response: Answer.of(response.error_code, response.error_message),
        "Alter on the cluster",
        True,
    ),
}
