"""The samples, as these tests use them."""

from __future__ import annotations

import gzip
import json
import shutil
from functools import cache
from pathlib import Path
from typing import Any

from kraftlake.records.batch import RecordBatch
from kraftlake.records.metadata_records import NoOpRecord
from kraftlake.records.serde import ApiMessageAndVersion

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
METADATA = "__cluster_metadata-0"
KAFKA_44 = SAMPLES / "kafka-4.4" / "log" / METADATA
CRASH_TORN = SAMPLES / "crash-torn" / "log" / METADATA
SEGMENTS_44 = tuple(f"{base:020d}.log" for base in (0, 2027, 3532, 5488))
NEWEST_44 = "00000000000000004593-0000000002.checkpoint"


@cache
def expected(sample: str, name: str) -> Any:
    return json.loads(gzip.decompress((SAMPLES / sample / "expected" / f"{name}.json.gz").read_bytes()))


def copy_of(directory: Path, tmp_path: Path, name: str = METADATA) -> Path:
    """A copy that a test may spoil, with the meta.properties beside it."""
    target = tmp_path / name
    shutil.copytree(directory, target)
    shutil.copy(directory.parent / "meta.properties", tmp_path)
    return target


def bulky(base_offset: int, count: int, size: int = 1000) -> RecordBatch:
    """A batch of `count` records of `size` bytes each."""
    times = (1_700_000_000_000,) * count
    return RecordBatch(
        base_offset=base_offset, epoch=1, timestamp=times[0], values=(bytes(size),) * count, timestamps=times
    )


def no_ops(base_offset: int, count: int = 1, epoch: int = 1, timestamp: int = 1_700_000_000_000) -> RecordBatch:
    return RecordBatch.of(base_offset, epoch, timestamp, [ApiMessageAndVersion(NoOpRecord(), 0)] * count)
