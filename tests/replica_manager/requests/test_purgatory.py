"""Delayed operations are completed once, by their condition or their timeout, and are forgotten then."""

from __future__ import annotations

import threading
import weakref

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kraftlake.replica_manager.requests.purgatory import DelayedOperation, Purgatory
from kraftlake.runtime.clock import ManualClock
from kraftlake.runtime.log import without_logs
from tests.waiting import PATIENCE

SOON = PATIENCE


class Waiting(DelayedOperation):
    """Completes once the test allows it."""

    def __init__(self, *, may: bool = False) -> None:
        super().__init__()
        self.may = may
        self.completions = 0
        self.expirations = 0
        self.tries = 0

    def can_complete(self) -> bool:
        self.tries += 1
        return self.may

    def on_complete(self) -> None:
        self.completions += 1

    def on_expiration(self) -> None:
        assert self.completions == 1
        self.expirations += 1


def test_an_operation_whose_condition_holds_is_completed_at_once():
    purgatory = Purgatory(ManualClock())
    done = Waiting(may=True)
    assert purgatory.try_complete_else_watch(done, ["a"], 100)
    assert (done.completions, purgatory.watched, purgatory.delayed) == (1, 0, 0)


def test_an_event_between_the_first_try_and_the_watch_is_not_missed():
    class Late(Waiting):
        def can_complete(self) -> bool:
            self.may = self.tries > 0
            return super().can_complete()

    late = Late()
    purgatory = Purgatory(ManualClock())
    assert purgatory.try_complete_else_watch(late, ["a"], 100)
    assert (late.completions, purgatory.delayed) == (1, 0)


def test_only_its_keys_complete_an_operation():
    purgatory = Purgatory(ManualClock())
    waiting = Waiting()
    assert not purgatory.try_complete_else_watch(waiting, ["a", "b"], 100)
    tries = waiting.tries
    assert purgatory.check_and_complete("c") == 0
    assert waiting.tries == tries
    assert purgatory.check_and_complete("a") == 0
    waiting.may = True
    assert purgatory.check_and_complete("b") == 1
    assert purgatory.check_and_complete("a") == 0
    assert waiting.completions == 1


def test_an_operation_is_completed_at_its_timeout():
    clock = ManualClock()
    purgatory = Purgatory(clock)
    soon, later = Waiting(), Waiting()
    purgatory.try_complete_else_watch(later, ["a"], 200)
    purgatory.try_complete_else_watch(soon, ["a"], 100)
    assert purgatory.next_deadline() == 100_000_000
    clock.advance(99)
    assert purgatory.expire() == 0
    clock.advance(1)
    assert purgatory.expire() == 1
    assert (soon.completions, soon.expirations, later.completions) == (1, 1, 0)
    assert purgatory.next_deadline() == 200_000_000
    later.may = True
    purgatory.check_and_complete("a")
    assert purgatory.next_deadline() is None
    clock.advance(1_000)
    assert purgatory.expire() == 0
    assert later.expirations == 0


def test_a_completed_operation_is_forgotten_at_once():
    clock = ManualClock()
    purgatory = Purgatory(clock)
    operations = [Waiting(may=False) for _ in range(5)]
    for operation in operations:
        purgatory.try_complete_else_watch(operation, ["a", "b"], 1_000)
    stays = Waiting()
    purgatory.try_complete_else_watch(stays, ["b"], 1_000)
    operations[0].expire()
    for operation in operations:
        operation.may = True
    assert purgatory.check_and_complete("a") == 4
    assert (purgatory.watched, purgatory.delayed) == (1, 1)
    forgotten = [weakref.ref(operation) for operation in operations]
    del operations, operation
    assert not any(one() for one in forgotten), "what they hold may be large"


def test_deadlines_of_completed_operations_do_not_pile_up():
    clock = ManualClock()
    purgatory = Purgatory(clock)
    stays = Waiting()
    purgatory.try_complete_else_watch(stays, ["b"], 1_000)
    for number in range(5_000):
        done = Waiting()
        purgatory.try_complete_else_watch(done, ["a"], 10_000_000 + number)
        done.may = True
        assert purgatory.check_and_complete("a") == 1
    assert len(purgatory._deadlines) < 1_100
    clock.advance(1_000)
    assert purgatory.expire() == stays.expirations == 1


def test_an_operation_needs_a_key():
    with pytest.raises(AssertionError, match="without a key"):
        Purgatory(ManualClock()).try_complete_else_watch(Waiting(), [], 1)


def test_many_threads_complete_each_operation_once():
    clock = ManualClock()
    purgatory = Purgatory(clock)
    operations = [Waiting(may=False) for _ in range(300)]
    for number, operation in enumerate(operations):
        purgatory.try_complete_else_watch(operation, [number % 3, "all"], 10)
    for operation in operations:
        operation.may = True
    clock.advance(10)
    begin = threading.Barrier(4)
    completed = [0] * 4

    def run(place: int, work) -> None:
        begin.wait()
        completed[place] = work()

    works = [purgatory.expire, lambda: purgatory.check_and_complete("all"), *(
        (lambda key=key: purgatory.check_and_complete(key)) for key in (0, 1)
    )]  # fmt: skip
    threads = [threading.Thread(target=run, args=work) for work in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [operation.completions for operation in operations] == [1] * 300
    assert sum(completed) == 300


def in_threads(*works) -> None:
    """Run functions in threads until all have ended."""
    threads = [threading.Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SOON)
    assert not any(thread.is_alive() for thread in threads), "threads wait for each other"


def test_an_operation_that_expires_during_a_check_is_completed_after_the_check():
    looking, answered = threading.Event(), threading.Event()

    class Looked(Waiting):
        pending = frozenset("ab")

        def can_complete(self) -> bool:
            if is_watched:
                looking.set()
                answered.wait(0.05)  # nothing can come between: a thread that could would do so at once
                self.pending = self.pending - {"a"}
            return False

        def on_complete(self) -> None:
            answers.append(self.pending)
            answered.set()

    clock = ManualClock()
    purgatory, answers, is_watched = Purgatory(clock), [], False
    purgatory.try_complete_else_watch(Looked(), ["a"], 10)
    is_watched = True
    clock.advance(10)

    def expire() -> None:
        assert looking.wait(SOON)
        assert purgatory.expire() == 1

    in_threads(lambda: purgatory.check_and_complete("a"), expire)
    assert answers == [frozenset("b")]


def test_two_answers_that_complete_each_others_requests_do_not_wait_for_each_other():
    purgatory = Purgatory(ManualClock())
    both_answer = threading.Barrier(2)

    class Crossing(Waiting):
        def __init__(self, other: str) -> None:
            super().__init__()
            self.other = other

        def on_complete(self) -> None:
            both_answer.wait(SOON)
            purgatory.check_and_complete(self.other)
            super().on_complete()

    crossing = [Crossing("b"), Crossing("a")]
    for operation, key in zip(crossing, "ab", strict=True):
        purgatory.try_complete_else_watch(operation, [key, "both"], 100)
        operation.may = True
    in_threads(lambda: purgatory.check_and_complete("a"), lambda: purgatory.check_and_complete("b"))
    assert [operation.completions for operation in crossing] == [1, 1]


def test_an_operation_in_completion_does_not_block_its_checks():
    purgatory = Purgatory(ManualClock())
    answering, looked = threading.Event(), threading.Event()

    class Slow(Waiting):
        def on_complete(self) -> None:
            answering.set()
            assert looked.wait(SOON)
            super().on_complete()

    slow = Slow()
    purgatory.try_complete_else_watch(slow, ["a", "b"], 100)
    slow.may = True

    def look() -> None:
        assert answering.wait(SOON)
        assert purgatory.check_and_complete("b") == 0
        looked.set()

    in_threads(lambda: purgatory.check_and_complete("a"), look)
    assert slow.completions == 1


def test_an_exception_of_a_callback_is_not_raised_and_does_not_affect_others():
    class Raising(Waiting):
        def on_complete(self) -> None:
            super().on_complete()
            raise RuntimeError("a client's callback")

        def on_expiration(self) -> None:
            super().on_expiration()
            raise RuntimeError("another one")

    clock = ManualClock()
    purgatory = Purgatory(clock)
    operations = [Raising(), Raising(), Waiting(), Raising(), Waiting()]
    for operation in operations:
        purgatory.try_complete_else_watch(operation, ["a"], 10)
    for operation in operations[:3]:
        operation.may = True
    with without_logs():
        assert purgatory.check_and_complete("a") == 3
        clock.advance(10)
        assert purgatory.expire() == 2
        assert purgatory.try_complete_else_watch(Raising(may=True), ["a"], 10)
    assert [operation.completions for operation in operations] == [1] * 5
    assert [operation.expirations for operation in operations] == [0, 0, 0, 1, 1]


def test_a_fault_of_the_completion_reaches_whoever_waits_once():
    class Raising(Waiting):
        def on_complete(self) -> None:
            super().on_complete()
            raise RuntimeError("a client's callback")

    class RaisingLater(Waiting):
        def on_expiration(self) -> None:
            raise RuntimeError("the answer was sent")

    clock = ManualClock()
    purgatory = Purgatory(clock)
    faulty: list[str] = []

    def note_and_fail() -> None:
        faulty.append("fails")
        raise RuntimeError("the connection has gone")

    watched, expired, fails, answered = Raising(), Raising(), Raising(), RaisingLater()
    watched.on_fault, expired.on_fault = (lambda: faulty.append("watched")), (lambda: faulty.append("expired"))
    fails.on_fault, answered.on_fault = note_and_fail, (lambda: faulty.append("answered"))
    with without_logs():
        for operation in (watched, expired, fails, answered):
            purgatory.watch(operation, ["a"], 10)
        watched.may = fails.may = True
        assert purgatory.check_and_complete("a") == 2
        clock.advance(10)
        assert purgatory.expire() == 2
    assert faulty == ["watched", "fails", "expired"]


def test_an_operation_whose_check_raises_waits_for_its_timeout():
    class Broken(Waiting):
        def can_complete(self) -> bool:
            raise OSError("the log can't be read")

    clock = ManualClock()
    purgatory, broken, other = Purgatory(clock), Broken(), Waiting()
    with without_logs():
        purgatory.try_complete_else_watch(broken, ["a"], 10)
        purgatory.try_complete_else_watch(other, ["a"], 10)
        other.may = True
        assert purgatory.check_and_complete("a") == 1
    clock.advance(10)
    assert purgatory.expire() == 1
    assert (broken.completions, broken.expirations) == (1, 1)


class PurgatoryMachine(RuleBasedStateMachine):
    """Compared with a simple model: an allowed operation is completed by its key, any other at its deadline."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.purgatory = Purgatory(self.clock)
        self.operations: list[tuple[Waiting, tuple[str, ...], int]] = []

    @rule(may=st.booleans(), keys=st.lists(st.sampled_from("abc"), min_size=1, unique=True), delay=st.integers(0, 5))
    def add(self, may: bool, keys: list[str], delay: int) -> None:
        operation = Waiting(may=may)
        assert self.purgatory.try_complete_else_watch(operation, keys, delay) == may
        self.operations.append((operation, tuple(keys), self.clock.milliseconds() + delay))

    @precondition(lambda self: self.operations)
    @rule(data=st.data())
    def allow(self, data: st.DataObject) -> None:
        data.draw(st.sampled_from(self.operations))[0].may = True

    @rule(key=st.sampled_from("abc"))
    def happens(self, key: str) -> None:
        due = sum(operation.may and not operation.completions and key in keys for operation, keys, _ in self.operations)
        assert self.purgatory.check_and_complete(key) == due
        assert all(operation.completions for operation, keys, _ in self.operations if operation.may and key in keys)

    @rule(passed=st.integers(0, 4))
    def time_passes(self, passed: int) -> None:
        self.clock.advance(passed)
        now = self.clock.milliseconds()
        late = [operation for operation, _, end in self.operations if end <= now and not operation.completions]
        assert self.purgatory.expire() == len(late)
        assert all(operation.expirations == 1 for operation in late)

    @invariant()
    def each_is_completed_at_most_once_and_counted_while_it_waits(self) -> None:
        assert all(operation.completions <= 1 for operation, _, _ in self.operations)
        waiting = [(keys, end) for operation, keys, end in self.operations if not operation.completions]
        assert self.purgatory.delayed == len(waiting)
        assert self.purgatory.watched == sum(len(keys) for keys, _ in waiting)
        deadline = self.purgatory.next_deadline()
        assert deadline == (min(end for _, end in waiting) * 1_000_000 if waiting else None)


TestPurgatoryMachine = PurgatoryMachine.TestCase
TestPurgatoryMachine.settings = settings()
