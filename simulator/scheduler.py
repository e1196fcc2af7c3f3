"""Virtual time: tasks that run one at a time as greenlets, and a clock that jumps to the next deadline when all wait.

A task runs until it blocks. Which of several ready tasks runs next is drawn from the seed, and a task may be
interrupted where it takes a lock, so that each seed is another interleaving. Nothing else is random: the same seed
makes the same steps.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any

import greenlet

SECOND = 1_000_000_000
MILLISECOND = 1_000_000
FOREVER = 1 << 62
WALL_START_NS = 1_800_000_000 * SECOND
_LOCKS_A_INTERRUPTION = 50
"""The mean number of lock acquisitions between two before which another task may run."""


class Killed(BaseException):
    """The process of the running task was killed: nothing more of it happens."""


class Process:
    """What dies and is suspended as one: tasks, a clock, and sources of chance.

    `skew_ns` is how far its wall clock is ahead; its monotonic clock starts anywhere.
    """

    def __init__(self, scheduler: Scheduler, name: str, *, skew_ns: int = 0) -> None:
        self.name = name
        self.chance = Random(scheduler.chance.getrandbits(64))
        self.alive = True
        self.frozen = False
        self.skew_ns = skew_ns
        self.started_ns = scheduler.now_ns - self.chance.randrange(1000 * SECOND)
        self.tasks: dict[Task, None] = {}
        self.held: list[Task] = []
        """The tasks that would run if the process were not suspended."""
        self.extra: dict[str, Any] = {}


class Task:
    """A thread of a process."""

    __slots__ = ("greenlet", "is_parked", "is_woken", "name", "number", "process", "thread", "token")

    def __init__(self, process: Process, name: str, number: int) -> None:
        self.process = process
        self.name = name
        self.number = number
        self.thread: Any = None
        self.greenlet: Any = None
        self.is_parked = self.is_woken = False
        self.token = 0


class Scheduler:
    """Runs tasks in virtual time. `after_step` is called after each stretch of a task, outside of all tasks."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.now_ns = 0
        self.current: Task | None = None
        self.steps = 0
        self.most_steps = FOREVER
        """More steps than these are a fault."""
        self.trace = 0
        """A number that depends on all steps so far."""
        self.after_step: Callable[[], None] | None = None
        self.fault: BaseException | None = None
        """What ended a task that no task handles: the simulation has failed."""
        self.until_interruption = _LOCKS_A_INTERRUPTION
        """The number of lock acquisitions up to the one at which the running task is interrupted."""
        self._numbers = count()
        self._ready: list[Task] = []
        self._timers: list[tuple[int, int, Callable[[], None] | None, Task | None, int]] = []
        self._hub = greenlet.getcurrent()
        self.outside = Process(self, "outside")
        """The process of what belongs to no node."""
        self.process = self.outside
        """The process that runs: that of `current`, or `outside`."""

    # for tasks

    def park(self, deadline_ns: int | None = None) -> bool:
        """Wait until the task is woken, or the deadline; returns whether it was woken. Raises Killed."""
        task = self.current
        assert task is not None, "only a task can wait"
        if not task.process.alive:
            raise Killed
        task.token += 1
        task.is_parked, task.is_woken = True, False
        if deadline_ns is not None:
            heapq.heappush(self._timers, (deadline_ns, next(self._numbers), None, task, task.token))
        self._hub.switch()
        if not task.process.alive:
            raise Killed
        return task.is_woken

    def pause(self) -> None:
        """Let others run. Raises Killed."""
        task = self.current
        if task is None:
            return
        if not task.process.alive:
            raise Killed
        self._ready.append(task)
        self._hub.switch()
        if not task.process.alive:
            raise Killed

    def interrupt(self) -> None:
        """Let others run, and draw when the next interruption is due. Raises Killed."""
        self.until_interruption = self.chance.randrange(1, 2 * _LOCKS_A_INTERRUPTION)
        self.pause()

    def sleep(self, nanoseconds: int) -> None:
        """Wait for some time. Raises Killed."""
        self.park(self.now_ns + max(0, nanoseconds))

    def wake(self, task: Task) -> None:
        """Make a waiting task ready; another one is left as it is."""
        if task.is_parked:
            task.is_parked, task.is_woken = False, True
            self._ready.append(task)

    def at(self, deadline_ns: int, action: Callable[[], None]) -> None:
        """Call `action`, which does not block, outside of all tasks at a time."""
        heapq.heappush(self._timers, (max(deadline_ns, self.now_ns), next(self._numbers), action, None, 0))

    def after(self, nanoseconds: int, action: Callable[[], None]) -> None:
        """Call `action`, which does not block, outside of all tasks after some time."""
        self.at(self.now_ns + nanoseconds, action)

    def start(self, process: Process, name: str, run: Callable[[], object]) -> Task:
        """Begin a task."""
        task = Task(process, name, next(self._numbers))

        def body() -> None:
            try:
                if process.alive:
                    run()
            except (Killed, greenlet.GreenletExit):
                pass
            except BaseException as fault:
                if process.alive:
                    self.fault = self.fault or fault
            finally:
                process.tasks.pop(task, None)

        task.greenlet = greenlet.greenlet(body, parent=self._hub)
        process.tasks[task] = None
        self._ready.append(task)
        return task

    # for whoever runs the simulation

    def note(self, number: int) -> None:
        """Let the trace depend on a number."""
        self.trace = hash((self.trace, number))

    def kill(self, process: Process) -> None:
        """End a process at once; its tasks get Killed at whatever they wait for, and whatever they do then."""
        process.alive = False
        tasks, process.tasks, process.held = list(process.tasks), {}, []
        for task in tasks:
            if task is not self.current:  # that one learns of it by its next call
                self.end(task)

    def end(self, task: Task) -> None:
        """End a task; it gets Killed at what it waits for."""
        task.is_parked = False
        task.token += 1
        if task in self._ready:
            self._ready.remove(task)
        before, self.current, self.process = (self.current, self.process), task, task.process
        try:
            if task.greenlet and not task.greenlet.dead:
                task.greenlet.parent = greenlet.getcurrent()
                task.greenlet.throw(Killed)
        finally:
            self.current, self.process = before

    def suspend(self, process: Process) -> None:
        """Stop a process as SIGSTOP does."""
        process.frozen = True

    def resume(self, process: Process) -> None:
        """Let a suspended process go on."""
        process.frozen = False
        self._ready += process.held
        process.held = []

    def run(self, until_ns: int) -> None:
        """Run up to a time; raises what ended a task."""
        self._hub = greenlet.getcurrent()
        ready, timers, randrange, outside = self._ready, self._timers, self.chance.randrange, self.outside
        while True:
            while ready:
                at = randrange(len(ready)) if len(ready) > 1 else 0
                ready[at], ready[-1] = ready[-1], ready[at]
                task = ready.pop()
                process = task.process
                if not process.alive:
                    continue
                if process.frozen:
                    process.held.append(task)
                    continue
                self.current, self.process = task, process
                task.greenlet.switch()
                self.current, self.process = None, outside
                self.steps += 1
                self.trace = hash((self.trace, self.now_ns, task.number))
                if self.fault is not None:
                    raise self.fault
                if self.steps > self.most_steps:  # here, since those that wake each other never let the time go on
                    raise AssertionError(f"{self.steps} steps: tasks keep each other busy")
                if self.after_step is not None:
                    self.after_step()
                ready = self._ready
            if not timers or timers[0][0] > until_ns:
                self.now_ns = max(self.now_ns, until_ns)
                return
            due_ns, _, action, waiting, token = heapq.heappop(timers)
            self.now_ns = max(self.now_ns, due_ns)
            if action is not None:
                action()
                if self.after_step is not None:
                    self.after_step()
            elif waiting is not None and waiting.is_parked and waiting.token == token:
                waiting.is_parked = False
                self._ready.append(waiting)
            ready = self._ready

    # clocks

    def monotonic_ns(self) -> int:
        """The monotonic clock of the running process."""
        return self.now_ns - self.process.started_ns

    def time_ns(self) -> int:
        """The wall clock of the running process."""
        return WALL_START_NS + self.now_ns + self.process.skew_ns


class Running:
    """Has the scheduler of the running simulation, for what is asked too often to call `active`."""

    scheduler: Scheduler


def active() -> Scheduler:
    """The scheduler of the running simulation."""
    assert hasattr(Running, "scheduler"), "no simulation runs"
    return Running.scheduler


def activate(scheduler: Scheduler | None) -> None:
    """Make a scheduler the one that virtual threads, clocks and files use."""
    if scheduler is not None:
        Running.scheduler = scheduler
    elif hasattr(Running, "scheduler"):
        del Running.scheduler
