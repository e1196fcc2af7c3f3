"""Logs made for these tests: batches in memory, and the directories that Kafka would have written them to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import attrs

from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.kafka_files.file_names import segment_name, snapshot_name
from kraftlake.kafka_files.snapshots.batches import checkpoint_batches
from kraftlake.kafka_files.writer import write_checkpoint, write_segment
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.control_records import LeaderChangeMessage
from kraftlake.records.schema import Message
from kraftlake.records.serde import ApiMessageAndVersion, UnknownRecord
from kraftlake.records.uuid import Uuid
from kraftlake.replay.loader.batch_loader import MetadataBatchLoader

TIME = 1_700_000_000_000
CLUSTER = "cluster-of-the-tests-1"


def uuid_of(number: int) -> Uuid:
    return Uuid((1000 + number).to_bytes(16, "big"))


def topic(number: int, name: str | None = None) -> r.TopicRecord:
    return r.TopicRecord(name=name or f"topic-{number}", topic_id=uuid_of(number))


def partition(
    number: int, *, replicas: tuple[int, ...] = (1, 2), leader: int = 1, **fields: object
) -> r.PartitionRecord:
    values = {"partition_id": 0, "isr": replicas, "leader_epoch": 0, "partition_epoch": 0, **fields}
    return r.PartitionRecord(topic_id=uuid_of(number), replicas=replicas, leader=leader, **values)  # type: ignore[arg-type]


def metadata_version(level: int = 19) -> r.FeatureLevelRecord:
    return r.FeatureLevelRecord(name="metadata.version", feature_level=level)


def begin(name: str = "transaction") -> r.BeginTransactionRecord:
    return r.BeginTransactionRecord(name=name)


def end() -> r.EndTransactionRecord:
    return r.EndTransactionRecord()


def abort(reason: str = "controller died") -> r.AbortTransactionRecord:
    return r.AbortTransactionRecord(reason=reason)


UNKNOWN = UnknownRecord(99, 3, b"\x01\x63\x03rest")
UNDECODABLE = b"\x01\x02\x00\x7f"  # a TopicRecord whose name is longer than its bytes


def data(
    offset: int, *messages: Message | UnknownRecord | bytes, epoch: int = 1, time: int | None = None
) -> RecordBatch:
    """A data batch; bytes stand for the value itself."""
    time = TIME + offset if time is None else time
    some = RecordBatch.of(offset, epoch, time, [_versioned(m) for m in messages])
    values = tuple(m if isinstance(m, bytes) else v for m, v in zip(messages, some.values, strict=True))
    return attrs.evolve(some, values=values)


def _versioned(message: Message | UnknownRecord | bytes) -> ApiMessageAndVersion:
    if isinstance(message, bytes):
        return ApiMessageAndVersion(r.NoOpRecord(), 0)
    if isinstance(message, UnknownRecord):
        return ApiMessageAndVersion(message, message.version)
    return ApiMessageAndVersion(message, 0)


def no_op(offset: int, *, epoch: int = 1, time: int | None = None) -> RecordBatch:
    return data(offset, r.NoOpRecord(), epoch=epoch, time=time)


def leader_change(offset: int, epoch: int, leader_id: int = 3000) -> RecordBatch:
    return RecordBatch.control_of(offset, epoch, TIME + offset, [LeaderChangeMessage(version=0, leader_id=leader_id)])


def log_of(*groups: Sequence[Message | UnknownRecord | bytes] | int) -> list[RecordBatch]:
    """A log from offset 0: each group is a batch, a number is the LeaderChange of that epoch."""
    batches: list[RecordBatch] = []
    offset, epoch = 0, 0
    for group in groups:
        if isinstance(group, int):
            epoch = group
            batches.append(leader_change(offset, epoch))
        else:
            batches.append(data(offset, *group, epoch=epoch))
        offset = batches[-1].last_offset + 1
    return batches


def small_log() -> list[RecordBatch]:
    """Two epochs, a transaction, some topics: offsets 0 to 17."""
    return log_of(
        1,
        [begin("Bootstrap records"), metadata_version(), end()],
        [topic(1), partition(1)],
        [topic(2), partition(2, leader=2)],
        [r.NoOpRecord()],
        2,
        [begin(), topic(3)],
        [partition(3), end()],
        [r.RemoveTopicRecord(topic_id=uuid_of(1))],
        [r.NoOpRecord()],
        [r.ConfigRecord(resource_type=4, resource_name="", name="compression.type", value="zstd")],
        3,
    )


@attrs.frozen(kw_only=True)
class MadeSnapshot:
    """A snapshot in memory."""

    end_offset: int
    epoch: int
    records: tuple[RecordBatch, ...]
    finished: bool = True
    bootstrap: bool = False
    last_contained_log_timestamp: int = TIME
    size_in_bytes: int = 0

    @property
    def name(self) -> str:
        return snapshot_name(self.end_offset, self.epoch)

    def damage(self) -> str | None:
        return None

    def batches(self) -> Iterator[RecordBatch]:
        return iter(self.records)


def snapshot_of(image: MetadataImage) -> MadeSnapshot:
    at = image.provenance
    batches = checkpoint_batches(list(image.write()), epoch=at.epoch, timestamp=at.timestamp)
    return MadeSnapshot(
        end_offset=at.offset + 1, epoch=at.epoch, records=tuple(batches), last_contained_log_timestamp=at.timestamp
    )


@attrs.frozen(kw_only=True)
class MadeLog:
    """A `LogReader` in memory."""

    records: tuple[RecordBatch, ...]
    snapshots: tuple[MadeSnapshot, ...] = ()
    start_offset: int = 0
    name: str = "a made log"
    cluster_id: str | None = None

    @property
    def end_offset(self) -> int:
        return self.records[-1].last_offset + 1 if self.records else self.start_offset

    def batches(self, from_offset: int = 0, to_offset: int | None = None) -> Iterator[RecordBatch]:
        for batch in self.records:
            if batch.last_offset >= from_offset and (to_offset is None or batch.base_offset <= to_offset):
                yield batch


def trimmed(batches: Sequence[RecordBatch], start: int, *ends: int, **fields: object) -> MadeLog:
    """The log from `start` on, with snapshots made at `ends`."""
    snapshots = tuple(snapshot_of(reference_image(batches, end - 1)) for end in ends)
    kept = tuple(batch for batch in batches if batch.base_offset >= start)
    return MadeLog(records=kept, snapshots=snapshots, start_offset=start, **fields)  # type: ignore[arg-type]


def reference_image(batches: Iterable[RecordBatch], at: int | None = None) -> MetadataImage:
    """The image at `at`, with one metadata delta a batch."""
    images: list[MetadataImage] = [MetadataImage.EMPTY]
    loader = MetadataBatchLoader(publish=lambda delta, image, manifest: images.append(image))
    for batch in batches:
        if at is None or batch.base_offset <= at:
            loader.load_batch(batch, to_offset=at)
            loader.flush()
    return attrs.evolve(images[-1], provenance=loader.last)


def without_place(image: MetadataImage) -> MetadataImage:
    """The image apart from where it comes from."""
    return attrs.evolve(image, provenance=MetadataProvenance.EMPTY)


def write_directory(
    folder: Path,
    batches: Sequence[RecordBatch],
    *,
    cuts: Sequence[int] = (),
    snapshots: Sequence[MadeSnapshot] = (),
    cluster_id: str | None = CLUSTER,
) -> Path:
    """Write `folder/__cluster_metadata-0`, a new segment at each offset of `cuts`; returns the directory."""
    directory = folder / "__cluster_metadata-0"
    directory.mkdir(parents=True)
    if cluster_id is not None:
        (folder / "meta.properties").write_text(f"version=1\ncluster.id={cluster_id}\nnode.id=1\n")
    start = batches[0].base_offset if batches else 0
    starts = [start, *(cut for cut in cuts if cut > start)]
    for low, high in zip(starts, [*starts[1:], 2**63], strict=True):
        part = [batch for batch in batches if low <= batch.base_offset < high]
        write_segment(directory / segment_name(low), part)
    for snapshot in snapshots:
        messages = [m for batch in snapshot.records if not batch.control for m in batch.messages()]
        write_checkpoint(
            directory / snapshot.name,
            messages,
            epoch=snapshot.epoch,
            timestamp=snapshot.last_contained_log_timestamp,
        )
    return directory
