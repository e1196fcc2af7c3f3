"""Compacted logs for tests, and what their records are."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from random import Random

from kraftlake.replica_manager.logs.cleaning.cleanable import log_to_clean
from kraftlake.replica_manager.logs.cleaning.log_cleaning import LogCleaning
from kraftlake.replica_manager.logs.cleaning.offset_map import OffsetMap
from kraftlake.replica_manager.logs.disk.disk_log import DiskPartitionLog
from kraftlake.replica_manager.logs.log_config import LogConfig
from simulator.data_batches import Record, keyed, records_in

COMPACTED = LogConfig(
    cleanup_policy=("compact",), segment_bytes=500, index_interval_bytes=100, min_cleanable_dirty_ratio=0.01
)


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
    guard: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> LogCleaning:
    return LogCleaning(
        to_clean=log_to_clean(log, cleaned_to, now_ms), offset_map=OffsetMap(slots, 0.9, (1, 2)), now_ms=now_ms,
        guard=guard, is_there=is_there,
    )  # fmt: skip


def clean(log: DiskPartitionLog, *, cleaned_to: int | None = None, now_ms: int = 10_000, slots: int = 1_000) -> int:
    """Clean a log; returns the end of what is clean."""
    cleaning = cleaning_of(log, cleaned_to=cleaned_to, now_ms=now_ms, slots=slots)
    for _ in cleaning.steps():
        pass
    return cleaning.cleaned_to
