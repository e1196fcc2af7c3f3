"""The subjects of steps as the objects of an image."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from kraftlake.diagnosis.undo.step import Action, Step
from kraftlake.image.acls_image import StandardAcl
from kraftlake.image.client_quotas_image import ClientQuotaEntity
from kraftlake.image.configurations_image import ConfigResource
from kraftlake.image.kafka_names import CONFIG_RESOURCES, SCRAM_MECHANISMS
from kraftlake.records.schema import json_name

_TYPES: Final = {name: number for number, name in CONFIG_RESOURCES.items()}
_MECHANISMS: Final = {name: number for number, name in SCRAM_MECHANISMS.items()}
_ACL_FIELDS: Final = {json_name(name): name for name in attrs.fields_dict(StandardAcl)}
_CODES: Final = frozenset(json_name(name) for name in ("resource_type", "pattern_type", "operation", "permission_type"))


def resource_of(step: Step) -> ConfigResource:
    """The resource whose configs a step changes."""
    return ConfigResource(_TYPES[step.subject["type"]], step.subject["name"])


def entity_of(step: Step) -> ClientQuotaEntity:
    """The entity whose quotas a step changes."""
    return ClientQuotaEntity(tuple(sorted(step.subject["entity"].items())))


def acl_of(step: Step) -> StandardAcl:
    """The ACL that a step creates or deletes."""
    return StandardAcl(**{_ACL_FIELDS[key]: value for key, value in step.subject["acl"].items()})


def mechanism_number(step: Step) -> int:
    """The number of the mechanism of the credential that a step deletes."""
    return _MECHANISMS[step.subject["mechanism"]]


def _is_texts(value: Any) -> bool:
    return isinstance(value, dict) and all(one is None or isinstance(one, str) for one in value.values())


def _is_acl(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() == _ACL_FIELDS.keys()
        and all(type(one) is (int if key in _CODES else str) for key, one in value.items())
    )


def _is_whole(value: Any) -> bool:
    return type(value) is int


def _is_lists(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, list) and all(map(_is_whole, one)) for one in value)


_SUBJECTS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "topic": lambda value: isinstance(value, str),
    "type": lambda value: value in _TYPES,
    "name": lambda value: isinstance(value, str),
    "entity": _is_texts,
    "acl": _is_acl,
    "user": lambda value: isinstance(value, str),
    "mechanism": lambda value: value in _MECHANISMS,
    "feature": lambda value: isinstance(value, str),
    "token": lambda value: isinstance(value, str),
}
_VALUES: Final[Mapping[Action, Callable[[str, Any], bool]]] = {
    Action.UPDATE_FEATURE: lambda field, value: field == "level" and _is_whole(value),
    Action.CREATE_TOPIC: lambda field, value: _is_lists(value) if field == "replicas" else _is_whole(value),
    Action.ADD_PARTITIONS: lambda field, value: _is_lists(value) if field == "replicas" else _is_whole(value),
    Action.DELETE_TOPIC: lambda _, value: _is_whole(value),
    Action.REASSIGN: lambda field, value: field.isdecimal() and _is_lists([value]),
    Action.ALTER_CONFIGS: lambda _, value: isinstance(value, str),
    Action.ALTER_QUOTAS: lambda _, value: isinstance(value, float | int) and not isinstance(value, bool),
    Action.CREATE_ACL: lambda _, value: isinstance(value, str),
    Action.DELETE_ACL: lambda _, value: isinstance(value, str),
    Action.DELETE_SCRAM: lambda _, value: _is_whole(value),
}


def problem_of(step: Step) -> str | None:
    """The name of the value that a step of this action can't have; None for a step that can be taken."""
    for name, value in step.subject.items():
        if name not in _SUBJECTS or not _SUBJECTS[name](value):
            return name
    check = _VALUES.get(step.action)
    for change in step.changes if check is not None else ():
        assert check is not None
        for value in (change.before, change.after):
            if value is not None and not check(change.field, value):
                return change.field
    return None
