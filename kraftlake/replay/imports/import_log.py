"""Imports a source into a lake; importing twice is the same as once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.replay.imports.cached_images import fill_cache
from kraftlake.replay.imports.import_plan import ImportPlan, plan_import
from kraftlake.replay.imports.kept_snapshot import facts_of
from kraftlake.replay.imports.new_lake import check_place, discard_empty_lake, is_lake, remove_empty_folders
from kraftlake.replay.queries.source import LogSource
from kraftlake.replay.reading.chunks import chunks_of, chunks_of_snapshot
from kraftlake.replay.reading.committed import CommittedTo
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.replay.reading.progress import Progress, no_progress
from kraftlake.replay.reading.replay_base import usable_snapshots
from kraftlake.runtime.arguments import text
from kraftlake.runtime.errors import ImportConflictError, LakeError, NotASourceError
from kraftlake.runtime.json_names import fields_as_json

if TYPE_CHECKING:
    from kraftlake.metadata_log.log import MetadataLog
    from kraftlake.metadata_log.storage.location import Location


@attrs.frozen(kw_only=True)
class ImportReport:
    """The outcome of one import; offsets are inclusive, None where nothing was imported.

    `records`, `batches` and `snapshots` count what was new, `already_there` the offsets that the lake already held with
    the same content, `before_lake` the offsets below the lake's start, which were left out. `start_offset` and
    `end_offset` (exclusive) are the lake's now. `committed_to`: offsets below it are known to be committed. `torn`
    says, in words, where the source is torn off; everything before that is in the lake. `chain` is the last link of the
    lake's chain of hashes as text, OFFSET:HASH, to hold the lake to later (`verify --at-least`); None where it has no
    rows.
    """

    lake: str
    source: str
    created: bool
    from_offset: int | None
    to_offset: int | None
    records: int
    batches: int
    snapshots: int
    already_there: int
    before_lake: int
    start_offset: int
    end_offset: int
    committed_to: int
    cluster_id: str | None
    torn: str | None
    chain: str | None

    def to_json(self) -> dict[str, Any]:
        """The form of `kraftlake import --json`."""
        form = fields_as_json(self)
        ends = {"from": form.pop("fromOffset"), "to": form.pop("toOffset")}
        return form | ends | {"committed_to": self.committed_to}  # the name that scripts know


def import_source(
    source: LogSource | str | os.PathLike[str],
    lake: str | os.PathLike[str],
    *,
    cluster_id: str | None = None,
    progress: Progress | None = None,
) -> ImportReport:
    """Append to `lake` the records of `source` that it lacks; creates the lake if it does not exist.

    The source is read and checked before anything is written: a refused import changes nothing and creates no lake. An
    import that is killed while it writes leaves a whole prefix, which the next import completes.

    Raises ImportConflictError where the source disagrees with the lake (another cluster id; a gap; another epoch,
    other bytes at an offset; naming it), NotASourceError, CorruptDataError for an unsound source, LakeError where the
    path is not a lake, or another process writes to it at the same time.
    """
    from kraftlake.metadata_log.storage.location import lake_location

    if cluster_id is not None:
        text(cluster_id, "the id of a cluster")
    opened = source if isinstance(source, LogSource) else LogSource.open(source, cluster_id=cluster_id)
    return _Import(opened, lake_location(lake), cluster_id, progress or no_progress).run()


def check_accepts(log: MetadataLog, path: Location, name: str, cluster_id: str | None) -> None:
    """Raise where a lake refuses an import of the log `name` of a cluster, None where that is unknown.

    LakeError for the lake of a controller, ImportConflictError for another cluster's.
    """
    if log.role != "imported":
        raise LakeError(f"The lake {path} is written by a controller ({log.role}): nothing is imported into it.")
    if log.cluster_id is not None and cluster_id not in (None, log.cluster_id):
        raise ImportConflictError(
            f"{name} is of cluster {cluster_id}, but the lake {path} holds the log of cluster {log.cluster_id}: import "
            f"it into a lake of its own."
        )


class _Import:
    def __init__(self, source: LogSource, path: Location, cluster_id: str | None, progress: Progress) -> None:
        self._source = source
        self._path = path
        self._progress = progress
        self._cluster_id = source.cluster_id or cluster_id

    def run(self) -> ImportReport:
        from kraftlake.metadata_log.log import MetadataLog

        log = MetadataLog.open(self._path) if is_lake(self._path) else None
        if log is not None:
            check_accepts(log, self._path, self._source.name, self._cluster_id)
        else:
            check_place(self._path)
            self._check_worth()
        plan = plan_import(self._source.reader, None if log is None else LakeReader(log), self._progress)
        created, was_there = log is None, self._path.exists()
        if log is None:
            log = self._create(plan, was_there)
        try:
            self._write(log, plan)
        except BaseException:
            if created:
                discard_empty_lake(self._path, keep_folder=was_there)
            raise
        return self._report(log, plan, created=created)

    def _check_worth(self) -> None:
        reader = self._source.reader
        if reader.end_offset > reader.start_offset or usable_snapshots(reader):
            return
        way_out = ""
        if self._source.kind is SourceKind.SNAPSHOT:
            way_out = ": a snapshot must be finished, no bootstrap input, and have its name END-EPOCH.checkpoint"
        raise NotASourceError(f"{self._source.path} holds nothing to make a lake of{way_out}.")

    def _create(self, plan: ImportPlan, was_there: bool) -> MetadataLog:
        from kraftlake.metadata_log.log import MetadataLog

        try:
            return MetadataLog.create(self._path, cluster_id=self._cluster_id, start_offset=plan.from_offset)
        except LakeError as fault:
            if is_lake(self._path):
                raise LakeError(
                    f"Another import made the lake {self._path} at the same time, and nothing of this one is in it: "
                    "run it again, and it goes on from what is there."
                ) from fault
            if not was_there:
                remove_empty_folders(self._path)
            raise

    def _write(self, log: MetadataLog, plan: ImportPlan) -> None:
        """Write the snapshots first, then the log: a log that starts above 0 has no image without its snapshot."""
        from kraftlake.metadata_log.append.log_commit import commit_groups
        from kraftlake.records.rows import to_rows

        committed = CommittedTo.continued(LakeReader(log))
        for snapshot in plan.snapshots:
            log.add_snapshot(facts_of(snapshot), chunks_of_snapshot(snapshot))
        committed.see_source(self._source.reader)
        if plan.records:
            new = chunks_of(self._source.reader, plan.from_offset, plan.to_offset - 1)
            for group in commit_groups(new):
                for chunk in group:
                    committed.see(chunk)
                log.append(to_rows(group), committed.offset)
                self._progress("writing", log.end_offset - plan.from_offset, plan.records)
        log.append([], committed.offset)
        if isinstance(log.path, Path):
            fill_cache(log.path, log.snapshots())

    def _report(self, log: MetadataLog, plan: ImportPlan, *, created: bool) -> ImportReport:
        torn = self._source.torn
        return ImportReport(
            lake=str(self._path),
            source=self._source.path,
            created=created,
            from_offset=plan.from_offset if plan.records else None,
            to_offset=plan.to_offset - 1 if plan.records else None,
            records=plan.records,
            batches=plan.batches,
            snapshots=len(plan.snapshots),
            already_there=plan.already_there,
            before_lake=plan.before_lake,
            start_offset=log.start_offset,
            end_offset=log.end_offset,
            committed_to=log.committed_to,
            cluster_id=log.cluster_id,
            torn=None if torn is None else str(torn),
            chain=None if log.chain is None else str(log.chain.link),
        )
