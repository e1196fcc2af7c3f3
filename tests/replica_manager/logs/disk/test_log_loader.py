"""What the loader of a log mends, and what it refuses."""

from __future__ import annotations

import errno
from pathlib import Path

import attrs
import pytest

from kraftlake.kafka_files.node.partition_files import LEADER_EPOCHS, leader_epochs_content, parse_leader_epochs
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.errors import (
    InconsistentTopicIdError,
    KafkaStorageError,
    UnsupportedForMessageFormatError,
)
from kraftlake.replica_manager.logs.disk.disk_log import DiskPartitionLog
from kraftlake.replica_manager.logs.disk.files import DiskFiles
from kraftlake.replica_manager.logs.disk.guarded_files import GuardedFiles
from kraftlake.replica_manager.logs.disk.log_loader import StoredState, load_log
from kraftlake.replica_manager.logs.disk.log_segment import OFFSET_ENTRY, TIME_ENTRY, TRANSACTION_ENTRY
from kraftlake.replica_manager.logs.disk.producer_snapshots import decode_snapshot
from kraftlake.replica_manager.logs.log_batch import LogBatch, log_batches
from kraftlake.replica_manager.logs.log_values import TimestampAndOffset
from kraftlake.runtime.clock import ManualClock
from kraftlake.runtime.errors import CorruptDataError
from simulator.data_batches import batch, marker, old_message
from simulator.faulty_files import Fault, FaultyFiles, Nothing
from tests.replica_manager.logs.disk.opened import CLEAN, CRASHED, PARTITION, SMALL, loaded, opened, reopened


def filled(folder: Path, count: int = 9) -> DiskPartitionLog:
    log = opened(folder)
    for number in range(count):
        log.append_as_leader(batch(b"x" * 100, times=(number,), producer=7, sequence=number), number // 4)
    return log


def held(log: DiskPartitionLog) -> list[LogBatch]:
    return list(log.batches)


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".snapshot"])
def test_lost_indexes_and_snapshots_are_made_again(tmp_path: Path, suffix: str) -> None:
    log = filled(tmp_path)
    before, segments = held(log), [(len(one.offsets), one.largest_timestamp) for one in log.segments]
    log.flush()
    log.close()
    for path in (tmp_path / "foo-0").glob(f"*{suffix}"):
        path.unlink()
    made = opened(tmp_path, stored=CLEAN)
    assert held(made) == before
    assert [(len(one.offsets), one.largest_timestamp) for one in made.segments] == segments
    assert made.producers.get(7) is not None
    assert made.offset_for_timestamp(1) == TimestampAndOffset(1, 1, 0)


@pytest.mark.parametrize("entry", [(1, -1), (1, 5), (1, 170), (1, 339), (1, 2**31 - 1), (-(2**31), 0), (0, 170)])
@pytest.mark.parametrize("base", [0, 2])
def test_an_entry_of_an_offset_index_is_used_for_the_batch_that_it_names_alone(
    tmp_path: Path, base: int, entry: tuple[int, int]
) -> None:
    log = filled(tmp_path)
    before = held(log)
    log.flush()
    log.close()
    (tmp_path / "foo-0" / f"{base:020d}.index").write_bytes(OFFSET_ENTRY.pack(*entry))
    made = opened(tmp_path, stored=CLEAN)
    assert held(made) == before
    segment = made.segments[made.segment_at(base)]
    assert [next(segment.batches_from(base + at)).last_offset for at in range(2)] == [base, base + 1]
    assert [made.offset_for_timestamp(at) for at in range(9)] == [
        TimestampAndOffset(at, at, at // 4) for at in range(9)
    ]


@pytest.mark.parametrize("entry", [(0, 1), (-5, 1), (0, 2**31 - 1)])
def test_an_entry_of_a_time_index_is_used_for_the_batch_that_it_names_alone(
    tmp_path: Path, entry: tuple[int, int]
) -> None:
    log = filled(tmp_path)
    log.flush()
    log.close()
    (tmp_path / "foo-0" / f"{2:020d}.timeindex").write_bytes(TIME_ENTRY.pack(*entry) + TIME_ENTRY.pack(3, 1))
    made = opened(tmp_path, stored=CLEAN)
    assert [made.offset_for_timestamp(at) for at in range(9)] == [
        TimestampAndOffset(at, at, at // 4) for at in range(9)
    ]


@pytest.mark.parametrize("more", [b"\0", b"\0" * 100, b"x" * 100], ids=["a byte", "zeros", "others"])
def test_bytes_behind_the_last_batch_of_a_log_that_was_closed_in_order_are_damage(tmp_path: Path, more: bytes) -> None:
    """What would be appended behind them could not be read."""
    log = filled(tmp_path)
    log.flush()
    log.close()
    with (tmp_path / "foo-0" / f"{8:020d}.log").open("ab") as file:
        file.write(more)
    with pytest.raises(CorruptDataError, match=r"0008\.log is damaged in what was durable"):
        opened(tmp_path, stored=CLEAN)


def test_a_transaction_index_of_another_log_is_made_again(tmp_path: Path) -> None:
    log = opened(tmp_path)
    log.append_as_leader(batch(b"y", producer=8, transactional=True), 0)
    log.append_as_leader(marker(8, commit=False), 0)
    (kept,) = log.active.aborted()
    log.flush()
    log.close()
    index = tmp_path / "foo-0" / f"{0:020d}.txnindex"
    whole = index.read_bytes()
    index.write_bytes(TRANSACTION_ENTRY.pack(0, 8, 5, 1, 7))
    made = opened(tmp_path, stored=CLEAN)
    assert [*made.active.aborted()] == [kept]
    assert index.read_bytes() == whole


def test_indexes_without_a_log_and_files_to_delete_go(tmp_path: Path) -> None:
    filled(tmp_path).close()
    folder = tmp_path / "foo-0"
    for name in (
        f"{99:020d}.index",
        f"{0:020d}.log.deleted",
        f"{4:020d}.log.cleaned",
        f"{4:020d}.index.swap",
        f"{9:020d}.snapshot.ab12.part",
        "leader-epoch-checkpoint.ab12.part",
    ):
        (folder / name).write_bytes(b"12345678")
    opened(tmp_path, stored=CLEAN)
    assert not [path for path in folder.iterdir() if path.read_bytes() == b"12345678"]


def test_an_exchange_by_the_cleaner_is_finished(tmp_path: Path) -> None:
    log = filled(tmp_path)
    bases = [one.base_offset for one in log.segments]
    assert bases[:3] == [0, 2, 4]
    log.flush()
    log.close()
    folder = tmp_path / "foo-0"
    cleaned = b"".join(one.data for one in held(opened(tmp_path, stored=CLEAN))[:4:3])
    (folder / f"{0:020d}.log.swap").write_bytes(cleaned)
    made = opened(tmp_path, stored=CLEAN)
    assert [one.base_offset for one in held(made)] == [0, 3, 4, 5, 6, 7, 8]
    assert [one.base_offset for one in made.segments] == [0, *bases[2:]]


def test_damage_below_the_recovery_point_is_refused(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.flush()
    log.close()
    first = tmp_path / "foo-0" / f"{0:020d}.log"
    data = bytearray(first.read_bytes())
    data[100] ^= 1
    first.write_bytes(data)
    (tmp_path / "foo-0" / f"{0:020d}.index").unlink()
    with pytest.raises(
        CorruptDataError, match=r"0\.log is damaged in what was durable: .* checksum\. Restore the file"
    ):
        opened(tmp_path, stored=StoredState(recovery_point=9))
    assert bytes(data) == first.read_bytes()


@pytest.mark.parametrize("stored", [CRASHED, CLEAN])
@pytest.mark.parametrize("size", [0, 100, 2_000_000])  # smaller than a header, and larger than what is read at once
@pytest.mark.parametrize("magic", [0, 1])
def test_a_log_of_an_older_format_is_refused_and_left_as_it_is(
    tmp_path: Path, stored: StoredState, size: int, magic: int
) -> None:
    folder = tmp_path / "foo-0"
    folder.mkdir()
    newer = next(log_batches(batch(b"x"))).placed(9, 1).data
    contents = {f"{0:020d}.log": old_message(b"x" * size, magic=magic), f"{9:020d}.log": newer}
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    with pytest.raises(
        UnsupportedForMessageFormatError, match=rf"0\.log is too old: .* offset 0 have format {magic}, "
    ):
        opened(tmp_path, stored=stored)
    assert {path.name: path.read_bytes() for path in folder.glob("*.log*")} == contents


@pytest.mark.parametrize("size", [0, 100, 2_000_000])  # smaller than a header, and larger than what is read at once
def test_records_of_an_older_format_behind_newer_ones_are_not_cut_off(tmp_path: Path, size: int) -> None:
    log = opened(tmp_path)
    for _ in range(3):
        log.append_as_leader(batch(b"x"), 0)
    log.close_files()
    path = tmp_path / "foo-0" / f"{0:020d}.log"
    content = path.read_bytes() + old_message(b"x" * size, offset=3)
    path.write_bytes(content)
    with pytest.raises(UnsupportedForMessageFormatError, match=r"0\.log is too old: .* offset 3 have format 1, "):
        opened(tmp_path)
    assert path.read_bytes() == content


def test_what_only_looks_like_an_older_format_is_damage(tmp_path: Path) -> None:
    log = opened(tmp_path)
    log.append_as_leader(batch(b"x"), 0)
    log.close_files()
    path = tmp_path / "foo-0" / f"{0:020d}.log"
    whole = path.read_bytes()
    message = old_message(b"x" * 100, offset=1)
    for torn in (message[:-1], message[:-1] + b"y", bytes(len(message))):
        path.write_bytes(whole + torn)
        opened(tmp_path).close_files()
        assert path.read_bytes() == whole


@pytest.mark.parametrize(
    ("held_epochs", "stale", "recovery_point"),
    [
        ([3] * 10 + [4] * 6 + [6] * 2, [(3, 0), (5, 10), (6, 16)], 10),
        ([3] * 16 + [6] * 2, [(3, 0), (4, 9)], 9),
        ([3] * 16 + [6] * 2, [(3, 0), (4, 9), (5, 17)], 9),
        ([3] * 18, [(3, 0), (4, 16)], 16),
        ([3] * 2 + [4] * 16, [(3, 0), (4, 2), (5, 10)], 10),  # epoch 4 starts in a segment that is durable
        ([3] * 2 + [4] * 16, [(3, 0), (4, 2), (5, 18)], 18),
    ],
)
def test_epochs_of_records_that_were_removed_do_not_come_back(
    tmp_path: Path, held_epochs: list[int], stale: list[tuple[int, int]], recovery_point: int
) -> None:
    log = opened(tmp_path)
    for epoch in held_epochs:
        log.append_as_leader(batch(b"x"), epoch)
    before = log.epochs
    log.flush()
    log.close_files()
    (tmp_path / "foo-0" / LEADER_EPOCHS).write_bytes(leader_epochs_content(stale))
    again = opened(tmp_path, stored=StoredState(recovery_point=recovery_point))
    assert [segment.base_offset for segment in again.segments] == [0, 7, 14]
    assert again.epochs == before == list(parse_leader_epochs((tmp_path / "foo-0" / LEADER_EPOCHS).read_bytes()))


@pytest.mark.parametrize("recovery_point", [0, 9])
def test_a_batch_whose_offset_does_not_follow_is_damage(tmp_path: Path, recovery_point: int) -> None:
    log = filled(tmp_path)
    log.flush()
    log.close_files()
    first = tmp_path / "foo-0" / f"{0:020d}.log"
    data = bytearray(first.read_bytes())
    data[170:178] = bytes(8)  # that of the second batch: no checksum covers it
    first.write_bytes(data)
    (tmp_path / "foo-0" / f"{0:020d}.index").unlink()
    stored = StoredState(recovery_point=recovery_point)
    if recovery_point:
        with pytest.raises(CorruptDataError, match=r"0\.log is damaged in what was durable: .* offset 0 is no"):
            opened(tmp_path, stored=stored)
    else:
        made = opened(tmp_path, stored=stored)
        assert (made.log_end_offset, len(held(made))) == (1, 1)


def test_damage_above_the_recovery_point_cuts_the_log_there(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.close_files()
    first = tmp_path / "foo-0" / f"{2:020d}.log"
    data = bytearray(first.read_bytes())
    data[-1] ^= 1
    first.write_bytes(data)
    made = opened(tmp_path, stored=StoredState(recovery_point=1))
    assert (made.log_end_offset, len(held(made)), made.recovery_point) == (3, 3, 3)
    assert made.epochs == [(0, 0)]
    state = made.producers.get(7)
    assert state is not None
    assert state.last_sequence == 2


def test_a_log_that_ends_before_its_start_begins_there(tmp_path: Path) -> None:
    filled(tmp_path).close()
    made = opened(tmp_path, stored=StoredState(clean=True, log_start_offset=20))
    assert (made.log_start_offset, made.log_end_offset, held(made)) == (20, 20, [])
    assert made.append_as_leader(batch(b"y"), 3).first_offset == 20


def test_another_topics_folder_is_refused(tmp_path: Path) -> None:
    filled(tmp_path).close()
    with pytest.raises(InconsistentTopicIdError, match="is of topic id"):
        load_log(DiskFiles(), str(tmp_path), PARTITION, SMALL, ManualClock(), topic_id=Uuid.from_string("A" * 21 + "Q"))


def test_damaged_files_of_text_are_named(tmp_path: Path) -> None:
    filled(tmp_path).close()
    (tmp_path / "foo-0" / "leader-epoch-checkpoint").write_text("0\n1\nx y\n")
    with pytest.raises(CorruptDataError, match=r"foo-0/leader-epoch-checkpoint has the line 'x y'"):
        opened(tmp_path)


def test_a_damaged_snapshot_of_producers_is_not_used(tmp_path: Path) -> None:
    log = filled(tmp_path)
    state = log.producers.get(7)
    assert state is not None
    log.flush()
    log.close()
    (last := max((tmp_path / "foo-0").glob("*.snapshot"))).write_bytes(b"\0\1garbage, and more of it")
    made = opened(tmp_path, stored=CLEAN).producers.get(7)
    assert made is not None
    assert made.last_sequence == state.last_sequence
    (written_again,) = decode_snapshot(last.read_bytes())
    assert (written_again.producer_id, written_again.last_sequence) == (7, state.last_sequence)


def test_a_failed_call_takes_the_directory_offline(tmp_path: Path) -> None:
    class Full(DiskFiles):
        full = False

        def write_whole(self, path: str, data: bytes, *, sync_name: bool = True) -> None:
            if self.full:
                raise OSError(errno.ENOSPC, "No space left on device")
            super().write_whole(path, data, sync_name=sync_name)

    failed: list[tuple[str, int | None]] = []
    disk = Full()
    files = GuardedFiles(disk, str(tmp_path), lambda directory, error: failed.append((directory, error.errno)))
    log = opened(tmp_path, files=files)
    log.append_as_leader(batch(b"x"), 0)
    disk.full = True
    with pytest.raises(KafkaStorageError, match=r"can't be written: No space left on device\. The log directory .* is"):
        log.append_as_leader(batch(b"x"), 1)
    assert failed == [(str(tmp_path), errno.ENOSPC)]
    assert len(held(reopened(log, tmp_path, clean=False))) == 1


@pytest.mark.parametrize("kept", [0, 170, 400])
def test_zeros_that_a_power_cut_leaves_are_cut_off(tmp_path: Path, kept: int) -> None:
    log = opened(tmp_path, attrs.evolve(SMALL, segment_bytes=1_500, index_interval_bytes=0))
    for number in range(12):
        log.append_as_leader(batch(b"x" * 100, times=(number,), producer=7, sequence=number), 0)
    base = log.active.base_offset
    log.close_files()
    last = tmp_path / "foo-0" / f"{base:020d}.log"
    data = last.read_bytes()
    last.write_bytes(data[:kept] + bytes(len(data) - kept))
    made = opened(tmp_path, stored=StoredState(recovery_point=base))
    assert base == 8
    assert made.log_end_offset == base + kept // 170
    assert [one.base_offset for one in held(made)] == [*range(made.log_end_offset)]


def test_what_a_kill_has_cut_off_does_not_come_back_with_a_power_cut() -> None:
    files = FaultyFiles(Nothing())
    log = loaded(files)
    for _ in range(2):
        log.append_as_leader(batch(b"x" * 100), 0)
    log.flush()
    log.active.log.truncate(log.segments[0].size // 2)
    files.restart()
    assert loaded(files).log_end_offset == 1
    files.power_cut()
    assert loaded(files).log_end_offset == 1


def test_indexes_that_are_made_again_are_durable() -> None:
    files = FaultyFiles(Nothing())
    log = loaded(files)
    for number in range(9):
        log.append_as_leader(batch(b"x" * 100, times=(number,)), 0)
    log.flush()
    files.delete(log.segments[0].path(".timeindex"))
    files.delete(log.segments[0].path(".index"))
    files.sync_folder("d/foo-0")
    stored = StoredState(recovery_point=9)
    files.restart()
    loaded(files, stored=stored).flush()
    files.power_cut()
    assert loaded(files, stored=stored).segments[0].largest_timestamp == 1


def test_no_call_is_made_after_a_failed_one() -> None:
    disk = FaultyFiles(Nothing())
    failed: list[str] = []
    files = GuardedFiles(disk, "d", lambda directory, _: failed.append(directory))
    log = loaded(files)
    log.append_as_leader(batch(b"x"), 0)
    disk.faults = [Fault("d", errno.EIO)]
    with pytest.raises(KafkaStorageError, match="can't be made durable"):
        log.flush()
    disk.faults.clear()
    for call in (log.flush, lambda: log.append_as_leader(batch(b"x"), 0)):
        with pytest.raises(KafkaStorageError, match="the log directory d is offline"):
            call()
    log.close_files()
    assert (failed, log.recovery_point) == (["d"], 0)
