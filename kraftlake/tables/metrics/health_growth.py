"""The growth of the counts of a cluster's health that depend on brokers and configs, by delta. Imports numpy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np

from kraftlake.delta.health_effects import HealthEffects
from kraftlake.image.broker_partitions import min_insync_replicas
from kraftlake.image.configurations_image import TOPIC_RESOURCE
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.replay.log.other_records import OtherChange
from kraftlake.tables.metrics.health_shares import HealthKey, HealthShares, Held, Led, Short

KINDS: Final = (Short, Led, Held)
"""What the columns of growth count: partitions under min ISR, partitions led by a fenced broker, offline directories.

Of the first two each partition of a key that is unhealthy counts, of the last each key with a replica.
"""
_HELD: Final = KINDS.index(Held)


class HealthGrowth:
    """The partitions and replicas by key after some deltas, and what each further delta changes of the counts."""

    def __init__(self, image: MetadataImage, shares: HealthShares) -> None:
        """Begin with the brokers and configs of an image, and the shares of its topics."""
        self._totals: dict[int | str, dict[HealthKey, int]] = {}
        """The number of each key that has any, by broker or topic."""
        self._set(image)
        self.counts = self.take(np.zeros(1, np.int64), shares, ())[0].tolist()
        """The counts of the begin, in the order of KINDS."""

    def take(self, offsets: Any, shares: HealthShares, others: Iterable[OtherChange]) -> Any:
        """The growth (int64[n, 3], in the order of KINDS) by deltas that follow those before.

        `offsets` (int64) are the last of each, `others` the changes of all but topics.
        """
        effects = [(other, effect) for other in others if (effect := HealthEffects.of(other.change))]
        keys = [*dict.fromkeys([*shares.keys, *self._reached(effect for _, effect in effects)])]
        state, columns, at = _State(self, keys, len(offsets)), (shares.deltas, shares.numbers, shares.counts), 0
        if effects:
            order = np.argsort(shares.deltas, kind="stable")
            columns = columns[0][order], columns[1][order], columns[2][order]
        deltas, numbers, counts = columns
        for other, effect in effects:
            place = int(np.searchsorted(offsets, other.offset))
            end = int(np.searchsorted(deltas, place))
            state.add(deltas[at:end], numbers[at:end], counts[at:end])
            self._set(other.image, effect)
            state.judge(place, effect)
            at = end
        state.add(deltas[at:], numbers[at:], counts[at:])
        for key, total in zip(keys, state.totals.tolist(), strict=True):
            of_owner = self._totals.setdefault(key[0], {})
            of_owner[key] = total
            if not total:
                del of_owner[key]
            if not of_owner:
                del self._totals[key[0]]
        return state.growth

    def total(self, key: HealthKey) -> int:
        """The number of a key after the deltas so far."""
        return self._totals.get(key[0], {}).get(key, 0)

    def is_unhealthy(self, key: HealthKey) -> bool:
        """Whether the partitions or the directory of a key count, by the newest brokers and configs."""
        if isinstance(key, Short):
            return key.in_sync < self._min_isr.get(key.topic, self._default_min_isr)
        broker = self._brokers.get(key.broker)
        if broker is None:
            return False
        return broker.fenced if isinstance(key, Led) else not broker.has_online_dir(key.directory)

    def _set(self, image: MetadataImage, effect: HealthEffects | None = None) -> None:
        """Make an image's brokers and configs the newest; `effect` is what has changed, None for all."""
        self._brokers = image.cluster.brokers
        if effect is None or effect.all_topics:
            self._default_min_isr = min_insync_replicas(image, "")
            resources = image.configs.resource_data
            named = {resource.name for resource in resources if resource.type == TOPIC_RESOURCE}
            self._min_isr = {name: min_insync_replicas(image, name) for name in named}
        else:
            self._min_isr.update({name: min_insync_replicas(image, name) for name in effect.topics})

    def _reached(self, effects: Iterable[HealthEffects]) -> Iterator[HealthKey]:
        """The keys with a number that effects reach."""
        for effect in effects:
            for owner in _owners(effect, self._totals):
                yield from self._totals.get(owner, ())


class _State:
    """The numbers of keys, and which of these are unhealthy, while the deltas of one call are counted."""

    def __init__(self, of: HealthGrowth, keys: list[HealthKey], deltas: int) -> None:
        self._of, self._keys = of, keys
        self._numbers: dict[int | str, list[int]] = {}
        for number, key in enumerate(keys):
            self._numbers.setdefault(key[0], []).append(number)
        self._kinds = np.array([KINDS.index(type(key)) for key in keys], np.int64)
        self._counts = np.array([of.is_unhealthy(key) for key in keys], np.bool_)
        self.totals = np.array([of.total(key) for key in keys], np.int64)
        self.growth = np.zeros((deltas, len(KINDS)), np.int64)

    def add(self, deltas: Any, numbers: Any, counts: Any) -> None:
        """Add changes of the keys' numbers."""
        counted, kinds = self._counts[numbers], self._kinds[numbers]
        some = np.flatnonzero(counted & (kinds != _HELD))
        np.add.at(self.growth, (deltas[some], kinds[some]), counts[some])
        held = np.flatnonzero(counted & (kinds == _HELD))
        held = held[np.lexsort((deltas[held], numbers[held]))]
        of_keys = numbers[held]
        sums = np.cumsum(counts[held])
        first = np.searchsorted(of_keys, of_keys)
        after = self.totals[of_keys] + sums - (sums - counts[held])[first]
        changes = (after > 0).astype(np.int64) - (after - counts[held] > 0)
        np.add.at(self.growth[:, _HELD], deltas[held], changes)
        np.add.at(self.totals, numbers, counts)

    def judge(self, delta: int, effect: HealthEffects) -> None:
        """Count keys by what an effect has made of brokers and configs, from a delta on."""
        for owner in _owners(effect, self._numbers):
            for number in self._numbers.get(owner, ()):
                now = self._of.is_unhealthy(self._keys[number])
                kind, total = self._kinds[number], int(self.totals[number])
                if now != self._counts[number]:
                    self.growth[delta, kind] += (1 if now else -1) * (total > 0 if kind == _HELD else total)
                    self._counts[number] = now


def _owners(effect: HealthEffects, known: Iterable[int | str]) -> list[int | str]:
    """The brokers and topics whose keys an effect reaches, among the known ones where it is all topics."""
    topics = {owner for owner in known if isinstance(owner, str)} if effect.all_topics else effect.topics
    return [*effect.brokers, *topics]
