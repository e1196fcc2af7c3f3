"""Deltas and images for publishers, made from records."""

from __future__ import annotations

import attrs

from kraftlake.delta.from_empty import delta_from_empty
from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.records import metadata_records as r
from kraftlake.records.schema import Message
from kraftlake.records.uuid import Uuid
from kraftlake.replay.loader.manifest import LogDeltaManifest, SnapshotManifest
from kraftlake.replay.loader.metadata_publisher import MetadataPublisher
from tests.replay.made_logs import TIME, metadata_version, uuid_of

DIRECTORY = Uuid((77).to_bytes(16, "big"))


@attrs.define
class Cluster:
    """An image that records change, passed to the publishers each time."""

    parts: tuple[MetadataPublisher, ...] = ()
    image: MetadataImage = MetadataImage.EMPTY

    def change(self, *messages: Message) -> MetadataDelta:
        """One change of the log."""
        delta = MetadataDelta(self.image)
        for message in messages:
            delta.replay(message)
        at = MetadataProvenance(offset=self.image.offset + len(messages), epoch=1, timestamp=TIME)
        self.image = delta.apply(at)
        manifest = LogDeltaManifest(provenance=at, base_offset=delta.image.offset + 1, num_batches=1, num_bytes=1)
        for part in self.parts:
            part.on_metadata_update(delta, self.image, manifest)
        return delta

    def introduce(self, part: MetadataPublisher) -> None:
        """Publish everything to a new part, and changes from now on."""
        manifest = SnapshotManifest(provenance=self.image.provenance)
        part.on_metadata_update(delta_from_empty(self.image), self.image, manifest)
        self.parts = (*self.parts, part)


def cluster(*messages: Message, parts: tuple[MetadataPublisher, ...] = ()) -> Cluster:
    """A cluster of some records, its metadata.version first."""
    made = Cluster(parts)
    made.change(metadata_version(25), *messages)
    return made


def broker(
    broker_id: int, *listeners: str, fenced: bool = False, rack: str | None = None, dirs: tuple[Uuid, ...] = ()
) -> r.RegisterBrokerRecord:
    """A broker on port 9000 + id, of the listener PLAINTEXT unless others are given."""
    return r.RegisterBrokerRecord(
        broker_id=broker_id,
        broker_epoch=100 + broker_id,
        incarnation_id=uuid_of(900 + broker_id),
        end_points=tuple(
            r.BrokerEndpoint(name=name, host=f"host-{broker_id}", port=9000 + broker_id, security_protocol=0)
            for name in listeners or ("PLAINTEXT",)
        ),
        rack=rack,
        fenced=fenced,
        log_dirs=dirs,
    )


def topic_of(name: str, number: int, *partitions: tuple[int, tuple[int, ...]], leader_epoch: int = 0) -> list[Message]:
    """A topic whose partitions are (leader, replicas), all in sync."""
    records: list[Message] = [r.TopicRecord(name=name, topic_id=uuid_of(number))]
    for partition_id, (leader, replicas) in enumerate(partitions):
        records.append(
            r.PartitionRecord(
                topic_id=uuid_of(number),
                partition_id=partition_id,
                replicas=replicas,
                isr=replicas,
                leader=leader,
                leader_epoch=leader_epoch,
                partition_epoch=0,
            )
        )
    return records


def new_leader(number: int, partition: int, leader: int, **fields: object) -> r.PartitionChangeRecord:
    """A change of leader."""
    return r.PartitionChangeRecord(
        topic_id=uuid_of(number),
        partition_id=partition,
        leader=leader,
        **fields,  # type: ignore[arg-type]
    )
