"""The default of a field in Kafka's message format. Source: org.apache.kafka.message.FieldSpec.fieldDefault."""

from __future__ import annotations

import struct
from typing import Any, Final

import attrs

from kraftlake.records.json_form import RANGES
from kraftlake.records.schema import ZERO, FieldSpec, Primitive, Versions
from kraftlake.records.uuid import Uuid

_BOOLS: Final = {"": False, "false": False, "true": True}


def default_of_text(spec: FieldSpec, given: Any) -> Any:
    """The value of a field that is not there; ValueError says what is wrong with a given default."""
    if isinstance(given, (dict, list)):
        raise ValueError("is no text")
    text = "" if given is None else str(given).lower() if isinstance(given, bool) else str(given)
    if text == "null":
        if spec.nullable is None or not _covers(spec.nullable, spec.versions):
            raise ValueError("is null, but the field can't be null in each of its versions")
        return None
    if spec.array or not isinstance(spec.type, Primitive) or spec.type is Primitive.BYTES:
        if text:
            raise ValueError(f"is {text!r}; such a field is empty or null")
        if spec.array:
            return ()
        return b"" if isinstance(spec.type, Primitive) else attrs.Factory(spec.type)
    return _one(spec.type, text)


def _covers(whole: Versions, part: Versions) -> bool:
    is_open = whole.high is None
    return whole.low <= part.low and (is_open or (part.high is not None and part.high <= (whole.high or 0)))


def _one(type_: Primitive, text: str) -> Any:
    if type_ is Primitive.STRING:
        return text
    try:
        if type_ is Primitive.BOOL:
            return _BOOLS[text]
        if not text:
            return ZERO.get(type_, 0)
        if type_ is Primitive.UUID:
            return Uuid.from_string(text)
        if type_ is Primitive.FLOAT64:
            return struct.unpack(">d", struct.pack(">d", float(text)))[0]
        value = int(text, 16 if text.lower().startswith(("0x", "-0x")) else 10)
    except (ValueError, KeyError):
        raise ValueError(f"is {text!r}, which is no {type_.value}") from None
    low, high = RANGES[type_]
    if not low <= value <= high:
        raise ValueError(f"is {text}, which is beyond {type_.value}")
    return value
