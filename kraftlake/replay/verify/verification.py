"""Verification: all checks of a source; a problem does not stop the others."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from kraftlake.image.metadata_image import MetadataImage
from kraftlake.kafka_files.check import check_directory
from kraftlake.kafka_files.directory import MetadataDirectory
from kraftlake.kafka_files.faults import BrokenFileError
from kraftlake.kafka_files.problem import Problem
from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.records.batch import RecordBatch
from kraftlake.records.control_records import KRaftVersionRecord, VotersRecord
from kraftlake.records.metadata_records import BeginTransactionRecord, EndTransactionRecord, NoOpRecord
from kraftlake.records.serde import UnknownRecord
from kraftlake.replay.loader.batch_loader import MetadataBatchLoader
from kraftlake.replay.loader.fold import cached_image, load_snapshot
from kraftlake.replay.queries.source import LogSource
from kraftlake.replay.reading.chunks import BULK_FROM
from kraftlake.replay.reading.open_reader import LakeReader, LogReader, SnapshotReader
from kraftlake.replay.reading.progress import LOADING, REPLAYING, Progress, no_progress, with_progress
from kraftlake.replay.reading.replay_base import has_beginning, usable_snapshots
from kraftlake.replay.verify.findings import Findings, VerifyReport
from kraftlake.replay.verify.lake_tables import check_chain, check_columns, check_derived_tables, check_tables
from kraftlake.replay.verify.references import ReferenceCheck
from kraftlake.replay.verify.snapshot_comparison import compare_snapshot
from kraftlake.runtime.errors import CorruptDataError, KraftlakeError

if TYPE_CHECKING:
    from kraftlake.metadata_log.chain import ChainLink


def verify_source(
    source: LogSource, *, at_least: ChainLink | None = None, spec: bool = False, progress: Progress | None = None
) -> VerifyReport:
    """Check CRCs, gaps, epochs, the torn tail; decoding, transactions, replay, references; and every snapshot.

    A snapshot is compared with the replay at its end. A fault that keeps a Kafka node from starting is a problem as
    well: a start above 0 that no snapshot covers, unknown control records, unreadable files beside the log. Problems of
    the source are reported, never raised. A torn tail is not a problem; it has a field of its own. Notes are not
    problems: replicas on brokers that are not registered, a bootstrap checkpoint that the head of the log does not
    repeat, a snapshot ahead of the log. `progress` is called after each batch.

    A lake's rows are compared with its chain of hashes, and its derived tables are read from end to end. `at_least` is
    an offset that the log once held, in a lake with the hash there: a shorter log or another hash is a problem. Raises
    UsageError for a hash with a source that is not a lake. `spec`: the log is judged by Kafka's specifications, too, as
    far as it can be replayed.
    """
    findings = Findings(source.reader)
    if isinstance(source.reader, MetadataDirectory):
        _check_files(source.reader, findings, progress or no_progress)
    if isinstance(source.reader, LakeReader):
        check_tables(source.reader, findings)
        check_derived_tables(source.reader, findings)
        check_columns(source.reader, findings)
    check_chain(source.reader, findings, at_least)
    run = _Verification(source.reader, findings, progress, is_log=source.kind is not SourceKind.SEGMENT)
    run.load_snapshots()
    run.replay_log()
    run.check_bootstrap()
    run.check_newest()
    judgement = None
    if spec:
        from kraftlake.replay.spec.judge import judge_log  # imports numpy

        judgement = judge_log(source.reader, progress)
    return VerifyReport(
        source=source.path,
        kind=source.kind.value,
        start_offset=source.start_offset,
        end_offset=source.reader.end_offset,
        batches=run.batches,
        records=run.records,
        replayed=run.replayed,
        snapshots=len(source.reader.snapshots),
        snapshot_records=run.snapshot_records,
        snapshots_compared=run.compared,
        problems=findings.sorted(),
        more_problems=findings.more,
        notes=tuple(findings.notes),
        chain=source.reader.log.chain if isinstance(source.reader, LakeReader) else None,
        torn_tail=findings.torn,
        spec=judgement,
    )


def _check_files(directory: MetadataDirectory, findings: Findings, progress: Progress) -> None:
    end = directory.end_offset
    for problem in check_directory(directory, lambda offset: progress("checking", min(offset, end), end)):
        findings.report(problem)
    torn = directory.torn
    if torn is not None:
        tail = Problem(file=torn.file, position=torn.position, offset=torn.offset, message=f"torn tail: {torn.reason}")
        if torn.is_cut:
            findings.torn = tail
        else:
            findings.report(tail)


class _Verification:
    def __init__(self, reader: LogReader, findings: Findings, progress: Progress | None, *, is_log: bool) -> None:
        self._reader = reader
        self._is_log = is_log
        self._findings = findings
        self._progress = progress
        self._references = ReferenceCheck(findings)
        self._images: dict[int, tuple[SnapshotReader, MetadataImage]] = {}
        self._last_epoch = -1
        self.batches = self.records = self.replayed = self.snapshot_records = self.compared = 0

    def load_snapshots(self) -> None:
        """Load every finished snapshot; those without a problem are compared with the replay later."""
        for snapshot in self._reader.snapshots:
            if not snapshot.finished:
                continue
            loader = MetadataBatchLoader(lenient=True)
            try:
                said: list[type] = []
                for batch in with_progress(snapshot.batches(), self._progress, LOADING):
                    self.snapshot_records += batch.record_count
                    said += self._check_control(batch, snapshot)
                for one in (KRaftVersionRecord, VotersRecord):
                    if said.count(one) > 1:
                        self._findings.add(
                            f"the snapshot has {said.count(one)} records {one.__name__}: Kafka does not start with it.",
                            snapshot=snapshot.name,
                        )
                load_snapshot(loader, snapshot, progress=self._progress)
                image = loader.take_image()
            except BrokenFileError as error:
                self._findings.report(Problem.of(error, in_snapshot=True))
                continue
            except KraftlakeError as error:
                self._findings.add(str(error), snapshot=snapshot.name)
                continue
            self._note_ignored(image)
            for skipped in loader.skipped:
                self._findings.add(skipped.reason, offset=skipped.offset, snapshot=snapshot.name)
            if not loader.skipped and not snapshot.bootstrap:
                self._images[snapshot.end_offset - 1] = (snapshot, image)
                self._check_cache(snapshot, image)
        for older, newer in pairwise(usable_snapshots(self._reader)):
            message = ""
            if older.end_offset == newer.end_offset:
                message = f"there are two snapshots of the offsets below {older.end_offset}: this one and {newer.name}."
            elif older.epoch > newer.epoch:
                message = (
                    f"the snapshot is of epoch {older.epoch}, and {newer.name}, which goes further, of a lower one."
                )
            if message:
                self._findings.add(message, offset=older.end_offset - 1, file=older.name)
        covering = [s for s in usable_snapshots(self._reader) if s.end_offset >= self._reader.start_offset]
        for snapshot, image in self._images.values():
            if snapshot.end_offset < self._reader.start_offset or snapshot in covering[:1]:
                self._references.check_image(image)

    def _check_cache(self, snapshot: SnapshotReader, image: MetadataImage) -> None:
        """Compare the image in the lake's columns with the image of the snapshot's records."""
        cached = cached_image(self._reader, snapshot)
        if cached is not None and cached.image != image:
            self._findings.add(
                "the columns that the lake keeps of this snapshot are not the image that its records make: "
                "delete image_cache/, the next import makes it again.",
                file=snapshot.name,
            )

    def replay_log(self) -> None:
        """Decode the whole log, and replay it from the first offset that has an image."""
        start = self._reader.start_offset
        if self._is_sound():
            return
        if has_beginning(self._reader):
            self._replay(MetadataBatchLoader(lenient=True, publish=self._references))
            return
        base = next((image for s, image in self._images.values() if s.end_offset >= start), None)
        if base is None:
            if self._is_log and not any(s.end_offset >= start for s in usable_snapshots(self._reader)):
                self._findings.add(
                    f"the log starts at offset {start}, and no finished snapshot covers that start: it has no image, "
                    "and Kafka does not start with it.",
                    offset=start,
                )
            self._findings.note(
                f"No snapshot covers the start of the log, offset {start}: it was decoded, not replayed."
            )
            self._replay(None)
        else:
            self._replay(MetadataBatchLoader(base, lenient=True, publish=self._references))

    def _is_sound(self) -> bool:
        """Replay a long log in bulk, if nothing is wrong with it: what is wrong, only `_replay` says."""
        start, last = self._reader.start_offset, self._reader.end_offset - 1
        base = None if has_beginning(self._reader) else self._images.get(start - 1)
        if last - start < BULK_FROM or not (has_beginning(self._reader) or base):
            return False
        from kraftlake.replay.verify.sound_replay import SoundReplay  # imports numpy

        run, reached = SoundReplay(self._reader, base and base[1], self._check_control), list[MetadataImage]()
        ends, epochs = sorted(end for end in self._images if start <= end <= last), list[int]()
        try:
            for end in (*ends, last):
                if not run.read(end, self._progress):
                    return False
                reached.append(run.replay.image)
                epochs.append(run.replay.epoch)
        except KraftlakeError:
            return False
        for end, image, epoch in zip(ends, reached[:-1], epochs[:-1], strict=True):
            self._compare(end, image, epoch=epoch)
        self.batches, self.records, self.replayed = run.batches, run.records, run.records
        self._last_epoch = run.replay.epoch
        self._note_end(run.replay.image, run.replay.transaction_begin_offset)
        return True

    def _replay(self, loader: MetadataBatchLoader | None) -> None:
        known = 0
        try:
            batches = self._reader.batches(self._reader.start_offset)
            for batch in with_progress(batches, self._progress, REPLAYING, self._reader.end_offset):
                self.batches += 1
                self.records += batch.record_count
                self._check_control(batch)
                self._last_epoch = batch.epoch
                if loader is None or batch.last_offset <= loader.last_offset:
                    self._decode(batch)
                    continue
                self._load(loader, batch)
                self.replayed += batch.record_count
                for skipped in loader.skipped[known:]:
                    in_batch = batch.base_offset <= skipped.offset <= batch.last_offset
                    position = _position(batch) if in_batch else None
                    self._findings.add(skipped.reason, offset=skipped.offset, position=position)
                known = len(loader.skipped)
        except KraftlakeError as error:
            self._report_stop(error, loader)
            return
        if loader is not None:
            self._note_end(loader.image, loader.transaction_begin_offset)

    def _note_end(self, image: MetadataImage, begin: int | None) -> None:
        """Note what may surprise at the end of the log; `begin` is that of an open metadata transaction."""
        self._note_ignored(image)
        if begin is not None:
            self._findings.note(f"The metadata transaction that began at offset {begin} is open at the end.")

    def _note_ignored(self, image: MetadataImage) -> None:
        if words := image.configs.ignored_words:
            self._findings.note(
                f"Kafka 4.4 does not know these configs, and a replay ignores them as it does: {words}."
            )

    def check_newest(self) -> None:
        """Compare the end of the newest snapshot with the end of the log.

        A node that starts drops its whole log where the snapshot's epoch and end offset are above those of the log.
        Source: org.apache.kafka.raft.internals.KafkaRaftLog.truncateToLatestSnapshot.
        """
        end = self._reader.end_offset
        newest = next(reversed(usable_snapshots(self._reader)), None)
        if newest is None or not self.records or newest.end_offset <= end:
            return
        if newest.epoch < self._last_epoch:
            self._findings.add(
                f"the snapshot ends at offset {newest.end_offset - 1} in epoch {newest.epoch}, but the log ends at "
                f"offset {end - 1} in epoch {self._last_epoch} already.",
                offset=newest.end_offset - 1,
                file=newest.name,
            )
        elif isinstance(self._reader, MetadataDirectory):
            self._findings.note(
                f"{newest.name} goes further than the log, which ends at offset {end - 1}: a node that starts with it "
                "drops the log."
            )

    def _check_control(self, batch: RecordBatch, snapshot: SnapshotReader | None = None) -> list[type]:
        """The types of a control batch's records; reports those with which Kafka does not start.

        Source: org.apache.kafka.raft.ControlRecord.of and org.apache.kafka.server.common.KRaftVersion.
        """
        if not batch.control:
            return []
        try:
            messages = [record.message for record in batch.messages()]
        except CorruptDataError:
            return []  # loading reports it
        for offset, message in enumerate(messages, start=batch.base_offset):
            fault = ""
            if isinstance(message, UnknownRecord):
                fault = f"control record type {message.api_key} version {message.version} is not known"
            elif isinstance(message, KRaftVersionRecord) and message.k_raft_version not in _KRAFT_VERSIONS:
                fault = f"kraft.version {message.k_raft_version} is not known"
            if fault:
                self._findings.add(
                    f"{fault}: Kafka does not start with it.",
                    offset=offset,
                    position=_position(batch),
                    snapshot=None if snapshot is None else snapshot.name,
                )
        return [type(message) for message in messages]

    def _decode(self, batch: RecordBatch) -> None:
        try:
            for offset, record in enumerate(batch.messages(), start=batch.base_offset):
                if isinstance(record.message, UnknownRecord) and not batch.control:
                    self._findings.add(
                        f"record type {record.message.api_key} version {record.message.version} is not known.",
                        offset=offset,
                        position=_position(batch),
                    )
        except CorruptDataError as error:
            self._findings.add(str(error), offset=batch.base_offset, position=_position(batch))

    def _load(self, loader: MetadataBatchLoader, batch: RecordBatch) -> None:
        """Replay one batch, in pieces where a snapshot ends inside of it, and compare at each snapshot's end."""
        ends = sorted(
            o for o in self._images if max(loader.last_offset + 1, batch.base_offset) <= o <= batch.last_offset
        )
        for end in ends:
            loader.load_batch(batch, to_offset=end)
            loader.flush()
            self._compare(end, None if loader.skipped else loader.image, epoch=batch.epoch)
        loader.load_batch(batch)
        loader.flush()

    def _compare(self, end: int, log: MetadataImage | None, *, epoch: int) -> None:
        """Compare the snapshot at an offset with the log's image there, None for one that lacks some records."""
        self.compared += compare_snapshot(self._findings, *self._images[end], log, epoch=epoch)

    def _report_stop(self, error: KraftlakeError, loader: MetadataBatchLoader | None) -> None:
        """Report the error that stopped the reading, unless the check of Kafka's files has already reported it."""
        offset = getattr(error, "offset", None)
        message = getattr(error, "message", None) or str(error)
        self._findings.add(
            message, offset=offset, file=getattr(error, "file", None), position=getattr(error, "position", None)
        )
        at = loader.last_offset if loader is not None else self._reader.start_offset + self.records - 1
        self._findings.note(f"Nothing after offset {at} was replayed.")

    def check_bootstrap(self) -> None:
        """Add a note where the head of the log does not repeat the bootstrap records, as a controller writes it."""
        bootstrap = next((s for s in self._reader.snapshots if s.bootstrap and s.finished), None)
        if bootstrap is None or self._reader.start_offset > 0 or not self.records:
            return
        try:
            wanted = [value for batch in bootstrap.batches() if not batch.control for value in batch.values]
            head: list[bytes] = []
            for batch in self._reader.batches(0):
                if not batch.control:
                    records = zip(batch.messages(), batch.values, strict=True)
                    head += [v for m, v in records if not isinstance(m.message, _NOT_REPEATED)]
                if len(head) >= len(wanted):
                    break
        except KraftlakeError:
            return
        if head[: len(wanted)] != wanted:
            self._findings.note(f"The head of the log does not repeat the records of {bootstrap.name}.")


_KRAFT_VERSIONS = (0, 1)
_NOT_REPEATED = (BeginTransactionRecord, EndTransactionRecord, NoOpRecord)


def _position(batch: RecordBatch) -> int | None:
    return batch.position if batch.position >= 0 else None
