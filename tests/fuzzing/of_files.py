"""Readers of files: those beside Kafka's logs, archives, a lake's, and files of users."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from kraftlake.diagnosis.attribution.audit_files import read_audits
from kraftlake.diagnosis.attribution.log_files import read_logs
from kraftlake.diagnosis.drift.yaml_documents import read_yaml
from kraftlake.diagnosis.trial.reassignment_file import read_reassignment
from kraftlake.diagnosis.undo.plan_file import read_plan
from kraftlake.kafka_files.archives.archive import nodes_in_archive
from kraftlake.kafka_files.archives.members import ArchiveLimits
from kraftlake.kafka_files.node.meta_properties import read_properties
from kraftlake.kafka_files.node.partition_files import parse_leader_epochs, parse_offsets, parse_topic_id
from kraftlake.kafka_files.node.quorum_state import parse_election_state
from kraftlake.metadata_log.delta_table.actions import decode_commit
from kraftlake.metadata_log.delta_table.checkpoint import read_checkpoint
from kraftlake.metadata_log.delta_table.checkpoint_writer import write_checkpoint
from kraftlake.metadata_log.delta_table.delta_log import hinted_checkpoint, read_table
from kraftlake.metadata_log.delta_table.schema import differing_column
from kraftlake.protocol.client_config import read_client_config
from kraftlake.protocol.jaas import parse_jaas, parse_jaas_file
from kraftlake.records.foreign.message_format import parse_schema, record_type_of
from kraftlake.records.rows import LOG_SCHEMA
from kraftlake.replay.bundle.key_file import read_key
from kraftlake.replica_manager.logs.disk.producer_snapshots import decode_snapshot
from kraftlake.runtime.java_properties import parse_properties
from kraftlake.server.notices.outbox import Outbox
from tests.fuzzing.of_logs import AUTOMQ, SAMPLES, in_a_file
from tests.fuzzing.target import FILES, Target
from tests.metadata_log.log_batches import UnsyncedDisk

UNPACKED = ArchiveLimits(members=1000, unpacked=1 << 24, ratio_from=1 << 22, held=1 << 22)
"""Small enough that an archive at the limits is read within a second."""
AUDITED = {"time": "time", "principal": "user.name", "request": "op", "resource": "on", "host": "from.0"}


def read_archive(data: bytes) -> None:
    def read(path: Path) -> None:
        for node in nodes_in_archive(path, UNPACKED):
            node.open()

    in_a_file(data, "fuzzed.archive", read)


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


def read_node_files(data: bytes) -> None:
    """The small files beside logs: the first byte chooses which."""
    parsers = (
        parse_leader_epochs, parse_offsets, parse_topic_id, parse_election_state, read_properties, decode_snapshot,
    )  # fmt: skip
    if data:
        parsers[data[0] % len(parsers)](data[1:])


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


def read_delta_checkpoint(data: bytes) -> None:
    """A checkpoint of a Delta table with its list of files; the first byte may choose the small files beside it."""
    if data[:1] == b"h":
        in_a_file(data[1:], "_last_checkpoint", lambda path: hinted_checkpoint(path.parent))
    elif data[:1] == b"s":
        differing_column(data[1:].decode("utf-8", "replace"), LOG_SCHEMA, "fuzzed")
    else:
        in_a_file(data, f"{1:020}.checkpoint.parquet", lambda path: [*read_checkpoint((path,)).files])


@lru_cache
def delta_checkpoints() -> Iterable[bytes]:
    with tempfile.TemporaryDirectory() as folder, tarfile.open(SAMPLES / "lakes" / "whole.tar.gz") as lake:
        lake.extractall(folder, filter="data")
        state = read_table(Path(folder, "whole", "log"))
        write_checkpoint(UnsyncedDisk(), state, removed_since=0)
        made = Path(folder, "whole", "log", "_delta_log")
        (checkpoint,) = made.glob("*.checkpoint.parquet")
        hint = (made / "_last_checkpoint").read_bytes()
        return [checkpoint.read_bytes(), b"h" + hint, b"s" + state.metadata.schema_string.encode()]


def read_document(data: bytes) -> None:
    """What users give in a file: the first byte chooses which."""
    readers = (
        read_plan, read_key, read_reassignment, read_yaml, lambda path: read_logs([str(path)]),
        lambda path: read_audits([str(path)], AUDITED), read_client_config, Outbox,
    )  # fmt: skip
    if data:
        in_a_file(data[1:], "fuzzed", readers[data[0] % len(readers)])


def documents() -> Iterable[bytes]:
    state = b'{"offset":1,"timestamp":null}'
    yield from (
        b'\0{"format":"kraftlake-undo-plan/1","clusterId":"a","now":' + state + b',"to":' + state + b',"topics":[],'
        b'"kinds":[],"assignments":false,"steps":[],"notes":[]}',
        b'\1{"version":1,"key":"' + b"00" * 32 + b'","names":{"a":"b"}}',
        b'\2{"version":1,"partitions":[{"topic":"foo","partition":0,"replicas":[1,2]}]}',
        b"\3spec:\n  topics: [a, {b: 1}]\n---\nkind: KafkaTopic\n",
        b"\4[2026-11-21 07:46:16,256] INFO Principal = User:a is Allowed operation = ALTER_CONFIGS from host = ::1 "
        b"on resource = Topic:LITERAL:a for request = IncrementalAlterConfigs with resourceRefCount = 1 based on rule "
        b"DefaultAllow (kafka.authorizer.logger)\n",
        b'\5{"time":"2026-11-21T07:46:16Z","user":{"name":"a"},"op":"CreateTopics","on":"t","from":["h"]}\n',
        b"\6security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config=org.apache.kafka.common.security.plain."
        b'PlainLoginModule required username="a" password="b";\n',
        b'\7{"version":1,"known":{"c":{}},"queue":[]}',
    )  # fmt: skip


def read_schema(data: bytes) -> None:
    record_type_of(parse_schema(data.decode("utf-8", "replace"), "fuzzed.json"), "fuzzed.json")


def schemas() -> Iterable[bytes]:
    return [path.read_bytes() for path in AUTOMQ.glob("*.json")]


def read_jaas(data: bytes) -> None:
    """An entry, or a file of many after a zero."""
    text = data.decode("utf-8", "replace")
    if text.startswith("\0"):
        parse_jaas_file(text[1:])
    else:
        parse_jaas(text)


def jaas() -> Iterable[bytes]:
    entry = b'org.apache.kafka.common.security.scram.ScramLoginModule required username="a" password="b";'
    return [entry, b"\0KafkaServer {\n" + entry + b"\n};\n// more\nlistener.KafkaServer { a.B optional c=d; };"]


TARGETS = {
    "node_files": Target(read_node_files, FILES, node_files),
    "properties": Target(parse_properties, (ValueError,), lambda: [b"a.b = c\\\n d\n! no\n\\u0041:x"]),
    "documents": Target(read_document, FILES, documents),
    "commits": Target(lambda data: decode_commit(data, 1, "fuzzed", "log"), FILES, commits),
    "checkpoints": Target(read_delta_checkpoint, (*FILES, FileNotFoundError), delta_checkpoints),
    "archives": Target(read_archive, FILES, archives),
    "schemas": Target(read_schema, FILES, schemas),
    "jaas": Target(read_jaas, (ValueError,), jaas),
}  # fmt: skip
