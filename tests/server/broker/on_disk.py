"""What replicas are on their brokers' disks, and what Kafka's dump tool makes of the files."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path

import attrs

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.kafka_files.node.partition_files import LEADER_EPOCHS, parse_leader_epochs, parse_offsets
from kraftlake.replica_manager.logs.disk.log_directory import HIGH_WATERMARKS, LOG_STARTS
from kraftlake.replica_manager.logs.disk.producer_snapshots import decode_snapshot
from kraftlake.replica_manager.logs.producer_state import ProducerState
from tests.server.broker.cluster import Cluster

_DUMP = "org.apache.kafka.tools.DumpLogSegments"
_BAD = re.compile(r"isvalid: false|[Mm]ismatch|invalid bytes|out of order|[Cc]orrupt|Exception|Could not|Misplaced")
_RECORD = re.compile(r"^\| offset: (\d+) .* key: (\S+) payload: (\S+)$", re.MULTILINE)


def folder_of(directories: Sequence[Path], name: TopicPartition) -> Path | None:
    """The folder of a replica, in one of its broker's directories; None where it has none."""
    found = [folder for one in directories if (folder := one / str(name)).is_dir()]
    assert len(found) <= 1, found
    return found[0] if found else None


def segments_of(directories: Sequence[Path], name: TopicPartition) -> list[Path]:
    """The .log files of a replica, the oldest first."""
    folder = folder_of(directories, name)
    return [] if folder is None else sorted(folder.glob("*.log"))


def bytes_of(directories: Sequence[Path], name: TopicPartition) -> bytes:
    """The batches of a replica, as they are in its segments one after the other."""
    try:
        return b"".join(segment.read_bytes() for segment in segments_of(directories, name))
    except FileNotFoundError:
        return b""  # a segment was just deleted


def aborted_of(directories: Sequence[Path], name: TopicPartition) -> bytes:
    """The entries of a replica's .txnindex files one after the other."""
    files = [segment.with_suffix(".txnindex") for segment in segments_of(directories, name)]
    return b"".join(file.read_bytes() for file in files if file.exists())


@attrs.frozen(kw_only=True)
class ReplicaState:
    """What a broker that was stopped has written down of a replica, besides its segments."""

    high_watermark: int
    log_start_offset: int
    epochs: tuple[tuple[int, int], ...]
    producers: tuple[ProducerState, ...]
    """By the newest snapshot, in the order of their ids."""


def state_of(directories: Sequence[Path], name: TopicPartition) -> ReplicaState:
    folder = folder_of(directories, name)
    assert folder is not None, name
    snapshots = sorted(folder.glob("*.snapshot"))
    states = decode_snapshot(snapshots[-1].read_bytes()) if snapshots else []
    return ReplicaState(
        high_watermark=checkpoint(directories, HIGH_WATERMARKS).get(name, -1),
        log_start_offset=checkpoint(directories, LOG_STARTS).get(name, 0),
        epochs=parse_leader_epochs((folder / LEADER_EPOCHS).read_bytes()),
        producers=tuple(sorted(states, key=lambda state: state.producer_id)),
    )


def checkpoint(directories: Sequence[Path], file: str) -> dict[TopicPartition, int]:
    """The offsets in a checkpoint of all directories."""
    rows = [row for one in directories if (one / file).exists() for row in parse_offsets((one / file).read_bytes())]
    return {TopicPartition(topic, number): offset for topic, number, offset in rows}


def check_with_kafka(cluster: Cluster, directories: Sequence[Path], names: Collection[TopicPartition]) -> None:
    """Kafka's dump tool finds each file of these replicas valid; none of them is written to meanwhile."""
    files = []
    for name in names:
        folder = folder_of(directories, name)
        assert folder is not None, name
        files += [path for path in sorted(folder.iterdir()) if re.fullmatch(r"\d{20}\.\w+", path.name)]
    assert {".log", ".index", ".timeindex", ".snapshot"} <= {path.suffix for path in files}
    for way in ("--index-sanity-check", "--verify-index-only"):
        said = cluster.tool(_DUMP, "--files", ",".join(map(str, files)), way)
        bad = [line for line in said.splitlines() if _BAD.search(line)]
        assert not bad, bad[:10]
        assert said.count("Dumping ") == len(files), "each file was looked at"
        assert said.count("isvalid: true") > len(names)
        if way == "--index-sanity-check":
            indexes = sum(path.suffix in (".index", ".timeindex") for path in files)
            assert said.count("passed sanity check") + said.count("index is empty") == indexes


def newest_values(
    cluster: Cluster, directories: Sequence[Path], name: TopicPartition
) -> tuple[dict[str, tuple[int, str]], int]:
    """The newest offset and value of each key in a replica by Kafka's dump tool, and the number of its records."""
    files = ",".join(map(str, segments_of(directories, name)))
    records = _RECORD.findall(cluster.tool(_DUMP, "--files", files, "--print-data-log"))
    assert [int(offset) for offset, _, _ in records] == sorted({int(offset) for offset, _, _ in records})
    return {key: (int(offset), value) for offset, key, value in records}, len(records)
