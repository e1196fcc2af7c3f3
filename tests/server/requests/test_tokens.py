"""Who may ask for delegation tokens, and the times in answers."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kraftlake.protocol.security_protocol import SecurityProtocol
from kraftlake.server.requests.dispatcher import ANONYMOUS, Peer
from kraftlake.server.requests.tokens import may_ask_for_tokens, moment

PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL = SecurityProtocol


@pytest.mark.parametrize(
    ("protocol", "principal", "by_token", "forwarded", "may"),
    [
        (PLAINTEXT, ANONYMOUS, False, False, False),
        (PLAINTEXT, "User:alice", False, False, False),
        (SSL, ANONYMOUS, False, False, False),
        (SSL, "User:CN=alice", False, False, True),
        (SASL_PLAINTEXT, "User:alice", False, False, True),
        (SASL_SSL, "User:alice", False, False, True),
        (SASL_SSL, "User:alice", True, False, False),
        (PLAINTEXT, "User:alice", False, True, True),
        (SSL, ANONYMOUS, False, True, True),
        (PLAINTEXT, "User:alice", True, True, False),
    ],
)
def test_only_who_has_logged_in_other_than_by_a_token_may_ask_for_tokens(
    protocol: SecurityProtocol, principal: str, by_token: bool, forwarded: bool, may: bool
) -> None:
    peer = Peer(
        listener="A", host="127.0.0.1", principal=principal, security_protocol=protocol, token_authenticated=by_token,
        forwarded=forwarded,
    )  # fmt: skip
    assert may_ask_for_tokens(peer) is may


def test_a_time_beyond_the_year_9999_is_its_end() -> None:
    assert moment(0) == datetime(1970, 1, 1, tzinfo=UTC)
    assert moment(2**63 - 1) == datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
