from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraftlake.generate import broker_events as events
from kraftlake.generate.episodes import EPISODES
from kraftlake.generate.plan import PATTERNS, Plan
from kraftlake.records.metadata_records import NoOpRecord, PartitionChangeRecord
from kraftlake.replay.loader.batch_loader import MetadataBatchLoader
from tests.generate.made_up import MadeUp, plans

WHOLE_HISTORIES = max(20, settings.default.max_examples // 10)
"""Each of them takes a while."""


@settings(max_examples=WHOLE_HISTORIES)
@given(plan=plans(), patterns=st.lists(st.sampled_from(PATTERNS), max_size=4))
def test_the_records_agree_with_the_state_of_the_generated_cluster(plan: Plan, patterns: list[str]) -> None:
    history = MadeUp(plan)
    history.assert_same(history.loader.image)
    for pattern in patterns:
        image = history.play(EPISODES[pattern])
        history.assert_same(image)


@settings(max_examples=WHOLE_HISTORIES)
@given(plan=plans(), data=st.data())
def test_after_any_events_of_brokers_the_leader_is_alive_and_in_sync(plan: Plan, data: st.DataObject) -> None:
    history = MadeUp(plan)
    cluster = history.cluster
    for _ in range(data.draw(st.integers(1, 8))):
        broker = data.draw(st.sampled_from(cluster.brokers))
        does = (events.fence, events.shut_down) if cluster.alive[broker] else (events.come_back,)
        event = data.draw(st.sampled_from(does))
        image = history.play(lambda writer, event=event, broker=broker: event(writer, broker))
        history.assert_same(image)
        led = cluster.leader >= 0
        is_leader = cluster.replicas == cluster.leader[:, None]
        assert (cluster.alive[cluster.leader] & (is_leader & cluster.in_sync).any(1))[led].all()
        assert not (cluster.in_sync & cluster.alive[cluster.replicas])[~led].any()
        assert cluster.in_sync.any(1).all()


def test_every_pattern_has_an_episode() -> None:
    assert tuple(EPISODES) == PATTERNS


def test_during_an_outage_the_zone_leads_nothing_and_afterwards_the_cluster_is_as_before() -> None:
    history = MadeUp(Plan(brokers=6, racks=3, topics=5, seed=3))
    before, first = history.cluster.leader.copy(), len(history.batches)
    image = history.play(EPISODES["zone-outage"])
    assert (history.cluster.leader == before).all()
    assert not [broker for broker in image.cluster.brokers.values() if broker.fenced]

    at_rest = MetadataBatchLoader()
    fenced: list[set[int]] = []
    for number, batch in enumerate(history.batches):
        at_rest.load_batch(batch)
        then = at_rest.take_image()
        if number >= first:
            fenced.append({id_ for id_, broker in then.cluster.brokers.items() if broker.fenced})
            assert (
                not {p.leader for topic in then.topics.topics_by_id().values() for p in topic.partitions.values()}
                & fenced[-1]
            )
    assert max(fenced, key=len) in ({1, 4}, {2, 5}, {3, 6})


def test_replicas_move_by_way_of_adding_and_removing() -> None:
    history = MadeUp(Plan(brokers=6, topics=20, seed=1))
    first = len(history.batches)
    history.play(EPISODES["reassignment-storm"])
    begun, ended = ([message.message for message in batch.messages()] for batch in history.batches[first:])
    assert begun
    assert len(begun) == len(ended)
    for record in begun:
        assert isinstance(record, PartitionChangeRecord)
        assert record.adding_replicas
        assert record.removing_replicas
        assert record.replicas
        assert set(record.adding_replicas) | set(record.removing_replicas) < set(record.replicas)
    assert all(isinstance(record, PartitionChangeRecord) and record.adding_replicas == () for record in ended)


@pytest.mark.parametrize(("duration", "count"), [(0, 0), (499, 0), (500, 1), (2_250, 4)])
def test_in_quiet_time_there_is_a_no_op_record_every_half_second(duration: int, count: int) -> None:
    history = MadeUp(Plan(topics=1))
    before, began = len(history.batches), history.writer.now_ms
    history.play(lambda writer: writer.quiet(duration))
    quiet = history.batches[before:]
    assert [batch.timestamp for batch in quiet] == [began + 500 * number for number in range(1, count + 1)]
    assert all([message.message for message in batch.messages()] == [NoOpRecord()] for batch in quiet)
    assert history.writer.now_ms == began + duration


def test_one_answer_of_the_controller_is_cut_where_a_batch_is_full() -> None:
    history = MadeUp(Plan(brokers=3, topics=30, partitions=500, patterns=()))
    before = len(history.batches)
    history.play(lambda writer: events.fence(writer, 1))
    sizes = [batch.record_count for batch in history.batches[before:]]
    assert sizes == [10_000, 5_001]
    assert np.diff([batch.timestamp for batch in history.batches]).min() >= 0
