"""Bundles as they come: nested folders, several nodes, compressed files, stdin."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import kraftlake
from kraftlake.replay.queries.quorum_report import describe_quorum
from tests.cli.running import DIRECTORY, ROOT, TORN, fault, run, run_json


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders of three controllers, as copies of their pods' volumes: two of one cluster have the same log."""
    folder = tmp_path_factory.mktemp("bundle")
    for node in (3000, 3001, 3002):
        data = folder / "kafka" / f"controller-{node - 3000}" / "var" / "lib" / "data"
        shutil.copytree(DIRECTORY, data / DIRECTORY.name)
        properties = (DIRECTORY.parent / "meta.properties").read_text().replace("node.id=3000", f"node.id={node}")
        (data / "meta.properties").write_text(properties)
        (data / "foo-0").mkdir()
    (folder / "kafka" / "pods.txt").write_text("3 pods")
    (folder / "kafka/controller-2/var/lib/data" / DIRECTORY.name / f"{5488:020d}.log").unlink()
    return folder


@pytest.fixture(scope="module")
def archive(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("archive") / "bundle.tar.xz"
    with tarfile.open(path, "w:xz", preset=0) as tar:
        tar.add(bundle, "bundle")
    return path


def from_stdin(source: Path, *words: object) -> subprocess.CompletedProcess[str]:
    with source.open("rb") as stream:
        return subprocess.run(
            [sys.executable, "-m", "kraftlake.cli", *map(str, words)],
            cwd=ROOT, stdin=stream, capture_output=True, text=True, check=False,
        )  # fmt: skip


def test_a_folder_is_searched_for_its_only_metadata_directory(bundle: Path) -> None:
    one = bundle / "kafka" / "controller-0"
    assert run_json("image", one) == run_json("image", DIRECTORY)
    assert kraftlake.open(one).kind.name == "DIRECTORY"
    assert run("verify", one).stdout == run("verify", DIRECTORY).stdout


def test_of_several_nodes_one_is_chosen_and_all_are_named(bundle: Path, archive: Path) -> None:
    for source in (bundle, archive):
        sentence = fault("image", source)
        assert "holds 3 metadata directories (node 3000 in " in sentence
        assert sentence.endswith("choose one with --node ID")
        assert "holds no metadata log of node 9: there is node 3000 in " in fault("image", source, "--node", 9)
        assert run_json("image", source, "--node", 3001) == run_json("image", DIRECTORY)
        assert kraftlake.open(source, node=3002).end_offset == 5488
    assert "'x' is not a node's id" in fault("image", bundle, "--node", "x", code=2)


def test_a_folder_that_has_another_name_is_found_by_its_files(tmp_path: Path) -> None:
    shutil.copytree(DIRECTORY, tmp_path / "a" / "raft")
    (tmp_path / "a" / "foo-0").mkdir()
    assert run_json("image", tmp_path)["offset"] == 5736


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "link").symlink_to(DIRECTORY.parent)
    (tmp_path / "a" / "again").symlink_to(tmp_path)
    assert "is a folder without segments" in fault("image", tmp_path)


def test_archives_in_a_folder_are_the_logs_of_their_nodes(bundle: Path, archive: Path, tmp_path: Path) -> None:
    shutil.copy(archive, tmp_path / "all.tar.xz")
    assert run_json("image", tmp_path, "--node", 3001) == run_json("image", DIRECTORY)
    sentence = fault("image", tmp_path)
    assert f"holds 3 metadata directories (node 3000 in {tmp_path}/all.tar.xz/bundle/kafka/controller-0/" in sentence
    assert sentence.endswith("choose one with --node ID")
    nodes = describe_quorum(tmp_path).to_json()["nodes"]
    assert [one["nodeId"] for one in nodes] == [3000, 3001, 3002]
    commands = {one["command"] for one in json.loads(run("doctor", tmp_path, "--json", code=3).stdout)["findings"]}
    assert f"kraftlake image {tmp_path}/all.tar.xz --node 3000 --unavailable-partitions" in commands
    shutil.copytree(bundle / "kafka" / "controller-2", tmp_path / "unpacked")
    assert run_json("image", tmp_path)["offset"] == 5487, "an archive beside a metadata directory is not searched"


def test_doctor_reads_stdin_as_often_as_it_has_to(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "x.tar.gz", "w:gz") as tar:
        tar.add(TORN, TORN.name)
    read = from_stdin(tmp_path / "x.tar.gz", "doctor", "-", "--json")
    expected = run("doctor", tmp_path / "x.tar.gz", "--json", code=read.returncode).stdout
    assert json.loads(expected)["findings"]
    assert json.loads(read.stdout) == json.loads(expected.replace(str(tmp_path / "x.tar.gz"), "-"))


def test_a_folder_of_what_is_only_named_as_archives_names_one(tmp_path: Path) -> None:
    (tmp_path / "node-1.tar.zst").write_bytes(b"")
    assert f"is a folder of archives, not of logs: name one, {tmp_path / 'node-1.tar.zst'}" in fault("image", tmp_path)


def test_a_lake_has_no_nodes(tmp_path: Path) -> None:
    run("import", DIRECTORY, tmp_path / "lake")
    assert "is a lake, which has one log" in fault("image", tmp_path / "lake", "--node", 1, code=2)


def test_a_quorum_is_that_of_all_nodes_in_a_bundle(bundle: Path, archive: Path) -> None:
    reports = [describe_quorum(source).to_json() for source in (bundle, archive)]
    for report in reports:
        nodes = [(one["nodeId"], one["role"], one["endOffset"], one["leaderId"]) for one in report["nodes"]]
        assert nodes == [(3000, "voter", 5737, 3000), (3001, "observer", 5737, 3000), (3002, "observer", 5488, 3000)]
        assert report["electable"] == [3000]
    for one in (one for report in reports for one in report["nodes"]):
        assert "controller-" in one.pop("source")
    assert reports[0] == reports[1]
    drawn = run("quorum", archive).stdout
    assert " 3000  CONTROLLER://127.0.0.1:19180\n" in drawn


def test_a_broken_log_among_others_is_the_fault_of_its_node_alone(bundle: Path, tmp_path: Path) -> None:
    shutil.copytree(bundle, tmp_path / "b")
    broken = tmp_path / "b/kafka/controller-1/var/lib/data" / DIRECTORY.name
    (broken / f"{0:020d}.log").write_bytes(b"nothing of a log" * 10)
    report = describe_quorum(tmp_path / "b").to_json()
    assert [one["fault"] is None for one in report["nodes"]] == [True, False, True]


def test_stdin_is_an_archive_a_segment_or_a_snapshot(archive: Path, tmp_path: Path) -> None:
    read = from_stdin(archive, "image", "-", "--node", 3000, "--json")
    assert json.loads(read.stdout) == run_json("image", DIRECTORY)
    segment = DIRECTORY / f"{0:020d}.log"
    assert from_stdin(segment, "log", "-", "--json").stdout == run("log", segment, "--json").stdout
    packed = tmp_path / "x"
    packed.write_bytes(gzip.compress(segment.read_bytes()))
    assert from_stdin(packed, "log", "-", "--json").stdout == run("log", segment, "--json").stdout
    assert len(json.loads(from_stdin(archive, "quorum", "-", "--json").stdout)["nodes"]) == 3
    errors = from_stdin(archive, "image", "-").stderr
    assert errors.startswith("error: stdin holds 3 metadata directories (node 3000 in bundle/kafka/controller-0/")
    packed.write_text("hello")
    assert (
        from_stdin(packed, "image", "-").stderr
        == "error: stdin is a file of 5 bytes, fewer than a record batch takes\n"
    )
    assert from_stdin(Path("/dev/null"), "image", "-").stderr == "error: stdin is an empty file\n"
