"""Errors that pass between processes as JSON."""

from __future__ import annotations

import pytest

from kraftlake.runtime.errors import FencedEpochError, KraftlakeError, LakeError, ReplayError
from kraftlake.tables.shards.faults import earliest, fault_to_json, raise_first


class OfAnotherRoomError(KraftlakeError):
    """An error that is not among those of `runtime.errors`."""

    offset = 3


def test_the_error_with_the_lowest_offset_is_raised_as_it_was() -> None:
    faults = [LakeError("no offset"), ReplayError("late", offset=9), ReplayError("early", offset=2)]
    with pytest.raises(ReplayError, match=r"^early$") as raised:
        raise_first(map(fault_to_json, faults))
    assert raised.value.offset == 2
    raise_first([])


@pytest.mark.parametrize(("of_driver", "first"), [(3, "driver"), (12, "shard")])
def test_of_shards_and_driver_the_error_with_the_lowest_offset_is_raised(of_driver: int, first: str) -> None:
    of_shard = [fault_to_json(ReplayError("shard", offset=9))]
    with pytest.raises(ReplayError, match=f"^{first}$"), earliest(of_shard):
        raise ReplayError("driver", offset=of_driver)
    with pytest.raises(ReplayError, match=r"^shard$"), earliest(of_shard):
        pass


@pytest.mark.parametrize(
    ("fault", "kind"), [(OfAnotherRoomError("other"), KraftlakeError), (FencedEpochError(3, 4), FencedEpochError)]
)
def test_an_error_keeps_its_sentence_whatever_its_class_takes(
    fault: KraftlakeError, kind: type[KraftlakeError]
) -> None:
    with pytest.raises(kind) as raised:
        raise_first([fault_to_json(fault)])
    assert str(raised.value) == str(fault)
