"""A broker registers again once its log directories can be noted."""

from __future__ import annotations

from kraftlake.records import metadata_records as r
from kraftlake.server.broker.broker_registration_tracker import BrokerRegistrationTracker
from tests.publisher.updates import DIRECTORY, Cluster
from tests.replay.made_logs import uuid_of


def version(level: int) -> r.FeatureLevelRecord:
    return r.FeatureLevelRecord(name="metadata.version", feature_level=level)


def registration(broker: int, *directories: object) -> r.RegisterBrokerRecord:
    return r.RegisterBrokerRecord(broker_id=broker, incarnation_id=uuid_of(broker), log_dirs=directories)


def test_it_registers_again_where_a_raised_version_lets_its_directories_be_noted() -> None:
    again: list[None] = []
    made = Cluster((BrokerRegistrationTracker(1, lambda: again.append(None)),))
    made.change(version(16), registration(1), registration(2))
    made.change(r.NoOpRecord())
    assert again == []
    made.change(version(17))
    assert len(again) == 1
    made.change(r.NoOpRecord(), registration(2))
    assert len(again) == 1
    made.change(registration(1))
    assert len(again) == 2
    made.change(registration(1, DIRECTORY))
    made.change(version(22))
    assert len(again) == 2


def test_without_a_registration_it_waits_for_one() -> None:
    again: list[None] = []
    made = Cluster((BrokerRegistrationTracker(1, lambda: again.append(None)),))
    made.change(version(17), registration(2))
    assert again == []
