"""Blocks of producer ids: each id once, the next block in time."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread

from hypothesis import given
from hypothesis import strategies as st

from kraftlake.server.broker.serving.producer_ids import ProducerIdManager

Take = Callable[[tuple[int, int] | None], None]


class Controller:
    """Allocates blocks of 1,000 ids when it is to answer."""

    def __init__(self) -> None:
        self.asked: list[Take] = []
        self.first = 0

    def allocate(self, take: Take) -> None:
        self.asked.append(take)

    def answer(self, *, fails: bool = False) -> None:
        take = self.asked.pop(0)
        take(None if fails else (self.first, 1_000))
        self.first += 0 if fails else 1_000


def test_there_is_no_id_before_the_controller_has_answered_and_one_question_at_a_time() -> None:
    controller = Controller()
    ids = ProducerIdManager(controller.allocate)
    assert [ids.generate() for _ in range(3)] == [None, None, None]
    assert len(controller.asked) == 1
    controller.answer()
    assert ids.generate() == 0


def test_the_next_block_is_asked_for_before_the_last_id() -> None:
    controller = Controller()
    ids = ProducerIdManager(controller.allocate)
    ids.prefetch()
    ids.prefetch()
    controller.answer()
    assert [ids.generate() for _ in range(899)] == [*range(899)]
    assert controller.asked == []
    assert ids.generate() == 899
    assert len(controller.asked) == 1
    assert [ids.generate() for _ in range(101)] == [*range(900, 1_000), None]
    controller.answer()
    assert ids.generate() == 1_000


def test_after_a_refusal_it_asks_again() -> None:
    controller = Controller()
    ids = ProducerIdManager(controller.allocate)
    ids.prefetch()
    controller.answer(fails=True)
    assert ids.generate() is None
    controller.answer()
    assert ids.generate() == 0


@given(st.lists(st.sampled_from(["generate", "answer", "fail"]), max_size=60))
def test_no_id_is_given_twice(steps: list[str]) -> None:
    controller = Controller()
    ids = ProducerIdManager(controller.allocate)
    given_: list[int] = []
    for step in steps:
        if step == "generate":
            for _ in range(300):
                made = ids.generate()
                if made is not None:
                    given_.append(made)
        elif controller.asked:
            controller.answer(fails=step == "fail")
    assert given_ == sorted({*given_})


def test_threads_get_different_ids() -> None:
    controller = Controller()
    ids = ProducerIdManager(controller.allocate)
    ids.prefetch()
    controller.answer()
    made: list[int | None] = []
    threads = [Thread(target=lambda: made.extend(ids.generate() for _ in range(100))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({*made}) == 800
