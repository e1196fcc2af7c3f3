"""Checks that tables fit the log from which they are made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kraftlake.replay.reading.replay_base import has_beginning, oldest_snapshot
from kraftlake.runtime.errors import LakeError, OffsetError
from kraftlake.tables.changes_writer import ChangesWriter

if TYPE_CHECKING:
    from kraftlake.replay.reading.open_reader import LakeReader, LogReader
    from kraftlake.tables.table_writer import TableWriter


def covered_by(reader: LakeReader, writers: Sequence[TableWriter]) -> dict[str, int | None]:
    """The last offset that each table covers, by name, None for nothing.

    Raises LakeError if a table covers an offset past the log's end, or is of another release; OffsetError if the log
    was trimmed past one.
    """
    covers = {}
    for writer in writers:
        name, offset = writer.description.name, writer.table(reader.log.path).last_offset()
        covers[name] = offset
        if offset is None:
            continue
        if offset >= reader.end_offset:
            raise LakeError(not_of_log(name, reader, offset))
        begins = reader.start_offset
        if isinstance(writer, ChangesWriter) and not has_beginning(reader):
            begins = oldest_snapshot(reader).end_offset
        if offset + 1 < begins:
            raise OffsetError(trimmed_past(writer, reader, offset))
    return covers


def not_of_log(table: str, reader: LogReader, covered: int) -> str:
    """The message for a table that covers an offset past the end of the log, with the way out."""
    return (
        f"{table}/ of {reader.name} holds offsets up to {covered}, but the log ends before {reader.end_offset}: the "
        f"table is of another log, delete {table}/ and run again"
    )


def trimmed_past(writer: TableWriter, reader: LogReader, covered: int) -> str:
    """The message for a table that covers an offset after which the log was trimmed, with the way out."""
    table = writer.description.name
    begins = "the oldest snapshot" if isinstance(writer, ChangesWriter) else f"offset {reader.start_offset}"
    return (
        f"{table}/ of {reader.name} ends at offset {covered}, and the log that followed was trimmed: delete the folder "
        f"{table}/ and run again, it then begins with {begins}"
    )
