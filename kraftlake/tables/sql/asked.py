"""The derived tables of a source that a question names, as Arrow: those of a lake, or made in a lake of the moment."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa
import pyarrow.dataset as pads

from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.metadata_log.delta_table.data_files import open_parquet_file
from kraftlake.metadata_log.log_facts import LOG_TABLE
from kraftlake.metadata_log.storage.location import Location, lake_location
from kraftlake.records.rows import LOG_SCHEMA
from kraftlake.records.typed_rows import PAYLOAD
from kraftlake.replay.imports.import_log import import_source
from kraftlake.replay.queries.source import LogSource
from kraftlake.replay.reading.progress import Progress
from kraftlake.tables.catch_up.updating import update_tables, writers_of
from kraftlake.tables.derived_tables import derived_table
from kraftlake.tables.jobs import RECORDS, TABLES
from kraftlake.tables.lake_table import TableDescription
from kraftlake.tables.sql.session import SqlAnswer, SqlLimits, answer, asked_tables, no_such_table

NAMES: Final = (*TABLES, LOG_TABLE)
"""The tables that a question may name: the derived ones, and the log without its payloads, which hold secrets."""
_LOG_COLUMNS: Final = pa.schema([field for field in LOG_SCHEMA if field.name != PAYLOAD])


@attrs.frozen(kw_only=True)
class Asked:
    """A question's answer, and the last offset that each of its tables covers, by name."""

    answer: SqlAnswer
    covered: dict[str, int]


def ask(source: LogSource, question: str, limits: SqlLimits, *, progress: Progress | None = None) -> Asked:
    """Answer a question in SQL over a source's tables; nothing is written to the source.

    Of a lake the tables are as they are; of any other source those that the question names are made in a temporary
    folder first. Raises UsageError for a question that is refused, LakeError for a table that a lake does not have, and
    the errors of replaying the log.
    """
    names = asked_tables(question)
    unknown = names - {*NAMES}
    if unknown:
        raise no_such_table(unknown, NAMES)
    with _lake_with(source, names, progress) as lake:
        tables = {name: _rows_of(lake, name) for name in sorted(names)}
        covered = {name: offset for name in tables if (offset := _covered(lake, name)) is not None}
        return Asked(answer=answer(question, tables, limits), covered=covered)


@contextmanager
def _lake_with(source: LogSource, names: frozenset[str], progress: Progress | None) -> Iterator[Location]:
    """A lake that has some tables of a source."""
    if source.kind is SourceKind.LAKE:
        yield lake_location(source.path)
        return
    with tempfile.TemporaryDirectory(prefix="kraftlake-sql-") as folder:
        lake = Path(folder) / "lake"
        import_source(source, lake, cluster_id=source.cluster_id, progress=progress)
        derived = sorted(names & {*TABLES})
        if derived:
            update_tables(lake, derived)
        yield lake


def _covered(lake: Location, name: str) -> int | None:
    description = _description(name)
    return None if description is None else derived_table(lake, name).transactions.get(description.app_id)


def _rows_of(lake: Location, name: str) -> Any:
    """A table: a dataset of its files, of which DuckDB reads what it needs; of an object store the rows."""
    state, description = derived_table(lake, name), _description(name)
    schema = _LOG_COLUMNS if description is None else description.table_schema.remove_metadata()
    schema = pa.schema([field.remove_metadata() for field in schema])
    files = [state.path / file for file in state.files]
    if not files:
        return schema.empty_table()
    if isinstance(state.path, Path):
        return pads.dataset([str(file) for file in files], format="parquet", schema=schema)
    return pa.concat_tables([open_parquet_file(file).read(columns=schema.names).cast(schema) for file in files])


def _description(name: str) -> TableDescription | None:
    """What a derived table is; None for the log."""
    if name == LOG_TABLE:
        return None
    (writer,) = RECORDS.new_writers() if name in RECORDS.tables else writers_of([name])
    return writer.description
