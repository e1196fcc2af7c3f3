from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kraftlake.kafka_files.directory import open_directory
from kraftlake.kafka_files.open_source import open_kafka_files
from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.runtime.errors import CorruptDataError, NotASourceError
from tests.kafka_files.sample_files import CRASH_TORN, KAFKA_44, NEWEST_44, SEGMENTS_44, copy_of


def test_a_segment_alone_is_a_log_from_its_first_offset_on() -> None:
    log = open_kafka_files(KAFKA_44 / SEGMENTS_44[1])

    assert (log.kind, log.start_offset, log.end_offset) == (SourceKind.SEGMENT, 2027, 3532)
    assert list(log.batches()) == list(open_directory(KAFKA_44).batches(2027, 3531))
    assert (log.snapshots, log.torn, log.name) == ((), None, SEGMENTS_44[1])
    assert log.cluster_id == "VXUoBgBGTaWWfCM4Toybuw"


def test_the_torn_tail_of_a_segment_alone_is_named(tmp_path: Path) -> None:
    shutil.copy(CRASH_TORN / "00000000000000002265.log", tmp_path / "renamed")

    log = open_kafka_files(tmp_path / "renamed")

    assert log.torn is not None
    assert (log.torn.file, log.torn.position, log.torn.offset) == ("renamed", 61042, 3467)
    assert (log.start_offset, log.end_offset) == (2265, 3467)
    assert log.cluster_id is None


@pytest.mark.parametrize("name", [NEWEST_44, "renamed", "renamed.log"])
def test_a_snapshot_alone_is_a_log_without_batches_that_starts_at_its_end(tmp_path: Path, name: str) -> None:
    shutil.copy(KAFKA_44 / NEWEST_44, tmp_path / name)

    log = open_kafka_files(tmp_path / name)

    (snapshot,) = log.snapshots
    end = 4593 if name == NEWEST_44 else 0
    assert (log.kind, log.start_offset, log.end_offset) == (SourceKind.SNAPSHOT, end, end)
    assert list(log.batches()) == []
    assert (snapshot.finished, snapshot.named) == (True, name == NEWEST_44)
    assert list(snapshot.batches()) == list(open_directory(KAFKA_44).snapshots[2].batches())


def test_a_directory_is_opened_by_the_same_door(tmp_path: Path) -> None:
    assert open_kafka_files(copy_of(KAFKA_44, tmp_path)).kind is SourceKind.DIRECTORY


def test_a_lake_is_not_opened_by_that_door(tmp_path: Path) -> None:
    (tmp_path / "log" / "_delta_log").mkdir(parents=True)

    with pytest.raises(NotASourceError, match="is a lake"):
        open_kafka_files(tmp_path)


def test_a_segment_that_does_not_begin_with_a_batch_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_bytes(b"\0" * 10)

    with pytest.raises(CorruptDataError, match="does not start with a whole record batch"):
        open_kafka_files(tmp_path / "x.log", SourceKind.SEGMENT)
