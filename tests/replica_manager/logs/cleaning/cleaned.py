"""Compacted logs for tests, and what their records are."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from random import Random

from kraftlake.records.batch_header import header_at
from kraftlake.records.varint import read_varint, read_varlong
from kraftlake.replica_manager.logs.cleaning.batch_content import records_of
from kraftlake.replica_manager.logs.cleaning.cleanable import log_to_clean
from kraftlake.replica_manager.logs.cleaning.log_cleaning import LogCleaning
from kraftlake.replica_manager.logs.cleaning.offset_map import OffsetMap
from kraftlake.replica_manager.logs.disk.disk_log import DiskPartitionLog
from kraftlake.replica_manager.logs.log_batch import LogBatch
from kraftlake.replica_manager.logs.log_config import LogConfig
from simulator.data_batches import keyed

COMPACTED = LogConfig(
    cleanup_policy=("compact",), segment_bytes=500, index_interval_bytes=100, min_cleanable_dirty_ratio=0.01
)
Record = tuple[int, int, bytes | None, bytes | None]
"""Offset, time, key and value."""


def records_in(batch: LogBatch) -> list[Record]:
    """The records of a batch, decoded without the cleaner's loops."""
    header = header_at(batch.data)
    data, at = records_of(batch.data, header)
    found: list[Record] = []
    for _ in range(batch.count):
        size, at = read_varint(data, at)
        end = at + size
        time, at = read_varlong(data, at + 1)
        offset, at = read_varint(data, at)
        key, at = _bytes(data, at)
        value, _ = _bytes(data, at)
        found.append((batch.base_offset + offset, header.base_timestamp + time, key, value))
        at = end
    return found


def _bytes(data: bytes | memoryview, at: int) -> tuple[bytes | None, int]:
    size, at = read_varint(data, at)
    return (None if size < 0 else bytes(data[at : at + size])), at + max(size, 0)


def records_of_log(log: DiskPartitionLog) -> list[Record]:
    return [record for batch in log.batches for record in records_in(batch)]


def latest_values(records: list[Record]) -> dict[bytes, tuple[int, bytes | None]]:
    """The last offset and value of each key."""
    return {key: (offset, value) for offset, _, key, value in records if key is not None}


def fill(log: DiskPartitionLog, count: int = 40, keys: int = 6, seed: int = 1) -> None:
    """Append batches of up to four records of a few keys, some of them tombstones, and commit them."""
    chance = Random(seed)
    for number in range(count):
        records = [
            (b"k%d" % chance.randrange(keys), None if chance.random() < 0.2 else b"v%d" % number)
            for _ in range(chance.randrange(1, 5))
        ]
        log.append_as_leader(keyed(*records, times=(1_000 + number,) * len(records)), 0)
    log.update_high_watermark(log.log_end_offset)


def cleaning_of(
    log: DiskPartitionLog,
    *,
    cleaned_to: int | None = None,
    now_ms: int = 10_000,
    slots: int = 1_000,
    is_there: Callable[[], bool] = lambda: True,
) -> LogCleaning:
    return LogCleaning(
        to_clean=log_to_clean(log, cleaned_to, now_ms), offset_map=OffsetMap(slots, 0.9, (1, 2)), now_ms=now_ms,
        guard=nullcontext, is_there=is_there,
    )  # fmt: skip


def clean(log: DiskPartitionLog, *, cleaned_to: int | None = None, now_ms: int = 10_000, slots: int = 1_000) -> int:
    """Clean a log; returns the end of what is clean."""
    cleaning = cleaning_of(log, cleaned_to=cleaned_to, now_ms=now_ms, slots=slots)
    for _ in cleaning.steps():
        pass
    return cleaning.cleaned_to
