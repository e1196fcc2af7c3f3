"""The contents of a bundle, found by reading all of the source, so that they can be read before it is written."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, Final

import attrs

from kraftlake.image.kafka_names import PatternType
from kraftlake.kafka_files.faults import TornTail
from kraftlake.records.batch import RecordBatch
from kraftlake.records.control_records import LeaderChangeMessage, VotersRecord
from kraftlake.records.log_record import LogRecord, log_records
from kraftlake.records.metadata_records import AccessControlEntryRecord, RegisterBrokerRecord
from kraftlake.records.schema import Names
from kraftlake.records.uuid import Uuid
from kraftlake.replay.bundle.pseudonyms import Pseudonyms
from kraftlake.replay.bundle.rewriting import Rewriter, kind_of_resource
from kraftlake.replay.queries.source import LogSource
from kraftlake.replay.reading.open_reader import SnapshotReader
from kraftlake.replay.reading.progress import Progress, no_progress
from kraftlake.replay.reading.replay_base import readable_batches, usable_snapshots
from kraftlake.runtime.errors import CorruptDataError, NotASourceError

_PROGRESS_RECORDS: Final = 10_000


@attrs.frozen(kw_only=True)
class BundlePlan:
    """What a bundle of a source holds.

    Offsets [`start_offset`, `end_offset`); `records` counts them by type, `secrets` the records whose secrets are
    blanked, `names` the replaced names by kind, none without pseudonyms. `faults` are what a lenient bundle lacks, as
    sentences. `node_id` and `directory_id` are the last leader's, whose directory the bundle is.
    """

    cluster_id: str | None
    start_offset: int
    end_offset: int
    records: dict[str, int]
    snapshots: tuple[str, ...]
    secrets: dict[str, int]
    names: dict[str, int]
    unknown_records: int
    unknown_tagged_fields: int
    faults: tuple[str, ...]
    node_id: int
    directory_id: Uuid
    opened: LogSource = attrs.field(repr=False, eq=False)
    pseudonyms: Pseudonyms | None = attrs.field(repr=False, eq=False)
    lenient: bool = False

    def to_json(self) -> dict[str, Any]:
        """The JSON form, which is `bundle.json` in the bundle: without the source, whose path has names."""
        return {
            "clusterId": self.cluster_id,
            "startOffset": self.start_offset,
            "endOffset": self.end_offset,
            "records": self.records,
            "snapshots": [*self.snapshots],
            "secrets": self.secrets,
            "names": self.names,
            "pseudonyms": self.pseudonyms is not None,
            "unknownRecords": self.unknown_records,
            "unknownTaggedFields": self.unknown_tagged_fields,
            "faults": [*self.faults],
        }

    def batches(self) -> Iterator[RecordBatch]:
        """The batches of the log, as they are handed over."""
        return map(self._rewriter().batch, _batches(self.opened, lenient=self.lenient))

    def snapshot_batches(self) -> Iterator[tuple[SnapshotReader, Iterator[RecordBatch]]]:
        """Each snapshot with its batches, as they are handed over."""
        for snapshot in usable_snapshots(self.opened.reader):
            if snapshot.name in self.snapshots:
                yield snapshot, map(self._rewriter().batch, snapshot.batches())

    def _rewriter(self) -> Rewriter:
        rename = None if self.pseudonyms is None else self.pseudonyms.of
        return Rewriter(rename=rename, lenient=self.lenient)


def plan_bundle(
    source: LogSource,
    *,
    pseudonyms: Pseudonyms | None = None,
    lenient: bool = False,
    progress: Progress | None = None,
) -> BundlePlan:
    """Read the whole source and return what its bundle holds; with `pseudonyms`, these have all its names then.

    Raises NotASourceError for a source without a log or snapshots of one; the errors of reading for a torn, damaged or
    incomplete one and UnknownRecordError for an unknown record, unless `lenient`; UsageError for a pseudonym that is a
    name in the log.
    """
    reader = source.reader
    snapshots = usable_snapshots(reader)
    if reader.end_offset == reader.start_offset and not snapshots:
        raise NotASourceError(f"{source.path} holds nothing to make a bundle of.")
    survey = _Survey(source, renames=pseudonyms is not None, lenient=lenient, progress=progress or no_progress)
    survey.read_log()
    kept = tuple(one.name for one in snapshots if survey.has_read(one))
    if pseudonyms is not None:
        survey.make(pseudonyms)
    return BundlePlan(
        cluster_id=source.cluster_id,
        start_offset=reader.start_offset,
        end_offset=reader.end_offset,
        records=dict(sorted(survey.records.items())),
        snapshots=kept,
        secrets=dict(sorted(survey.rewriter.blanked.items())),
        names={} if pseudonyms is None else survey.replaced(pseudonyms),
        unknown_records=survey.rewriter.unknown_records,
        unknown_tagged_fields=survey.rewriter.unknown_tagged_fields,
        faults=tuple(survey.faults),
        node_id=survey.node_id,
        directory_id=survey.directory_id,
        opened=source,
        pseudonyms=pseudonyms,
        lenient=lenient,
    )


class _Survey:
    """The names, prefixes, secrets and faults of a source."""

    def __init__(self, source: LogSource, *, renames: bool, lenient: bool, progress: Progress) -> None:
        self._source = source
        self._lenient = lenient
        self._progress = progress
        self._found: dict[Names, set[str]] = defaultdict(set)
        self._prefixes: dict[Names, set[str]] = defaultdict(set)
        self.rewriter = Rewriter(rename=self._see if renames else None, lenient=lenient)
        self.records: Counter[str] = Counter()
        self.faults: list[str] = []
        self.node_id = 0
        self._of_voters: dict[int, Uuid] = {}
        self._of_brokers: dict[int, Uuid] = {}

    def read_log(self) -> None:
        """Read the log, from its first whole batch to its last."""
        torn = self._source.torn
        if isinstance(torn, TornTail) and torn.is_cut:  # as in any copy of a log that is written to
            self.faults.append(f"{torn}")
        elif torn is not None:
            self._fault(f"{torn}")
        start, reported = self._source.start_offset, 0
        total = self._source.end_offset - start
        for batch in _batches(self._source, lenient=self._lenient, lost=self._lost):
            for record in log_records(batch):
                self._read(record)
                self.records[record.type] += 1
            if batch.last_offset - start >= reported + _PROGRESS_RECORDS:
                reported = batch.last_offset - start
                self._progress("reading", reported, total)

    def has_read(self, snapshot: SnapshotReader) -> bool:
        """Read a snapshot; a damaged one is left out if that is allowed."""
        damage = snapshot.damage()
        if damage is not None:
            self._fault(damage)
            return False
        for batch in snapshot.batches():
            for record in log_records(batch):
                self._read(record)
        return True

    def make(self, pseudonyms: Pseudonyms) -> None:
        """Make the pseudonyms of all names that were found."""
        for kind, prefixes in self._prefixes.items():
            pseudonyms.declare_prefixes(kind, prefixes)
        for kind, names in self._found.items():
            for name in names:
                pseudonyms.of(kind, name)
        pseudonyms.check_new(name for names in self._found.values() for name in names)

    def replaced(self, pseudonyms: Pseudonyms) -> dict[str, int]:
        """The number of replaced names by kind."""
        counts = {
            kind.value: sum(pseudonyms.of(kind, name) != name for name in names) for kind, names in self._found.items()
        }
        return {kind: count for kind, count in sorted(counts.items()) if count}

    def _read(self, record: LogRecord) -> None:
        self.rewriter.message(record)
        match record.message:
            case LeaderChangeMessage() as change:
                self.node_id = change.leader_id
            case VotersRecord() as voters:
                self._of_voters = {voter.voter_id: voter.voter_directory_id for voter in voters.voters}
            case RegisterBrokerRecord(log_dirs=(directory,)) as broker:
                self._of_brokers[broker.broker_id] = directory
            case AccessControlEntryRecord(pattern_type=PatternType.PREFIXED) as acl:
                kind, name = kind_of_resource(acl), acl.resource_name
                if kind is Names.PRINCIPAL:
                    kind, name = Names.USER, name.partition(":")[2] or name
                self._prefixes[kind].add(name)

    def _see(self, kind: Names, name: str) -> str:
        self._found[kind].add(name)
        return name

    @property
    def directory_id(self) -> Uuid:
        """The directory of the last leader; at kraft.version 0 the one that it has as a broker, else a new one."""
        return self._of_voters.get(self.node_id) or self._of_brokers.get(self.node_id) or Uuid.random()

    def _lost(self, first: int, last: int, reason: str) -> None:
        self.faults.append(f"Offsets {first} to {last} are missing: {reason}")

    def _fault(self, sentence: str) -> None:
        if not self._lenient:
            raise CorruptDataError(f"{sentence.rstrip('.')}: --lenient makes a bundle of the rest, and says so in it.")
        self.faults.append(sentence)


def _batches(source: LogSource, *, lenient: bool, lost: Any = None) -> Iterator[RecordBatch]:
    first, last = source.start_offset, source.end_offset - 1
    skip = (lost or (lambda *_: None)) if lenient else None
    return readable_batches(source.reader, first, last, skip)
