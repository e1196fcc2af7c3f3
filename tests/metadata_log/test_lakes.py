"""The lakes that a path, a folder or a pattern names, on a disk and in an object store."""

from __future__ import annotations

import itertools
import os
import shutil
from pathlib import Path

import pytest

from kraftlake.metadata_log.lakes import distinct_names, lakes_at, names_many
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.storage.location import lake_location
from kraftlake.runtime.errors import LakeError, UsageError
from tests.metadata_log.object_store import BUCKET

NAMES = ("eu/a", "eu/b", "eu/.old", "us/a", "x[1]")
_numbers = itertools.count()


@pytest.fixture(params=["disk", pytest.param("store", marks=pytest.mark.xdist_group("object_store"))])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A folder with lakes in it, and what is none."""
    if request.param == "store":
        request.getfixturevalue("server")
        made = f"s3://{BUCKET}/lakes{next(_numbers)}"
    else:
        made = str(tmp_path)
        for name in ("eu", "us", "notes/empty"):
            (tmp_path / name).mkdir(parents=True)
    for name in NAMES:
        MetadataLog.create(f"{made}/{name}")
    return made


def found(root: str, place: str) -> list[str]:
    return [str(lake).removeprefix(f"{root}/") for lake in lakes_at(f"{root}/{place}")]


@pytest.mark.parametrize(
    ("place", "lakes", "many"),
    [
        ("eu/a", ["eu/a"], False),
        ("eu", ["eu/.old", "eu/a", "eu/b"], True),
        ("eu/", ["eu/.old", "eu/a", "eu/b"], True),
        ("eu/*", ["eu/a", "eu/b"], True),
        ("eu/.*", ["eu/.old"], True),
        ("*/a", ["eu/a", "us/a"], True),
        ("[eu]?/[!b]", ["eu/a", "us/a"], True),
        ("?s", ["us/a"], True),
        ("*", ["eu/.old", "eu/a", "eu/b", "us/a", "x[1]"], True),
        ("x[1]", ["x[1]"], False),
    ],
)
def test_a_place_names_itself_what_is_in_it_or_what_matches(
    root: str, place: str, lakes: list[str], many: bool
) -> None:
    assert found(root, place) == lakes
    assert names_many(f"{root}/{place}") == many


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("as/*", "No lake matches .*/as/\\*: `kraftlake import SOURCE LAKE` makes a lake"),
        ("eu/a/*", "No lake matches"),
        ("nowhere", "There is no lake at .*/nowhere;"),
    ],
)
def test_a_place_without_a_lake_is_one_sentence(root: str, place: str, message: str) -> None:
    with pytest.raises(LakeError, match=message):
        lakes_at(f"{root}/{place}")
    assert names_many(f"{root}/{place}") == ("*" in place)


def test_a_folder_without_a_lake_and_one_that_cannot_be_read_are_reported(tmp_path: Path) -> None:
    with pytest.raises(LakeError, match=f"^{tmp_path} is an empty folder: `kraftlake import SOURCE LAKE` makes"):
        lakes_at(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(LakeError, match="file is no lake"):
        lakes_at(tmp_path / "file")
    with pytest.raises(LakeError, match=f"^{tmp_path} is no lake"):
        lakes_at(tmp_path)
    with pytest.raises(UsageError, match="a scheme that holds no lakes"):
        lakes_at("hdfs://x/*")
    if os.geteuid():
        (tmp_path / "closed").mkdir(mode=0)
        with pytest.raises(LakeError, match="closed can't be read: Permission denied"):
            lakes_at(tmp_path / "closed" / "*")


def test_a_damaged_lake_is_a_lake_and_a_link_is_what_it_points_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lakes").mkdir()
    for name in ("a", "b"):
        MetadataLog.create(tmp_path / "lakes" / name)
    (tmp_path / "lakes" / "b" / "snapshots" / "_delta_log").mkdir(parents=True)
    shutil.rmtree(tmp_path / "lakes" / "b" / "log")
    (tmp_path / "current").symlink_to("lakes/a")
    monkeypatch.chdir(tmp_path)
    assert lakes_at("lakes") == [tmp_path / "lakes" / "a", tmp_path / "lakes" / "b"]
    assert lakes_at("*") == lakes_at("lakes")
    assert lakes_at(f"file://{tmp_path}/*/b") == [tmp_path / "lakes" / "b"]


def test_the_name_of_a_lake_is_that_of_its_folder_unless_others_have_the_same() -> None:
    lakes = [lake_location(place) for place in ("/eu/lake", "s3://bucket/lake", "/us/prod")]
    assert distinct_names(lakes) == ["/eu/lake", "s3://bucket/lake", "prod"]
