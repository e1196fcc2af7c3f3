"""Handler of clients' requests that a broker forwards: Envelope (KIP-590).

Source: kafka.server.EnvelopeUtils, org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder,
kafka.network.RequestChannel.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import fields, is_dataclass
from enum import IntEnum
from ipaddress import ip_address
from typing import Any, Final

import attrs
from kio.schema.default_principal_data.v0.data import DefaultPrincipalData

from kraftlake.controller.errors import ControllerApiError
from kraftlake.image.kafka_names import AclOperation
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.message_scan import read_message
from kraftlake.protocol.node_client import REQUEST_HEADER
from kraftlake.server.controller.controller_node import ControllerNode
from kraftlake.server.requests.dispatcher import Dispatcher, Handler, Peer, Request
from kraftlake.server.requests.handlers import response_to
from kraftlake.server.requests.messages import UNREADABLE, api_of, response_in

FORWARDED: Final = frozenset(
    {
        "allocate_producer_ids", "alter_client_quotas", "alter_configs", "alter_partition_reassignments",
        "alter_user_scram_credentials", "create_acls", "create_delegation_token", "create_partitions",
        "create_topics", "delete_acls", "delete_topics", "describe_quorum", "elect_leaders",
        "expire_delegation_token", "incremental_alter_configs", "list_partition_reassignments",
        "renew_delegation_token", "unregister_broker", "update_features",
    }
)  # fmt: skip
"""The served APIs that brokers forward (ApiKeys.forwardable)."""
_VERSION: Final = struct.Struct(">h")


def envelope_handler(node: ControllerNode, dispatcher: Callable[[], Dispatcher]) -> Handler:
    """The handler of Envelope; `dispatcher` is the node's, which answers the enclosed request."""

    def begin(request: Request) -> Future[Any]:
        node.check_cluster(request, AclOperation.CLUSTER_ACTION)
        inner, client = enclosed(request.body, request.peer)
        answered: Future[Any] = Future()

        def respond(answer: bytes | None) -> None:
            error = ErrorCode.NONE if answer is not None else ErrorCode.UNSUPPORTED_VERSION
            if answer and not node.controller.is_active and _names_not_controller(inner, answer):
                error = ErrorCode.NOT_CONTROLLER  # the broker looks for another controller by this one alone
            data = answer if error == ErrorCode.NONE else None
            answered.set_result(response_to(request, response_data=data, error_code=error))

        dispatcher().handle(inner, client, respond)
        return answered

    return Handler(begin=begin)


def enclosed(envelope: Any, broker: Peer) -> tuple[bytes, Peer]:
    """The request in an envelope that a broker sent, and its client; raises ControllerApiError for invalid content."""
    frame, principal = envelope.request_data, _principal(envelope.request_principal)
    client = attrs.evolve(
        broker, principal=f"{principal.type_}:{principal.name}", token_authenticated=principal.token_authenticated,
        host=_address(envelope.client_host_address), forwarded=True, mute=None,
    )  # fmt: skip
    _check(frame)
    return frame, client


def _check(frame: bytes) -> None:
    """Raise ControllerApiError for a request that brokers do not forward."""
    if len(frame) < REQUEST_HEADER.size:
        raise ControllerApiError(ErrorCode.UNSUPPORTED_VERSION)
    if api_of(frame) not in FORWARDED:
        raise ControllerApiError(ErrorCode.INVALID_REQUEST)


def _principal(data: bytes | None) -> DefaultPrincipalData:
    """Return the client's principal. Raises ControllerApiError for invalid bytes."""
    try:
        assert data is not None
        (version,) = _VERSION.unpack_from(data)
        if version != 0:
            raise ValueError(f"version {version}")
        principal: DefaultPrincipalData = read_message(DefaultPrincipalData, data, _VERSION.size)[0]
    except (AssertionError, *UNREADABLE):
        raise ControllerApiError(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE) from None
    return principal


def _address(data: bytes) -> str:
    """Return the client's IP address. Raises ControllerApiError for invalid bytes."""
    try:
        return str(ip_address(bytes(data)))
    except ValueError:
        raise ControllerApiError(ErrorCode.INVALID_REQUEST) from None


def _names_not_controller(frame: bytes, answer: bytes) -> bool:
    return ErrorCode.NOT_CONTROLLER in errors_in(response_in(frame, answer))


def errors_in(message: Any) -> Iterator[int]:
    """All error codes in a message; they are the enums in it."""
    if isinstance(message, IntEnum):
        yield message
    elif isinstance(message, tuple):
        for one in message:
            yield from errors_in(one)
    elif is_dataclass(message):
        for field in fields(message):
            yield from errors_in(getattr(message, field.name))
