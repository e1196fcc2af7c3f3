"""Delayed requests under real threads, with events, passing time and callbacks that complete other requests."""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from kraftlake.replica_manager.requests.delayed_requests import DelayedRequests
from kraftlake.replica_manager.requests.expiration_reaper import ExpirationReaper
from kraftlake.replica_manager.requests.purgatory import DelayedOperation
from kraftlake.runtime.clock import ManualClock
from kraftlake.runtime.event_queue import FunctionEvent, KafkaEventQueue
from kraftlake.runtime.log import without_logs

KEYS = range(4)
THREADS = 3
STEPS = 60
PATIENCE = 60.0
"""The wait for threads that deadlock, in seconds, which only a fault takes."""


class Request(DelayedOperation):
    """Waits for a change of each of its keys, as a produce request waits for each of its partitions."""

    def __init__(self, run: WaitingRequests, keys: tuple[int, ...], seed: int) -> None:
        super().__init__()
        self.run, self.chance = run, random.Random(seed)
        self.pending = dict.fromkeys(keys)
        self.answers = 0
        self.looking = 0

    def can_complete(self) -> bool:
        self.looking += 1
        self.run.hold(self.looking == 1, "two threads look at a request at the same time")
        for key in list(self.pending):
            os.sched_yield()
            if key in self.run.changed:
                del self.pending[key]
        self.run.hold(self.answers == 0, "a request changes after its answer")
        self.looking -= 1
        return not self.pending

    def on_complete(self) -> None:
        self.answers += 1
        self.run.hold(self.looking == 0, "a request is answered while a thread looks at it")
        self.run.hold(not self._lock._is_owned(), "a callback runs under the operation's lock")  # type: ignore[attr-defined]
        for _ in self.pending:
            os.sched_yield()
        self.run.answered(self.chance)

    def on_expiration(self) -> None:
        self.run.expired += 1


class WaitingRequests:
    """One run; `run` raises AssertionError where a request is not answered exactly once, with the seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.clock = ManualClock()
        self.queue = KafkaEventQueue(self.clock, "reaper")
        self.delayed = DelayedRequests(self.clock)
        ExpirationReaper(self.delayed, self.queue)
        self.changed: set[int] = set()
        self.requests: list[Request] = []
        self.faults: list[str] = []
        self.expired = 0
        self.is_over = False

    def hold(self, condition: bool, sentence: str) -> None:
        """Note a broken invariant: an exception would end in the callback."""
        if not condition:
            self.faults.append(sentence)

    def run(self) -> None:
        """Random actions in threads, then the end of time."""
        threads = [threading.Thread(target=self._work, args=(number,), daemon=True) for number in range(THREADS)]
        with without_logs(), _eager_threads():
            for thread in threads:
                thread.start()
            end = time.monotonic() + PATIENCE
            for thread in threads:
                thread.join(max(end - time.monotonic(), 0))
            if any(thread.is_alive() for thread in threads):  # the reaper, then, may wait for them too
                raise AssertionError(f"seed {self.seed}: {sorted({*self.faults, 'threads wait for each other'})}")
            self.is_over = True
            self._await_reaper()
            self._pass_time(1_000)
            self._await_reaper()
            self.queue.begin_shutdown()
        answers = [request.answers for request in self.requests]
        self.hold(set(answers) == {1}, f"{answers.count(0)} of {len(answers)} requests were never answered")
        assert not self.faults, f"seed {self.seed}: {sorted(set(self.faults))}"

    def _work(self, number: int) -> None:
        chance = random.Random(self.seed * THREADS + number)
        try:
            for _ in range(STEPS):
                what = chance.random()
                if what < 0.4:
                    self.wait(chance)
                elif what < 0.8:
                    self.change(chance)
                elif number == 0:
                    self._pass_time(chance.randrange(1, 4))
        except Exception as fault:
            self.hold(False, f"a callback of another request raises here: {fault!r}")

    def wait(self, chance: random.Random) -> None:
        """A new request."""
        keys = tuple(chance.sample(KEYS, chance.randrange(1, 4)))
        request = Request(self, keys, chance.randrange(2**32))
        self.requests.append(request)
        self.delayed.produce.try_complete_else_watch(request, keys, chance.randrange(1, 6))

    def change(self, chance: random.Random) -> None:
        """An event that some requests wait for happens, or is undone."""
        key = chance.choice(KEYS)
        if chance.random() < 0.5:
            self.changed.add(key)
            self.delayed.produce.check_and_complete(key)
        else:
            self.changed.discard(key)

    def _await_reaper(self) -> None:
        """Wait until the reaper has run."""
        done = threading.Event()
        self.queue.append(FunctionEvent(done.set))
        self.hold(done.wait(PATIENCE), "the reaper waits for ever")

    def _pass_time(self, milliseconds: int) -> None:
        self.clock.advance(milliseconds)
        self.queue.wake_up()

    def answered(self, chance: random.Random) -> None:
        """The work of a client's callback."""
        what = chance.random()
        if what < 0.15:
            raise RuntimeError("a client's callback")
        if what < 0.4:
            self.change(chance)
        elif what < 0.5 and not self.is_over:
            self.wait(chance)


@contextmanager
def _eager_threads() -> Iterator[None]:
    """Let threads switch as often as possible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
