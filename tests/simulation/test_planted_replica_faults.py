"""Planted faults of replicas: the simulation of replication sees each of them within a few histories."""

from __future__ import annotations

import attrs
import pytest

from kraftlake.protocol.error_code import ErrorCode
from kraftlake.replica_manager.errors import CorruptRecordError
from kraftlake.replica_manager.fetch.local_end_point import LocalEndPoint
from kraftlake.replica_manager.fetch.replica_fetcher import ReplicaFetcher
from kraftlake.replica_manager.logs.disk.disk_log_manager import DiskLogManager
from kraftlake.replica_manager.logs.disk.log_segment import LogSegment
from kraftlake.replica_manager.logs.producer_state import ProducerStates
from kraftlake.runtime.errors import CorruptDataError
from tests.simulation.replication import Simulation

ENOUGH_SEEDS = 100


def run_histories(*, disks: bool = False) -> None:
    for seed in range(ENOUGH_SEEDS):
        Simulation(seed, disks=disks).run()


def test_the_simulation_sees_future_logs_truncated_only_by_their_last_epoch(monkeypatch):
    monkeypatch.setattr(LocalEndPoint, "is_truncation_on_fetch_supported", True)
    with pytest.raises(AssertionError, match="the copy that took its replica's place"):
        run_histories()


def test_the_simulation_sees_answers_accepted_in_a_later_leader_epoch(monkeypatch):
    take = ReplicaFetcher.handle_response

    def take_in_any_epoch(self, response) -> None:
        states, asked = self.states(), self._session.partitions
        for name in asked.keys() & states.keys() & response.partitions.keys():
            if response.partitions[name].error is ErrorCode.NONE:
                asked[name] = attrs.evolve(asked[name], current_leader_epoch=states[name].current_leader_epoch)
        take(self, response)

    monkeypatch.setattr(ReplicaFetcher, "handle_response", take_in_any_epoch)
    with pytest.raises(AssertionError, match="has other records than its leader"):
        run_histories()


@pytest.mark.parametrize("forgotten", ["all", "on followers", "after truncation"])
def test_the_simulation_sees_repeated_batches_that_are_appended_again(monkeypatch, forgotten):
    check = ProducerStates.check

    def check_less(self, batches, origin):
        if forgotten == "all" or (forgotten == "on followers" and origin.value == "replication"):
            return [], None
        return check(self, batches, origin)

    monkeypatch.setattr(ProducerStates, "check", check_less)
    if forgotten == "after truncation":
        for rebuilding in ("load", "replay"):
            monkeypatch.setattr(ProducerStates, rebuilding, lambda *_: None)
    with pytest.raises(AssertionError, match=r"appended twice|is another record now"):
        run_histories()


def test_the_simulation_sees_copies_promoted_that_are_behind(monkeypatch):
    def promote_all(self, broker_id, topics) -> None:
        for name, future in list(self._future_logs.items()):
            state = topics.get_partition(future.topic_id, name.partition)
            if state is not None and state.directory(broker_id) == self.directories.get(future.directory):
                self._promote(name)

    monkeypatch.setattr(DiskLogManager, "recover_abandoned_future_logs", promote_all)
    with pytest.raises(AssertionError, match=r"may lead and has \d+ of \d+ committed records"):
        run_histories(disks=True)


def test_the_simulation_sees_torn_ends_that_are_not_cut(monkeypatch):
    def recover_less(self, index_interval_bytes, *, cut):
        try:
            yield from recover(self, index_interval_bytes, cut=False)
        except CorruptRecordError:
            self.become_inactive()

    recover = LogSegment.recover
    monkeypatch.setattr(LogSegment, "recover", recover_less)
    with pytest.raises((AssertionError, CorruptDataError)):
        run_histories(disks=True)
