"""States of shards that do not fit are made anew: no manifest is read whose files are not all there and whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from kraftlake.image.features_image import FeaturesImage
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.records.metadata_version import from_feature_level
from kraftlake.replay.log.delta_chunk import ReplayState
from kraftlake.tables.shards.state_files import (
    StateManifest,
    read_manifest,
    read_state,
    write_manifest,
    write_state,
)

LOG, TABLE = "log-1", "partition_history"
IMAGE = attrs.evolve(MetadataImage.EMPTY, features=FeaturesImage(metadata_version=from_feature_level(20)))


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    shards = tuple(write_state(tmp_path, f"{TABLE}/7-{shard}", ReplayState()) for shard in range(2))
    driver = write_state(tmp_path, f"{TABLE}/7-driver", ReplayState(image=IMAGE))
    manifest = StateManifest(log_id=LOG, offset=7, files=(*shards, driver), knows_since=True)
    write_manifest(tmp_path, TABLE, manifest)
    return tmp_path


def folder(lake: Path) -> Path:
    return lake / "_spark" / "state" / TABLE


def test_a_manifest_and_its_files_are_read_as_they_were_written(lake: Path) -> None:
    manifest = read_manifest(lake, TABLE, LOG)
    assert manifest is not None
    assert (manifest.offset, manifest.knows_since, len(manifest.files)) == (7, True, 3)
    assert read_state(lake, manifest.files[1]).image.is_empty()
    assert read_state(lake, manifest.files[2]).image.features == IMAGE.features


def test_a_manifest_of_another_log_does_not_fit(lake: Path) -> None:
    assert read_manifest(lake, TABLE, "log-2") is None
    assert read_manifest(lake, "events", LOG) is None


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("damage", ["missing", "torn", "changed", "a folder"])
def test_a_manifest_of_files_that_are_not_whole_does_not_fit(lake: Path, number: int, damage: str) -> None:
    path = sorted(folder(lake).glob("*.arrow"))[number]
    content = path.read_bytes()
    path.unlink()
    match damage:
        case "torn":
            path.write_bytes(content[:-9])
        case "changed":
            path.write_bytes(content[:99] + bytes([content[99] ^ 1]) + content[100:])
        case "a folder":
            path.mkdir()
    assert read_manifest(lake, TABLE, LOG) is None


def moved(form: dict[str, Any], name: str) -> dict[str, Any]:
    return form | {"files": [*form["files"][:2], form["files"][2] | {"name": name}]}


@pytest.mark.parametrize(
    "changed",
    [
        lambda _: None,
        lambda _: "text",
        lambda _: [],
        lambda _: {},
        lambda form: form | {"format": "kraftlake shards 2"},
        lambda form: form | {"more": 1},
        lambda form: form | {"offset": "7"},
        lambda form: form | {"files": 3},
        lambda form: form | {"files": [5]},
        lambda form: form | {"files": [{"name": 5, "checksum": 1}]},
        lambda form: form | {"files": [form["files"][0] | {"checksum": "1"}]},
        lambda form: moved(form, "/etc/hostname"),
        lambda form: moved(form, f"{TABLE}/../{form['files'][2]['name']}"),
        lambda form: moved(form, f"../state/{form['files'][2]['name']}"),
        lambda form: moved(form, TABLE),
    ],
)
def test_a_manifest_of_another_shape_or_place_does_not_fit(lake: Path, changed: Callable[[Any], Any]) -> None:
    path = folder(lake) / "manifest.json"
    path.write_text(json.dumps(changed(json.loads(path.read_text()))))
    assert read_manifest(lake, TABLE, LOG) is None


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[" * 5000], ids=["empty", "cut", "no text", "deep"])
def test_a_torn_manifest_does_not_fit(lake: Path, content: bytes) -> None:
    (folder(lake) / "manifest.json").write_bytes(content)
    assert read_manifest(lake, TABLE, LOG) is None


def test_what_a_manifest_does_not_name_is_deleted_with_the_next(lake: Path) -> None:
    manifest = read_manifest(lake, TABLE, LOG)
    assert manifest is not None
    write_manifest(lake, TABLE, attrs.evolve(manifest, files=manifest.files[:2]))
    assert len([*folder(lake).iterdir()]) == 3
