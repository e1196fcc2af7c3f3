"""Maintenance of all followed lakes, in turn on one thread: derived tables, snapshots, upkeep, their figures."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Final

from kraftlake.metadata_log.maintenance.upkeep import Upkeep
from kraftlake.publisher.snapshot_generator import LakeSnapshotEmitter
from kraftlake.runtime.clock import Clock
from kraftlake.runtime.errors import sentence_of
from kraftlake.runtime.log import get_logger
from kraftlake.runtime.process_setup import collect_garbage
from kraftlake.server.cluster_follower import ClusterFollower
from kraftlake.server.lake_meters import LakeMeters
from kraftlake.server.lake_upkeep import LakeUpkeep
from kraftlake.tables.catch_up.updating import update_tables

SNAPSHOT_EVERY: Final = 200_000
"""The number of offsets after which a lake gets a snapshot, to bound the replay at a start: one day of an idle cluster,
and two seconds of work."""

UPKEEP_COMMITS: Final = 32
"""The number of commits after which a lake gets its upkeep, as far as it is due: half of those that are compacted."""


class LakeWorker:
    """Visits each lake once in `interval` seconds, evenly spaced; a slow round delays the next one.

    One lake at a time bounds the memory, whatever the number of lakes. An error is logged, and the work is retried in
    the next round: late work costs time, not data.
    """

    def __init__(
        self,
        followers: Sequence[ClusterFollower],
        lakes: LakeMeters,
        *,
        stop: threading.Event,
        clock: Clock,
        interval: float,
    ) -> None:
        self._followers = followers
        self._lakes = lakes
        self._stop = stop
        self._clock = clock
        self._pause = interval / len(followers)
        self._tables_to: dict[str, int] = {}
        self._upkeep_to: dict[str, int] = {}
        self._snapshot_to: dict[str, int] = {}
        self._upkeeps: dict[str, LakeUpkeep] = {}
        self._log = get_logger(__name__)

    def run(self) -> None:
        """Work until `stop` is set."""
        while True:
            for follower in self._followers:
                if self._stop.wait(self._pause):
                    return
                if follower.status.end_offset >= 0:
                    self._lakes.measure(follower.config.name)
                    self._work(follower)
            collect_garbage()

    def _work(self, follower: ClusterFollower) -> None:
        name, lake = follower.config.name, follower.config.lake
        for what, work in (("tables", self._tables), ("snapshot", self._snapshot), ("upkeep", self._upkeep)):
            if self._stop.is_set():
                return
            try:
                work(follower)
            except Exception as fault:
                follower.status.upkeep_faults += 1
                self._log.warning(f"{what}_failed", cluster=name, lake=lake, reason=sentence_of(fault))
        follower.status.upkeep_ms = self._clock.milliseconds()

    def _tables(self, follower: ClusterFollower) -> None:
        """Update the derived tables to the lake's end, if the lake changed since their last update."""
        name, changed_to = follower.config.name, follower.status.changed_to
        if follower.config.tables and self._tables_to.get(name, -1) < changed_to:
            self._tables_to[name] = update_tables(follower.config.lake, stop=self._stop, poll=None).offset

    def _snapshot(self, follower: ClusterFollower) -> None:
        """Write the newest image as a snapshot, if enough offsets follow the last one."""
        followed, name = follower.image, follower.config.name
        image = None if followed is None else followed.whole_image
        if followed is None or image is None:
            return
        last = self._snapshot_to.setdefault(name, followed.base_end)
        if image.offset - last >= SNAPSHOT_EVERY:
            LakeSnapshotEmitter(follower.config.lake, self._clock).maybe_emit(image, followed.quorum)
            self._snapshot_to[name] = image.offset

    def _upkeep(self, follower: ClusterFollower) -> None:
        """Remove what the lake does not keep, compact, checkpoint and vacuum, if enough was committed since last."""
        name, lake = follower.config.name, follower.config.lake
        figures = self._lakes.figures.get(name)
        commits = None if figures is None else figures.commits
        if commits is not None and commits - self._upkeep_to.get(name, -UPKEEP_COMMITS) < UPKEEP_COMMITS:
            return
        if name not in self._upkeeps:
            self._upkeeps[name] = LakeUpkeep(lake, clock=self._clock)
        self._upkeeps[name].remove_if_due()
        upkeep = Upkeep(lake)
        upkeep.run()
        upkeep.vacuum()
        if commits is not None:
            self._upkeep_to[name] = commits
