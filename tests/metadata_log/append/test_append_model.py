"""The whole append protocol against a list in memory: writers, claims, faults of the disk, power cuts, maintenance."""

from __future__ import annotations

import errno
import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import attrs
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kraftlake.metadata_log.delta_table.commit import (
    CommitConflictError,
    UnknownOutcomeError,
    commit,
    commit_info,
)
from kraftlake.metadata_log.delta_table.delta_log import read_table
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.records.batch import RecordBatch
from kraftlake.runtime.errors import EndOffsetError, FencedEpochError, LakeError
from simulator.forgetful_disk import ForgetfulDisk, PowerCut
from tests.metadata_log.delta_protocol import check_commits
from tests.metadata_log.log_batches import data_batch

WRITERS = ("anna", "bert", "cleo")
FAULTS = ("before", "after", "full", "slow")
A_COMMITS_OPERATIONS = 8


class FaultyDisk(ForgetfulDisk):
    """A forgetful disk of which one coming operation fails: before it is done, after it, or half-way; or it is slow.

    While it is slow, `meanwhile` happens.
    """

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.fault: str | None = None
        self.fault_in = 0
        self.meanwhile: Callable[[], None] = lambda: None
        self.committing = False

    def _due(self) -> str | None:
        if self.fault is None:
            return None
        self.fault_in -= 1
        # A commit that is visible and not yet acknowledged is in no model: a slow operation waits for its end.
        if self.fault_in >= 0 or (self.fault == "slow" and self.committing):
            return None
        fault, self.fault = self.fault, None
        if fault == "slow":
            self.meanwhile()
            return None
        return fault

    def _do(self, operation: Callable[[], None], half: Callable[[], None] | None = None) -> None:
        fault = self._due()
        if fault == "before":
            raise OSError(errno.EIO, "Input/output error")
        if fault == "full":
            if half:
                half()
            raise OSError(errno.ENOSPC, "No space left on device")
        operation()
        if fault == "after":
            raise OSError(errno.ETIMEDOUT, "Connection timed out")

    def write(self, path: Path, data: bytes | memoryview) -> None:
        half = memoryview(data).cast("B")[: len(data) // 2]
        self._do(lambda: ForgetfulDisk.write(self, path, data), lambda: ForgetfulDisk.write(self, path, half))

    def fsync(self, path: Path) -> None:
        self._do(lambda: ForgetfulDisk.fsync(self, path))

    def link(self, source: Path, target: Path) -> None:
        def made() -> None:
            ForgetfulDisk.link(self, source, target)
            self.committing = True

        self._do(made)

    def unlink(self, path: Path) -> None:
        try:
            self._do(lambda: ForgetfulDisk.unlink(self, path))
        finally:
            self.committing = False


@attrs.define
class Writer:
    """A handle, and the epoch that it claimed last (0: none)."""

    log: MetadataLog
    epoch: int = 0


class AppendMachine(RuleBasedStateMachine):
    """`batches` is the log as readers see it; the first `durable` were acknowledged, or lie before one that was."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="kraftlake-model-"))
        self.disk = FaultyDisk(self.root)
        self.path = self.root / "lake"
        MetadataLog.create(self.path, "cluster", "controlled", disk=self.disk)
        self.batches: list[RecordBatch] = []
        self.durable = 0
        self.serial = 0
        self.writers: dict[str, Writer] = {}
        self.properties = 0

    def teardown(self) -> None:
        self.disk.fault = None
        check_commits(self.path / "log")
        shutil.rmtree(self.root)

    @property
    def end(self) -> int:
        return self.batches[-1].last_offset + 1 if self.batches else 0

    @property
    def epoch(self) -> int:
        return self.batches[-1].epoch if self.batches else 0

    def writer(self, name: str) -> Writer:
        if name not in self.writers:
            self.writers[name] = Writer(MetadataLog.open(self.path, disk=self.disk))
        return self.writers[name]

    def seen(self) -> list[RecordBatch]:
        return list(MetadataLog.open(self.path).batches())

    def acknowledge(self, batches: list[RecordBatch]) -> None:
        self.batches += batches
        self.durable = len(self.batches)

    def do_claim(self, name: str) -> None:
        writer = self.writer(name)
        try:
            epoch = writer.log.claim(WRITERS.index(name))
        except UnknownOutcomeError as fault:
            self.take_in_doubtful(writer, fault)
        except LakeError:
            pass
        else:
            assert epoch == self.epoch + 1
            writer.epoch = epoch
            (batch,) = self.seen()[len(self.batches) :]
            assert (batch.control, batch.epoch, batch.base_offset) == (True, epoch, self.end)
            self.acknowledge([batch])

    def do_append(self, name: str, counts: list[int], behind: int) -> None:
        writer = self.writer(name)
        at = max(0, self.end - behind)
        batches, offset = [], at
        for count in counts:
            self.serial += 1
            batches.append(data_batch(offset, count, epoch=writer.epoch, who=f"-{name}-{self.serial}"))
            offset += count
        try:
            writer.log.append(batches, epoch=writer.epoch, expected_end_offset=at)
        except FencedEpochError as fault:
            assert (fault.epoch, fault.current_epoch) == (writer.epoch, self.epoch)  # noqa: PT017
            assert writer.epoch < self.epoch
        except EndOffsetError as fault:
            assert (fault.expected, fault.actual) == (at, self.end)  # noqa: PT017
            assert writer.epoch == self.epoch
            assert at != self.end
        except UnknownOutcomeError as fault:
            self.take_in_doubtful(writer, fault)
        except LakeError as fault:
            assert "can't be written" in str(fault) or "never claimed" in str(fault)  # noqa: PT017
        else:
            assert (writer.epoch, at) == (self.epoch, self.end)
            self.acknowledge(batches)

    def take_in_doubtful(self, writer: Writer, fault: UnknownOutcomeError) -> None:
        """Nobody could say: what readers see shows it, and so does the commit's id."""
        seen = self.seen()
        assert seen[: len(self.batches)] == self.batches
        assert writer.log.outcome(fault) is (len(seen) > len(self.batches))
        self.batches = seen

    @rule(name=st.sampled_from(WRITERS))
    def claim(self, name: str) -> None:
        self.do_claim(name)

    @rule(
        name=st.sampled_from(WRITERS),
        counts=st.lists(st.integers(1, 4), min_size=1, max_size=3),
        behind=st.sampled_from([0, 0, 0, 1]),
    )
    def append(self, name: str, counts: list[int], behind: int) -> None:
        """By whoever claimed last, or once did; who never did claims first."""
        if not self.writer(name).epoch:
            self.do_claim(name)
        self.do_append(name, counts, behind)
        self.do_append(name, counts, 0)

    @rule(name=st.sampled_from(WRITERS))
    def reopen(self, name: str) -> None:
        self.writer(name).log = MetadataLog.open(self.path, disk=self.disk)

    @rule(
        fault=st.sampled_from(FAULTS),
        at=st.integers(0, A_COMMITS_OPERATIONS - 1),
        by=st.sampled_from(WRITERS),
        what=st.sampled_from(["claim", "append", "maintain"]),
    )
    def a_fault_is_coming(self, fault: str, at: int, by: str, what: str) -> None:
        def meanwhile() -> None:
            # Through a handle of its own: this one is in the middle of something.
            held = self.writers.pop(by, None)
            epoch = held.epoch if held else 0
            self.writer(by).epoch = epoch
            if what == "claim":
                self.do_claim(by)
            elif what == "append" and epoch:
                self.do_append(by, [1], 0)
            else:
                self.do_maintain()

        self.disk.fault, self.disk.fault_in, self.disk.meanwhile = fault, at, meanwhile

    @rule()
    def maintain(self) -> None:
        self.do_maintain()

    def do_maintain(self) -> None:
        """New properties, by a commit of their own."""
        self.properties += 1
        state = read_table(self.path / "log")
        metadata = attrs.evolve(
            state.metadata, configuration={**state.metadata.configuration, "test.round": str(self.properties)}
        )
        info = commit_info("SET TBLPROPERTIES", {})
        try:
            commit(self.disk, state, [info, metadata.to_action()])
        except (UnknownOutcomeError, CommitConflictError):
            pass
        except LakeError as fault:
            assert "can't be written" in str(fault)  # noqa: PT017
        else:
            # Its fsync of the folder made everything before it durable too.
            self.durable = len(self.batches)

    @precondition(lambda self: self.batches)
    @rule(seed=st.integers(0, 2**32), operations=st.integers(0, 10), name=st.sampled_from(WRITERS))
    def the_power_is_cut(self, seed: int, operations: int, name: str) -> None:
        """Possibly in the middle of an append."""
        self.disk.fault = None
        writer = self.writer(name)
        doubtful = self.batches
        if writer.epoch == self.epoch:
            self.disk.cut_at = operations
            batch = data_batch(self.end, 2, epoch=writer.epoch, who=f"-cut-{seed}")
            doubtful = [*self.batches, batch]
            try:
                writer.log.append([batch], epoch=writer.epoch)
                self.acknowledge([batch])
            except PowerCut:
                pass
        self.disk.restart(random.Random(seed))
        self.writers = {}
        seen = self.seen()
        assert seen[: self.durable] == self.batches[: self.durable], "something acknowledged was lost"
        assert seen == doubtful[: len(seen)]
        self.batches = seen
        self.durable = len(seen)

    @invariant()
    def readers_see_the_log(self) -> None:
        assert self.seen() == self.batches


TestAppendProtocol = AppendMachine.TestCase
TestAppendProtocol.settings = settings(stateful_step_count=30, max_examples=max(20, settings.default.max_examples // 3))
