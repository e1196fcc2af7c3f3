"""Changes of dynamic configs: set, delete, append to and subtract from lists, validated by Kafka's definitions.

Source: org.apache.kafka.controller.ConfigurationControlManager and kafka.server.ControllerConfigurationValidator.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

import attrs

from kraftlake.controller.configs.config_validation import default_list, is_list, validate_configs
from kraftlake.controller.errors import ApiError, ControllerApiError
from kraftlake.controller.result import ControllerResult, answer_each
from kraftlake.controller.state import ControllerState
from kraftlake.image.configurations_image import BROKER_RESOURCE, TOPIC_RESOURCE, ConfigResource
from kraftlake.image.partition_health import MIN_ISR
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records.metadata_records import ClearElrRecord, ConfigRecord
from kraftlake.records.schema import LONGEST_STRING
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.runtime.java_values import parse_integer, split, split_list, trim

CORDONED_LOG_DIRS = "cordoned.log.dirs"


class OpType(Enum):
    """The operation on a config (AlterConfigOp.OpType)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


OPERATIONS: Final = {kind.value: kind for kind in OpType}
"""The operations by their numbers in requests."""


@attrs.frozen
class ConfigOperation:
    """An operation and its value; None for DELETE."""

    op_type: OpType
    value: str | None = attrs.field(default=None, repr=False)


def incremental_alter_configs(
    state: ControllerState,
    changes: Mapping[ConfigResource, Mapping[str, ConfigOperation]],
    *,
    validate_only: bool = False,
    forwarded: bool = True,
) -> ControllerResult[dict[ConfigResource, ApiError]]:
    """Change configs of resources; each resource is changed completely, or not at all and gets an error.

    `forwarded` means that a broker has validated the request: only then may log directories be cordoned.
    """

    def alter(resource: ConfigResource, operations: Mapping[str, ConfigOperation]) -> list[ApiMessageAndVersion]:
        return alter_config_resource(state, resource, operations, forwarded=forwarded)

    records, answers = answer_each(changes.items(), alter)
    records += clear_elr_records(state, records)
    return ControllerResult(() if validate_only else records, answers, atomic=True)


def legacy_alter_configs(
    state: ControllerState,
    configs: Mapping[ConfigResource, Mapping[str, str | None]],
    *,
    validate_only: bool = False,
    forwarded: bool = True,
) -> ControllerResult[dict[ConfigResource, ApiError]]:
    """Set exactly these configs of the resources: configs that are not named, or have no value, are deleted."""

    def alter(resource: ConfigResource, wanted: Mapping[str, str | None]) -> list[ApiMessageAndVersion]:
        current = state.image.configs.config_map(resource)
        changed = {n: v for n, v in wanted.items() if current.get(n) != v or resource.type == BROKER_RESOURCE}
        deleted = {name: None for name in sorted(current) if name not in wanted}
        return _validated_records(state, resource, {**changed, **deleted}, newly_created=False, forwarded=forwarded)

    records, answers = answer_each(configs.items(), alter)
    records += clear_elr_records(state, records)
    return ControllerResult(() if validate_only else records, answers, atomic=True)


def alter_config_resource(
    state: ControllerState,
    resource: ConfigResource,
    operations: Mapping[str, ConfigOperation],
    *,
    newly_created: bool = False,
    forwarded: bool = True,
) -> list[ApiMessageAndVersion]:
    """The ConfigRecords of one resource; raises ControllerApiError.

    An unchanged config of a broker is written again, as in Kafka: the broker's file may have another value.
    """
    current = state.image.configs.config_map(resource)
    altered: dict[str, str | None] = {}
    for name, operation in operations.items():
        before = current.get(name)
        after = altered_value(resource, name, before, operation)
        if after != before or resource.type == BROKER_RESOURCE:
            altered[name] = after
    return _validated_records(state, resource, altered, newly_created=newly_created, forwarded=forwarded)


def altered_value(resource: ConfigResource, name: str, before: str | None, operation: ConfigOperation) -> str | None:
    """Return the value after an operation, None if it is removed.

    A list that is not set starts with the default of its definition. Raises ControllerApiError.
    """
    if operation.op_type is OpType.SET:
        return operation.value
    if operation.op_type is OpType.DELETE:
        return None
    if not is_list(resource, name):
        raise ControllerApiError(
            ErrorCode.INVALID_CONFIG, f"{operation.op_type.name} is for lists, and {name} is none."
        )
    if operation.value is None:
        raise ControllerApiError(ErrorCode.INVALID_REQUEST, f"{operation.op_type.name} to {name} needs a value.")
    if before is None:
        before = default_list(resource, name)
    members = [member for member in split(before or "") if member]
    for member in split(operation.value):
        if operation.op_type is OpType.APPEND:
            if member not in members:
                members.append(member)
        elif member in members:
            members.remove(member)
    return ",".join(members)


def clear_elr_records(state: ControllerState, records: list[ApiMessageAndVersion]) -> list[ApiMessageAndVersion]:
    """Return the ClearElrRecords for changes of `min.insync.replicas`, by whose old value the ELRs were chosen."""
    if not state.elr_enabled:
        return []
    cleared = []
    for record in records:
        message = record.message
        if isinstance(message, ConfigRecord) and message.name == MIN_ISR:
            topic = message.resource_name if message.resource_type == TOPIC_RESOURCE else ""
            cleared.append(ApiMessageAndVersion(ClearElrRecord(topic_name=topic), 0))
    return cleared


def _validated_records(
    state: ControllerState,
    resource: ConfigResource,
    altered: Mapping[str, str | None],
    *,
    newly_created: bool,
    forwarded: bool,
) -> list[ApiMessageAndVersion]:
    current = state.image.configs.config_map(resource)
    after = dict(current)
    for name, value in altered.items():
        if resource.type == BROKER_RESOURCE:
            _validate_broker_config(state, resource, name, value, current.get(name), forwarded=forwarded)
        if value is None:
            after.pop(name, None)
            continue
        if len(value.encode(errors="surrogatepass")) > LONGEST_STRING:
            raise ControllerApiError(
                ErrorCode.INVALID_CONFIG,
                f"The value of {name} is longer than {LONGEST_STRING} bytes.",
            )
        after[name] = value
    validate_configs(state.config, resource, current, after)
    if not newly_created:
        _check_exists(state, resource)
    records = (
        ConfigRecord(resource_type=resource.type, resource_name=resource.name, name=name, value=value)
        for name, value in altered.items()
    )
    return [ApiMessageAndVersion(record, 0) for record in records]


def _validate_broker_config(
    state: ControllerState,
    resource: ConfigResource,
    name: str,
    value: str | None,
    before: str | None,
    *,
    forwarded: bool,
) -> None:
    problem = None
    if name == MIN_ISR and state.elr_enabled:
        if resource.name:
            problem = f"{MIN_ISR} can't be set for one broker while eligible leader replicas are kept"
        elif value is None:
            problem = f"the cluster's {MIN_ISR} can't be removed while eligible leader replicas are kept"
    elif name == CORDONED_LOG_DIRS:
        if not state.metadata_version.is_cordoned_log_dirs_supported:
            problem = f"{CORDONED_LOG_DIRS} needs metadata.version 4.3-IV0"
        elif not forwarded and value and trim(value):
            known = [] if before is None else split_list(trim(before))
            if not set(split_list(trim(value))) <= set(known):
                problem = "directories can be cordoned through a broker only, not through a controller"
    if problem is not None:
        raise ControllerApiError(ErrorCode.INVALID_CONFIG, problem[0].upper() + problem[1:] + ".")


def _check_exists(state: ControllerState, resource: ConfigResource) -> None:
    if resource.type == TOPIC_RESOURCE and state.topic(resource.name) is None:
        raise ControllerApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {resource.name!r}.")
    if resource.type == BROKER_RESOURCE and resource.name:
        node = parse_integer(resource.name, 32)
        cluster = state.image.cluster
        quorum = (state.config.node_id, *state.config.quorum_node_ids)
        if node not in cluster.brokers and node not in quorum and node not in cluster.controllers:
            raise ControllerApiError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"There is no node {node}.")
