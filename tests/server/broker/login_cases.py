"""Ways to a listener, right and wrong ones, and what comes of each, for comparisons of a lake's cluster with Kafka's.

A case opens a connection and does one thing after another; its outcome is the list of their results: names of errors,
"closed", "tls refused". The last one of a client that is in is its principal, by the answer to CreateDelegationToken.
"""

from __future__ import annotations

import base64
import itertools
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeAlias

import attrs
from kio.schema.api_versions.v3.request import ApiVersionsRequest
from kio.schema.create_delegation_token.v3.request import CreateDelegationTokenRequest
from kio.schema.metadata.v12.request import MetadataRequest
from kio.schema.sasl_authenticate.v2.request import SaslAuthenticateRequest
from kio.static.primitive import i64Timedelta

from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.scram import scram_messages
from kraftlake.server.requests.messages import encoded_request
from tests.certificates import Identity
from tests.server.requests.login_wire import LoginClient, old_handshake

LISTENERS = {"SSL": "SSL", "ASKED": "SSL", "MUTUAL": "SSL", "LOGIN": "SASL_PLAINTEXT", "BOTH": "SASL_SSL"}
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
USERS = {"alice": "alice-secret", "b=o,b": "p"}
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
PLAIN_MODULE = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    + " ".join(f'user_{user}="{password}"' for user, password in USERS.items() if user.isalpha())
    + ";"
)
Outcome: TypeAlias = list[str]


def settings(node: Identity, clients: Identity) -> dict[str, str]:
    """The settings of the broker, on both sides."""
    found = {
        "delegation.token.secret.key": "the key of tokens",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "connection.failed.authentication.delay.ms": "20",
        "listener.name.asked.ssl.client.auth": "requested",
        "listener.name.mutual.ssl.client.auth": "required",
        "ssl.principal.mapping.rules": "RULE:^CN=(op.*)$/$1@here/U,DEFAULT",
        "ssl.keystore.type": "PEM", "ssl.keystore.key": node.key_pem().replace("\n", " "),
        "ssl.keystore.certificate.chain": node.pem.replace("\n", " "),
        "ssl.truststore.type": "PEM", "ssl.truststore.certificates": clients.pem.replace("\n", " "),
    }  # fmt: skip
    for name, mechanism in itertools.product(("login", "both"), MECHANISMS):
        module = PLAIN_MODULE if mechanism == "PLAIN" else SCRAM_MODULE
        found[f"listener.name.{name}.{mechanism.lower()}.sasl.jaas.config"] = module
    return found


@attrs.define(kw_only=True)
class LoginSide:
    """One of the two clusters: its listeners' ports, the authority, and the certificates of clients by name."""

    name: str
    ports: Mapping[str, int]
    authority: Path
    certificates: Mapping[str, Path]
    token: tuple[str, str] = ("", "")
    """The id and the password of a delegation token."""

    def client(self, listener: str, *, tls: bool | None = None, certificate: str | None = None) -> LoginClient:
        """A connection, by default with TLS where the listener has it."""
        port = self.ports[listener]
        plain = socket.create_connection(("127.0.0.1", port), timeout=120)
        if not ("SSL" in LISTENERS.get(listener, "") if tls is None else tls):
            return LoginClient(port, connection=plain)
        context = ssl.create_default_context(cafile=str(self.authority))
        if certificate is not None:
            context.load_cert_chain(self.certificates[certificate])
        return LoginClient(port, connection=context.wrap_socket(plain, server_hostname="127.0.0.1"))

    def make_token(self) -> None:
        """Have alice make a delegation token."""
        with self.client("LOGIN") as client:
            client.log_in("PLAIN", "alice", USERS["alice"])
            made = create_token(client)
            self.token = str(made.token_id), base64.b64encode(made.hmac).decode()


def create_token(client: LoginClient) -> Any:
    """Ask for a delegation token."""
    longest = i64Timedelta.parse(timedelta(minutes=10))
    return client.ask(
        CreateDelegationTokenRequest(
            owner_principal_type=None, owner_principal_name=None, renewers=(), max_lifetime=longest
        )
    )


def who(client: LoginClient) -> str:
    """The principal that the cluster takes the client for, or why it may not ask for tokens."""
    made = create_token(client)
    if made.error_code != ErrorCode.NONE:
        return str(ErrorCode(made.error_code).name)
    return f"{made.principal_type}:{made.principal_name}"


@attrs.frozen(kw_only=True)
class LoginCase:
    """A name, the listener, how a client connects, and what it does."""

    name: str
    listener: str
    act: Callable[[LoginSide, LoginClient], Iterator[str]]
    tls: bool | None = None
    certificate: str | None = None

    def outcome(self, side: LoginSide) -> Outcome:
        """Do it."""
        found: Outcome = []
        try:
            with side.client(self.listener, tls=self.tls, certificate=self.certificate) as client:
                for result in self.act(side, client):
                    found.append(result)
                found.append(who(client))
        except ssl.SSLError as fault:
            found.append("closed" if isinstance(fault, ssl.SSLEOFError) else "tls refused")
        except (EOFError, OSError):
            found.append("closed")
        return found


def error(answer: Any) -> str:
    """The name of an answer's error."""
    return str(ErrorCode(answer.error_code).name)


def logs_in(mechanism: str, user: str, password: str, **extensions: str) -> Callable[..., Iterator[str]]:
    """Log in; `@token` stands for the id and the password of the token."""

    def act(side: LoginSide, client: LoginClient) -> Iterator[str]:
        names = {"@token": side.token[0], "@password": side.token[1]}
        yield error(
            client.log_in(mechanism, names.get(user, user), names.get(password, password), **extensions)
        )  # fmt: skip

    return act


def says(mechanism: str, *messages: bytes) -> Callable[..., Iterator[str]]:
    """Choose a mechanism, and send messages of it, whatever the answers."""

    def act(_: LoginSide, client: LoginClient) -> Iterator[str]:
        yield error(client.hands(mechanism))
        for message in messages:
            yield error(client.say(message))

    return act


def nothing(_: LoginSide, __: LoginClient) -> Iterator[str]:
    """Ask at once."""
    yield from ()


def twice(mechanism: str) -> Callable[..., Iterator[str]]:
    """Log in again at once, where there is no session that ends."""

    def act(_: LoginSide, client: LoginClient) -> Iterator[str]:
        yield error(client.log_in(mechanism, "alice", USERS["alice"]))
        yield error(client.hands(mechanism))
        yield error(client.say(b"x"))

    return act


def versions(*numbers: int) -> Callable[..., Iterator[str]]:
    """Ask for ApiVersions of these versions, then log in."""

    def act(_: LoginSide, client: LoginClient) -> Iterator[str]:
        request = encoded_request(ApiVersionsRequest(client_software_name="t", client_software_version="1"))
        for number in numbers:
            answer = client.exchange(request[:2] + number.to_bytes(2) + request[4:])
            yield ErrorCode(int.from_bytes(answer[4:6])).name
        yield error(client.log_in("PLAIN", "alice", USERS["alice"]))

    return act


def stray(before: str | None) -> Callable[..., Iterator[str]]:
    """Send a request that is no login, after SaslHandshake for the mechanism `before`."""

    def act(_: LoginSide, client: LoginClient) -> Iterator[str]:
        if before is not None:
            yield error(client.hands(before))
        asked = MetadataRequest(topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=False)
        yield f"{len(client.ask(asked).brokers)} brokers"

    return act


def bare(mechanism: str, password: str) -> Callable[..., Iterator[str]]:
    """Log in as clients before KIP-152 do."""

    def act(_: LoginSide, client: LoginClient) -> Iterator[str]:
        client.exchange(old_handshake(mechanism))
        if mechanism == "PLAIN":
            yield str(client.exchange(f"\0alice\0{password}".encode()))
            return
        messages = scram_messages(mechanism, user="alice", password=password, nonce="n")
        challenge = client.exchange(next(messages))
        yield str(client.exchange(messages.send(challenge))[:2])

    return act


def frames(*sent: bytes) -> Callable[..., Iterator[str]]:
    """Send bytes in frames, whatever they are."""

    def act(_: LoginSide, client: LoginClient) -> Iterator[str]:
        for data in sent:
            yield f"{len(client.exchange(data))} bytes"

    return act


def replayed(mechanism: str, change: Callable[[bytes], bytes]) -> Callable[..., Iterator[str]]:
    """Log in by SCRAM with a last message that is changed."""

    def act(_: LoginSide, client: LoginClient) -> Iterator[str]:
        client.hands(mechanism)
        messages = scram_messages(mechanism, user="alice", password=USERS["alice"], nonce="n")
        challenge = client.say(next(messages)).auth_bytes
        yield error(client.say(change(messages.send(challenge))))

    return act


_WRONG_FIRST = (
    b"", b"n", b"n,,", b"n,,n=alice", b"n,,r=x", b"y,,n=alice,r=x", b"p=tls-unique,,n=alice,r=x", b"n,,n=,r=x",
    b"n,,n=alice,r=", b"n,,n=al=ice,r=x", b"n,,n=alice,r=a b", b"n,,n=al\xc3\xa9,r=x", b"\xff\xfe", b"n,,n=alice,r=x,",
    b"n,,n=alice,r=x,1=y", b"n,a=eve,n=alice,r=x", b"n,,n=alice,r=x\0", b"n,,n=nobody,r=x,tokenauth=true", b"x" * 9000,
)  # fmt: skip
UNKNOWN_USER = 17
"""The place of an unknown user in them: it is refused after its proof, and by Kafka before."""
_WRONG_PLAIN = (
    b"", b"alice", b"\0alice", b"\0alice\0", b"\0\0alice-secret", b"eve\0alice\0alice-secret",
    b"\0alice\0alice-secret\0", b"\0alice\0alice-secret\0more", b"\0ALICE\0alice-secret", b"\0alice\0alice-secret ",
    b"\0alic\xff\0alice-secret",
)  # fmt: skip
_CHANGES: Mapping[str, Callable[[bytes], bytes]] = {
    "another nonce": lambda last: last.replace(b"r=n", b"r=m"),
    "a shorter nonce": lambda last: last.replace(b",p=", b"\0,p=")[:0] + last.replace(b"r=n", b"r="),
    "no proof": lambda last: last.partition(b",p=")[0],
    "an empty proof": lambda last: last.partition(b"p=")[0] + b"p=",
    "a short proof": lambda last: last.partition(b"p=")[0] + b"p=AAAA",
    "another proof": lambda last: last.partition(b"p=")[0] + b"p=" + base64.b64encode(bytes(32)),
    "nothing": lambda _: b"",
}


def cases() -> list[LoginCase]:
    """All of them."""
    found = [*_of_certificates(), *_of_wrong_protocols()]
    for listener in ("LOGIN", "BOTH"):
        found += _of_logins(listener)
    found += _of_order()
    return found


def _of_certificates() -> Iterator[LoginCase]:
    for listener, certificate in itertools.product(
        ("SSL", "ASKED", "MUTUAL"), (None, "operator", "plain", "many", "stranger", "expired")
    ):
        yield LoginCase(
            name=f"certificate {certificate}", listener=listener, act=nothing, certificate=certificate
        )  # fmt: skip
        yield LoginCase(name=f"login, {certificate}", listener=listener, act=twice("PLAIN"), certificate=certificate)
    for certificate in ("operator", "stranger"):
        act = logs_in("PLAIN", "alice", USERS["alice"])
        yield LoginCase(name=f"certificate {certificate}", listener="BOTH", act=act, certificate=certificate)


def _of_wrong_protocols() -> Iterator[LoginCase]:
    for listener in ("SSL", "BOTH"):
        yield LoginCase(name="no TLS", listener=listener, act=nothing, tls=False)
    for listener in ("PLAINTEXT", "LOGIN"):
        yield LoginCase(name="TLS", listener=listener, act=nothing, tls=True)
    for listener in ("PLAINTEXT", *LISTENERS):
        yield LoginCase(name="a request at once", listener=listener, act=nothing)
        yield LoginCase(name="metadata at once", listener=listener, act=stray(None))


def _of_logins(listener: str) -> Iterator[LoginCase]:
    for mechanism, user in itertools.product((*MECHANISMS, "GSSAPI", "OAUTHBEARER", "", "plain"), ("alice", "nobody")):
        for password in (USERS["alice"], "wrong"):
            act = logs_in(mechanism, user, password) if mechanism in MECHANISMS else says(mechanism, b"x")
            yield LoginCase(name=f"{mechanism} {user} {password}", listener=listener, act=act)
    for mechanism in MECHANISMS[1:]:
        yield LoginCase(name=f"{mechanism} b=o,b", listener=listener, act=logs_in(mechanism, "b=o,b", "p"))
        token = {"a token": ("@token", "@password", "true"), "not as one": ("@token", "@password", "false"),
                 "a token's wrong password": ("@token", "wrong", "true"), "no token": ("nobody", "@password", "true"),
                 "a user as a token": ("alice", USERS["alice"], "TRUE")}  # fmt: skip
        for name, (user, password, flag) in token.items():
            act = logs_in(mechanism, user, password, tokenauth=flag)
            yield LoginCase(name=f"{mechanism} {name}", listener=listener, act=act)
        for number, message in enumerate(_WRONG_FIRST):
            yield LoginCase(
                name=f"{mechanism} first {number}", listener=listener, act=says(mechanism, message, b"c=biws")
            )
        for name, change in _CHANGES.items():
            yield LoginCase(name=f"{mechanism} {name}", listener=listener, act=replayed(mechanism, change))
    for number, message in enumerate(_WRONG_PLAIN):
        yield LoginCase(name=f"PLAIN {number}", listener=listener, act=says("PLAIN", message))


def _of_order() -> Iterator[LoginCase]:
    for mechanism in MECHANISMS:
        yield LoginCase(name=f"{mechanism} twice", listener="LOGIN", act=twice(mechanism))
        yield LoginCase(name=f"{mechanism} and a request", listener="LOGIN", act=stray(mechanism))
        for password in (USERS["alice"], "wrong"):
            yield LoginCase(name=f"bare {mechanism} {password}", listener="LOGIN", act=bare(mechanism, password))
    for numbers in ((3,), (0,), (99,), (99, 3), (3, 3), (99, 99, 2), (1, 0)):
        yield LoginCase(name=f"ApiVersions {numbers}", listener="LOGIN", act=versions(*numbers))
    unknown = old_handshake("PLAIN")
    authenticate = encoded_request(SaslAuthenticateRequest(auth_bytes=b"\0alice\0alice-secret"))
    for name, sent in {
        "SaslAuthenticate first": [authenticate], "an unknown API": [b"\x7f\xff" + authenticate[2:]],
        "an unknown version": [unknown[:2] + b"\0\x09" + unknown[4:]], "no bytes": [b""], "a few bytes": [b"\0\x11"],
        "half a handshake": [unknown[:-3]], "zeros": [bytes(20)], "two handshakes": [unknown, unknown],
        "long": [bytes(600_000)],
    }.items():  # fmt: skip
        yield LoginCase(name=name, listener="LOGIN", act=frames(*sent))
