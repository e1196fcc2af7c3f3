from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.metadata_log import MetadataLog
from kraftlake.records.batch import RecordBatch
from kraftlake.records.rows import to_rows
from kraftlake.replay.loader.fold import image_at
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.runtime.errors import ReplayError
from kraftlake.tables.catch_up.batch_runs import BatchRun, bulk_batches
from kraftlake.tables.catch_up.log_fold import LogFold, TableFeed
from kraftlake.tables.table_writer import Published, TableWriter
from tests.replay.made_logs import begin, data, end, no_op, topic
from tests.tables.sample_log import sample_batches
from tests.tables.test_lake_table import MADE_UP


class Listening(TableWriter):
    """Notes which offsets were published."""

    description = MADE_UP

    def __init__(self) -> None:
        super().__init__()
        self.offsets: list[int] = []

    def publish(self, change: Published) -> None:
        self.offsets.append(change.offset)


def is_noop(batch: RecordBatch) -> bool:
    return not batch.control and all(value[1] == 20 for value in batch.values)


@given(first=st.integers(0, 300), count=st.integers(1, 300))
def test_runs_and_single_batches_are_the_rows_and_a_run_tells_its_batches_of_no_ops(first: int, count: int) -> None:
    batches = sample_batches()[first : first + count]
    held: list[RecordBatch] = []
    for part in bulk_batches(to_rows(batches), lambda: False):
        if not isinstance(part, BatchRun):
            held.append(part)
            continue
        assert part.begin == (held[-1].last_offset + 1 if held else batches[0].base_offset)
        for run, noop in part.split(part.noop):
            of_run = list(run.batches())
            assert {is_noop(batch) for batch in of_run} == {noop}
            assert len(run.ends) == len(of_run)
            last, provenance = of_run[-1], run.provenance
            assert (provenance.offset, provenance.epoch, provenance.timestamp) == (
                last.last_offset,
                last.epoch,
                last.timestamp,
            )
            held += of_run
    assert to_rows(held).equals(to_rows(batches))


def folded(log: MetadataLog) -> tuple[LogFold, list[int]]:
    listening = Listening()
    fold = LogFold(LakeReader(log), [TableFeed(listening, None)])
    fold.begin()
    for rows in log.batch_rows():
        for _ in fold.take(rows):
            pass
    return fold, listening.offsets


def test_no_ops_are_not_published_but_the_image_moves_on_over_them(tmp_path: Path) -> None:
    log = MetadataLog.create(tmp_path / "lake")
    log.append([data(0, topic(0)), *(no_op(offset) for offset in range(1, 50)), data(50, topic(1)), no_op(51)])
    fold, offsets = folded(log)
    assert offsets == [0, 50]
    assert fold.last_offset == log.end_offset - 1
    assert fold.image == image_at(LakeReader(log), log.end_offset - 1).image


def test_no_ops_within_a_transaction_wait_for_its_end(tmp_path: Path) -> None:
    log = MetadataLog.create(tmp_path / "lake")
    log.append([data(0, begin()), no_op(1), no_op(2), data(3, topic(0)), no_op(4), data(5, end())])
    fold, offsets = folded(log)
    assert offsets == [5]
    assert fold.image == image_at(LakeReader(log), 5).image


def test_an_epoch_that_goes_down_is_refused(tmp_path: Path) -> None:
    log = MetadataLog.create(tmp_path / "lake")
    log.append([data(0, topic(0), epoch=3)])
    fold, _ = folded(log)
    with pytest.raises(ReplayError, match="epoch 1"):
        list(fold.take(to_rows([no_op(1)])))
