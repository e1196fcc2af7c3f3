"""A lake of very many versions without a checkpoint is opened and read while a fast writer appends to it."""

from __future__ import annotations

import os
from pathlib import Path

from kraftlake.metadata_log.log import MetadataLog
from tests.metadata_log.live_writer import writing
from tests.metadata_log.log_batches import UnsyncedDisk, noop_batch

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
VERSIONS, OPENS = (20_000, 2) if LONG else (400, 3)


def test_each_open_beside_a_fast_writer_finds_all_that_was_acknowledged_before_it(tmp_path: Path) -> None:
    log = MetadataLog.create(tmp_path / "lake", disk=UnsyncedDisk())
    for offset in range(VERSIONS):
        log.append([noop_batch(offset)])
    with writing(tmp_path / "lake") as writer:
        assert writer.stdout is not None
        for _ in range(OPENS):
            acknowledged = int(writer.stdout.readline().partition(":")[0])
            opened = MetadataLog.open(tmp_path / "lake")
            assert opened.end_offset > acknowledged >= VERSIONS
            offsets = opened.rows(columns=["offset"]).column("offset")
            assert offsets.to_pylist() == list(range(opened.end_offset))
    appended = MetadataLog.open(tmp_path / "lake", disk=UnsyncedDisk())
    appended.append([noop_batch(appended.end_offset)])
