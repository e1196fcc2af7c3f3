"""Steps of a compacted log in a directory, taken by Kafka's own LogManager and by ours, which end and start between."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.replica_manager.logs.cleaning.cleanable import log_to_clean
from kraftlake.replica_manager.logs.cleaning.log_cleaner import CleanerConfig, LogCleaner
from kraftlake.replica_manager.logs.cleaning.offset_map import SLOT_SIZE
from kraftlake.replica_manager.logs.disk.disk_log import DiskPartitionLog
from kraftlake.replica_manager.logs.disk.disk_log_manager import DiskLogManager, open_log_manager
from kraftlake.replica_manager.logs.log_config import LogConfig
from kraftlake.runtime.clock import ManualClock
from kraftlake.runtime.log import without_logs
from tests.interop.kafka_classes import KafkaClasses
from tests.interop.logs_of_both import kafka_configs, seen, take
from tests.replica_manager.brokers import FOO

NAME = TopicPartition("foo", 0)


def kafka_manager(
    kafka: KafkaClasses, directory: Path, steps: list[list[object]], configs: dict[str, str]
) -> dict[str, Any]:
    """What the log of Kafka's manager is after the steps; it is closed then."""
    answer = kafka.ask("manage", directory, json.dumps(kafka_configs(configs)), FOO, json.dumps(steps))
    if answer["start"]:  # as in `kafka_log`
        del answer["stable"]
    return answer


def our_manager(directory: Path, steps: list[list[Any]], configs: dict[str, str]) -> dict[str, Any]:
    """The same of ours."""
    with without_logs():
        managed = _Managed(directory, LogConfig().overridden(configs))
        answers = [answer for step in steps if (answer := managed.take(*step)) is not None]
        log = managed.log
        log.update_high_watermark(log.log_end_offset)
        found = seen(log) | {"answers": answers}
        managed.manager.shutdown(-1)
    return found


class _Managed:
    def __init__(self, directory: Path, config: LogConfig) -> None:
        self._directory, self._config = directory, config
        self.manager = self._open()

    def _open(self) -> DiskLogManager:
        manager = open_log_manager(
            [str(self._directory)], cluster_id="c", node_id=1, clock=ManualClock(2_000), defaults=self._config,
            topic_configs=lambda _: {}, on_failure=lambda *_: None,
        )  # fmt: skip
        manager.startup((), lambda *_: False)
        manager.get_or_create_log(NAME, is_new=True, is_future=False, topic_id=FOO, target_directory_id=None)
        return manager

    @property
    def log(self) -> DiskPartitionLog:
        return self.manager.logs()[NAME]

    def take(self, name: str, *arguments: Any) -> object:
        """Take a step; returns what a cleaning did."""
        match name:
            case "clean":
                return self._clean(*arguments)
            case "cut":
                is_shorter = arguments[0] < self.log.log_end_offset
                take(self.log, name, *arguments)
                if is_shorter:
                    self.manager.checkpoint()  # as Kafka's does; ours only where the last one is above the log's end
            case "anew":
                self.log.truncate_fully_and_start_at(arguments[0])
            case "checkpoint":
                self.manager.checkpoint()
            case "restart":
                if arguments[0]:
                    self.manager.shutdown(-1)
                else:
                    self.manager.abandon()
                self.manager = self._open()
            case _:
                take(self.log, name, *arguments)
        return None

    def _clean(self, now_ms: int, slots: int) -> list[int] | str:
        log, manager = self.log, self.manager
        log.update_high_watermark(log.log_end_offset)
        dirty = log_to_clean(log, manager.cleaned_to(log), now_ms)
        config = CleanerConfig(dedupe_buffer_size=slots * SLOT_SIZE)
        cleaner = LogCleaner(manager=manager, clock=ManualClock(now_ms), random=Random(1), config=config)
        steps = cleaner.clean_next()
        if steps is None:
            assert not dirty.is_due
            return "clean enough"
        assert list(steps)
        assert not cleaner.uncleanable
        return [
            dirty.first_dirty_offset, dirty.first_uncleanable_offset, dirty.clean_bytes, dirty.cleanable_bytes,
            manager.cleaned_to(log) or 0,
        ]  # fmt: skip
