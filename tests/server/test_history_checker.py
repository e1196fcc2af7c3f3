"""The judge of histories: it takes what a log may do, and names each thing that it may not."""

from __future__ import annotations

import ast
import random
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.server import history_checker
from tests.server.history_checker import CHECKS, Append, End, History, Read, violations


def sound_history(seed: int, steps: int = 60) -> History:
    """What clients of one list see: operations overlap, and some appends end without an answer, made or not."""
    chance, history, values, now = random.Random(seed), History(), list[Append | None](), 0
    at = {"a": 0, "b": 0}
    for number in range(steps):
        now += chance.randint(2, 10)
        began, ended = now - chance.randint(0, 1), now + chance.randint(0, 30)
        match chance.choice(["append", "append", "lost answer", "refused", "read", "end"]):
            case "append" | "lost answer" as kind:
                outcome = "acknowledged" if kind == "append" else "unknown"
                one = Append(
                    partition=0, value=b"%d" % number, began=began, ended=ended, outcome=outcome,
                    offset=len(values) if kind == "append" else None,
                )  # fmt: skip
                history.appends.append(one)
                if kind == "append" or chance.random() < 0.5:
                    values.append(one)
            case "refused":
                history.appends.append(
                    Append(partition=0, value=b"%d" % number, began=began, ended=ended, outcome="refused")
                )
            case "read":
                consumer = chance.choice("ab")
                for offset in range(at[consumer], len(values)):
                    history.reads.append(read(consumer, offset, values[offset], began, ended))
                at[consumer] = len(values)
            case "end":
                history.ends.append(End(partition=0, offset=len(values), began=began, ended=ended))
    history.reads += [read("last", offset, one, now + 100, now + 101) for offset, one in enumerate(values)]
    history.finished = {0}
    return history


def read(consumer: str, offset: int, one: Append | None, began: int, ended: int) -> Read:
    assert one is not None
    return Read(consumer=consumer, partition=0, offset=offset, value=one.value, began=began, ended=ended)


@given(st.integers(0, 2**32))
def test_what_one_list_may_do_is_sound(seed: int) -> None:
    assert violations(sound_history(seed)) == []


def lose(history: History) -> None:
    victim = next(one for one in history.appends if one.outcome == "acknowledged")
    history.reads = [one for one in history.reads if one.offset != victim.offset]


def double(history: History) -> None:
    last = history.reads[-1]
    history.reads.append(attrs.evolve(last, offset=last.offset + 1))


def tear(history: History) -> None:
    history.reads.append(attrs.evolve(history.reads[-1], consumer="other", value=history.appends[0].value + b"?"))


def invent(history: History) -> None:
    last = history.reads[-1]
    history.reads.append(attrs.evolve(last, offset=last.offset + 1, value=b"of nobody"))


def take_what_was_refused(history: History) -> None:
    refused = next(one for one in history.appends if one.outcome == "refused")
    last = history.reads[-1]
    history.reads.append(attrs.evolve(last, offset=last.offset + 1, value=refused.value))


def see_the_future(history: History) -> None:
    first = history.reads[0]
    history.appends = [
        attrs.evolve(one, began=first.ended + 1_000, ended=first.ended + 1_001) if one.value == first.value else one
        for one in history.appends
    ]


def reorder(history: History) -> None:
    one = next(one for one in history.appends if one.outcome == "acknowledged")
    late = max(other.ended for other in history.appends) + 1
    history.appends = [attrs.evolve(one, began=late, ended=late + 1), *history.appends[1:]]


def skip(history: History) -> None:
    del history.reads[-2]
    history.finished.clear()


def go_back(history: History) -> None:
    history.reads.append(history.reads[-2])


def forget_an_end(history: History) -> None:
    late = max(one.ended for one in (*history.appends, *history.reads)) + 1
    history.ends.append(End(partition=0, offset=0, began=late, ended=late + 1))


def shrink(history: History) -> None:
    late = max(one.ended for one in (*history.appends, *history.reads)) + 1
    history.ends += [
        End(partition=0, offset=10_000, began=late, ended=late + 1),
        End(partition=0, offset=9_999, began=late + 2, ended=late + 3),
    ]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lose, "is lost"), (double, "is at two offsets"), (tear, "holds two values"), (invent, "was never written"),
        (take_what_was_refused, "the refused"), (see_the_future, "was read before it was written"),
        (reorder, "was written after offset"), (skip, " after "), (go_back, " after "),
        (forget_an_end, "had been acknowledged"), (forget_an_end, "had been read"),
        (shrink, "though it had been 10000"),
    ],
)  # fmt: skip
def test_what_none_may_do_is_named(spoil: Callable[[History], None], said: str) -> None:
    history = sound_history(7)
    spoil(history)
    assert any(said in sentence for sentence in violations(history)), violations(history)


def test_every_check_is_spoilt_by_one_of_these() -> None:
    found = set()
    for spoil in (lose, double, invent, reorder, skip, shrink):
        history = sound_history(7)
        spoil(history)
        found |= {check.__name__ for check in CHECKS if list(check(history))}
    assert found == {check.__name__ for check in CHECKS}


def test_it_knows_nothing_of_the_project() -> None:
    tree = ast.parse(Path(history_checker.__file__).read_text("utf-8"))
    names = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    names |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert {str(name).partition(".")[0] for name in names} == {"__future__", "attrs", "collections", "typing"}
