"""Since when partitions and brokers are in trouble is what a search at every offset finds."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kraftlake
from kraftlake.api import Source
from kraftlake.diagnosis.doctor.diagnosis import diagnose
from kraftlake.diagnosis.doctor.partition_times import concerned_in
from kraftlake.diagnosis.doctor.timeline import Timeline, read_timeline
from kraftlake.kafka_files.writer import write_segment
from kraftlake.records.batch import RecordBatch
from kraftlake.replay.imports.import_log import import_source
from kraftlake.replay.reading import chunks
from tests.cli.running import DIRECTORY, TORN
from tests.diagnosis.doctor.plain import Thing, since_when, since_when_in_sample
from tests.metadata_logs import metadata_logs


def found_in(timeline: Timeline) -> dict[Thing, int | None]:
    return {
        (name, one.topic_id, one.partition): None if one.since is None else one.since.offset
        for name, every in timeline.partitions.items()
        for one in every
    }


def of_partitions(since: dict[Thing, int]) -> dict[Thing, int]:
    return {thing: offset for thing, offset in since.items() if thing[1]}


def timeline_of(source: Source, at: int | None = None) -> Timeline:
    return read_timeline(source, source.image(at), recent_ms=0, window_ms=0)


@pytest.fixture(params=[False, True], ids=["batch by batch", "in bulk"])
def _any_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log is read in either of the two ways there are."""
    for name in ("BULK_FROM", "BULK_SNAPSHOT_FROM"):
        monkeypatch.setattr(chunks, name, 0 if request.param else 1 << 62)


@pytest.mark.usefixtures("_any_way")
@pytest.mark.xdist_group("since_when_in_sample")
@pytest.mark.parametrize("at", [1280, 4600, None])
def test_the_sample_is_in_trouble_since_when_it_began(at: int | None) -> None:
    expected = of_partitions(since_when_in_sample(at))
    assert len(expected) > 20
    assert found_in(timeline_of(kraftlake.open(DIRECTORY), at)) == expected


def test_unclean_elections_are_the_records_that_say_so() -> None:
    source = kraftlake.open(DIRECTORY)
    expected = [
        record.offset
        for record in source.records(types=["PARTITION_CHANGE_RECORD"])
        if record.message.leader_recovery_state == 1  # type: ignore[union-attr]
    ]
    assert len(expected) > 40
    assert [one.at.offset for one in timeline_of(source).unclean] == expected
    recent = read_timeline(source, source.image(), recent_ms=1795247270000, window_ms=0)
    assert [one.at.offset for one in recent.unclean] == [offset for offset in expected if offset > 1400]


def test_a_log_that_starts_above_0_knows_what_has_begun_in_it(tmp_path: Path) -> None:
    """What its snapshot has already is of an unknown time."""
    import_source(DIRECTORY, tmp_path / "lake")
    whole = found_in(timeline_of(kraftlake.open(DIRECTORY), 4700))
    lake = kraftlake.open(tmp_path / "lake")
    assert found_in(timeline_of(lake, 4700)) == whole
    trimmed = tmp_path / "trimmed"
    trimmed.mkdir()
    for name in ("00000000000000003532.log", "00000000000000004593-0000000002.checkpoint"):
        (trimmed / name).write_bytes((DIRECTORY / name).read_bytes())
    found = found_in(timeline_of(kraftlake.open(trimmed), 4700))
    assert found == {thing: None if offset is None or offset < 4593 else offset for thing, offset in whole.items()}
    assert {None} < set(found.values())


def test_a_log_whose_first_image_is_a_recent_one_says_from_where_it_is_known(tmp_path: Path) -> None:
    for name in ("00000000000000003532.log", "00000000000000005488.log", "00000000000000004593-0000000002.checkpoint"):
        (tmp_path / name).write_bytes((DIRECTORY / name).read_bytes())
    source = kraftlake.open(tmp_path)
    assert timeline_of(source).late_begin == 4593
    assert read_timeline(source, source.image(), recent_ms=1795247400000, window_ms=0).late_begin is None
    assert timeline_of(kraftlake.open(DIRECTORY)).late_begin is None
    diagnosis = diagnose(tmp_path)
    assert diagnosis.unread == (3532, 4593)
    sentences = [finding.sentence for finding in diagnosis.findings if finding.check == "recent_changes"]
    assert sentences == ["12 configs changed in the last 24 hours of the log; the log is read from offset 4593 on"]


def test_a_snapshot_file_has_troubles_and_no_past() -> None:
    source = kraftlake.open(DIRECTORY / "00000000000000004593-0000000002.checkpoint")
    timeline = timeline_of(source)
    assert set(found_in(timeline).values()) == {None}
    assert (timeline.unclean, timeline.settings) == ((), ())


def test_a_gap_in_the_log_leaves_what_follows_the_next_snapshot(tmp_path: Path) -> None:
    for file in DIRECTORY.iterdir():
        if file.name != "00000000000000002027.log":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    whole = found_in(timeline_of(kraftlake.open(DIRECTORY)))
    found = found_in(timeline_of(kraftlake.open(tmp_path)))
    assert found == {thing: None if offset is None or offset < 4593 else offset for thing, offset in whole.items()}


def test_the_last_changes_of_configs_and_acls_are_listed() -> None:
    source = kraftlake.open(DIRECTORY)
    settings = timeline_of(source, 1400).settings
    assert (len([one for one in settings if one.kind == "config"]), len(settings)) == (43, 83)
    assert [one.at.offset for one in settings] == sorted(one.at.offset for one in settings)
    changes = {(one.thing, one.words) for one in settings}
    assert ("topic elr-a", "min.insync.replicas was changed: 2 → 1") in changes
    assert ("topic t-3-dj5", "retention.ms is no longer set, it was 768093") in changes
    assert all(" from " in one.words for one in settings if one.kind == "acl")
    newest = read_timeline(source, source.image(1400), recent_ms=1795247260000, window_ms=0).settings
    assert [one.at.offset for one in newest] == [1392]


def log_in(folder: str, batches: Sequence[RecordBatch]) -> Source:
    write_segment(Path(folder) / "00000000000000000000.log", batches)
    return kraftlake.open(folder)


@given(batches=metadata_logs(max_steps=60), data=st.data())
def test_any_log_is_in_trouble_since_when_it_began(batches: list[RecordBatch], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = log_in(folder, batches)
        at = data.draw(st.integers(0, source.end_offset - 1))
        assert found_in(timeline_of(source, at)) == of_partitions(since_when(batches, source.image(at)))


@given(batches=metadata_logs(max_steps=40, topics_only=True))
def test_the_columns_of_an_image_say_what_its_partitions_are(batches: list[RecordBatch]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        image = log_in(folder, batches).image()
        now = {(name, *key) for name, found in concerned_in(image).items() for key in found}
        assert now == set(of_partitions(since_when(batches, image)))


def test_a_damaged_log_is_read_behind_the_newest_snapshot(tmp_path: Path) -> None:
    for file in TORN.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    first = tmp_path / "00000000000000000000.log"
    content = bytearray(first.read_bytes())
    content[len(content) // 2] ^= 1
    first.write_bytes(content)
    source = kraftlake.open(tmp_path)
    assert source.image().offset == 3466
    whole = found_in(timeline_of(kraftlake.open(TORN)))
    found = found_in(timeline_of(source))
    assert found == {thing: None if offset is None or offset < 1724 else offset for thing, offset in whole.items()}
