"""States of partitions as columns, and what a sentence says of one. Imports numpy."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import attrs
import numpy as np

from kraftlake.image.topics.partition_registration import NO_LEADER
from kraftlake.image.topics.row_lists import RowLists
from kraftlake.kernels.partition_row import LEADER, LEADER_EPOCH, PARTITION_EPOCH, RECOVERY
from kraftlake.replay.log.broker_lists import BrokerLists
from kraftlake.replay.log.partition_changes import Heaps, Names


@attrs.define(eq=False, slots=False)
class PartitionStates:
    """The states of n partitions: `rows` (int32[n, 14]) of `topics` and `partitions` (int32), lists in `heaps`."""

    rows: Any
    topics: Any
    partitions: Any
    names: Names
    heaps: Heaps

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, some: Any) -> PartitionStates:
        """The states that a mask or an array of indices names."""
        rows = np.ascontiguousarray(self.rows[some])
        return PartitionStates(rows, self.topics[some], self.partitions[some], self.names, self.heaps)

    @cached_property
    def _lists(self) -> RowLists:
        return RowLists(self.rows, *self.heaps)

    def list_of(self, name: str) -> BrokerLists:
        """One list of each state: a name of LISTS."""
        if name not in self._kept:
            self._kept[name] = BrokerLists(*self._lists.flat(name))
        return self._kept[name]

    @cached_property
    def _kept(self) -> dict[str, BrokerLists]:
        return {}

    def sizes(self, name: str) -> Any:
        """The length of one list of each state (int32[n])."""
        return self._lists.lengths(name)

    @property
    def leaders(self) -> Any:
        """The leader of each, NO_LEADER for none."""
        return self.rows[:, LEADER]

    @property
    def leader_epochs(self) -> Any:
        """The leader epoch of each."""
        return self.rows[:, LEADER_EPOCH]

    @property
    def partition_epochs(self) -> Any:
        """The partition epoch of each."""
        return self.rows[:, PARTITION_EPOCH]

    @property
    def recovering(self) -> Any:
        """Whether each recovers from an unclean election."""
        return self.rows[:, RECOVERY] != 0

    @cached_property
    def led_by(self) -> BrokerLists:
        """The leader of each as a list, empty for none."""
        led = self.leaders != NO_LEADER
        bounds = np.zeros(len(self) + 1, np.int32)
        np.cumsum(led, out=bounds[1:])
        return BrokerLists(bounds, np.ascontiguousarray(self.leaders[led]))

    def has(self, name: str, members: Any) -> Any:
        """Whether one list of each state has a member (int32[n])."""
        of = self.list_of(name)
        rows = np.repeat(np.arange(len(self)), of.lengths)
        found = np.zeros(len(self), np.bool_)
        found[rows[of.members == members[rows]]] = True
        return found

    def name(self, index: int) -> str:
        """`foo-3`."""
        return f"{self.names.topics[int(self.topics[index])].as_py()}-{self.partitions[index]}"

    def words(self, index: int) -> str:
        """The state of one, for a sentence."""
        one = self.take(np.array([index]))
        shown = [
            f"{word} {one.list_of(name).members.tolist()}"
            for word, name in _SHOWN.items()
            if name in ("isr", "replicas") or one.sizes(name)[0]
        ]
        leader = "no leader" if one.leaders[0] == NO_LEADER else f"leader {one.leaders[0]}"
        epochs = f"leader epoch {one.leader_epochs[0]}, partition epoch {one.partition_epochs[0]}"
        return ", ".join([leader, *shown, epochs, *(["recovering"] if one.recovering[0] else [])])


_SHOWN = {
    "ISR": "isr",
    "replicas": "replicas",
    "ELR": "elr",
    "last known ELR": "last_known_elr",
    "adding": "adding_replicas",
    "removing": "removing_replicas",
}
