"""Incremental fetches: a session that remembers what was asked for (KIP-227)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kraftlake.delta import TopicPartition
from kraftlake.replica_manager.errors import ErrorCode
from kraftlake.replica_manager.fetch.leader_end_point import FetchResponse
from kraftlake.replica_manager.partition.leader import FetchPartition

NO_SESSION: Final = 0
FIRST_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_LARGEST_EPOCH = 0x7FFF_FFFF


def next_epoch(epoch: int) -> int:
    """The epoch of the request after one with `epoch`; none comes after the final one."""
    if epoch < 0:
        return FINAL_EPOCH
    return epoch + 1 if epoch < _LARGEST_EPOCH else 1


class FetchSession:
    """The follower's end of a session with one leader. Source: org.apache.kafka.clients.FetchSessionHandler."""

    def __init__(self) -> None:
        self.session_id = NO_SESSION
        self.epoch = FIRST_EPOCH
        self.partitions: dict[TopicPartition, FetchPartition] = {}
        """What the leader knows that we fetch, once the request that is built has reached it."""
        self._unheard: set[TopicPartition] = set()

    def build(
        self, wanted: Mapping[TopicPartition, FetchPartition]
    ) -> tuple[dict[TopicPartition, FetchPartition], tuple[TopicPartition, ...]]:
        """What to send to fetch `wanted`: those that changed, and those to forget; everything without a session."""
        unheard, self._unheard = self._unheard & self.partitions.keys(), set()
        if self.epoch == FIRST_EPOCH:
            self.partitions = dict(wanted)
            return dict(wanted), ()
        if unheard:
            wanted = {name: fetch for name, fetch in wanted.items() if name not in unheard}
        changed = {name: fetch for name, fetch in wanted.items() if self.partitions.get(name) != fetch}
        forgotten = tuple(name for name in self.partitions if name not in wanted)
        self.partitions = dict(wanted)
        return changed, forgotten

    def was_not_heard(self, name: TopicPartition) -> None:
        """What the leader told of a partition was of no use, and it takes it for known.

        So the partition is forgotten with the next request, and told of as a whole with the one after that. Kafka's
        follower leaves it: its high watermark stays behind until there is other news of the partition.
        """
        self._unheard.add(name)

    def handle_response(self, response: FetchResponse) -> bool:
        """Go on as the leader answers; whether the answer is of use."""
        if response.error is not ErrorCode.NONE:
            if response.error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self.session_id = NO_SESSION
            self.epoch = FIRST_EPOCH
            return False
        full = self.epoch == FIRST_EPOCH
        if full and response.partitions.keys() != self.partitions.keys():
            self.session_id, self.epoch = NO_SESSION, FIRST_EPOCH
            return False
        if not full and not response.partitions.keys() <= self.partitions.keys():
            self.epoch = FIRST_EPOCH
            return False
        if response.session_id == NO_SESSION:
            self.session_id, self.epoch = NO_SESSION, FIRST_EPOCH
            return True
        self.session_id = response.session_id
        self.epoch = next_epoch(self.epoch)
        return True

    def handle_error(self) -> None:
        """The leader was not reached: what it knows is unknown, so the next request says everything."""
        self.epoch = FIRST_EPOCH
