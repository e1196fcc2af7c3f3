"""Requests that a broker without clients answers itself.

Source: kafka.server.SimpleApiVersionManager.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from kio.schema.index import api_key_map

from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.node_client import REQUEST_HEADER
from kraftlake.publisher.dynamic_configs import ConfigType
from kraftlake.server.requests.error_responses import error_response
from kraftlake.server.requests.messages import (
    AT_ONCE,
    answered,
    api_of,
    encoded,
    of_version,
    request_in,
    response_type,
    versions_of,
)

_API_VERSIONS: Final = 18
_ERROR: Final = ErrorCode.NOT_LEADER_OR_FOLLOWER
_FOR_DATA: Final = frozenset({"delete_records", "fetch", "list_offsets", "offset_for_leader_epoch", "produce"})
_OF_A_BROKER: Final = frozenset({"alter_replica_log_dirs", "describe_log_dirs", "list_groups", "list_transactions"})
"""The APIs whose answer is about the queried broker."""
_OF_CONTROLLERS: Final = frozenset(
    {
        "vote", "begin_quorum_epoch", "end_quorum_epoch", "fetch_snapshot", "alter_partition", "envelope",
        "broker_registration", "broker_heartbeat", "allocate_producer_ids", "controller_registration",
        "assign_replicas_to_dirs", "update_raft_voter",
    }
)  # fmt: skip
"""The APIs that Kafka's brokers don't offer."""


def is_of_any_broker(frame: bytes) -> bool:
    """Whether any other broker can answer a request: it is neither about this broker nor for data."""
    name = api_of(frame)
    return name not in _OF_A_BROKER and name not in _FOR_DATA


def api_versions(frame: bytes) -> bytes | None:
    """The answer to ApiVersions, without its length prefix: the versions of a Kafka 4.4 broker; None for others."""
    api_key, version, correlation, _ = REQUEST_HEADER.unpack_from(frame)
    if api_key != _API_VERSIONS:
        return None
    known = version in versions_of("api_versions")
    return encoded(correlation, _api_versions(version if known else 0, is_known=known), flexible_header=False)


def refusal(frame: bytes) -> bytes | None:
    """The answer to a request for data, without its length prefix: NOT_LEADER_OR_FOLLOWER for each partition.

    None if the connection has to be closed: for a Produce without an answer, and for all other requests. A client
    treats that as a broker that has just gone away, and asks another one; an error could end the client, and an empty
    answer would be taken as correct.

    Raises as `request_in`.
    """
    if api_of(frame) not in _FOR_DATA:
        return None
    return answered(frame, lambda _, asked: error_response(asked, _ERROR, each_alone=True))


def _api_versions(version: int, *, is_known: bool) -> Any:
    """Return the answer to ApiVersions; for an unknown version, the oldest answer with an error (KIP-511)."""
    response = response_type("api_versions", version)
    module = import_module(response.__module__)
    offered = tuple(
        module.ApiVersion(api_key=key, min_version=versions_of(name)[0], max_version=versions_of(name)[-1])
        for key, name in api_key_map.items()
        if name not in _OF_CONTROLLERS
    )
    error = ErrorCode.NONE if is_known else ErrorCode.UNSUPPORTED_VERSION
    return of_version(response, error_code=error, api_keys=offered, throttle_time=AT_ONCE)


_CHANGES: Final = frozenset({"alter_configs", "incremental_alter_configs"})


def changes_configs_of(frame: bytes, broker_id: int) -> bool:
    """Whether a request changes the configs of the broker. Raises as `request_in`."""
    if api_of(frame) not in _CHANGES:
        return False
    asked = request_in(frame)
    return asked is not None and any(
        resource.resource_type == ConfigType.BROKER and resource.resource_name == str(broker_id)
        for resource in asked.resources
    )
