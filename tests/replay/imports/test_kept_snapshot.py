"""What an image is written as in bulk: the batches, files and rows that its objects are written as."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics import topic_values, topics_image
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.image.writer_options import CollectedLosses, ImageWriterOptions
from kraftlake.kafka_files.snapshots import batches as checkpoint
from kraftlake.kafka_files.snapshots.batches import checkpoint_batches
from kraftlake.kafka_files.writer import write_checkpoint
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.snapshots.snapshot_rows import SnapshotFacts
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.batch_values import BatchValues
from kraftlake.records.control_records import VotersRecord
from kraftlake.records.encoded_values import EncodedValues
from kraftlake.records.metadata_version import ALL, MetadataVersion
from kraftlake.records.rows import to_rows
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.replay.imports.kept_snapshot import keep_snapshot
from kraftlake.replay.loader.fold import image_at
from kraftlake.replay.loader.quorum_state import QuorumState
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.runtime.errors import UnwritableMetadataError
from tests.few_examples import few_examples
from tests.histories import histories, uuid_of
from tests.metadata_log.log_batches import TIME
from tests.replay.made_logs import log_of, metadata_version, partition, reference_image, topic

CASE = pytest.MonkeyPatch.context


def image_of(records: list[ApiMessageAndVersion]) -> MetadataImage:
    return reference_image([RecordBatch.of(0, 3, TIME, records)])


def batches_of(image: MetadataImage, options: ImageWriterOptions, *, bulk: bool) -> list[RecordBatch | BatchValues]:
    records = image.write_bulk(options) if bulk else image.write(options)
    at = image.provenance
    return list(checkpoint_batches(records, epoch=at.epoch, timestamp=at.timestamp))


def one_by_one(parts: list[RecordBatch | BatchValues]) -> Iterator[RecordBatch]:
    for part in parts:
        yield from [part] if isinstance(part, RecordBatch) else part.batches(part.base_offset)


def in_small(patch: pytest.MonkeyPatch, at_once: int, records: int, size: int) -> None:
    """Bulk writing from the first partition on, in pieces and batches of sizes that some dozen records fill."""
    patch.setattr(topics_image, "PACK_FROM", 0)
    patch.setattr(topic_values, "_PARTITIONS_AT_ONCE", at_once)
    patch.setattr(checkpoint, "MAX_RECORDS_IN_BATCH", records)
    patch.setattr(checkpoint, "MAX_BYTES_IN_BATCH", size)


@few_examples
@given(
    history=histories(topics_only=True, max_steps=60) | histories(),
    level=st.none() | st.sampled_from(ALL[6:]),
    cuts=st.tuples(st.integers(1, 30), st.integers(1, 20), st.sampled_from([1, 150, 400, 10**6])),
)
def test_any_image_is_written_in_bulk_as_its_objects_are(
    history: list[ApiMessageAndVersion],
    level: MetadataVersion | None,
    cuts: tuple[int, int, int],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    image = image_of(history)
    folder = tmp_path_factory.mktemp("written")
    options = image.writer_options()
    if level is not None:
        options = attrs.evolve(options, metadata_version=level)
    losses = [CollectedLosses(), CollectedLosses()]
    with CASE() as patch:
        in_small(patch, *cuts)
        expected, found = (
            batches_of(image, attrs.evolve(options, loss_handler=handler), bulk=bulk)
            for bulk, handler in zip((False, True), losses, strict=True)
        )
        assert list(one_by_one(found)) == expected
        assert to_rows(found).equals(to_rows(expected))
        assert losses[1].losses == losses[0].losses
        for name, bulk in (("objects", False), ("bulk", True)):
            lenient = attrs.evolve(options, loss_handler=CollectedLosses())
            written = image.write_bulk(lenient) if bulk else image.write(lenient)
            write_checkpoint(folder / name, written, epoch=3, timestamp=TIME)
        assert (folder / "bulk").read_bytes() == (folder / "objects").read_bytes()
        if losses[0].losses:
            faults = []
            for write in (image.write, image.write_bulk):
                with pytest.raises(UnwritableMetadataError) as fault:
                    list(write(options))
                faults.append(str(fault.value))
            assert faults[0] == faults[1]


def large_image(partitions: int = topics_image.PACK_FROM) -> MetadataImage:
    """One that is written in bulk by itself; its topics lie in another order than that of their names."""
    topics = [topic(number, f"topic-{99 - number}") for number in (1, 2, 3)]
    states = [partition(1 + i % 3, partition_id=i // 3) for i in range(partitions)]
    return reference_image(log_of(1, [metadata_version(len(ALL)), *topics, *states]))


def test_a_large_image_comes_encoded_and_whole_batches_of_it_stay_together() -> None:
    image = large_image()
    options = image.writer_options()
    assert {isinstance(part, EncodedValues) for part in image.topics.write_bulk(options)} == {True}
    parts = batches_of(image, options, bulk=True)
    assert sum(isinstance(part, RecordBatch) for part in parts) < len(list(one_by_one(parts)))


def test_a_small_image_is_written_as_objects_without_numpy() -> None:
    image = reference_image(log_of(1, [metadata_version(), topic(1), partition(1)]))
    assert isinstance(image.topics, TopicsImage)
    written = list(image.write_bulk(image.writer_options()))
    assert not any(isinstance(part, EncodedValues) for part in written)


@pytest.mark.parametrize("elr_first", [True, False])
def test_the_first_loss_is_raised_first(elr_first: bool) -> None:
    elr = partition(1, partition_id=1, eligible_leader_replicas=(2,))
    placed = partition(1, partition_id=2 if elr_first else 0, directories=(uuid_of(77),) * 2)
    messages = [metadata_version(len(ALL)), topic(1), elr, placed]
    image = image_of([ApiMessageAndVersion(m, 2 * isinstance(m, r.PartitionRecord)) for m in messages])
    losses = [CollectedLosses(), CollectedLosses()]
    low = attrs.evolve(image.writer_options(), metadata_version=ALL[6])
    with CASE() as patch:
        in_small(patch, at_once=100, records=100, size=10**6)
        list(image.write(attrs.evolve(low, loss_handler=losses[0])))
        list(image.write_bulk(attrs.evolve(low, loss_handler=losses[1])))
    assert losses[1].losses == losses[0].losses
    assert ["eligible" in loss for loss in losses[1].losses] == [elr_first, not elr_first]


def test_a_kept_snapshot_has_the_rows_and_the_checksum_of_one_written_object_by_object(tmp_path: Path) -> None:
    image = large_image()
    at = image.provenance
    quorum = QuorumState(kraft_version=1, voters=VotersRecord())
    one, two = (MetadataLog.create(tmp_path / name, start_offset=at.offset + 1) for name in ("bulk", "objects"))
    written = keep_snapshot(one, image, quorum)
    batches = checkpoint_batches(
        image.write(), epoch=at.epoch, timestamp=at.timestamp,
        kraft_version=1, voters=VotersRecord(),
    )  # fmt: skip
    facts = SnapshotFacts(end_offset=at.offset + 1, epoch=at.epoch, last_contained_log_timestamp=at.timestamp)
    two.add_snapshot(facts, batches)
    (kept,), (expected,) = one.snapshots(), two.snapshots()
    assert kept.name == expected.name
    assert (kept.record_count, kept.checksum) == (expected.record_count, expected.checksum)
    assert list(kept.batches()) == list(expected.batches())
    assert [size for _, size in kept.data_files] == [size for _, size in expected.data_files]
    assert written == sum(batch.payload_bytes for batch in expected.batches())
    assert keep_snapshot(one, image, quorum) is None
    assert image_at(LakeReader(one), at.offset).image == image


def test_an_unwritable_image_leaves_no_table_behind(tmp_path: Path) -> None:
    log = MetadataLog.create(tmp_path / "lake")
    lossy = r.RegisterControllerRecord(controller_id=1)
    for records in ([topic(1)], [metadata_version(14), lossy]):
        with pytest.raises(UnwritableMetadataError):
            keep_snapshot(log, reference_image(log_of(1, records)))
    assert not (tmp_path / "lake" / "snapshots").exists()
