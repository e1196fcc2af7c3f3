"""The last known position of the quorum, also available while no node answers."""

from __future__ import annotations

import random
from collections.abc import Callable

from kraftlake.protocol.node_error import NodeError, NoLeaderError
from kraftlake.protocol.quorum_client import QuorumPosition
from kraftlake.runtime.backoff import Backoff
from kraftlake.runtime.clock import Clock, SystemClock

_BACKOFF = Backoff(base=0.5, cap=30.0)

_NOTHING_KNOWN = QuorumPosition(leader_id=-1, leader_epoch=-1, high_watermark=-1)


class QuorumWatch:
    """Queries the quorum by `describe` on each call, and returns the last answer while queries fail.

    Calls `report` when failures begin and end. After a failure the pause is about half a second, and doubles each time,
    up to half a minute; `jitter` draws from 0 to 1 for it. A failure of the first query is raised, since the address
    may be wrong. The watch waits for nodes of the cluster that know no leader, also at first; during an election no
    further records count as committed.
    """

    def __init__(
        self,
        describe: Callable[[], QuorumPosition],
        report: Callable[[str], None],
        *,
        clock: Clock | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._describe = describe
        self._report = report
        self._clock = clock or SystemClock()
        self._last = _NOTHING_KNOWN
        self._answered = False
        self._jitter = jitter
        self._failures = 0
        self._not_before_ns = 0

    def position(self) -> QuorumPosition:
        """The newest answer; high watermark −1 before the first. Raises OtherClusterError (an ImportConflictError).

        Raises NodeError if no node of the cluster has ever answered.
        """
        if self._failures and self._clock.nanoseconds() < self._not_before_ns:
            return self._last
        try:
            position = self._describe()
        except NodeError as fault:
            self._answered = self._answered or isinstance(fault, NoLeaderError)
            if not self._answered:
                raise
            if not self._failures:
                self._report(
                    f"the quorum can't be asked, so nothing more is taken for committed until it can be: {fault}"
                )
            self._failures += 1
            pause = _BACKOFF.pause(self._failures, self._jitter())
            self._not_before_ns = self._clock.nanoseconds() + round(pause * 1_000_000_000)
            return self._last
        if self._failures:
            self._report("the quorum answers again.")
        self._failures = 0
        self._answered = True
        self._last = position
        return position
