"""Whatever happens to one or two files of a lake: the right answer or a clean error, also of what comes next."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import attrs
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kraftlake
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.metadata_log.delta_table.data_files import open_parquet_file
from kraftlake.metadata_log.delta_table.delta_log import read_table
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance.upkeep import Upkeep
from kraftlake.metadata_log.maintenance.upkeep_policy import UpkeepPolicy
from kraftlake.records.rows import to_rows
from kraftlake.replay.imports.kept_snapshot import keep_snapshot
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.runtime.errors import CorruptDataError, KraftlakeError
from kraftlake.tables.catch_up.log_fold import LogFold, TableFeed
from kraftlake.tables.events.events_writer import EventsWriter
from tests.metadata_log.log_batches import UnsyncedDisk, noop_batch
from tests.replay.made_logs import reference_image, small_log

EXAMPLES = 500 if os.environ.get("KRAFTLAKE_TESTS") == "long" else 40
LOG = small_log()
END = LOG[-1].last_offset + 1
IMAGES = {batch.last_offset + 1: reference_image(LOG, batch.last_offset) for batch in LOG}
POLICY = UpkeepPolicy(compact_from=3)


def bring_events_up(lake: Path) -> None:
    """Bring `events/` up to the log's end as the job does, without Spark."""
    log = MetadataLog.open(lake)
    writer = EventsWriter()
    table = writer.table(lake)
    feed = TableFeed(writer, table.last_offset())
    fold = LogFold(LakeReader(log), [feed])
    fold.begin()
    table.create("log-1")
    fold.open([table])
    for rows in log.batch_rows(fold.last_offset + 1):
        for _ in fold.take(rows):
            pass
    fold.finish()
    if feed.covers is None or feed.covers < fold.last_offset:
        table.append(writer.drain(), fold.last_offset)


def events_in(lake: Path) -> pa.Table:
    """The rows of `events/`, by the files of its newest version."""
    tables = []
    for file in sorted(read_table(lake / "events").files.values(), key=lambda file: file.path):
        try:
            tables.append(
                open_parquet_file(lake / "events" / file.path).read(columns=EventsWriter.description.schema.names)
            )
        except (pa.ArrowException, OSError, ValueError) as fault:
            raise CorruptDataError(f"{file.path} can't be read.") from fault
    return pa.concat_tables(tables)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with snapshots, two checkpoints, compacted files, appends after them, and a table that was made of it."""
    path: Path = tmp_path_factory.mktemp("template") / "lake"
    log = MetadataLog.create(path, "cluster", disk=UnsyncedDisk())
    for index, batch in enumerate(LOG):
        log.append([batch], committed_to=batch.base_offset)
        if index in {1, 3}:
            keep_snapshot(log, IMAGES[log.end_offset])
            bring_events_up(path)
        if index in {3, 6}:
            Upkeep(path, POLICY).run(force_checkpoint=True)
            log.refresh()
    return path


def expected_events(lake: Path) -> pa.Table:
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(shutil.copytree(lake, Path(folder) / "copy"))
        bring_events_up(copy)
        return events_in(copy)


@attrs.frozen
class Damage:
    """What happens to a file: `kind` with a place in it, from 0 to 1, and another file of its kind."""

    kind: str
    place: float
    bit: int
    other: int

    def do(self, file: Path) -> None:
        data = file.read_bytes()
        match self.kind:
            case "drop":
                file.unlink()
            case "truncate":
                file.write_bytes(data[: int(self.place * len(data))])
            case "flip":
                at = min(int(self.place * len(data)), len(data) - 1)
                if data:
                    file.write_bytes(data[:at] + bytes([data[at] ^ 1 << self.bit]) + data[at + 1 :])
            case _:
                alike = sorted(
                    p for p in file.parent.iterdir() if p.suffix == file.suffix and p != file and p.is_file()
                )
                if self.kind == "older":
                    alike = [p for p in alike if p.name < file.name]
                if alike:
                    other = alike[self.other % len(alike)]
                    swapped = other.read_bytes()
                    if self.kind == "swap":
                        other.write_bytes(data)
                    file.write_bytes(swapped)


DAMAGES = st.builds(
    Damage,
    st.sampled_from(["flip", "flip", "flip", "truncate", "drop", "swap", "older"]),
    st.floats(0, 1, exclude_max=True),
    st.integers(0, 7),
    st.integers(0, 99),
)


def contents(lake: Path) -> dict[str, bytes]:
    return {str(file.relative_to(lake)): file.read_bytes() for file in sorted(lake.rglob("*")) if file.is_file()}


def possible_ends(lake: Path, lost: set[str]) -> set[int]:
    """Where the log may end: at its end, or before the last commits that are lost, which nothing else shows."""
    commits = sorted((lake / "log" / "_delta_log").glob("*.json"), reverse=True)
    ends, end = {END}, END
    for commit, batch in zip(commits, reversed(LOG), strict=False):
        if str(commit.relative_to(lake)) not in lost:
            break
        end = batch.base_offset
        ends.add(end)
    return ends


def rows_up_to(end: int) -> pa.Table:
    return to_rows([batch for batch in LOG if batch.base_offset < end])


def read(lake: Path, ends: set[int]) -> None:
    """Read everything; raises KraftlakeError, and AssertionError for a wrong answer."""
    source = kraftlake.open(lake)
    log = MetadataLog.open(lake)
    assert log.end_offset in ends
    assert (log.start_offset, log.cluster_id, log.role) == (0, "cluster", "imported")
    assert log.rows().equals(rows_up_to(log.end_offset))
    assert log.epoch == [batch.epoch for batch in LOG if batch.base_offset < log.end_offset][-1]
    assert log.committed_to == [batch.base_offset for batch in LOG if batch.base_offset < log.end_offset][-1]
    image: MetadataImage = source.image()
    assert image == IMAGES[log.end_offset]


def append(lake: Path, ends: set[int]) -> int:
    """Append a batch, and give its offset; what can be read then is right."""
    log = MetadataLog.open(lake, disk=UnsyncedDisk())
    at = log.end_offset
    log.append([noop_batch(at, epoch=3)])
    assert at in ends, "a batch was acknowledged at a place that another one has"
    with contextlib.suppress(KraftlakeError):
        found = MetadataLog.open(lake)
        assert found.end_offset == at + 1
        assert found.rows().equals(pa.concat_tables([rows_up_to(at), to_rows([noop_batch(at, epoch=3)])]))
    return at


@contextlib.contextmanager
def clean() -> Iterator[None]:
    """A right answer or a clean error."""
    with contextlib.suppress(KraftlakeError):
        yield


def check(lake: Path, damages: list[tuple[int, Damage]], events: pa.Table) -> None:
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(shutil.copytree(lake, Path(folder) / "lake"))
        before = contents(copy)
        for chosen, damage in damages:
            names = [name for name in before if (copy / name).exists()]
            damage.do(copy / names[chosen % len(names)])
        damaged = contents(copy)
        lost = before.keys() - damaged.keys()
        ends = possible_ends(lake, lost)
        with clean():
            read(copy, ends)
        with clean():
            bring_events_up(copy)
            if MetadataLog.open(copy).end_offset == END:
                assert events_in(copy).equals(events)
        at = None
        with clean():
            at = append(copy, ends)
        if at in {None, END} and not any((copy / name).exists() for name in lost if "log/_delta_log/0" in name):
            for name, data in before.items():
                if damaged.get(name) != data:
                    (copy / name).write_bytes(data)
            rows = (
                rows_up_to(END)
                if at is None
                else pa.concat_tables([rows_up_to(END), to_rows([noop_batch(END, epoch=3)])])
            )
            assert MetadataLog.open(copy).rows().equals(rows), "files put back make no whole lake"


@settings(max_examples=EXAMPLES)
@given(st.lists(st.tuples(st.integers(0, 999), DAMAGES), min_size=1, max_size=2))
def test_damage_gives_a_clean_error_or_the_right_answer(lake: Path, damages: list[tuple[int, Damage]]) -> None:
    check(lake, damages, expected(lake))


_EVENTS: dict[Path, pa.Table] = {}


def expected(lake: Path) -> pa.Table:
    if lake not in _EVENTS:
        _EVENTS[lake] = expected_events(lake)
    return _EVENTS[lake]
