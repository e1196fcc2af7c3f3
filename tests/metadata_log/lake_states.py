"""All states of the lake's model, and the promises that none of them breaks."""

from __future__ import annotations

import re
from itertools import permutations

from tests.metadata_log.lake_model import Commit, Result, Step, Table, World, Writer, after, steps

_NAME = re.compile(r"w\d")
LIFE = (Step(0, "claim"), Step(0, None), *(Step(0, "append"), Step(0, None)) * 2)
"""The steps of a first writer that give a lake three files."""


def new_lake(writers: int, left: int) -> World:
    """A lake without commits, and writers with steps to do."""
    return World(((Commit(), Table()),), (Writer(left),) * writers)


def lake_of(writers: int, left: int) -> World:
    """A lake with a life behind it, and writers with steps to do; the first has claimed it."""
    world = new_lake(writers, len(LIFE))
    for step in LIFE:
        world, _ = after(world, step)
    return World(world.log, tuple(writer._replace(left=left) for writer in world.writers))


def fault_of(before: World, step: Step, world: World, result: Result) -> str | None:
    """The safety property that a step has broken, None for none."""
    table, old = world.table, before.table
    covered = [(file.low + at, batch) for file in table.files for at, batch in enumerate(file.batches)]
    if covered != list(enumerate(table.history))[table.start :]:
        return "the files hold each offset of the log once, with its batch"
    if table.history[: len(old.history)] != old.history or table.start < old.start:
        return "what is committed stays, and the start only rises"
    owners: dict[int, str] = {}
    for (epoch, who), (last, _) in zip(table.history, ((0, ""), *table.history), strict=False):
        if epoch < last or (epoch > last) is not who.startswith("claim-"):
            return "an epoch begins with one claim, and never comes again"
        if owners.setdefault(epoch, who.removeprefix("claim-")) != who.removeprefix("claim-"):
            return "an epoch has one writer"
    me = world.writers[step.writer]
    if result is not None and result[0] == "append":
        if result[1] == "fenced" and table.epoch <= me.epoch:
            return "a writer is fenced by a later epoch alone"
        if result[1] != "fenced" and table.history[result[1]] != (me.epoch, f"w{step.writer}"):
            return "what was acknowledged is there"
    return None


def explore(start: World, fault: str | None = None) -> tuple[int, str | None]:
    """Visit every state that steps lead to: their number, and the first property that is broken.

    Left out is what can't matter: operations that change nothing, follows, which read what each state is checked for,
    and of states that differ in the names of their writers all but one.
    """
    seen, waiting = {_state(start)}, [start]
    while waiting:
        world = waiting.pop()
        for step in steps(world):
            if step.begins == "follow":
                continue
            found, result = after(world, step, fault)
            broken = fault_of(world, step, found, result)
            if broken is not None:
                return len(seen), broken
            was, now = world.writers[step.writer], found.writers[step.writer]
            if now._replace(left=was.left) == was and found.log is world.log:
                continue
            state = _state(found)
            if state not in seen:
                seen.add(state)
                waiting.append(found)
    return len(seen), None


def _state(world: World) -> int:
    """The hash of a world, with its writers in an order of their own and named by it."""
    keys = [(one.left, one.version, one.epoch, _NAME.sub("", repr(one.doing))) for one in world.writers]
    commits, ranked = [commit for commit, _ in world.log], sorted(keys)
    texts = []
    for order in permutations(range(len(keys))):
        if [keys[number] for number in order] == ranked:
            names = {f"w{old}": f"w{new}" for new, old in enumerate(order)}
            text = repr((commits, [world.writers[number] for number in order]))
            texts.append(_NAME.sub(lambda found, names=names: names[found[0]], text))
    return hash(min(texts))
