"""The input of the checks: the quorum, the soundness of each log, an image, and its past."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from kraftlake.diagnosis.blaming import holding_since
from kraftlake.diagnosis.doctor.checked_logs import CheckedLog
from kraftlake.diagnosis.doctor.group import LogPosition
from kraftlake.diagnosis.doctor.partition_times import AffectedPartition
from kraftlake.diagnosis.doctor.timeline import Timeline, read_timeline
from kraftlake.diagnosis.thing_changes import changes_of
from kraftlake.diagnosis.things import Thing
from kraftlake.image.json_form import broker_json
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.kafka_files.node.meta_properties import find_properties
from kraftlake.records.uuid import Uuid
from kraftlake.replay.loader.fold import Replay
from kraftlake.replay.queries.quorum_report import QuorumReport
from kraftlake.replay.queries.source import LogSource
from kraftlake.runtime.arguments import path_texts
from kraftlake.runtime.errors import KraftlakeError, UsageError

if TYPE_CHECKING:
    from kraftlake.replica_manager.logs.log_dirs import LogDirReport

RECENT_HOURS = 24
"""The hours before the end of the log in which changes of configs and ACLs, and unclean elections, are found."""
WINDOW_MS = 3_600_000
"""The length of the window before the end of the log in which fencings, elections and ISR changes are counted."""
STUCK_HOURS = 1
"""The age in hours from which on a reassignment counts as stuck."""


@attrs.frozen(kw_only=True)
class BrokerFolders:
    """The log directories of a broker and the image; `broker` is the id in their `meta.properties`."""

    broker: int
    paths: tuple[str, ...]
    report: LogDirReport


@attrs.frozen(kw_only=True, slots=False)
class CheckInput:
    """The cluster by some `sources`, the words given; `furthest` is the one of their `logs` that the checks read.

    `replay` has its image, at the requested offset or the last one before `stopped`, the fault that stops the replay;
    None where there is no image at all. `as_asked` says that an offset was requested, so that commands have to name it.
    `thorough` is that of `diagnose`.
    """

    sources: tuple[str, ...]
    quorum: QuorumReport
    logs: tuple[CheckedLog, ...]
    furthest: CheckedLog
    source: LogSource
    replay: Replay | None
    stopped: KraftlakeError | None
    as_asked: bool
    folders: tuple[BrokerFolders, ...] = ()
    window_ms: int = WINDOW_MS
    thorough: bool = True

    @property
    def image(self) -> MetadataImage:
        """The image; checks that need it run only where there is one."""
        assert self.replay is not None, "there is an image"
        return self.replay.image

    @property
    def end_ms(self) -> int:
        """The time of the image in epoch ms, -1 for none: ages count up to it."""
        return self.image.provenance.timestamp

    @property
    def window_begin(self) -> int:
        """The start of the window in which fencings, elections and the like are counted, in epoch ms."""
        return self.end_ms - self.window_ms

    @property
    def recent_begin(self) -> int:
        """The start of the recent time, in epoch ms."""
        return self.end_ms - RECENT_HOURS * 3_600_000

    @cached_property
    def timeline(self) -> Timeline:
        """The timeline of the image's troubles: since when each of them lasts."""
        return read_timeline(
            self.source, self.image, recent_ms=self.recent_begin, window_ms=self.window_begin, thorough=self.thorough
        )

    @property
    def read_from(self) -> str:
        """The end of a sentence on the recent time: the offset from which it is known, where that is not all of it."""
        begin = self.timeline.late_begin
        return "" if begin is None else f"; the log is read from offset {begin} on"

    @cached_property
    def brokers(self) -> dict[str, Any]:
        """The brokers by id as in `image --json`."""
        return {str(id_): broker_json(broker) for id_, broker in sorted(self.image.cluster.brokers.items())}

    @cached_property
    def offline(self) -> frozenset[str]:
        """The names of the partitions without a leader, which the other checks leave out."""
        return frozenset(one.name for one in self.timeline.partitions["offline"])

    def partition(self, one: AffectedPartition) -> Any:
        """The state of a partition of the image."""
        state = self.image.topics.get_partition(Uuid.from_string(one.topic_id), one.partition)
        assert state is not None, "it is one of the image"
        return state

    def since(self, things: Iterable[Thing], holds: Callable[[Any], bool]) -> Mapping[Thing, LogPosition | None]:
        """The position since which each thing's value meets a condition; None where the log does not reach that far."""
        wanted = list(things)
        lines = changes_of(self.source, wanted, self.image.offset).lines if wanted else {}
        found: dict[Thing, LogPosition | None] = {}
        for thing in wanted:
            change = holding_since(lines.get(thing, ()), holds)
            known = change is not None and not change.or_earlier
            found[thing] = LogPosition(offset=change.since, timestamp=change.since_time) if change and known else None
        return found

    def age_ms(self, since: LogPosition | None) -> int | None:
        """The time from a position in the log up to the image."""
        if since is None or since.timestamp is None or self.end_ms < 0:
            return None
        return self.end_ms - since.timestamp

    def command(self, template: str, *, log: CheckedLog | None = None, **values: str) -> str:
        """A command line of `kraftlake` with quoted words in the slots of its template.

        `{source}` is the log of the image unless another one is given, `{sources}` are all sources. `{at}` and
        `{range}` are the options for the offset of an image before the end of the log, either requested or the offset
        where the replay stops; `{range}` also begins where the past is known. Further `values` are already quoted.
        """
        is_earlier = self.as_asked or self.stopped is not None
        offset = self.image.offset if self.replay is not None and is_earlier else None
        return "kraftlake " + template.format(
            source=shlex.join((self.furthest if log is None else log).words),
            sources=shlex.join(self.sources),
            at="" if offset is None else f" --at-offset {offset}",
            range="" if "{range}" not in template else self._range(offset),
            **values,
        )

    def _range(self, to: int | None) -> str:
        begin = self.timeline.begin
        return ("" if begin is None else f" --from {begin}") + ("" if to is None else f" --to {to}")


def brokers_of(paths: Sequence[str | os.PathLike[str]]) -> dict[int, list[str]]:
    """The log directories by broker, by their `meta.properties`.

    Raises UsageError for a directory that does not name its broker.
    """
    found: dict[int, list[str]] = {}
    for path in path_texts(paths):
        node_id = find_properties(Path(path)).node_id
        if node_id is None:
            raise UsageError(f"{path} has no meta.properties with a node.id, so it does not say which broker it is of.")
        found.setdefault(node_id, []).append(path)
    return found
