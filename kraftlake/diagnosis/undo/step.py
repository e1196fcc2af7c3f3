"""A step of a plan: what it changes, from which value to which, what undid it, and its class."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

import attrs

from kraftlake.image.json_form import Json
from kraftlake.records.redaction import REDACTED

THROTTLES: Final = frozenset(
    f"{side}.replication.throttled.{what}" for side in ("leader", "follower") for what in ("rate", "replicas")
)
"""The configs of brokers and topics that slow partitions that move."""


class StepClass(Enum):
    """The class of a step; the value is its name in texts and JSON."""

    SAFE = "safe"
    ACCESS = "access"
    """It widens who may do what, or how much."""
    DESTRUCTIVE = "destructive"
    """It deletes a topic, a user or records."""
    PARTIAL = "partial"
    """It brings back a part: a topic under a new id without its records; partitions can't become fewer."""
    IMPOSSIBLE = "impossible"
    """No request brings it back."""


class Action(Enum):
    """The request of a step; the value is its name in texts and JSON."""

    UPDATE_FEATURE = "update-feature"
    CREATE_TOPIC = "create-topic"
    DELETE_TOPIC = "delete-topic"
    ADD_PARTITIONS = "add-partitions"
    REASSIGN = "reassign"
    ALTER_CONFIGS = "alter-configs"
    ALTER_QUOTAS = "alter-quotas"
    CREATE_ACL = "create-acl"
    DELETE_ACL = "delete-acl"
    DELETE_SCRAM = "delete-scram"
    NONE = "none"
    """There is no request."""


@attrs.frozen(kw_only=True)
class Evidence:
    """The record that undid a value: its offset, time (epoch ms, None for none) and type."""

    offset: int
    timestamp: int | None
    type: str | None

    def to_json(self) -> Json:
        """The form within a plan."""
        return {"offset": self.offset, "timestamp": self.timestamp, "type": self.type}


@attrs.frozen(kw_only=True)
class StepChange:
    """A field of a step's subject: the value that it has and the one that it gets; None is nothing."""

    field: str
    before: Any = attrs.field(repr=False)
    after: Any = attrs.field(repr=False)
    undone_by: Evidence | None = None
    secret: bool = False

    def shown(self, show_secrets: bool) -> StepChange:
        """The change as it may be shown: a secret is `(redacted)`."""
        if show_secrets or not self.secret:
            return self
        before, after = (None if value is None else REDACTED for value in (self.before, self.after))
        return attrs.evolve(self, before=before, after=after)

    def to_json(self) -> Json:
        """The form within a plan."""
        form = {"field": self.field, "before": self.before, "after": self.after}
        return form | {"undoneBy": None if self.undone_by is None else self.undone_by.to_json(), "secret": self.secret}

    @property
    def is_redacted(self) -> bool:
        """Whether the value that it gets is not known here."""
        return self.secret and self.after == REDACTED


@attrs.frozen(kw_only=True)
class Step:
    """A step of a plan.

    `subject` names what the action is about, in plain values: `{topic}`, `{type, name}` of configs, `{entity}` of
    quotas, `{acl}`, `{user, mechanism}`, `{feature}`. `path` is the path of the same thing in a drift, `note` a
    sentence on what it does besides, or why it does less.
    """

    action: Action
    step_class: StepClass
    path: str
    subject: Mapping[str, Any]
    changes: tuple[StepChange, ...]
    note: str = ""

    @property
    def can_run(self) -> bool:
        """Whether there is a request, and all its values are known."""
        return self.action is not Action.NONE and not any(change.is_redacted for change in self.changes)

    @property
    def ends_throttle(self) -> bool:
        """Whether the step takes a throttle away, which is for the time when no partition moves."""
        return self.action is Action.ALTER_CONFIGS and all(
            change.after is None and change.field in THROTTLES for change in self.changes
        )

    def after(self, field: str) -> Any:
        """The value that a field gets; None for nothing, and for a field that is not changed."""
        return next((change.after for change in self.changes if change.field == field), None)

    def before(self, field: str) -> Any:
        """The value that a field has; None for nothing, and for a field that is not changed."""
        return next((change.before for change in self.changes if change.field == field), None)

    def shown(self, show_secrets: bool) -> Step:
        """The step as it may be shown: secrets are `(redacted)`."""
        return attrs.evolve(self, changes=tuple(change.shown(show_secrets) for change in self.changes))

    def to_json(self) -> Json:
        """The form within a plan, with secrets as they are."""
        return {
            "action": self.action.value,
            "class": self.step_class.value,
            "path": self.path,
            "subject": dict(self.subject),
            "changes": [change.to_json() for change in self.changes],
            "note": self.note,
        }
