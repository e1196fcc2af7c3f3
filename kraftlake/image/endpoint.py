"""The listeners and supported feature levels that brokers and controllers register."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import attrs
from rpds import HashTrieMap

E = TypeVar("E", bound=Any)


@attrs.frozen(kw_only=True)
class Endpoint:
    """The address of a listener; `security_protocol` is the id of Kafka's SecurityProtocol."""

    host: str
    port: int
    security_protocol: int


@attrs.frozen
class VersionRange:
    """The levels of a feature that a process supports, both ends included."""

    min: int
    max: int


def listeners_of(end_points: Iterable[Any]) -> HashTrieMap[str, Endpoint]:
    """The listeners by name from a record's BrokerEndpoint or ControllerEndpoint structs; the last one of each name."""
    return HashTrieMap(
        {e.name: Endpoint(host=e.host, port=e.port, security_protocol=e.security_protocol) for e in end_points}
    )


def end_points_of(listeners: Mapping[str, Endpoint], cls: type[E]) -> tuple[E, ...]:
    """The listeners by name as the structs of a record; the inverse of `listeners_of`."""
    return tuple(cls(name=name, **attrs.asdict(endpoint)) for name, endpoint in sorted(listeners.items()))


def feature_levels_of(features: Mapping[str, VersionRange], cls: type[E]) -> tuple[E, ...]:
    """The supported features by name as the structs of a record; the inverse of `features_of`."""
    return tuple(
        cls(name=name, min_supported_version=levels.min, max_supported_version=levels.max)
        for name, levels in sorted(features.items())
    )


def features_of(features: Iterable[Any]) -> HashTrieMap[str, VersionRange]:
    """The supported features by name from a record's BrokerFeature or ControllerFeature structs."""
    return HashTrieMap({f.name: VersionRange(f.min_supported_version, f.max_supported_version) for f in features})
