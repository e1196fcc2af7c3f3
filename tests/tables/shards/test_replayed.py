"""What a shard and the driver make of a snapshot, the log after it, and a step."""

from __future__ import annotations

import pytest

from kraftlake.image.provenance import MetadataProvenance
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.rows import to_rows
from kraftlake.runtime.errors import ReplayError
from kraftlake.tables.shards.chunks import Chunk, Part
from kraftlake.tables.shards.replayed import parts_of_step, replayed
from kraftlake.tables.shards.routing import Router
from tests.replay.made_logs import begin, data, end, metadata_version, partition, topic, uuid_of

BASE_AT = MetadataProvenance(offset=99, epoch=1, timestamp=7)
BASE = data(0, metadata_version(), topic(1), partition(1), topic(2), partition(2))
CHANGE = r.PartitionChangeRecord(partition_id=0, topic_id=uuid_of(2), leader=2)


def chunks(part: Part, *batches: RecordBatch) -> list[list[Chunk]]:
    """The chunks of a log for one shard, and for the driver."""
    router = Router(1, part)
    sent = [*router.take(to_rows(batches)), *router.flush()]
    return [[chunk for chunk in sent if chunk.shard == number] for number in (0, 1)]


def test_partitions_of_a_snapshot_are_so_since_it_ends_and_those_of_the_log_since_their_records() -> None:
    base, log = chunks(Part.BASE, BASE), chunks(Part.LOG, data(100, r.NoOpRecord(), CHANGE))
    replay, rest = replayed([*base[0], *log[0]], BASE_AT, of_shard=True)
    state = replay.state
    assert not [*rest]
    assert state.image.topics.partition_count == 2
    assert sorted(state.since.tolist()) == [99, 101]
    driver, _ = replayed([*base[1], *log[1]], BASE_AT, of_shard=False)
    assert driver.image.topics.topic_count == 2
    assert driver.image.features.metadata_version is not None


def test_a_mark_of_a_transaction_in_a_snapshot_is_refused() -> None:
    for chosen, of_shard in zip(chunks(Part.BASE, data(0, begin(), topic(1), end())), (True, False), strict=True):
        with pytest.raises(ReplayError, match="BEGIN_TRANSACTION_RECORD"):
            replayed(chosen, BASE_AT, of_shard=of_shard)


def test_a_step_as_one_delta_has_a_partition_once_and_what_waited_in_a_transaction() -> None:
    log = chunks(Part.LOG, BASE, data(5, begin(), CHANGE))
    step = chunks(Part.STEP, data(7, end(), CHANGE), data(9, CHANGE, r.RemoveTopicRecord(topic_id=uuid_of(1))))
    replay, rest = replayed([*log[0], *step[0]], MetadataProvenance.EMPTY, of_shard=True)
    (chunk,) = replay.take_parts(parts_of_step(rest), in_one_delta=True)
    changes = chunk.partitions.by_delta()
    assert chunk.boundaries.offsets.tolist() == [10]
    assert sorted(changes.names.topics.take(changes.topics.tolist()).to_pylist()) == ["topic-1", "topic-2"]
    assert changes.deltas.tolist() == [0, 0]
