"""The server's side of SCRAM, without I/O.

Source: RFC 5802, RFC 7677, and org.apache.kafka.common.security.scram.internals.ScramSaslServer, ScramMessages. As in
Kafka there is no channel binding, and names are of ASCII.
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Final, Protocol

import attrs

from kraftlake.protocol.scram import HASHES, MAX_MESSAGE, MIN_ITERATIONS, ScramError

_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_PRINTABLE: Final = r"[\x21-\x2b\x2d-\x7e]+"
_VALUE: Final = r"[\x01-\x2b\x2d-\x7f]+"
_BASE64: Final = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_EXTENSIONS: Final = rf"(?:,[A-Za-z]+={_VALUE})*"
_FIRST: Final = re.compile(
    rf"(?P<header>n,(?:a=(?P<authzid>{_NAME}))?,)(?P<bare>n=(?P<name>{_NAME}),r=(?P<nonce>{_PRINTABLE})"
    rf"(?P<extensions>{_EXTENSIONS}))"
)
_FINAL: Final = re.compile(
    rf"(?P<unproved>c=(?P<header>{_BASE64}),r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS}),p=(?P<proof>{_BASE64})"
)


class ScramCredential(Protocol):
    """What a server stores of a password: it can check the password by it, and not compute it."""

    @property
    def salt(self) -> bytes:
        """The salt of PBKDF2."""
        ...

    @property
    def iterations(self) -> int:
        """The iterations of PBKDF2."""
        ...

    @property
    def stored_key(self) -> bytes:
        """The hash of the client's key."""
        ...

    @property
    def server_key(self) -> bytes:
        """The key by which the server shows that it knows the user."""
        ...


@attrs.frozen(kw_only=True)
class ClientFirst:
    """The client's first message: its name, its nonce, and its extensions such as `tokenauth`."""

    name: str
    nonce: str
    extensions: Mapping[str, str]
    header: str = attrs.field(repr=False)
    bare: str = attrs.field(repr=False)

    @classmethod
    def parse(cls, message: bytes) -> ClientFirst:
        """Parse a message. Raises ScramError, also for the wish to act as another user."""
        match = _FIRST.fullmatch(_text(message))
        if match is None:
            raise ScramError("sent a first SCRAM message that is none")
        name = match["name"].replace("=2C", ",").replace("=3D", "=")
        if match["authzid"] not in (None, name):
            raise ScramError("wishes to act as another user")
        pairs = (pair.partition("=") for pair in match["extensions"].split(",")[1:])
        extensions = {key: value for key, _, value in pairs}
        return cls(name=name, nonce=match["nonce"], extensions=extensions, header=match["header"], bare=match["bare"])


class ScramServer:
    """One login at a server, from the client's first message on; the credential is the server's for the user.

    `nonce` is printable, without a comma, and new for each login. Raises ScramError for a weak credential.
    """

    def __init__(self, mechanism: str, first: ClientFirst, credential: ScramCredential, nonce: str) -> None:
        if credential.iterations < MIN_ITERATIONS:
            raise ScramError(f"has a credential of {credential.iterations} iterations, too few to be safe")
        self._hash = HASHES[mechanism]
        self._first = first
        self._credential = credential
        self._nonce = f"{first.nonce}{nonce}"
        salt = b64encode(credential.salt).decode()
        self.challenge = f"r={self._nonce},s={salt},i={credential.iterations}".encode()
        """The server's first message."""

    def finish(self, message: bytes) -> bytes:
        """Check the client's proof, and return the server's signature. Raises ScramError for any other message."""
        match = _FINAL.fullmatch(_text(message))
        if match is None or not hmac.compare_digest(match["nonce"], self._nonce):
            raise ScramError("sent a last SCRAM message that is none, or one for another login")
        if match["header"] != b64encode(self._first.header.encode()).decode():
            raise ScramError("sent another header in its last SCRAM message than in its first")
        signed = b",".join((self._first.bare.encode(), self.challenge, match["unproved"].encode()))
        stored, name = self._credential.stored_key, self._hash
        signature = hmac.digest(stored, signed, name)
        proof = b64decode(match["proof"])
        client_key = bytes(one ^ other for one, other in zip(proof, signature, strict=False))
        is_right = len(proof) == len(signature)
        if not hmac.compare_digest(hashlib.new(name, client_key).digest(), stored) or not is_right:
            raise ScramError("does not know the password")
        return b"v=" + b64encode(hmac.digest(self._credential.server_key, signed, name))


def _text(message: bytes) -> str:
    if len(message) > MAX_MESSAGE:
        raise ScramError(f"sent a SCRAM message of {len(message):,} bytes")
    try:
        return message.decode()
    except (UnicodeDecodeError, binascii.Error):
        raise ScramError("sent a SCRAM message that is no UTF-8") from None
