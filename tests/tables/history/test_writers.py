"""The history tables of a lake, written by runs that end anywhere."""

from __future__ import annotations

import shutil
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kraftlake.metadata_log.delta_table.delta_log import read_table
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance.compaction import compact
from kraftlake.metadata_log.maintenance.upkeep_policy import UpkeepPolicy
from kraftlake.metadata_log.storage.disk import disk_for
from kraftlake.records.batch import RecordBatch
from kraftlake.records.serde import UnknownRecord
from kraftlake.replay.imports.import_log import import_source
from kraftlake.replay.loader.fold import image_at
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.runtime.errors import LakeError, UnknownRecordError
from kraftlake.tables.history import history_table
from kraftlake.tables.jobs import HISTORY
from tests.cli.running import run, run_json
from tests.metadata_logs import metadata_logs
from tests.replay.made_logs import UNKNOWN, begin, data, end, topic
from tests.tables.history.folding import Run, run_to_end
from tests.tables.history.reference import KEYS, Row, all_rows, plain, quorum_rows, rows_until
from tests.tables.sample_log import LAST_OFFSET, SAMPLE, append_in, batches_between, lake_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def tables_of(lake: Path) -> dict[str, list[Row]]:
    """All history tables as another reader of Delta tables sees them."""
    return {
        name: plain(DeltaTable(lake / name).to_pyarrow_table().to_pylist(), key)
        for name, key in KEYS.items()
        if (lake / name).exists()
    }


@settings(max_examples=settings.default.max_examples // 5)  # type: ignore[union-attr]
@given(log=metadata_logs(max_steps=40), cuts=st.lists(st.integers(0, 30), max_size=3), lost=st.data())
def test_runs_that_end_or_are_killed_anywhere_write_the_same(
    tmp_path_factory: pytest.TempPathFactory, log: list[RecordBatch], cuts: list[int], lost: st.DataObject
) -> None:
    assume(log)
    lake = tmp_path_factory.mktemp("history") / "lake"
    append_in(MetadataLog.create(lake), 1, log)
    ends = sorted({log[min(at, len(log) - 1)].last_offset for at in cuts})
    for to_offset in ends:
        run = Run(lake)
        if run.fold.last_offset < to_offset:
            for rows in run.log.batch_rows(run.fold.last_offset + 1, to_offset):
                [*run.fold.take(rows)]
            run.publish(lost.draw(st.integers(0, len(run.tables)), label="tables written before it is killed"))
    run_to_end(lake)
    assert tables_of(lake) == all_rows(log)
    shutil.rmtree(lake)


@pytest.fixture(scope="module")
def expected() -> dict[str, list[Row]]:
    return all_rows(batches_between(0, LAST_OFFSET))


@pytest.mark.parametrize("sample", ["kafka-4.4"])
def test_the_tables_say_of_the_sample_what_its_images_say(
    tmp_path: Path, expected: dict[str, list[Row]], sample: str
) -> None:
    lake_of(tmp_path / "lake", commits=3)
    run_to_end(tmp_path / "lake")
    assert tables_of(tmp_path / "lake") == expected
    assert sum(map(len, expected.values())) > 4000


def test_a_run_with_nothing_new_commits_nothing(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    lake_of(lake, commits=1, last=500)
    run_to_end(lake)
    before = {name: DeltaTable(lake / name).version() for name in KEYS}
    run_to_end(lake)
    assert {name: DeltaTable(lake / name).version() for name in KEYS} == before


def test_many_small_runs_leave_few_files_and_the_same_rows(
    tmp_path: Path, expected: dict[str, list[Row]], monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = tmp_path / "lake"
    lake_of(lake, commits=1)
    ends = [batch.last_offset for batch in batches_between(0, LAST_OFFSET)][::400]
    for number, to_offset in enumerate(ends):
        # Where there are many open rows a commit waits for several appends.
        monkeypatch.setattr(history_table, "AT_ONCE", 0 if number % 2 else 20_000)
        run = Run(lake)
        for first, last in pairwise([run.fold.last_offset, (run.fold.last_offset + to_offset) // 2, to_offset]):
            aligned = max((b.last_offset for b in batches_between(0, last)), default=-1)
            if run.fold.last_offset < aligned and first < last:
                run.take(aligned)
        run.finish()
    run_to_end(lake)
    assert tables_of(lake) == expected
    assert len(DeltaTable(lake / "partition_history").file_uris()) < 12


def test_what_has_ended_waits_for_a_commit_and_may_be_lost_with_its_run(
    tmp_path: Path, expected: dict[str, list[Row]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_table, "AT_ONCE", 0)
    monkeypatch.setattr(history_table, "_TIMES", 3)
    monkeypatch.setattr(history_table, "_MERGED_ROWS", 100)
    monkeypatch.setattr(history_table, "_FILE_ROWS", 300)
    lake = tmp_path / "lake"
    lake_of(lake, commits=1)
    ends = [batch.last_offset for batch in batches_between(0, LAST_OFFSET)][200::150]
    table = lake / "partition_history"
    waited = 0
    for number, to_offset in enumerate(ends):
        if number % 5 == 0:
            run = Run(lake)  # the one before is killed: what it has not committed is made again
        if run.fold.last_offset < to_offset:
            run.take(to_offset)
        state = read_table(table)
        named = {*state.files, *state.tombstones.since(0)}
        assert {path.name for path in table.glob("*.parquet")} == named, "a file that waits would be an orphan"
        waited += state.transactions.get("kraftlake.partition_history", -1) < run.fold.last_offset
    assert 0 < waited < len(ends)
    run_to_end(lake)
    assert tables_of(lake) == expected


def test_while_more_follows_tables_of_few_rows_wait_too(tmp_path: Path, expected: dict[str, list[Row]]) -> None:
    lake = tmp_path / "lake"
    lake_of(lake, commits=1)
    run = Run(lake)

    def covered() -> set[int | None]:
        return {read_table(lake / name).transactions.get(f"kraftlake.{name}") for name in KEYS}

    first, second, third = (batches_between(0, last)[-1].last_offset for last in (700, 1400, 2100))
    run.take(first, goes_on=True)
    assert covered() == {None}
    assert all(table.waits for table in run.tables)
    run.take(second)
    assert covered() == {second}
    run.take(third, goes_on=True)
    assert covered() == {second}
    run.publish(len(run.tables))  # nothing is new, but all that waits goes along
    assert covered() == {third}
    assert not any(table.waits for table in run.tables)
    run_to_end(lake)
    assert tables_of(lake) == expected


def test_an_append_writes_what_was_so_where_it_began_whatever_is_folded_until_it_ends(
    tmp_path: Path, expected: dict[str, list[Row]]
) -> None:
    lake = tmp_path / "lake"
    lake_of(lake, commits=1)
    run = Run(lake)
    first = batches_between(0, 2000)
    run.take(first[0].last_offset)
    for ends in ([first[-1].last_offset, 3000], [batches_between(0, 4500)[-1].last_offset, 5500]):
        to_offset, further = (batches_between(0, end)[-1].last_offset for end in ends)
        run.fold_to(to_offset)
        begun = run.begin_appends()
        run.fold_to(further)
        for end_append in begun:
            end_append()
        assert tables_of(lake) == {name: rows_until(rows, to_offset) for name, rows in expected.items()}
    run_to_end(lake)
    assert tables_of(lake) == expected


def test_a_table_that_others_have_compacted_goes_on(tmp_path: Path, expected: dict[str, list[Row]]) -> None:
    lake = tmp_path / "lake"
    lake_of(lake, commits=1)
    run = Run(lake)
    run.take(batches_between(0, 3000)[-1].last_offset)
    run.finish()
    for name in KEYS:
        DeltaTable(lake / name).optimize.compact()
    assert len(DeltaTable(lake / "partition_history").file_uris()) == 1
    run_to_end(lake)
    assert tables_of(lake) == expected


def test_a_log_that_was_compacted_gives_the_same(tmp_path: Path, expected: dict[str, list[Row]]) -> None:
    lake = tmp_path / "lake"
    lake_of(lake, commits=70)
    compact(lake / "log", disk_for(lake), UpkeepPolicy(compact_from=2))
    run_to_end(lake)
    assert tables_of(lake) == expected


def test_a_log_that_starts_above_0_begins_with_the_snapshot_that_covers_its_start(tmp_path: Path) -> None:
    folder = tmp_path / "source" / "__cluster_metadata-0"
    folder.mkdir(parents=True)
    for file in SAMPLE.iterdir():
        if file.name.startswith(("00000000000000003038", "00000000000000004593")) or (
            file.suffix == ".log" and int(file.stem) > 3000
        ):
            shutil.copy(file, folder)
    import_source(folder, tmp_path / "lake")
    log = MetadataLog.open(tmp_path / "lake")
    assert log.start_offset > 0
    run_to_end(tmp_path / "lake")
    base = min(snapshot.end_offset for snapshot in log.snapshots() if snapshot.end_offset >= log.start_offset)
    start, batches = image_at(LakeReader(log), base - 1), [*log.batches(base)]
    assert tables_of(tmp_path / "lake") == all_rows(batches, start.image) | quorum_rows(batches, start)


def test_a_table_whose_rows_are_not_the_logs_is_named(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    lake_of(lake, commits=1)
    run = Run(lake)
    run.take(batches_between(0, 3000)[-1].last_offset)
    run.finish()
    DeltaTable(lake / "partition_history").delete("partition = 0 and valid_to_offset is null")
    with pytest.raises(LakeError, match=r"partition_history has .* delete partition_history/ and run again"):
        Run(lake)


def test_a_run_goes_on_inside_of_a_transaction_that_began_where_another_ended(tmp_path: Path) -> None:
    log = [
        data(0, begin(), topic(1)),
        data(2, end(), topic(2), begin(), topic(3)),
        data(6, topic(4), end()),
    ]
    MetadataLog.create(tmp_path / "lake").append(log)
    for to_offset in (5, 7):
        run = Run(tmp_path / "lake")
        run.take(to_offset)
        run.finish()
    rows = tables_of(tmp_path / "lake")["topic_history"]
    assert {row["topic"]: row["valid_from_offset"] for row in rows} == {
        "topic-1": 2, "topic-2": 3, "topic-3": 7, "topic-4": 7
    }  # fmt: skip


NEWER_TOPIC = b"\x01\x02\x09" + data(0, topic(2)).values[0][3:]


@pytest.mark.parametrize(
    ("record", "named"), [(UNKNOWN, "99"), (NEWER_TOPIC, "2 in version 9")], ids=["type", "version"]
)
def test_a_record_that_nobody_knows_is_named(record: UnknownRecord | bytes, named: str, tmp_path: Path) -> None:
    MetadataLog.create(tmp_path / "lake").append([data(0, topic(1)), data(1, begin(), record, end())])
    with pytest.raises(UnknownRecordError, match=rf"ffset 2.*record type {named}"):
        run_to_end(tmp_path / "lake")


@pytest.fixture
def one_lake(tmp_path: Path) -> Path:
    lake_of(tmp_path / "lake", commits=9)
    return tmp_path / "lake"


@pytest.mark.spark
def test_the_job_writes_them_by_a_stream_whatever_its_micro_batches(
    tmp_path: Path, one_lake: Path, spark: SparkSession
) -> None:
    from kraftlake.spark_jobs import StreamOptions, run_job

    done = run_job("history", one_lake, options=StreamOptions(max_records=3_000), spark=spark)
    assert done.offset == LAST_OFFSET
    lake_of(tmp_path / "other", commits=3)
    run_to_end(tmp_path / "other")
    expected = tables_of(tmp_path / "other")
    assert tables_of(one_lake) == expected
    rows = spark.read.format("delta").load(str(one_lake / "partition_history"))
    assert rows.count() == len(expected["partition_history"])
    names = ("topic", "topic_id", "partition", "leader", "leader_epoch", "partition_epoch", "replicas", "isr", "elr")
    assert [rows.schema[name].dataType.simpleString() for name in names] == [
        "string", "string", "int", "int", "int", "int", "array<int>", "array<int>", "array<int>"
    ]  # fmt: skip
    assert rows.schema["valid_to"].dataType.simpleString() == "timestamp"


def test_a_run_reports_how_many_states_ended_and_how_many_are_still_so(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    whole = batches_between(0, LAST_OFFSET)
    log = MetadataLog.create(lake)
    for part in (whole[:600], whole[600:]):
        append_in(log, 2, part)
        log.refresh()
        before = tables_of(lake)
        done = run_json("tables", lake, *HISTORY.tables)
        for name, rows in tables_of(lake).items():
            ended = [sum(row["valid_to_offset"] is not None for row in some) for some in (before.get(name, []), rows)]
            assert done["rows"][name] == ended[1] - ended[0]
            assert done["openRows"][name] == len(rows) - ended[1]
    again = run_json("tables", lake, *HISTORY.tables)
    assert not any(again["rows"].values())
    assert again["openRows"] == done["openRows"]


def test_the_command_says_so_in_words(tmp_path: Path) -> None:
    lake_of(tmp_path / "lake", commits=2)
    said = run("tables", tmp_path / "lake", *HISTORY.tables).stdout
    rows = tables_of(tmp_path / "lake")["partition_history"]
    open_rows = sum(row["valid_to_offset"] is None for row in rows)
    assert f"partition_history/   {len(rows) - open_rows:,} states ended, {open_rows:,} still so\n" in said
    assert "events" not in said
