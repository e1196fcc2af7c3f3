from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

import pytest

from kraftlake.server.requests import doorway
from kraftlake.server.requests.doorway import Doorway


def run(act: Callable[[Doorway, list[str]], None], *, seconds: float = 0.0) -> list[str]:
    """What happens to guests, who are named after what ends them."""
    ended: list[str] = []

    async def within() -> None:
        act(Doorway(asyncio.get_running_loop()), ended)
        await asyncio.sleep(seconds)

    asyncio.run(within())
    return ended


def test_the_oldest_guest_of_an_address_gives_way_and_then_the_oldest_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doorway, "MAX_GUESTS_OF_HOST", 2)
    monkeypatch.setattr(doorway, "MAX_GUESTS", 3)

    def act(door: Doorway, ended: list[str]) -> None:
        enter = {name: partial(ended.append, name) for name in ("a1", "a2", "a3", "b1", "c1")}
        for name, abort in enter.items():
            door.enter(abort, name[0])
        assert door.guests == 3
        door.leave(enter["c1"])
        door.leave(enter["c1"])
        assert door.guests == 2

    assert run(act) == ["a1", "a2"]


def test_who_holds_the_oldest_bytes_of_an_address_or_of_all_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doorway, "MAX_GUEST_BYTES_OF_HOST", 10)
    monkeypatch.setattr(doorway, "MAX_GUEST_BYTES", 14)

    def act(door: Doorway, ended: list[str]) -> None:
        ends = {name: partial(ended.append, name) for name in ("a1", "a2", "b1", "b2")}
        for name, abort in ends.items():
            door.enter(abort, name[0])
        door.bytes_of("a").hold(ends["a1"], 6)
        door.bytes_of("a").hold(ends["a2"], 5)
        door.bytes_of("b").hold(ends["b1"], 8)
        assert ended == ["a1"]
        door.bytes_of("b").hold(ends["b2"], 2)
        door.bytes_of("b").hold(ends["b2"], 0)
        assert door.bytes_of("b").total == 8

    assert run(act) == ["a1", "a2"]


def test_a_guest_has_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doorway, "LOGIN_SECONDS", 0.01)

    def act(door: Doorway, ended: list[str]) -> None:
        slow, quick = partial(ended.append, "slow"), partial(ended.append, "quick")
        door.enter(slow, "a")
        door.enter(quick, "a")
        door.leave(quick)

    assert run(act, seconds=0.1) == ["slow"]


def test_steps_take_turns_with_all_else_and_one_that_fails_holds_up_no_other() -> None:
    def act(door: Doorway, ended: list[str]) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: ended.append(str(context["exception"])))

        def fail() -> None:
            raise ValueError("a fault")

        door.later(partial(ended.append, "first"))
        door.later(fail)
        door.later(partial(ended.append, "third"))
        loop.call_soon(lambda: loop.call_soon(ended.append, "other"))

    found = run(act, seconds=0.05)
    assert sorted(found) == ["a fault", "first", "other", "third"]
    assert found.index("other") < found.index("third")
