"""The order of a plan's steps: what others need comes first, what takes away comes last."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kraftlake.diagnosis.undo.step import Action, Step
from kraftlake.image.features_image import ELR_VERSION, METADATA_VERSION
from kraftlake.image.kafka_names import AclPermissionType

_RANKS: Final = {
    Action.UPDATE_FEATURE: 0,
    Action.CREATE_TOPIC: 2,
    Action.ADD_PARTITIONS: 3,
    Action.ALTER_CONFIGS: 4,
    Action.REASSIGN: 5,
    Action.ALTER_QUOTAS: 6,
    Action.CREATE_ACL: 7,
    Action.DELETE_ACL: 9,
    Action.DELETE_SCRAM: 11,
    Action.DELETE_TOPIC: 12,
    Action.NONE: 15,
}
_COLLIDING: Final = 1
_DOWNGRADE: Final = 13
_END_OF_THROTTLE: Final = 14


def in_order(steps: Iterable[Step]) -> list[Step]:
    """The steps in the order in which they are to be taken.

    Features go up first and down last, metadata.version around the others; eligible leader replicas, which hold the
    cluster's min.insync.replicas, are given up before configs change. A topic whose name collides with that of
    one to be created (`.` and `_` are one letter to Kafka's metrics) is deleted before it. A DENY comes before an
    ALLOW, and goes after one, so that no state between is wider than both ends. A throttle is set before partitions
    move, and goes at the end.
    """
    listed = list(steps)
    created = {_collision(step.subject["topic"]) for step in listed if step.action is Action.CREATE_TOPIC}

    def rank(step: Step) -> tuple[Any, ...]:
        base = _RANKS[step.action]
        if step.action is Action.UPDATE_FEATURE:
            is_version = step.subject["feature"] == METADATA_VERSION
            if (step.after("level") or 0) < (step.before("level") or 0):
                if step.subject["feature"] == ELR_VERSION:
                    return (_RANKS[Action.ADD_PARTITIONS], False, step.path)
                return (_DOWNGRADE, is_version, step.path)
            return (base, not is_version, step.path)
        if step.action is Action.DELETE_TOPIC and _collision(step.subject["topic"]) in created:
            return (_COLLIDING, False, step.path)
        if step.action in (Action.CREATE_ACL, Action.DELETE_ACL):
            is_deny = step.subject["acl"]["permissionType"] == AclPermissionType.DENY
            return (base + (is_deny == (step.action is Action.DELETE_ACL)), False, step.path)
        if step.action is Action.ALTER_CONFIGS:
            base = _END_OF_THROTTLE if step.ends_throttle else base
            return (base, step.subject["type"] == "TOPIC", step.path)
        return (base, False, step.path)

    return sorted(listed, key=rank)


def _collision(name: str) -> str:
    return name.replace(".", "_")
