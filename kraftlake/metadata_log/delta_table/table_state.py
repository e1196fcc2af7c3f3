"""The state of a Delta table at a version: its files, properties and transactions, advanced commit by commit. No I/O.

Files are kept as columns: a log of 200,000 small files needs no 200,000 objects. The files of a checkpoint are read on
first use. Statistics on offsets are extracted from the text of all adds at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import pyarrow as pa

from kraftlake.metadata_log.delta_table.actions import AddFile, Commit, Protocol, RemoveFile, TableMetadata
from kraftlake.metadata_log.delta_table.data_files import OffsetSpan, offset_span
from kraftlake.metadata_log.log_facts import CHAIN, CHAIN_BEFORE
from kraftlake.metadata_log.storage.location import Location
from kraftlake.runtime.arrow import pc
from kraftlake.runtime.errors import CorruptDataError, LakeError

LOG_FOLDER = "_delta_log"
_HARMLESS_READER_FEATURES = frozenset({"columnMapping", "timestampNtz", "vacuumProtocolCheck"})
_HARMLESS_WRITER_FEATURES = frozenset({"appendOnly", "invariants"})

ADD_SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("size", pa.int64()),
        ("modificationTime", pa.int64()),
        ("dataChange", pa.bool_()),
        ("stats", pa.string()),
    ]
)
"""The used fields of an add; `path` is decoded."""

REMOVE_SCHEMA = pa.schema([("path", pa.string()), ("deletionTimestamp", pa.int64()), ("size", pa.int64())])
"""The used fields of a remove; `path` is decoded."""

FOLD_AT = 4_096
"""The number of newly committed adds held as objects before they are converted to columns without a query."""

_BOUNDS = pa.schema([("low", pa.int64()), ("high", pa.int64()), ("first_batch", pa.int64()), ("rows", pa.int64())])
_SCHEMA = pa.schema([*ADD_SCHEMA, *_BOUNDS])
_OWN_STATISTICS = (
    r'^\{"numRecords":(?P<rows>\d+),"minValues":\{"offset":(?P<low>\d+),[^{}]*"batch":(?P<first_batch>\d+)[^{}]*\},'
    r'"maxValues":\{"offset":(?P<high>\d+),'
)


@attrs.frozen(kw_only=True)
class Extent:
    """The lowest and highest offset and the number of rows of files, by their statistics; -1 as offsets of no file.

    `vague` are the paths of files without complete statistics, which are not counted.
    """

    lowest: int
    highest: int
    records: int
    vague: tuple[str, ...]


class LiveFiles(Mapping[str, AddFile]):
    """The live files of a table by path. `load` returns those of a checkpoint (ADD_SCHEMA) on first use."""

    def __init__(self, load: Callable[[], pa.Table] | None = None) -> None:
        self._load = load
        self._columns: list[pa.Table] = []
        self._newest: dict[str, AddFile] = {}
        self._gone: set[str] = set()

    def copy(self) -> LiveFiles:
        """Return the same files, to be changed independently."""
        copy = LiveFiles()
        copy._columns = [self._table()]
        return copy

    def add(self, file: AddFile) -> None:
        """Apply an add; it replaces an older one of the same path."""
        if not file.data_change:
            self._gone.add(file.path)
        self._newest.pop(file.path, None)
        self._newest[file.path] = file
        if len(self._newest) >= FOLD_AT:
            self._fold()

    def remove(self, path: str) -> None:
        """Apply a remove."""
        if self._newest.pop(path, None) is None:
            self._gone.add(path)

    def overlapping(self, low: int, high: int) -> list[OffsetSpan]:
        """The files that may hold an offset in [low, high], by their statistics; in no order."""
        table = self._table()
        begins = pc.less_equal(table.column("low"), high)
        ends = pc.fill_null(pc.greater_equal(table.column("high"), low), True)
        return [
            OffsetSpan(file=_file(fields), **{name: fields[name] for name in _BOUNDS.names})
            for fields in table.filter(pc.and_(begins, ends)).to_pylist()
        ]

    def holds_all(self, paths: Sequence[str]) -> bool:
        """Whether all of these paths are live; looked up together."""
        wanted = pa.array(paths, pa.string())
        held: int = pc.sum(pc.is_in(self._table().column("path"), value_set=wanted)).as_py() or 0
        return held == len(paths)

    def extent(self) -> Extent:
        """The extent of all files, by their statistics."""
        table = self._table()
        bounds = [table.column(name) for name in ("low", "high", "rows")]
        known = pc.and_(pc.greater_equal(bounds[0], 0), pc.and_(*map(pc.is_valid, bounds[1:])))
        vague = table.filter(pc.invert(known)).column("path").to_pylist()
        lows, highs, records = (column.filter(known) for column in bounds)
        if not len(lows):
            return Extent(lowest=-1, highest=-1, records=0, vague=tuple(vague))
        return Extent(
            lowest=pc.min(lows).as_py(),
            highest=pc.max(highs).as_py(),
            records=pc.sum(records).as_py(),
            vague=tuple(vague),
        )

    def highest_offset(self) -> int:
        """The highest offset in the statistics of the files; -1 without any."""
        highest: int | None = pc.max(self._table().column("high")).as_py()
        return -1 if highest is None else highest

    def last_offset_of(self, batch: int) -> int | None:
        """The last offset of the files that may hold a part of `batch`, -1 without such a file, None if unknown."""
        table = self._table()
        ends = table.filter(pc.less_equal(table.column("first_batch"), batch)).column("high")
        last: int | None = pc.max(ends, skip_nulls=False).as_py() if len(ends) else -1
        return last

    def to_table(self) -> pa.Table:
        """All files as ADD_SCHEMA."""
        return self._table().select(ADD_SCHEMA.names)

    def __getitem__(self, path: str) -> AddFile:
        table = self._table()
        found = table.filter(pc.equal(table.column("path"), path)).to_pylist()
        if not found:
            raise KeyError(path)
        return _file(found[0])

    def __iter__(self) -> Iterator[str]:
        yield from self._table().column("path").to_pylist()

    def values(self) -> list[AddFile]:  # type: ignore[override]
        """Every file as an object."""
        if self._load is None and not self._columns:  # columns of objects would make pyarrow import pandas
            return list(self._newest.values())
        return [_file(fields) for fields in self._table().to_pylist()]

    def __len__(self) -> int:
        rows: int = self._table().num_rows
        return rows

    def _table(self) -> pa.Table:
        """All files with their bounds."""
        if self._load is not None:
            self._columns.insert(0, _with_bounds(self._load()))
            self._load = None
        if self._gone:
            gone = pa.array(self._gone, pa.string())
            self._columns = [
                table.filter(pc.invert(pc.is_in(table.column("path"), value_set=gone))) for table in self._columns
            ]
            self._gone = set()
        self._fold()
        return pa.concat_tables(self._columns or [_SCHEMA.empty_table()])

    def _fold(self) -> None:
        """Convert the files that are held as objects to columns."""
        if self._gone:
            self._table()
        elif self._newest:
            self._columns.append(_with_bounds(_rows(list(self._newest.values()))))
            self._newest = {}
            # each table has twice the rows of the next one: there are few, and each row is copied a few times only
            while len(self._columns) > 1 and self._columns[-2].num_rows < 2 * self._columns[-1].num_rows:
                self._columns[-2:] = [pa.concat_tables(self._columns[-2:]).combine_chunks()]


class Tombstones:
    """Removed files by path. `load` returns those of a checkpoint (REMOVE_SCHEMA) on first use.

    With `kept` false they are ignored, for a handle that lives for months and writes no checkpoint.
    """

    def __init__(self, load: Callable[[], pa.Table] | None = None, *, kept: bool = True) -> None:
        self._load = load
        self._kept = kept
        self._newest: dict[str, RemoveFile] = {}
        self._back: set[str] = set()

    def add(self, file: RemoveFile) -> None:
        """Add the file of a remove action."""
        if self._kept:
            self._newest[file.path] = file

    def discard(self, path: str) -> None:
        """Forget a path that is added again."""
        self._newest.pop(path, None)
        if self._load is not None:
            self._back.add(path)

    def since(self, time_ms: int) -> dict[str, RemoveFile]:
        """The files removed at `time_ms` (epoch milliseconds) or later, or at an unknown time."""
        assert self._kept, "a checkpoint names what was removed"
        if self._load is not None:
            older = {
                fields["path"]: RemoveFile(
                    path=fields["path"], deletion_timestamp=fields["deletionTimestamp"], size=fields["size"]
                )
                for fields in self._load().to_pylist()
                if fields["path"] not in self._back
            }
            self._newest = {**older, **self._newest}
            self._load, self._back = None, set()
        return {
            path: file
            for path, file in self._newest.items()
            if file.deletion_timestamp is None or file.deletion_timestamp >= time_ms
        }


@attrs.define(kw_only=True)
class TableState:
    """A table at a version: its live files by path, properties and transactions. `apply` advances it.

    `tombstones` are its removed files; `checkpoint_version` is the checkpoint from which the state was read, -1 without
    one. `durable_version` is the newest version that was committed by this state, and so is known to be durable.
    """

    path: Location
    version: int
    protocol: Protocol
    metadata: TableMetadata
    transactions: dict[str, int] = attrs.field(factory=dict)
    files: LiveFiles = attrs.field(factory=LiveFiles)
    tombstones: Tombstones = attrs.field(factory=Tombstones)
    checkpoint_version: int = -1
    durable_version: int = -1

    def apply(self, commit: Commit) -> None:
        """Apply the next version; the state stays unchanged if that version can't be read, or continues another log."""
        assert commit.version == self.version + 1
        _check_continues(self, commit)
        if commit.protocol or commit.metadata:
            check_readable(self.path, commit.protocol or self.protocol, commit.metadata or self.metadata)
        for remove in commit.removes:
            self.files.remove(remove.path)
            self.tombstones.add(remove)
        for add in commit.adds:
            self.files.add(add)
            self.tombstones.discard(add.path)
        self.transactions.update(commit.transactions)
        self.protocol = commit.protocol or self.protocol
        self.metadata = commit.metadata or self.metadata
        self.version = commit.version

    def copy(self) -> TableState:
        """Return the same state, to be advanced independently; without tombstones."""
        return attrs.evolve(
            self,
            transactions=dict(self.transactions),
            files=self.files.copy(),
            tombstones=Tombstones(kept=False),
        )

    def check_writable(self) -> None:
        """Raise LakeError if the table requires unsupported writer features."""
        version = self.protocol.min_writer_version
        unknown = set(self.protocol.writer_features) - _HARMLESS_WRITER_FEATURES
        if not (version <= 2 or (version == 7 and not unknown)):
            raise LakeError(
                f"{self.path} asks its writers for Delta protocol {version}"
                f"{' with ' + ', '.join(sorted(unknown)) if unknown else ''}, which this release doesn't write."
            )


def commit_path(table: Location, version: int) -> Location:
    """The path of a version's commit."""
    return table / f"{LOG_FOLDER}/{version:020d}.json"


def check_readable(path: Location, protocol: Protocol, metadata: TableMetadata) -> None:
    """Raise LakeError if a table requires unsupported reader features."""
    unknown = set(protocol.reader_features) - _HARMLESS_READER_FEATURES
    if protocol.min_reader_version > 3 or unknown:
        raise LakeError(
            f"{path} asks its readers for Delta protocol {protocol.min_reader_version}"
            f"{' with ' + ', '.join(sorted(unknown)) if unknown else ''}, which this release doesn't read."
        )
    if metadata.configuration.get("delta.columnMapping.mode", "none") != "none":
        raise LakeError(f"{path} maps its columns to other names, which this release doesn't read.")


def _check_continues(state: TableState, commit: Commit) -> None:
    """Raise CorruptDataError for an append made after other rows than the state's."""
    chain = state.transactions.get(CHAIN)
    if commit.info.get(CHAIN_BEFORE, chain) != chain:
        raise CorruptDataError(
            f"{commit_path(state.path, commit.version)} was not made upon version {state.version}: its rows follow "
            f"others than those of that version. Commits of several lakes were mixed up, or one was replaced; restore "
            f"them from a copy."
        )


def _rows(files: Sequence[AddFile]) -> pa.Table:
    return pa.table(
        {
            "path": [file.path for file in files],
            "size": [file.size for file in files],
            "modificationTime": [file.modification_time for file in files],
            "dataChange": [file.data_change for file in files],
            "stats": [file.stats for file in files],
        },
        schema=ADD_SCHEMA,
    )


def _with_bounds(table: pa.Table) -> pa.Table:
    """Return the table with the bounds of each file: kraftlake's statistics by a pattern, other writers' one by one."""
    stats = table.column("stats").combine_chunks()
    found = pc.extract_regex(stats, _OWN_STATISTICS)
    if found.null_count:
        spans = [offset_span(_file(fields)) for fields in table.to_pylist()]
        bounds = {name: [getattr(span, name) for span in spans] for name in _BOUNDS.names}
        columns = pa.table(bounds, schema=_BOUNDS).columns
    else:
        columns = [pc.struct_field(found, [name]).cast(pa.int64()) for name in _BOUNDS.names]
    for field, column in zip(_BOUNDS, columns, strict=True):
        table = table.append_column(field, column)
    return table


def _file(fields: Mapping[str, Any]) -> AddFile:
    return AddFile.at(fields["path"], fields)
