"""Authorizer logs on disk: rotated, compressed, in archives of several nodes, torn, and what is none."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from kraftlake.diagnosis.attribution.log_files import read_logs
from kraftlake.runtime.errors import CorruptDataError, NotASourceError, UsageError
from tests.diagnosis.attribution.sample import LOGS, line, sentence

FIRST, SECOND = line("07:46:16,256"), line("07:46:17,256", "User:b", "DELETE", "Topic:LITERAL:y", "DeleteTopics")
FETCH = line("07:46:15,000", "User:c", "READ", "Topic:LITERAL:z", "Fetch")


def test_rotated_files_are_one_log_and_folders_are_nodes(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "kafka-authorizer.log").write_text(f"{FETCH}\n{SECOND}\n", "utf-8")
    (tmp_path / "a" / "kafka-authorizer.log.2026-11-21-06.gz").write_bytes(gzip.compress(f"{FIRST}\n".encode()))
    (tmp_path / "a" / "kafka-authorizer.log.1").write_text(f"{FIRST}\n", "utf-8")
    nodes = read_logs([str(path) for path in sorted(tmp_path.glob("*/*"))])
    assert [node.name for node in nodes] == [str(tmp_path / one / "kafka-authorizer.log") for one in ("a", "b")]
    assert [[one.principal for one, _ in node.lines] for node in nodes] == [["User:b", "User:a", "User:a"], ["User:b"]]
    assert nodes[0].ends[0].request == "Fetch"
    assert nodes[0].allowed


def test_an_archive_has_the_logs_of_several_nodes(tmp_path: Path) -> None:
    content = {
        "node-1/logs/kafka-authorizer.log": f"{FIRST}\n".encode(),
        "node-2/logs/kafka-authorizer.log": f"{SECOND}\n".encode(),
        "node-2/logs/kafka-authorizer.log.1.gz": gzip.compress(f"{FIRST}\n".encode()),
        "node-2/logs/server.log": f"{FIRST}\n".encode(),
    }
    with tarfile.open(tmp_path / "bundle.tgz", "w:gz") as tar:
        for name, data in content.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    with zipfile.ZipFile(tmp_path / "bundle.zip", "w") as zipped:
        for name, data in content.items():
            zipped.writestr(name, data)
    for path in (tmp_path / "bundle.tgz", tmp_path / "bundle.zip"):
        nodes = read_logs([str(path)])
        assert [node.name for node in nodes] == [f"{path}/node-{one}/logs/kafka-authorizer.log" for one in (1, 2)]
        assert [len(node.lines) for node in nodes] == [1, 2]


def test_torn_lines_are_counted_and_others_read(tmp_path: Path) -> None:
    path = tmp_path / "kafka-authorizer.log"
    path.write_text(f"{FIRST[60:]}\n{FIRST}\n{SECOND[:90]}\n{SECOND}\n{FIRST[:-120]}", "utf-8")
    (node,) = read_logs([str(path)])
    assert [one.principal for one, _ in node.lines] == ["User:a", "User:b"]
    assert node.unreadable.total() == 3


def test_of_a_long_file_the_lines_at_block_ends_are_whole(tmp_path: Path) -> None:
    path = tmp_path / "kafka-authorizer.log"
    path.write_text(f"{FETCH}\n{FIRST}\n" * 15_000, "utf-8")
    assert path.stat().st_size > 4 * 1024 * 1024
    (node,) = read_logs([str(path)])
    assert len(node.lines) == 15_000
    assert not node.unreadable


def test_the_logs_of_the_sample_are_one_nodes() -> None:
    (node,) = read_logs(LOGS)
    assert node.name.endswith("node-1/kafka-authorizer.log")
    assert len(node.lines) == 30


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.log", b"nothing of it\n", "has no line of kafka.authorizer.logger"),
        ("a.log", FIRST[32:].encode(), "have no date and time before the message"),
        ("a.tar.gz", None, "no file with authorizer in its name"),
    ],
)
def test_a_file_without_lines_is_refused(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    path = tmp_path / name
    if content is None:
        with tarfile.open(path, "w:gz") as tar:
            tar.addfile(tarfile.TarInfo("server.log"), io.BytesIO())
    else:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=message):
        read_logs([str(path)])


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotASourceError, match="is a folder: name the files in it"):
        read_logs([str(tmp_path)])
    (tmp_path / "zeros").write_bytes(bytes(17 * 1024 * 1024))
    with pytest.raises(CorruptDataError, match="a line of it has more than"):
        read_logs([str(tmp_path / "zeros")])


def test_one_of_several_nodes_of_a_lake_may_have_decided_nothing(tmp_path: Path) -> None:
    standby, active = tmp_path / "controller-102" / "log.jsonl", tmp_path / "controller-101" / "log.jsonl"
    for file in (standby, active):
        file.parent.mkdir()
    at = '"level": "debug", "timestamp": "2026-11-29T22:47:37.561765Z"}\n'
    standby.write_text('{"controller": 102, "event": "standby", ' + at)
    active.write_text('{"event": "' + sentence() + '", ' + at)
    (node,) = read_logs([str(standby), str(active)])
    assert node.name == str(active)
    with pytest.raises(UsageError, match=r"has no line of kafka\.authorizer\.logger"):
        read_logs([str(standby)])
