"""The client's side of SCRAM, without I/O.

Source: RFC 5802, RFC 7677, and org.apache.kafka.common.security.scram.internals.ScramSaslClient. As in Kafka, names and
passwords are used unchanged, without SASLprep and without channel binding.
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
from base64 import b64decode, b64encode
from collections.abc import Generator, Mapping
from typing import Final

HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""The hash function of each mechanism."""
MIN_ITERATIONS: Final = 4096
"""The minimum that Kafka's client accepts; fewer iterations make a password easier to guess."""
MAX_ITERATIONS: Final = 1_000_000
"""The maximum: about a second of computing; Kafka stores at most 16,384."""
MAX_MESSAGE: Final = 8192
"""The maximum size of a server's message in bytes."""
_NO_BINDING: Final = b"n,,"


class ScramError(Exception):
    """Reports a server that violates the protocol, or does not prove knowledge of the password.

    The message is a clause with the server as the subject.
    """


def scram_messages(
    mechanism: str, *, user: str, password: str, nonce: str, extensions: Mapping[str, str] | None = None
) -> Generator[bytes, bytes, None]:
    """Yield the client's messages and receive the server's answers; end once the server has proved its identity.

    `nonce` is printable, without a comma, and new for each login. Raises ScramError.
    """
    hash_name = HASHES[mechanism]
    name = user.replace("=", "=3D").replace(",", "=2C")
    more = "".join(f",{key}={value}" for key, value in (extensions or {}).items())
    first = f"n={name},r={nonce}{more}".encode()
    challenge = yield _NO_BINDING + first

    server_nonce, salt, iterations = _server_first(challenge, nonce)
    final = f"c={b64encode(_NO_BINDING).decode()},r={server_nonce}".encode()
    salted = hashlib.pbkdf2_hmac(hash_name, password.encode(), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", hash_name)
    signed = b",".join((first, challenge, final))
    signature = hmac.digest(hashlib.new(hash_name, client_key).digest(), signed, hash_name)
    proof = bytes(key ^ sign for key, sign in zip(client_key, signature, strict=True))
    answer = yield final + b",p=" + b64encode(proof)

    expected = hmac.digest(hmac.digest(salted, b"Server Key", hash_name), signed, hash_name)
    _check_server(answer, expected)


def _server_first(message: bytes, nonce: str) -> tuple[str, bytes, int]:
    """Return the nonce, the salt and the iterations."""
    fields = _fields(message)
    try:
        server_nonce, salt, count = fields["r"], b64decode(fields["s"], validate=True), fields["i"]
    except (KeyError, binascii.Error, ValueError):
        raise ScramError("sent a SCRAM challenge without a nonce, a salt or a number of iterations") from None
    if not server_nonce.startswith(nonce) or len(server_nonce) == len(nonce):
        raise ScramError("sent a SCRAM challenge for another login")
    if not salt or not (count.isascii() and count.isdecimal() and len(count) < 10):
        raise ScramError("sent a SCRAM challenge without a salt or a number of iterations")
    iterations = int(count)
    if not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
        raise ScramError(
            f"asks for {iterations:,} iterations of SCRAM: {MIN_ITERATIONS:,} to {MAX_ITERATIONS:,} are accepted"
        )
    return server_nonce, salt, iterations


def _check_server(message: bytes, expected: bytes) -> None:
    fields = _fields(message)
    try:
        signature = b64decode(fields["v"], validate=True)
    except (KeyError, binascii.Error, ValueError):
        raise ScramError("ended the SCRAM login without its signature") from None
    if not hmac.compare_digest(signature, expected):
        raise ScramError("does not know the password: its SCRAM signature is wrong")


def _fields(message: bytes) -> dict[str, str]:
    if len(message) > MAX_MESSAGE:
        raise ScramError(f"sent a SCRAM message of {len(message):,} bytes")
    try:
        parts = message.decode().split(",")
    except UnicodeDecodeError:
        raise ScramError("sent a SCRAM message that is no UTF-8") from None
    return {key: value for key, _, value in (part.partition("=") for part in parts)}
