"""Logins over the wire: frames of SaslHandshake and SaslAuthenticate, and a client of them."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kio.schema.api_versions.v3.request import ApiVersionsRequest
from kio.schema.sasl_authenticate.v1.request import SaslAuthenticateRequest as SaslAuthenticateRequest1
from kio.schema.sasl_authenticate.v2.request import SaslAuthenticateRequest
from kio.schema.sasl_handshake.v0.request import SaslHandshakeRequest as SaslHandshakeRequest0
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest

from kraftlake.controller.access.scram import ScramUpsertion
from kraftlake.protocol.scram import scram_messages
from kraftlake.records.schema import Message
from kraftlake.server.listener_security import ListenerSecurity, listener_security
from kraftlake.server.node_config import NodeSettings
from kraftlake.server.requests.dispatcher import Dispatcher, Handler, Peer, Request
from kraftlake.server.requests.handlers import SASL_HANDLERS, response_to
from kraftlake.server.requests.listener import RequestListener
from kraftlake.server.requests.login_users import LoginUsers
from kraftlake.server.requests.messages import encoded_request, response_in
from tests.protocol.fake_nodes import frame, receive_frame
from tests.publisher.updates import Cluster
from tests.waiting import PATIENCE

PLAIN_LOGIN = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="alice-secret" user_eve="eve-secret";'
)
MECHANISMS = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
WRONG = "Authentication failed during authentication due to invalid credentials with SASL mechanism"


def security(protocol: str = "SASL_PLAINTEXT", **settings: str) -> ListenerSecurity:
    """A listener with all mechanisms; `_` stands for the dots in names of settings."""
    values = {
        "listener.security.protocol.map": f"L:{protocol}",
        "listener.name.l.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.l.plain.sasl.jaas.config": PLAIN_LOGIN,
        "connection.failed.authentication.delay.ms": "0",
        **{name.replace("_", "."): value for name, value in settings.items()},
    }
    return listener_security(NodeSettings(values=values), "L")


def upsertion(user: str, password: str, mechanism: str = "SCRAM-SHA-256") -> Message:
    """The record of a user's password."""
    made = ScramUpsertion.of_password(user, MECHANISMS[mechanism], password, b"some salt", 4096)
    message: Message = made.to_record().message
    return message


def users(*records: Message, secret_key: str | None = None) -> tuple[LoginUsers, Cluster]:
    """The users of an image with these records."""
    made, cluster = LoginUsers(secret_key), Cluster()
    cluster.change(*records)
    for publisher in made.publishers:
        cluster.introduce(publisher)
    return made, cluster


def who(request: Request) -> Any:
    """Answer DescribeCluster with the client's principal as the cluster's id."""
    peer = request.peer
    mark = " by token" if peer.token_authenticated else ""
    return response_to(
        request, cluster_id=f"{peer.principal}{mark}", controller_id=1, brokers=(), error_message=None,
        cluster_authorized_operations=0, endpoint_type=1,
    )  # fmt: skip


@contextmanager
def listening(asked: ListenerSecurity, known: LoginUsers, handler: Any = who) -> Iterator[RequestListener]:
    """A listener whose DescribeCluster names the principal."""
    handlers = {"describe_cluster": Handler(begin=handler), **SASL_HANDLERS}
    dispatcher = Dispatcher(handlers, on_fault=print)
    listener = RequestListener("L", "127.0.0.1", 0, dispatcher.handle, security=asked, users=known)
    listener.start()
    yield listener
    listener.close()


class LoginClient:
    """A client that sends what it is asked to."""

    def __init__(self, port: int, host: str = "127.0.0.1", connection: socket.socket | None = None) -> None:
        self.socket = connection or socket.create_connection((host, port), timeout=PATIENCE)

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()

    def __enter__(self) -> LoginClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, body: Any) -> Any:
        """Send a request, and return the response in kio's class. Raises EOFError if the connection is closed."""
        sent = encoded_request(body)
        return response_in(sent, self.exchange(sent))

    def exchange(self, data: bytes) -> bytes:
        """Send a frame, and return that of the answer."""
        try:
            self.socket.sendall(frame(data))
            return receive_frame(self.socket)
        except ConnectionError:
            raise EOFError from None

    def versions(self) -> int:
        """Ask for ApiVersions; returns the error of the answer."""
        asked = encoded_request(ApiVersionsRequest(client_software_name="t", client_software_version="1"))
        return int.from_bytes(self.exchange(asked)[4:6])

    def hands(self, mechanism: str) -> Any:
        """Ask for a mechanism."""
        return self.ask(SaslHandshakeRequest(mechanism=mechanism))

    def say(self, message: bytes) -> Any:
        """Send a message of the mechanism."""
        return self.ask(SaslAuthenticateRequest(auth_bytes=message))

    def log_in(self, mechanism: str, user: str, password: str, *, nonce: str = "clientnonce", **extensions: str) -> Any:
        """Log in; returns the last response."""
        response = self.hands(mechanism)
        if response.error_code != 0:
            return response
        if mechanism == "PLAIN":
            return self.say(f"\0{user}\0{password}".encode())
        messages = scram_messages(mechanism, user=user, password=password, nonce=nonce, extensions=extensions)
        response = self.say(next(messages))
        if response.error_code == 0:
            response = self.say(messages.send(response.auth_bytes))
        if response.error_code == 0:
            for _ in messages_end(messages, response.auth_bytes):
                raise AssertionError("the login goes on")
        return response

    def who(self) -> str:
        """The principal that the node takes the client for."""
        from kio.schema.describe_cluster.v0.request import DescribeClusterRequest

        return str(self.ask(DescribeClusterRequest(include_cluster_authorized_operations=False)).cluster_id)


def messages_end(messages: Any, answer: bytes) -> Iterator[bytes]:
    """What a mechanism still says after its last answer, which shows that the server knows the password."""
    try:
        yield messages.send(answer)
    except StopIteration:
        return


def old_handshake(mechanism: str) -> bytes:
    """SaslHandshake of version 0, after which messages are bare frames."""
    return encoded_request(SaslHandshakeRequest0(mechanism=mechanism))


def old_authenticate(message: bytes) -> bytes:
    """SaslAuthenticate of version 1."""
    return encoded_request(SaslAuthenticateRequest1(auth_bytes=message))


PEER = Peer(listener="L", host="127.0.0.1")
