"""The lake's own protocol as a model: writers that claim, append, keep up, trim and follow one table of commits.

A step is what a writer does up to its next put-if-absent, or that put: between two steps others may do theirs. A writer
without steps left is killed where it is. Each batch is one record. `explore` visits every state.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

OPERATIONS = ("claim", "append", "upkeep", "trim", "follow")
FAULTS = ("no_compare_and_set", "append_retries_when_fenced", "claim_keeps_its_epoch", "blind_upkeep", "blind_trim")
"""Mistakes that a protocol could have; None is the protocol as it is."""

Batch = tuple[int, str]
"""The epoch of a batch, and its writer; a claim's begins with `claim`."""


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

    @property
    def end(self) -> int:
        """The offset that comes next."""
        return len(self.history)


class Log:
    """The commits of a table, and the table after them; the same commits are the same object."""

    _known: ClassVar[dict[tuple[int, Commit], Log]] = {}

    def __init__(self, before: Log | None, commit: Commit | None, table: Table) -> None:
        self.before, self.commit, self.table = before, commit, table
        self.version: int = 0 if before is None else before.version + 1
        self.renamed: dict[tuple[int, ...], Log] = {}

    def then(self, commit: Commit) -> Log:
        """The log after one more commit."""
        key = (id(self), commit)
        if key not in self._known:
            self._known[key] = Log(self, commit, _applied(self.table, commit))
        return self._known[key]

    def at(self, version: int) -> Log:
        """The log as it was at a version."""
        log = self
        while log.version > version:
            assert log.before is not None
            log = log.before
        return log


def _applied(before: Table, commit: Commit) -> Table:
    kept = [file for file in before.files if file not in commit.removes]
    history = before.history
    if commit.appends:
        history += tuple(batch for span in commit.adds for batch in span.batches)
    return Table(
        tuple(sorted([*kept, *commit.adds])),
        history,
        before.start if commit.start is None else commit.start,
        before.append_only if commit.append_only is None else commit.append_only,
    )


NO_LOG = Log(None, None, Table())


class Writer(NamedTuple):
    """`version` is how far its handle has read, `doing` the operation under way with the version that it puts next."""

    left: int
    version: int = 0
    epoch: int = 0
    read: int = 0
    doing: tuple[Any, ...] | None = None


class World(NamedTuple):
    """The table's log, and the writers."""

    log: Log
    writers: tuple[Writer, ...]


class Step(NamedTuple):
    """A step of a writer by number: the operation that it begins, None for the put of the one under way."""

    writer: int
    begins: str | None


Result = tuple[Any, ...] | None
"""The outcome of an operation that a step has ended."""


def steps(world: World) -> Iterator[Step]:
    """The steps that may come next."""
    for number, writer in enumerate(world.writers):
        if not writer.left:
            continue
        if writer.doing is not None:
            yield Step(number, None)
        else:
            yield from (Step(number, name) for name in OPERATIONS if name != "append" or writer.epoch)


def after(world: World, step: Step, fault: str | None = None) -> tuple[World, Result]:
    """The world after a step, and the outcome of the operation if it is over."""
    model = _Model(world, step.writer, fault)
    getattr(model, f"begin_{step.begins}" if step.begins else f"put_{model.me.doing[0]}")()  # type: ignore[index]
    writers = list(world.writers)
    writers[step.writer] = model.me._replace(left=model.me.left - 1)
    return World(model.log, tuple(writers)), model.result


def compacted_group(files: tuple[Span, ...]) -> tuple[Span, ...]:
    """The files that an upkeep merges: two or more, without old ones that outweigh those behind them."""
    begin, left = 0, sum(len(file.batches) for file in files)
    while begin < len(files) and len(files[begin].batches) > left - len(files[begin].batches):
        left -= len(files[begin].batches)
        begin += 1
    return files[begin:] if len(files) - begin > 1 else ()


class _Model:
    def __init__(self, world: World, number: int, fault: str | None) -> None:
        self.log, self.me, self.name, self.fault = world.log, world.writers[number], f"w{number}", fault
        self.result: Result = None

    @property
    def newest(self) -> int:
        return self.log.version

    def table(self, version: int | None = None) -> Table:
        return self.log.table if version is None else self.log.at(version).table

    def appended_at(self, version: int) -> bool:
        """Whether the commit that took a version was an append or a claim."""
        commit = self.log.at(version + 1).commit
        return commit is not None and commit.appends

    def do(self, *doing: Any) -> None:
        self.me = self.me._replace(doing=doing)

    def end(self, *result: Any) -> None:
        self.me, self.result = self.me._replace(doing=None), result

    def put(self, version: int, commit: Commit) -> bool:
        """The compare-and-set: whether the version was free."""
        if self.newest == version:
            self.log = self.log.then(commit)
            return True
        if self.fault == "no_compare_and_set":
            later, self.log = self.log, self.log.at(version).then(commit)
            for number in range(version + 2, later.version + 1):
                self.log = self.log.then(later.at(number).commit or Commit())
            return True
        return False

    def begin_claim(self) -> None:
        self.do("claim", self.newest, self.table().epoch + 1)

    def put_claim(self) -> None:
        _, version, epoch = self.me.doing or ()
        span = Span(self.table(version).end, ((epoch, f"claim-{self.name}"),))
        if self.put(version, Commit(adds=(span,), appends=True)):
            self.me = self.me._replace(epoch=epoch, version=version + 1)
            self.end("claim", epoch)
        elif not self.appended_at(version):
            self.do("claim", version + 1, epoch)
        else:
            kept = self.fault == "claim_keeps_its_epoch"
            self.do("claim", self.newest, epoch if kept else self.table().epoch + 1)

    def begin_append(self) -> None:
        if self.table(self.me.version).epoch != self.me.epoch:
            self.me = self.me._replace(version=self.newest)
            self.end("append", "fenced")
        else:
            self.do("append", self.me.version)

    def put_append(self) -> None:
        _, version = self.me.doing or ()
        span = Span(self.table(version).end, ((self.me.epoch, self.name),))
        if self.put(version, Commit(adds=(span,), appends=True)):
            self.me = self.me._replace(version=version + 1)
            self.end("append", span.low)
        elif not self.appended_at(version):
            self.do("append", version + 1)
        elif self.fault == "append_retries_when_fenced":
            self.do("append", self.newest)
        else:
            self.me = self.me._replace(version=self.newest)
            self.end("append", "fenced")

    def begin_upkeep(self) -> None:
        group = compacted_group(self.table().files)
        if group:
            self.do("upkeep", self.newest, group)
        else:
            self.end("upkeep", 0)

    def put_upkeep(self) -> None:
        _, version, group = self.me.doing or ()
        merged = Span(group[0].low, tuple(batch for file in group for batch in file.batches))
        if self.put(version, Commit(adds=(merged,), removes=group)):
            self.end("upkeep", len(group))
        elif self.fault == "blind_upkeep" or {*group} <= {*self.table().files}:
            self.do("upkeep", self.newest, group)
        else:
            self.end("upkeep", 0)

    def begin_trim(self) -> None:
        table = self.table()
        before = table.files[-1].low if table.files else 0
        if before <= table.start:
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

    def put_trim(self) -> None:
        _, version, before, phase, victims = self.me.doing or ()
        if phase == "remove":
            commit = Commit(removes=victims, start=victims[-1].end)
        else:
            commit = Commit(append_only=phase == "close")
        if self.put(version, commit):
            if phase == "close":
                self.end("trim")
            elif phase == "open" and (self.fault == "blind_trim" or {*victims} <= {*self.table(version + 1).files}):
                self.do("trim", version + 1, before, "remove", victims)
            else:
                self.go_on_trimming(before)
            return
        now = self.table()
        still = {*victims} <= {*now.files} and not now.append_only
        if phase != "remove" or still or self.fault == "blind_trim":
            self.do("trim", self.newest, before, phase, victims)
        else:
            self.go_on_trimming(before)

    def begin_follow(self) -> None:
        history = self.table().history
        seen = history[self.me.read :]
        self.me = self.me._replace(read=len(history))
        self.end("follow", seen)


def fault_of(before: World, step: Step, world: World, result: Result) -> str | None:
    """The safety property that a step has broken, None for none."""
    table, old = world.log.table, before.log.table
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


LIFE = (Step(0, "claim"), Step(0, None), *(Step(0, "append"), Step(0, None)) * 2)
"""The steps of a first writer that give a lake three files."""


def lake_of(writers: int, left: int) -> World:
    """A lake with a life behind it, and writers with steps to do; the first has claimed it."""
    world = World(NO_LOG, (Writer(len(LIFE)),) * writers)
    for step in LIFE:
        world, _ = after(world, step)
    return World(world.log, tuple(writer._replace(left=left) for writer in world.writers))


def explore(start: World, fault: str | None = None) -> tuple[int, str | None]:
    """Visit every state that steps lead to: their number, and the first property that is broken.

    Left out is what can't matter: operations that change nothing, follows, which read what each state is checked for,
    and of states that differ in the names of their writers all but one.
    """
    seen, waiting = {_canonical(start)}, [start]
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
            found = _canonical(found)
            if found not in seen:
                seen.add(found)
                waiting.append(found)
    return len(seen), None


def _canonical(world: World) -> World:
    """The same world with its writers in an order of their own."""
    keys = [(writer.left, writer.version, writer.epoch, repr(writer.doing)) for writer in world.writers]
    order = tuple(sorted(range(len(keys)), key=keys.__getitem__))
    if order == tuple(range(len(keys))):
        return world
    names = {f"w{old}": f"w{new}" for new, old in enumerate(order)}
    writers = (world.writers[number] for number in order)
    return World(
        _renamed_log(world.log, order, names),
        tuple(one if one.doing is None else one._replace(doing=_renamed(one.doing, names)) for one in writers),
    )


def _renamed_log(log: Log, order: tuple[int, ...], names: dict[str, str]) -> Log:
    if log.before is None or log.commit is None:
        return log
    if order not in log.renamed:
        log.renamed[order] = _renamed_log(log.before, order, names).then(_renamed(log.commit, names))
    return log.renamed[order]


def _renamed(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, str):
        return value[:-2] + names[value[-2:]] if value[-2:] in names else value
    if isinstance(value, tuple):
        made = (_renamed(one, names) for one in value)
        return type(value)(*made) if hasattr(value, "_fields") else tuple(made)
    return value
