"""What reads bytes from outside. A target takes any bytes, and refuses what is wrong by the errors that it names.

A target raises AssertionError where two ways to read the same bytes differ.
"""

from __future__ import annotations

import resource
import struct
from collections.abc import Callable, Iterable
from contextlib import suppress

import attrs

from kraftlake.metadata_log.delta_table.actions import decode_commit
from kraftlake.protocol.fetch_response import decode_fetch
from kraftlake.protocol.scram import ScramError
from kraftlake.records.varint import MalformedError
from kraftlake.runtime.errors import CorruptDataError, KraftlakeError
from kraftlake.runtime.java_properties import parse_properties
from kraftlake.server.requests.messages import UNREADABLE
from tests.fuzzing import of_files, of_logs, of_replicas, of_wire

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


OF_KERNELS = ("batches", "segments", "snapshots", "produced", "replayed", "cleaned", "replicas")
"""The targets that compiled code reads."""

FILES = (KraftlakeError,)
TARGETS = {
    "batches": Target(of_logs.read_both_ways, FILES, lambda: of_logs.metadata_files(".log")),
    "replayed": Target(of_logs.replay_both_ways, FILES, of_logs.records_of_topics),
    "cleaned": Target(of_logs.clean, FILES, of_logs.produced),
    "produced": Target(of_logs.prepare_produced, FILES, of_logs.produced),
    "replicas": Target(of_replicas.load_replica, FILES, of_replicas.replicas),
    "segments": Target(of_logs.read_segment, FILES, lambda: of_logs.metadata_files(".log")),
    "snapshots": Target(of_logs.read_checkpoint, FILES, lambda: of_logs.metadata_files(".checkpoint")),
    "values": Target(of_logs.read_value, (CorruptDataError,), of_logs.values),
    "foreign": Target(of_logs.read_foreign_value, (CorruptDataError,), of_logs.foreign_values),
    "requests": Target(of_wire.request, UNREADABLE, of_wire.requests),
    "responses": Target(of_wire.response, UNREADABLE, of_wire.responses),
    "answers": Target(
        lambda data: decode_fetch(data, 0), (MalformedError, IndexError, struct.error, UnicodeDecodeError),
        lambda: [bytes(11), struct.pack(">ihi", 0, 0, 0) + b"\2" + bytes(16) + b"\2" + bytes(60)],
    ),
    "logins": Target(of_wire.log_in, (ValueError,), of_wire.logins),
    "challenges": Target(of_wire.challenge, (ScramError,), of_wire.challenges),
    "stores": Target(of_files.open_store, FILES, of_files.stores),
    "node_files": Target(of_files.read_node_files, FILES, of_files.node_files),
    "properties": Target(parse_properties, (ValueError,), lambda: [b"a.b = c\\\n d\n! no\n\\u0041:x"]),
    "documents": Target(of_files.read_document, FILES, of_files.documents),
    "commits": Target(lambda data: decode_commit(data, 1, "fuzzed", "log"), FILES, of_files.commits),
    "checkpoints": Target(of_files.read_delta_checkpoint, (*FILES, FileNotFoundError), of_files.delta_checkpoints),
    "archives": Target(of_files.read_archive, FILES, of_files.archives),
    "schemas": Target(of_files.read_schema, FILES, of_files.schemas),
    "jaas": Target(of_files.read_jaas, (ValueError,), of_files.jaas),
}  # fmt: skip
