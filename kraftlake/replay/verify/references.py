"""The references between the parts of an image, checked where a metadata delta has changed something."""

from __future__ import annotations

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.replay.loader.manifest import LogDeltaManifest
from kraftlake.replay.verify.findings import Findings

_NO_LEADER = -1


class ReferenceCheck:
    """A publisher that checks every partition that a metadata delta has changed.

    The leader and the ISR of a partition must be among its replicas. A replica on a broker that never registered, or no
    longer is registered, is only a note: brokers may be unregistered while partitions still name them. (The replay
    checks that topics exist.)
    """

    def __init__(self, findings: Findings) -> None:
        self._findings = findings

    def __call__(self, delta: MetadataDelta, image: MetadataImage, manifest: LogDeltaManifest) -> None:
        """Check the partitions that `delta` has changed."""
        if delta.topics_delta is None:
            return
        offset = manifest.provenance.offset
        for topic in delta.topics_delta.changed_topics.values():
            for partition_id, partition in topic.partition_changes.items():
                self._check(f"{topic.name}-{partition_id}", partition, image, offset)

    def check_image(self, image: MetadataImage) -> None:
        """Check every partition of an image."""
        for topic in image.topics.topics_by_id().values():
            for partition_id, partition in topic.partitions.items():
                self._check(f"{topic.name}-{partition_id}", partition, image, image.provenance.offset)

    def _check(self, name: str, partition: PartitionRegistration, image: MetadataImage, offset: int) -> None:
        replicas = set(partition.replicas)
        if partition.leader != _NO_LEADER and partition.leader not in replicas:
            self._findings.add(
                f"{name} is led by broker {partition.leader}, which is none of its replicas {_listed(replicas)}.",
                offset=offset,
            )
        if strangers := set(partition.isr) - replicas:
            self._findings.add(
                f"{name} has {_listed(strangers)} in its ISR, but not among its replicas {_listed(replicas)}.",
                offset=offset,
            )
        if missing := {id_ for id_ in replicas if id_ not in image.cluster.brokers}:
            self._findings.note(f"{name} has replicas on {_listed(missing)}, not registered at offset {offset}.")


def _listed(ids: set[int]) -> str:
    return ", ".join(map(str, sorted(ids))) or "none"
