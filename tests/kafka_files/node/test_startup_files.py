"""What lies beside a log and keeps a Kafka node from starting."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftlake.kafka_files.node.startup_files import check_node_files
from tests.kafka_files.sample_files import KAFKA_44, SAMPLES, copy_of


@pytest.mark.parametrize("sample", ["kafka-4.4", "crash-torn", "legacy-33"])
def test_what_a_node_has_written_is_sound(sample: str) -> None:
    assert list(check_node_files(SAMPLES / sample / "log" / "__cluster_metadata-0")) == []


@pytest.mark.parametrize(
    "name",
    [
        "copy.log", "00000000000000000000 (1).log", "x.index", ".timeindex", "99999999999999999999.log", "a.txnindex",
        "producers.snapshot", "bootstrap.checkpoint", "newest.checkpoint", "00000000000000000007-000000000x.checkpoint",
        "x.checkpoint.part", "00000000000000000007.checkpoint.deleted",
    ],
)  # fmt: skip
def test_a_name_out_of_which_kafka_can_not_read_an_offset_is_found(name: str, tmp_path: Path) -> None:
    (tmp_path / name).touch()
    assert [found for found, _ in check_node_files(tmp_path)] == [name]


@pytest.mark.parametrize(
    "name",
    [
        "00000000000000000007.log", "00000000000000000007.log.deleted", "x.tmp", "notes.txt", "7.index",
        "00000000000000000007-0000000001.checkpoint", "00000000000000000007-0000000001.checkpoint.deleted",
        "00000000000000000007-0000000001-8231.checkpoint.part",
    ],
)  # fmt: skip
def test_a_file_that_kafka_passes_over_or_has_written_is_no_problem(name: str, tmp_path: Path) -> None:
    (tmp_path / name).touch()
    assert list(check_node_files(tmp_path)) == []


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("leader-epoch-checkpoint", b"1\n0\n", "version '1'"),
        ("leader-epoch-checkpoint", b"0\n2\n1 0\n", "has 1 entries, not 2"),
        ("leader-epoch-checkpoint", b"0\n1\n1 x\n", "no epoch with its start offset"),
        ("leader-epoch-checkpoint", b"0\n1\n-1 0\n", "no epoch with its start offset"),
        ("leader-epoch-checkpoint", b"\xff\xfe", "not UTF-8"),
        ("partition.metadata", b"", "a version and a topic id"),
        ("partition.metadata", b"version: 0\n", "a version and a topic id"),
        ("partition.metadata", b"version: 0\ntopic_id: x", "which is none"),
        ("partition.metadata", b"version: 0\ntopic_id: nANz2uTcTHue83qLIJ1OVA", "another topic's"),
        ("quorum-state", b"", "empty"),
        ("quorum-state", b'{"leaderId":1,"leaderEpoch":1,"votedId":-1}', "not what Kafka writes"),
        ("quorum-state", b'{"leaderId":1,"leaderEpoch":1,"votedId":-1,"data_version":2}', "not what Kafka writes"),
    ],
)
def test_a_file_that_kafka_can_not_read_is_found(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    folder = copy_of(KAFKA_44, tmp_path)
    (folder / name).write_bytes(content)
    ((found, said),) = check_node_files(folder)
    assert found == name
    assert message in said
    assert said.endswith("Kafka does not start with it")


def test_an_empty_list_of_epochs_is_one(tmp_path: Path) -> None:
    for content in (b"", b"0\n", b"0\n0\n"):
        (tmp_path / "leader-epoch-checkpoint").write_bytes(content)
        assert list(check_node_files(tmp_path)) == []
