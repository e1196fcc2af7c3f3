"""A broker's log directories: restarts, crashes, failures, moves, strays and deletions."""

from __future__ import annotations

import errno
from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import Any

import pytest

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.kafka_files.node.broker_directory import read_broker_directory
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.errors import InconsistentTopicIdError, KafkaStorageError
from kraftlake.replica_manager.logs.disk.disk_log import DiskPartitionLog
from kraftlake.replica_manager.logs.disk.disk_log_manager import DiskLogManager, open_log_manager
from kraftlake.replica_manager.logs.disk.files import DiskFiles, Files
from kraftlake.replica_manager.logs.disk.log_directory import LOG_STARTS, RECOVERY_POINTS
from kraftlake.replica_manager.logs.log_config import LogConfig
from kraftlake.runtime.clock import ManualClock
from kraftlake.runtime.errors import CorruptDataError, UsageError
from simulator.data_batches import batch
from simulator.faulty_files import READ, SYNC, WRITE, Fault, FaultyFiles, Nothing
from tests.replica_manager.brokers import BAR, FOO

CLUSTER = "cluster-1"
FOO_0, FOO_1, BAR_0 = TopicPartition("foo", 0), TopicPartition("foo", 1), TopicPartition("bar", 0)
IDS = {"foo": FOO, "bar": BAR}


class Broker:
    """A log manager over two directories, started again and again."""

    def __init__(self, folder: Path, seed: int = 1) -> None:
        self.folder = folder
        self.clock = ManualClock(1_000)
        self.files: Files = DiskFiles()
        self.configs: dict[str, dict[str, str]] = {}
        self.failed: list[str] = []
        self.seed = seed
        self.strays: set[Uuid | None] = set()

    @property
    def paths(self) -> list[str]:
        return [str(self.folder / "a"), str(self.folder / "b")]

    def open(self, **other: Any) -> DiskLogManager:
        """Without its logs."""
        self.seed += 1
        options: dict[str, Any] = {
            "cluster_id": CLUSTER, "node_id": 1, "clock": self.clock, "defaults": LogConfig(file_delete_delay_ms=100),
            "topic_configs": lambda topic: self.configs.get(topic, {}), "files": self.files,
            "on_failure": lambda path, _: self.failed.append(path), "random": Random(self.seed), **other,
        }  # fmt: skip
        return open_log_manager(self.paths, **options)

    def start(self, **other: Any) -> DiskLogManager:
        manager = self.open(**other)
        manager.startup([], lambda topic_id, _: topic_id in self.strays)
        return manager


@pytest.fixture
def broker(tmp_path: Path) -> Broker:
    return Broker(tmp_path)


def log_of(manager: DiskLogManager, name: TopicPartition, records: int = 0, **other: Any) -> DiskPartitionLog:
    options = {"is_new": True, "is_future": False, "topic_id": IDS[name.topic], "target_directory_id": None, **other}
    log = manager.get_or_create_log(name, **options)
    for _ in range(records):
        log.append_as_leader(batch(b"x"), 0)
    return log


def folders(broker: Broker) -> list[str]:
    """The partitions' folders of both directories, without what makes names unique."""
    found = [path for name in broker.paths for path in Path(name).iterdir() if path.is_dir()]
    return sorted(
        f"{path.parent.name}/{path.name.split('.')[0]}{'-' + path.name.rpartition('-')[2] if '.' in path.name else ''}"
        for path in found
    )


def test_logs_are_spread_over_the_directories_and_found_again(broker: Broker) -> None:
    manager = broker.start()
    for name, records in ((FOO_0, 3), (FOO_1, 2), (BAR_0, 1)):
        log_of(manager, name, records).update_high_watermark(1)
    assert folders(broker) == ["a/bar-0", "a/foo-0", "b/foo-1"]
    ids = dict(manager.directories)
    for path in broker.paths:
        held = {name: log.high_watermark for name, log in manager.logs().items() if log.directory == path}
        manager.write_high_watermarks(path, held)
    manager.shutdown(broker_epoch=7)
    seen = read_broker_directory(Path(broker.paths[0]))
    assert (seen.cluster_id, seen.node_id, seen.directory_id, seen.clean_epoch) == (CLUSTER, 1, ids[broker.paths[0]], 7)
    assert [(replica.name, replica.end_offset) for replica in seen.replicas] == [("bar-0", 1), ("foo-0", 3)]
    again = broker.start()
    assert again.directories == ids
    assert {name: log.log_end_offset for name, log in again.logs().items()} == {FOO_0: 3, FOO_1: 2, BAR_0: 1}
    assert again.checkpointed_high_watermark(broker.paths[0], FOO_0) == 1
    assert log_of(again, FOO_0).topic_id == FOO
    again.abandon()


def test_a_killed_broker_checks_what_is_behind_its_recovery_points(broker: Broker) -> None:
    manager = broker.start()
    log = log_of(manager, FOO_0, 3)
    log.flush()
    manager.checkpoint()
    log_of(manager, FOO_0, 2)
    manager.abandon()
    file = Path(log.folder) / f"{0:020d}.log"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    again = broker.start()
    (found,) = again.logs().values()
    assert (found.log_end_offset, found.recovery_point) == (4, 4)
    again.shutdown(broker_epoch=1)
    clean = broker.start()
    assert clean.logs()[FOO_0].recovery_point == 4
    clean.abandon()


def test_the_log_start_offset_outlives_a_restart(broker: Broker) -> None:
    manager = broker.start()
    log = log_of(manager, FOO_0, 5)
    log.update_high_watermark(5)
    log.maybe_increment_log_start_offset(2)
    manager.checkpoint()
    manager.abandon()
    again = broker.start()
    assert again.logs()[FOO_0].log_start_offset == 2
    again.abandon()


def test_a_checkpoint_before_all_logs_are_loaded_forgets_none(broker: Broker) -> None:
    manager = broker.start()
    for name in (FOO_0, FOO_1, BAR_0):
        log = log_of(manager, name, 5)
        log.update_high_watermark(5)
        log.maybe_increment_log_start_offset(2)
        log.flush()
    manager.checkpoint()
    manager.abandon()
    again = broker.open()
    again.checkpoint()
    again.abandon()

    third = broker.open()

    def is_stray(*_: object) -> bool:
        third.checkpoint()
        return False

    third.startup([], is_stray)
    third.abandon()
    last = broker.start()
    assert {name: log.log_start_offset for name, log in last.logs().items()} == {FOO_0: 2, FOO_1: 2, BAR_0: 2}
    for path in broker.paths:
        held = {name: 5 for name, log in last.logs().items() if log.directory == path}
        assert last._opened[path].offsets(RECOVERY_POINTS) == held
    last.abandon()


def test_a_deleted_log_is_renamed_at_once_and_goes_later(broker: Broker) -> None:
    manager = broker.start()
    log_of(manager, FOO_0, 1)
    errors: dict[TopicPartition, Exception] = {}
    manager.delete_logs([FOO_0], errors.__setitem__)
    assert folders(broker) == ["a/foo-0-delete"]
    log = log_of(manager, FOO_0, 1)
    log.truncate_fully_and_start_at(5)
    manager.delete_files()
    assert len(folders(broker)) == 2
    assert any(name.endswith(".deleted") for name in log.files.names(log.folder))
    broker.clock.advance(100)
    manager.delete_files()
    assert not any(name.endswith(".deleted") for name in log.files.names(log.folder))
    assert (folders(broker), errors) == (["a/foo-0"], {})
    manager.delete_logs([FOO_0], errors.__setitem__)
    manager.abandon()
    broker.start().abandon()
    assert folders(broker) == []


def test_a_replica_moves_to_another_directory(broker: Broker) -> None:
    manager = broker.start()
    log_of(manager, FOO_0, 2).update_high_watermark(2)
    manager.prefer_directory(FOO_0, broker.paths[1])
    future = log_of(manager, FOO_0, 2, is_future=True)
    assert folders(broker) == ["a/foo-0", "b/foo-0-future"]
    future.flush()
    manager.abandon()
    manager = broker.start()
    assert (manager.get_log(FOO_0), manager.get_log(FOO_0, is_future=True)) != (None, None)
    manager.replace_current_with_future(FOO_0)
    assert folders(broker) == ["a/foo-0-delete", "b/foo-0"]
    log = manager.get_log(FOO_0)
    assert log is not None
    assert log.append_as_leader(batch(b"y"), 0).first_offset == 2
    manager.shutdown(broker_epoch=1)
    again = broker.start()
    assert (folders(broker), again.logs()[FOO_0].log_end_offset) == (["b/foo-0"], 3)
    again.abandon()


def test_two_logs_of_one_replica_are_refused(broker: Broker) -> None:
    manager = broker.start()
    log_of(manager, FOO_0, 1)
    log_of(manager, FOO_1, 1)
    manager.abandon()
    (broker.folder / "b" / "foo-1").rename(broker.folder / "b" / "foo-0")
    with pytest.raises(CorruptDataError, match=r"b/foo-0 and .*a/foo-0 are logs of one replica"):
        broker.start()


def test_strays_are_set_aside_and_never_deleted(broker: Broker) -> None:
    manager = broker.start()
    log_of(manager, FOO_0, 1)
    manager.abandon()
    broker.strays = {FOO}
    manager = broker.start()
    assert (manager.logs(), folders(broker)) == ({}, ["a/foo-0-stray"])
    manager.abandon()
    again = broker.start()
    assert [Path(folder).parent.name for folder in again.stray_folders] == ["a"]
    assert folders(broker) == ["a/foo-0-stray"]
    again.abandon()


def test_a_failed_directory_goes_offline_and_the_others_go_on(broker: Broker) -> None:
    class Failing(DiskFiles):
        under = "/nowhere"

        def open(self, path: str) -> Any:
            if path.startswith(self.under):
                raise OSError(errno.EIO, "Input/output error")
            return super().open(path)

    broker.files = files = Failing()
    manager = broker.start()
    log_of(manager, FOO_0, 1)
    log_of(manager, FOO_1, 1)
    files.under = broker.paths[0]
    log = manager.get_log(FOO_0)
    assert log is not None
    with pytest.raises(KafkaStorageError, match="Input/output error"):
        log.roll()
    assert broker.failed == [broker.paths[0]]
    assert list(manager.directories) == [broker.paths[1]]
    with pytest.raises(KafkaStorageError, match="offline"):
        log_of(manager, FOO_0)
    with pytest.raises(KafkaStorageError, match="it may lie in"):
        log_of(manager, BAR_0, is_new=False)
    log_of(manager, FOO_1, 1)
    manager.checkpoint()
    manager.clean_logs()
    manager.shutdown(broker_epoch=1)
    broker.failed.clear()
    again = broker.start()
    assert (list(again.directories), broker.failed) == ([broker.paths[1]], [broker.paths[0]])
    assert again.logs()[FOO_1].log_end_offset == 2
    again.abandon()


def test_a_directory_of_another_broker_or_of_a_running_one_is_refused(broker: Broker) -> None:
    manager = broker.start()
    manager.abandon()
    for other in ({"cluster_id": "else"}, {"node_id": 2}):
        with pytest.raises(UsageError, match=r"a/meta\.properties is of (cluster|node) .*, not (else|2)"):
            broker.start(**other)


def test_the_folders_that_a_new_directory_lies_in_are_made(tmp_path: Path) -> None:
    broker = Broker(tmp_path / "disk" / "kafka")
    assert list(broker.start().directories) == broker.paths
    assert not broker.failed


def test_changed_topic_configs_reach_the_logs_at_once(broker: Broker) -> None:
    manager = broker.start()
    log = log_of(manager, FOO_0, 1)
    manager.update_topic_config("foo", {"segment.bytes": "80", "min.insync.replicas": "2"})
    log_of(manager, FOO_0, 1)
    assert (len(log.segments), log.config.min_insync_replicas) == (2, 2)
    manager.abandon()


@pytest.fixture
def files() -> FaultyFiles:
    return FaultyFiles(Nothing())


@pytest.fixture
def faulty(files: FaultyFiles) -> Broker:
    """A broker on files of which a power cut leaves what was synced only."""
    broker = Broker(Path())
    broker.files = files
    return broker


def test_new_directories_and_what_is_durable_in_them_outlive_a_power_cut(faulty: Broker, files: FaultyFiles) -> None:
    log_of(faulty.start(), FOO_0, 3).flush()
    files.power_cut()
    found = faulty.start().logs()[FOO_0]
    assert (found.log_end_offset, found.topic_id, found.epochs) == (3, FOO, [(0, 0)])


def test_a_log_of_a_killed_broker_is_durable_with_its_next_flush(faulty: Broker, files: FaultyFiles) -> None:
    log_of(faulty.start(), FOO_0, 3)
    files.restart()
    faulty.start().logs()[FOO_0].flush()
    files.power_cut()
    found = faulty.start().logs()[FOO_0]
    assert (found.log_end_offset, found.topic_id, found.epochs) == (3, FOO, [(0, 0)])


def test_of_a_log_without_anything_durable_a_power_cut_leaves_none(faulty: Broker, files: FaultyFiles) -> None:
    log_of(faulty.start(), FOO_0, 3)
    files.power_cut()
    manager = faulty.start()
    assert FOO_0 not in manager.logs()
    assert log_of(manager, FOO_0, 1).log_end_offset == 1


def test_a_lower_recovery_point_is_written_before_records_are_removed(faulty: Broker, files: FaultyFiles) -> None:
    manager = faulty.start()
    log = log_of(manager, FOO_0, 3)
    log.flush()
    manager.checkpoint()
    log.truncate_to(1)
    assert b"foo 0 1" in files.content(f"a/{RECOVERY_POINTS}")
    log_of(manager, FOO_0, 3).flush()
    manager.checkpoint()
    log.truncate_fully_and_start_at(3)
    assert b"foo 0 3" in files.content(f"a/{RECOVERY_POINTS}")


def test_checkpoints_of_a_deleted_log_do_not_hold_for_the_next_one(faulty: Broker, files: FaultyFiles) -> None:
    manager = faulty.start()
    log = log_of(manager, FOO_0, 9)
    log.flush()
    log.update_high_watermark(9)
    log.maybe_increment_log_start_offset(7)
    manager.checkpoint()
    manager.write_high_watermarks("a", {FOO_0: 9})
    manager.delete_logs([FOO_0], lambda *_: None)
    log_of(manager, FOO_0, 3)
    files.restart()
    again = faulty.start()
    found = again.logs()[FOO_0]
    assert (found.log_start_offset, found.log_end_offset) == (0, 3)
    assert again.checkpointed_high_watermark("a", FOO_0) is None


def test_checkpoints_of_a_stray_do_not_hold_for_the_next_log(faulty: Broker, files: FaultyFiles) -> None:
    manager = faulty.start()
    log = log_of(manager, FOO_0, 9)
    log.update_high_watermark(9)
    log.maybe_increment_log_start_offset(7)
    manager.checkpoint()
    manager.write_high_watermarks("a", {FOO_0: 9})
    files.restart()
    faulty.strays = {FOO}
    log_of(faulty.start(), FOO_0, 3)
    faulty.strays.clear()
    files.restart()
    again = faulty.start()
    assert (again.logs()[FOO_0].log_start_offset, again.logs()[FOO_0].log_end_offset) == (0, 3)
    assert again.checkpointed_high_watermark("a", FOO_0) is None


def test_a_log_that_begins_anew_at_an_earlier_offset_does_so_after_a_kill(faulty: Broker, files: FaultyFiles) -> None:
    manager = faulty.start()
    log = log_of(manager, FOO_0, 9)
    log.update_high_watermark(9)
    log.maybe_increment_log_start_offset(7)
    manager.checkpoint()
    log.truncate_fully_and_start_at(2)
    log_of(manager, FOO_0, 1)
    files.restart()
    found = faulty.start().logs()[FOO_0]
    assert (found.log_start_offset, found.log_end_offset) == (2, 3)


def test_a_checkpoint_may_be_written_while_a_log_begins_anew(broker: Broker) -> None:
    class Busy(DiskFiles):
        """Another thread writes the checkpoint each time that a folder is made durable."""

        def sync_folder(self, folder: str) -> None:
            super().sync_folder(folder)
            if folder.endswith("foo-0"):
                manager.checkpoint()

    manager = broker.start()
    log = log_of(manager, FOO_0, 9)
    log.files = Busy()
    log.truncate_fully_and_start_at(20)
    starts = broker.folder / "a" / LOG_STARTS
    assert "foo 0 20" in starts.read_text()
    manager.checkpoint()
    assert "foo" not in starts.read_text()


def test_an_older_checkpoint_does_not_replace_a_newer_one(broker: Broker) -> None:
    class Slow(DiskFiles):
        """The first checkpoint is written slowly; meanwhile a fetcher truncates."""

        def write_whole(self, path: str, data: bytes, *, sync_name: bool = True) -> None:
            if path.endswith(RECOVERY_POINTS) and not is_writing.is_set():
                is_writing.set()
                is_truncated.wait(0.2)
            super().write_whole(path, data, sync_name=sync_name)

    def truncate() -> None:
        is_writing.wait()
        log.truncate_to(1)
        is_truncated.set()

    is_writing, is_truncated = Event(), Event()
    broker.files = Slow()
    manager = broker.start()
    log = log_of(manager, FOO_0, 3)
    log.flush()
    is_writing.clear()
    fetcher = Thread(target=truncate)
    fetcher.start()
    manager.checkpoint()
    fetcher.join()
    assert "foo 0 1" in (broker.folder / "a" / RECOVERY_POINTS).read_text()


def test_no_log_is_made_in_a_preferred_directory_that_has_failed(broker: Broker) -> None:
    manager = broker.start()
    manager.prefer_directory(FOO_0, broker.paths[0])
    manager.handle_log_dir_failure(broker.paths[0])
    with pytest.raises(KafkaStorageError, match=r"No log of foo-0 is made in .*/a, which is offline"):
        log_of(manager, FOO_0)


def test_a_log_of_another_topic_is_not_given(broker: Broker) -> None:
    manager = broker.start()
    log_of(manager, FOO_0)
    with pytest.raises(InconsistentTopicIdError, match="is of topic id"):
        log_of(manager, FOO_0, topic_id=BAR)


@pytest.mark.parametrize("name", [f"{LOG_STARTS}.ab12.part", ".kafka_cleanshutdown.ab12.part"])
def test_what_a_killed_broker_was_writing_goes(broker: Broker, name: str) -> None:
    manager = broker.start()
    manager.shutdown(broker_epoch=1)
    folder = broker.folder / "a"
    for left in (name, "another.part"):
        (folder / left).write_text("half")
    broker.start()
    assert [path.name for path in folder.glob("*.part")] == ["another.part"]


def test_a_shutdown_in_order_counts_until_the_logs_are_loaded(broker: Broker) -> None:
    manager = broker.start()
    log_of(manager, FOO_0, 3)
    manager.shutdown(broker_epoch=7)
    for _ in range(2):  # as when no controller is there
        waiting = broker.open()
        assert waiting.previous_broker_epoch == 7
        waiting.abandon()
    loaded = broker.start()
    assert (loaded.previous_broker_epoch, loaded.logs()[FOO_0].log_end_offset) == (7, 3)
    loaded.abandon()
    assert broker.open().previous_broker_epoch == -1


def test_a_broker_that_ends_in_order_before_it_loads_its_logs_leaves_them_as_they_were(broker: Broker) -> None:
    broker.open().shutdown(broker_epoch=5)
    assert broker.open().previous_broker_epoch == -1, "new directories were never in order"
    manager = broker.start()
    log_of(manager, FOO_0, 3)
    manager.shutdown(broker_epoch=7)
    broker.open().shutdown(broker_epoch=9)
    broker.open().shutdown(broker_epoch=-1)  # no controller has registered it
    loaded = broker.start()
    assert (loaded.previous_broker_epoch, loaded.logs()[FOO_0].log_end_offset) == (9, 3)
    loaded.abandon()
    broker.open().shutdown(broker_epoch=11)
    assert broker.open().previous_broker_epoch == -1, "its logs were in use when it was killed"


def test_that_logs_are_in_use_is_durable_before_they_are_loaded(faulty: Broker, files: FaultyFiles) -> None:
    faulty.start().shutdown(broker_epoch=7)
    faulty.start()
    files.power_cut()
    assert faulty.open().previous_broker_epoch == -1


def test_a_copy_is_as_durable_as_the_log_that_it_replaces(faulty: Broker, files: FaultyFiles) -> None:
    manager = faulty.start()
    log_of(manager, FOO_0, 3).flush()
    manager.prefer_directory(FOO_0, "b")
    log_of(manager, FOO_0, 3, is_future=True)
    manager.replace_current_with_future(FOO_0)
    files.power_cut()
    found = faulty.start().logs()[FOO_0]
    assert (found.directory, found.log_end_offset) == ("b", 3)


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_copy_keeps_the_start_of_its_log(faulty: Broker, files: FaultyFiles, is_replaced: bool) -> None:
    manager = faulty.start()
    log = log_of(manager, FOO_0, 9)
    log.update_high_watermark(9)
    log.maybe_increment_log_start_offset(5)
    manager.prefer_directory(FOO_0, "b")
    copy = log_of(manager, FOO_0, 9, is_future=True)  # records that were deleted afterwards are in it
    copy.update_high_watermark(9)
    copy.flush()
    if is_replaced:
        manager.replace_current_with_future(FOO_0)
    else:
        copy.maybe_increment_log_start_offset(5)
        manager.checkpoint()
    files.power_cut()
    found = faulty.start().get_log(FOO_0, is_future=not is_replaced)
    assert found is not None
    assert (found.directory, found.log_start_offset, found.log_end_offset) == ("b", 5, 9)


@pytest.mark.parametrize("is_replaced", [False, True])
def test_checkpoints_of_a_copy_or_a_replaced_log_do_not_hold_for_the_next(
    faulty: Broker, files: FaultyFiles, is_replaced: bool
) -> None:
    manager = faulty.start()
    log_of(manager, FOO_0, 9).flush()
    manager.prefer_directory(FOO_0, "b")
    log_of(manager, FOO_0, 9, is_future=True).flush()
    manager.checkpoint()
    if is_replaced:
        manager.replace_current_with_future(FOO_0)
    else:
        manager.delete_future_log(FOO_0)
    assert [b"foo 0 9" in files.content(f"{path}/{RECOVERY_POINTS}") for path in "ab"] == [not is_replaced, is_replaced]


def test_a_directory_that_fails_does_not_keep_others_from_their_checkpoints(faulty: Broker, files: FaultyFiles) -> None:
    manager = faulty.start()
    for name in (FOO_0, FOO_1):
        log_of(manager, name, 2)
    manager.update_topic_config("foo", {"flush.ms": "0"})
    files.faults = [Fault("a", errno.EIO, frozenset([SYNC]))]
    manager.flush_logs()
    manager.checkpoint()
    manager.clean_logs()
    assert (faulty.failed, list(manager.directories)) == (["a"], ["b"])
    assert b"foo 1 2" in files.content(f"b/{RECOVERY_POINTS}")
    manager.shutdown(broker_epoch=7)
    files.restart()
    assert b"7" in files.content("b/.kafka_cleanshutdown")


def test_a_directory_that_fails_while_logs_are_loaded_is_offline(faulty: Broker, files: FaultyFiles) -> None:
    manager = faulty.start()
    for name in (FOO_0, FOO_1):
        log_of(manager, name, 2)
    manager.abandon()
    files.faults = [Fault("a/foo-0", errno.EIO, frozenset([READ]))]
    again = faulty.start()
    assert (faulty.failed, list(again.directories)) == (["a"], ["b"])
    assert again.logs()[FOO_1].log_end_offset == 2
    with pytest.raises(KafkaStorageError):
        log_of(again, FOO_0, is_new=False)


def test_the_deletion_of_a_log_in_a_failed_directory_deletes_its_copy(broker: Broker) -> None:
    manager = broker.start()
    log = log_of(manager, FOO_0, 1)
    manager.prefer_directory(FOO_0, broker.paths[1])
    log_of(manager, FOO_0, is_future=True)
    manager.handle_log_dir_failure(log.directory)
    errors: dict[TopicPartition, Exception] = {}
    manager.delete_logs([FOO_0], errors.__setitem__)
    assert list(errors) == [FOO_0]
    assert (folders(broker), dict(manager.logs())) == (["a/foo-0", "b/foo-0-delete"], {})
    manager.abandon()


def test_a_copy_replaces_a_log_whose_directory_fails_then(faulty: Broker, files: FaultyFiles) -> None:
    manager = faulty.start()
    log_of(manager, FOO_0, 3)
    manager.prefer_directory(FOO_0, "b")
    log_of(manager, FOO_0, 3, is_future=True)
    files.faults = [Fault("a", errno.EROFS, frozenset([WRITE]))]
    manager.replace_current_with_future(FOO_0)
    assert (faulty.failed, manager.logs()[FOO_0].directory) == (["a"], "b")
    assert b"foo 0 3" in files.content(f"b/{RECOVERY_POINTS}")
