"""A Delta table of a lake that is derived from its log: its columns, the offset that it covers, exactly-once appends.

An append and the offset that the table covers afterwards are one commit (Delta's txn action): a restarted writer
continues from there, even if its stream's checkpoint is lost. Rows are written by pyarrow and committed by the log's
own writer: put-if-absent and durable, in milliseconds and without a JVM. Spark and delta-rs read them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import attrs
import pyarrow as pa

from kraftlake.metadata_log.delta_table.actions import AddFile, transaction
from kraftlake.metadata_log.delta_table.commit import (
    CommitConflictError,
    append_info,
    commit_beside_writers,
    commit_info,
    create_table,
    now_ms,
)
from kraftlake.metadata_log.delta_table.data_files import open_parquet_file
from kraftlake.metadata_log.delta_table.delta_log import NotADeltaTableError, read_table
from kraftlake.metadata_log.delta_table.row_files import EncodedFile, RowFile, rewrite_row_file, write_row_file
from kraftlake.metadata_log.delta_table.schema import COMMENT, differing_column, extended_schema
from kraftlake.metadata_log.delta_table.table_state import TableState
from kraftlake.metadata_log.maintenance.checkpointing import checkpoint_if_due, clean_up_commits
from kraftlake.metadata_log.maintenance.compaction import compact_rows
from kraftlake.metadata_log.maintenance.derived_tables import APPEND_ONLY, SOURCE_LOG, app_id_of, made_anew
from kraftlake.metadata_log.maintenance.trimming import set_properties
from kraftlake.metadata_log.maintenance.upkeep_policy import UpkeepPolicy
from kraftlake.metadata_log.maintenance.vacuum import vacuum
from kraftlake.metadata_log.storage.disk import disk_for
from kraftlake.metadata_log.storage.location import Location, size_of
from kraftlake.runtime.errors import CorruptDataError, LakeError
from kraftlake.tables.cluster_id import (
    CLUSTER_ID_COLUMN,
    CLUSTER_ID_FIELD,
    cluster_id_of,
    has_cluster_id,
    with_cluster_id,
)
from kraftlake.tables.encoded_schema import encoded
from kraftlake.tables.lazy_table import LazyTable
from kraftlake.tables.parquet_stream import ParquetStream

if TYPE_CHECKING:
    import pyarrow.parquet as pq


@attrs.frozen
class TableDescription:
    """A table's name, which is its folder in a lake, a comment on its content, and its columns with their meanings.

    The first column is `offset`: the last offset of what a row describes; rows are appended in its order. `unlike` are
    columns of strings that seldom repeat. The table itself also has `cluster_id`, which a writer of rows leaves out.
    """

    name: str
    comment: str
    columns: tuple[tuple[pa.Field, str], ...]
    unlike: tuple[str, ...] = ()

    @property
    def app_id(self) -> str:
        """The txnAppId of the table's writer; its txnVersion is the last offset that the table covers."""
        return app_id_of(self.name)

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the rows."""
        return pa.schema([field for field, _ in self.columns])

    @property
    def encoded_schema(self) -> pa.Schema:
        """The schema with strings as dictionaries, except `unlike`; readers of the files see strings."""
        return encoded(self.schema, self.unlike)

    @property
    def table_columns(self) -> tuple[tuple[pa.Field, str], ...]:
        """The columns of the table, `cluster_id` last, with their meanings."""
        return (*self.columns, CLUSTER_ID_COLUMN)

    @property
    def table_schema(self) -> pa.Schema:
        """The Arrow schema of the table, each column's meaning as a comment in its metadata."""
        return pa.schema([field.with_metadata({COMMENT: comment.encode()}) for field, comment in self.table_columns])

    @property
    def statistics_columns(self) -> tuple[str, ...]:
        """The columns whose smallest and largest values are in each file's statistics, so that readers skip files."""
        return tuple(field.name for field in self.schema if _is_ordered(field.type))


def _is_ordered(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_timestamp(kind))


class LakeTable:
    """A derived table in a lake. One process writes it at a time; others may compact and vacuum it meanwhile."""

    properties: ClassVar[Mapping[str, str]] = {}
    """Table properties besides those that all tables have."""
    follows_log: ClassVar[bool] = True
    """Whether its rows are made of the lake's log, and can be made again."""

    def __init__(self, description: TableDescription, lake: Location) -> None:
        self.description = description
        self.path = lake / description.name
        self._disk = disk_for(lake)
        self._policy = UpkeepPolicy()
        self._held: TableState | None = None
        self._covered: int | None = None
        self._asked = False
        self._commits = 0
        self._stream: ParquetStream | None = None
        self.added_rows = 0
        """The number of rows that were appended."""

    @property
    def name(self) -> str:
        """The table's name."""
        return self.description.name

    def last_offset(self) -> int | None:
        """Read the last offset that the table on the disk covers; None if it covers nothing yet.

        Raises LakeError, with the way out, for a table that can't be read or that this release doesn't write.
        """
        self._held = self._open()
        if self._held is not None:
            self._check_files(self._held)
        self._covered = None if self._held is None else self._held.transactions.get(self.description.app_id)
        self._asked = True
        return self._covered

    def go_on_from(self, covers: int | None) -> None:
        """Read the table on the disk, from which a run continues that knows the last offset it covers.

        Raises LakeError if that is not `covers`: another run writes the table; and as `last_offset` does.
        """
        self._check_covered(self.last_offset(), covers)

    def create(self, log_id: str) -> None:
        """Create the empty table, with comments on its columns, if it is missing; `log_id` is the log table's id.

        Raises LakeError for a table that was made from another log, or which another run has written since its
        `last_offset` was read, and as `last_offset` does.
        """
        self._held = self._open()
        if self._held is None:
            self._held = self._create(log_id)
        covered = self._held.transactions.get(self.description.app_id)
        if self._asked:
            self._check_covered(covered, self._covered)
        self._covered = covered
        made_from = self._held.metadata.configuration.get(SOURCE_LOG, log_id)
        if made_from != log_id:
            raise LakeError(f"{self.path} was made from another log than this lake's: {self._way_out}")
        if not has_cluster_id(self._held):
            self._add_cluster_id()
        # A trim that was killed may have left the table without the property.
        append_only = {APPEND_ONLY: "true", **self.properties}[APPEND_ONLY]
        self._held = set_properties(self._disk, self._held, {APPEND_ONLY: append_only})

    @cached_property
    def cluster_id(self) -> str | None:
        """The id of the cluster whose log the lake holds; None if the lake does not know it."""
        return cluster_id_of(self.path.parent)

    def with_cluster_id(self, rows: pa.Table) -> pa.Table:
        """Rows with the column `cluster_id`, as the table's files have them."""
        return with_cluster_id(rows, self.cluster_id)

    @property
    def covered(self) -> int | None:
        """The last offset that the table covers, as far as this run knows; None if it covers nothing yet."""
        return self._covered

    @property
    def waits(self) -> bool:
        """Whether appended rows are waiting for their commit, by a later append."""
        return False

    def append(self, rows: pa.Table | LazyTable, last_offset: int, *, goes_on: bool = False) -> None:
        """Append rows of offsets up to `last_offset`, which the table covers afterwards; there may be no rows.

        The rows have the table's schema, strings as such or as dictionaries. `goes_on`: more rows follow soon; a
        history table may wait for them.

        The rows are durable when this returns. Does nothing if the table covers `last_offset` already. The table was
        created, or its `last_offset` read, before. Raises LakeError if the disk refuses, or another run has written the
        table since then.
        """
        self.begin_append(rows, last_offset, goes_on=goes_on)()

    def begin_append(
        self,
        rows: pa.Table | LazyTable,
        last_offset: int,
        *,
        goes_on: bool = False,  # noqa: ARG002 - of history tables
    ) -> Callable[[], None]:
        """The first step of `append`; returns the second, for any thread, while the next rows are made."""
        self.encode_ahead(rows)
        assert self._stream is not None, "it was made for the rows"
        file, self._stream = self._stream.done(), None
        return lambda: self._append_encoded(file.result(), last_offset)

    def encode_ahead(self, rows: pa.Table | LazyTable) -> None:
        """Begin to encode rows, which the next append commits before its own."""
        self._stream = self._stream or ParquetStream(RowFile(self.description.statistics_columns))
        self._stream.add(self._stored(rows))

    def _append_encoded(self, file: EncodedFile | None, last_offset: int) -> None:
        """Append a file, None where there are no rows."""
        files: list[AddFile] = []

        def written() -> Sequence[AddFile]:
            if file is not None and not files:
                files.append(file.write(self._disk, self.path, last_offset))
            return files

        self._commit_files(written, last_offset)
        self.added_rows += 0 if file is None else file.rows

    def append_files(self, files: Sequence[AddFile], last_offset: int) -> None:
        """Append files that `write_file` has written, in this process or others; otherwise as `append`."""
        self._commit_files(lambda: files, last_offset)
        self.added_rows += sum(file.statistics.record_count for file in files if file.statistics is not None)

    def write_file(self, rows: pa.Table | LazyTable, last_offset: int) -> AddFile:
        """Write rows as a durable data file, which is not a part of the table until it is appended.

        The rows have the schema of the description, strings as such or as dictionaries; `cluster_id` is added. Raises
        LakeError if the disk refuses.
        """
        stored, columns = self._stored(rows).table(), self.description.statistics_columns
        return write_row_file(self._disk, self.path, stored, last_offset=last_offset, statistics_columns=columns)

    def _stored(self, rows: pa.Table | LazyTable) -> LazyTable:
        """Rows in the form of the table's files."""
        return (rows if isinstance(rows, LazyTable) else LazyTable.of(rows)).mapped(self._form)

    def _form(self, rows: pa.Table) -> pa.Table:
        known = (self.description.schema, self.description.encoded_schema)
        return self.with_cluster_id(rows if rows.schema in known else rows.cast(known[0]))

    def _commit_files(self, written: Callable[[], Sequence[AddFile]], last_offset: int) -> None:
        def actions(now: TableState) -> Sequence[dict[str, Any]] | None:
            if not self._lacks(now, last_offset):
                return None
            made = [append_info(), transaction(self.description.app_id, last_offset, now_ms())]
            return [*made, *(add.to_action() for add in written())]

        self._commit(actions, last_offset)

    def _commit(self, actions: Callable[[TableState], Sequence[dict[str, Any]] | None], last_offset: int) -> None:
        """Commit the actions that `actions` makes for the table's state (None: nothing to do)."""
        assert self._held is not None, "the table was created"
        state = commit_beside_writers(self._disk, self._held, actions)
        if state is not None:
            self._held, self._covered = state, last_offset
            self._keep_up(state)

    def _lacks(self, now: TableState, last_offset: int) -> bool:
        """Whether the table in its state `now` does not cover `last_offset`.

        Raises LakeError if it does not end where this run left it: another run, on a machine that this run's locks do
        not reach, has written the rows that this run is about to write.
        """
        covered = now.transactions.get(self.description.app_id)
        if covered is not None and covered >= last_offset:
            return False
        self._check_covered(covered, self._covered)
        return True

    def _check_covered(self, covered: int | None, left_at: int | None) -> None:
        if covered != left_at:
            raise LakeError(f"another run writes {self.path}, it is at offset {covered}: wait until it ends")

    def finish(self) -> None:
        """Commit all appended rows, compact small files and vacuum: a run has ended."""
        self.begin_finish()()

    def begin_finish(self) -> Callable[[], None]:
        """The first step of `finish`, which starts long work on other threads; returns the second."""
        return self._compact_and_vacuum

    @property
    def _way_out(self) -> str:
        return f"delete the folder {self.name}/ and run again, it is made anew from what the log holds"

    def _open(self) -> TableState | None:
        try:
            state = read_table(self.path)
        except NotADeltaTableError:
            return None
        except (CorruptDataError, LakeError) as fault:
            raise LakeError(f"{str(fault).rstrip('.')}: {self._way_out}") from fault
        differing = differing_column(state.metadata.schema_string, self.description.schema, str(self.path))
        if differing is not None:
            raise LakeError(
                f"{self.path} has the columns of another release, {differing} among those that differ: "
                f"{made_anew(self.path)}"
            )
        if self.description.app_id not in state.transactions and len(state.files):
            raise LakeError(f"{self.path} doesn't say which offsets its rows cover: {self._way_out}")
        return state

    def _check_files(self, state: TableState) -> None:
        """Raises LakeError if a file of a table on a disk is missing or has another size: its rows are lost."""
        if not isinstance(self.path, Path):  # in an object store, it takes a request for each file
            return
        for file in state.files.values():
            path = self.path / file.path
            size = size_of(path)
            if size != file.size:
                fault = "is missing" if size is None else f"has {size} bytes of {file.size}"
                raise LakeError(f"{path} {fault}, the table has lost rows: {self._way_out}")

    def _create(self, log_id: str) -> TableState:
        try:
            return create_table(
                self._disk,
                self.path,
                name=self.name,
                description=self.description.comment,
                schema=self.description.table_schema,
                statistics_columns=self.description.statistics_columns,
                configuration={**({SOURCE_LOG: log_id} if self.follows_log else {}), **self.properties},
            )
        except CommitConflictError:
            return read_table(self.path)

    def _add_cluster_id(self) -> None:
        """Add the column to the table's schema and rewrite each of its files with it, all in one commit.

        The rows stay the same otherwise (`dataChange` false), so that streams over the table continue. Raises
        CorruptDataError for a damaged file.
        """
        assert self._held is not None, "the table was created"
        commit_beside_writers(self._disk, self._held, self._column_added)
        self._held = read_table(self.path)

    def _column_added(self, now: TableState) -> Sequence[dict[str, Any]] | None:
        if has_cluster_id(now):
            return None
        field = self.description.table_schema.field(CLUSTER_ID_FIELD.name)
        schema = extended_schema(now.metadata.schema_string, pa.schema([field]))
        time, files = now_ms(), list(now.files.values())
        return [
            commit_info("ADD COLUMNS", {"columns": field.name}),
            attrs.evolve(now.metadata, schema_string=schema).to_action(),
            *(file.to_remove(time, data_change=False) for file in files),
            *(attrs.evolve(self._with_column(file), data_change=False).to_action() for file in files),
        ]

    def _with_column(self, file: AddFile) -> AddFile:
        """A new data file with the rows of another one, and `cluster_id`."""
        assert self._held is not None, "the table was created"
        with self._reading(file) as parquet:
            rows = parquet.read()
        return rewrite_row_file(
            self._disk,
            self._held,
            self.with_cluster_id(rows),
            last_offset=self._covered or 0,
            modification_time=file.modification_time,
        )

    @contextlib.contextmanager
    def _reading(self, file: AddFile, *, dictionaries: Sequence[str] = ()) -> Iterator[pq.ParquetFile]:
        """Open a data file; raises CorruptDataError if it is missing or damaged."""
        path = self.path / file.path
        try:
            yield open_parquet_file(path, dictionaries=dictionaries)
        except (pa.ArrowException, OSError, KeyError, ValueError) as fault:
            raise CorruptDataError(f"{path} is missing or damaged: {self._way_out}") from fault

    def _keep_up(self, state: TableState) -> None:
        """Write a checkpoint if one is due, so that opening an old table takes no longer than opening a new one.

        Every `compact_from` commits, compact small files.
        """
        self._commits += 1
        if self._commits >= self._policy.compact_from:
            self._commits = 0
            self._compact_and_vacuum()
        commits = state.version - max(state.checkpoint_version, 0)
        if not self._policy.checkpoint_is_due(commits, len(state.files)):
            return
        # The append is committed. The next run reports what is wrong with the table.
        with contextlib.suppress(LakeError):
            checkpoint_if_due(self.path, self._disk, self._policy)
            clean_up_commits(self.path, self._disk, self._policy)
            self._held = read_table(self.path)

    def _compact_and_vacuum(self) -> None:
        """Compact small files, and delete files that no reader can need any more."""
        if self._held is None:
            return
        # All appends are committed. The next run reports what is wrong with the table.
        with contextlib.suppress(LakeError, CorruptDataError):
            self._compact()
            vacuum(self.path, self._disk, self._policy)
            self._held = read_table(self.path)

    def _compact(self) -> None:
        compact_rows(self.path, self._disk, self._policy)
