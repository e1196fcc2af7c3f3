"""Readers of record batches and records: of metadata, and of what clients send to a broker."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from kraftlake.image.metadata_image import image_to_json
from kraftlake.kafka_files.message_files import declared_types
from kraftlake.kafka_files.segments.segment import find_log_end
from kraftlake.kafka_files.snapshots.snapshot import read_snapshot
from kraftlake.kafka_files.stored_file import DiskFile
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch, encode_batch, read_batches
from kraftlake.records.batch_header import COMPRESSIONS, header_at
from kraftlake.records.batch_values import BatchValues, read_values
from kraftlake.records.foreign.registered import registered
from kraftlake.records.rows import to_rows
from kraftlake.records.serde import ApiMessageAndVersion, decode_value, encode_value
from kraftlake.records.uuid import Uuid
from kraftlake.replay.loader.batch_loader import MetadataBatchLoader
from kraftlake.replica_manager.logs.cleaning.batch_content import records_of
from kraftlake.replica_manager.logs.cleaning.batch_filter import BatchFilter
from kraftlake.replica_manager.logs.cleaning.cleaned_transactions import CleanedTransactions
from kraftlake.replica_manager.logs.cleaning.offset_map import OffsetMap
from kraftlake.replica_manager.logs.client_batches import prepared_batches
from kraftlake.replica_manager.logs.log_batch import log_batches
from kraftlake.replica_manager.logs.log_config import LogConfig
from kraftlake.runtime.errors import CorruptDataError, KraftlakeError
from simulator.data_batches import batch, keyed, marker
from tests.fuzzing.target import FILES, Target
from tests.kernels.mutants import batches_of
from tests.records.test_batch import signed

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "samples"
AUTOMQ = ROOT / "docs" / "examples" / "automq"
NOW_MS = 1 << 41


def with_right_sums(data: bytes) -> bytes:
    """The bytes with a right CRC in each batch, which no change at random would make."""
    changed = bytearray(data)
    for begin, end in batches_of(data):
        changed[begin:end] = signed(bytes(changed[begin:end]))
    return bytes(changed)


def read_both_ways(data: bytes) -> None:
    """Batches one by one, and in bulk: the same as far as the bulk goes, and it goes as far but for one error."""
    data = with_right_sums(data)
    bulk = list(read_values(memoryview(data), file="fuzzed", position=0))
    end = sum(chunk.size_in_bytes for chunk in bulk)
    try:
        batches = list(read_batches(data[:end], file="fuzzed"))
    except KraftlakeError as fault:
        raise AssertionError(f"the bulk takes {end} bytes, which one by one are refused: {fault}") from fault
    if batches:
        assert to_rows(bulk).equals(to_rows(batches))
    list(read_batches(data, file="fuzzed"))


def replay_both_ways(data: bytes) -> None:
    """The image of batches in bulk, and record by record: the same, and the same records left out."""
    parts = list(read_values(memoryview(with_right_sums(data)), file="fuzzed", position=0))
    bulk, single = MetadataBatchLoader(lenient=True), MetadataBatchLoader(lenient=True)
    ends = [_outcome(bulk, lambda: _load(bulk, parts)), _outcome(single, lambda: _load_each(single, parts))]
    assert ends[0] == ends[1], f"in bulk {ends[0]}, one by one {ends[1]}"


def _load(loader: MetadataBatchLoader, parts: Iterable[Any]) -> None:
    for part in parts:
        if isinstance(part, BatchValues):
            loader.load_values(part, to_offset=(1 << 63) - 1)
        else:
            loader.load_batch(part)


def _load_each(loader: MetadataBatchLoader, parts: Iterable[Any]) -> None:
    for part in parts:
        for one in part.batches(part.base_offset) if isinstance(part, BatchValues) else [part]:
            loader.load_batch(one)


def _outcome(loader: MetadataBatchLoader, load: Callable[[], None]) -> Any:
    try:
        load()
        return image_to_json(loader.take_image(), show_secrets=True), [one.offset for one in loader.skipped]
    except KraftlakeError as fault:
        return type(fault), str(fault)


def clean(data: bytes) -> None:
    """Batches compacted: what is left is batches whose records can be read, and a second time changes nothing.

    The second time may find that all records of a transaction are gone, and note so in its marker.
    """
    batches = list(log_batches(with_right_sums(data)))
    offsets = OffsetMap(64, 0.75, (1, 2))
    for one in batches:
        if not one.control and not offsets.put(header := header_at(one.data), records_of(one.data, header), 0):
            break
    left = _filtered(offsets, batches)
    again = list(log_batches(left))
    for one in again:
        records_of(one.data, header_at(one.data))
    twice = _filtered(offsets, again)
    assert twice == left or any(one.transactional for one in batches)


def _filtered(offsets: OffsetMap, batches: Iterable[Any]) -> bytes:
    kept = BatchFilter(
        offset_map=offsets, transactions=CleanedTransactions(), last_records={}, now_ms=NOW_MS, delete_retention_ms=1
    )
    return b"".join(bytes(left) for one in batches if (left := kept.filtered(one)) is not None)


def read_value(data: bytes) -> None:
    """A record's value: written at its version and read again, it is written in the same bytes."""
    found = decode_value(data)
    written = encode_value(found.message, found.version)
    again = decode_value(written)
    assert encode_value(again.message, again.version) == written


def read_foreign_value(data: bytes) -> None:
    """A record's value of a type that schemas declare."""
    with registered(automq_types()):
        read_value(data)


def prepare_produced(data: bytes) -> None:
    prepared_batches(with_right_sums(data), LogConfig(compression_type="gzip"), 1)


def in_a_file(data: bytes, name: str, read: Callable[[Path], object]) -> None:
    with tempfile.TemporaryDirectory(prefix="kraftlake-fuzzed-") as folder:
        path = Path(folder, name)
        path.write_bytes(data)
        read(path)


def read_segment(data: bytes) -> None:
    data = with_right_sums(data)
    in_a_file(data, f"{0:020}.log", lambda path: find_log_end(DiskFile.at(path), 0))


def read_checkpoint(data: bytes) -> None:
    data = with_right_sums(data)
    in_a_file(data, f"{9:020}-{1:010}.checkpoint", lambda path: list(read_snapshot(DiskFile.at(path)).batches()))


def metadata_files(suffix: str) -> Iterable[bytes]:
    """The samples' files of one kind, the whole batches in the first 4 kB of each."""
    for path in sorted(SAMPLES.glob(f"*/log/__cluster_metadata-0/*{suffix}")):
        data = path.read_bytes()[:4096]
        yield data[: max((end for _, end in batches_of(data)), default=0)]


def values() -> Iterable[bytes]:
    """A record of each type in the samples."""
    found: dict[bytes, bytes] = {}
    for data in metadata_files(".log"):
        for one in read_batches(data, file="sample"):
            if not one.control:
                found |= {value[:3]: value for value in one.values}
    return found.values()


@lru_cache
def automq_types() -> Any:
    return declared_types(str(AUTOMQ))


def foreign_values() -> Iterable[bytes]:
    """An empty record of each type that AutoMQ adds."""
    with registered(automq_types()):
        for one in automq_types():
            yield encode_value(one.cls(), one.cls.VERSIONS.high or 0)


def produced() -> Iterable[bytes]:
    """Batches of clients: keys that come again, tombstones, transactions that were aborted, each codec."""
    for codec in COMPRESSIONS:
        yield keyed((b"a", b"1"), (b"b", None), (b"a", b"2"), (None, b"x"), codec=codec)
    transaction = batch(b"1", b"2", producer=7, transactional=True, key=b"a")
    yield transaction + marker(7, commit=False) + transaction + marker(7, commit=True)


def records_of_topics() -> Iterable[bytes]:
    """Batches of each kind of record of a topic, with all its fields."""
    topic, directory = Uuid(bytes(15) + b"\x05"), Uuid(bytes(15) + b"\x99")
    lists: Any = {"adding_replicas": (3,), "removing_replicas": (2,), "directories": (directory,) * 3}
    elr: Any = {"eligible_leader_replicas": (2,), "last_known_elr": (3,)}
    records = (
        r.TopicRecord(name="a", topic_id=topic),
        r.PartitionRecord(topic_id=topic, partition_id=0, replicas=(1, 2, 3), isr=(1,), leader=1, **lists, **elr),
        r.PartitionRecord(topic_id=topic, partition_id=1, replicas=(1, 2), isr=(1, 2), leader=2),
        r.PartitionChangeRecord(topic_id=topic, partition_id=0, isr=(1,), leader=1, replicas=(1, 2, 3), **lists, **elr),
        r.PartitionChangeRecord(topic_id=topic, partition_id=1, isr=(1,), leader=-1, leader_recovery_state=1),
        r.ConfigRecord(resource_type=2, resource_name="a", name="flush.ms", value="1"),
        r.ClearElrRecord(topic_name="a"),
        r.RemoveTopicRecord(topic_id=topic),
    )  # fmt: skip
    messages = [ApiMessageAndVersion(one, min(2, type(one).VERSIONS.high or 0)) for one in records]
    yield encode_batch(RecordBatch.of(0, 1, 1, messages))
    yield b"".join(encode_batch(RecordBatch.of(at, 1, 1, [one])) for at, one in enumerate(messages))
    yield from metadata_files(".log")


TARGETS = {
    "batches": Target(read_both_ways, FILES, lambda: metadata_files(".log")),
    "replayed": Target(replay_both_ways, FILES, records_of_topics),
    "cleaned": Target(clean, FILES, produced),
    "produced": Target(prepare_produced, FILES, produced),
    "segments": Target(read_segment, FILES, lambda: metadata_files(".log")),
    "snapshots": Target(read_checkpoint, FILES, lambda: metadata_files(".checkpoint")),
    "values": Target(read_value, (CorruptDataError,), values),
    "foreign": Target(read_foreign_value, (CorruptDataError,), foreign_values),
}  # fmt: skip
