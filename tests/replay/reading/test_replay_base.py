from __future__ import annotations

from pathlib import Path

import pytest

import kraftlake
from kraftlake.kafka_files.file_names import segment_name
from kraftlake.kafka_files.writer import write_segment
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.replay.imports.import_log import import_source
from kraftlake.runtime.errors import OffsetError
from kraftlake.tables.catch_up.updating import update_tables
from tests.replay.made_logs import begin, data, end, metadata_version, topic
from tests.replay.sample_logs import directory_of

END = 2_000


@pytest.fixture(scope="module")
def whole() -> kraftlake.Source:
    return kraftlake.open(directory_of("kafka-4.4"))


def log_from(whole: kraftlake.Source, folder: Path, start: int) -> kraftlake.Source:
    """The sample's log from an offset on, with no snapshot beside it."""
    folder.mkdir()
    write_segment(folder / segment_name(start), whole.batches(start, END))
    return kraftlake.open(folder, cluster_id=whole.cluster_id)


def test_a_log_without_its_first_leader_change_has_every_image_that_the_whole_one_has(
    whole: kraftlake.Source, tmp_path: Path
) -> None:
    (first,) = whole.batches(0, 0)
    assert first.control
    assert first.record_count == 1
    late = log_from(whole, tmp_path / "log", 1)
    assert late.start_offset == 1
    for offset in (1, 2, 500, late.end_offset - 1):
        assert late.image(offset).to_json() == whole.image(offset, from_snapshot=False).to_json()
    assert not late.verify().problems
    end = late.end_offset - 1
    assert list(late.events(1, end)) == list(whole.events(1, end))
    with pytest.raises(OffsetError):
        log_from(whole, tmp_path / "later", 3).image(10)


def test_tables_of_a_log_without_its_first_leader_change_are_those_of_the_whole(
    whole: kraftlake.Source, tmp_path: Path
) -> None:
    rows = {}
    for start in (0, 1):
        lake = tmp_path / f"lake-{start}"
        import_source(log_from(whole, tmp_path / f"log-{start}", start), lake)
        assert MetadataLog.open(lake).start_offset == start
        update_tables(lake, ["partition_history", "feature_history", "broker_history"])
        rows[start] = {
            table: kraftlake.state_at(lake, 1_500, table).to_pylist()
            for table in ("partition_history", "feature_history", "broker_history")
        }
        assert rows[start]["partition_history"]
    assert rows[0] == rows[1]


def test_a_first_batch_of_several_records_at_offset_1_is_taken_whole(tmp_path: Path) -> None:
    write_segment(tmp_path / segment_name(1), [data(1, begin(), metadata_version(), topic(0), topic(1), end())])
    log = kraftlake.open(tmp_path)
    assert len(log.image().topics.topics_by_name()) == 2
    assert log.image().offset == 5
    assert not log.verify().problems
    assert [event["offset"] for event in log.events() if event["kind"] == "topic_created"] == [5, 5]
