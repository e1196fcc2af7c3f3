"""Two logs beside each other: one history, or two, and where these part."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.kafka_files.writer import write_segment
from kraftlake.records.batch import RecordBatch, encode_batch
from kraftlake.replay.comparing.log_comparison import Difference, LogComparison, Relation, compare_logs
from kraftlake.replay.comparing.words import comparison_sentence
from kraftlake.replay.imports.import_log import import_source
from kraftlake.replay.reading.open_reader import open_reader
from tests.few_examples import few_examples
from tests.histories import Draw
from tests.replay.comparing.odd_quorums import quorum_log
from tests.replay.made_logs import TIME, MadeLog, data, leader_change, log_of, no_op, small_log, topic, trimmed
from tests.replay.sample_logs import directory_of

KAFKA_44 = str(directory_of("kafka-4.4"))


def compared(one: Sequence[RecordBatch], other: Sequence[RecordBatch]) -> LogComparison:
    return compare_logs(*(MadeLog(records=tuple(log), start_offset=log[0].base_offset) for log in (one, other)))


@st.composite
def logs_of_a_quorum(draw: Draw) -> list[list[int]]:
    """The epoch of each offset in the logs of some nodes, after leaders appended and others fetched from them."""
    logs: list[list[int]] = [[] for _ in range(draw(st.integers(2, 4)))]
    nodes = st.integers(0, len(logs) - 1)
    for epoch in range(1, draw(st.integers(1, 6)) + 1):
        leader = draw(nodes)
        logs[leader] = logs[leader] + [epoch] * draw(st.integers(1, 4))
        for follower in draw(st.sets(nodes)) - {leader}:
            kept = common_prefix(logs[follower], logs[leader])
            logs[follower] = logs[leader][: draw(st.integers(kept, len(logs[leader])))]
    return logs


def common_prefix(one: list[int], other: list[int]) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (here, there) in pairs if here != there), min(len(one), len(other)))


def batches_of(epochs: Sequence[int]) -> list[RecordBatch]:
    """A log with a batch an offset, of the leader of its epoch."""
    return [no_op(offset, epoch=epoch) for offset, epoch in enumerate(epochs)]


@few_examples
@given(logs_of_a_quorum())
def test_logs_of_one_quorum_are_the_same_up_to_where_both_stop_to_be(logs: list[list[int]]) -> None:
    for one, other in pairwise([log for log in logs if log]):
        found = compared(batches_of(one), batches_of(other))
        common = common_prefix(one, other)
        assert (found.parts_at or found.end) == common or found.parts_at == common == 0
        assert found.differs == (common < min(len(one), len(other)))
        assert (found.last_common is None) == (common == 0)


def test_a_log_and_its_beginning_are_one() -> None:
    found = compared(small_log(), small_log()[:4])
    assert (found.relation, found.parts_at) == (Relation.PREFIX, None)
    assert (found.first, found.end, found.ends) == (0, 8, (18, 8))
    assert compared(small_log(), small_log()).relation is Relation.SAME
    assert compared(small_log()[5:], small_log()[:8]).relation is Relation.PREFIX


def test_two_quorums_with_the_same_epochs_are_two_histories() -> None:
    first, second = quorum_log(1, 2, 3, brokers=(4, 5), epochs=3), quorum_log(2, epochs=3, no_ops=7)
    found = compared(first, second)
    assert (found.relation, found.parts_at, found.difference) == (Relation.PARTED, 0, Difference.BYTES)
    assert found.last_common is None
    one, other = found.alone
    assert one is not None
    assert other is not None
    assert (one.records, other.records) == (3, 1)
    assert [held.leaders for held in (one, other)] == [((1, 1), (2, 1), (3, 1)), ((1, 2), (2, 2), (3, 2))]
    assert one.shows_commit
    assert other.shows_commit


def test_the_batch_before_the_parting_is_named_with_its_crc() -> None:
    start = log_of(1, [topic(1)])
    found = compared([*start, no_op(2), no_op(3)], [*start, leader_change(2, 2), no_op(3, epoch=2)])
    assert found.last_common is not None
    assert (found.last_common.last_offset, found.last_common.epoch) == (1, 1)
    sentence = comparison_sentence(found, "A", "B")
    common = f"they are the same from offset 0 to 1 (epoch 1, CRC {found.last_common.crc:08x}) and part at offset 2"
    assert sentence == f"A and B are two histories: {common} (epoch 1 in A, epoch 2 in B)"
    old, new = found.alone
    assert old is not None
    assert new is not None
    assert (old.shows_commit, new.shows_commit) == (False, True)
    assert new.committed_to == 3


def test_the_crc_is_that_in_kafkas_file() -> None:
    reader, _ = open_reader(f"{KAFKA_44}/{0:020d}.log")
    found = compare_logs(reader, MadeLog(records=tuple(reader.batches(0, 0))))
    assert found.last_common is not None
    assert Path(KAFKA_44, f"{0:020d}.log").read_bytes()[17:21] == found.last_common.crc.to_bytes(4, "big")


def test_equal_records_with_other_times_are_two_histories() -> None:
    later = [attrs.evolve(one, timestamp=TIME, timestamps=(TIME,) * one.record_count) for one in small_log()]
    found = compared(small_log(), later)
    assert (found.relation, found.parts_at, found.difference) == (Relation.PARTED, 1, Difference.TIMESTAMP)


def test_one_batch_that_differs_in_the_middle_was_changed() -> None:
    other = small_log()
    other[5] = attrs.evolve(other[5], timestamp=9, timestamps=(9,))
    found = compared(small_log(), other)
    assert (found.relation, found.parts_at, found.same_again_at) == (Relation.CHANGED, 9, 10)
    assert [held and (held.from_offset, held.end_offset) for held in found.alone] == [(9, 10), (9, 10)]
    assert "no quorum writes such logs" in comparison_sentence(found, "A", "B")


def test_of_logs_without_a_common_offset_nothing_is_said() -> None:
    found = compared(small_log()[:3], small_log()[6:])
    assert (found.relation, found.differs) == (Relation.UNKNOWN, False)
    assert "nothing shows" in comparison_sentence(found, "A", "B")


def test_but_for_a_snapshot_of_another_epoch() -> None:
    early, late = MadeLog(records=tuple(small_log()[:6])), trimmed(small_log(), 10, 10)
    assert compare_logs(early, late).relation is Relation.UNKNOWN
    (snapshot,) = late.snapshots
    other = attrs.evolve(late, snapshots=(attrs.evolve(snapshot, epoch=7),))
    found = compare_logs(early, other)
    assert (found.relation, found.parts_at, found.or_before) == (Relation.PARTED, 9, True)
    assert "a snapshot states another epoch for offset 9" in comparison_sentence(found, "A", "B")


def test_records_that_are_divided_into_other_batches_are_the_same() -> None:
    found = compared(log_of(1, [topic(1), topic(2)]), [*log_of(1, [topic(1)]), data(2, topic(2), time=TIME + 1)])
    assert (found.relation, found.divided_at) == (Relation.SAME, 2)


@pytest.mark.parametrize("at", [0, 1, 700, 4_000, 5_736])
def test_large_chunks_compare_as_batch_by_batch(at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, _ = open_reader(KAFKA_44)
    monkeypatch.setattr("kraftlake.replay.reading.chunks.BULK_FROM", 2**63)
    batches = list(reader.batches())
    index = next(i for i, batch in enumerate(batches) if batch.last_offset >= at)
    changed = batches[index]
    batches[index] = attrs.evolve(changed, timestamp=1, timestamps=(1,) * changed.record_count)
    other = MadeLog(records=tuple(batches))
    slow = compare_logs(reader, other)
    assert slow.parts_at == changed.base_offset
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    write_segment(folder / f"{0:020d}.log", batches)
    monkeypatch.setattr("kraftlake.replay.reading.chunks.BULK_FROM", 1)
    assert compare_logs(reader, open_reader(str(folder))[0]) == slow


def test_a_lake_is_one_log_with_what_it_was_imported_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import_source(KAFKA_44, tmp_path / "lake")
    lake, _ = open_reader(str(tmp_path / "lake"))
    reader, _ = open_reader(KAFKA_44)
    for bulk_from in (1, 2**63):
        monkeypatch.setattr("kraftlake.replay.reading.chunks.BULK_FROM", bulk_from)
        assert compare_logs(lake, reader).relation is Relation.SAME


@pytest.mark.parametrize("bulk_from", [1, 2**63])
def test_a_compressed_log_is_the_same_log(bulk_from: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kraftlake.replay.reading.chunks.BULK_FROM", bulk_from)
    plain, packed = (tmp_path / name / f"{0:020d}.log" for name in ("plain", "packed"))
    for path, compression in ((plain, "none"), (packed, "gzip")):
        path.parent.mkdir()
        path.write_bytes(b"".join(encode_batch(batch, compression) for batch in small_log()))
    assert plain.read_bytes() != packed.read_bytes()
    found = compare_logs(*(open_reader(str(path))[0] for path in (plain, packed)))
    assert found.relation is Relation.SAME
    assert found.last_common is not None
    assert found.last_common.crc == int.from_bytes(encode_batch(small_log()[-1])[17:21], "big")
