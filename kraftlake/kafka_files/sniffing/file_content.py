"""Recognises a file by its first bytes: a part of a metadata log, an archive, or something else."""

from __future__ import annotations

import re
import struct

import attrs

from kraftlake.kafka_files.file_names import segment_base_offset
from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.records.batch import RecordBatch, read_batches
from kraftlake.records.batch_header import HEADER_SIZE, MAGIC, NO_PRODUCER, BatchHeader, parse_header
from kraftlake.records.control_records import LeaderChangeMessage, SnapshotHeaderRecord
from kraftlake.records.crc32c import crc32c
from kraftlake.records.serde import UnknownRecord
from kraftlake.runtime.errors import CorruptDataError, KraftlakeError
from kraftlake.runtime.words import shown

HEAD_SIZE = 1024 * 1024
"""The number of bytes at a file's start that suffice for its recognition."""

TAR_BLOCK = 512
_MAX_LIKELY_API_KEY = 255
"""The maximum api key of a plausible frame: later Kafka releases add types after the known ones."""
_PRODUCER_SNAPSHOT_HEAD = struct.Struct(">hI")
COMPRESSED = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\0": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
"""The supported codecs, by the first bytes of their output."""
_UNWANTED_MAGIC = {
    b"PAR1": "a Parquet file: if it lies in a lake, name the lake's folder",
    b"\x04\x22\x4d\x18": "compressed with lz4: unpack it, or pack it as .tar.gz",
}
_KNOWN_NAMES = {
    "quorum-state": "Kafka's record of votes: name the directory that it lies in",
    "leader-epoch-checkpoint": "a list of leader epochs: name the directory that it lies in",
    "partition.metadata": "the id of a topic: name the directory that it lies in",
    "meta.properties": "the identity of a node: name the __cluster_metadata-0 directory beside it",
}
_INDEX_SUFFIX = re.compile(r"\.(index|timeindex|txnindex)(\.deleted)?")


@attrs.frozen
class Content:
    """The kind of SOURCE of a file, or None and `instead`, the end of a sentence that starts with "is"."""

    kind: SourceKind | None
    instead: str = ""
    is_data_topic: bool = False


def recognise(name: str, size: int, head: bytes) -> Content:
    """Recognise a file by its name, size and first bytes. Never raises."""
    if size == 0:
        return Content(None, "an empty file")
    if head.startswith((*COMPRESSED, b"PK\x03\x04", b"PK\x05\x06")) or is_tar_header(head):
        return Content(SourceKind.ARCHIVE)
    for magic, meaning in _UNWANTED_MAGIC.items():
        if head.startswith(magic):
            return Content(None, meaning)
    if name in _KNOWN_NAMES:
        return Content(None, _KNOWN_NAMES[name])
    if _is_producer_snapshot(size, head):
        return Content(
            None,
            "a producer snapshot (the idempotent producers of a partition), not one of metadata: "
            "name the directory that it lies in, or a .checkpoint file",
        )
    header = parse_header(head)
    if header is not None and header.fault() is None:
        return _recognise_batch(header, head)
    return Content(None, _no_batch(name, header, head))


def is_tar_header(head: bytes) -> bool:
    """Whether `head` starts with a tar member's header, verified by its checksum."""
    block = head[:TAR_BLOCK]
    if len(block) < TAR_BLOCK or not block[0]:
        return False
    stored = block[148:156].strip(b" \0")
    if not stored or stored.strip(b"01234567"):
        return False
    return sum(block) - sum(block[148:156]) + 8 * ord(" ") == int(stored, 8)


def _is_producer_snapshot(size: int, head: bytes) -> bool:
    """Whether the file is a snapshot of ProducerStateManager: version, CRC32C of the rest, entries."""
    if size != len(head) or size < _PRODUCER_SNAPSHOT_HEAD.size + 1:
        return False
    version, crc = _PRODUCER_SNAPSHOT_HEAD.unpack_from(head)
    return version in (1, 2) and crc32c(head[_PRODUCER_SNAPSHOT_HEAD.size :]) == crc


def _recognise_batch(header: BatchHeader, head: bytes) -> Content:
    """Recognise a file that starts with a record batch."""
    if header.producer != NO_PRODUCER or header.is_transactional:
        return _data_topic("its records come from an idempotent or transactional producer")
    data = head[: header.size]
    if not header.crc_is_good(data):
        # The rest of the file may be sound: reading it reports the faults.
        return Content(SourceKind.SEGMENT)
    try:
        (batch,) = read_batches(data, file="")
        fault = _no_metadata(batch)
    except (KraftlakeError, ValueError) as error:
        fault = str(error)
    if fault is not None:
        return _data_topic(fault)
    is_snapshot = batch.control and batch.control_types[:1] == (SnapshotHeaderRecord.API_KEY,)
    return Content(SourceKind.SNAPSHOT if is_snapshot else SourceKind.SEGMENT)


def _no_metadata(batch: RecordBatch) -> str | None:
    """The reason why a batch can't belong to a metadata log, or None."""
    if batch.control:
        is_raft = batch.control_types[0] >= LeaderChangeMessage.API_KEY
        return None if is_raft else "its control records end transactions"
    try:
        messages = [record.message for record in batch.messages()]
    except CorruptDataError as error:
        return f"its values are not metadata records: {error}"
    if all(isinstance(message, UnknownRecord) and message.api_key > _MAX_LIKELY_API_KEY for message in messages):
        return "its values are not metadata records"
    return None


def _data_topic(why: str) -> Content:
    return Content(
        None,
        f"a data topic's segment ({shown(why)}), not the metadata log: name the directory __cluster_metadata-0 "
        "or a file of it",
        is_data_topic=True,
    )


def _no_batch(name: str, header: BatchHeader | None, head: bytes) -> str:
    if _INDEX_SUFFIX.search(name):
        return "an index of a segment: name the .log file beside it, or their directory"
    if not head.strip(b"\0"):
        return "nothing but zeros: space set aside for a file that was never written"
    if header is not None and header.magic in (0, 1) and segment_base_offset(name) is not None:
        return "a segment in the message format of before Kafka 0.11, so none of a metadata log"
    if len(head) < HEADER_SIZE:
        return f"a file of {len(head)} bytes, fewer than a record batch takes"
    wanted = "neither a segment nor a snapshot nor an archive"
    if segment_base_offset(name) is not None or name.endswith((".log", ".checkpoint")):
        magic = f"format {head[16]}" if head[16] != MAGIC else "a broken length"
        return f"{wanted}: it does not start with a record batch ({magic} where {MAGIC} was expected)"
    return f"{wanted}: it starts with the bytes {head[:8].hex(' ')}"
