"""The rows of a file that were so at an offset, whoever wrote the file, and what is not read for them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.metadata_log.delta_table.row_files import RowFile
from kraftlake.runtime.errors import CorruptDataError
from kraftlake.tables.history import rows_at as module
from kraftlake.tables.history.history_columns import ENCODED_STATES, PARTITION_HISTORY_SCHEMA, times_of
from kraftlake.tables.history.rows_at import groups_at, rows_at
from tests.few_examples import few_examples
from tests.tables.history.reference import KEYS, plain

_KEY = KEYS["partition_history"]
_GROUP = 50
_EMPTY = ("elr", "last_known_elr", "adding_replicas", "removing_replicas")


def _states(seed: int, count: int) -> pa.Table:
    """Made-up states of partitions: a third of them go on, the later half of them has eligible replicas."""
    made = random.Random(seed)
    begins = sorted(made.randrange(1000) for _ in range(count))
    ends = [None if made.random() < 0.3 else begin + made.randint(1, 300) for begin in begins]
    names = [f"topic-{made.randrange(7)}" for _ in range(count)]
    lists = {name: [[]] * count for name in _EMPTY}
    lists["elr"] = [[made.randrange(5)] if number > count / 2 and number % 3 else [] for number in range(count)]
    columns = {
        "topic": names,
        "topic_id": [f"{name:>22}" for name in names],
        "partition": range(count),
        **{name: [made.randrange(5) for _ in range(count)] for name in ("leader", "leader_epoch", "partition_epoch")},
        "replicas": [made.sample(range(5), 3) for _ in range(count)],
        "isr": [made.sample(range(5), made.randrange(4)) for _ in range(count)],
        **lists,
        "leader_recovery_state": [0] * count,
        "directories": [[f"{made.randrange(9):022}"] * made.randrange(3) for _ in range(count)],
        "leader_rack": [made.choice(("a", "b", None)) for _ in range(count)],
        "valid_from_offset": begins,
        "valid_to_offset": ends,
        "valid_from": times_of(begins),
        "valid_to": times_of([-1 if end is None else end for end in ends]),
    }
    return pa.table([columns[name] for name in PARTITION_HISTORY_SCHEMA.names], schema=PARTITION_HISTORY_SCHEMA)


def _write(rows: pa.Table, path: Path, writer: str) -> Path:
    """A file of the rows in some row groups, as one of its writers makes it."""
    if writer == "the job":
        file = RowFile(("valid_from_offset", "valid_to_offset"), joins_tables=False)
        for start in range(0, rows.num_rows, _GROUP):
            file.add(rows.slice(start, _GROUP).cast(ENCODED_STATES))
        path.write_bytes(file.encoded().data)
        return path
    others = {
        "an earlier release": {"write_statistics": ["valid_from_offset", "valid_to_offset"]},
        "one without statistics": {"write_statistics": False},
        "one that gives up dictionaries": {"dictionary_pagesize_limit": 100, "write_batch_size": 10},
        "one without dictionaries": {"use_dictionary": False, "use_compliant_nested_type": False},
    }
    pq.write_table(rows, path, row_group_size=_GROUP, **others[writer])
    return path


_WRITERS = (
    "the job",
    "an earlier release",
    "one without statistics",
    "one that gives up dictionaries",
    "one without dictionaries",
)


@few_examples
@given(
    rows=st.builds(_states, st.integers(0, 2**32), st.integers(1, 400)),
    offset=st.integers(0, 1400),
    writer=st.sampled_from(_WRITERS),
    columns=st.lists(st.sampled_from(PARTITION_HISTORY_SCHEMA.names), unique=True, min_size=1),
)
def test_they_are_those_that_the_file_has_for_it_in_any_columns(
    tmp_path_factory: pytest.TempPathFactory, rows: pa.Table, offset: int, writer: str, columns: list[str]
) -> None:
    path = _write(rows, tmp_path_factory.mktemp("file") / "a.parquet", writer)
    expected = [
        row
        for row in rows.to_pylist()
        if row["valid_from_offset"] <= offset and (row["valid_to_offset"] is None or row["valid_to_offset"] > offset)
    ]
    for wanted in (PARTITION_HISTORY_SCHEMA, ENCODED_STATES):
        found = pa.concat_tables([wanted.empty_table(), *rows_at(path, offset=offset, schema=wanted)])
        found.validate(full=True)
        assert plain(found.to_pylist(), _KEY) == plain(expected, _KEY)
        some = pa.schema([wanted.field(name) for name in columns])
        few = pa.concat_tables([some.empty_table(), *rows_at(path, offset=offset, schema=some)])
        assert few.schema == some
        assert sorted(map(repr, few.to_pylist())) == sorted(
            repr({key: row[key] for key in columns}) for row in expected
        )


@pytest.mark.parametrize("writer", _WRITERS)
@pytest.mark.parametrize("order", [("first", "second"), ("second", "first")])
def test_a_state_that_ends_at_an_offset_is_no_longer_so_there(
    tmp_path: Path, writer: str, order: tuple[str, str]
) -> None:
    """An interval's end is exclusive: of states from 1 to 10 and from 2 to 12 only the latter is so at offset 10."""
    intervals = {"first": (1, 10), "second": (2, 12)}
    begins, ends = zip(*(intervals[name] for name in order), strict=True)
    rows = _states(1, 2)
    for name, values in (("valid_from_offset", begins), ("valid_to_offset", ends)):
        rows = rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), pa.array(values, pa.int64()))
    path = _write(rows, tmp_path / "a.parquet", writer)

    def so_at(offset: int) -> list[tuple[int, int]]:
        found = [
            row for table in rows_at(path, offset=offset, schema=PARTITION_HISTORY_SCHEMA) for row in table.to_pylist()
        ]
        return sorted((row["valid_from_offset"], row["valid_to_offset"]) for row in found)

    assert {offset: so_at(offset) for offset in (0, 1, 2, 9, 10, 11, 12)} == {
        0: [], 1: [(1, 10)], 2: [(1, 10), (2, 12)], 9: [(1, 10), (2, 12)], 10: [(2, 12)], 11: [(2, 12)], 12: [],
    }  # fmt: skip


class _Watched(pq.ParquetFile):
    """A file that notes what is read of it: which columns, and how many rows at most."""

    def __init__(self, path: Path, read: list[tuple[tuple[str, ...], int]]) -> None:
        super().__init__(path)
        self._read = read

    def read_row_groups(self, row_groups: list[int], columns: list[str]) -> pa.Table:
        self._read.append((tuple(columns), sum(self.metadata.row_group(number).num_rows for number in row_groups)))
        return super().read_row_groups(row_groups, columns=columns)

    def iter_batches(self, batch_size: int, row_groups: list[int], columns: list[str]) -> Iterator[pa.RecordBatch]:
        self._read.append((tuple(columns), batch_size))
        return super().iter_batches(batch_size, row_groups=row_groups, columns=columns)


def _reads(monkeypatch: pytest.MonkeyPatch, path: Path, offset: int) -> list[tuple[tuple[str, ...], int]]:
    """The columns and most rows of each read that asks a file for what was so at an offset."""
    read: list[tuple[tuple[str, ...], int]] = []
    monkeypatch.setattr(module, "open_parquet_file", lambda path, dictionaries=(): _Watched(path, read))
    assert sum(table.num_rows for table in rows_at(path, offset=offset, schema=PARTITION_HISTORY_SCHEMA)) > 10
    return read


def test_lists_that_are_all_empty_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = _reads(monkeypatch, _write(_states(1, 400), tmp_path / "a.parquet", "the job"), 900)
    assert {"elr" in columns for columns, _ in read if "isr" in columns} == {True, False}
    assert not any(name in columns for name in _EMPTY[1:] for columns, _ in read)


def test_rows_behind_the_last_one_that_was_so_are_not_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = _states(1, 2 * _GROUP)
    path = _write(rows, tmp_path / "a.parquet", "the job")
    offset = rows.column("valid_from_offset")[_GROUP + 10].as_py()
    begun = sum(begin <= offset for begin in rows.column("valid_from_offset").to_pylist())
    wide = [count for columns, count in _reads(monkeypatch, path, offset) if "isr" in columns]
    assert len(wide) == 2
    assert wide[1] <= begun - _GROUP < _GROUP - 20


def test_row_groups_are_chosen_by_their_statistics(tmp_path: Path) -> None:
    rows = _states(3, 400)
    for writer in _WRITERS:
        metadata = pq.read_metadata(_write(rows, tmp_path / f"{writer}.parquet", writer))
        groups = groups_at(metadata, 200)
        if writer == "one without statistics":
            assert len(groups) == metadata.num_row_groups
            assert not any(group.all_valid for group in groups)
        else:
            assert 0 < len(groups) < metadata.num_row_groups
    ended = rows.filter(pa.compute.is_null(rows.column("valid_to_offset")))
    metadata = pq.read_metadata(_write(ended, tmp_path / "open.parquet", "the job"))
    assert all(group.all_valid for group in groups_at(metadata, 1000))


def test_a_damaged_file_is_named_with_the_way_out(tmp_path: Path) -> None:
    path = _write(_states(4, 200), tmp_path / "a.parquet", "the job")
    path.write_bytes(path.read_bytes()[:200] + b"PAR1")
    with pytest.raises(CorruptDataError, match=r"a\.parquet is missing or damaged: delete .*, its job makes it anew"):
        next(rows_at(path, offset=100, schema=PARTITION_HISTORY_SCHEMA))
    with pytest.raises(CorruptDataError, match="is missing or damaged"):
        next(rows_at(tmp_path / "none.parquet", offset=100, schema=PARTITION_HISTORY_SCHEMA))
