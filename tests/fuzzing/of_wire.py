"""Readers of what a peer sends: requests, answers, logins."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import lru_cache
from importlib import import_module
from ipaddress import ip_address
from itertools import pairwise
from typing import Any

import attrs
from kio.schema.create_topics.v7.request import CreateTopicsRequest
from kio.schema.envelope.v0.request import EnvelopeRequest
from kio.schema.index import schema_name_map
from kio.schema.sasl_authenticate.v2.request import SaslAuthenticateRequest
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest

from kraftlake.controller.access.scram import ScramUpsertion
from kraftlake.controller.errors import ControllerApiError
from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.protocol.fetch_response import decode_fetch
from kraftlake.protocol.jaas import parse_jaas
from kraftlake.protocol.message_scan import read_message
from kraftlake.protocol.scram import HASHES, ScramError, scram_messages
from kraftlake.records.varint import MalformedError
from kraftlake.server.broker.serving.forwarding import ForwardingManager
from kraftlake.server.controller.envelope_handler import enclosed
from kraftlake.server.listener_security import ServerSasl
from kraftlake.server.requests.dispatcher import Peer
from kraftlake.server.requests.frame_buffer import LENGTH, FrameBuffer
from kraftlake.server.requests.login_users import LoginUsers
from kraftlake.server.requests.messages import UNREADABLE, encoded_request, request_in, response_type, versions_of
from kraftlake.server.requests.sasl_authenticator import SaslServerAuthenticator
from tests.fuzzing.target import Target

SECRET = "of-alice-alone-0123456789"
APIS = sorted(schema_name_map)


def request(data: bytes) -> None:
    if len(data) >= 10:  # a dispatcher looks at the length first
        request_in(data)


def requests() -> Iterable[bytes]:
    """Requests of the newest versions with empty bodies, which the fuzzer goes on from."""
    for key in (0, 1, 2, 3, 18, 19, 20, 22, 32, 44, 58, 62, 63):
        yield struct.pack(">hhih", key, 1, 7, -1) + bytes(40)


def response(data: bytes) -> None:
    """The answer to a request of any API and version, which the first two bytes choose."""
    if len(data) >= 2:
        name = APIS[data[0] % len(APIS)]
        versions = versions_of(name)
        read_message(response_type(name, versions[data[1] % len(versions)]), data[2:], 0)


def responses() -> Iterable[bytes]:
    """Empty answers of each API's newest version."""
    for at, name in enumerate(APIS):
        yield bytes((at, len(versions_of(name)) - 1)) + bytes(24)


def log_in(data: bytes) -> None:
    """Frames of a client that knows no password: nobody is let in."""
    sasl, known = _node()
    server = SaslServerAuthenticator(sasl, known, versions=lambda _: bytes(8), nonce=lambda: "nonce")
    received = FrameBuffer(longest=sasl.max_receive_bytes)
    received.add(data)
    while (one := received.next()) is not None:
        step = server.receive(one, 0)
        assert step.login is None, f"{step.login} is let in"
        if step.failed:
            break


@lru_cache
def _node() -> tuple[ServerSasl, LoginUsers]:
    """All mechanisms, of which each has a user whose password is in no seed."""
    known = LoginUsers()
    delta = MetadataDelta(MetadataImage.EMPTY)
    delta.replay(ScramUpsertion.of_password("alice", 1, SECRET, b"some salt", 4096).to_record().message)
    known.load(delta.apply(MetadataProvenance.EMPTY))
    plain = parse_jaas(f'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="{SECRET}";')
    return ServerSasl(mechanisms=("PLAIN", *HASHES), logins={"PLAIN": (plain,)}), known


def logins() -> Iterable[bytes]:
    """A login of each kind with a wrong password."""
    for mechanism, messages in (
        ("PLAIN", (b"\0alice\0no",)),
        ("SCRAM-SHA-256", (b"n,,n=alice,r=abc", b"c=biws,r=abcnonce,p=AAAA")),
        ("SCRAM-SHA-512", (b"n,a=eve,n=eve,r=abc,tokenauth=true",)),
    ):
        sent = [SaslHandshakeRequest(mechanism=mechanism), *map(_authenticate, messages)]
        yield b"".join(LENGTH.pack(len(one)) + one for one in map(encoded_request, sent))


def _authenticate(message: bytes) -> SaslAuthenticateRequest:
    return SaslAuthenticateRequest(auth_bytes=message)


def challenge(data: bytes) -> None:
    """What a server answers to a login by SCRAM: a line for each message."""
    messages = scram_messages("SCRAM-SHA-256", user="a", password="b", nonce="n")
    next(messages)
    try:
        for line in data.split(b"\n"):
            messages.send(line)
    except StopIteration:
        raise AssertionError("a server that knows no password is taken for the right one") from None


def challenges() -> Iterable[bytes]:
    yield b"r=nabc,s=c29tZSBzYWx0,i=4096\nv=AAAA"
    yield b"e=other-error"


def open_envelope(data: bytes) -> None:
    """The principal, the address and the request in an envelope, whose lengths the first two bytes have.

    A client that is taken from it is the same in the envelope that a broker of ours makes for it.
    """
    if len(data) < 2:
        return
    rest = data[2:]
    principal, address, frame = (rest[a:b] for a, b in pairwise((0, data[0], data[0] + data[1], None)))
    sent = EnvelopeRequest(request_data=frame, request_principal=principal, client_host_address=address)
    again = []

    def ask(name: str, versions: object, make: Any, answered: object) -> None:
        again.append(make(import_module(EnvelopeRequest.__module__)))

    broker = Peer(listener="CONTROLLER", host="::1")
    inner, client = enclosed(sent, broker)
    ForwardingManager(ask).forward(inner, client, lambda _: None)
    inner_again, client_again = enclosed(again[0], broker)
    assert (inner_again, attrs.asdict(client_again)) == (inner, attrs.asdict(client))


def envelopes() -> Iterable[bytes]:
    """Clients of both kinds of addresses, one with a token."""
    frame = encoded_request(CreateTopicsRequest(topics=()))
    for name, token, address in (("alice", False, bytes(4)), ("bøb:x", True, ip_address("fe80::1").packed)):
        compact = [bytes([len(one) + 1]) + one for one in (b"User", name.encode())]
        principal = b"\0\0" + b"".join(compact) + bytes([token, 0])
        yield bytes([len(principal), len(address)]) + principal + address + frame


TARGETS = {
    "requests": Target(request, UNREADABLE, requests),
    "responses": Target(response, UNREADABLE, responses),
    "answers": Target(
        lambda data: decode_fetch(data, 0), (MalformedError, IndexError, struct.error, UnicodeDecodeError),
        lambda: [bytes(11), struct.pack(">ihi", 0, 0, 0) + b"\2" + bytes(16) + b"\2" + bytes(60)],
    ),
    "logins": Target(log_in, (ValueError,), logins),
    "envelopes": Target(open_envelope, (ControllerApiError,), envelopes),
    "challenges": Target(challenge, (ScramError,), challenges),
}  # fmt: skip
