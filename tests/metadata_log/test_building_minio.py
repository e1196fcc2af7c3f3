from __future__ import annotations

from pathlib import Path

import pytest

from tests.metadata_log.object_store import build_minio


def shell(script: str) -> list[str]:
    return ["sh", "-c", script]


def test_a_server_that_was_built_lies_in_the_cache_and_nothing_else(tmp_path: Path) -> None:
    assert build_minio(shell('echo whole > "$GOBIN/minio"'), tmp_path / "cache").read_text() == "whole\n"
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["minio"]


@pytest.mark.parametrize(
    ("script", "seconds", "reason"),
    [
        ('echo ha > "$GOBIN/minio"; echo no such module >&2; exit 1', 60, "no such module"),
        ('echo ha > "$GOBIN/minio"; exec sleep 60', 0.2, "timed out after"),
        ("true", 60, "No such file"),
    ],
)
def test_a_build_that_did_not_end_well_leaves_nothing_that_could_be_run(
    tmp_path: Path, script: str, seconds: float, reason: str
) -> None:
    with pytest.raises(RuntimeError, match=f"(?s)Building MinIO by .* failed.*{reason}"):
        build_minio(shell(script), tmp_path / "cache", seconds)
    assert list((tmp_path / "cache").iterdir()) == []
