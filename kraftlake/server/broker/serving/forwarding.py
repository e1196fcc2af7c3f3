"""Requests that the active controller answers: forwarded in an Envelope (KIP-590).

Source: kafka.server.ForwardingManagerImpl, org.apache.kafka.common.requests.EnvelopeRequest.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records.varint import uvarint
from kraftlake.server.broker.serving.context import fail_after_fault
from kraftlake.server.requests.dispatcher import Peer, Request
from kraftlake.server.requests.listener_limits import ListenerLimits

Ask: TypeAlias = Callable[[str, range, Callable[[Any], Any], Callable[[Any | None], None]], None]
"""Sends a request to the active controller, like `NodeToControllerChannel.ask`."""


LONGEST_FORWARDED: Final = ListenerLimits().socket_request_max_bytes - 64 * 1024


class ForwardingManager:
    """Forwards clients' requests with their principal to the active controller, and its answers back.

    If no controller answers in time, or too many requests wait for one, the answer is REQUEST_TIMED_OUT. If the
    controller does not know the request's version, the client's connection is closed, so that the client requests the
    versions again.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def __call__(self, request: Request) -> None:
        """Forward a request; a request too large for an envelope is answered with INVALID_REQUEST."""
        if len(request.frame) > LONGEST_FORWARDED:  # the controller would close the connection, again and again
            request.fail(ErrorCode.INVALID_REQUEST)
            return
        if not request.may_wait:
            request.fail(ErrorCode.REQUEST_TIMED_OUT)
            return

        def respond(answer: Any | None) -> None:
            if answer is None:
                request.fail(ErrorCode.REQUEST_TIMED_OUT)
            elif answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
                request.close()
            elif answer.error_code != ErrorCode.NONE or answer.response_data is None:
                request.fail(ErrorCode.UNKNOWN_SERVER_ERROR)  # the client knows nothing of envelopes
            else:
                # the controller answers under the number of the request in the envelope, which is the client's
                request.answer_frame(bytes(answer.response_data))

        def answered(answer: Any | None) -> None:
            try:
                respond(answer)
            except Exception:
                fail_after_fault(request)
                raise

        self.forward(request.frame, request.peer, answered)

    def forward(self, frame: bytes, peer: Peer, answered: Callable[[Any | None], None]) -> None:
        """Send a request in an envelope; `answered` gets the Envelope's response, None if no controller answers."""

        def make(module: Any) -> Any:
            return module.EnvelopeRequest(
                request_data=frame,
                request_principal=_principal(peer),
                client_host_address=ipaddress.ip_address(peer.host).packed,
            )

        self._ask("envelope", range(1), make, answered)


def _principal(peer: Peer) -> bytes:
    """Encode a principal like DefaultKafkaPrincipalBuilder: version, type, name, token flag, no tags."""
    kind, _, name = peer.principal.partition(":")
    return b"\0\0" + _compact(kind) + _compact(name) + bytes([peer.token_authenticated]) + b"\0"


def _compact(text: str) -> bytes:
    raw = text.encode()
    return uvarint(len(raw) + 1) + raw
