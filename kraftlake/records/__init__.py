"""The vocabulary: every record of a KRaft metadata log, its wire and JSON form, and the batches that hold records.

The Arrow forms are in `kraftlake.records.rows` and `kraftlake.records.typed_rows`, which import pyarrow; this door
does not.

What is re-exported here is imported when it is first asked for, so that naming the room costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftlake.runtime.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from kraftlake.records.batch import DEFAULT, BatchLimits, RecordBatch, TornBatchError, encode_batch, read_batches
    from kraftlake.records.batch_header import HEADER_SIZE, BatchHeader, batch_headers, parse_header
    from kraftlake.records.batch_values import BatchValues
    from kraftlake.records.codec import decode_message, encode_message
    from kraftlake.records.control_records import CONTROL_NAMES, CONTROL_RECORDS
    from kraftlake.records.json_form import from_json, to_json
    from kraftlake.records.log_record import LogRecord, log_records
    from kraftlake.records.metadata_records import METADATA_RECORDS, PartitionChangeRecord, PartitionRecord, TopicRecord
    from kraftlake.records.metadata_version import MetadataVersion
    from kraftlake.records.record_ids import BROKER_FIELDS, TOPIC_ID_AT
    from kraftlake.records.redaction import (
        REDACTED,
        is_public,
        is_sensitive_config,
        redact_config,
        redact_record_json,
        secret_names,
    )
    from kraftlake.records.rows import LOG_SCHEMA
    from kraftlake.records.schema import LONGEST_STRING, Message, Struct, type_name
    from kraftlake.records.serde import (
        UNKNOWN,
        AnyMessage,
        ApiMessageAndVersion,
        UnknownRecord,
        decode_control,
        decode_value,
        encode_control,
        encode_value,
        read_frame,
        record_type,
        with_short_frame,
    )
    from kraftlake.records.uuid import Uuid
    from kraftlake.records.varint import MalformedError


__all__ = [
    "BROKER_FIELDS",
    "CONTROL_NAMES",
    "CONTROL_RECORDS",
    "DEFAULT",
    "HEADER_SIZE",
    "LOG_SCHEMA",
    "LONGEST_STRING",
    "METADATA_RECORDS",
    "REDACTED",
    "TOPIC_ID_AT",
    "UNKNOWN",
    "AnyMessage",
    "ApiMessageAndVersion",
    "BatchHeader",
    "BatchLimits",
    "BatchValues",
    "LogRecord",
    "MalformedError",
    "Message",
    "MetadataVersion",
    "PartitionChangeRecord",
    "PartitionRecord",
    "RecordBatch",
    "Struct",
    "TopicRecord",
    "TornBatchError",
    "UnknownRecord",
    "Uuid",
    "batch_headers",
    "decode_control",
    "decode_message",
    "decode_value",
    "encode_batch",
    "encode_control",
    "encode_message",
    "encode_value",
    "from_json",
    "is_public",
    "is_sensitive_config",
    "log_records",
    "parse_header",
    "read_batches",
    "read_frame",
    "record_type",
    "redact_config",
    "redact_record_json",
    "secret_names",
    "to_json",
    "type_name",
    "with_short_frame",
]

__getattr__, __dir__ = lazy_exports(__name__, __all__)
