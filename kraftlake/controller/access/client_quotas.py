"""Changes of client quotas. Source: org.apache.kafka.controller.ClientQuotaControlManager of Kafka 4.4."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from kraftlake.controller.errors import ApiError, ControllerApiError
from kraftlake.controller.result import ControllerResult, answer_each, check_limit
from kraftlake.controller.state import ControllerState
from kraftlake.image.client_quotas_image import ClientQuotaEntity, ClientQuotaImage
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records.metadata_records import ClientQuotaRecord, EntityData
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.runtime.inet_address import inet_address

_LARGEST: Final = {"INT": 2147483647.0, "LONG": float(2**63)}
USER_AND_CLIENT_KEYS: Final[Mapping[str, str]] = {
    "producer_byte_rate": "LONG",
    "consumer_byte_rate": "LONG",
    "request_percentage": "DOUBLE",
    "controller_mutation_rate": "DOUBLE",
}
IP_KEYS: Final[Mapping[str, str]] = {"connection_creation_rate": "INT"}
_HOST_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?")
_NUMBER: Final = re.compile(r"0[xX][0-9A-Fa-f]*|[0-9]+")
"""A label that can't end a host name: the text would be read as an IPv4 address (RFC 1123, 2.1)."""


@attrs.frozen(kw_only=True)
class QuotaAlteration:
    """An entity as (type, name) pairs, None for the default, and its new quotas; a value of None removes a quota."""

    entity: tuple[tuple[str, str | None], ...]
    ops: Sequence[tuple[str, float | None]]


def alter_client_quotas(
    state: ControllerState, alterations: Sequence[QuotaAlteration], *, validate_only: bool = False
) -> ControllerResult[dict[ClientQuotaEntity, ApiError]]:
    """Change the quotas of entities, each completely or not at all; an entity may be named only once."""
    named: set[ClientQuotaEntity] = set()

    def alter(entity: ClientQuotaEntity, ops: Sequence[tuple[str, float | None]]) -> list[ApiMessageAndVersion]:
        if entity in named:
            raise _invalid("an entity can be named only once in a request")
        named.add(entity)
        return _alter(state, entity, ops)

    changes = ((ClientQuotaEntity(tuple(sorted(a.entity, key=lambda entry: entry[0]))), a.ops) for a in alterations)
    records, answers = answer_each(changes, alter)
    check_limit(len(records), f"would write {len(records)} records")
    return ControllerResult(() if validate_only else records, answers, atomic=True)


def _invalid(reason: str) -> ControllerApiError:
    return ControllerApiError(ErrorCode.INVALID_REQUEST, f"The quota can't be changed: {reason}.")


def _alter(
    state: ControllerState, entity: ClientQuotaEntity, ops: Sequence[tuple[str, float | None]]
) -> list[ApiMessageAndVersion]:
    keys = _keys_of(entity)
    current = state.image.client_quotas.entities.get(entity, ClientQuotaImage.EMPTY).quotas
    data = tuple(EntityData(entity_type=type_, entity_name=name) for type_, name in entity.entries)
    records = []
    seen: set[str] = set()
    for key, value in ops:
        if key in seen:
            raise _invalid(f"{key} is named twice")
        seen.add(key)
        if value is not None:
            _check_value(keys, key, value)
        if current.get(key) != value:
            record = ClientQuotaRecord(entity=data, key=key, value=value or 0.0, remove=value is None)
            records.append(ApiMessageAndVersion(record, 0))
    return records


def _keys_of(entity: ClientQuotaEntity) -> Mapping[str, str]:
    names = dict(entity.entries)
    if not names:
        raise _invalid("it names no entity")
    if len(names) < len(entity.entries):
        raise _invalid("the entity names a type twice")
    for type_, name in entity.entries:
        if type_ not in ("user", "client-id", "ip"):
            raise _invalid(f"there are no entities of type {type_!r}")
        if name == "":
            raise _invalid(f"the name of the {type_} is empty")
    if "ip" not in names:
        return USER_AND_CLIENT_KEYS
    if len(names) > 1:
        raise _invalid("an ip can't be combined with a user or a client id")
    if names["ip"] is not None and not _is_address(names["ip"]):
        raise _invalid(f"{names['ip']!r} is no address")
    return IP_KEYS


def _is_address(text: str) -> bool:
    """Whether the text is an address in Java's syntax, or a possible host name; names are not resolved."""
    if inet_address(text) is not None:
        return True
    return _HOST_NAME.fullmatch(text) is not None and _NUMBER.fullmatch(text.rpartition(".")[2]) is None


def _check_value(keys: Mapping[str, str], key: str, value: float) -> None:
    type_ = keys.get(key)
    if type_ is None:
        raise _invalid(f"this entity has no quota {key!r}")
    if not math.isfinite(value):
        raise _invalid(f"{key} must be finite")
    if value <= 0:
        raise _invalid(f"{key} must be above 0")
    if type_ != "DOUBLE":
        if value > _LARGEST[type_]:
            raise _invalid(f"{value} is too large for {key}")
        if math.fmod(value, 1.0) > 1e-6:
            raise _invalid(f"{key} can't be a fraction")
