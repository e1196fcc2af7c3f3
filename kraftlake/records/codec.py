"""Kafka's wire form of one message, from its declaration: `encode_message` and `decode_message`.

For each (class, version) two functions are generated from the declared fields on first use, and cached. All metadata
and control records are flexible in all of their versions (KIP-482): compact lengths and tagged fields everywhere.
Source: the message format of org.apache.kafka.common.protocol, and KIP-482 for tagged fields.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from kraftlake.records.codec_source import decoder_of, encoder_of
from kraftlake.records.schema import Message, memoized
from kraftlake.records.varint import MalformedError
from kraftlake.runtime.errors import CorruptDataError, UnknownRecordError, UnwritableMetadataError

M = TypeVar("M", bound=Message)

READ_FAULTS = (MalformedError, struct.error, IndexError, UnicodeDecodeError)
_WRITE_FAULTS = (struct.error, TypeError, AttributeError, ValueError, OverflowError, UnicodeEncodeError)


Decoder: TypeAlias = Callable[[bytes, int], tuple[Any, int]]
"""Decodes one message of a fixed class and version at a position; returns it and the position after it."""
Encoder: TypeAlias = Callable[[Any, bytearray], None]
"""Appends one message of a fixed class and version to a buffer."""


@memoized
def message_decoder(cls: type[Message], version: int) -> Decoder:
    """Return the generated decoder, for callers that decode many messages.

    Raises UnknownRecordError for an unknown version. The decoder raises one of `READ_FAULTS` where `decode_message`
    raises CorruptDataError.
    """
    if version not in cls.VERSIONS:
        raise UnknownRecordError(_unknown_version(cls, version))
    return decoder_of(cls, version)


@memoized
def message_encoder(cls: type[Message], version: int) -> Encoder:
    """Return the generated encoder; raises UnwritableMetadataError for an unknown version."""
    if version not in cls.VERSIONS:
        raise UnwritableMetadataError(_unknown_version(cls, version))
    return encoder_of(cls, version)


def decode_message(cls: type[M], version: int, data: bytes, position: int = 0) -> M:
    """Decode the message in `data` from `position` to the end.

    Raises CorruptDataError if the bytes are not such a message, or further bytes follow it, UnknownRecordError if
    `version` is not a version of `cls`.
    """
    decode = message_decoder(cls, version)
    try:
        message, end = decode(data, position)
    except READ_FAULTS as fault:
        raise CorruptDataError(_unreadable(cls, version, describe_fault(fault))) from None
    if end != len(data):
        raise CorruptDataError(_unreadable(cls, version, f"{len(data) - end} bytes are left behind it"))
    return message  # type: ignore[no-any-return]


def encode_message(message: Message, version: int, buffer: bytearray | None = None) -> bytearray:
    """Encode `message` at `version`, appended to `buffer` (a new one if None), which is returned.

    Raises UnwritableMetadataError if a field that `version` lacks has a value, or a value does not fit its field.
    """
    cls = type(message)
    encode = message_encoder(cls, version)
    out = bytearray() if buffer is None else buffer
    try:
        encode(message, out)
    except _WRITE_FAULTS as fault:
        reason = describe_fault(fault)
        raise UnwritableMetadataError(f"{cls.__name__} version {version} can't be written: {reason}.") from None
    return out


def describe_fault(fault: BaseException) -> str:
    """Describe a fault of a generated function in words."""
    if isinstance(fault, MalformedError):
        return str(fault)
    if isinstance(fault, UnicodeError):
        return "a string is not valid UTF-8"
    if isinstance(fault, IndexError) or (isinstance(fault, struct.error) and "unpack" in str(fault)):
        return "the bytes end too early"
    return str(fault)


def _unknown_version(cls: type[Message], version: int) -> str:
    return f"{cls.__name__} has the versions {cls.VERSIONS.low} to {cls.VERSIONS.high}, not {version}."


def _unreadable(cls: type[Message], version: int, reason: str) -> str:
    return f"The bytes of a {cls.__name__} version {version} can't be read: {reason}."
