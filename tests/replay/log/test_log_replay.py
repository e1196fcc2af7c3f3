"""A log cut into deltas: as a broker's loader publishes them, whatever pieces it comes in and whatever is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.image.metadata_image import MetadataImage
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.row_values import values_of_rows
from kraftlake.records.rows import to_rows
from kraftlake.records.schema import Message
from kraftlake.replay.loader.batch_loader import MetadataBatchLoader
from kraftlake.replay.log.delta_chunk import DeltaChunk
from kraftlake.replay.log.log_replay import LogReplay
from kraftlake.replay.queries.changes import ChangeFold, Published
from kraftlake.runtime.errors import KraftlakeError
from tests.few_examples import few_examples
from tests.metadata_logs import metadata_logs
from tests.replay.made_logs import UNDECODABLE, UNKNOWN, MadeLog, abort, begin, data, end, partition, topic, uuid_of

ODD: Sequence[Message | bytes] = (
    UNDECODABLE,
    b"\x01\x14\x00\x00\x00",  # a no-op record with a byte too many
    b"\x01\x14\x09\x00",  # a no-op record in a version of the future
    b"\x01\x05\x09\x00",  # a PartitionChangeRecord in a version of the future
    b"\x01\x17\x09\x00",  # a BeginTransactionRecord in a version of the future
    r.FenceBrokerRecord(id=77, epoch=1),
    r.RemoveTopicRecord(topic_id=uuid_of(99)),
    r.PartitionChangeRecord(partition_id=5, topic_id=uuid_of(99), leader=1),
    r.RemoveAccessControlEntryRecord(id=uuid_of(98)),
    begin(),
    end(),
    abort(),
)

Outcome = tuple[list[int], str | None, list[tuple[int, str, str]]]
"""The last offsets of the deltas that change something, the fault at the end, what was skipped."""


def loaded(batches: Iterable[RecordBatch], *, lenient: bool) -> tuple[list[Published], ChangeFold, str | None]:
    fold, published = ChangeFold(MetadataBatchLoader(lenient=lenient)), list[Published]()
    try:
        for batch in batches:
            published += fold.take(batch)
    except KraftlakeError as error:
        return [*published, *fold._taken()], fold, str(error)
    return published, fold, None


def replayed(replay: LogReplay, chunks: Iterable[DeltaChunk]) -> tuple[list[DeltaChunk], str | None]:
    taken = list[DeltaChunk]()
    try:
        taken += chunks
    except KraftlakeError as error:
        return taken, str(error)
    return taken, None


def ends_of(chunks: Iterable[DeltaChunk]) -> list[int]:
    """The last offsets of the deltas that are no batches of no-op records."""
    return [int(end) for chunk in chunks for end in chunk.boundaries.offsets[~chunk.boundaries.noop]]


def changed(image: MetadataImage, before: MetadataImage) -> bool:
    return any(
        getattr(image, part) is not getattr(before, part)
        for part in ("features", "cluster", "configs", "client_quotas", "acls", "scram", "delegation_tokens")
    )


@st.composite
def spoiled_logs(draw: st.DrawFn) -> list[RecordBatch]:
    """A log with records put in that contradict it, can't be decoded, or are of the future."""
    log = draw(metadata_logs())
    batches, offset = list[RecordBatch](), 0
    for batch in log:
        if draw(st.integers(0, 6)) == 0:
            batches.append(
                data(offset, *draw(st.lists(st.sampled_from(ODD), min_size=1, max_size=2)), epoch=batch.epoch)
            )
            offset = batches[-1].last_offset + 1
        values = list(batch.values)
        if not batch.control and draw(st.integers(0, 4)) == 0:
            odd = data(0, draw(st.sampled_from(ODD))).values[0]
            values.insert(draw(st.integers(0, len(values))), odd)
        times = (batch.timestamp,) * len(values)
        batches.append(attrs.evolve(batch, base_offset=offset, values=tuple(values), timestamps=times))
        offset = batches[-1].last_offset + 1
    return batches


@few_examples
@given(log=spoiled_logs(), lenient=st.booleans(), in_rows=st.booleans(), at_once=st.integers(1, 9))
def test_deltas_faults_and_images_are_those_of_a_brokers_loader(
    log: list[RecordBatch], lenient: bool, in_rows: bool, at_once: int
) -> None:
    published, fold, fault = loaded(log, lenient=lenient)
    replay = LogReplay(lenient=lenient)
    pieces = [log[at : at + at_once] for at in range(0, len(log), at_once)]

    def chunks() -> Iterable[DeltaChunk]:
        for piece in pieces:
            yield from replay.take_parts(values_of_rows(to_rows(piece)) if in_rows else piece)

    taken, found = replayed(replay, chunks())
    assert (found, ends_of(taken)) == (fault, [change.offset for change in published])
    assert sorted(replay.skipped, key=str) == sorted(fold.loader.skipped, key=str)
    if fault is None:
        fold.loader.flush()
        assert replay.image == fold.loader.image
        assert replay.in_transaction == fold.loader.in_transaction
        assert replay.last_offset == fold.loader.last_offset


@few_examples
@given(log=metadata_logs())
def test_other_changes_lead_from_image_to_image(log: list[RecordBatch]) -> None:
    published, _, _ = loaded(log, lenient=False)
    replay = LogReplay()
    chunks = [*replay.take_parts(log)]
    before = MetadataImage.EMPTY
    ends = dict[int, MetadataImage]()
    for chunk in chunks:
        for other in chunk.others:
            assert other.change.image is before or other.change.image == before
            assert other.messages or changed(other.image, other.change.image)
            before = other.image
            ends[int(chunk.boundaries.offsets[other.delta])] = before
    for change in published:
        if change.offset in ends:
            assert not changed(ends[change.offset], change.image) or ends[change.offset].acls == change.image.acls
    assert before.configs == replay.image.configs


@few_examples
@given(log=metadata_logs(), at=st.integers(-1, 40))
def test_it_begins_anywhere(log: list[RecordBatch], at: int) -> None:
    last = log[-1].last_offset
    at = min(at, last)
    whole, begun = LogReplay(), LogReplay()
    ends = [end for end in ends_of(whole.take_parts(log)) if end > at]
    begun.begin_at(MadeLog(records=tuple(log)), at)
    assert begun.last_offset == at
    assert ends_of(begun.read(MadeLog(records=tuple(log)), last)) == ends
    assert begun.image == whole.image


def test_what_is_left_out_before_it_begins_within_a_transaction_is_left_out_once() -> None:
    log = MadeLog(records=(data(0, topic(1), begin(), topic(2), UNDECODABLE, begin()), data(5, topic(3), end())))
    replay = LogReplay(lenient=True)
    replay.begin_at(log, 4)
    assert ends_of(replay.read(log, 6)) == [6]
    assert [(one.offset, one.type) for one in replay.skipped] == [(3, "UNDECODABLE"), (4, "BEGIN_TRANSACTION_RECORD")]
    assert replay.image.topics.topic_count == 3


def test_a_gap_and_a_lower_epoch_are_refused_after_what_is_before() -> None:
    gap = [data(0, topic(1), partition(1)), data(5, topic(2))]
    taken, fault = replayed(replay := LogReplay(), replay.take_parts(gap))
    assert ends_of(taken) == [1]
    assert fault == "Offset 2 is missing: the batch after offset 1 starts at 5."
    lower = [data(0, topic(1), partition(1), epoch=3), data(2, topic(2), epoch=2)]
    taken, fault = replayed(replay := LogReplay(), replay.take_parts(lower))
    assert ends_of(taken) == [1]
    assert fault == "The batch at offset 2 has epoch 2, but offset 1 before it has epoch 3."


def test_of_a_batch_the_records_up_to_an_offset_are_read() -> None:
    log = MadeLog(records=(data(0, topic(1), partition(1)), data(2, topic(2), partition(2), topic(3))))
    replay = LogReplay()
    assert ends_of(replay.read(log, 3)) == [1, 3]
    assert replay.image.topics.topic_count == 2
    assert ends_of(replay.read(log, 4)) == [4]
    assert replay.image.topics.topic_count == 3


@pytest.mark.parametrize("lenient", [True, False])
def test_an_unknown_record_of_an_aborted_transaction_is_nothing(lenient: bool) -> None:
    log = [data(0, topic(1)), data(1, begin(), UNKNOWN, abort()), data(4, topic(2))]
    replay = LogReplay(lenient=lenient)
    assert ends_of(replay.take_parts(log)) == [0, 3, 4]
    assert not replay.skipped


@pytest.mark.parametrize("end", [[abort()], [r.NoOpRecord()]], ids=["aborted", "open"])
def test_what_can_not_be_decoded_is_a_fault_in_a_transaction_without_effect_too(end: list[Message]) -> None:
    log = [data(0, topic(1), partition(1)), data(2, begin(), topic(2), UNDECODABLE), data(5, *end)]
    sentence = "The record at offset 4 can't be decoded: "
    taken, fault = replayed(replay := LogReplay(), replay.take_parts(log))
    assert fault is not None
    assert fault.startswith(sentence)
    assert ends_of(taken) == [1]
    assert replay.image.topics.topic_count == 1
    lenient = LogReplay(lenient=True)
    assert ends_of(lenient.take_parts(log)) == [1, 5][: 1 + (end == [abort()])]
    ((offset, type_, reason),) = ((one.offset, one.type, one.reason) for one in lenient.skipped)
    assert (offset, type_, reason.startswith(sentence)) == (4, "UNDECODABLE", True)


def test_after_a_fault_the_image_is_the_one_of_the_deltas_before() -> None:
    gone = r.PartitionChangeRecord(partition_id=7, topic_id=uuid_of(1), leader=2)
    log = [data(0, topic(1), partition(1)), data(2, topic(2), r.ConfigRecord(
        resource_type=2, resource_name=f"t{1}", name="a", value="b"), partition(1, partition_id=1), gone)]  # fmt: skip
    taken, fault = replayed(replay := LogReplay(), replay.take_parts(log))
    assert fault is not None
    expected = LogReplay()
    assert ends_of(taken) == ends_of(expected.take_parts(log[:1]))
    assert attrs.evolve(replay.image, provenance=expected.provenance) == expected.image


def test_by_offset_each_record_that_takes_effect_ends_a_delta_and_no_ops_do_not() -> None:
    log = [
        data(0, topic(1), r.NoOpRecord(), partition(1)),
        data(3, begin(), topic(2), partition(2), end(), topic(3)),
    ]
    replay = LogReplay(by_offset=True)
    chunks = [*replay.take_parts(log)]
    assert ends_of(chunks) == [0, 2, 6, 7]
    offsets, times = (
        [one for chunk in chunks for one in getattr(chunk.boundaries, name).tolist()] for name in ("offsets", "times")
    )
    assert times == [log[0 if offset < 3 else 1].timestamp for offset in offsets]
    assert [chunk.partitions.created[:, 0].tolist() for chunk in chunks] == [[0, 2, 3]]


@pytest.mark.parametrize("damaged", [b"\x01\x14\x09\x00", b"\x01\x14\x00\x05"])
def test_rows_of_no_ops_are_passed_over_unless_one_of_them_is_damaged_or_of_the_future(damaged: bytes) -> None:
    quiet = [data(at, r.NoOpRecord()) for at in range(1, 4)]
    replay = LogReplay()
    assert ends_of(replay.take(to_rows([data(0, topic(1))]))) == [0]
    assert replay.take(to_rows(quiet)) == []
    assert replay.last_offset == 3
    with pytest.raises(KraftlakeError, match="offset 5"):
        replay.take(to_rows([data(4, r.NoOpRecord()), data(5, damaged)]))
