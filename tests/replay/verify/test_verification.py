"""Verification finds what is wrong, says where, and goes on to the next problem."""

from __future__ import annotations

import os
import shutil
from bisect import bisect
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from random import Random

import attrs
import pytest

import kraftlake
from kraftlake.api import Source
from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch, read_batches
from kraftlake.records.control_records import KRaftVersionRecord, SnapshotFooterRecord
from kraftlake.records.rows import to_rows
from kraftlake.records.schema import Message
from kraftlake.replay.imports.import_log import import_source
from kraftlake.replay.reading import chunks
from kraftlake.replay.verify import verification
from kraftlake.replay.verify.findings import MAX_PROBLEMS, VerifyReport
from tests.replay.made_logs import (
    UNDECODABLE,
    UNKNOWN,
    MadeLog,
    abort,
    begin,
    data,
    end,
    log_of,
    metadata_version,
    no_op,
    partition,
    reference_image,
    small_log,
    snapshot_of,
    topic,
    trimmed,
    uuid_of,
    write_directory,
)
from tests.replay.sample_logs import NAMES, archived, copy_of, directory_of, without_first_segments

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"


@pytest.fixture(autouse=True, params=["batch by batch", "in bulk"])
def _replayed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each report is the same whichever way the log is replayed: the length of the log chooses it."""
    if request.param == "in bulk":
        for module in (verification, chunks):
            monkeypatch.setattr(module, "BULK_FROM", 0)


def verified(log: MadeLog | Sequence[RecordBatch]) -> VerifyReport:
    reader = log if isinstance(log, MadeLog) else MadeLog(records=tuple(log))
    return Source(reader, SourceKind.DIRECTORY, "made", None).verify()


def control(offset: int, *records: tuple[int, Message]) -> RecordBatch:
    """A control batch of records, each under a type of its own choice."""
    batch = RecordBatch.control_of(offset, 3, 1_700_000_000_000, [message for _, message in records])
    return attrs.evolve(batch, control_types=tuple(type_ for type_, _ in records))


def registered(*brokers: int) -> list[r.RegisterBrokerRecord]:
    return [r.RegisterBrokerRecord(broker_id=broker, broker_epoch=broker) for broker in brokers]


def test_the_sample_is_sound_from_files_and_from_a_lake(tmp_path: Path) -> None:
    import_source(directory_of("kafka-4.4"), tmp_path / "lake")
    for place in (directory_of("kafka-4.4"), tmp_path / "lake"):
        report = kraftlake.open(place).verify()
        assert report.sound
        assert report.problems == ()
        assert (report.records, report.replayed, report.snapshots_compared) == (5737, 5737, 2)
        assert report.first_bad_offset is None


def test_a_tail_that_is_cut_off_is_no_problem_and_named_with_file_position_and_offset() -> None:
    report = kraftlake.open(directory_of("crash-torn")).verify()
    assert report.sound
    assert report.problems == ()
    torn = report.torn_tail
    assert torn is not None
    assert (torn.offset, torn.file, torn.position) == (3467, "00000000000000002265.log", 61042)
    assert report.to_json()["tornTail"]["position"] == 61042
    assert "position 61042, offset 3467" in str(torn)
    assert kraftlake.open(directory_of("kafka-4.4")).verify().torn_tail is None


@pytest.mark.parametrize(("cut", "zeros"), [(1, 0), (40, 0), (71, 0), (72, 5000), (0, 5000)])
def test_a_copy_that_ends_in_its_last_batch_or_in_zeros_is_sound(cut: int, zeros: int, tmp_path: Path) -> None:
    last = copy_of("kafka-4.4", tmp_path / "copy") / "00000000000000005488.log"
    last.write_bytes(last.read_bytes()[: last.stat().st_size - cut] + bytes(zeros))
    report = kraftlake.open(last.parent).verify()
    assert report.sound
    assert report.torn_tail is not None
    assert report.torn_tail.offset == (5736 if cut else 5737)


@pytest.mark.parametrize("place", [-1, -72 + 16, -72 + 8])
def test_a_last_batch_that_is_whole_but_for_its_bytes_is_a_problem(place: int, tmp_path: Path) -> None:
    last = copy_of("kafka-4.4", tmp_path / "copy") / "00000000000000005488.log"
    spoilt = bytearray(last.read_bytes())
    spoilt[place] ^= 0x80
    last.write_bytes(spoilt)
    report = kraftlake.open(last.parent).verify()
    assert report.first_bad_offset == 5736
    assert report.torn_tail is None


def test_the_legacy_log_is_whole_but_can_not_be_replayed() -> None:
    report = kraftlake.open(directory_of("legacy-33")).verify()
    assert report.records == 478
    assert report.first_bad_offset == 1
    assert "metadata.version" in report.problems[0].message


@pytest.mark.parametrize("name", NAMES)
def test_a_flipped_bit_before_the_last_batch_is_a_problem_of_its_batch(name: str, tmp_path: Path) -> None:
    """Tried at random places of a log's first kilobytes, in the long profile at every eighth byte of them."""
    segment = tmp_path / "log" / "__cluster_metadata-0" / "00000000000000000000.log"
    segment.parent.mkdir(parents=True)
    whole = (directory_of(name) / segment.name).read_bytes()
    ends = list(accumulate(batch.size_in_bytes for batch in read_batches(whole, file=segment.name)))
    last = bisect(ends, 16 * 1024)
    whole, starts = whole[: ends[last]], [0, *ends[:last]]
    segment.write_bytes(whole)
    # The folder is known by its snapshot for a metadata log's, whatever the first header says.
    shutil.copy(directory_of(name) / "00000000000000000000-0000000000.checkpoint", segment.parent)
    assert kraftlake.open(segment.parent).verify().sound
    generator = Random(name)
    places = range(0, starts[-1], 8) if LONG else [*range(12), *generator.sample(range(16, starts[-1]), 30)]
    for place in places:
        index = bisect(starts, place) - 1
        in_epoch = 12 <= place - starts[index] < 16
        if in_epoch and not index:
            continue  # the first epoch may be any that is not above the next one
        spoiled = bytearray(whole)
        spoiled[place] ^= 1 << generator.randrange(8)
        segment.write_bytes(spoiled)
        report = kraftlake.open(segment.parent).verify()
        assert report.problems, place
        first = report.problems[0]
        # No checksum covers an epoch: one that is too high shows at the next batch.
        assert (first.file, first.position) in [(segment.name, at) for at in starts[index : index + 1 + in_epoch]], (
            place
        )


def test_damage_in_the_middle_is_a_problem_and_the_torn_tail_a_finding_of_its_own(tmp_path: Path) -> None:
    directory = copy_of("crash-torn", tmp_path / "copy")
    segment = directory / "00000000000000000000.log"
    spoiled = bytearray(segment.read_bytes())
    spoiled[3000] ^= 1
    segment.write_bytes(bytes(spoiled))
    report = kraftlake.open(directory).verify()
    (problem,) = report.problems
    assert problem.file == segment.name
    assert report.torn_tail is not None
    assert (report.torn_tail.file, report.torn_tail.offset) == ("00000000000000002265.log", 3467)
    assert report.first_bad_offset == problem.offset
    assert any("Nothing after offset" in note for note in report.notes)


def test_missing_segments_are_named_by_their_offsets(tmp_path: Path) -> None:
    directory = copy_of("kafka-4.4", tmp_path / "copy")
    (directory / "00000000000000002027.log").unlink()
    report = kraftlake.open(directory).verify()
    assert report.first_bad_offset == 2027
    assert "2027 to 3531 are missing" in report.problems[0].message


def test_epochs_that_go_down_are_found(tmp_path: Path) -> None:
    batches = [*log_of(5, [topic(1)]), no_op(2, epoch=4), no_op(3, epoch=5)]
    report = kraftlake.open(write_directory(tmp_path, batches)).verify()
    assert report.first_bad_offset == 2
    assert "epoch 4" in report.problems[0].message


def test_every_record_that_can_not_be_replayed_is_named() -> None:
    batches = log_of(
        1,
        [metadata_version(), UNKNOWN, topic(1)],
        [end(), partition(9)],
        [begin(), UNDECODABLE],
        [begin()],
        [abort(), r.RemoveTopicRecord(topic_id=uuid_of(8))],
    )
    report = verified(batches)
    assert [problem.offset for problem in report.problems] == [2, 4, 5, 7, 8, 10]
    words = ["type 99", "without a Begin", "PARTITION_RECORD", "decoded", "still open", "REMOVE_TOPIC_RECORD"]
    for word, problem in zip(words, report.problems, strict=True):
        assert word in problem.message
    assert report.replayed == report.records == 11


def test_a_log_without_a_covering_snapshot_is_decoded_but_not_replayed() -> None:
    cut = attrs.evolve(trimmed(small_log(), 9), records=(*trimmed(small_log(), 9).records, data(18, UNKNOWN, epoch=3)))
    report = verified(cut)
    assert (report.records, report.replayed) == (10, 0)
    assert [problem.offset for problem in report.problems] == [9, 18]
    assert "no finished snapshot covers that start" in report.problems[0].message
    assert any("offset 9: it was decoded, not replayed" in note for note in report.notes)
    assert verified(attrs.evolve(cut, records=(*cut.records[:-1], data(18, UNDECODABLE, epoch=3)))).problems


def test_a_start_above_zero_that_no_finished_snapshot_covers_is_a_problem(tmp_path: Path) -> None:
    trimmed_log = without_first_segments("kafka-4.4", tmp_path / "copy", 3532)
    lake = tmp_path / "lake"
    import_source(trimmed_log, lake)
    assert kraftlake.open(trimmed_log).verify().sound
    (newest,) = trimmed_log.glob("*.checkpoint")
    newest.rename(trimmed_log / "00000000000000003531-0000000002.checkpoint")
    for place in (trimmed_log, archived(trimmed_log, tmp_path / "log.zip")):
        report = kraftlake.open(place).verify()
        assert report.first_bad_offset == 3532
        assert "starts at offset 3532, and no finished snapshot covers that start" in report.problems[0].message
    (trimmed_log / "00000000000000003531-0000000002.checkpoint").unlink()
    import_source(trimmed_log, tmp_path / "bare")
    assert kraftlake.open(tmp_path / "bare").verify().first_bad_offset == 3532
    assert kraftlake.open(lake).verify().sound
    assert kraftlake.open(trimmed_log / "00000000000000003532.log").verify().sound


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (control(1, (0, SnapshotFooterRecord(version=0))), "control record type 0 version 0 is not known"),
        (control(1, (5, KRaftVersionRecord(version=0, k_raft_version=2))), "kraft.version 2 is not known"),
    ],
)
def test_control_records_that_kafka_does_not_start_with_are_problems(batch: RecordBatch, message: str) -> None:
    report = verified([*log_of(1), batch])
    assert [(p.offset, message in p.message) for p in report.problems] == [(1, True)]
    snapshot = attrs.evolve(snapshot_of(reference_image(small_log(), 8)), end_offset=9)
    head = attrs.evolve(batch, base_offset=snapshot.records[-1].last_offset + 1)
    spoilt = attrs.evolve(snapshot, records=(*snapshot.records, head))
    report = verified(MadeLog(records=tuple(small_log()), snapshots=(spoilt,)))
    assert [(p.in_snapshot, message in p.message) for p in report.problems] == [(True, True)]


def test_a_snapshot_that_says_kraft_version_twice_is_a_problem() -> None:
    snapshot = snapshot_of(reference_image(small_log(), 8))
    said = (5, KRaftVersionRecord(version=0, k_raft_version=1))
    twice = control(snapshot.records[-1].last_offset + 1, said, said)
    spoilt = attrs.evolve(snapshot, records=(*snapshot.records, twice))
    (problem,) = verified(MadeLog(records=tuple(small_log()), snapshots=(spoilt,))).problems
    assert "records KRaftVersionRecord" in problem.message


def test_snapshots_whose_epochs_go_down_are_a_problem() -> None:
    log = trimmed(small_log(), 0, 9, 15)
    older, newer = log.snapshots
    report = verified(attrs.evolve(log, snapshots=(attrs.evolve(older, epoch=newer.epoch + 1), newer)))
    assert any("which goes further, of a lower one" in problem.message for problem in report.problems)


def test_a_snapshot_ahead_of_the_log_is_a_note_unless_the_log_has_a_later_epoch(tmp_path: Path) -> None:
    ahead = attrs.evolve(snapshot_of(reference_image(small_log())), end_offset=30)
    for epoch, sound in ((3, True), (2, False)):
        snapshot = attrs.evolve(ahead, epoch=epoch)
        report = kraftlake.open(write_directory(tmp_path / str(epoch), small_log(), snapshots=[snapshot])).verify()
        assert report.sound is sound
        assert any("a node that starts with it drops the log" in note for note in report.notes) is sound
    assert "ends at offset 17 in epoch 3 already" in report.problems[0].message


def test_records_with_timestamps_of_their_own_are_a_problem(tmp_path: Path) -> None:
    batches = log_of(1, [metadata_version(), r.NoOpRecord()])
    late = attrs.evolve(batches[1], timestamps=(batches[1].timestamp - 1, batches[1].timestamp))
    (problem,) = kraftlake.open(write_directory(tmp_path, [batches[0], late])).verify().problems
    assert problem.offset == 1
    assert "timestamps of their own: Kafka does not start with it" in problem.message


def test_a_trimmed_log_is_replayed_from_its_snapshot(tmp_path: Path) -> None:
    report = kraftlake.open(without_first_segments("kafka-4.4", tmp_path / "copy", 2027)).verify()
    assert report.sound
    assert report.records == 5737 - 2027
    assert report.snapshots_compared == 1
    assert report.replayed >= 5737 - 3038


def test_a_leader_that_is_no_replica_and_a_stranger_in_the_isr_are_found() -> None:
    bad_leader = partition(1, replicas=(1, 2), leader=3, isr=(1, 2))
    report = verified(log_of(1, [metadata_version(), *registered(1, 2, 3), topic(1)], [bad_leader]))
    assert [(p.offset, p.message) for p in report.problems] == [
        (6, "topic-1-0 is led by broker 3, which is none of its replicas 1, 2.")
    ]
    stranger = partition(1, replicas=(1, 2), leader=1, isr=(1, 3))
    report = verified(log_of(1, [metadata_version(), *registered(1, 2, 3), topic(1)], [stranger]))
    assert "has 3 in its ISR, but not among its replicas 1, 2" in report.problems[0].message
    leaderless = partition(1, leader=-1, isr=())
    assert verified(log_of(1, [metadata_version(), *registered(1, 2), topic(1)], [leaderless])).sound


def test_a_replica_on_a_broker_that_is_not_registered_is_only_a_note() -> None:
    report = verified(log_of(1, [metadata_version(), *registered(1), topic(1), partition(1, replicas=(1, 4))]))
    assert report.sound
    assert report.notes == ("topic-1-0 has replicas on 4, not registered at offset 4.",)


def test_configs_that_kafka_keeps_of_deleted_topics_are_only_a_note() -> None:
    config = r.ConfigRecord(resource_type=2, resource_name="topic-1", name="retention.ms", value="1")
    gone = [topic(1), config, r.RemoveTopicRecord(topic_id=topic(1).topic_id)]
    batches = log_of(1, [metadata_version(), topic(2)], gone)
    log = trimmed(batches, 0, 6)
    kept = reference_image(log_of(1, [metadata_version(), topic(2)], [config]), 3).configs
    made = reference_image(batches, 5)
    report = verified(attrs.evolve(log, snapshots=(snapshot_of(attrs.evolve(made, configs=kept)),)))
    assert report.sound
    assert report.snapshots_compared == 1
    (note,) = report.notes
    assert "has configs of 1 topic that had been deleted before (topic-1): Kafka keeps them" in note
    other = reference_image(log_of(1, [metadata_version(), topic(1), topic(2)], [config]), 4)
    wrong = attrs.evolve(other, provenance=made.provenance)
    assert not verified(attrs.evolve(log, snapshots=(snapshot_of(wrong),))).sound


def test_a_snapshot_that_is_not_the_replay_at_its_end_is_found() -> None:
    log = trimmed(small_log(), 0, 9, 15)
    wrong = attrs.evolve(log.snapshots[0], end_offset=15, epoch=2)
    report = verified(attrs.evolve(log, snapshots=(log.snapshots[0], wrong)))
    (problem,) = report.problems
    assert (problem.offset, problem.file) == (14, wrong.name)
    assert "is not what replaying the log" in problem.message
    assert "topic-1" in problem.message
    assert report.snapshots_compared == 2


def test_the_difference_of_a_snapshot_never_shows_secrets() -> None:
    secret = r.ConfigRecord(resource_type=4, resource_name="", name="ssl.key.password", value="hunter2")
    batches = log_of(1, [metadata_version()], [secret], [r.NoOpRecord()])
    wrong = attrs.evolve(snapshot_of(reference_image(batches, 1)), end_offset=3)
    (problem,) = verified(MadeLog(records=tuple(batches), snapshots=(wrong,))).problems
    assert "ssl.key.password" in problem.message
    assert "hunter2" not in problem.message


def test_a_snapshot_of_another_epoch_is_found() -> None:
    log = trimmed(small_log(), 0, 9)
    report = verified(attrs.evolve(log, snapshots=(attrs.evolve(log.snapshots[0], epoch=7),)))
    assert "of epoch 7, the log has epoch 1" in report.problems[0].message


def test_a_snapshot_that_can_not_be_loaded_is_found_with_its_own_offset() -> None:
    log = trimmed(small_log(), 0, 9)
    broken = attrs.evolve(log.snapshots[0], records=(data(0, UNKNOWN), data(1, partition(77))))
    report = verified(attrs.evolve(log, snapshots=(broken,)))
    assert [(p.file, p.offset, p.in_snapshot) for p in report.problems] == [
        (broken.name, 0, True),
        (broken.name, 1, True),
    ]
    assert report.first_bad_offset is None
    assert not report.sound


def test_two_snapshots_of_the_same_offsets_are_found() -> None:
    log = trimmed(small_log(), 9, 9)
    report = verified(attrs.evolve(log, snapshots=(log.snapshots[0], attrs.evolve(log.snapshots[0], epoch=2))))
    assert any("two snapshots of the offsets below 9" in problem.message for problem in report.problems)
    assert report.first_bad_offset == 8


def test_snapshots_after_a_record_that_failed_are_not_compared() -> None:
    log = trimmed(small_log(), 0, 15)
    spoiled = (log.records[0], data(1, begin(), UNKNOWN, end()), *log.records[2:])
    report = verified(attrs.evolve(log, records=spoiled))
    assert [problem.offset for problem in report.problems] == [2]
    assert report.snapshots_compared == 0
    assert any("was not compared" in note for note in report.notes)


def test_an_unfinished_snapshot_is_found(tmp_path: Path) -> None:
    snapshot = snapshot_of(reference_image(small_log(), 8))
    directory = write_directory(tmp_path, small_log(), snapshots=[snapshot])
    path = directory / snapshot.name
    footer = [b for b in kraftlake.open(path).batches() if b.control][-1]
    path.write_bytes(path.read_bytes()[: footer.position])
    report = kraftlake.open(directory).verify()
    assert [(p.file, p.in_snapshot) for p in report.problems] == [(snapshot.name, True)]
    assert not kraftlake.open(path).verify().sound


def test_a_bootstrap_checkpoint_that_the_log_does_not_repeat_is_a_note() -> None:
    bootstrap = attrs.evolve(snapshot_of(reference_image(small_log(), 3)), end_offset=0, epoch=0, bootstrap=True)
    assert verified(MadeLog(records=tuple(small_log()), snapshots=(bootstrap,))).notes[-1:] != ()
    without_notes = [n for n in verified(MadeLog(records=tuple(small_log()))).notes if "repeat" in n]
    other = attrs.evolve(bootstrap, records=(data(0, metadata_version(8)),))
    report = verified(MadeLog(records=tuple(small_log()), snapshots=(other,)))
    assert report.sound
    assert f"The head of the log does not repeat the records of {other.name}." in report.notes
    assert without_notes == []
    same = attrs.evolve(bootstrap, records=(data(0, metadata_version()),))
    assert not [n for n in verified(MadeLog(records=tuple(small_log()), snapshots=(same,))).notes if "repeat" in n]


def test_a_transaction_that_is_open_at_the_end_is_a_note() -> None:
    report = verified(log_of(1, [metadata_version()], [begin(), topic(1)]))
    assert report.sound
    assert report.notes == ("The metadata transaction that began at offset 2 is open at the end.",)


def test_a_snapshot_file_alone_is_verified(tmp_path: Path) -> None:
    snapshot = snapshot_of(reference_image(small_log(), 8))
    source = kraftlake.open(write_directory(tmp_path, small_log(), snapshots=[snapshot]) / snapshot.name)
    report = source.verify()
    assert (report.sound, report.records, report.snapshots) == (True, 0, 1)
    assert report.snapshot_records == sum(batch.record_count for batch in snapshot.records)


def test_a_lake_whose_columns_contradict_its_payloads_is_found(tmp_path: Path) -> None:
    log = MetadataLog.create(tmp_path / "lake")
    rows = to_rows(small_log())
    types = rows.column("type").to_pylist()
    types[4] = "NO_OP_RECORD"
    position = rows.schema.get_field_index("type")
    log.append(rows.set_column(position, rows.schema.field("type"), [types]))
    report = kraftlake.open(tmp_path / "lake").verify()
    (problem,) = report.problems
    assert problem.offset == 4
    assert "column type says NO_OP_RECORD, but the payload TOPIC_RECORD" in problem.message


def test_a_lake_that_lost_a_file_is_found(tmp_path: Path) -> None:
    import_source(directory_of("crash-torn"), tmp_path / "lake")
    (parquet,) = (tmp_path / "lake" / "log").glob("*.parquet")
    parquet.unlink()
    report = kraftlake.open(tmp_path / "lake").verify()
    assert not report.sound
    assert parquet.name in report.problems[0].message


def test_problems_without_end_are_counted() -> None:
    report = verified(log_of(1, [metadata_version(), *[partition(9)] * (MAX_PROBLEMS + 7)]))
    assert (len(report.problems), report.more_problems) == (MAX_PROBLEMS, 7)
