"""Commands on delegation tokens for a real Kafka controller and for ours; Kafka identifies users by SASL."""

from __future__ import annotations

import datetime
import threading
import time
from collections.abc import Callable
from typing import Any

from kio.schema.create_delegation_token.v3 import request as creation
from kio.schema.describe_acls.v3 import request as acls
from kio.schema.expire_delegation_token.v2 import request as expiry
from kio.schema.renew_delegation_token.v2 import request as renewal

from kraftlake.controller.access.delegation_tokens import (
    create_delegation_token,
    expire_delegation_token,
    renew_delegation_token,
)
from kraftlake.image.acls_image import StandardAcl
from tests.controller.both_settings import SettingCommands
from tests.controller.both_sides import minutes
from tests.controller.kafka_rpc import KafkaRpc
from tests.kafka_node import KafkaNode

SECRET = "of the brokers"
USERS = ("admin", "alice", "bob")
_LOGINS = " ".join(f'user_{user}="{user}-secret"' for user in USERS)
SASL_PROPERTIES = {
    "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.controller.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="admin" password="admin-secret" {_LOGINS};'
    ),
    "delegation.token.secret.key": SECRET,
    "super.users": "User:admin",
}
"""A controller that knows who asks."""


class BothWithTokens(SettingCommands):
    """Each method is one command of a user at both; tokens are called by the order in which they were made.

    Kafka's controller looks tokens up in a cache that its metadata publisher fills, a moment after the answer.
    """

    def __init__(self, node: KafkaNode) -> None:
        super().__init__(node, "admin", delegation_token_secret_key=SECRET)
        self.as_user = {user: KafkaRpc(node.controller, user) for user in USERS}
        self.hmacs: list[tuple[bytes, bytes]] = []

    def close(self) -> None:
        for rpc in (self.rpc, *self.as_user.values()):
            rpc.close()

    def create_token(
        self, user: str, *, owner: str | None = None, renewers: tuple[str, ...] = (), lifetime_ms: int = -1
    ) -> None:
        request = creation.CreateDelegationTokenRequest(
            owner_principal_type=None if owner is None else "User",
            owner_principal_name=owner,
            renewers=tuple(
                creation.CreatableRenewers(
                    principal_type=renewer.partition(":")[0], principal_name=renewer.partition(":")[2]
                )
                for renewer in renewers
            ),
            max_lifetime=datetime.timedelta(milliseconds=lifetime_ms),
        )
        made: list[bytes] = []

        def theirs() -> Any:
            answer = self.as_user[user].ask(request)
            if answer.error_code:
                return int(answer.error_code)
            made.append(answer.hmac)
            issued = answer.issue_timestamp
            return [
                f"{answer.principal_type}:{answer.principal_name}",
                f"{answer.token_requester_principal_type}:{answer.token_requester_principal_name}",
                minutes(round((answer.max_timestamp - issued).total_seconds() * 1e3)),
                minutes(round((answer.expiry_timestamp - issued).total_seconds() * 1e3)),
                len(answer.hmac),
            ]

        def ours() -> Any:
            answer = self.ours.run(
                lambda state: create_delegation_token(
                    state,
                    requester=f"User:{user}",
                    owner=None if owner is None else f"User:{owner}",
                    renewers=renewers,
                    max_lifetime_ms=lifetime_ms,
                )
            )
            made.append(answer.hmac)
            token = answer.token
            lifetimes = (minutes(at - token.issue_timestamp) for at in (token.max_timestamp, token.expiry_timestamp))
            return [token.owner, token.requester, *lifetimes, len(answer.hmac)]

        self._token_step(f"{user} creates a token of {owner} {renewers} {lifetime_ms}", theirs, ours)
        if len(made) == 2:
            self.hmacs.append((made[0], made[1]))

    def renew(self, user: str, token: int | None, period_ms: int = -1) -> None:
        their_hmac, our_hmac = self._hmacs(token)
        request = renewal.RenewDelegationTokenRequest(
            hmac=their_hmac, renew_period=datetime.timedelta(milliseconds=period_ms)
        )
        self._token_step(
            f"{user} renews {token} {period_ms}",
            lambda: _answer(self.as_user[user].ask(request)),
            lambda: self._ours_from_now(
                self.ours.run(
                    lambda state: renew_delegation_token(
                        state, principal=f"User:{user}", token_hmac=our_hmac, renew_period_ms=period_ms
                    )
                )
            ),
        )

    def expire(self, user: str, token: int | None, period_ms: int = -1) -> None:
        their_hmac, our_hmac = self._hmacs(token)
        request = expiry.ExpireDelegationTokenRequest(
            hmac=their_hmac, expiry_time_period=datetime.timedelta(milliseconds=period_ms)
        )
        self._token_step(
            f"{user} lets {token} expire {period_ms}",
            lambda: _answer(self.as_user[user].ask(request)),
            lambda: self._ours_from_now(
                self.ours.run(
                    lambda state: expire_delegation_token(
                        state, principal=f"User:{user}", token_hmac=our_hmac, expiry_time_period_ms=period_ms
                    )
                )
            ),
        )

    def _settle(self) -> None:
        """Wait until the node has published what it has written: an ACL is published after tokens."""
        principal = f"User:number-{len(self.steps)}"
        self.add_acl(
            StandardAcl(
                resource_type=2, resource_name="orders", pattern_type=3, principal=principal, host="*", operation=3,
                permission_type=3,
            )
        )  # fmt: skip
        question = acls.DescribeAclsRequest(
            resource_type_filter=1, resource_name_filter=None, pattern_type_filter=1, principal_filter=principal,
            host_filter=None, operation=1, permission_type=1,
        )  # fmt: skip
        deadline = time.monotonic() + 60
        while not self.rpc.ask(question).resources:
            assert time.monotonic() < deadline, "the node has not published an ACL"
            threading.Event().wait(0.005)
        self.ours.clock.advance(1)  # time has passed there too

    def _token_step(self, name: str, theirs: Callable[[], Any], ours: Callable[[], Any]) -> None:
        self._step(name, theirs, ours)
        self._settle()

    def _hmacs(self, token: int | None) -> tuple[bytes, bytes]:
        return (b"nobody's", b"nobody's") if token is None else self.hmacs[token]

    def _ours_from_now(self, expires: int) -> list[int]:
        return [minutes(expires - self.ours.clock.milliseconds())]


def _answer(answer: Any) -> Any:
    if answer.error_code:
        return int(answer.error_code)
    return [minutes(round((answer.expiry_timestamp.timestamp() - time.time()) * 1e3))]
