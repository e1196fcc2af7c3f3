"""A leader's cache of fetch sessions: which get a slot, and which are replaced."""

from __future__ import annotations

from itertools import count

import pytest

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.replica_manager.fetch.fetch_session import NO_SESSION
from kraftlake.replica_manager.partition.leader import FetchPartition
from kraftlake.replica_manager.requests.fetch_session_cache import EVICTION_MS, CachedPartition, FetchSessionCache
from kraftlake.runtime.clock import ManualClock


class Cache(FetchSessionCache):
    """A cache with two slots and ids that count up from 1."""

    def __init__(self, slots: int = 2) -> None:
        self.clock = ManualClock(1_000_000)
        super().__init__(self.clock, slots, count(1).__next__)

    def begin(self, size: int = 1, *, follower: bool = False) -> int:
        names = (TopicPartition("foo", number) for number in range(size))
        return self.create(
            privileged=follower, partitions={name: CachedPartition(FetchPartition(fetch_offset=0)) for name in names}
        )

    def use(self, session_id: int) -> None:
        session = self.get(session_id)
        assert session is not None
        self.touch(session)

    def ids(self) -> list[int]:
        return [id_ for id_ in range(1, 20) if self.get(id_) is not None]


def test_sessions_and_their_partitions_are_counted():
    cache = Cache()
    assert (cache.begin(3), cache.begin(4)) == (1, 2)
    assert (len(cache), cache.partition_count, cache.evictions) == (2, 7, 0)
    cache.remove(1)
    assert (len(cache), cache.partition_count) == (1, 4)


def test_a_used_or_reserved_session_id_is_drawn_again():
    cache = FetchSessionCache(ManualClock(), 10, iter([5, 5, 0, 9]).__next__)
    assert [cache.create(privileged=False, partitions={}) for _ in range(2)] == [5, 9]


def test_ids_are_positive_and_drawn_at_random():
    cache = FetchSessionCache(ManualClock(), 100)
    ids = [cache.create(privileged=False, partitions={}) for _ in range(50)]
    assert len(set(ids)) == 50
    assert all(0 < id_ < 2**31 for id_ in ids)


def test_a_full_cache_of_young_sessions_gives_a_consumer_no_session():
    cache = Cache()
    cache.begin()
    cache.begin()
    assert cache.begin(100) == NO_SESSION
    assert cache.evictions == 0


def test_a_cache_without_slots_has_no_sessions():
    assert Cache(0).begin(follower=True) == NO_SESSION


def test_a_long_unused_session_is_replaced_first():
    cache = Cache()
    cache.begin(50, follower=True)
    cache.begin()
    cache.clock.advance(EVICTION_MS)
    cache.use(2)
    cache.clock.advance(1)
    assert cache.begin() == 3
    assert cache.ids() == [2, 3]
    assert cache.evictions == 1


def test_a_followers_session_replaces_any_consumers_session():
    cache = Cache()
    cache.begin(50)
    cache.begin(20)
    assert cache.begin(1, follower=True) == 3
    assert cache.ids() == [1, 3]


def test_a_followers_session_does_not_replace_a_young_followers_session():
    cache = Cache()
    cache.begin(1, follower=True)
    cache.begin(1, follower=True)
    assert cache.begin(100, follower=True) == NO_SESSION


@pytest.mark.parametrize(("size", "given"), [(4, NO_SESSION), (5, NO_SESSION), (6, 3)])
def test_a_larger_session_replaces_a_smaller_old_one(size, given):
    cache = Cache()
    cache.begin(5)
    cache.begin(9)
    cache.clock.advance(EVICTION_MS + 1)
    cache.use(1)
    cache.use(2)
    assert cache.begin(size) == given
    assert cache.ids() == ([2, 3] if given else [1, 2])


def test_a_consumers_session_never_replaces_a_followers_session_in_use():
    cache = Cache()
    cache.begin(1, follower=True)
    cache.begin(1, follower=True)
    cache.clock.advance(EVICTION_MS + 1)
    cache.use(1)
    cache.use(2)
    assert cache.begin(100) == NO_SESSION
    assert cache.begin(100, follower=True) == 3
