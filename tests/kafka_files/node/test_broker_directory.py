"""What a log directory of a stopped broker shows."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import tempfile
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.kafka_files.file_names import segment_name
from kraftlake.kafka_files.node.broker_directory import ReplicaLog, read_broker_directory
from kraftlake.records.batch import encode_batch
from kraftlake.records.uuid import Uuid
from kraftlake.runtime.errors import CorruptDataError, NotASourceError, UsageError
from tests.kafka_files.node.made_broker import CLUSTER, data_batch, log_of_epochs, make_broker, write_replica

TOPIC = Uuid((77).to_bytes(16, "big"))
HOME = Uuid((88).to_bytes(16, "big"))


def only_replica(directory: Path) -> ReplicaLog:
    (replica,) = read_broker_directory(directory).replicas
    return replica


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return make_broker(tmp_path / "data", 2, directory_id=HOME, clean_epoch=41)


def test_a_directory_says_whose_it_is_and_how_far_each_log_goes(directory: Path) -> None:
    write_replica(directory, "foo-bar-3", TOPIC, log_of_epochs([0, 0, 2, 5]), epochs=[(0, 0), (2, 2), (5, 3), (6, 4)])
    (directory / "__cluster_metadata-0").mkdir()
    (directory / "gone-0.0123456789abcdef0123456789abcdef-stray").mkdir()
    (directory / "just-made-0").mkdir()
    read = read_broker_directory(directory)
    assert (read.cluster_id, read.node_id, read.directory_id, read.clean_epoch) == (CLUSTER, 2, HOME, 41)
    assert read.metadata_log == directory / "__cluster_metadata-0"
    assert read.replicas == (
        ReplicaLog(topic_id=TOPIC, topic="foo-bar", partition=3, last_epoch=5, end_offset=4, highest_epoch=6),
    )
    assert read.replicas[0].name == "foo-bar-3"


@given(
    epochs=st.lists(st.integers(0, 2), max_size=30).map(lambda steps: list(accumulate(steps))),
    start=st.integers(0, 1000),
    data=st.data(),
)
def test_the_end_is_that_of_the_last_whole_record(epochs: list[int], start: int, data: st.DataObject) -> None:
    """Whatever segments there are, whether the index fits, wherever the last batch is torn."""
    batches = log_of_epochs(epochs, start)
    end = start + len(batches)
    cuts = data.draw(st.lists(st.integers(start, end), max_size=3)) if batches else []
    with tempfile.TemporaryDirectory() as scratch:
        directory = make_broker(Path(scratch, "data"), 1, directory_id=HOME)
        folder = write_replica(directory, "foo-0", TOPIC, batches, cuts=cuts)
        active = max(folder.glob("*.log"))
        content = active.read_bytes()
        size = len(encode_batch(batches[-1])) if content else 0
        if size:
            whole = data.draw(st.integers(0, len(content) // size - 1)) * size
            misfit = data.draw(st.sampled_from([0, 0, 7, 10**6]))
            entries = struct.pack(">ii", 1, whole + misfit) + bytes(data.draw(st.integers(0, 4)) * 8)
            active.with_suffix(".index").write_bytes(entries)
            torn = data.draw(st.integers(0, min(len(content), 2 * size)))
            active.write_bytes(content[: len(content) - torn])
            lost = -(-torn // size)
            end, epochs = end - lost, epochs[: len(epochs) - lost]
        base = int(active.stem)
        found = only_replica(directory)
        assert found.position == (epochs[-1] if epochs else -1, max(end, base) if batches else base)


def test_a_damaged_batch_ends_the_log_as_it_does_for_kafka(directory: Path) -> None:
    folder = write_replica(directory, "foo-0", TOPIC, log_of_epochs([1, 1, 1, 1]))
    file = folder / segment_name(0)
    content = bytearray(file.read_bytes())
    content[2 * len(content) // 4 + 70] ^= 1
    file.write_bytes(content)
    assert only_replica(directory).position == (1, 2)


def test_a_log_whose_records_were_all_deleted_has_the_epoch_of_its_last_one(directory: Path) -> None:
    write_replica(directory, "foo-0", TOPIC, [], cuts=[50], epochs=[(3, 10), (4, 40), (7, 50)])
    (directory / "foo-0" / segment_name(0)).unlink()
    found = only_replica(directory)
    assert (found.position, found.highest_epoch) == ((4, 50), 7)


def test_batches_of_many_records_count_by_their_last_offset(directory: Path) -> None:
    write_replica(directory, "foo-0", TOPIC, [data_batch(0, 1, 10), data_batch(10, 2, 5)])
    assert only_replica(directory).position == (2, 15)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"version":0}', b'{"brokerEpoch":"9"}', b"\xff"])
def test_a_shutdown_file_that_kafka_does_not_understand_is_none(directory: Path, content: bytes) -> None:
    (directory / ".kafka_cleanshutdown").write_bytes(content)
    assert read_broker_directory(directory).clean_epoch is None


def test_what_is_no_log_directory_is_named(tmp_path: Path, directory: Path) -> None:
    with pytest.raises(NotASourceError, match="nowhere does not exist"):
        read_broker_directory(tmp_path / "nowhere")
    with pytest.raises(NotASourceError, match=r"no meta\.properties"):
        read_broker_directory(tmp_path)
    (directory / "meta.properties").write_text("version=1\nnode.id=1\n")
    with pytest.raises(NotASourceError, match=r"no cluster\.id and node\.id|names no cluster\.id"):
        read_broker_directory(directory)


def test_a_partition_that_kafka_does_not_start_with_is_named(directory: Path) -> None:
    write_replica(directory, "foo-0", TOPIC, log_of_epochs([1]))
    (directory / "foo-0" / "leader-epoch-checkpoint").write_text("0\n1\nx y\n")
    with pytest.raises(CorruptDataError, match=r"foo-0: a file there has the line 'x y'"):
        read_broker_directory(directory)


def test_a_directory_of_a_running_node_is_refused(directory: Path) -> None:
    lock = directory / ".lock"
    lock.touch()
    assert read_broker_directory(directory).node_id == 2
    program = (
        f"import fcntl, sys; file = open({os.fspath(lock)!r}, 'r+b'); "
        "fcntl.lockf(file, fcntl.LOCK_EX); print(flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(NotASourceError, match="a node runs on"):
            read_broker_directory(directory)
        holder.communicate()
    assert read_broker_directory(directory).node_id == 2


def test_a_cluster_id_with_a_line_end_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no cluster's id"):
        make_broker(tmp_path / "data", 1, directory_id=HOME, cluster_id="x\nnode.id=2")
