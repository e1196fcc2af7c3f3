"""The order of events, compared with a model that sorts lists, and the errors that an event gets."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.runtime.errors import QueueFullError
from kraftlake.runtime.event_order import EventOrder, EventQueueClosedError, EventTimeoutError, earliest


@attrs.frozen
class Named:
    name: str

    def run(self) -> None: ...

    def handle_exception(self, error: Exception) -> None: ...


def turns(order: EventOrder, now_ns: int) -> list[tuple[str, type[Exception] | None]]:
    taken = []
    while (turn := order.next_turn(now_ns)) is not None:
        assert isinstance(turn.event, Named)
        taken.append((turn.event.name, None if turn.error is None else type(turn.error)))
    return taken


def names(order: EventOrder, now_ns: int = 0) -> list[str]:
    return [name for name, _ in turns(order, now_ns)]


def test_appended_events_run_in_order_and_prepended_events_before_them() -> None:
    order = EventOrder()
    for name in ("a", "b"):
        order.append(Named(name))
    for name in ("c", "d"):
        order.prepend(Named(name))

    assert len(order) == 4
    assert names(order) == ["d", "c", "a", "b"]
    assert len(order) == 0


def test_a_deferred_event_waits_for_its_deadline_and_then_runs_first() -> None:
    order = EventOrder()
    order.defer(Named("later"), "t", 100)
    assert (order.next_turn(99), order.wait_ns(40)) == (None, 60)

    order.append(Named("now"))

    assert order.wait_ns(40) == 0
    assert names(order, 100) == ["later", "now"]
    assert order.wait_ns(100) is None


def test_events_with_the_same_deadline_run_in_the_order_in_which_they_were_added() -> None:
    order = EventOrder()
    for name in "abc":
        order.defer(Named(name), name, 5)
    assert names(order, 5) == ["a", "b", "c"]


def test_a_later_event_of_a_tag_replaces_the_waiting_one() -> None:
    order = EventOrder()
    order.defer(Named("old"), "t", 10)
    order.defer(Named("new"), "t", 20)
    assert len(order) == 1
    assert names(order, 10) == []
    assert names(order, 20) == ["new"]


@pytest.mark.parametrize(("later", "kept"), [(5, 5), (10, 10), (20, 10)])
def test_the_earlier_of_two_deadlines_of_a_tag_is_kept(later: int, kept: int) -> None:
    order = EventOrder()
    order.defer(Named("old"), "t", earliest(10))
    order.defer(Named("new"), "t", earliest(later))
    assert (len(order), order.wait_ns(0)) == (1, kept)


def test_a_cancelled_event_does_not_run() -> None:
    order = EventOrder()
    order.defer(Named("a"), "t", 10)
    assert order.cancel("t")
    assert not order.cancel("t")
    assert (len(order), names(order, 10)) == (0, [])


def test_an_event_that_misses_its_deadline_times_out() -> None:
    order = EventOrder()
    order.append(Named("late"), 10)
    order.append(Named("in time"), 11)
    assert turns(order, 10) == [("late", EventTimeoutError), ("in time", None)]


def test_an_appended_event_above_the_limit_is_refused_until_a_turn_makes_room() -> None:
    order = EventOrder(limit=2)
    assert order.append(Named("a")) is None
    assert order.append(Named("b")) is None

    refusal = order.append(Named("c"))

    assert isinstance(refusal, QueueFullError)
    assert "2 events wait already" in str(refusal)
    assert order.prepend(Named("mine")) is None, "the owner's events are not refused"
    assert order.defer(Named("timer"), "x", 0) is None
    assert names(order) == ["timer", "mine", "a", "b"]
    assert order.append(Named("c")) is None


def test_a_shutdown_runs_the_queued_events_and_refuses_the_deferred_ones() -> None:
    order = EventOrder()
    order.append(Named("queued"))
    order.defer(Named("timer"), "t", 100)
    order.defer(Named("due"), "d", 1)
    order.begin_shutdown()

    assert isinstance(order.append(Named("x")), EventQueueClosedError)
    assert turns(order, 1) == [("due", None), ("timer", EventQueueClosedError), ("queued", None)]


deadlines = st.integers(0, 9)
steps = st.lists(
    st.tuples(st.just("append"), st.none() | deadlines)
    | st.tuples(st.just("prepend"), st.none())
    | st.tuples(st.sampled_from("abc"), deadlines | st.none())
    | st.tuples(st.just("wait"), st.integers(0, 3))
)


@given(steps)
def test_the_order_is_that_of_a_model_with_sorted_lists(steps: list[tuple[str, int | None]]) -> None:
    """A step with a tag (a, b or c) defers an event, or cancels the tag's event where it has no deadline."""
    order, now = EventOrder(), 0
    waiting: list[tuple[str, str, int | None]] = []
    for number, (how, at) in enumerate(steps):
        event = Named(str(number))
        if how == "wait":  # may assert nothing: few examples are waits alone
            now += at or 0
            assert turns(order, now) == model_turns(waiting, now)
            continue
        if how == "append":
            assert order.append(event, at) is None
        elif how == "prepend":
            assert order.prepend(event) is None
        else:
            waiting = [entry for entry in waiting if entry[1] != how]
            if at is None:
                order.cancel(how)
                continue
            assert order.defer(event, how, at) is None
        waiting.append((event.name, how, at))
        assert len(order) == len(waiting)


def model_turns(waiting: list[tuple[str, str, int | None]], now: int) -> list[tuple[str, type[Exception] | None]]:
    """Take out of `waiting` the events whose turn has come."""
    due = sorted(
        (entry for entry in waiting if entry[2] is not None and entry[2] <= now), key=lambda entry: entry[2] or 0
    )
    due_turns = [(name, EventTimeoutError if how == "append" else None) for name, how, _ in due]
    rest = [entry for entry in waiting if entry not in due]
    queue = [entry for entry in rest if entry[1] == "prepend"][::-1]
    queue += [entry for entry in rest if entry[1] == "append"]
    waiting[:] = [entry for entry in rest if entry not in queue]
    return due_turns + [(name, None) for name, _, _ in queue]
