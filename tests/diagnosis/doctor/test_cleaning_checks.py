"""Compacted logs that are not cleaned, by the files of a broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftlake.diagnosis.doctor.diagnosis import diagnose
from kraftlake.diagnosis.doctor.finding import Finding
from kraftlake.kafka_files.node.partition_files import offsets_content
from kraftlake.records.schema import Message
from kraftlake.replay.queries.source import LogSource
from kraftlake.replica_manager.logs.disk.disk_log import DiskPartitionLog
from kraftlake.replica_manager.logs.log_dirs import compare_log_dirs
from simulator.data_batches import keyed
from tests.diagnosis.doctor.made import BEGIN, HOUR, by_check, config, log_of, time_of
from tests.replica_manager.logs.cleaning.cleaned import COMPACTED, clean, records_of_log
from tests.replica_manager.logs.disk.opened import opened

COMPACT = config("cleanup.policy", "compact")
END = time_of(BEGIN)
"""The time of the image."""


def folder_with_logs(folder: Path, begin_ms: int) -> tuple[Path, DiskPartitionLog]:
    """A log directory of broker 2 with an empty foo-1, and a log foo-0 of a few segments, a batch a minute."""
    data = folder / "data"
    (data / "foo-1").mkdir(parents=True)
    (data / "meta.properties").write_text("version=1\ncluster.id=made\nnode.id=2\n")
    log = opened(data, COMPACTED)
    for number in range(40):
        times = (begin_ms + number * 60_000,) * 2
        log.append_as_leader(keyed((b"a", b"x" * 40), (b"k%d" % number, b"y"), times=times), 0)
    log.update_high_watermark(log.log_end_offset)
    log.roll()
    log.flush()
    return data, log


def found(folder: Path, data: Path, *befalls: Message) -> Finding | None:
    return by_check(diagnose(log_of(folder / "log", *befalls), log_dirs=[data])).get("uncleaned_logs")


def note_cleaned(data: Path, offset: int) -> None:
    (data / "cleaner-offset-checkpoint").write_bytes(offsets_content([("foo", 0, offset)]))


def test_a_log_that_was_never_cleaned_is_found_after_a_day(tmp_path: Path) -> None:
    data, log = folder_with_logs(tmp_path, END - 26 * HOUR)
    finding = found(tmp_path, data, COMPACT)
    assert finding is not None
    assert finding.sentence == "1 compacted log was not cleaned for more than a day"
    assert finding.things == (str(data / "foo-0"),)
    size = f"{log.size:,}"
    assert finding.groups[0].reason == (
        f"{size} of {size} bytes without the active segment are dirty, some for 1 d 2 h; no cleaning is known"
    )


@pytest.mark.parametrize(
    ("begin", "befalls"),
    [
        (26, ()),
        (23, (COMPACT,)),
        (26, (COMPACT, config("min.compaction.lag.ms", str(4 * HOUR)))),
        (26, (COMPACT, config("min.cleanable.dirty.ratio", "1.0"))),
    ],
    ids=["not compacted", "of today", "too new to be cleaned", "never dirty enough"],
)
def test_logs_that_are_not_due_are_no_finding(tmp_path: Path, begin: int, befalls: tuple[Message, ...]) -> None:
    data, _ = folder_with_logs(tmp_path, END - begin * HOUR)
    assert found(tmp_path, data, *befalls) is None


def test_a_log_that_has_to_be_cleaned_in_time_is_found_however_clean_it_is(tmp_path: Path) -> None:
    data, log = folder_with_logs(tmp_path, END - 40 * HOUR)
    last = log.segments[-2].base_offset
    note_cleaned(data, last)
    assert found(tmp_path / "clean enough", data, COMPACT) is None
    finding = found(tmp_path / "overdue", data, COMPACT, config("max.compaction.lag.ms", str(HOUR)))
    assert finding is not None
    assert f"; it was cleaned up to offset {last}" in finding.groups[0].reason


def test_a_log_that_was_cleaned_is_no_finding_and_a_checkpoint_that_is_damaged_is_none(tmp_path: Path) -> None:
    data, log = folder_with_logs(tmp_path, END - 26 * HOUR)
    before = len(records_of_log(log))
    to = clean(log)
    note_cleaned(data, to)
    image = LogSource.open(str(log_of(tmp_path / "image", COMPACT))).replay(None).image
    (shown, _) = compare_log_dirs(image, 2, [data]).compacted
    assert shown.to_json() == {
        "path": str(data / "foo-0"), "cleanedTo": to, "cleanBytes": log.size, "dirtyBytes": 0,
        "oldestDirtyTimestamp": None,
    }  # fmt: skip
    assert len(records_of_log(log)) < before
    assert found(tmp_path / "clean", data, COMPACT) is None
    (data / "cleaner-offset-checkpoint").write_text("no checkpoint")
    finding = found(tmp_path / "damaged", data, COMPACT)
    assert finding is not None
    assert finding.groups[0].reason.endswith("no cleaning is known")
