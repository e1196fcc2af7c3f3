"""A log replayed in bulk is sound exactly where a verification batch by batch finds nothing of its records."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given

from kraftlake.image.metadata_image import MetadataImage
from kraftlake.kafka_files.directory import open_directory
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.replay.loader.batch_loader import MetadataBatchLoader
from kraftlake.replay.verify.findings import Findings
from kraftlake.replay.verify.references import ReferenceCheck
from kraftlake.replay.verify.sound_replay import SoundReplay
from tests.few_examples import few_examples
from tests.metadata_logs import metadata_logs
from tests.replay.made_logs import MadeLog, log_of, metadata_version, partition, topic, uuid_of
from tests.replay.sample_logs import directory_of


def is_sound(log: Sequence[RecordBatch]) -> bool:
    run = SoundReplay(MadeLog(records=tuple(log)), None, lambda batch: None)
    return run.read(log[-1].last_offset, None)


def has_no_findings(log: Sequence[RecordBatch]) -> bool:
    findings = Findings(MadeLog(records=tuple(log)))
    loader = MetadataBatchLoader(publish=ReferenceCheck(findings))
    for batch in log:
        loader.load_batch(batch)
        loader.flush()
    return not findings.problems and not findings.notes


def registered(*brokers: int) -> list[r.RegisterBrokerRecord]:
    return [r.RegisterBrokerRecord(broker_id=broker, broker_epoch=broker) for broker in brokers]


@few_examples
@given(log=metadata_logs(max_steps=30))
def test_a_log_of_which_something_is_found_is_not_sound(log: list[RecordBatch]) -> None:
    assert has_no_findings(log) or not is_sound(log)


def test_what_a_replay_up_to_a_snapshot_and_on_has_read_is_counted_once() -> None:
    reader = open_directory(directory_of("kafka-4.4"))
    run, checked = SoundReplay(reader, None, lambda batch: checked.append(batch.base_offset)), list[int]()
    batches = [*reader.batches()]
    inside = next(batch for batch in batches if batch.record_count > 2).base_offset + 1
    assert run.read(inside, None)
    assert run.replay.image.offset == inside
    assert run.read(5736, None)
    assert (run.batches, run.records, checked) == (len(batches), 5737, [batch.base_offset for batch in batches])


def test_references_are_looked_at_after_each_delta() -> None:
    made = [metadata_version(), *registered(1, 2), topic(1), partition(1, replicas=(1, 2), isr=(1, 2))]
    change = r.PartitionChangeRecord(partition_id=0, topic_id=uuid_of(1), isr=(1,), leader=1)
    gone = r.UnregisterBrokerRecord(broker_id=2, broker_epoch=2)
    assert is_sound(log_of(made, [change], [gone]))  # a broker may go: a change with it on it is what counts
    assert not is_sound(log_of(made, [gone], [change]))
    assert not is_sound(log_of(made, [change, gone]))
    assert is_sound(log_of(made, [gone], registered(2), [change]))
    for leader, isr in ((3, (1,)), (1, (1, 3))):
        stranger = r.PartitionChangeRecord(partition_id=0, topic_id=uuid_of(1), isr=isr, leader=leader)
        log = log_of(made, registered(3), [stranger])
        assert not is_sound(log)
        assert not has_no_findings(log)


def test_a_replay_begins_with_an_image() -> None:
    made = [metadata_version(), *registered(1, 2), topic(1), partition(1, replicas=(1, 2), isr=(1, 2))]
    change = r.PartitionChangeRecord(partition_id=0, topic_id=uuid_of(1), isr=(1,), leader=1)
    log = log_of(made, [change])
    loader = MetadataBatchLoader()
    loader.load_batch(log[0])
    image: MetadataImage = loader.take_image()
    run = SoundReplay(MadeLog(records=tuple(log)), image, lambda batch: None)
    assert run.read(log[-1].last_offset, None)
    assert (run.batches, run.records) == (1, 1)
