"""`verify` holds a lake to its chain of hashes, and to a link of it that an import printed."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kraftlake
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance.upkeep import Upkeep
from kraftlake.records.rows import LOG_SCHEMA
from kraftlake.replay.imports.import_log import import_source
from kraftlake.replay.imports.kept_snapshot import keep_snapshot
from kraftlake.runtime.errors import UsageError
from tests.at_least_one import at_least_one
from tests.metadata_log.log_batches import UnsyncedDisk, data_batch, noop_batch
from tests.metadata_log.test_chain import forget_chain
from tests.metadata_log.unsealed import unseal
from tests.replay.made_logs import reference_image, small_log
from tests.replay.sample_logs import copy_of, directory_of


def lake_of(path: Path, rows: int, *, start: int = 0) -> MetadataLog:
    log = MetadataLog.create(path, disk=UnsyncedDisk(), start_offset=start)
    for offset in range(start, start + rows):
        log.append([noop_batch(offset)])
    return log


def problems(lake: Path, at_least: str | None = None) -> str:
    report = kraftlake.open(lake).verify(at_least=at_least)
    assert report.sound == (not report.problems)
    return "\n".join(map(str, report.problems))


def test_an_import_prints_a_link_that_later_verifications_compare_with(tmp_path: Path) -> None:
    short, whole = copy_of("kafka-4.4", tmp_path / "short"), directory_of("kafka-4.4")
    max(short.glob("*.log")).unlink()
    first = import_source(short, tmp_path / "lake")
    second = import_source(whole, tmp_path / "lake")
    at_once = import_source(whole, tmp_path / "again")
    assert first.chain is not None
    assert first.chain != second.chain
    assert second.chain == at_once.chain
    for lake in ("lake", "again"):
        for link in (first.chain, second.chain, "0", first.chain.partition(":")[0]):
            assert problems(tmp_path / lake, link) == ""
    assert import_source(whole, tmp_path / "lake").chain == second.chain


def test_a_lake_whose_last_commit_was_lost_is_sound_by_itself_but_less_than_it_was(tmp_path: Path) -> None:
    log = lake_of(tmp_path / "lake", 5)
    assert log.chain is not None
    link = str(log.chain.link)
    (tmp_path / "lake" / "log" / "_delta_log" / f"{5:020d}.json").unlink()
    assert problems(tmp_path / "lake") == ""
    for known in (link, "4"):
        assert "the log once held offset 4, and ends before 4 now" in problems(tmp_path / "lake", known)


def test_a_lake_of_another_log_is_recognised_by_the_hash(tmp_path: Path) -> None:
    log = lake_of(tmp_path / "lake", 5)
    found = problems(tmp_path / "lake", "3:00000000000000ff")
    assert re.search(r"offset 3: the rows up to offset 3 have changed.* not 00000000000000ff", found)
    assert log.chain is not None
    assert problems(tmp_path / "lake", str(log.chain.link)) == ""


@pytest.mark.parametrize("column", ["timestamp", "payload", "epoch"])
def test_a_data_file_with_another_value_is_unsound(tmp_path: Path, column: str) -> None:
    log = lake_of(tmp_path / "lake", 5)
    unseal(tmp_path / "lake" / "log")
    (file,) = (tmp_path / "lake" / "log").glob(f"{2:020d}-*.parquet")
    rows = pq.read_table(file).cast(LOG_SCHEMA)
    value = {"timestamp": 0, "payload": data_batch(2).values[0], "epoch": 2}[column]
    index = LOG_SCHEMA.get_field_index(column)
    changed = rows.set_column(index, LOG_SCHEMA.field(column), pa.array([value], LOG_SCHEMA.field(column).type))
    pq.write_table(changed, file)
    assert "the rows of offsets 0 to 4 are not those that were appended" in problems(tmp_path / "lake")
    assert log.end_offset == 5


def test_a_trimmed_lake_is_held_to_the_hash_of_what_was_trimmed(tmp_path: Path) -> None:
    log = MetadataLog.create(tmp_path / "lake", disk=UnsyncedDisk())
    links = []
    for batch in at_least_one(small_log()):
        log.append([batch])
        assert log.chain is not None
        links.append(str(log.chain.link))
    keep_snapshot(log, reference_image(small_log(), 7))
    Upkeep(log.path).trim(8, stream_lag_ms=0)
    start = MetadataLog.open(tmp_path / "lake").start_offset
    assert start == 8
    for link in at_least_one(links):
        found = problems(tmp_path / "lake", link)
        assert ("can't be checked" in found) == (int(link.partition(":")[0]) < start - 1), found
        assert len(found.splitlines()) <= 1


def test_a_hash_at_a_trimmed_offset_is_reported_as_unknown(tmp_path: Path) -> None:
    log = lake_of(tmp_path / "lake", 5, start=7)
    assert log.chain_base == 0
    assert "the hash at offset 5 can't be checked: the log's chain starts at 7" in problems(
        tmp_path / "lake", "5:0123456789abcdef"
    )


def test_verify_says_from_where_on_the_chain_of_an_older_lake_binds(tmp_path: Path) -> None:
    log = lake_of(tmp_path / "lake", 3)
    forget_chain(log)
    report = kraftlake.open(tmp_path / "lake").verify()
    assert report.sound
    assert any("begins with the next append" in note for note in report.notes)
    assert "can't be checked: this lake has no chain" in problems(tmp_path / "lake", "2:0123456789abcdef")
    log = MetadataLog.open(tmp_path / "lake", disk=UnsyncedDisk())
    log.append([noop_batch(3)])
    report = kraftlake.open(tmp_path / "lake").verify()
    assert report.sound
    assert any("begins at offset 3: it binds no rows before that" in note for note in report.notes)
    assert report.to_json()["chainStart"] == 3
    assert report.to_json()["chain"] == str(log.chain and log.chain.link)


def test_other_sources_are_held_to_an_offset_but_have_no_hash(tmp_path: Path) -> None:
    place = shutil.copytree(directory_of("kafka-4.4"), tmp_path / "copy")
    end = kraftlake.open(place).reader.end_offset
    assert problems(place, str(end - 1)) == ""
    assert f"the log once held offset {end}" in problems(place, str(end))
    with pytest.raises(UsageError, match="no chain of hashes"):
        kraftlake.open(place).verify(at_least="5:0123456789abcdef")
