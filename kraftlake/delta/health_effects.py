"""The brokers and topics of which a delta changes what their partitions count as in a cluster's health."""

from __future__ import annotations

import attrs

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.configurations_image import TOPIC_RESOURCE
from kraftlake.image.partition_health import MIN_ISR


@attrs.frozen(kw_only=True)
class HealthEffects:
    """The changes that reach partitions whose own states stay.

    `brokers` are other in that they are fenced, or in their directories; `topics` may have another min.insync.replicas,
    with `all_topics` each topic without a value of its own.
    """

    brokers: frozenset[int] = frozenset()
    topics: frozenset[str] = frozenset()
    all_topics: bool = False

    @classmethod
    def of(cls, delta: MetadataDelta) -> HealthEffects:
        """The effects of a delta."""
        configs = {} if delta.configs_delta is None else delta.configs_delta.changes
        changed = [resource for resource, change in configs.items() if MIN_ISR in change.changes]
        return cls(
            brokers=_brokers(delta),
            topics=frozenset(resource.name for resource in changed if resource.type == TOPIC_RESOURCE),
            all_topics=any(resource.name == "" for resource in changed),
        )

    def __bool__(self) -> bool:
        return bool(self.brokers or self.topics or self.all_topics)


def _brokers(delta: MetadataDelta) -> frozenset[int]:
    cluster = delta.cluster_delta
    if cluster is None:
        return frozenset()
    before = cluster.image.brokers
    return frozenset(
        id_
        for id_, broker in cluster.changed_brokers.items()
        if broker is None
        or (was := before.get(id_)) is None
        or (was.fenced, was.directories) != (broker.fenced, broker.directories)
    )
