"""A real log with records of AutoMQ's types in between, which an encoder of the tests has written, and without them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import attrs

import kraftlake
from kraftlake.records.batch import RecordBatch, encode_batch
from tests.cli.made_logs import directory_of
from tests.cli.running import DIRECTORY, ROOT
from tests.records.foreign.made_schemas import encoded, frame

AUTOMQ: Final = ROOT / "docs" / "examples" / "automq"
SECRET: Final = "pass-of-a-fork"

RECORDS: Final[tuple[tuple[str, int, Mapping[str, Any]], ...]] = (
    ("S3ObjectRecord", 1, {"ObjectId": 7, "ObjectSize": 1 << 40, "ObjectState": 2, "Attributes": -1, "Timestamp": 99}),
    ("KVRecord", 1, {"KeyValues": [{"Key": f"{SECRET}-1", "Value": f"{SECRET}-2".encode(), "Namespace": None}]}),
    ("S3StreamRecord", 1, {"StreamId": 3, "Epoch": 1, "RangeIndex": 0, "StartOffset": 5, "StreamState": 1,
                           "Tags": [{"Key": f"{SECRET}-3", "Value": f"{SECRET}-4"}]}),
    ("RangeRecord", 0, {"StreamId": 3, "Epoch": 1, "RangeIndex": 0, "StartOffset": 5, "EndOffset": 9, "NodeId": 1}),
    ("NodeWALMetadataRecord", 0, {"NodeId": 1, "NodeEpoch": 4, "FailoverMode": True}),
    ("RemoveKVRecord", 0, {"Keys": [f"{SECRET}-5"]}),
)  # fmt: skip
"""A type, a version and the values of each record."""


def value_of(name: str, version: int, values: Mapping[str, Any]) -> bytes:
    """The value of a record of one of AutoMQ's types."""
    schema = json.loads((AUTOMQ / f"{name}.json").read_text())
    return frame(schema["apiKey"], version) + encoded(schema["fields"], values, version, {})


def foreign_log(folder: Path) -> Path:
    """The sample's log, with a batch of foreign records behind every tenth of its batches."""
    return directory_of(folder, _batches(tuple(value_of(*record) for record in RECORDS)))


def plain_log(folder: Path) -> Path:
    """The same log with no-op records in place of the foreign ones."""
    return directory_of(folder, _batches((frame(20, 0) + b"\x00",) * len(RECORDS)))


@cache
def _sample() -> list[RecordBatch]:
    return list(kraftlake.open(DIRECTORY).batches())


def _batches(values: tuple[bytes, ...]) -> list[RecordBatch]:
    made: list[RecordBatch] = []
    for number, batch in enumerate(_sample()):
        base = made[-1].last_offset + 1 if made else 0
        made.append(attrs.evolve(batch, base_offset=base))
        if number % 10 == 1:
            times = (batch.timestamp,) * len(values)
            between = attrs.evolve(made[-1], base_offset=made[-1].last_offset + 1, values=values, timestamps=times)
            made.append(attrs.evolve(between, control=False, control_types=()))
    return made


def with_foreign_snapshot(folder: Path) -> Path:
    """A copy of the sample's directory whose newest snapshot has foreign records, as a fork writes them."""
    shutil.copytree(DIRECTORY.parent, folder)
    snapshot = max((folder / DIRECTORY.name).glob("*.checkpoint"))
    header, content, footer = kraftlake.open(snapshot).batches()
    values = (*content.values, *(value_of(*record) for record in RECORDS))
    content = attrs.evolve(content, values=values, timestamps=(content.timestamp,) * len(values))
    footer = attrs.evolve(footer, base_offset=content.last_offset + 1)
    snapshot.write_bytes(b"".join(bytes(encode_batch(batch)) for batch in (header, content, footer)))
    return folder / DIRECTORY.name
