"""Answers as plain values, without what differs between any two clusters: ids, ports, times, metadata offsets."""

from __future__ import annotations

import datetime
import json
import time
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any
from uuid import UUID

import attrs
from kio.schema.index import api_key_map

from kraftlake.records.batch_header import COMPRESSION_BITS, COMPRESSIONS, CRC_FROM, HEADER
from kraftlake.records.compression import decompress
from kraftlake.records.crc32c import crc32c
from kraftlake.replica_manager.logs.log_batch import headers

_SAID = frozenset({"error_message", "batch_index_error_message"})
"""Texts for people: whether there is one is compared, not which."""
_MOVING = frozenset({
    "last_fetch_timestamp", "last_caught_up_timestamp", "log_end_offset", "total_bytes",
    "usable_bytes",
})  # fmt: skip
_NEAR_MS = 3_600_000
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MILLISECOND = datetime.timedelta(milliseconds=1)


@attrs.define
class Normalizer:
    """Makes answers of one cluster comparable: `nodes` has the ids of nodes by their ports, `topics` names by id."""

    nodes: dict[int, int]
    topics: dict[UUID, str] = attrs.field(factory=dict)
    producers: list[int] = attrs.field(factory=list)

    def normal(self, value: Any, name: str = "") -> Any:
        """A value as JSON has it; lists that have no order are sorted."""
        special = self._special(name, value)
        if special is not None:
            return special
        if is_dataclass(value):
            if ".describe_quorum." in type(value).__module__ and hasattr(value, "high_watermark"):
                # both move all the time
                value = replace(
                    value, high_watermark=min(0, value.high_watermark), leader_epoch=min(1, value.leader_epoch)
                )
            return {field.name: self.normal(getattr(value, field.name), field.name) for field in fields(value)}
        if isinstance(value, tuple):
            return _without_order([self.normal(one) for one in value])
        return self._plain(value)

    def _plain(self, value: Any) -> Any:
        if isinstance(value, Enum):
            return value.name
        if isinstance(value, UUID):
            return self.topics.get(value, "an id")
        if isinstance(value, datetime.timedelta):
            return value / _MILLISECOND
        if isinstance(value, datetime.datetime):
            return near((value - _EPOCH) // _MILLISECOND)
        if isinstance(value, bytes):
            return value.hex()
        return value

    def _special(self, name: str, value: Any) -> Any:
        """The value of a field that is not compared as it is; None for any other."""
        if name in _SAID:
            return "said" if value else "nothing"
        if name == "cluster_id" and value is not None:
            return "the cluster's id"
        if name == "port":
            return f"the port of {self.nodes.get(value, value)}"
        if name == "controller_id" and value in self.nodes.values() and value < 100:
            return "any broker"
        if name == "finalized_features_epoch":
            return "an offset" if value >= 0 else value
        if name == "api_keys":
            return {
                api_key_map.get(int(one.api_key), str(one.api_key)): [one.min_version, one.max_version] for one in value
            }
        if name in _MOVING and value >= 0:
            return "a number"
        if name in ("log_dir", "directory_id", "replica_directory_id"):
            return "a directory"
        if name == "session_id":
            return "a session" if value else "no session"
        if name == "timestamp" and isinstance(value, int):
            return near(value)
        if name == "producer_id" and value >= 0:
            if value not in self.producers:
                self.producers.append(value)
            return f"producer {self.producers.index(value)}"
        if name == "records" and value is not None:
            return list(batches_of(bytes(value)))
        return None


def _without_order(values: list[Any]) -> Any:
    """The values by their names or numbers where each has one of its own, sorted otherwise."""
    for key in ("name", "partition_index", "partition", "resource_name", "topic", "topic_id"):
        found = [one[key] for one in values if isinstance(one, dict) and key in one]
        if values and len(found) == len(values) == len(set(found)):
            return {str(one[key]): one for one in values}
    return sorted(values, key=lambda one: json.dumps(one, sort_keys=True))


def near(ms: int) -> int | str:
    """A time in epoch ms, without the difference of a run."""
    return "now" if abs(ms - time.time() * 1000) < _NEAR_MS else ms


def batches_of(data: bytes) -> Iterator[dict[str, Any]]:
    """The batches in the answer to a fetch: their headers, and a checksum of their records."""
    end = 0
    for start, end, header in headers(data):
        (base, _, epoch, _, crc, attributes, last_delta, first, largest, producer, producer_epoch, sequence, count) = (
            header
        )
        yield {
            "base": base, "epoch": epoch, "attributes": attributes, "last": base + last_delta, "first": near(first),
            "largest": near(largest), "producer": producer, "producer_epoch": producer_epoch, "sequence": sequence,
            "count": count, "crc": crc == crc32c(data[start + CRC_FROM : end]),
            "records": crc32c(_unpacked(data[start + HEADER.size : end], attributes)),
        }  # fmt: skip
    if end < len(data):
        yield {"cut off": len(data) - end}


def _unpacked(records: bytes, attributes: int) -> bytes:
    """Records as they are without compression, whose bytes depend on the library."""
    kind = attributes & COMPRESSION_BITS
    return decompress(COMPRESSIONS[kind], records, 1 << 24) if kind else records


def differences(ours: Any, theirs: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where two plain values differ, and what is there."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in {**ours, **theirs}:
            yield from differences(ours.get(key, "absent"), theirs.get(key, "absent"), f"{path}.{key}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for place, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(one, other, f"{path}[{place}]")
    elif ours != theirs:
        yield path, ours, theirs
