"""The part of a log and of a diff that a node of an image covers."""

from __future__ import annotations

import glob
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from kraftlake.cli.selection.log_records import OfBrokers, OfTopics

if TYPE_CHECKING:
    from kraftlake.cli.selection.log_names import LogNames
    from kraftlake.image.diff import EntryChange, ImageDiff
    from kraftlake.image.nodes.node import Subject
    from kraftlake.records.log_record import LogRecord

_BROKERS: Final = (
    "REGISTER_BROKER_RECORD", "UNREGISTER_BROKER_RECORD", "FENCE_BROKER_RECORD", "UNFENCE_BROKER_RECORD",
    "BROKER_REGISTRATION_CHANGE_RECORD",
)  # fmt: skip
_CONTROLLERS: Final = ("REGISTER_CONTROLLER_RECORD", "UNREGISTER_CONTROLLER_RECORD")
_OF_PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "features": ("FEATURE_LEVEL_RECORD",),
    "brokers": _BROKERS,
    "controllers": _CONTROLLERS,
    "topics": (
        "TOPIC_RECORD", "REMOVE_TOPIC_RECORD", "PARTITION_RECORD", "PARTITION_CHANGE_RECORD", "CLEAR_ELR_RECORD",
    ),
    "configs": ("CONFIG_RECORD",),
    "clientQuotas": ("CLIENT_QUOTA_RECORD",),
    "producerIds": ("PRODUCER_IDS_RECORD",),
    "acls": ("ACCESS_CONTROL_ENTRY_RECORD", "REMOVE_ACCESS_CONTROL_ENTRY_RECORD"),
    "scram": ("USER_SCRAM_CREDENTIAL_RECORD", "REMOVE_USER_SCRAM_CREDENTIAL_RECORD"),
    "delegationTokens": ("DELEGATION_TOKEN_RECORD", "REMOVE_DELEGATION_TOKEN_RECORD"),
}  # fmt: skip
"""The types of the records of a part of the image, by the part's name in a diff."""

_PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    **{part: (part,) for part in _OF_PARTS},
    "cluster": ("brokers", "controllers"),
    "topics": ("topics", "partitions"),
    "feature": ("features",),
    "broker": ("brokers",),
    "controller": ("controllers",),
    "topic": ("topics", "partitions"),
    "partition": ("partitions",),
    "resource": ("configs",),
    "config": ("configs",),
    "entity": ("clientQuotas",),
    "quota": ("clientQuotas",),
    "acl": ("acls",),
    "mechanism": ("scram",),
    "credential": ("scram",),
    "token": ("delegationTokens",),
}
"""The parts of a diff by the kind of a node's subject."""


def record_filter(subject: Subject, known: LogNames) -> Callable[[LogRecord], bool]:
    """A filter for the records about a node; call it with each record of a range, in order.

    `known` are the names that the log has given to ids before the first record.
    """
    kind, key = subject
    if kind == "image":
        return lambda _: True
    if kind == "broker":
        return OfBrokers([key]).wants
    if kind == "topic":
        return OfTopics(known, [glob.escape(key)]).wants
    if kind == "partition":
        of_partition = OfTopics(known, (), (), [f"{key[0]}-{key[1]}"]).wants
        return lambda record: of_partition(record) or _clears_elr(record, key[0])
    types = {type_ for part in _PARTS[kind] for type_ in _OF_PARTS.get(part, ())}
    fields = _fields(subject)
    of_quota = _quota(subject)

    def wants(record: LogRecord) -> bool:
        message: Any = record.message
        return (
            record.type in types
            and all(getattr(message, name) == value for name, value in fields.items())
            and (of_quota is None or of_quota(message))
        )

    return wants


def _clears_elr(record: LogRecord, topic: str) -> bool:
    """Whether a record clears the ELR of the partitions of a topic, or of all."""
    message: Any = record.message
    return record.type == "CLEAR_ELR_RECORD" and message.topic_name in ("", topic)


def _fields(subject: Subject) -> dict[str, Any]:
    """The field values of a record about a subject."""
    kind, key = subject
    match kind:
        case "feature":
            return {"name": key}
        case "controller":
            return {"controller_id": key}
        case "resource":
            return {"resource_type": key.type, "resource_name": key.name}
        case "config":
            return {"resource_type": key[0].type, "resource_name": key[0].name, "name": key[1]}
        case "acl":
            return {"id": key}
        case "mechanism":
            return {"mechanism": key}
        case "credential":
            return {"mechanism": key[0], "name": key[1]}
        case "token":
            return {"token_id": key}
        case _:
            return {}


def _quota(subject: Subject) -> Callable[[Any], bool] | None:
    """A test whether a ClientQuotaRecord is about an entity, or one of its quotas; None for another subject."""
    if subject.kind not in ("entity", "quota"):
        return None
    from kraftlake.image.client_quotas_image import ClientQuotaEntity

    entity, quota = (subject.key, None) if subject.kind == "entity" else subject.key
    return lambda record: quota in (None, record.key) and ClientQuotaEntity.from_record(record.entity) == entity


def of_node(diff: ImageDiff, subject: Subject) -> ImageDiff:
    """The changes of a node; for a topic or a broker, also the changes of its configs."""
    import attrs

    if subject.kind == "image":
        return diff
    path, field = _path(subject)
    parts = _PARTS[subject.kind]

    def shown(change: EntryChange) -> EntryChange | None:
        if change.part == "configs" and change.path == (subject.kind.upper(), str(subject.key)):
            return change
        if subject.kind == "partition" and change.part == "topics" and change.path == path[:1]:
            return change
        if change.part not in parts or change.path[: len(path)] != path:
            return None
        if field is None:
            return change
        fields = tuple(one for one in change.fields if one.field == field)
        return attrs.evolve(change, fields=fields) if fields else None

    return attrs.evolve(diff, changes=tuple(one for change in diff.changes if (one := shown(change)) is not None))


def _path(subject: Subject) -> tuple[tuple[str, ...], str | None]:
    """The start of the paths of a diff's entries about a subject, and the field where the subject is a single field."""
    from kraftlake.image.scram_image import mechanism_name

    kind, key = subject
    match kind:
        case "partition":
            return (key[0], str(key[1])), None
        case "resource":
            return (key.type_name, key.name), None
        case "config":
            return (key[0].type_name, key[0].name), key[1]
        case "entity":
            return (key.text,), None
        case "quota":
            return (key[0].text,), key[1]
        case "mechanism":
            return (mechanism_name(key),), None
        case "credential":
            return (mechanism_name(key[0]), key[1]), None
        case _:
            return () if key is None else (str(key),), None
