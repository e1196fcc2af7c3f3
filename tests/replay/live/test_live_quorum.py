from __future__ import annotations

from collections.abc import Iterator

import pytest

import kraftlake
from kraftlake.records.batch import encode_batch
from kraftlake.records.offset_and_epoch import OffsetAndEpoch
from kraftlake.replay.live.open_live import open_live
from kraftlake.runtime.errors import OffsetError, UsageError
from tests.protocol.observer.fake_quorum import FakeQuorum
from tests.protocol.observer.model_quorum import ModelQuorum


@pytest.fixture
def quorum() -> Iterator[FakeQuorum]:
    model = ModelQuorum()
    model.elect(0, 1)
    model.append(3)
    model.replicate(1, 9)
    fake = FakeQuorum(model)
    with fake.serving():
        yield fake


def test_a_quorum_gives_what_it_commits_and_its_trouble_passes(quorum: FakeQuorum) -> None:
    source = kraftlake.open(f"kafka://{','.join(map(str, quorum.addresses))}")
    assert (source.start_offset, source.end_offset, source.cluster_id) == (0, 4, quorum.cluster_id)
    live = open_live(source, poll=0.1)
    quorum.model.append(2)
    assert live.step() == []
    assert live.seen_to == 6, "sent, and not committed yet"
    quorum.model.replicate(2, 9)
    given = [encode_batch(batch) for batch in live.step()]
    quorum.spoil = lambda data: b"\0\0\0\0"
    assert live.step() == []
    assert live.trouble is not None
    assert "can't be asked" in live.trouble
    quorum.spoil = lambda data: data
    assert quorum.model.elect(2, 1)
    quorum.model.replicate(1, 9)
    given += [encode_batch(batch) for batch in (*live.step(), *live.step())]
    assert live.trouble is None
    assert given == [batch.data for batch in quorum.model.committed if batch.base_offset >= 4]
    live.close()


def test_what_the_leader_deleted_before_it_was_read_is_an_error_with_the_offsets(quorum: FakeQuorum) -> None:
    live = open_live(kraftlake.open(str(quorum.addresses[0])), poll=0.1)
    quorum.model.append(5)
    quorum.model.replicate(1, 9)
    quorum.model.snapshot = OffsetAndEpoch(offset=9, epoch=1)
    quorum.model.log_start_offset, quorum.model.log_start_epoch = 9, 1
    with pytest.raises(OffsetError, match="starts at offset 9 now: what it had from offset 4 on was deleted"):
        live.step()
    live.close()


def test_a_snapshot_of_a_later_epoch_takes_the_place_of_nothing_that_the_leader_still_has(quorum: FakeQuorum) -> None:
    live = open_live(kraftlake.open(str(quorum.addresses[0])), poll=0.1)
    assert quorum.model.elect(1, 2)
    quorum.model.append(5)
    quorum.model.replicate(2, 9)
    end = quorum.model.committed[-1].last_offset + 1
    quorum.model.snapshot = OffsetAndEpoch(offset=end, epoch=2)
    given = [encode_batch(batch) for _ in range(3) for batch in live.step()]
    assert given == [batch.data for batch in quorum.model.committed if batch.base_offset >= 4]
    live.close()


def test_a_quorum_shows_by_itself_what_is_committed(quorum: FakeQuorum) -> None:
    source = kraftlake.open(str(quorum.addresses[0]))
    with pytest.raises(UsageError, match="is a quorum, which tells by itself what is committed"):
        open_live(source, poll=0.1, include_uncommitted=True)


def test_a_node_of_a_quorum_can_t_be_chosen_and_a_file_takes_no_command_config(quorum: FakeQuorum) -> None:
    with pytest.raises(UsageError, match="is a quorum, which has one log"):
        kraftlake.open(str(quorum.addresses[0]), node=1)
    with pytest.raises(UsageError, match="a command config belongs to HOST:PORT"):
        kraftlake.open("samples", command_config="client.properties")
