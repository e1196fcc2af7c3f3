"""Kafka's Uuid: 16 bytes, written as 22 characters of URL-safe base64."""

from __future__ import annotations

import binascii
import struct
from typing import ClassVar

_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_TWO_LONGS = struct.Struct(">qq")


class Uuid(bytes):
    """A topic, directory, broker incarnation or ACL id: 16 bytes, hashed and compared as bytes.

    `str()` gives Kafka's 22 characters. Source: org.apache.kafka.common.Uuid.
    """

    __slots__ = ()
    ZERO: ClassVar[Uuid]

    @classmethod
    def from_string(cls, text: str) -> Uuid:
        """Parse Kafka's text form; raises ValueError unless `text` is 22 characters of base64."""
        import base64

        try:
            raw = base64.b64decode(text + "==", altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            raw = b""
        if len(raw) != 16:
            raise ValueError(f"{text!r} is not a Kafka UUID (22 characters of URL-safe base64)")
        return cls(raw)

    @classmethod
    def random(cls) -> Uuid:
        """Return a new id whose text doesn't begin with a dash, which a command line would interpret as an option."""
        import uuid

        while str(made := cls(uuid.uuid4().bytes)).startswith("-"):
            pass
        return made

    def __str__(self) -> str:
        return binascii.b2a_base64(self, newline=False).translate(_URL_SAFE)[:22].decode("ascii")

    def __repr__(self) -> str:
        return f"Uuid({self!s})"

    def sort_key(self) -> tuple[int, int]:
        """The order of Uuid.compareTo, which compares two signed longs."""
        most, least = _TWO_LONGS.unpack(self)
        return most, least


Uuid.ZERO = Uuid(16)
