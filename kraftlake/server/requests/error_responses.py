"""The response to a request that failed as a whole: its error for each topic, partition or resource that it names.

Source: org.apache.kafka.common.requests.AbstractRequest.getErrorResponse.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from types import MappingProxyType, NoneType
from typing import Any, Final, get_args, get_origin, get_type_hints

import attrs
from kio.schema.index import api_key_map

from kraftlake.protocol.error_code import ErrorCode
from kraftlake.server.requests.messages import AT_ONCE, response_type

_LISTS: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "produce": (("topic_data", "responses"), ("partition_data", "partition_responses")),
    "fetch": (("topics", "responses"), ("partitions", "partitions")),
    "list_offsets": (("topics", "topics"), ("partitions", "partitions")),
    "offset_for_leader_epoch": (("topics", "topics"), ("partitions", "partitions")),
    "delete_records": (("topics", "topics"), ("partitions", "partitions")),
    "metadata": (("topics", "topics"),),
    "describe_topic_partitions": (("topics", "topics"),),
    "describe_configs": (("resources", "results"),),
    "alter_configs": (("resources", "responses"),),
    "incremental_alter_configs": (("resources", "responses"),),
    "create_topics": (("topics", "topics"),),
    "delete_topics": (("topics", "responses"),),
    "create_partitions": (("topics", "results"),),
    "alter_partition_reassignments": (("topics", "responses"), ("partitions", "partitions")),
    "list_partition_reassignments": (("topics", "topics"), ("partition_indexes", "partitions")),
    "elect_leaders": (("topic_partitions", "replica_election_results"), ("partitions", "partition_result")),
    "create_acls": (("creations", "results"),),
    "delete_acls": (("filters", "filter_results"),),
    "alter_client_quotas": (("entries", "entries"), ("entity", "entity")),
    "describe_user_scram_credentials": (("users", "results"),),
}
"""The lists of a request, the inner one last, each with the response's list that has one answer per element."""
_OLD_NAMES: Final = {"topics": "topic_names", "partition_index": "partition"}
"""The request's name for a field that has another name in most requests, or in the response."""
_COPIED: Final = frozenset(
    {
        "name", "topic", "topic_id", "index", "partition", "partition_index", "partition_id", "resource_type",
        "resource_name", "session_id", "allow_replication_factor_change", "entity_type", "entity_name",
    }
)  # fmt: skip
_UNKNOWN: Final = frozenset(
    {"base_offset", "controller_id", "high_watermark", "low_watermark", "node_id", "port", "producer_epoch"}
)
"""Fields that are −1 if unknown."""
_NO_TIME: Final = datetime.fromtimestamp(0, UTC) - timedelta(milliseconds=1)
_OWN: Final[Mapping[str, Mapping[str, Any]]] = {
    "describe_client_quotas": {"entries": None},
    "create_delegation_token": {
        "principal_type": "User", "principal_name": "ANONYMOUS", "token_requester_principal_type": "User",
        "token_requester_principal_name": "ANONYMOUS", "issue_timestamp": _NO_TIME, "expiry_timestamp": _NO_TIME,
        "max_timestamp": _NO_TIME,
    },
}  # fmt: skip
"""The values of a response's fields that are others than the empty ones."""
_WITHOUT_PARTITIONS: Final = 13
"""The first version of Fetch that has the error of the whole response only at its top."""


def error_response(asked: Any, error: ErrorCode, message: str | None = None, *, each_alone: bool = False) -> Any | None:
    """The response to a request, in kio's class; None for a Produce without an answer.

    With `each_alone` each partition has the error, and the whole response has none.
    """
    name, version = api_key_map[asked.__api_key__], asked.__version__
    if name == "produce" and asked.acks == 0:
        return None
    if name == "alter_user_scram_credentials":
        return _of_users(asked, error, message)
    is_at_top_only = name == "fetch" and version >= _WITHOUT_PARTITIONS and not each_alone
    return _response(
        response_type(name, version),
        asked,
        () if is_at_top_only else _LISTS.get(name, ()),
        error,
        None if name == "delete_topics" else message,
        whole=ErrorCode.NONE if each_alone else error,
        own=_OWN.get(name, {}),
    )


def _of_users(asked: Any, error: ErrorCode, message: str | None) -> Any:
    """Return the response to AlterUserScramCredentials: one error for each user, by name."""
    kind = response_type("alter_user_scram_credentials", asked.__version__)
    users = sorted({one.name for one in (*asked.deletions, *asked.upsertions)})
    (result,) = (field.element for field in _fields(kind) if field.name == "results")
    results = tuple(result(user=user, error_code=error, error_message=message) for user in users)
    return kind(throttle_time=AT_ONCE, results=results)


def _response(
    kind: Any,
    asked: Any,
    lists: tuple[tuple[str, str], ...],
    error: ErrorCode,
    message: str | None,
    *,
    whole: ErrorCode | None = None,
    own: Mapping[str, Any] = MappingProxyType({}),
) -> Any:
    """Return a response, or a part of one, to a request or a part of one.

    `whole` is its error if that is a different one; `own` are values of the API.
    """
    values: dict[str, Any] = {}
    list_asked, list_answered = lists[0] if lists else ("", "")
    for field in _fields(kind):
        name = field.name
        if name == list_answered:
            parts = _value(asked, list_asked) or ()
            values[name] = tuple(_response(field.element, one, lists[1:], error, message) for one in parts)
        elif name in own:
            values[name] = own[name]
        elif name == "error_code":
            values[name] = error if whole is None else whole
        elif name == "error_message":
            values[name] = message
        elif name == "throttle_time":
            values[name] = AT_ONCE
        elif name in _COPIED and (copied := _value(asked, name)) is not None:
            values[name] = copied
        elif field.is_required:
            values[name] = field.nothing
    return kind(**values)


def _value(asked: Any, name: str) -> Any:
    """Return a request's value for a response field; None where the request has none.

    A plain number or name is copied as a whole.
    """
    if not is_dataclass(asked):
        return asked
    return getattr(asked, name, getattr(asked, _OLD_NAMES.get(name, name), None))


@attrs.frozen
class _Field:
    """A field of a response: the type of a list's elements, and the value if unknown."""

    name: str
    element: Any
    is_required: bool
    nothing: Any


@cache
def _fields(kind: Any) -> tuple[_Field, ...]:
    hints = get_type_hints(kind)
    return tuple(
        _Field(
            name=field.name,
            element=next(filter(is_dataclass, get_args(hints[field.name])), None),
            is_required=field.default is MISSING and field.default_factory is MISSING,
            nothing=-1 if field.name in _UNKNOWN else _nothing(hints[field.name]),
        )
        for field in fields(kind)
    )


def _nothing(hint: Any) -> Any:
    """The empty value of a field's type; a list is empty rather than null."""
    kinds = get_args(hint) if NoneType in get_args(hint) else (hint,)
    if any(get_origin(kind) is tuple for kind in kinds):
        return ()
    if NoneType in kinds:
        return None
    if isinstance(hint, type) and is_dataclass(hint):
        return hint(**{field.name: field.nothing for field in _fields(hint) if field.is_required})
    if isinstance(hint, type) and issubclass(hint, datetime):
        return datetime.fromtimestamp(0, UTC)
    if isinstance(hint, type) and issubclass(hint, timedelta):
        return hint.parse(timedelta(0))  # type: ignore[attr-defined]  # kio's type
    return next((kind() for kind in (bool, int, str, bytes) if isinstance(hint, type) and issubclass(hint, kind)), None)
