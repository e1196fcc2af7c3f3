"""The parts of an image as Kafka's metadata shell prints them: the `toString` of its classes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from operator import attrgetter
from typing import Any, Final

import attrs

from kraftlake.image.acls_image import CODES, StandardAcl
from kraftlake.image.broker_registration import BrokerRegistration
from kraftlake.image.controller_registration import ControllerRegistration
from kraftlake.image.endpoint import Endpoint, VersionRange
from kraftlake.image.kafka_names import (
    SECURITY_PROTOCOLS,
    name_of,
)
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.records.schema import json_name

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ANY_ABOVE: Final = 0x7FFF


def text_of(shown: PartitionRegistration | BrokerRegistration | ControllerRegistration) -> str:
    """Source: toString of PartitionRegistration, BrokerRegistration and ControllerRegistration."""
    fields = {
        json_name(field.name): _TEXTS.get(str(field.type), str)(getattr(shown, field.name))
        for field in attrs.fields(type(shown))
    }
    return f"{type(shown).__name__}({_fields(fields)})"


def acl_text(acl: StandardAcl) -> str:
    """Source: org.apache.kafka.metadata.authorizer.StandardAcl, a record."""
    fields = attrs.asdict(acl) | {field: name_of(names, getattr(acl, field)) for field, names in CODES.items()}
    return f"StandardAcl[{_fields({json_name(name): value for name, value in fields.items()})}]"


def scram_text(credential: Mapping[str, Any]) -> str:
    """A credential in JSON form. Source: ScramCredentialDataNode."""
    names = ("salt", "storedKey", "serverKey", "iterations")
    return f"ScramCredentialData({_fields({name: credential[name] for name in names})})"


def delegation_token_text(token: Mapping[str, Any]) -> str:
    """A token in JSON form. Source: DelegationTokenDataNode, whose parentheses do not match."""
    renewers = token["renewers"]
    return (
        f"DelegationTokenDatatokenId={token['tokenId']}(owner={token['owner']}(tokenRequester={token['requester']}"
        f"(renewers={renewers if isinstance(renewers, str) else ' '.join(renewers)}"
        f", issueTimestamp={token['issueTimestamp']}, maxTimestamp={token['maxTimestamp']})"
        f", expiryTimestamp={token['expiryTimestamp']}"
    )


def provenance_text(provenance: MetadataProvenance) -> str:
    """The provenance as text; an unknown time reads so, where Kafka prints the end of 1969. Source: ProvenanceNode."""
    return f"offset {provenance.offset}, epoch {provenance.epoch}, time {_time(provenance.timestamp)}"


def optional_text(value: object) -> str:
    """Source: java.util.Optional.toString."""
    return "Optional.empty" if value is None else f"Optional[{value}]"


def double_text(value: float) -> str:
    """Source: java.lang.Double.toString: scientific notation below 0.001 and from ten million on."""
    text = repr(value)
    if text in ("nan", "inf", "-inf"):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[text]
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return text
    shortest = Decimal(text)
    if len(shortest.normalize().as_tuple().digits) == 1:  # Java takes two digits for one, the nearest to the value
        nearest = f"{value:.1e}"
        shortest = Decimal(nearest) if float(nearest) == value else shortest
    mantissa, _, power = f"{shortest.normalize():e}".partition("e")
    return f"{mantissa}{'' if '.' in mantissa else '.0'}E{int(power)}"


def _time(milliseconds: int) -> str:
    if milliseconds < 0:
        return "unknown"
    try:
        time = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return f"{milliseconds} ms"
    fraction = f".{milliseconds % 1000:03}".rstrip("0").rstrip(".")
    return f"{time:%Y-%m-%dT%H:%M:%S}{fraction}Z[UTC]"


def _listeners(listeners: Mapping[str, Endpoint]) -> str:
    return _listed(
        f"Endpoint(listenerName='{name}', securityProtocol={name_of(SECURITY_PROTOCOLS, one.security_protocol)}, "
        f"host='{one.host}', port={one.port})"
        for name, one in sorted(listeners.items())
    )


def _features(features: Mapping[str, VersionRange]) -> str:
    return f"{{{', '.join(f'{name}: {_levels(levels)}' for name, levels in sorted(features.items()))}}}"


def _levels(levels: VersionRange) -> str:
    if levels.min == levels.max:
        return str(levels.min)
    return f"{levels.min}+" if levels.max == _ANY_ABOVE else f"{levels.min}-{levels.max}"


def _fields(fields: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in fields.items())


def _listed(values: Iterable[object]) -> str:
    return f"[{', '.join(map(str, values))}]"


def _boolean(value: bool) -> str:
    return "true" if value else "false"


_TEXTS: Final[Mapping[str, Callable[[Any], str]]] = {
    "bool": _boolean,
    "str | None": optional_text,
    "tuple[int, ...]": _listed,
    "tuple[Uuid, ...]": _listed,
    "tuple[Uuid, ...] | None": lambda ids: "null" if ids is None else _listed(ids),
    "LeaderRecoveryState": attrgetter("name"),
    "HashTrieMap[str, Endpoint]": _listeners,
    "HashTrieMap[str, VersionRange]": _features,
}
"""The text of an attribute, by its type; of others, that of `str`."""
