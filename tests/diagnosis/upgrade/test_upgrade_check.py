"""What stands against an upgrade, with the record behind it and the command that mends it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kraftlake.diagnosis.upgrade.target import RELEASES, Target
from kraftlake.diagnosis.upgrade.upgrade_check import UpgradeCheck
from kraftlake.records import metadata_records as r
from kraftlake.records.schema import Message
from kraftlake.runtime.errors import UsageError
from tests.diagnosis.upgrade.made import METADATA_VERSION, MadeCluster
from tests.replay import made_logs as log


def config(value: str, name: str = "min.insync.replicas") -> r.ConfigRecord:
    return r.ConfigRecord(resource_type=2, resource_name="topic-1", name=name, value=value)


def obstacles_of(found: UpgradeCheck) -> list[tuple[Any, ...]]:
    return [
        (one.check, one.refuses, *one.things, None if one.record is None else one.record.offset)
        for one in found.obstacles
    ]


def test_nothing_refuses_what_all_nodes_support() -> None:
    found = MadeCluster().source().upgrade_check(metadata_version="4.4-IV2")
    assert (found.allowed, found.current, found.target.level, found.obstacles) == (True, 25, 33, ())


def test_each_node_that_lacks_the_level_is_named_with_its_registration() -> None:
    made = MadeCluster(
        brokers={1: (7, 33), 2: (7, 25), 3: (7, 29)}, controllers={3000: (7, 29), 3001: (7, 33), 3009: (7, 25)},
        fenced=frozenset({3}),
    )  # fmt: skip
    found = made.source().upgrade_check(metadata_version=33)
    assert obstacles_of(found) == [
        ("unsupported_level", True, "controller 3000", 5),
        ("unsupported_level", True, "broker 2", 3),
        ("stale_registration", True, "broker 3", 4),
        ("stale_registration", True, "controller 3009", 7),
    ]
    commands = [one.command or "" for one in found.obstacles]
    assert "kafka-cluster.sh unregister --bootstrap-server $BOOTSTRAP --id 3" in commands[2]
    assert commands[1] == "restart broker 2 with a release that supports 33 (4.4-IV2)"


def test_the_replicas_of_a_stale_broker_are_moved_before_it_is_unregistered() -> None:
    more = [log.topic(1), log.partition(1, replicas=(2, 1))]
    made = MadeCluster(brokers={1: (7, 33), 2: (7, 25)}, fenced=frozenset({2}), more=more)
    (one,) = made.source().upgrade_check(metadata_version=33).obstacles
    assert "after its 1 replicas were moved away" in (one.command or "")


def test_a_voter_that_has_not_registered_refuses_every_level() -> None:
    found = MadeCluster(quorum=(3000, 3001, 3002)).source().upgrade_check(metadata_version=26)
    assert obstacles_of(found) == [("unregistered_controller", True, "controller 3002", None)]


def test_a_lower_level_would_lose_what_was_written() -> None:
    found = MadeCluster(current=33).source().upgrade_check(metadata_version="4.0")
    assert obstacles_of(found) == [("metadata_lost", True, METADATA_VERSION, 1)]
    assert MadeCluster(current=26).source().upgrade_check(metadata_version=25).allowed


def test_kraft_version_needs_the_support_of_all_nodes() -> None:
    found = MadeCluster().source().upgrade_check(kraft_version=1)
    assert not found.allowed
    assert {one.things[0] for one in found.obstacles} == {"broker 1", "broker 2", "controller 3000", "controller 3001"}
    assert MadeCluster().source().upgrade_check(kraft_version=0).allowed


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ([r.ZkMigrationStateRecord(zk_migration_state=2)], [("zookeeper_migration", True, 6)]),
        ([r.ZkMigrationStateRecord(zk_migration_state=state) for state in (2, 3)], []),
        ([config("many")], [("refused_config", True, "topic topic-1", 6)]),
        ([config("2")], []),
        ([config("0.10.0", "message.format.version")], [("dropped_config", False, "topic topic-1", None)]),
        (
            [r.FeatureLevelRecord(name="odd.version", feature_level=1)],
            [("unsupported_feature", True, "odd.version", 6)],
        ),
        ([r.FeatureLevelRecord(name="group.version", feature_level=1)], []),
    ],
)
def test_a_release_starts_on_what_it_knows(more: Sequence[Message], expected: list[Any]) -> None:
    found = MadeCluster(more=more).source().upgrade_check(release="4.4")
    assert obstacles_of(found) == expected
    assert found.allowed == (not any(refuses for _, refuses, *_ in expected))


def test_running_nodes_of_an_older_release_are_to_be_restarted_and_refuse_nothing() -> None:
    made = MadeCluster(brokers={1: (7, 25), 2: (7, 25)}, fenced=frozenset({2}))
    found = made.source().upgrade_check(release="4.4")
    assert obstacles_of(found) == [
        ("stale_registration", True, "broker 2", 3),
        ("unsupported_level", False, "broker 1", 2),
    ]
    assert found.obstacles[1].command == "restart broker 1 with Kafka 4.4"


def test_a_release_does_not_start_on_an_old_or_on_a_newer_level() -> None:
    (old,) = MadeCluster(current=4, controllers={}).source().upgrade_check(release="4.4").obstacles
    assert (old.check, old.record and old.record.offset) == ("metadata_version_too_low", 1)
    found = MadeCluster(current=33).source().upgrade_check(release="4.1")
    assert obstacles_of(found) == [("metadata_version_too_high", True, METADATA_VERSION, 1)]


def test_the_support_of_controllers_that_do_not_register_is_said_to_be_unknown() -> None:
    found = MadeCluster(current=14, controllers={}).source().upgrade_check(metadata_version=21)
    assert obstacles_of(found) == [("unknown_controllers", False, None)]
    assert found.allowed


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({}, "has one target"),
        ({"release": "4.4", "kraft_version": 1}, "has one target"),
        ({"release": "9.9"}, "'9.9' is no release that is known"),
        ({"metadata_version": "9.9"}, "'9.9' is no metadata.version"),
        ({"kraft_version": 7}, "7 is no kraft.version"),
    ],
)
def test_a_target_that_is_none_is_refused(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Target.of(**asked)


def test_a_release_sets_its_newest_level() -> None:
    assert [Target.of(release=one).level for one in (RELEASES[0], "3.9", "4.0", "4.4")] == [7, 21, 25, 33]
