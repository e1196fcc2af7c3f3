"""Steps of a partition's log on disk, taken by Kafka's own UnifiedLog and by ours, and what each log is then."""

from __future__ import annotations

import base64
import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from kraftlake.kafka_files.node.partition_files import LEADER_EPOCHS
from kraftlake.replica_manager.errors import OutOfOrderSequenceError
from kraftlake.replica_manager.logs.cleaning.cleanable import log_to_clean
from kraftlake.replica_manager.logs.cleaning.log_cleaning import LogCleaning
from kraftlake.replica_manager.logs.cleaning.offset_map import OffsetMap
from kraftlake.replica_manager.logs.disk.disk_log import DiskPartitionLog
from kraftlake.replica_manager.logs.disk.log_loader import StoredState
from kraftlake.replica_manager.logs.disk.log_segment import LogSegment, batches_in
from kraftlake.replica_manager.logs.disk.producer_snapshots import decode_snapshot
from kraftlake.replica_manager.logs.log_batch import log_batches
from kraftlake.replica_manager.logs.log_config import LogConfig
from simulator.data_batches import batch, emptied, marker
from tests.interop.kafka_classes import KafkaClasses
from tests.replica_manager.brokers import FOO
from tests.replica_manager.logs.disk.opened import CLEAN, opened

CONFIGS = {"segment.bytes": "500", "index.interval.bytes": "150", "retention.ms": "-1"}
LARGE = CONFIGS | {"segment.bytes": "100000"}
"""Kafka never divides what it fetched into two segments, so what is fetched at once goes into large ones."""
PRODUCERS = (7, 8)


def kafka_log(
    kafka: KafkaClasses,
    folder: Path,
    steps: list[list[object]],
    stored: StoredState = CLEAN,
    configs: dict[str, str] = CONFIGS,
) -> dict[str, Any]:
    """What Kafka's log in a folder is after the steps; it is closed then."""
    partition = folder / "foo-0"
    partition.mkdir(parents=True, exist_ok=True)
    clean, ends = str(stored.clean).lower(), (stored.recovery_point, stored.log_start_offset)
    answer = kafka.ask("run", partition, json.dumps(kafka_configs(configs)), FOO, clean, *ends, json.dumps(steps))
    if answer["start"]:  # Kafka does not look for it again when the start moves, or the log is cut then
        del answer["stable"]
    return answer


def kafka_configs(configs: dict[str, str]) -> dict[str, str]:
    """The configs by the names that Kafka knows: it allows small segments by an internal one only."""
    return {name.replace("segment.bytes", "internal.segment.bytes"): value for name, value in configs.items()}


def our_log(
    folder: Path, steps: list[list[Any]], stored: StoredState = CLEAN, configs: dict[str, str] = CONFIGS
) -> dict[str, Any]:
    """The same of ours."""
    log = opened(folder, LogConfig().overridden(configs), stored=stored)
    answers: list[object] = []
    checkpoint: list[int] = []
    for name, *arguments in steps:
        match name:
            case "lead":
                answers.append(led(log, *arguments))
            case "clean":
                answers.append(cleaned(log, checkpoint, *arguments))
            case _:
                take(log, name, *arguments)
    log.update_high_watermark(log.log_end_offset)
    found = seen(log) | {"answers": answers}
    log.flush()
    log.close()
    return found


def take(log: DiskPartitionLog, name: str, *arguments: Any) -> None:
    """Take a step without an answer."""
    match name:
        case "append":
            log.append_as_follower(base64.b64decode(arguments[0]), arguments[1])
        case "elect":
            log.assign_epoch_start_offset(arguments[0], log.log_end_offset)
        case "cut":
            log.truncate_to(arguments[0])
        case "start":
            log.update_high_watermark(log.log_end_offset)
            log.maybe_increment_log_start_offset(arguments[0])
        case "age":
            log.delete_old_segments()
        case _:
            raise ValueError(name)


def cleaned(log: DiskPartitionLog, checkpoint: list[int], now_ms: int, slots: int) -> list[int] | str:
    """Clean a log as `KafkaLogs.java` does; `checkpoint` has the end of the last cleaning, if there was one."""
    log.update_high_watermark(log.log_end_offset)
    dirty = log_to_clean(log, checkpoint[0] if checkpoint else None, now_ms)
    if checkpoint:
        checkpoint[:] = [dirty.first_dirty_offset]  # which may be that of a log that was cut
    if not dirty.is_due:
        return "clean enough"
    cleaning = LogCleaning(
        to_clean=dirty, offset_map=OffsetMap(slots, 0.9, (1, 2)), now_ms=now_ms, guard=nullcontext
    )  # fmt: skip
    for _ in cleaning.steps():
        pass
    checkpoint[:] = [cleaning.cleaned_to]
    return [
        dirty.first_dirty_offset, dirty.first_uncleanable_offset, dirty.clean_bytes, dirty.cleanable_bytes,
        cleaning.cleaned_to,
    ]  # fmt: skip


def led(log: DiskPartitionLog, data: str, epoch: int) -> int | str:
    """Append a client's batch; returns its offset, or the name of Kafka's error."""
    try:
        return log.append_as_leader(base64.b64decode(data), epoch).first_offset
    except OutOfOrderSequenceError:
        return "OutOfOrderSequenceException"


def seen(log: DiskPartitionLog) -> dict[str, Any]:
    found = {
        "start": log.log_start_offset,
        "end": log.log_end_offset,
        "stable": log.last_stable_offset,
        "epochs": [list(pair) for pair in log.epochs],
        "producers": {
            str(state.producer_id): [
                state.producer_epoch, state.coordinator_epoch, state.last_timestamp,
                -1 if state.transaction_first_offset is None else state.transaction_first_offset,
                state.last_sequence, state.batches[-1].last_offset if state.batches else -1,
            ]
            for state in log.producers.states()
        },
        "segments": [segment_seen(segment) for segment in log.segments],
    }  # fmt: skip
    if found["start"]:
        del found["stable"]
    return found


def segment_seen(segment: LogSegment) -> dict[str, Any]:
    base = segment.base_offset
    return {
        "base": base,
        "batches": [[held.base_offset, held.last_offset] for _, held in batches_in(segment.log)],
        "offsets": [
            [base + relative, position]
            for relative, position in map(segment.offsets.__getitem__, range(len(segment.offsets)))
        ],
        "times": [
            [time, base + relative] for time, relative in map(segment.times.__getitem__, range(len(segment.times)))
        ],
    }


def content(folder: Path) -> dict[str, object]:
    """The files of the partition; of a producer snapshot the states in any order."""
    found: dict[str, object] = {}
    newest = max((folder / "foo-0").glob("*.log")).stem
    for path in (folder / "foo-0").iterdir():
        data = path.read_bytes()
        # Kafka makes the file of the epochs before there is one, and deletes files later.
        if not path.name.endswith(".deleted") and (data or path.name != LEADER_EPOCHS):
            if path.suffix in (".index", ".timeindex") and path.stem == newest:
                continue  # Kafka leaves what it has allocated, and what a truncation has removed
            found[path.name] = sorted(map(repr, decode_snapshot(data))) if path.suffix == ".snapshot" else data
    return found


class Script:
    """Steps for a log, made beside what its end is."""

    def __init__(self) -> None:
        self.steps: list[list[object]] = []
        self.ends = [0]
        self.start = 0
        self.epoch = 0
        self.time = 1_000
        self.open: list[frozenset[int]] = [frozenset()]
        """The producers with an open transaction at each of `ends`."""

    def append(self, producer: int, transactional: bool, count: int, gap: int) -> None:
        self.time += 10
        transactional |= producer in self.open[-1]
        ours = producer if transactional or gap % 2 else -1
        self._append(
            batch(*[b"x" * 30] * count, times=(self.time,) * count, producer=ours, transactional=transactional),
            self.open[-1] | ({producer} if transactional else frozenset()),
            gap if gap > 1 else 0,
        )

    def _append(self, data: bytes, open_: frozenset[int], gap: int = 0) -> None:
        (made,) = log_batches(data)
        placed = made.placed(self.ends[-1] + gap, self.epoch)
        self.steps.append(["append", base64.b64encode(placed.data).decode(), self.epoch])
        self.ends.append(placed.last_offset + 1)
        self.open.append(open_)

    def fetch(self, steps: list[tuple[Any, ...]]) -> None:
        """Batches that are appended at once."""
        made = [base64.b64decode(data) for _, data, _ in script_of(steps, self)]
        if made:
            del self.steps[-len(made) :]
            self.steps.append(["append", base64.b64encode(b"".join(made)).decode(), self.epoch])

    def end(self, producer: int, commit: bool, horizon: int | None) -> None:
        if producer in self.open[-1]:
            self._append(marker(producer, commit=commit, horizon=horizon), self.open[-1] - {producer})

    def left(self, producer: int) -> None:
        """A marker that has lost its record to a compacting leader."""
        self._append(emptied(marker(producer, commit=False, epoch=1)), self.open[-1])

    def elect(self) -> None:
        self.epoch += 1
        self.steps.append(["elect", self.epoch])

    def cut(self, back: int) -> None:
        """To the end of a batch."""
        keep = [end for end in self.ends if end >= self.start]
        to = keep[max(0, len(keep) - 1 - back)]
        self.ends = [end for end in self.ends if end <= to]
        del self.open[len(self.ends) :]
        self.steps.append(["cut", to])

    def start_at(self, forth: int) -> None:
        self.start = min(self.start + forth, self.ends[-1])
        self.steps.append(["start", self.start])

    def age(self) -> None:
        self.steps.append(["age"])


def script_of(steps: list[tuple[Any, ...]], script: Script) -> list[list[object]]:
    begin = len(script.steps)
    for name, *arguments in steps:
        getattr(script, name)(*arguments)
    return script.steps[begin:]
