"""A reader finds the way of an append in ten files of `metadata_log` or fewer."""

from __future__ import annotations

import pytest

from benchmarks.record_path import ROOT, run


@pytest.mark.parametrize("way", ["append", "first append", "fenced append", "append after compaction", "group commit"])
def test_an_append_passes_ten_files_at_most(way: str) -> None:
    files = [file for file in run(ROOT, way)["files"] if file.startswith("metadata_log/")]
    assert "metadata_log/append/log_commit.py" in files
    assert len(files) <= 10, files
