"""The changes of a log, one by one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import kraftlake
from kraftlake.image.diff import diff_images
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.records import metadata_records as r
from kraftlake.replay.queries.changes import LogChanges
from kraftlake.runtime.errors import OffsetError, ReplayError, UsageError
from tests.cli.made_logs import unreplayable_log
from tests.replay.made_logs import MadeLog, abort, begin, data, end, log_of, no_op, topic
from tests.replay.sample_logs import SAMPLES

LOG = SAMPLES / "kafka-4.4" / "log" / "__cluster_metadata-0"


def test_each_change_goes_on_from_the_image_after_the_one_before_and_the_last_is_the_logs_image() -> None:
    source = kraftlake.open(LOG)
    image = MetadataImage.EMPTY
    offset = -1
    for change in source.changes():
        assert change.offset > offset
        assert not diff_images(image, change.before).changes
        image, offset = change.image, change.offset
    assert not diff_images(image, source.image()).changes


def test_a_range_has_the_changes_that_the_whole_log_has_there() -> None:
    source = kraftlake.open(LOG)
    everything = [change.offset for change in source.changes()]
    for first, last in ((403, 458), (1, everything[300]), (5000, None)):
        within = [change.offset for change in source.changes(first, last)]
        assert within == [n for n in everything if first <= n <= (last or 5736)]


def test_a_range_that_cuts_a_batch_holds_what_lies_in_it() -> None:
    (change,) = kraftlake.open(LOG).changes(410, 440)
    assert (change.manifest.base_offset, change.offset) == (410, 440)
    assert not diff_images(change.image, kraftlake.open(LOG).image(440)).changes


def test_quiet_batches_are_no_change_and_count_in_the_image_before_the_next_one() -> None:
    log = MadeLog(records=tuple(log_of(1, [topic(1)], [r.NoOpRecord()], [r.NoOpRecord(), r.NoOpRecord()], [topic(2)])))
    changes = list(LogChanges(log))
    assert [change.offset for change in changes] == [0, 1, 5]
    assert changes[-1].before.provenance.offset == 4


def test_a_transaction_is_one_change_at_its_end_and_an_aborted_one_changes_nothing() -> None:
    batches = log_of(1, [begin(), topic(1)], [r.NoOpRecord()], [topic(2), end()], [begin(), topic(3)], [abort()])
    topics = {
        change.offset: set(change.image.topics.topics_by_name())
        for change in LogChanges(MadeLog(records=tuple(batches)))
    }
    assert topics == {0: set(), 5: {"topic-1", "topic-2"}, 8: {"topic-1", "topic-2"}}


def test_a_change_names_the_leader_elected_since_the_one_before() -> None:
    log = MadeLog(records=tuple(log_of(1, [topic(1)], 2, [topic(2)])))
    assert [(change.offset, change.elected) for change in LogChanges(log)] == [
        (0, 3000), (1, None), (2, 3000), (3, None),
    ]  # fmt: skip


def test_a_gap_in_the_log_is_named() -> None:
    log = MadeLog(records=(no_op(0), no_op(2), data(3, topic(1))))
    with pytest.raises(ReplayError, match="offset"):
        list(LogChanges(log))


def test_a_log_that_starts_above_0_begins_with_the_oldest_snapshot_that_covers_its_start(tmp_path: Path) -> None:
    cut = tmp_path / "__cluster_metadata-0"
    shutil.copytree(LOG, cut)
    for base in (0, 2027):
        (cut / f"{base:020d}.log").unlink()
    first, *others = kraftlake.open(cut).changes()
    assert (first.offset, first.of_snapshot) == (4592, True)
    assert [change.offset for change in others] == [change.offset for change in kraftlake.open(LOG).changes(4593)]
    with pytest.raises(OffsetError, match="4592"):
        kraftlake.open(cut).changes(None, 4000)


@pytest.mark.parametrize("wanted", [(5737, None), (0, 5737), (-1, 5)])
def test_an_offset_outside_the_log_is_refused(wanted: tuple[int, int | None]) -> None:
    with pytest.raises(OffsetError, match="0 to 5736"):
        kraftlake.open(LOG).changes(*wanted)


def test_a_range_that_runs_backwards_and_a_snapshot_file_are_refused() -> None:
    with pytest.raises(UsageError, match="backwards"):
        kraftlake.open(LOG).changes(9, 3)
    with pytest.raises(OffsetError, match="no changes"):
        kraftlake.open(LOG / "00000000000000004593-0000000002.checkpoint").changes()


def test_a_lenient_replay_lists_the_records_it_skipped(tmp_path: Path) -> None:
    changes = kraftlake.open(unreplayable_log(tmp_path)).changes(lenient=True)
    assert [change.offset for change in changes] == [0, 1, 2]
    assert [record.offset for record in changes.skipped] == [2]
