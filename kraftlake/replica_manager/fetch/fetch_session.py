"""The follower's side of a fetch session, whose requests name only changes (KIP-227)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.replica_manager.fetch.leader_end_point import FetchResponse
from kraftlake.replica_manager.partition.leader import FetchPartition

NO_SESSION: Final = 0
FIRST_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_LARGEST_EPOCH = 0x7FFF_FFFF


def next_epoch(epoch: int) -> int:
    """The session epoch after `epoch`; the final epoch has no successor."""
    if epoch < 0:
        return FINAL_EPOCH
    return epoch + 1 if epoch < _LARGEST_EPOCH else 1


class FetchSession:
    """A fetch session with one leader. Source: org.apache.kafka.clients.FetchSessionHandler."""

    def __init__(self) -> None:
        self.session_id = NO_SESSION
        self.epoch = FIRST_EPOCH
        self.partitions: dict[TopicPartition, FetchPartition] = {}
        """The partitions that the leader has in the session once it has received the last request."""
        self._unheard: set[TopicPartition] = set()

    def build(
        self, wanted: Mapping[TopicPartition, FetchPartition]
    ) -> tuple[dict[TopicPartition, FetchPartition], tuple[TopicPartition, ...]]:
        """The changed and the forgotten partitions of the request for `wanted`; without a session, all partitions."""
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
        """Request a partition's state from the leader again: the follower has dropped the leader's last answer.

        The next request forgets the partition, and the one after that adds it again. Kafka's follower does neither, and
        its high watermark stays behind until the partition changes again.
        """
        self._unheard.add(name)

    def handle_response(self, response: FetchResponse) -> bool:
        """Advance the session by the leader's response; returns whether the response is valid."""
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
        """Send a full request next: the leader did not answer, so its side of the session is unknown."""
        self.epoch = FIRST_EPOCH
