"""The table `undo/`: rows of changes alone, in their order, also after a run that was ended."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from kraftlake.metadata_log.log import MetadataLog
from kraftlake.runtime.errors import LakeError
from kraftlake.tables.table_locks import hold_tables
from kraftlake.tables.undo_table import UNDO, UndoTable

STEP = {"action": "create-acl", "class": "access", "path": "acl/User:a", "changes": [{"field": "acl"}]}


def line(event: str, number: int, **more: str) -> dict:
    return {"time": 1_700_000_000_000 + number, "event": event, "number": number, "step": STEP} | more


def test_each_request_and_answer_is_a_row(tmp_path: Path) -> None:
    MetadataLog.create(tmp_path, cluster_id="cluster-of-the-tests-1")
    table = UndoTable(tmp_path, 7)
    table.add(line("validate", 1))
    table.add(line("answer", 1, of="validate", error="NONE"))
    assert not (tmp_path / UNDO.name).exists()
    table.add(line("send", 1))
    table.add(line("answer", 1, of="send", error="NONE"))
    table.add(line("read back", 1))
    later = UndoTable(tmp_path, 9)
    later.add(line("no answer", 2, error="gone"))
    later.finish()
    rows = DeltaTable(str(tmp_path / UNDO.name)).to_pyarrow_table().sort_by("offset").to_pylist()
    assert [(row["offset"], row["to_offset"], row["event"], row["step"], row["error"]) for row in rows] == [
        (0, 7, "send", 1, None), (1, 7, "answer", 1, "NONE"), (2, 9, "no answer", 2, "gone"),
    ]  # fmt: skip
    assert {row["cluster_id"] for row in rows} == {"cluster-of-the-tests-1"}
    assert (rows[0]["class"], rows[0]["action"], rows[0]["changes"]) == ("access", "create-acl", '[{"field": "acl"}]')
    assert rows[0]["timestamp"].timestamp() == 1_700_000_000.001


def test_two_at_once_are_refused(tmp_path: Path) -> None:
    MetadataLog.create(tmp_path)
    with (
        hold_tables(tmp_path, [UNDO.name]),
        pytest.raises(LakeError, match="another run writes undo/"),
        hold_tables(tmp_path, [UNDO.name]),
    ):
        pass
