"""Log directories of brokers, made up: meta.properties, and partitions whose logs have batches of leader epochs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from kraftlake.kafka_files.file_names import segment_name
from kraftlake.kafka_files.node.meta_properties import write_meta_properties
from kraftlake.records.batch import RecordBatch, encode_batch
from kraftlake.records.uuid import Uuid

CLUSTER = "cluster-of-the-tests-1"


def data_batch(offset: int, epoch: int, count: int = 1) -> RecordBatch:
    """A batch of a data topic: `count` records, written by the leader of `epoch`."""
    values = tuple(b"value-%06d" % (offset + number) for number in range(count))
    times = (1_700_000_000_000,) * count
    return RecordBatch(base_offset=offset, epoch=epoch, timestamp=times[0], values=values, timestamps=times)


def log_of_epochs(epochs: Sequence[int], start: int = 0) -> list[RecordBatch]:
    """One record for each number, its leader epoch."""
    return [data_batch(start + number, epoch) for number, epoch in enumerate(epochs)]


def write_replica(
    directory: Path,
    name: str,
    topic_id: Uuid,
    batches: Sequence[RecordBatch],
    *,
    cuts: Sequence[int] = (),
    epochs: Sequence[tuple[int, int]] | None = None,
) -> Path:
    """Write a partition's folder, a new segment at each offset of `cuts`; `epochs` are those of its checkpoint."""
    folder = directory / name
    folder.mkdir(parents=True)
    (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")
    start = batches[0].base_offset if batches else 0
    starts = sorted({start, *cuts})
    for low, high in zip(starts, [*starts[1:], 2**63], strict=True):
        content = b"".join(encode_batch(batch) for batch in batches if low <= batch.base_offset < high)
        (folder / segment_name(low)).write_bytes(content)
    if epochs is None:
        firsts: dict[int, int] = {}
        for batch in batches:
            firsts.setdefault(batch.epoch, batch.base_offset)
        epochs = sorted(firsts.items())
    lines = ["0", str(len(epochs)), *(f"{epoch} {offset}" for epoch, offset in epochs)]
    (folder / "leader-epoch-checkpoint").write_text("\n".join(lines) + "\n")
    return folder


def make_broker(
    directory: Path,
    node_id: int,
    *,
    directory_id: Uuid,
    logs: Mapping[str, tuple[Uuid, Sequence[int]]] | None = None,
    clean_epoch: int | None = None,
    cluster_id: str = CLUSTER,
) -> Path:
    """A log directory of a broker; `logs` has the topic's id and each record's leader epoch by partition."""
    directory.mkdir(parents=True)
    write_meta_properties(directory, cluster_id=cluster_id, node_id=node_id, directory_id=directory_id)
    if clean_epoch is not None:
        (directory / ".kafka_cleanshutdown").write_text(json.dumps({"version": 0, "brokerEpoch": clean_epoch}))
    for name, (topic_id, epochs) in (logs or {}).items():
        write_replica(directory, name, topic_id, log_of_epochs(epochs))
    return directory
