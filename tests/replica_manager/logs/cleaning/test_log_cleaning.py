"""One cleaning of a log, and what may happen in the middle of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import attrs
import pytest

from kraftlake.replica_manager.errors import CorruptRecordError
from kraftlake.replica_manager.logs.cleaning.log_cleaning import CleaningAbortedError
from kraftlake.replica_manager.logs.disk.log_loader import StoredState
from kraftlake.replica_manager.logs.log_values import AppendOrigin
from kraftlake.runtime.log import without_logs
from simulator.data_batches import keyed, marker
from simulator.faulty_files import FaultyFiles, PowerCut
from tests.replica_manager.logs.cleaning.cleaned import (
    COMPACTED,
    clean,
    cleaning_of,
    fill,
    latest_values,
    records_of_log,
)
from tests.replica_manager.logs.disk.opened import loaded, opened, reopened


def test_each_key_keeps_its_last_record_at_its_offset(tmp_path: Path) -> None:
    log = opened(tmp_path, COMPACTED)
    fill(log)
    before, end, active = records_of_log(log), log.log_end_offset, log.active.base_offset
    assert clean(log) == active
    after = records_of_log(log)
    assert latest_values(after) == latest_values(before)
    assert set(after) < set(before)
    below = [key for offset, _, key, _ in after if offset < active]
    assert len(below) == len({*below})
    assert log.log_end_offset == end
    again = reopened(log, tmp_path)
    assert records_of_log(again) == after
    assert again.log_end_offset == end


def test_several_passes_come_to_the_same_where_the_map_is_small(tmp_path: Path) -> None:
    one, many = opened(tmp_path / "one", COMPACTED), opened(tmp_path / "many", COMPACTED)
    for log in (one, many):
        fill(log, keys=8)
    clean(one)
    to, passes = 0, 0
    while to < many.active.base_offset:
        to, passes = clean(many, cleaned_to=to, slots=4), passes + 1
    assert passes > 2
    assert latest_values(records_of_log(many)) == latest_values(records_of_log(one))
    for log in (one, many):
        clean(log, cleaned_to=0)
    assert [record[0] for record in records_of_log(many)] == [record[0] for record in records_of_log(one)]


def test_the_smallest_map_takes_a_record_at_least(tmp_path: Path) -> None:
    log = opened(tmp_path, COMPACTED)
    fill(log)
    assert clean(log, slots=0) == 1


def test_a_log_that_loses_its_dirty_segments_by_retention_is_left_as_it_is(tmp_path: Path) -> None:
    log = opened(tmp_path, attrs.evolve(COMPACTED, cleanup_policy=("compact", "delete"), retention_bytes=0))
    fill(log)
    cleaning = cleaning_of(log)
    log.delete_old_segments()
    with pytest.raises(CleaningAbortedError):
        list(cleaning.steps())


@pytest.mark.parametrize("steps", range(7))
@pytest.mark.parametrize("change", ["truncated", "begun anew", "deleted"])
def test_a_log_that_changes_is_left_as_it_is(tmp_path: Path, change: str, steps: int) -> None:
    there = [True]
    log = opened(tmp_path, COMPACTED)
    fill(log, count=20)
    cleaning = cleaning_of(log, is_there=lambda: there[0])
    taken = cleaning.steps()
    assert all(next(taken, None) is not None for _ in range(steps))
    if change == "truncated":
        log.truncate_to(log.segments[1].base_offset + 1)
    elif change == "begun anew":
        log.truncate_fully_and_start_at(5)
    else:
        there[0] = False
    held = records_of_log(log)
    with pytest.raises(CleaningAbortedError):
        list(taken)
    assert records_of_log(log) == held
    assert not list((tmp_path / "foo-0").glob("*.cleaned"))


@pytest.mark.parametrize("releases", range(1, 28))
def test_nothing_is_written_to_a_log_that_is_deleted_as_soon_as_its_lock_is_free(tmp_path: Path, releases: int) -> None:
    log, left = opened(tmp_path, COMPACTED), [releases]
    fill(log, count=6)
    for id_ in range(7, 12):  # each leaves an entry of an index, which is opened where the first one is found
        log.append_as_leader(keyed((b"k1", b"v"), producer=id_, transactional=True, sequence=0), 0)
        log.append_as_leader(marker(id_, commit=False), 0, AppendOrigin.COORDINATOR)
    fill(log, count=6)

    @contextmanager
    def guard() -> Iterator[None]:
        yield
        left[0] -= 1
        if not left[0]:
            log.move_to(f"{log.folder}.gone-delete")

    cleaning = cleaning_of(log, is_there=lambda: left[0] > 0, guard=guard)
    with pytest.raises(CleaningAbortedError):
        list(cleaning.steps())  # and not by an error of the files, which would take their directory offline


def test_a_cleaning_that_is_given_up_leaves_its_files_to_the_next_process(tmp_path: Path) -> None:
    log = opened(tmp_path, COMPACTED)
    fill(log)
    steps = cleaning_of(log).steps()
    while not (found := [*tmp_path.rglob("*.log.cleaned")]):
        next(steps)
    found[0].write_bytes(b"of the next process")
    steps.close()
    assert found[0].read_bytes() == b"of the next process"


def test_a_damaged_batch_ends_the_cleaning_and_stays(tmp_path: Path) -> None:
    log = opened(tmp_path, COMPACTED)
    fill(log)
    file = Path(log.segments[1].path(".log"))
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(CorruptRecordError, match="fails its checksum"):
        clean(log)
    assert file.read_bytes() == data
    assert not list((tmp_path / "foo-0").glob("*.cleaned"))


def test_no_record_is_lost_when_the_power_is_cut_at_any_call() -> None:
    calls, cut = 0, True
    while cut:
        files = FaultyFiles(Random(calls))
        log = loaded(files, COMPACTED)
        fill(log, count=14, keys=4)
        log.flush()
        before, end = records_of_log(log), log.log_end_offset
        files.cut_after, cut = calls, False
        try:
            clean(log)
        except PowerCut:
            cut = True
        files.power_cut()
        with without_logs():
            again = loaded(files, COMPACTED, stored=StoredState(recovery_point=end))
        after = records_of_log(again)
        assert again.log_end_offset == end
        assert set(after) <= set(before)
        assert latest_values(after) == latest_values(before)
        calls += 1
    assert calls > 60
