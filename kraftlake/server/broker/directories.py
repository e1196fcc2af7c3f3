"""Answers about the log directories of a broker that serves no clients: tools query every broker for them.

Source: kafka.server.ReplicaManager.describeLogDirs (KIP-113, KIP-827).
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Collection
from typing import Any

from kraftlake.protocol.error_code import ErrorCode
from kraftlake.replica_manager.logs.disk.disk_log_manager import DiskLogManager
from kraftlake.server.requests.messages import AT_ONCE, answered, api_of, of_version


def describe_log_dirs(
    frame: bytes, logs: DiskLogManager, *, cordoned: Collection[str], is_allowed: bool
) -> bytes | None:
    """The answer to DescribeLogDirs, without its length prefix; None for every other request.

    Sizes are the sums of the segments in bytes; the lag is counted from the high watermark, or for a future copy from
    the replica. If the client is not authorized, the answer is CLUSTER_AUTHORIZATION_FAILED. Raises as `request_in`.
    """
    if api_of(frame) != "describe_log_dirs":
        return None

    def make(module: Any, asked: Any) -> Any:
        found: list[Any] = []
        if is_allowed:
            topics = asked.topics
            wanted = None if topics is None else {(one.topic, number) for one in topics for number in one.partitions}
            found += [_online(module, path, logs, wanted, path in cordoned) for path in sorted(logs.directories)]
            found += [_offline(module, path) for path in sorted(logs.offline)]
        error = ErrorCode.NONE if is_allowed else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return of_version(module.DescribeLogDirsResponse, throttle_time=AT_ONCE, error_code=error, results=tuple(found))

    return answered(frame, make)


def _offline(module: Any, path: str) -> Any:
    error = ErrorCode.KAFKA_STORAGE_ERROR
    return of_version(module.DescribeLogDirsResult, error_code=error, log_dir=path, topics=())


def _online(
    module: Any, path: str, logs: DiskLogManager, wanted: set[tuple[str, int]] | None, is_cordoned: bool
) -> Any:
    try:
        usage = shutil.disk_usage(path)
    except OSError:
        return _offline(module, path)
    by_topic: dict[str, list[Any]] = defaultdict(list)
    for name, current in list(logs.logs().items()):
        future = logs.get_log(name, is_future=True)
        for log, end in ((current, current.high_watermark), (future, current.log_end_offset)):
            if log is not None and log.directory == path and (wanted is None or name in wanted):
                partition = module.DescribeLogDirsPartition(
                    partition_index=name.partition, partition_size=log.size,
                    offset_lag=max(0, end - log.log_end_offset), is_future_key=log is future,
                )  # fmt: skip
                by_topic[name.topic].append(partition)
    return of_version(
        module.DescribeLogDirsResult,
        error_code=ErrorCode.NONE, log_dir=path, is_cordoned=is_cordoned,
        total_bytes=usage.total, usable_bytes=usage.free,
        topics=tuple(
            module.DescribeLogDirsTopic(name=topic, partitions=tuple(partitions))
            for topic, partitions in sorted(by_topic.items())
        ),
    )  # fmt: skip
