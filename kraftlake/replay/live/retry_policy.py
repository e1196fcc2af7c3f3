"""The waiting for a quorum that does not answer."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final, TypeVar

from kraftlake.protocol.node_error import NodeError, NoLeaderError
from kraftlake.runtime.backoff import Backoff
from kraftlake.runtime.clock import Clock, SystemClock

T = TypeVar("T")

_BACKOFF: Final = Backoff(base=0.1, cap=10.0)
_NANOSECONDS: Final = 1_000_000_000


class RetryPolicy:
    """Decides after each failure whether and when to ask a quorum again; for one thread.

    The first failure is raised, since the address may be wrong, unless `reached` says that it is right; after an answer
    of any node of the cluster, failures are retried for `limit` seconds at most (None: for ever), with pauses that grow
    to ten seconds; `chance` draws from 0 to 1 for them. `report` gets a sentence when the waiting begins, and one when
    it ends. `wait` pauses for seconds, and returns a true value where it was interrupted, as that of an Event does.
    `answered` is called after each answer, and may raise an error that ends the call.
    """

    def __init__(
        self,
        *,
        wait: Callable[[float], object],
        report: Callable[[str], object] = lambda _: None,
        answered: Callable[[], object] = lambda: None,
        limit: float | None = None,
        reached: bool = False,
        clock: Clock | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._wait = wait
        self._report = report
        self._answered = answered
        self._limit = limit
        self._clock = clock or SystemClock()
        self._chance = chance
        self._reached = reached
        self._failures = 0
        self._since_ns = 0

    def call(self, ask: Callable[[], T]) -> T:
        """The result of `ask`, called again while it raises NodeError. Raises the NodeError when patience ends."""
        while True:
            try:
                answer = ask()
            except NodeError as fault:
                if self.failed(fault):
                    raise
                continue
            self.succeeded()
            return answer

    def failed(self, fault: NodeError) -> bool:
        """Pause, or raise `fault` where waiting would be useless; returns whether the pause was interrupted."""
        self._reached = self._reached or isinstance(fault, NoLeaderError)
        now = self._clock.nanoseconds()
        if not self._failures:
            self._since_ns = now
        if not self._reached or (self._limit is not None and now - self._since_ns >= self._limit * _NANOSECONDS):
            raise fault
        if not self._failures:
            self._report(f"the quorum can't be asked, and is waited for: {fault}")
        self._failures += 1
        return self.pause(self._failures)

    def pause(self, failures: int) -> bool:
        """Pause as after a number of failures; returns whether the pause was interrupted."""
        return bool(self._wait(_BACKOFF.pause(failures, self._chance())))

    def succeeded(self) -> None:
        """Reset the failures: the quorum answered."""
        if self._failures:
            self._report("the quorum answers again.")
        self._reached, self._failures = True, 0
        self._answered()
