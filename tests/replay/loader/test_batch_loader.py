"""The batch loader: metadata transactions, control records, what is strict and what is lenient."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.control_records import KRaftVersionRecord, VotersRecord
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.replay.loader.batch_loader import MetadataBatchLoader
from kraftlake.replay.loader.manifest import LogDeltaManifest
from kraftlake.runtime.errors import CorruptDataError, LakeError, ReplayError, UnknownRecordError
from tests.few_examples import few_examples
from tests.histories import split_histories
from tests.replay.made_logs import (
    TIME,
    UNDECODABLE,
    UNKNOWN,
    abort,
    begin,
    data,
    end,
    leader_change,
    log_of,
    metadata_version,
    no_op,
    partition,
    reference_image,
    small_log,
    topic,
    uuid_of,
    without_place,
)


class Published:
    """A publisher that remembers, and flushes after each batch as a broker does."""

    def __init__(self, batches: list[RecordBatch], **options: bool) -> None:
        self.images: list[MetadataImage] = []
        self.manifests: list[LogDeltaManifest] = []
        self.loader = MetadataBatchLoader(publish=self.publish, **options)
        for batch in batches:
            self.loader.load_batch(batch)
            self.loader.flush()

    def publish(self, delta: object, image: MetadataImage, manifest: LogDeltaManifest) -> None:
        self.images.append(image)
        self.manifests.append(manifest)

    @property
    def offsets(self) -> list[int]:
        return [image.provenance.offset for image in self.images]

    @property
    def topics(self) -> list[set[str]]:
        return [set(image.topics.topics_by_name()) for image in self.images]


def bulk(batches: list[RecordBatch], to_offset: int | None = None, **options: bool) -> MetadataBatchLoader:
    loader = MetadataBatchLoader(**options)
    for batch in batches:
        if to_offset is None or batch.base_offset <= to_offset:
            loader.load_batch(batch, to_offset=to_offset)
    return loader


def test_each_batch_is_published_with_its_provenance() -> None:
    published = Published([leader_change(0, 4), data(1, metadata_version(), topic(1), epoch=4, time=TIME + 9)])
    assert published.offsets == [0, 2]
    last = published.manifests[-1]
    assert (last.provenance.epoch, last.provenance.timestamp, last.provenance.batch_aligned) == (4, TIME + 9, True)
    assert (last.base_offset, last.num_batches, last.leader_id) == (1, 1, 3000)
    assert published.images[-1].provenance == last.provenance


def test_a_transaction_is_published_as_a_whole_at_its_end() -> None:
    published = Published(log_of(1, [begin(), topic(1)], [topic(2)], [topic(3), end()], [topic(4)]))
    assert published.offsets == [0, 5, 6]
    assert published.topics == [set(), {"topic-1", "topic-2", "topic-3"}, {f"topic-{i}" for i in range(1, 5)}]
    assert published.manifests[1].num_batches == 3


def test_an_aborted_transaction_leaves_no_trace() -> None:
    published = Published(log_of(1, [topic(1)], [begin(), topic(2)], [topic(3), abort()], [topic(4)]))
    assert published.topics[-1] == {"topic-1", "topic-4"}
    assert published.topics[-2] == {"topic-1"}
    assert published.offsets == [0, 1, 5, 6]


def test_records_behind_an_abort_in_the_same_batch_are_published_without_the_aborted_ones() -> None:
    published = Published(log_of(1, [begin(), topic(1), abort(), topic(2)]))
    assert published.topics[-1] == {"topic-2"}


def test_a_transaction_that_begins_in_mid_batch_publishes_what_came_before_it() -> None:
    published = Published(log_of(1, [topic(1), topic(2), begin(), topic(3)], [end()]))
    assert published.offsets == [0, 2, 5]
    assert published.topics == [set(), {"topic-1", "topic-2"}, {"topic-1", "topic-2", "topic-3"}]
    assert [m.provenance.batch_aligned for m in published.manifests] == [True, False, True]


def test_a_transaction_that_begins_a_batch_publishes_the_batches_gathered_before_it_as_aligned() -> None:
    published = Published([])
    for batch in log_of(1, [topic(1)], [begin(), topic(2)]):
        published.loader.load_batch(batch)
    assert published.offsets == [1]
    assert published.manifests[0].provenance.batch_aligned
    assert published.manifests[0].num_batches == 2


def test_two_transactions_in_one_batch_are_two_changes() -> None:
    published = Published(log_of(1, [begin(), topic(1), end(), begin(), topic(2), end()]))
    assert published.topics == [set(), {"topic-1"}, {"topic-1", "topic-2"}]


def test_a_transaction_left_open_by_a_dead_controller_is_aborted_by_the_next_one() -> None:
    published = Published(log_of(1, [begin(), topic(1)], 2, [abort(), topic(2)]))
    assert published.topics[-1] == {"topic-2"}
    assert published.offsets == [0, 5]


def test_an_open_transaction_is_not_in_the_image_and_takes_effect_at_its_end() -> None:
    loader = bulk(log_of(1, [topic(1)], [begin(), topic(2)]))
    image = loader.take_image()
    assert (image.provenance.offset, loader.in_transaction, loader.transaction_begin_offset) == (3, True, 2)
    assert set(image.topics.topics_by_name()) == {"topic-1"}
    loader.load_batch(data(4, end()))
    assert set(loader.take_image().topics.topics_by_name()) == {"topic-1", "topic-2"}


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        (log_of(1, [begin(), topic(1)], [begin()]), "Offset 3, BEGIN_TRANSACTION_RECORD.*began at offset 1"),
        (log_of(1, [end()]), "Offset 1: EndTransactionRecord without"),
        (log_of(1, [topic(1), abort()]), "Offset 2: AbortTransactionRecord without"),
    ],
)
def test_transactions_that_are_nested_wrong_are_errors_naming_the_offset(
    batches: list[RecordBatch], message: str
) -> None:
    with pytest.raises(ReplayError, match=message):
        bulk(batches)


def test_a_record_that_contradicts_the_image_names_its_offset_and_type() -> None:
    with pytest.raises(ReplayError, match=r"(?i)offset 3, PARTITION_RECORD") as caught:
        bulk(log_of(1, [topic(1)], [r.NoOpRecord(), partition(9)]))
    assert caught.value.offset == 3


def test_a_wrong_record_in_a_transaction_names_its_own_offset_and_not_the_end() -> None:
    with pytest.raises(ReplayError, match=r"(?i)offset 2, PARTITION_RECORD"):
        bulk(log_of(1, [begin(), partition(9)], [topic(1), end()]))


def test_an_unknown_record_names_its_offset_and_type() -> None:
    with pytest.raises(UnknownRecordError, match=r"(?i)offset 2.*type 99"):
        bulk(log_of(1, [topic(1), UNKNOWN]))


def test_a_record_that_cannot_be_decoded_names_its_offset() -> None:
    with pytest.raises(CorruptDataError, match="offset 2"):
        bulk(log_of(1, [topic(1), UNDECODABLE]))


def test_a_lenient_loader_skips_counts_and_remembers() -> None:
    batches = log_of(1, [topic(1), UNKNOWN], [partition(9), UNDECODABLE, topic(2)], [end(), topic(3)])
    loader = bulk(batches, lenient=True)
    assert [skipped.offset for skipped in loader.skipped] == [2, 3, 4, 6]
    assert [s.type for s in loader.skipped] == ["UNKNOWN", "PARTITION_RECORD", "UNDECODABLE", "END_TRANSACTION_RECORD"]
    assert set(loader.take_image().topics.topics_by_name()) == {"topic-1", "topic-2", "topic-3"}


def test_a_lenient_loader_skips_single_records_of_a_transaction() -> None:
    loader = bulk(log_of(1, [begin(), partition(9), topic(1), end()]), lenient=True)
    assert [skipped.offset for skipped in loader.skipped] == [2]
    assert set(loader.take_image().topics.topics_by_name()) == {"topic-1"}


def test_what_a_publisher_raises_is_never_skipped() -> None:
    def refuse(*_: object) -> None:
        raise LakeError("the disk is full")

    loader = MetadataBatchLoader(lenient=True, publish=refuse)
    with pytest.raises(LakeError, match="disk is full"):
        loader.load_batch(data(0, topic(1), begin()))


def test_a_gap_and_an_epoch_that_goes_down_are_errors_even_when_lenient() -> None:
    loader = bulk(log_of(2, [topic(1)]), lenient=True)
    with pytest.raises(ReplayError, match=r"Offset 2 is missing.*starts at 5"):
        loader.load_batch(no_op(5, epoch=2))
    with pytest.raises(ReplayError, match=r"batch at offset 2 has epoch 1.*epoch 2"):
        loader.load_batch(no_op(2, epoch=1))


def test_control_records_move_offset_and_epoch_only() -> None:
    voters = VotersRecord(version=0)
    control = RecordBatch.control_of(1, 5, TIME, [KRaftVersionRecord(version=0, k_raft_version=1), voters])
    loader = bulk([leader_change(0, 5), control])
    image = loader.take_image()
    assert image.is_empty()
    assert (image.provenance.offset, image.provenance.epoch) == (2, 5)
    assert (loader.quorum.leader_id, loader.quorum.kraft_version, loader.quorum.voters) == (3000, 1, voters)


def test_stopping_in_the_middle_of_a_batch_is_not_batch_aligned_and_can_go_on() -> None:
    (batch,) = [data(0, topic(1), topic(2), topic(3))]
    loader = bulk([batch], to_offset=1)
    image = loader.take_image()
    assert (image.provenance.offset, image.provenance.batch_aligned) == (1, False)
    assert set(image.topics.topics_by_name()) == {"topic-1", "topic-2"}
    loader.load_batch(batch)
    after = loader.take_image()
    assert (after.provenance.offset, after.provenance.batch_aligned) == (2, True)
    assert set(after.topics.topics_by_name()) == {"topic-1", "topic-2", "topic-3"}


def test_a_batch_that_was_loaded_already_changes_nothing() -> None:
    loader = bulk(small_log())
    image = loader.take_image()
    loader.load_batch(small_log()[-1])
    assert loader.take_image() is image


def test_flushing_nothing_publishes_nothing() -> None:
    published = Published(small_log())
    count = len(published.images)
    published.loader.flush()
    assert len(published.images) == count


def test_a_topic_that_gets_the_name_of_another_is_refused_with_its_offset() -> None:
    batches = log_of(1, [topic(1, "same"), partition(1)], [topic(3), topic(2, "same"), partition(2), topic(4)])
    with pytest.raises(ReplayError, match=r"offset 4, TOPIC_RECORD: topic 'same'"):
        bulk(batches)
    for published in (Published(batches, lenient=True), None):
        loader = bulk(batches, lenient=True) if published is None else published.loader
        assert [(skipped.offset, skipped.type) for skipped in loader.skipped] == [
            (4, "TOPIC_RECORD"),
            (5, "PARTITION_RECORD"),
        ]
        image = loader.take_image()
        assert set(image.topics.topics_by_name()) == {"same", "topic-3", "topic-4"}
        assert image.topics.topics_by_name()["same"].id == uuid_of(1)
        assert len(image.topics.topics_by_name()["same"].partitions) == 1


def test_a_topic_may_get_the_name_of_one_that_is_gone() -> None:
    removed = r.RemoveTopicRecord(topic_id=uuid_of(1))
    image = bulk(log_of(1, [topic(1, "same")], [removed, topic(2, "same")])).take_image()
    assert image.topics.topics_by_name()["same"].id == uuid_of(2)


def test_a_snapshot_drops_the_transaction_that_was_open_before_it() -> None:
    loader = bulk([*log_of(1, [metadata_version(), topic(1)]), data(3, begin("t"), topic(2), epoch=1)])
    assert loader.in_transaction
    assert set(loader.take_image().topics.topics_by_name()) == {"topic-1"}
    place = MetadataProvenance(offset=9, epoch=1, timestamp=TIME, batch_aligned=True)
    loader.load_snapshot([data(0, metadata_version(), topic(3))], place, name="made up")
    assert not loader.in_transaction
    loader.load_batch(data(10, topic(4), epoch=1))
    image = loader.take_image()
    assert image.provenance.offset == 10
    assert set(image.topics.topics_by_name()) == {"topic-3", "topic-4"}


def test_of_two_topics_of_one_name_in_a_snapshot_the_first_stays() -> None:
    loader = bulk(log_of(1, [topic(1, "same"), topic(5)]), lenient=True)
    loader.take_image()
    snapshot = [data(0, metadata_version(), topic(2, "same"), partition(2), topic(3, "same"), topic(4))]
    place = MetadataProvenance(offset=9, epoch=1, timestamp=TIME, batch_aligned=True)
    loader.load_snapshot(snapshot, place, name="made up")
    delta, image = loader.take_change()
    assert {name: known.id for name, known in image.topics.topics_by_name().items()} == {
        "same": uuid_of(2),
        "topic-4": uuid_of(4),
    }
    assert delta.topics_delta is not None
    assert delta.topics_delta.deleted_topic_ids == {uuid_of(1), uuid_of(5)}
    assert [skipped.type for skipped in loader.skipped] == ["TOPIC_RECORD"]
    loader.load_batch(data(10, topic(6, "same"), epoch=1))
    assert [skipped.offset for skipped in loader.skipped] == [3, 10], "offsets inside the snapshot, then the log's"


def test_the_image_at_every_offset_is_the_same_in_bulk_and_batch_by_batch() -> None:
    for at in range(small_log()[-1].last_offset + 1):
        one_delta = bulk(small_log(), to_offset=at).take_image()
        assert one_delta == attrs.evolve(reference_image(small_log(), at), provenance=one_delta.provenance)
        assert one_delta.provenance.offset == at


def in_batches(parts: list[list[ApiMessageAndVersion]]) -> list[RecordBatch]:
    batches: list[RecordBatch] = []
    offset = 0
    for part in parts:
        if part:
            batches.append(RecordBatch.of(offset, 1, TIME + offset, part))
            offset += len(part)
    return batches


@few_examples
@given(split_histories(), st.data())
def test_every_split_into_batches_and_deltas_reaches_the_same_image(
    parts: list[list[ApiMessageAndVersion]], choices: st.DataObject
) -> None:
    batches = in_batches(parts)
    whole = bulk(in_batches([[record for part in parts for record in part]])).take_image()
    assert without_place(reference_image(batches)) == without_place(whole)
    loader = MetadataBatchLoader()
    for batch in batches:
        loader.load_batch(batch)
        if choices.draw(st.booleans()):
            loader.take_image()
    assert without_place(loader.take_image()) == without_place(whole)


@few_examples
@given(split_histories(max_steps=20), st.data())
def test_a_transaction_around_any_records_changes_when_they_take_effect_and_nothing_else(
    parts: list[list[ApiMessageAndVersion]], choices: st.DataObject
) -> None:
    records = [record for part in parts for record in part]
    first = choices.draw(st.integers(0, len(records)))
    last = choices.draw(st.integers(first, len(records)))
    marked = [
        *records[:first],
        ApiMessageAndVersion(begin(), 0),
        *records[first:last],
        ApiMessageAndVersion(end(), 0),
        *records[last:],
    ]
    cuts = sorted(choices.draw(st.lists(st.integers(0, len(marked)), max_size=6)))
    split = [marked[low:high] for low, high in zip([0, *cuts], [*cuts, len(marked)], strict=True)]
    published = Published(in_batches(split))
    assert without_place(published.images[-1]) == without_place(bulk(in_batches([records])).take_image())
    assert not any(first <= offset < last + 1 for offset in published.offsets)
