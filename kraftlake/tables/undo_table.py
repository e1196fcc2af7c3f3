"""The Delta table `undo/`: what `kraftlake undo --apply` has asked of the cluster of a lake, and its answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from kraftlake.metadata_log.storage.location import Location
from kraftlake.tables.lake_table import LakeTable, TableDescription

UNDO: Final = TableDescription(
    "undo",
    "What `kraftlake undo --apply` has asked of the cluster, and what it answered; without secrets. Made by that "
    "command alone, where LAKE is its source.",
    (
        (pa.field("offset", pa.int64(), nullable=False), "the number of the row, from 0; no offset of the log"),
        (pa.field("timestamp", pa.timestamp("us", "UTC"), nullable=False), "the time by the clock of the command"),
        (pa.field("to_offset", pa.int64(), nullable=False), "the offset whose state is brought back"),
        (pa.field("event", pa.string(), nullable=False), "send, before a request; answer; no answer, where none came"),
        (pa.field("step", pa.int32(), nullable=False), "the number of the step in its plan"),
        (pa.field("class", pa.string(), nullable=False), "its class: safe, access, destructive or partial"),
        (pa.field("action", pa.string(), nullable=False), "its request, such as create-acl"),
        (pa.field("path", pa.string(), nullable=False), "what it changes, such as topic/orders"),
        (pa.field("changes", pa.string(), nullable=False), "JSON: its fields with the values before and after"),
        (pa.field("error", pa.string()), "the error that was answered, NONE for none; null for a request"),
        (pa.field("message", pa.string()), "the message of the answer, if it has one"),
    ),
)
_EVENTS: Final = ("send", "answer", "no answer")


class UndoTable(LakeTable):
    """The table of a lake, for one run of the command; it is made with its first row."""

    follows_log = False

    def __init__(self, lake: Location, to_offset: int) -> None:
        super().__init__(UNDO, lake)
        self._to_offset = to_offset

    def add(self, line: Mapping[str, Any]) -> None:
        """Add a line of the journal, unless a request was only validated. Raises LakeError where that is refused."""
        if line["event"] not in _EVENTS or line.get("of") == "validate":
            return
        if self._held is None:
            self.last_offset()
            self.create("")
        step, number = line["step"], -1 if self.covered is None else self.covered
        row = {
            "offset": number + 1,
            "timestamp": line["time"] * 1000,
            "to_offset": self._to_offset,
            "event": line["event"],
            "step": line["number"],
            **{name: step[name] for name in ("class", "action", "path")},
            "changes": json.dumps(step["changes"]),
            "error": line.get("error"),
            "message": line.get("message"),
        }
        self.append(pa.Table.from_pylist([row], self.description.schema), number + 1)

    @property
    def _way_out(self) -> str:
        return f"move the folder {self.name}/ away, its rows are those of the journals of undo"
