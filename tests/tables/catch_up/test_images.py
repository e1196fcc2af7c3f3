"""The images that a fold makes from the deltas that tables share are those of a loader."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.image import MetadataImage
from kraftlake.records.batch import RecordBatch
from kraftlake.records.rows import to_rows
from kraftlake.replay.loader.batch_loader import MetadataBatchLoader
from kraftlake.replay.loader.quorum_state import QuorumState
from kraftlake.replay.log.log_replay import LogReplay
from kraftlake.runtime.errors import ReplayError, UnknownRecordError
from kraftlake.tables.catch_up.delta_images import DeltaImages
from tests.metadata_logs import metadata_logs
from tests.replay.made_logs import UNKNOWN, begin, data, end, leader_change, no_op, topic
from tests.tables.telling import cut


class Images(DeltaImages):
    """The images of a log from its beginning."""

    def __init__(self, *, bulk: bool = True) -> None:
        super().__init__(LogReplay(bulk=bulk), MetadataImage.EMPTY)

    def take(self, rows: pa.Table) -> None:
        for chunk in self.replay.take(rows):
            self.take_deltas(chunk)


WAYS: Final[dict[str, Callable[[], Images]]] = {"compiled": Images, "objects": lambda: Images(bulk=False)}


def by_loader(batches: Sequence[RecordBatch]) -> tuple[MetadataImage, QuorumState]:
    """The newest image that a loader publishes, flushed after each batch."""
    loader = MetadataBatchLoader(publish=lambda *_: None)
    for batch in batches:
        loader.load_batch(batch)
        loader.flush()
    return loader.image, loader.quorum


def check(way: str, pieces: Sequence[Sequence[RecordBatch]]) -> None:
    """After each piece, or only at the end, it is the loader's."""
    images, only_at_the_end, taken = WAYS[way](), WAYS[way](), list[RecordBatch]()
    for piece in pieces:
        if piece:
            images.take(to_rows(piece))
            only_at_the_end.take(to_rows(piece))
            taken += piece
            topics = images.image.topics
            assert images.topic_counts == (topics.topic_count, topics.partition_count)
            assert only_at_the_end.topic_counts == images.topic_counts
            assert (images.image, images.quorum) == by_loader(taken)
    assert only_at_the_end.image == images.image


@pytest.mark.parametrize("way", WAYS)
@given(log=metadata_logs(), cuts=st.lists(st.integers(0, 20), max_size=4))
def test_after_any_batch_the_image_is_the_one_of_a_loader(way: str, log: list[RecordBatch], cuts: list[int]) -> None:
    check(way, cut(log, cuts))


@pytest.mark.parametrize("way", WAYS)
def test_it_moves_on_over_no_op_records_control_records_and_to_the_begin_of_a_transaction(way: str) -> None:
    log = [
        data(0, topic(0)),
        no_op(1, time=70),
        no_op(2),
        leader_change(3, epoch=4),
        no_op(4, epoch=4, time=90),
        no_op(5, epoch=5),
        data(6, topic(1), begin(), topic(2), epoch=5),
        no_op(9, epoch=5),
        data(10, topic(3), end(), epoch=5),
    ]
    check(way, [[batch] for batch in log])
    check(way, [log[:3], log[3:7], log[7:]])


@pytest.mark.parametrize("way", WAYS)
def test_what_a_loader_refuses_is_refused(way: str) -> None:
    for fault, batch in ((UnknownRecordError, data(1, UNKNOWN)), (ReplayError, no_op(1, epoch=0))):
        images = WAYS[way]()
        images.take(to_rows([data(0, topic(0))]))
        with pytest.raises(fault) as refused:
            images.take(to_rows([batch]))
        with pytest.raises(fault) as expected:
            by_loader([data(0, topic(0)), batch])
        assert str(refused.value) == str(expected.value)
