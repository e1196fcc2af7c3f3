"""One record of a log with its place: one line of `kraftlake log`."""

from __future__ import annotations

import base64
import functools
from collections.abc import Iterator
from typing import Any

import attrs

from kraftlake.records.batch import RecordBatch
from kraftlake.records.control_records import CONTROL_NAMES
from kraftlake.records.fast_construct import mutable_class
from kraftlake.records.foreign.registered import FOREIGN_RECORDS
from kraftlake.records.json_form import to_json
from kraftlake.records.schema import type_name
from kraftlake.records.serde import UNKNOWN, AnyMessage, ApiMessageAndVersion, UnknownRecord, decode_value


@attrs.frozen(kw_only=True, weakref_slot=False)
class LogRecord:
    """A decoded record at its offset.

    `epoch` is the leader epoch of its batch, `timestamp` its time (epoch ms, -1 for none), `type` the name in Kafka's
    dump tool (`UNKNOWN` if `message` is an UnknownRecord), `control` whether it is a control record.
    """

    offset: int
    epoch: int
    timestamp: int
    type: str
    version: int
    message: AnyMessage
    control: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return one line of `kraftlake log --json`, including secrets."""
        head: dict[str, Any] = {
            "offset": self.offset,
            "epoch": self.epoch,
            "timestamp": self.timestamp,
            "type": self.type,
            "version": self.version,
        }
        if isinstance(self.message, UnknownRecord):
            payload = base64.b64encode(self.message.payload).decode("ascii")
            return {**head, "apiKey": self.message.api_key, "data": payload}
        return {**head, "data": to_json(self.message, self.version)}


_Mutable = mutable_class(LogRecord)
_new = object.__new__


@functools.lru_cache(maxsize=4096)
def _decode_again(value: bytes) -> ApiMessageAndVersion:
    """The same as `decode_value`, with a cache: a repeated value, such as a no-op, is decoded once, into one object."""
    return decode_value(value)


def log_records(batch: RecordBatch) -> Iterator[LogRecord]:
    """Decode the records of a batch; raises CorruptDataError with the offset of the first broken one."""
    decode = decode_value if FOREIGN_RECORDS else _decode_again  # a cached record may be unknown
    for index, (message, version) in enumerate((m.message, m.version) for m in batch.messages(decode)):
        if isinstance(message, UnknownRecord):
            name = UNKNOWN
        else:
            name = CONTROL_NAMES[message.API_KEY] if batch.control else type_name(type(message))
        record = _new(_Mutable)
        record.offset = batch.base_offset + index
        record.epoch = batch.epoch
        record.timestamp = batch.timestamps[index]
        record.type = name
        record.version = version
        record.message = message
        record.control = batch.control
        record.__class__ = LogRecord
        yield record
