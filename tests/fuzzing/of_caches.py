"""A reader of a cached image: an Arrow file with a right checksum, of a snapshot that it names."""

from __future__ import annotations

import shutil
import tempfile
from functools import lru_cache
from pathlib import Path

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.cluster_counts import count_cluster
from kraftlake.image.metadata_image import MetadataImage, image_to_json
from kraftlake.image.topics.row_lists import LISTS, RowLists
from kraftlake.image.topics.topic_values import values_by_name
from kraftlake.image.writer_options import ImageWriterOptions
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.snapshots.snapshot_rows import SnapshotFacts
from kraftlake.metadata_log.snapshots.snapshot_table import LakeSnapshot
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.crc32c import crc32c
from kraftlake.records.metadata_version import LATEST
from kraftlake.records.serde import AnyMessage, ApiMessageAndVersion, encode_value
from kraftlake.records.uuid import Uuid
from kraftlake.replay.loader.image_cache import HEADER_BYTES, MAGIC, cache_path, load_cached, save_columns
from kraftlake.replay.loader.image_columns import image_to_arrow
from kraftlake.replay.loader.quorum_state import QuorumState
from kraftlake.replay.reading.replay_base import snapshot_provenance
from kraftlake.runtime.log import without_logs
from tests.fuzzing.target import FILES, Target


def read_cached_image(data: bytes) -> None:
    """An image is taken or not; one that is taken can be read in all ways, by objects and by compiled code."""
    snapshot, _ = _snapshot()
    with tempfile.TemporaryDirectory(prefix="kraftlake-fuzzed-") as folder:
        path = cache_path(Path(folder), snapshot)
        path.parent.mkdir()
        path.write_bytes((MAGIC + crc32c(data).to_bytes(4, "big")).ljust(HEADER_BYTES, b"\0") + data)
        with without_logs():  # what is not taken is warned of
            cached = load_cached(Path(folder), snapshot)
    if cached is not None:
        image_to_json(cached.image, show_secrets=True)
        count_cluster(cached.image)
        packed = cached.image.topics.rows().merged()
        for name in LISTS:
            RowLists(packed.rows, packed.heap, ()).flat(name)
        list(values_by_name(packed, ImageWriterOptions(metadata_version=LATEST, elr_enabled=True)))


@lru_cache
def _snapshot() -> tuple[LakeSnapshot, bytes]:
    """A snapshot, and its image's columns: topics of each kind, one with gaps among its partitions, and a feature."""
    one, other, directory = Uuid(bytes(15) + b"\5"), Uuid(bytes(15) + b"\6"), Uuid(bytes(15) + b"\x99")
    level = r.FeatureLevelRecord(name="metadata.version", feature_level=29)
    messages: tuple[AnyMessage, ...] = (
        level,
        r.TopicRecord(name="a", topic_id=one),
        r.PartitionRecord(
            topic_id=one, partition_id=0, replicas=(1, 2), isr=(1, 2), leader=1, directories=(directory,) * 2
        ),
        r.PartitionRecord(
            topic_id=one, partition_id=1, replicas=(1, 2, 3, 4), isr=(1,), leader=1, adding_replicas=(4,),
            removing_replicas=(2,), directories=(directory,) * 4, eligible_leader_replicas=(2,), last_known_elr=(3,),
        ),
        r.TopicRecord(name="b", topic_id=other),
        r.PartitionRecord(topic_id=other, partition_id=3, replicas=(1,), isr=(1,), leader=1, directories=(directory,)),
    )  # fmt: skip
    delta = MetadataDelta(MetadataImage.EMPTY)
    for message in messages:
        delta.replay(message)
    folder = Path(tempfile.mkdtemp(prefix="kraftlake-cached-"))
    try:
        log = MetadataLog.create(folder / "lake", start_offset=9)
        facts = SnapshotFacts(end_offset=9, epoch=1, last_contained_log_timestamp=1)
        log.add_snapshot(facts, [RecordBatch.of(0, 1, 1, [ApiMessageAndVersion(level, 0)])])
        (snapshot,) = log.snapshots()
        image = delta.apply(snapshot_provenance(snapshot))
        save_columns(folder, snapshot, image_to_arrow(image, [encode_value(level, 0)]), QuorumState(leader_id=1))
        return snapshot, cache_path(folder, snapshot).read_bytes()[HEADER_BYTES:]
    finally:
        shutil.rmtree(folder)


TARGETS = {"images": Target(read_cached_image, FILES, lambda: [_snapshot()[1]])}
