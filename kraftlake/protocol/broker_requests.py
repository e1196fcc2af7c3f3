"""The requests of a broker to the active controller about itself, and the responses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import attrs

from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records.metadata_records import BrokerEndpoint, BrokerFeature
from kraftlake.records.uuid import Uuid

T = TypeVar("T")


@attrs.frozen(kw_only=True)
class BrokerRegistrationRequest:
    """One process of a broker.

    `features` must hold the levels that the cluster has finalized; `listeners` are the advertised ones; `log_dirs` are
    the ids of the directories that are online. `previous_broker_epoch` is the epoch at the last clean shutdown, −1 if
    unknown.
    """

    broker_id: int
    cluster_id: str
    incarnation_id: Uuid
    listeners: tuple[BrokerEndpoint, ...] = ()
    features: tuple[BrokerFeature, ...] = ()
    log_dirs: tuple[Uuid, ...] = ()
    rack: str | None = None
    previous_broker_epoch: int = -1
    is_migrating_zk_broker: bool = False


@attrs.frozen(kw_only=True)
class BrokerRegistrationResponse:
    """The answer to a registration, with the broker's epoch."""

    error: ErrorCode = ErrorCode.NONE
    broker_epoch: int = -1


@attrs.frozen(kw_only=True)
class BrokerHeartbeatRequest:
    """A sign of life; `current_metadata_offset` is the last offset of the metadata log that the broker has applied.

    `offline_log_dirs` are the directories that have failed since the process began, `cordoned_log_dirs` those that are
    to get no new replicas (KIP-1066): None before the broker has caught up with the metadata, or where it reports none.
    """

    broker_id: int
    broker_epoch: int
    current_metadata_offset: int
    want_fence: bool = False
    want_shut_down: bool = False
    offline_log_dirs: tuple[Uuid, ...] = ()
    cordoned_log_dirs: tuple[Uuid, ...] | None = None


@attrs.frozen(kw_only=True)
class BrokerHeartbeatResponse:
    """The answer to a heartbeat: how the controller sees the broker."""

    error: ErrorCode = ErrorCode.NONE
    is_caught_up: bool = False
    is_fenced: bool = True
    should_shut_down: bool = False


def end_points_as(kind: Callable[..., T], listeners: Iterable[Any]) -> tuple[T, ...]:
    """Convert the listeners in a registration to another class of them, of ours or of kio's."""
    return tuple(
        kind(name=one.name, host=one.host, port=int(one.port), security_protocol=int(one.security_protocol))
        for one in listeners
    )


def feature_levels_as(kind: Callable[..., T], features: Iterable[Any]) -> tuple[T, ...]:
    """Convert the supported features in a registration to another class of them, of ours or of kio's."""
    return tuple(
        kind(
            name=one.name, min_supported_version=int(one.min_supported_version),
            max_supported_version=int(one.max_supported_version),
        )
        for one in features
    )  # fmt: skip
