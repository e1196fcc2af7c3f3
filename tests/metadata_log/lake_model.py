"""The lake's own protocol as a model: writers that claim, append, keep up, trim and follow one table of commits.

A step is what a writer does up to its next put-if-absent, or that put: between two steps others may do theirs. A writer
without steps left is killed where it is. Each batch is one record. `lake_states.py` visits every state.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

OPERATIONS = ("claim", "append", "upkeep", "trim", "follow")
FAULTS = ("no_compare_and_set", "append_retries_when_fenced", "claim_keeps_its_epoch", "blind_upkeep", "blind_trim")
"""Mistakes that a protocol could have; None is the protocol as it is."""

Batch: TypeAlias = tuple[int, str]
"""The epoch of a batch, and its writer; a claim's begins with `claim`."""
Result: TypeAlias = tuple[Any, ...] | None
"""The outcome of an operation that a step has ended."""


class Span(NamedTuple):
    """A data file: its first offset, and the batches in it."""

    low: int
    batches: tuple[Batch, ...]

    @property
    def end(self) -> int:
        """The offset after its last one."""
        return self.low + len(self.batches)


class Commit(NamedTuple):
    """A version of the table; `appends`: it has new rows. None: as before."""

    adds: tuple[Span, ...] = ()
    removes: tuple[Span, ...] = ()
    appends: bool = False
    start: int | None = None
    append_only: bool | None = None


class Table(NamedTuple):
    """The table after some commits."""

    files: tuple[Span, ...] = ()
    history: tuple[Batch, ...] = ()
    start: int = 0
    append_only: bool = True

    @property
    def epoch(self) -> int:
        """The newest epoch, 0 for none."""
        return self.history[-1][0] if self.history else 0

    def after(self, commit: Commit) -> Table:
        """The table after one more commit."""
        kept = [file for file in self.files if file not in commit.removes]
        new = tuple(batch for span in commit.adds for batch in span.batches) if commit.appends else ()
        start = self.start if commit.start is None else commit.start
        append_only = self.append_only if commit.append_only is None else commit.append_only
        return Table(tuple(sorted([*kept, *commit.adds])), self.history + new, start, append_only)


class Writer(NamedTuple):
    """`version` is how far its handle has read, `doing` the operation under way with the version that it puts next."""

    left: int
    version: int = 0
    epoch: int = 0
    read: int = 0
    doing: tuple[Any, ...] | None = None


class World(NamedTuple):
    """The commits of the lake, each with the table after it, and the writers."""

    log: tuple[tuple[Commit, Table], ...]
    writers: tuple[Writer, ...]

    @property
    def table(self) -> Table:
        """The newest table."""
        return self.log[-1][1]


class Step(NamedTuple):
    """A step of a writer by number: the operation that it begins, None for the put of the one under way."""

    writer: int
    begins: str | None


def steps(world: World) -> Iterator[Step]:
    """The steps that may come next."""
    for number, writer in enumerate(world.writers):
        if writer.left and writer.doing is not None:
            yield Step(number, None)
        elif writer.left:
            yield from (Step(number, name) for name in OPERATIONS if name != "append" or writer.epoch)


def after(world: World, step: Step, fault: str | None = None) -> tuple[World, Result]:
    """The world after a step, and the outcome of the operation if it is over."""
    model = _Model(world, step.writer, fault)
    name, *doing = (step.begins,) if step.begins else model.me.doing or ()
    getattr(model, str(name))(*doing)
    me = model.me._replace(left=model.me.left - 1)
    writers = (*world.writers[: step.writer], me, *world.writers[step.writer + 1 :])
    return World(model.log, writers), model.result


def compacted_group(files: tuple[Span, ...]) -> tuple[Span, ...]:
    """The files that an upkeep merges: two or more, without old ones that outweigh those behind them."""
    begin, left = 0, sum(len(file.batches) for file in files)
    while begin < len(files) and len(files[begin].batches) > left - len(files[begin].batches):
        left -= len(files[begin].batches)
        begin += 1
    return files[begin:] if len(files) - begin > 1 else ()


class _Model:
    """A writer's operations: called without a version they begin, with one they put it."""

    def __init__(self, world: World, number: int, fault: str | None) -> None:
        self.log, self.me, self.name, self.fault = world.log, world.writers[number], f"w{number}", fault
        self.result: Result = None

    @property
    def newest(self) -> int:
        return len(self.log) - 1

    def table(self, version: int = -1) -> Table:
        return self.log[version][1]

    def do(self, *doing: Any) -> None:
        self.me = self.me._replace(doing=doing)

    def end(self, *result: Any, **changes: int) -> None:
        self.me, self.result = self.me._replace(doing=None, **changes), result

    def put(self, version: int, commit: Commit) -> bool:
        """The compare-and-set: whether the version was free."""
        is_free = self.newest == version
        if is_free or self.fault == "no_compare_and_set":
            later, self.log = self.log[version + 2 :], self.log[: version + 1]
            for one in (commit, *(other for other, _ in later)):
                self.log += ((one, self.table().after(one)),)
            return True
        return False

    def put_row(self, version: int, epoch: int, who: str) -> bool:
        span = Span(len(self.table(version).history), ((epoch, who),))
        return self.put(version, Commit(adds=(span,), appends=True))

    def claim(self, version: int | None = None, epoch: int = 0) -> None:
        if version is None:
            self.do("claim", self.newest, self.table().epoch + 1)
        elif self.put_row(version, epoch, f"claim-{self.name}"):
            self.end("claim", epoch, epoch=epoch, version=version + 1)
        elif not self.log[version + 1][0].appends:
            self.do("claim", version + 1, epoch)
        else:
            self.do("claim", self.newest, epoch if self.fault == "claim_keeps_its_epoch" else self.table().epoch + 1)

    def append(self, version: int | None = None) -> None:
        if version is None and self.table(self.me.version).epoch == self.me.epoch:
            self.do("append", self.me.version)
        elif version is None:
            self.end("append", "fenced", version=self.newest)
        elif self.put_row(version, self.me.epoch, self.name):
            self.end("append", len(self.table(version).history), version=version + 1)
        elif not self.log[version + 1][0].appends:
            self.do("append", version + 1)
        elif self.fault == "append_retries_when_fenced":
            self.do("append", self.newest)
        else:
            self.end("append", "fenced", version=self.newest)

    def upkeep(self, version: int | None = None, group: tuple[Span, ...] = ()) -> None:
        group = group or compacted_group(self.table().files)
        if version is not None:
            merged = Span(group[0].low, tuple(batch for file in group for batch in file.batches))
            if self.put(version, Commit(adds=(merged,), removes=group)):
                self.end("upkeep", len(group))
                return
        if group and ({*group} <= {*self.table().files} or self.fault == "blind_upkeep"):
            self.do("upkeep", self.newest, group)
        else:
            self.end("upkeep", 0)

    def trim(
        self, version: int | None = None, before: int = 0, phase: str = "", victims: tuple[Span, ...] = ()
    ) -> None:
        """Phases: `open` lets files be removed, `remove` does it, `close` ends that."""
        if version is None:
            before = self.table().files[-1].low if self.table().files else 0
            is_over = before <= self.table().start
        else:
            removal = Commit(removes=victims, start=victims[-1].end) if phase == "remove" else None
            is_put = self.put(version, removal or Commit(append_only=phase == "close"))
            is_over = is_put and phase == "close"
            now = self.table(version + 1) if is_put else self.table()
            still = {*victims} <= {*now.files} or self.fault == "blind_trim"
            if is_put and phase == "open" and still:
                self.do("trim", version + 1, before, "remove", victims)
                return
            if not is_put and (phase != "remove" or (still and not now.append_only) or self.fault == "blind_trim"):
                self.do("trim", self.newest, before, phase, victims)
                return
        if is_over:
            self.end("trim")
        else:
            self.go_on_trimming(before)

    def go_on_trimming(self, before: int) -> None:
        table = self.table()
        victims = tuple(file for file in table.files if file.end <= before)
        if victims:
            self.do("trim", self.newest, before, "open" if table.append_only else "remove", victims)
        elif not table.append_only:
            self.do("trim", self.newest, before, "close", ())
        else:
            self.end("trim")

    def follow(self) -> None:
        history = self.table().history
        self.end("follow", history[self.me.read :], read=len(history))
