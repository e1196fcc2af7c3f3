"""The order of events, against a model that sorts lists, and what each way out of the queue tells an event."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.runtime.errors import QueueFullError
from kraftlake.runtime.event_order import (
    EventOrder,
    EventQueueClosedError,
    EventTimeoutError,
    Place,
    earliest,
    latest,
)


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


def test_what_is_appended_comes_in_order_and_what_is_prepended_before_it() -> None:
    order = EventOrder()
    for name in ("a", "b"):
        order.add(Named(name), Place.APPEND)
    for name in ("c", "d"):
        order.add(Named(name), Place.PREPEND)

    assert len(order) == 4
    assert names(order) == ["d", "c", "a", "b"]
    assert len(order) == 0


def test_a_deferred_event_waits_for_its_time_and_then_comes_first() -> None:
    order = EventOrder()
    order.add(Named("later"), Place.DEFERRED, tag="t", deadline=100)
    assert (order.next_turn(99), order.wait_ns(40)) == (None, 60)

    order.add(Named("now"), Place.APPEND)

    assert order.wait_ns(40) == 0
    assert names(order, 100) == ["later", "now"]
    assert order.wait_ns(100) is None


def test_events_deferred_to_the_same_time_come_in_the_order_of_their_adding() -> None:
    order = EventOrder()
    for name in "abc":
        order.add(Named(name), Place.DEFERRED, tag=name, deadline=5)
    assert names(order, 5) == ["a", "b", "c"]


def test_a_tag_has_one_event_the_last_one() -> None:
    order = EventOrder()
    order.add(Named("old"), Place.DEFERRED, tag="t", deadline=10)
    order.add(Named("new"), Place.DEFERRED, tag="t", deadline=20)
    assert len(order) == 1
    assert names(order, 10) == []
    assert names(order, 20) == ["new"]


@pytest.mark.parametrize(("function", "kept"), [(earliest(20), 10), (latest(20), 20)])
def test_a_deadline_can_be_moved_one_way_only(function: object, kept: int) -> None:
    order = EventOrder()
    order.add(Named("old"), Place.DEFERRED, tag="t", deadline=10)
    order.add(Named("new"), Place.DEFERRED, tag="t", deadline=function)  # type: ignore[arg-type]
    assert order.wait_ns(0) == kept


def test_a_cancelled_event_has_no_turn() -> None:
    order = EventOrder()
    order.add(Named("a"), Place.DEFERRED, tag="t", deadline=10)
    assert order.cancel("t")
    assert not order.cancel("t")
    assert (len(order), names(order, 10)) == (0, [])


def test_an_event_that_misses_its_deadline_is_told() -> None:
    order = EventOrder()
    order.add(Named("late"), Place.APPEND, deadline=10)
    order.add(Named("in time"), Place.APPEND, deadline=11)
    assert turns(order, 10) == [("late", EventTimeoutError), ("in time", None)]


def test_more_than_the_limit_is_refused_and_makes_room_again_when_taken() -> None:
    order = EventOrder(limit=2)
    assert order.add(Named("a"), Place.APPEND, tag="t") is None
    assert order.add(Named("b"), Place.APPEND) is None

    refusal = order.add(Named("c"), Place.APPEND)

    assert isinstance(refusal, QueueFullError)
    assert "2 events wait already" in str(refusal)
    assert order.add(Named("a again"), Place.APPEND, tag="t") is None, "it takes the place of another"
    assert order.add(Named("mine"), Place.PREPEND) is None, "the owner's own are not refused"
    assert order.add(Named("timer"), Place.DEFERRED, tag="x", deadline=0) is None
    assert names(order) == ["timer", "mine", "b", "a again"]
    assert order.add(Named("c"), Place.APPEND) is None


def test_a_shutdown_lets_the_queue_run_dry_and_tells_those_that_wait_for_a_time() -> None:
    order = EventOrder()
    order.add(Named("queued"), Place.APPEND)
    order.add(Named("timer"), Place.DEFERRED, tag="t", deadline=100)
    order.add(Named("due"), Place.DEFERRED, tag="d", deadline=1)
    order.begin_shutdown()

    assert isinstance(order.add(Named("x"), Place.APPEND), EventQueueClosedError)
    assert turns(order, 1) == [("due", None), ("timer", EventQueueClosedError), ("queued", None)]


adding = st.tuples(st.sampled_from(list(Place)), st.none() | st.sampled_from("abc"), st.integers(0, 9), st.booleans())


@given(st.lists(adding | st.sampled_from("abc") | st.integers(0, 3)))
def test_it_gives_what_a_model_of_sorted_lists_gives(
    steps: list[tuple[Place, str | None, int, bool] | str | int],
) -> None:
    order, now = EventOrder(), 0
    waiting: list[tuple[str, Place, str | None, int | None]] = []
    for number, step in enumerate(steps):
        if isinstance(step, int):
            now += step
            assert turns(order, now) == model_turns(waiting, now)
        elif isinstance(step, str):
            order.cancel(step)
            waiting = [entry for entry in waiting if entry[2] != step]
        else:
            place, tag, deadline, timed = step
            at = deadline if timed or place is Place.DEFERRED else None
            waiting = [entry for entry in waiting if tag is None or entry[2] != tag]
            waiting.append((str(number), place, tag, at))
            assert order.add(Named(str(number)), place, tag=tag, deadline=at) is None
        assert len(order) == len(waiting)


def model_turns(
    waiting: list[tuple[str, Place, str | None, int | None]], now: int
) -> list[tuple[str, type[Exception] | None]]:
    """Takes out of `waiting` what has its turn."""
    due = sorted(
        (entry for entry in waiting if entry[3] is not None and entry[3] <= now), key=lambda entry: entry[3] or 0
    )
    told = [(entry[0], None if entry[1] is Place.DEFERRED else EventTimeoutError) for entry in due]
    rest = [entry for entry in waiting if entry not in due]
    queue = [entry for entry in rest if entry[1] is Place.PREPEND][::-1]
    queue += [entry for entry in rest if entry[1] is Place.APPEND]
    waiting[:] = [entry for entry in rest if entry not in queue]
    return told + [(entry[0], None) for entry in queue]
