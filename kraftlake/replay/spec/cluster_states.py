"""The brokers and features after each operation of a chunk: what the states of partitions are judged against.

Imports numpy.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from kraftlake.image.broker_partitions import min_insync_replicas
from kraftlake.image.broker_registration import BrokerRegistration
from kraftlake.image.configurations_image import BROKER_RESOURCE, ConfigResource
from kraftlake.image.features_image import FeaturesImage
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.partition_health import MIN_ISR
from kraftlake.records.metadata_records import RegisterBrokerRecord
from kraftlake.replay.log.other_records import OtherChange

_CLUSTER = ConfigResource(BROKER_RESOURCE, "")


def level_of(features: FeaturesImage) -> int:
    """The level of metadata.version, 0 for none."""
    return 0 if features.metadata_version is None else features.metadata_version.level


def in_service(broker: BrokerRegistration | None) -> bool:
    """Whether a broker may lead partitions and be in ISRs."""
    return broker is not None and not broker.fenced and not broker.in_controlled_shutdown


class ClusterStates:
    """The image without topics after each delta of a chunk, which follows the image `before`.

    `changes` are the changes of any part; deltas are numbers within the chunk, -1 is in front of it. `resumed` are the
    brokers that were unfenced during their controlled shutdown, and have remained so up to there.
    """

    def __init__(
        self, before: MetadataImage, changes: Sequence[OtherChange], resumed: frozenset[int] = frozenset()
    ) -> None:
        self.changes = changes
        self._resumed_before = resumed
        self._deltas = [change.delta for change in changes]
        self._firsts = [-1, *self._deltas]
        self._images = [before, *(change.image for change in changes)]
        self._features = [(-1, before.features)]
        self._min_isr: dict[tuple[int, str], int | None] = {}
        self._brokers: dict[int, tuple[list[int], list[BrokerRegistration | None]]] = {}
        for change in changes:
            if change.change.features_delta is not None:
                self._features.append((change.delta, change.image.features))
            if change.change.cluster_delta is not None:
                for broker in change.change.cluster_delta.changed_brokers:
                    firsts, states = self._states_of(broker)
                    firsts.append(change.delta)
                    states.append(change.image.cluster.brokers.get(broker))

    def image(self, delta: int) -> MetadataImage:
        """The image after a delta."""
        return self._images[bisect.bisect_right(self._firsts, delta) - 1]

    def min_isr(self, topic: str, delta: int) -> int | None:
        """`min.insync.replicas` of a topic after a delta, None where the log does not say: property files may."""
        place = bisect.bisect_right(self._firsts, delta) - 1
        if (place, topic) not in self._min_isr:
            image = self._images[place]
            known = MIN_ISR in image.configs.config_map(_CLUSTER)
            self._min_isr[place, topic] = min_insync_replicas(image, topic) if known else None
        return self._min_isr[place, topic]

    def registered(self, delta: int) -> set[int]:
        """The brokers that a delta registers."""
        first = bisect.bisect_left(self._deltas, delta)
        changes = self.changes[first : bisect.bisect_right(self._deltas, delta)]
        messages = (message for change in changes for message in change.messages)
        return {message.broker_id for message in messages if isinstance(message, RegisterBrokerRecord)}

    @property
    def lowest_level(self) -> int:
        """The lowest level of metadata.version that any delta has, 0 for none."""
        return min(level_of(features) for _, features in self._features)

    def each(self, deltas: Any, of: Callable[[FeaturesImage], int]) -> Any:
        """A number of the features after each delta (int64[n])."""
        values = np.array([of(features) for _, features in self._features], np.int64)
        if len(values) == 1:
            return np.full(len(deltas), values[0])
        firsts = [first for first, _ in self._features]
        return values[np.searchsorted(firsts, deltas, side="right") - 1]

    def are(self, brokers: Any, deltas: Any, predicate: Callable[[BrokerRegistration | None], bool]) -> Any:
        """Whether each broker (int32[n]) is so after the delta (int64[n]) beside it."""
        found = np.zeros(len(brokers), np.bool_)
        for broker in np.unique(brokers).tolist():
            firsts, states = self._states_of(broker)
            some = brokers == broker
            flags = np.array([predicate(state) for state in states], np.bool_)
            found[some] = flags[np.searchsorted(firsts, deltas[some], side="right") - 1]
        return found

    def _states_of(self, broker: int) -> tuple[list[int], list[BrokerRegistration | None]]:
        if broker not in self._brokers:
            self._brokers[broker] = [-1], [self._images[0].cluster.brokers.get(broker)]
        return self._brokers[broker]

    def is_in_service(self, broker: int, delta: int) -> bool:
        """Whether a broker may lead partitions and be in ISRs after a delta."""
        firsts, states = self._states_of(broker)
        return in_service(states[bisect.bisect_right(firsts, delta) - 1])

    def is_resumed(self, broker: int, delta: int) -> bool:
        """Whether a broker was unfenced during its controlled shutdown, and is neither fenced nor registered since."""
        firsts, states = self._states_of(broker)
        resumed = broker in self._resumed_before
        for first, was, now in zip(firsts[1:], states, states[1:], strict=False):
            if first > delta:
                break
            if now is None or now.fenced or not now.in_controlled_shutdown:
                resumed = False
            elif was is not None and was.fenced and was.in_controlled_shutdown:
                resumed = True
        return resumed

    @property
    def resumed(self) -> frozenset[int]:
        """The brokers that are so after the last delta."""
        last = self._firsts[-1]
        changed = {broker: self.is_resumed(broker, last) for broker in self._brokers}
        kept = {broker for broker in self._resumed_before if broker not in changed}
        return frozenset(kept | {broker for broker, resumed in changed.items() if resumed})

    def turned(self, operations: Any) -> Iterable[tuple[int, set[int], set[int], OtherChange]]:
        """The operations after which brokers are in service or out of it that were not so before, with both sets.

        `operations` (int64) are the number of the operation of each delta; the last change of each is given, too.
        """
        known: dict[int, bool] = {}
        by_operation: dict[int, tuple[dict[int, bool], OtherChange]] = {}
        for change in self.changes:
            cluster = change.change.cluster_delta
            if cluster is None or not cluster.changed_brokers:
                continue
            sets, _ = by_operation.get(int(operations[change.delta]), ({}, change))
            for broker in cluster.changed_brokers:
                if broker not in known:
                    known[broker] = in_service(cluster.image.brokers.get(broker))
                sets.setdefault(broker, known[broker])
                known[broker] = in_service(change.image.cluster.brokers.get(broker))
            by_operation[int(operations[change.delta])] = (sets, change)
        for operation, (before, change) in by_operation.items():
            now = {broker: in_service(change.image.cluster.brokers.get(broker)) for broker in before}
            yield (
                operation,
                {broker for broker, was in before.items() if now[broker] and not was},
                {broker for broker, was in before.items() if was and not now[broker]},
                change,
            )
