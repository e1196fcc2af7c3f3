"""The value of a record in a metadata log: a frame (version 1, api key, version) around a message.

Source: org.apache.kafka.server.common.serialization.AbstractApiMessageSerde, and ControlRecordUtils for control
records, whose value is the bare message and whose type is in the record's key.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, TypeAlias

import attrs

from kraftlake.records.codec import (
    READ_FAULTS,
    Decoder,
    decode_message,
    describe_fault,
    encode_message,
    message_decoder,
)
from kraftlake.records.fast_construct import mutable_class
from kraftlake.records.foreign.registered import FOREIGN_RECORDS, record_class
from kraftlake.records.metadata_records import METADATA_RECORDS
from kraftlake.records.schema import Message, memoized, type_name
from kraftlake.records.varint import MalformedError, read_uvarint, uvarint
from kraftlake.runtime.errors import CorruptDataError, UnwritableMetadataError
from kraftlake.runtime.lazy_module import LazyModule

if TYPE_CHECKING:
    from kraftlake.records import control_records
else:  # few batches of a log have any
    control_records = LazyModule("kraftlake.records.control_records")

FRAME_VERSION = 1
_LARGEST_SHORT = 0x7FFF
_CONTROL_KEY = struct.Struct(">hh")  # version of the key, control type


UNKNOWN = "UNKNOWN"
"""The type name of a record unknown to this release."""


@attrs.frozen
class UnknownRecord:
    """A record of a type or version unknown to this release, kept unchanged.

    `api_key` is the control type of a control record; `payload` is the whole value, frame included.
    """

    api_key: int
    version: int
    payload: bytes = attrs.field(repr=False)


AnyMessage: TypeAlias = Message | UnknownRecord


@attrs.frozen(weakref_slot=False)
class ApiMessageAndVersion:
    """A message and the version at which it was read or is to be written."""

    message: AnyMessage
    version: int


_Mutable = mutable_class(ApiMessageAndVersion)
_new = object.__new__


def read_frame(payload: bytes) -> tuple[int, int]:
    """The api key and version of a record's value; raises CorruptDataError without a frame."""
    api_key, version, _ = _read_frame(payload)
    return api_key, version


def decode_value(payload: bytes) -> ApiMessageAndVersion:
    """Decode the message in a metadata record's value.

    A type or version unknown to this process results in an `UnknownRecord`. Raises CorruptDataError for bytes that are
    not a framed message, or that continue after it.
    """
    head = payload[:3]
    decode = _decoders.get(head)
    if decode is None:
        api_key, version, start = _read_frame(payload)
        found = _decoder_for(api_key, version)
        if found is None:
            return ApiMessageAndVersion(UnknownRecord(api_key, version, payload), version)
        decode = found
        if start == 3 and api_key not in FOREIGN_RECORDS:  # those are not known for ever
            _decoders[head] = decode
    else:
        version = head[2]
        start = 3
    try:
        message, end = decode(payload, start)
    except READ_FAULTS as fault:
        raise CorruptDataError(_unreadable(payload, describe_fault(fault))) from None
    if end != len(payload):
        raise CorruptDataError(_unreadable(payload, f"{len(payload) - end} bytes are left behind it"))
    framed = _new(_Mutable)
    framed.message = message
    framed.version = version
    framed.__class__ = ApiMessageAndVersion
    return framed  # type: ignore[no-any-return]


def encode_value(message: AnyMessage, version: int) -> bytes:
    """Encode a metadata record as a framed value; raises UnwritableMetadataError as `encode_message` does."""
    if isinstance(message, UnknownRecord):
        return message.payload
    return bytes(encode_message(message, version, bytearray(_frame_of(type(message), version))))


@memoized
def _frame_of(cls: type[Message], version: int) -> bytes:
    if record_class(cls.API_KEY) is not cls:
        raise UnwritableMetadataError(f"{cls.__name__} is not a metadata record; it can't have a frame.")
    return bytes((FRAME_VERSION,)) + uvarint(cls.API_KEY) + uvarint(max(version, 0))


def decode_control(control_type: int, value: bytes) -> ApiMessageAndVersion:
    """Decode the message in a control record's value; its version is the number in the value's first two bytes.

    An unknown type or version results in an `UnknownRecord`. Raises CorruptDataError for bytes that are not such a
    message.
    """
    version = control_version(value)
    cls = control_records.CONTROL_RECORDS.get(control_type)
    if cls is None or version not in cls.VERSIONS:
        if version < 0 and cls is not None:
            raise CorruptDataError(f"A {cls.__name__} has the version {version}.")
        return ApiMessageAndVersion(UnknownRecord(control_type, version, value), version)
    return ApiMessageAndVersion(decode_message(cls, version, value), version)


def encode_control(message: AnyMessage) -> tuple[bytes, bytes]:
    """Encode the key and value of a control record, at the message's own `version`; raises as `encode_message` does."""
    if isinstance(message, UnknownRecord):
        return control_key(message.api_key), message.payload
    if control_records.CONTROL_RECORDS.get(message.API_KEY) is not type(message):
        raise UnwritableMetadataError(f"{type(message).__name__} is not a control record.")
    version: int = message.version  # type: ignore[attr-defined] # every control record declares it
    return control_key(message.API_KEY), bytes(encode_message(message, version))


def control_key(control_type: int) -> bytes:
    """Encode the key of a control record."""
    return _CONTROL_KEY.pack(0, control_type)


def control_type_of(key: bytes) -> int:
    """Decode the control type in a key; a later version of the key may be longer.

    Raises CorruptDataError for an invalid key.
    """
    if len(key) < _CONTROL_KEY.size:
        raise CorruptDataError(f"The key of a control record has {len(key)} bytes; it needs {_CONTROL_KEY.size}.")
    key_version, control_type = _CONTROL_KEY.unpack_from(key)
    if key_version < 0 or control_type < 0:
        raise CorruptDataError(f"The key of a control record has version {key_version} and type {control_type}.")
    return int(control_type)


def control_version(value: bytes) -> int:
    """The version at the start of a control record's value; 0 if the value is too short."""
    return int.from_bytes(value[:2], "big", signed=True) if len(value) >= 2 else 0


def record_type(control: bool, api_key: int, version: int) -> str:
    """The name of a record's type, as in Kafka's dump tool; `UNKNOWN` for a type or version that Kafka does not have.

    So a lake's log is the same whichever foreign types a process knows.
    """
    cls = (control_records.CONTROL_RECORDS if control else METADATA_RECORDS).get(api_key)
    if cls is None or version not in cls.VERSIONS:
        return UNKNOWN
    return control_records.CONTROL_NAMES[api_key] if control else type_name(cls)


_decoders: dict[bytes, Decoder] = {}  # by the three bytes of a frame whose numbers are below 128


def _decoder_for(api_key: int, version: int) -> Decoder | None:
    cls = record_class(api_key)
    return None if cls is None or version not in cls.VERSIONS else message_decoder(cls, version)


def with_short_frame(payload: bytes) -> bytes:
    """Return a metadata record's value with each number of its frame in one byte: Kafka also reads longer forms.

    The value is unchanged if a number needs more bytes, or if the value has no frame.
    """
    if len(payload) >= 3 and payload[0] == FRAME_VERSION and max(payload[1:3]) < 0x80:
        return payload
    try:
        api_key, version, start = _read_frame(payload)
    except CorruptDataError:
        return payload
    return bytes((FRAME_VERSION, api_key, version)) + payload[start:] if max(api_key, version) < 0x80 else payload


def _read_frame(payload: bytes) -> tuple[int, int, int]:
    try:
        frame_version, position = read_uvarint(payload, 0)
        api_key, position = read_uvarint(payload, position)
        version, position = read_uvarint(payload, position)
    except (IndexError, MalformedError):
        raise CorruptDataError("The value of a record is too short or broken: it has no frame.") from None
    if frame_version != FRAME_VERSION:
        raise CorruptDataError(
            f"The value of a record has the frame version {frame_version}; metadata records have {FRAME_VERSION}."
        )
    if api_key > _LARGEST_SHORT or version > _LARGEST_SHORT:
        raise CorruptDataError(f"The value of a record has the type {api_key} and version {version}: out of range.")
    return api_key, version, position


def _unreadable(payload: bytes, reason: str) -> str:
    api_key, version = read_frame(payload)
    cls = record_class(api_key)
    assert cls is not None, "its bytes were to be decoded"
    return f"The bytes of a {cls.__name__} version {version} can't be read: {reason}."
