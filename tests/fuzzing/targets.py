"""What reads bytes from outside. A target takes any bytes, and refuses what is wrong by the errors that it names.

A target raises AssertionError where two ways to read the same bytes differ.
"""

from __future__ import annotations

import gzip
import io
import resource
import struct
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import attrs

from kraftlake.kafka_files.archives.archive import nodes_in_archive
from kraftlake.kafka_files.archives.members import ArchiveLimits
from kraftlake.kafka_files.node.meta_properties import read_properties
from kraftlake.kafka_files.node.partition_files import parse_leader_epochs, parse_offsets, parse_topic_id
from kraftlake.kafka_files.node.quorum_state import parse_election_state
from kraftlake.kafka_files.segments.segment import find_log_end
from kraftlake.kafka_files.snapshots.snapshot import read_snapshot
from kraftlake.kafka_files.stored_file import DiskFile
from kraftlake.metadata_log.delta_table.actions import decode_commit
from kraftlake.protocol.fetch_response import decode_fetch
from kraftlake.protocol.jaas import parse_jaas
from kraftlake.records.batch import read_batches
from kraftlake.records.batch_values import read_values
from kraftlake.records.foreign.message_format import parse_schema, record_type_of
from kraftlake.records.rows import to_rows
from kraftlake.records.serde import decode_value, encode_value
from kraftlake.records.varint import MalformedError
from kraftlake.replica_manager.logs.client_batches import prepared_batches
from kraftlake.replica_manager.logs.disk.producer_snapshots import decode_snapshot
from kraftlake.replica_manager.logs.log_config import LogConfig
from kraftlake.runtime.errors import CorruptDataError, KraftlakeError
from kraftlake.runtime.java_properties import parse_properties
from kraftlake.server.requests.messages import UNREADABLE, request_in
from tests.kernels.mutants import batches_of
from tests.records.test_batch import signed

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "samples"
UNPACKED = ArchiveLimits(members=1000, unpacked=1 << 24, ratio_from=1 << 22, held=1 << 22)
"""Small enough that an archive at the limits is read within a second."""

MOST_MEMORY = 512 << 20
"""What the process may grow by while it reads an input of a few kB."""


@attrs.frozen
class Target:
    """Bytes to read, what may refuse them, and bytes to begin with."""

    read: Callable[[bytes], object]
    refusals: tuple[type[Exception], ...]
    seeds: Callable[[], Iterable[bytes]]

    def check(self, data: bytes) -> None:
        """Read the bytes; only a refusal may come of it, and no more memory than MOST_MEMORY."""
        before = _peak_memory()
        with suppress(self.refusals):
            self.read(data)
        taken = _peak_memory() - before
        assert taken < MOST_MEMORY, f"{len(data):,} bytes take {taken >> 20:,} MB of memory"


def _peak_memory() -> int:
    """The largest memory that the process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


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


def read_value(data: bytes) -> None:
    """A record's value: written at its version and read again, it is written in the same bytes."""
    found = decode_value(data)
    written = encode_value(found.message, found.version)
    again = decode_value(written)
    assert encode_value(again.message, again.version) == written


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


def read_archive(data: bytes) -> None:
    def read(path: Path) -> None:
        for node in nodes_in_archive(path, UNPACKED):
            node.open()

    in_a_file(data, "fuzzed.archive", read)


def read_node_files(data: bytes) -> None:
    """The small files beside logs: the first byte chooses which."""
    parsers = (
        parse_leader_epochs, parse_offsets, parse_topic_id, parse_election_state, read_properties, decode_snapshot,
    )  # fmt: skip
    if data:
        parsers[data[0] % len(parsers)](data[1:])


def read_schema(data: bytes) -> None:
    record_type_of(parse_schema(data.decode("utf-8", "replace"), "fuzzed.json"), "fuzzed.json")


def request(data: bytes) -> None:
    if len(data) >= 10:  # a dispatcher looks at the length first
        request_in(data)


def metadata_files(suffix: str) -> Iterable[bytes]:
    """The samples' files of one kind, at most 4 kB of each."""
    for path in sorted(SAMPLES.glob(f"*/log/__cluster_metadata-0/*{suffix}")):
        yield path.read_bytes()[:4096]


def values() -> Iterable[bytes]:
    """A record of each type in the samples."""
    found: dict[bytes, bytes] = {}
    for data in metadata_files(".log"):
        ends = [end for _, end in batches_of(data)]
        for batch in read_batches(data[: max(ends, default=0)], file="sample"):
            if not batch.control:
                found |= {value[:3]: value for value in batch.values}
    return found.values()


def archives() -> Iterable[bytes]:
    """A sample's log as a tar file, compressed or not, and as a ZIP file."""
    log = SAMPLES / "legacy-33" / "log" / "__cluster_metadata-0"
    tar, packed = io.BytesIO(), io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as written, zipfile.ZipFile(packed, "w") as zipped:
        for path in sorted(log.iterdir())[:3]:
            info = tarfile.TarInfo(f"__cluster_metadata-0/{path.name}")
            content = path.read_bytes()[:600]
            info.size = len(content)
            written.addfile(info, io.BytesIO(content))
            zipped.writestr(f"__cluster_metadata-0/{path.name}", content)
    return tar.getvalue(), gzip.compress(tar.getvalue(), mtime=0), packed.getvalue()


def node_files() -> Iterable[bytes]:
    yield from (
        b"\0" + b"0\n1\n2 40\n", b"\1" + b"0\n1\nfoo 0 17\n", b"\2" + b"version: 0\ntopic_id: FGKf0i74SB6CU0do4iGGrQ\n",
        b'\3{"leaderId":1,"leaderEpoch":3,"votedId":-1,"data_version":1}', b"\4cluster.id=a\nnode.id=1\nversion=1\n",
        b"\5" + struct.pack(">hIi", 1, 0, 0),
    )  # fmt: skip


def commits() -> Iterable[bytes]:
    with tarfile.open(SAMPLES / "lakes" / "whole.tar.gz") as lake:
        names = sorted(name for name in lake.getnames() if "/_delta_log/" in name and name.endswith(".json"))
        for name in names[:3]:
            file = lake.extractfile(name)
            assert file is not None
            yield file.read()


def requests() -> Iterable[bytes]:
    """Requests of the newest versions with empty bodies, which the fuzzer goes on from."""
    for key in (0, 1, 2, 3, 18, 19, 20, 22, 32, 44, 58, 62, 63):
        yield struct.pack(">hhih", key, 1, 7, -1) + bytes(40)


FILES = (KraftlakeError,)
TARGETS = {
    "batches": Target(read_both_ways, FILES, lambda: metadata_files(".log")),
    "values": Target(read_value, (CorruptDataError,), values),
    "segments": Target(read_segment, FILES, lambda: metadata_files(".log")),
    "snapshots": Target(read_checkpoint, FILES, lambda: metadata_files(".checkpoint")),
    "produced": Target(
        lambda data: prepared_batches(with_right_sums(data), LogConfig(compression_type="gzip"), 1),
        FILES, lambda: metadata_files(".log"),
    ),
    "requests": Target(request, UNREADABLE, requests),
    "answers": Target(
        lambda data: decode_fetch(data, 0), (MalformedError, IndexError, struct.error, UnicodeDecodeError),
        lambda: [bytes(11), struct.pack(">ihi", 0, 0, 0) + b"\2" + bytes(16) + b"\2" + bytes(60)],
    ),
    "node_files": Target(read_node_files, FILES, node_files),
    "properties": Target(parse_properties, (ValueError,), lambda: [b"a.b = c\\\n d\n! no\n\\u0041:x"]),
    "commits": Target(lambda data: decode_commit(data, 1, "fuzzed", "log"), FILES, commits),
    "archives": Target(read_archive, FILES, archives),
    "schemas": Target(
        read_schema, FILES, lambda: [path.read_bytes() for path in (ROOT / "docs/examples/automq").glob("*.json")]
    ),
    "jaas": Target(
        lambda data: parse_jaas(data.decode("utf-8", "replace")), (ValueError,),
        lambda: [b'org.apache.kafka.common.security.scram.ScramLoginModule required username="a" password="b";'],
    ),
}  # fmt: skip
