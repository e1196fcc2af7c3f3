"""What readers of a compacted topic may miss, and what not."""

from __future__ import annotations

import pytest

from tests.server.broker.keyed_load import KeyedRecord, check_compacted

ACKED: list[KeyedRecord] = [(0, 0, b"a", b"1"), (0, 1, b"b", None), (1, 0, b"a", b"2"), (0, 2, b"a", b"3")]


@pytest.mark.parametrize("gone", [[], [0]])
def test_a_record_may_be_missing_that_has_a_later_one_of_its_key(gone: list[int]) -> None:
    check_compacted(ACKED, [record for at, record in enumerate(ACKED) if at not in gone])


@pytest.mark.parametrize("gone", [[1], [2], [3], [0, 3]])
def test_the_last_record_of_a_key_may_not_be_missing_in_its_partition(gone: list[int]) -> None:
    with pytest.raises(AssertionError, match="acknowledged records are gone"):
        check_compacted(ACKED, [record for at, record in enumerate(ACKED) if at not in gone])


def test_a_record_is_the_one_that_was_acknowledged_at_its_offset() -> None:
    with pytest.raises(AssertionError, match="never acknowledged"):
        check_compacted(ACKED, [*ACKED[:3], (0, 2, b"a", b"1")])


@pytest.mark.parametrize("order", [[3, 0, 1, 2], [0, 0, 1, 2, 3]])
def test_records_come_once_and_in_order(order: list[int]) -> None:
    with pytest.raises(AssertionError, match="was not read in order"):
        check_compacted(ACKED, [ACKED[at] for at in order])
