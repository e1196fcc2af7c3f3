"""The offset at a time where a snapshot and the log do not meet."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

import kraftlake
from kraftlake.metadata_log.maintenance.upkeep import Upkeep
from kraftlake.replay.imports.import_log import import_source
from kraftlake.replay.reading.open_reader import LogReader
from kraftlake.replay.reading.times import offset_at
from kraftlake.runtime.errors import OffsetError
from kraftlake.runtime.moments import EPOCH
from tests.replay.made_logs import TIME, MadeLog, log_of, metadata_version, topic, trimmed, write_directory

BATCHES = log_of(1, [metadata_version()], *([topic(number)] for number in range(1, 9)))
"""Offsets 0 to 9, a millisecond each."""


def found(reader: LogReader, millis: int) -> int:
    return offset_at(reader, EPOCH + timedelta(milliseconds=TIME + millis))


def trimmed_lake(folder: Path) -> LogReader:
    """A lake whose log starts behind its older snapshot."""
    made = trimmed(BATCHES, 0, 3, 8)
    import_source(write_directory(folder / "begin", BATCHES[:6]), folder / "lake")
    import_source(write_directory(folder / "whole", BATCHES, snapshots=made.snapshots), folder / "lake")
    Upkeep(folder / "lake").trim(8, stream_lag_ms=0, force=True)
    return kraftlake.open(folder / "lake").reader


@pytest.mark.parametrize("is_lake", [False, True], ids=["made", "lake"])
def test_a_time_between_a_snapshot_and_the_log_behind_it_has_no_offset(tmp_path: Path, *, is_lake: bool) -> None:
    reader = trimmed_lake(tmp_path) if is_lake else trimmed(BATCHES, 6, 3, 8)
    assert reader.start_offset == 6
    assert [found(reader, millis) for millis in (2, 6, 9, 99)] == [2, 6, 9, 9]
    for millis in (3, 5):
        with pytest.raises(
            OffsetError, match=r"lacks offsets 3 to 5, which .*\.00[35]Z: it begins with .* 6\. Take .* 2, of .*\.002Z"
        ):
            found(reader, millis)


def test_nor_has_one_between_the_log_and_a_snapshot_ahead_of_it() -> None:
    snapshots = trimmed(BATCHES, 0, 6, 8).snapshots
    reader = MadeLog(records=tuple(BATCHES[:4]), snapshots=snapshots)
    assert [found(reader, millis) for millis in (2, 3, 5, 7, 99)] == [2, 3, 5, 7, 7]
    with pytest.raises(
        OffsetError, match=r"lacks offsets 4 to 5, .* log ends with offset 3\. Take offset 3, of .*\.003Z"
    ):
        found(reader, 4)
    with pytest.raises(OffsetError, match=r"lacks offsets 6 to 7, .* Take offset 5"):
        found(reader, 6)
