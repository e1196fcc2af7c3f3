"""Writes a lake with a generated history. Imports numpy and pyarrow."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa

from kraftlake.generate.cluster import GeneratedCluster
from kraftlake.generate.episodes import EPISODES, EpisodeTables, set_up
from kraftlake.generate.plan import Plan
from kraftlake.generate.rows import BatchRows
from kraftlake.generate.unfinished import unfinished
from kraftlake.generate.writer import NO_OP_MS, ClusterLogWriter
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.runtime.arguments import instance, path_text
from kraftlake.runtime.errors import LakeError, UsageError
from kraftlake.runtime.json_names import fields_as_json

NODE_ID = 3000
"""The id of the controller that writes the history."""


@attrs.frozen(kw_only=True)
class Episode:
    """An episode, from its first to its last offset, both inclusive."""

    name: str
    first_offset: int
    last_offset: int
    timestamp: int
    """The start of the episode, in epoch milliseconds."""
    what: str

    def to_json(self) -> dict[str, Any]:
        """The JSON form."""
        return fields_as_json(self)


@attrs.frozen(kw_only=True)
class GenerateReport:
    """The generated lake and the episodes in it."""

    lake: str
    cluster_id: str
    end_offset: int
    partitions: int
    first_timestamp: int
    last_timestamp: int
    episodes: tuple[Episode, ...]

    def to_json(self) -> dict[str, Any]:
        """The JSON form."""
        return fields_as_json(self)


def generate_lake(
    lake: str | os.PathLike[str], plan: Plan, progress: Callable[[int], None] | None = None
) -> GenerateReport:
    """Create a controlled lake whose log has the plan's history, entirely or not at all.

    `progress` is called with the number of records written. Raises UsageError for a contradictory plan, or one that
    exceeds this machine's memory or disk, LakeError if the lake can't be created: `lake` must be an empty or new
    folder. Remains of killed runs next to it are removed.
    """
    instance(plan, Plan, "a Plan").check()
    path = _new_folder(lake)
    _check_room(plan, path.parent)
    try:
        with unfinished(path) as folder:
            report = _write(folder, path, plan, progress or (lambda _: None))
            # This replaces an empty folder, but nothing else that was created meanwhile.
            folder.rename(path)
    except OSError as fault:
        raise LakeError(f"{path} can't be made: {fault.strerror or fault}.") from fault
    return report


def _new_folder(lake: str | os.PathLike[str]) -> Path:
    if "://" in path_text(lake):
        raise LakeError(
            f"{path_text(lake)}: a generated history goes to a folder; `kraftlake fork` copies it elsewhere."
        )
    path = Path(lake).absolute()
    if not path.parent.is_dir():
        raise LakeError(f"{path} can't be made: the folder {path.parent} does not exist.")
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise LakeError(f"{path} is in the way: a new lake needs an empty folder, or none.")
    return path


def _check_room(plan: Plan, folder: Path) -> None:
    memory, disk = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), shutil.disk_usage(folder).free
    if plan.least_memory > memory:
        raise UsageError(
            f"A cluster of {plan.brokers:,} brokers and {plan.partition_count:,} partitions takes at least "
            f"{_gigabytes(plan.least_memory)} of memory, and this machine has {_gigabytes(memory)}: "
            "take fewer --topics, --partitions or --brokers."
        )
    if plan.least_disk > disk:
        raise UsageError(
            f"A log of {plan.records:,} records takes at least {_gigabytes(plan.least_disk)}, "
            f"and {folder} has room for {_gigabytes(disk)}: take fewer --records."
        )


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:,.1f} GB"


def _write(folder: Path, path: Path, plan: Plan, progress: Callable[[int], None]) -> GenerateReport:
    cluster = GeneratedCluster(plan)
    cluster_id = str(cluster.uuid(cluster.uuids(1), 0))
    log = MetadataLog.create(folder, cluster_id, "controlled")
    epoch = log.claim(NODE_ID, timestamp=plan.start_ms)
    rows = BatchRows(log.end_offset, epoch)
    writer = ClusterLogWriter(cluster, rows)
    writer.now_ms += 1
    episodes: list[Episode] = []
    for table in _history(writer, episodes):
        log.append(table, epoch=epoch)
        progress(log.end_offset)
    return GenerateReport(
        lake=str(path),
        cluster_id=cluster_id,
        end_offset=log.end_offset,
        partitions=plan.partition_count,
        first_timestamp=plan.start_ms,
        last_timestamp=int(log.rows(log.end_offset - 1, log.end_offset - 1)["timestamp"][0].value // 1000),
        episodes=tuple(episodes),
    )


def _history(writer: ClusterLogWriter, episodes: list[Episode]) -> Iterator[pa.Table]:
    plan = writer.cluster.plan
    yield from _recorded(writer, episodes, "set-up", set_up(writer))
    while not writer.is_long_enough:
        before = writer.offset
        for pattern in plan.patterns:
            yield from writer.quiet(plan.quiet_ms)
            yield from _recorded(writer, episodes, pattern, EPISODES[pattern](writer))
            if writer.is_long_enough:
                break
        if writer.offset == before:
            # No episode applies to this cluster, such as an ISR flap where each partition has one replica.
            yield from writer.quiet((plan.records - before) * NO_OP_MS)
    yield from writer.rows.take()


def _recorded(
    writer: ClusterLogWriter, episodes: list[Episode], name: str, episode: EpisodeTables
) -> Iterator[pa.Table]:
    first, began = writer.offset, writer.now_ms
    what = yield from episode
    episodes.append(Episode(name=name, first_offset=first, last_offset=writer.offset - 1, timestamp=began, what=what))
