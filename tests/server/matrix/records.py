"""What the cases of records share: requests that produce and fetch, and batches."""

from __future__ import annotations

import time
from typing import Any
from uuid import UUID

from simulator.data_batches import batch
from tests.server.matrix.sides import Side

UNKNOWN = UUID(int=77)
"""The id of the topic `unknown`, which no side has."""
NOW = int(time.time() * 1000)
DAY = 86_400_000
NEW_PRODUCER = {"transactional_id": None, "transaction_timeout": 60_000, "producer_id": -1, "producer_epoch": -1}
"""The fields of an InitProducerId request."""


def produced(side: Side, topic: str, *parts: tuple[int, bytes | None], **more: Any) -> dict[str, Any]:
    """The fields of a Produce request."""
    partitions = [{"index": index, "records": records} for index, records in parts]
    id_ = side.id_of(topic) if topic != "unknown" else UNKNOWN
    return {
        "acks": -1, "timeout": 10_000,
        "topic_data": [{"name": topic, "topic_id": id_, "partition_data": partitions}], **more,
    }  # fmt: skip


def good(*values: bytes, **more: Any) -> bytes:
    """A batch of records of now."""
    return batch(*(values or (b"a", b"b")), times=(NOW,) * len(values or "ab"), **more)


def by_name(topic: str, index: int, data: bytes | None, **more: Any) -> dict[str, Any]:
    """The fields of a Produce request before version 13."""
    topic_data = [{"name": topic, "partition_data": [{"index": index, "records": data}]}]
    return {"acks": -1, "timeout": 10_000, "topic_data": topic_data, **more}


def fetched(side: Side, *topics: tuple[str, list[dict[str, Any]]], **more: Any) -> dict[str, Any]:
    """The fields of a Fetch request."""
    found = [
        {
            "topic": name, "topic_id": UNKNOWN if name == "unknown" else side.id_of(name),
            "partitions": [
                {
                    "current_leader_epoch": -1, "last_fetched_epoch": -1, "log_start_offset": -1,
                    "partition_max_bytes": 1 << 20, **one,
                }
                for one in partitions
            ],
        }
        for name, partitions in topics
    ]  # fmt: skip
    return {
        "replica_id": -1, "max_wait": 0, "min_bytes": 1, "max_bytes": 1 << 24, "isolation_level": 0, "session_id": 0,
        "session_epoch": -1, "topics": found, "forgotten_topics_data": [], "rack_id": "", **more,
    }  # fmt: skip


def read(side: Side, label: str, topic: str, index: int) -> None:
    """Fetch a partition from its start, and keep what is there."""
    side.call(label, "fetch", 12, **fetched(side, (topic, [{"partition": index, "fetch_offset": 0}])))


def await_producer_ids(side: Side) -> None:
    """Wait until broker 1 has ids to give."""
    side.wait_for(lambda: not side.ask("init_producer_id", 4, **NEW_PRODUCER).error_code, "producer ids")
