"""The lake's protocol is safe in every state of its model, and the real log does what the model does."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kraftlake.metadata_log.storage.location import Location, lake_location
from tests.metadata_log.lake_model import FAULTS, Result, Step, World, after, steps
from tests.metadata_log.lake_states import LIFE, explore, fault_of, lake_of, new_lake
from tests.metadata_log.model_replay import GatedDisk, GatedStore, Replay
from tests.metadata_log.object_store import BUCKET

IS_LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
WALKS = 400 if IS_LONG else 20
WALKS_IN_A_STORE = 60 if IS_LONG else 4
STEPS = 5


@pytest.mark.parametrize(
    ("writers", "left", "states"), [(2, 4, 3_232), (3, 2, 1_006), *([(3, 4, 481_318)] if IS_LONG else [])]
)
def test_no_state_of_the_protocol_breaks_a_promise(writers: int, left: int, states: int) -> None:
    assert explore(lake_of(writers, left)) == (states, None)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_of_the_protocol_is_found(fault: str) -> None:
    _, broken = explore(lake_of(2, 4), fault)
    assert broken is not None


def walk(seed: int, writers: int = 3) -> Iterator[tuple[Step, World, Result]]:
    """The life of a lake and random steps after it, with what the model makes of them."""
    choices = random.Random(seed)
    world = new_lake(writers, len(LIFE) + STEPS)
    for turn in range(len(LIFE) + writers * STEPS):
        options = list(steps(world))
        begun = [step for step in options if step.begins is None]
        if turn < len(LIFE):
            step = LIFE[turn]
        elif begun and choices.random() < 0.5:
            step = choices.choice(begun)
        else:
            step = choices.choice(options)
        found, result = after(world, step)
        assert fault_of(world, step, found, result) is None
        world = found
        yield step, world, result


def outcomes_of_walks(make: Callable[[int], tuple[Location, GatedDisk | GatedStore]], count: int) -> Counter[str]:
    """The outcomes of random walks, which are the same on a real lake, and so is the lake in the end."""
    outcomes: Counter[str] = Counter()
    for seed in range(count):
        lake, disk = make(seed)
        replay = Replay(lake, disk, 3)
        lived = list(walk(seed))
        try:
            for step, _, result in lived:
                assert replay.step(step) == result, f"walk {seed}, {step}"
                if result is not None:
                    outcomes[f"{result[0]} {result[1] if result[1:] in (('fenced',), (0,)) else ''}".strip()] += 1
        finally:
            found = replay.end()
        table = lived[-1][1].table
        assert (found.start, found.append_only) == (table.start, table.append_only)
        assert found.history[found.start :] == table.history[table.start :]
        assert [*found.files] == [(file.low, file.end) for file in table.files]
    return outcomes


def test_the_real_log_does_what_the_model_does_on_a_disk(tmp_path: Path) -> None:
    found = outcomes_of_walks(lambda seed: (tmp_path / f"lake-{seed}", GatedDisk()), WALKS)
    assert found.keys() >= {"claim", "append", "append fenced", "upkeep", "upkeep 0", "trim", "follow"}


@pytest.mark.xdist_group("object_store")
def test_the_real_log_does_what_the_model_does_in_an_object_store(server: dict[str, str], tmp_path: Path) -> None:
    def make(seed: int) -> tuple[Location, GatedStore]:
        return lake_location(f"s3://{BUCKET}/{tmp_path.name}-{seed}"), GatedStore()

    assert outcomes_of_walks(make, WALKS_IN_A_STORE)
