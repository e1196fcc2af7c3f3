"""A broker's folders compared with the image."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kraftlake.image.topics.directory_id import LOST
from kraftlake.records import metadata_records as r
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.logs.log_dirs import compare_log_dirs
from kraftlake.runtime.errors import NotASourceError
from tests.replica_manager.brokers import BAR, D1, D2, FOO, change, partition, started, topic


def log_dir(path: Path, id_: Uuid | None, **folders: Uuid | None) -> Path:
    path.mkdir()
    if id_ is not None:
        (path / "meta.properties").write_text(f"version=1\ncluster.id=x\ndirectory.id={id_}\nnode.id=1\n")
    for name, topic_id in folders.items():
        folder = path / re.sub("(?<=.)__", "-", name).replace("_DOT_", ".")
        folder.mkdir()
        if topic_id is not None:
            (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")
    return path


@pytest.fixture
def image():
    me = started(
        topic(), partition(0, leader=1), partition(1, leader=2), partition(2, leader=2, replicas=(2, 3)),
        partition(3, leader=1, directories=(D2, D1, D1)),
    )  # fmt: skip
    return me.view.image


def test_folders_that_agree_with_the_image_are_counted(image, tmp_path):
    paths = [log_dir(tmp_path / "a", D1, foo__0=FOO, foo__1=FOO), log_dir(tmp_path / "b", D2, foo__3=FOO)]
    report = compare_log_dirs(image, 1, paths)
    assert report.matching == 3
    assert report.directories == {str(paths[0]): D1, str(paths[1]): D2}
    assert not report.missing + report.strays + report.misplaced


def test_missing_folders_are_named_with_the_directory_they_should_lie_in(image, tmp_path):
    report = compare_log_dirs(image, 1, [log_dir(tmp_path / "a", D1, foo__1=FOO)])
    assert [(f.partition, f.expected, f.reason) for f in report.missing] == [
        ("foo-0", str(D1), "the directory that it should lie in has no folder for it"),
        ("foo-3", str(D2), f"it should lie in directory {D2}, which was not given"),
    ]


def test_a_folder_in_another_directory_is_misplaced(image, tmp_path):
    report = compare_log_dirs(image, 1, [log_dir(tmp_path / "a", D1, foo__0=FOO, foo__1=FOO, foo__3=FOO)])
    (finding,) = report.misplaced
    assert (finding.partition, finding.expected) == ("foo-3", str(D2))
    assert finding.reason == f"it lies in directory {D1}, and the image says {D2}"


def test_strays_follow_from_name_replicas_and_topic_id(image, tmp_path):
    path = log_dir(tmp_path / "a", None, foo__0=BAR, foo__2=FOO, foo__9=None, bar__0=None, foo__1=FOO)
    report = compare_log_dirs(image, 1, [path])
    assert {f.partition: f.reason for f in report.strays} == {
        "foo-0": f"the topic with id {BAR} does not exist; the topic of that name has the id {FOO}",
        "foo-2": "the replicas are on brokers 2, 3",
        "foo-9": "the topic has 4 partitions",
        "bar-0": "there is no such topic",
    }
    assert [f.partition for f in report.missing] == ["foo-0", "foo-3"]


def test_future_logs_and_deleted_folders_are_no_findings(image, tmp_path):
    mark = "0123456789abcdef0123456789abcdef"
    path = log_dir(
        tmp_path / "a", D1, **{f"foo__0_DOT_{mark}__future": FOO, f"bar__7_DOT_{mark}__delete": BAR}, foo__0=FOO
    )
    report = compare_log_dirs(image, 1, [path])
    assert [Path(p).name for p in report.moving] == [f"foo-0.{mark}-future"]
    assert [Path(p).name for p in report.deleted] == [f"bar-7.{mark}-delete"]
    assert not report.strays


def test_folders_of_no_partition_are_ignored(image, tmp_path):
    path = log_dir(tmp_path / "a", D1, __cluster_metadata__0=None, lost=None, foo__0=FOO)
    (path / "foo-1").symlink_to(path / "foo-0")
    assert compare_log_dirs(image, 1, [path]).strays == ()


def test_a_lost_directory_is_why_a_folder_is_missing(tmp_path):
    me = started(topic(), partition(0, leader=1), change(0, directories=(LOST, D1, D1)))
    (missing,) = compare_log_dirs(me.view.image, 1, [log_dir(tmp_path / "a", D1)]).missing
    assert (missing.expected, missing.reason) == (None, "its directory is lost")


def test_a_comparison_changes_no_folder(image, tmp_path):
    path = log_dir(tmp_path / "a", D1, foo__9=None, foo__0=BAR)
    before = {p: p.stat().st_mtime_ns for p in path.rglob("*")}
    compare_log_dirs(image, 1, [path])
    assert {p: p.stat().st_mtime_ns for p in path.rglob("*")} == before


def test_a_path_that_is_no_folder_is_refused(image, tmp_path):
    with pytest.raises(NotASourceError, match="no such folder"):
        compare_log_dirs(image, 1, [tmp_path / "nowhere"])


def test_folders_of_a_deleted_topic_are_strays(tmp_path):
    me = started(topic(), partition(0, leader=1))
    me.hear(r.RemoveTopicRecord(topic_id=FOO))
    (stray,) = compare_log_dirs(me.view.image, 1, [log_dir(tmp_path / "a", D1, foo__0=FOO)]).strays
    assert stray.reason == f"the topic with id {FOO} does not exist"
