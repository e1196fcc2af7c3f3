"""Controlled lakes, made and opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftlake.controller.quorum.bootstrap import format_lake, open_controlled
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.runtime.errors import LakeError


def test_a_lake_that_was_formatted_is_opened(tmp_path: Path) -> None:
    made = format_lake(str(tmp_path / "lake"))
    assert open_controlled(str(tmp_path / "lake")).cluster_id == made.cluster_id


@pytest.mark.parametrize("found", ["nothing", "an empty folder", "a file", "a lake that was begun"])
def test_where_there_is_no_lake_the_sentence_names_what_makes_a_controlled_one(tmp_path: Path, found: str) -> None:
    lake = tmp_path / "lake"
    if found == "an empty folder":
        lake.mkdir()
    elif found == "a file":
        lake.write_text("no lake")
    elif found == "a lake that was begun":
        MetadataLog.create(lake)
        for commit in (lake / "log" / "_delta_log").iterdir():
            commit.unlink()
    with pytest.raises(LakeError, match=f"`kraftlake format {lake}`"):
        open_controlled(str(lake))


def test_an_imported_lake_is_refused_with_what_makes_a_copy(tmp_path: Path) -> None:
    lake = MetadataLog.create(tmp_path / "lake").path
    with pytest.raises(LakeError, match=rf"is an imported lake.*`kraftlake fork {lake} COPY`"):
        open_controlled(str(lake))
