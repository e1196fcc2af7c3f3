"""The effect of one metadata delta on one broker."""

from __future__ import annotations

from typing import Any

import attrs

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.delta.topics.local_replica_changes import LocalReplicaChanges, local_changes_to_json
from kraftlake.replay.loader.batch_loader import MetadataBatchLoader
from kraftlake.replay.loader.manifest import SkippedRecord


@attrs.frozen(kw_only=True)
class LocalChanges:
    """The local changes of `broker` over the offsets (from_offset, to_offset].

    `has_topics_delta` is False when no record of a topic was among them; `changes` is then empty. `registered_brokers`
    are those at either end. `skipped` are the records that a lenient replay left out.
    """

    broker: int
    from_offset: int
    to_offset: int
    has_topics_delta: bool
    changes: LocalReplicaChanges
    registered_brokers: frozenset[int] = frozenset()
    skipped: tuple[SkippedRecord, ...] = ()

    @classmethod
    def of(cls, loader: MetadataBatchLoader, broker: int, from_offset: int, to_offset: int) -> LocalChanges:
        """The local changes that the delta gathered in `loader` holds for `broker`."""
        topics = loader.delta.topics_delta
        changes = LocalReplicaChanges() if topics is None else topics.local_changes(broker)
        return cls(
            broker=broker,
            from_offset=from_offset,
            to_offset=to_offset,
            has_topics_delta=topics is not None,
            changes=changes,
            registered_brokers=_registered(loader.delta),
            skipped=tuple(loader.skipped),
        )

    def to_json(self) -> dict[str, Any]:
        """The form of `kraftlake local-changes --json`."""
        changes = self.changes if self.has_topics_delta else None
        return local_changes_to_json(
            changes, broker=self.broker, from_offset=self.from_offset, to_offset=self.to_offset
        )


def _registered(delta: MetadataDelta) -> frozenset[int]:
    """The brokers that are registered before or after a delta."""
    before = delta.image.cluster.brokers
    changed = {} if delta.cluster_delta is None else delta.cluster_delta.changed_brokers
    return frozenset(before) | {id_ for id_, registration in changed.items() if registration is not None}
