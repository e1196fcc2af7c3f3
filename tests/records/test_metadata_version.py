from __future__ import annotations

import pytest

from kraftlake.records.metadata_records import METADATA_RECORDS
from kraftlake.records.metadata_version import ALL, LATEST, LATEST_PRODUCTION, MINIMUM_OF_KAFKA_4, from_feature_level
from kraftlake.runtime.errors import ReplayError


@pytest.mark.parametrize(
    ("level", "name"),
    [(1, "3.0-IV1"), (4, "3.3-IV0"), (7, "3.3-IV3"), (17, "3.7-IV2"), (27, "4.1-IV1"), (34, "4.5-IV0")],
)
def test_levels_have_kafkas_names(level: int, name: str) -> None:
    assert (from_feature_level(level).level, str(from_feature_level(level))) == (level, name)


def test_levels_are_ordered_and_all_there() -> None:
    assert [version.level for version in ALL] == list(range(1, 35))
    assert sorted(ALL, reverse=True)[0] == LATEST == from_feature_level(34)
    assert (str(LATEST_PRODUCTION), str(MINIMUM_OF_KAFKA_4)) == ("4.4-IV2", "3.3-IV3")
    assert from_feature_level(7) < from_feature_level(8)


@pytest.mark.parametrize("level", [0, -1, 35, 1000])
def test_an_unknown_level_is_refused(level: int) -> None:
    with pytest.raises(ReplayError, match=f"metadata.version {level} is not known"):
        from_feature_level(level)


@pytest.mark.parametrize(
    ("feature", "since"),
    [
        ("is_in_controlled_shutdown_state_supported", 7),
        ("is_migration_supported", 8),
        ("is_scram_supported", 11),
        ("is_metadata_transaction_supported", 13),
        ("is_delegation_token_supported", 14),
        ("is_controller_registration_supported", 15),
        ("is_directory_assignment_supported", 17),
        ("is_elr_supported", 23),
        ("is_cordoned_log_dirs_supported", 30),
        ("is_cidr_acl_supported", 32),
        ("is_controller_unregistration_supported", 33),
    ],
)
def test_a_feature_stays_from_the_level_that_brought_it(feature: str, since: int) -> None:
    assert [version.level for version in ALL if getattr(version, feature)] == list(range(since, 35))


def test_an_isr_shrink_raises_the_leader_epoch_before_3_6() -> None:
    assert [v.level for v in ALL if v.is_leader_epoch_bump_required_on_isr_shrink] == list(range(1, 12))


def test_record_versions_grow_with_the_level() -> None:
    assert [v.register_broker_record_version for v in ALL] == [0] * 6 + [1] + [2] * 9 + [3] * 13 + [4] * 5
    assert [v.partition_record_version for v in ALL] == [0] * 16 + [1] * 6 + [2] * 12
    assert [v.partition_change_record_version for v in ALL] == [v.partition_record_version for v in ALL]
    assert [v.broker_registration_change_record_version for v in ALL] == [0] * 6 + [1] * 10 + [2] * 13 + [3] * 5


def test_the_latest_level_writes_the_latest_record_versions() -> None:
    by_name = {cls.__name__: cls for cls in METADATA_RECORDS.values()}
    assert LATEST.register_broker_record_version == by_name["RegisterBrokerRecord"].VERSIONS.high
    assert LATEST.partition_record_version == by_name["PartitionRecord"].VERSIONS.high
    assert LATEST.partition_change_record_version == by_name["PartitionChangeRecord"].VERSIONS.high
    assert LATEST.broker_registration_change_record_version == by_name["BrokerRegistrationChangeRecord"].VERSIONS.high
