"""The ends of deltas, by one plain rule: as the loader publishes them, and as a replay by columns cuts them."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.image.provenance import MetadataProvenance
from kraftlake.records.batch import RecordBatch
from kraftlake.records.metadata_records import BeginTransactionRecord, NoOpRecord
from kraftlake.records.schema import Message
from kraftlake.replay.loader.batch_loader import MetadataBatchLoader
from kraftlake.replay.log.log_replay import LogReplay
from tests.replay.made_logs import abort, begin, end, log_of, topic

Delta = tuple[int, int, int, int]
"""Last offset, epoch and time of a delta, and the leader of the quorum there, -1 for none."""


@st.composite
def logs(draw: st.DrawFn) -> list[RecordBatch]:
    """Batches of any length, with transactions that begin and end anywhere, and new leaders in between."""
    groups, is_open, number = list[list[Message] | int](), False, 0
    for _ in range(draw(st.integers(1, 12))):
        if draw(st.integers(0, 4)) == 0:
            groups.append(sum(isinstance(group, int) for group in groups) + 1)
            continue
        group = list[Message]()
        for kind in draw(st.lists(st.sampled_from("tnnm"), min_size=1, max_size=5)):
            number += 1
            if kind == "m":
                group.append(draw(st.sampled_from([end(), abort()])) if is_open else begin())
                is_open = not is_open
            else:
                group.append(topic(number) if kind == "t" else NoOpRecord())
        groups.append(group)
    return log_of(*groups)


def deltas_of(fetches: Sequence[Sequence[RecordBatch]]) -> list[Delta]:
    """The deltas of batches that are loaded fetch by fetch."""
    found, leader = list[Delta](), -1
    is_open, has_records, before = False, False, MetadataProvenance.EMPTY
    for fetch in fetches:
        for batch in fetch:
            for offset, record in enumerate(batch.messages(), start=batch.base_offset):
                begins = isinstance(record.message, BeginTransactionRecord)
                if begins and has_records:
                    found.append((before.offset, before.epoch, before.timestamp, leader))
                if isinstance(record.message, (type(begin()), type(end()), type(abort()))):
                    is_open = begins
                leader = 3000 if batch.control else leader
                before, has_records = (
                    attrs.evolve(before, offset=offset, epoch=batch.epoch, timestamp=batch.timestamp),
                    True,
                )
        if has_records and not is_open:
            found.append((before.offset, before.epoch, before.timestamp, leader))
            has_records = False
    return found


@given(log=logs(), fetched=st.lists(st.integers(1, 4), min_size=12, max_size=12))
def test_the_loader_publishes_the_deltas_of_each_fetch(log: list[RecordBatch], fetched: list[int]) -> None:
    fetches, published = [], list[Delta]()
    while log:
        fetches.append(log[: fetched[len(fetches)]])
        log = log[len(fetches[-1]) :]
    loader = MetadataBatchLoader(
        publish=lambda _, image, manifest: published.append(
            (
                image.offset,
                image.provenance.epoch,
                image.provenance.timestamp,
                -1 if manifest.leader_id is None else manifest.leader_id,
            )
        )
    )
    for fetch in fetches:
        for batch in fetch:
            loader.load_batch(batch)
        loader.flush()
    assert published == deltas_of(fetches)


@given(log=logs(), at_once=st.integers(1, 12))
def test_a_replay_cuts_a_log_as_a_loader_that_fetches_batch_by_batch(log: list[RecordBatch], at_once: int) -> None:
    replay, found = LogReplay(), list[Delta]()
    for first in range(0, len(log), at_once):
        for chunk in replay.take_parts(log[first : first + at_once]):
            ends = chunk.boundaries
            columns = (ends.offsets, ends.epochs, ends.times, ends.leaders)
            found += zip(*(column.tolist() for column in columns), strict=True)
    assert found == deltas_of([[batch] for batch in log])
