"""The steps of the lake's model on the real log: threads that stop in front of each put of a commit."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from typing import Any

from kraftlake.metadata_log.delta_table.data_files import offset_span
from kraftlake.metadata_log.delta_table.delta_log import read_table
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.log_facts import LOG_TABLE, START_OFFSET
from kraftlake.metadata_log.maintenance.compaction import compact
from kraftlake.metadata_log.maintenance.trimming import declare_stream_lag, trim
from kraftlake.metadata_log.maintenance.upkeep_policy import UpkeepPolicy
from kraftlake.metadata_log.reading.tail import TailCursor
from kraftlake.metadata_log.storage.disk import Disk, ObjectStoreDisk
from kraftlake.metadata_log.storage.location import Location
from kraftlake.records.batch import RecordBatch
from kraftlake.runtime.errors import FencedEpochError
from tests.metadata_log.lake_model import Batch, Result, Step, Table
from tests.metadata_log.log_batches import data_batch

_SECONDS = 60
_COMMIT = re.compile(r"\d{20}\.json")
_ALL_SNAPSHOTS = range(1_000)
"""A snapshot for each end of the log: what a trim may remove is not what the model is of."""


class Killed(BaseException):
    """The end of a writer in the midst of an operation."""


class Gate:
    """The place in front of a put of a commit, where a writer's thread waits for its next step."""

    def __init__(self) -> None:
        self._may_go, self._stopped = threading.Event(), threading.Event()
        self.killed = False

    def wait(self) -> None:
        """Stop until the next step."""
        self._stopped.set()
        assert self._may_go.wait(_SECONDS)
        self._may_go.clear()
        if self.killed:
            raise Killed

    def reached(self) -> None:
        """The writer waits, or its operation is over."""
        self._stopped.set()

    def until_stopped(self) -> None:
        """Wait until the writer stops."""
        assert self._stopped.wait(_SECONDS), "the writer neither ends nor puts a commit"
        self._stopped.clear()

    def let_go(self) -> None:
        """Let the writer go on."""
        self._may_go.set()


class _Gated(Disk):
    """A disk that stops a writer's thread in front of each commit to a table's log."""

    gate: threading.local

    def put_if_absent(self, path: Location, data: bytes, after: Sequence[Location] = ()) -> None:
        gate: Gate | None = getattr(self.gate, "of_thread", None)
        if gate is not None and path.parent.name == "_delta_log" and _COMMIT.fullmatch(path.name):
            gate.wait()
        super().put_if_absent(path, data, after)


class GatedDisk(_Gated):
    """A local disk with gates."""

    def __init__(self) -> None:
        super().__init__("os")
        self.gate = threading.local()


class GatedStore(_Gated, ObjectStoreDisk):
    """An object store with gates."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.local()


class RealWriter:
    """One writer of the model, with a handle and a cursor of its own."""

    def __init__(self, number: int, lake: Location, disk: GatedDisk | GatedStore) -> None:
        self.log, self.epoch = MetadataLog.open(lake, disk=disk), 0
        self._number, self._table, self._disk = number, lake / LOG_TABLE, disk
        self._cursor = TailCursor(MetadataLog.open(lake, disk=disk), 0, 0.001)
        self._gate, self._thread = Gate(), threading.Thread()
        self._result: Result = None
        self._fault: BaseException | None = None

    def step(self, begins: str | None) -> Result:
        """Begin an operation, or do the put that it waits for; the outcome if the operation is over."""
        self._result = None
        if begins is None:
            self._gate.let_go()
        else:
            self._thread = threading.Thread(target=self._run, args=(getattr(self, f"_{begins}"),))
            self._thread.start()
        self._gate.until_stopped()
        if self._fault is not None:
            raise self._fault
        return self._result

    def kill(self) -> None:
        """End the writer where it waits."""
        if self._thread.is_alive():
            self._gate.killed = True
            self._gate.let_go()
            self._thread.join(_SECONDS)

    def _run(self, operation: Callable[[], Result]) -> None:
        self._disk.gate.of_thread = self._gate
        try:
            self._result = operation()
        except Killed:
            return
        except BaseException as fault:
            self._fault = fault
        self._gate.reached()

    def _claim(self) -> Result:
        self.epoch = self.log.claim(self._number)
        return "claim", self.epoch

    def _append(self) -> Result:
        at = self.log.end_offset
        batch = data_batch(at, epoch=self.epoch, who=f"-w{self._number}")
        try:
            self.log.append([batch], epoch=self.epoch, expected_end_offset=at)
        except FencedEpochError:
            return "append", "fenced"
        return "append", at

    def _upkeep(self) -> Result:
        return "upkeep", compact(self._table, self._disk, UpkeepPolicy(compact_from=2)).files

    def _trim(self) -> Result:
        state = read_table(self._table)
        lows = sorted(span.low for span in state.files.overlapping(0, 1_000))
        before = lows[-1] if lows else 0
        if before > int(state.metadata.configuration[START_OFFSET]):
            trim(self._table, self._disk, before, _ALL_SNAPSHOTS)
        return ("trim",)

    def _follow(self) -> Result:
        found: list[RecordBatch] = []
        while batches := self._cursor.step():
            found += batches
        return "follow", tuple(map(batch_of, found))


def batch_of(batch: RecordBatch) -> Batch:
    """A real batch in the model's terms."""
    (record,) = batch.messages()
    message: Any = record.message
    who = f"claim-w{message.leader_id}" if batch.control else message.name.rpartition("-")[2]
    return batch.epoch, who


class Replay:
    """A real lake, and its writers."""

    def __init__(self, lake: Location, disk: GatedDisk | GatedStore, writers: int) -> None:
        MetadataLog.create(lake, "cluster", "controlled", disk=disk)
        declare_stream_lag(lake / LOG_TABLE, disk, 0)
        self._lake, self._disk = lake, disk
        self.writers = [RealWriter(number, lake, disk) for number in range(writers)]

    def step(self, step: Step) -> Result:
        """Do a step."""
        return self.writers[step.writer].step(step.begins)

    def end(self) -> Table:
        """Kill all writers; the table then, in the model's terms, of whose files the offsets alone are compared."""
        for writer in self.writers:
            writer.kill()
        log = MetadataLog.open(self._lake, disk=self._disk)
        history = [(0, "")] * log.start_offset + [batch_of(batch) for batch in log.batches(log.start_offset)]
        state = read_table(self._lake / LOG_TABLE)
        spans = [offset_span(file) for file in state.files.values()]
        files = sorted((span.low, (span.high or 0) + 1) for span in spans)
        append_only = state.metadata.configuration["delta.appendOnly"] == "true"
        return Table(tuple(files), tuple(history), log.start_offset, append_only)  # type: ignore[arg-type]
