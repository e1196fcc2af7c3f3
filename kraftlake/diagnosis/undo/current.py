"""The values that a step's fields have in a description of the cluster, and whether the step is still to be taken."""

from __future__ import annotations

from enum import Enum
from typing import Any

from kraftlake.diagnosis.drift.description import ClusterDescription
from kraftlake.diagnosis.undo.step import Action, Step, StepChange
from kraftlake.diagnosis.undo.subjects import acl_of, entity_of, resource_of
from kraftlake.records.redaction import REDACTED


class Progress(Enum):
    """Where a step stands."""

    TO_DO = "to do"
    DONE = "done"
    OTHER = "other"
    """The cluster has a value that is neither the one before the step nor the one after it."""


def current_values(described: ClusterDescription, step: Step) -> dict[str, Any]:
    """The value of each field of a step in a description that covers its subject."""
    fields = [change.field for change in step.changes]
    match step.action:
        case Action.CREATE_TOPIC | Action.DELETE_TOPIC | Action.ADD_PARTITIONS:
            return _of_topic(described, step)
        case Action.REASSIGN:
            topic = described.topics.get(step.subject["topic"])
            lists = () if topic is None else topic.replicas or ()
            return {field: list(lists[int(field)]) if int(field) < len(lists) else None for field in fields}
        case Action.ALTER_CONFIGS:
            image = described.configs.get(resource_of(step))
            return {field: None if image is None else image.data.get(field) for field in fields}
        case Action.ALTER_QUOTAS:
            quotas = described.client_quotas.get(entity_of(step))
            return {field: None if quotas is None else quotas.quotas.get(field) for field in fields}
        case Action.CREATE_ACL | Action.DELETE_ACL:
            (change,) = step.changes
            words = change.after if change.before is None else change.before
            return {change.field: words if acl_of(step) in described.acls else None}
        case Action.DELETE_SCRAM:
            credential = described.scram.get((step.subject["user"], step.subject["mechanism"]))
            return dict.fromkeys(fields, None if credential is None else credential.iterations)
        case Action.UPDATE_FEATURE:
            return {field: described.features.get(step.subject["feature"]) for field in fields}
        case Action.NONE:
            return {}


def _of_topic(described: ClusterDescription, step: Step) -> dict[str, Any]:
    topic = described.topics.get(step.subject["topic"])
    if topic is None:
        return dict.fromkeys((change.field for change in step.changes), None)
    values: dict[str, Any] = {"partitions": topic.partitions, "replicationFactor": topic.replication_factor}
    if step.action is Action.CREATE_TOPIC:
        values["replicas"] = [list(lists) for lists in topic.replicas or ()]
    return {change.field: values[change.field] for change in step.changes if change.field in values}


def progress_of(described: ClusterDescription, step: Step) -> Progress:
    """Where a step stands in a description that covers its subject."""
    values = current_values(described, step)
    compared = [change for change in step.changes if change.field in values]
    if all(_is(values[change.field], change.after) for change in compared):
        is_known = all(values[change.field] != REDACTED or change.before is None for change in compared)
        return Progress.DONE if is_known else Progress.TO_DO
    return Progress.OTHER if other_values(described, step) else Progress.TO_DO


def is_hidden(described: ClusterDescription, step: Step) -> bool:
    """Whether a node hides a value of a step."""
    return REDACTED in current_values(described, step).values()


def other_values(described: ClusterDescription, step: Step) -> list[tuple[StepChange, Any]]:
    """The changes whose field has neither value of the step, with the value that it has."""
    values = current_values(described, step)
    return [
        (change, values[change.field])
        for change in step.changes
        if change.field in values
        and not _is_placed_by_kafka(step, change)
        and not _is(values[change.field], change.before)
        and not _is(values[change.field], change.after)
    ]


def _is_placed_by_kafka(step: Step, change: StepChange) -> bool:
    """Whether a step moves a partition that an earlier one makes, on brokers that nobody knows before."""
    return step.action is Action.REASSIGN and change.before is None


def _is(current: Any, wanted: Any) -> bool:
    """Whether a field has a value; a node hides sensitive ones."""
    return wanted is not None if current == REDACTED else bool(current == wanted)
