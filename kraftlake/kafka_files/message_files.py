"""Folders of schemas in Kafka's message format, one file a message."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kraftlake.records.foreign.message_format import METADATA, parse_schema, record_type_of
from kraftlake.records.foreign.registered import DeclaredType
from kraftlake.runtime.errors import UsageError

_LARGEST: Final = 1 << 20
"""Bytes of a file; Kafka's largest schema has 20,000."""


def declared_types(folder: str) -> list[DeclaredType]:
    """The record types that the `.json` files of a folder declare, in the order of the files' names.

    Schemas of other messages than metadata records are passed over. Raises UsageError for a folder that is not there or
    has no schema of a metadata record, and for a file that is not one in Kafka's message format.
    """
    path = Path(folder)
    if not path.is_dir():
        raise UsageError(f"{folder} is no folder: name the one that has the JSON files of Kafka's message format.")
    declared = []
    for file in sorted(path.glob("*.json")):
        if not file.is_file():
            continue
        with file.open("rb") as opened:
            content = opened.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise UsageError(f"{file} has more than {_LARGEST:,} bytes, too many for a schema.")
        try:
            schema = parse_schema(content.decode("utf-8-sig"), str(file))
        except UnicodeDecodeError:
            raise UsageError(f"{file} is not text in UTF-8.") from None
        cls = record_type_of(schema, str(file)) if schema["type"] == METADATA else None
        if cls is not None:
            declared.append(DeclaredType(cls, str(file)))
    if not declared:
        raise UsageError(f"{folder} has no file that declares a metadata record in Kafka's message format.")
    return declared
