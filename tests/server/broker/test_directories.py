"""What a broker that serves nobody says of its log directories."""

from __future__ import annotations

import io
import shutil
import struct
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from kio.serial import entity_writer

from kraftlake.protocol.error_code import ErrorCode
from kraftlake.replica_manager.logs.disk.disk_log_manager import DiskLogManager, open_log_manager
from kraftlake.replica_manager.logs.log_batch import log_batches
from kraftlake.replica_manager.logs.log_config import LogConfig
from kraftlake.runtime.clock import ManualClock
from kraftlake.server.broker.directories import describe_log_dirs
from kraftlake.server.requests.messages import versions_of
from simulator.data_batches import batch
from tests.replica_manager.brokers import FOO, tp
from tests.server.broker.test_refusals import KEYS, framed, read

VERSIONS = list(versions_of("describe_log_dirs"))


@pytest.fixture
def logs(tmp_path: Path) -> DiskLogManager:
    """A log of two batches in the first of two directories, and a copy of the first batch in the second."""
    manager = open_log_manager(
        [str(tmp_path / "a"), str(tmp_path / "b")], cluster_id="c", node_id=7, clock=ManualClock(1_000),
        defaults=LogConfig(), topic_configs=lambda _: {}, on_failure=lambda *_: None,
    )  # fmt: skip
    manager.startup([], lambda *_: False)
    (made,) = log_batches(batch(b"value"))
    for directory, is_future, batches in (("a", False, 2), ("b", True, 1)):
        manager.prefer_directory(tp(), str(tmp_path / directory))
        log = manager.get_or_create_log(
            tp(), is_new=True, is_future=is_future, topic_id=FOO, target_directory_id=None
        )  # fmt: skip
        for at in range(batches):
            log.append_as_follower(made.placed(at, 0).data, 0)
    return manager


def asked(version: int, *topics: tuple[str, tuple[int, ...]]) -> bytes:
    module: Any = import_module(f"kio.schema.describe_log_dirs.v{version}.request")
    kind = module.DescribeLogDirsRequest
    made = kind(
        topics=tuple(module.DescribableLogDirTopic(topic=topic, partitions=numbers) for topic, numbers in topics)
        or None
    )
    body = io.BytesIO()
    entity_writer(kind)(body, made)
    return framed("describe_log_dirs", version, body.getvalue(), flexible=kind.__flexible__)


def answer(frame: bytes, version: int, logs: DiskLogManager, **options: Any) -> Any:
    response = describe_log_dirs(frame, logs, **{"cordoned": (), "is_allowed": True, **options})
    assert response is not None
    return read("describe_log_dirs", version, response)


@pytest.mark.parametrize("version", VERSIONS)
def test_each_directory_has_its_replicas_and_what_they_lack(version: int, logs: DiskLogManager) -> None:
    first, second = answer(asked(version), version, logs).results
    size = logs.logs()[tp()].size
    assert [Path(one.log_dir).name for one in (first, second)] == ["a", "b"]
    ((whole,),) = [topic.partitions for topic in first.topics]
    assert (whole.partition_index, whole.partition_size, whole.offset_lag, whole.is_future_key) == (0, size, 0, False)
    ((copy,),) = [topic.partitions for topic in second.topics]
    assert (copy.partition_size, copy.offset_lag, copy.is_future_key) == (size // 2, 1, True)
    if version >= 4:
        assert first.total_bytes == shutil.disk_usage(first.log_dir).total
        assert 0 < first.usable_bytes < first.total_bytes


def test_only_what_was_asked_for_is_described(logs: DiskLogManager) -> None:
    version = VERSIONS[-1]
    assert [len(one.topics) for one in answer(asked(version, ("foo", (0, 5))), version, logs).results] == [1, 1]
    assert [len(one.topics) for one in answer(asked(version, ("foo", (5,))), version, logs).results] == [0, 0]
    assert [len(one.topics) for one in answer(asked(version, ("bar", (0,))), version, logs).results] == [0, 0]


def test_a_directory_that_has_failed_is_an_error_of_its_own(logs: DiskLogManager) -> None:
    failed = min(logs.directories)
    logs.handle_log_dir_failure(failed)
    errors = {one.log_dir: one.error_code for one in answer(asked(4), 4, logs).results}
    assert errors.pop(failed) == ErrorCode.KAFKA_STORAGE_ERROR
    assert set(errors.values()) == {ErrorCode.NONE}


def test_cordoned_directories_are_marked_and_whoever_may_not_ask_learns_nothing(logs: DiskLogManager) -> None:
    version = VERSIONS[-1]
    cordoned = [max(logs.directories)]
    assert [one.is_cordoned for one in answer(asked(version), version, logs, cordoned=cordoned).results] == [
        False,
        True,
    ]
    refused = answer(asked(version), version, logs, is_allowed=False)
    assert (refused.error_code, refused.results) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ())


def test_other_requests_are_left_alone(logs: DiskLogManager) -> None:
    other = struct.pack(">hhih", KEYS["metadata"], 9, 9, 0)
    assert describe_log_dirs(other, logs, cordoned=(), is_allowed=True) is None
