"""The names of the ids in a log."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from kraftlake.image.kafka_names import acl_words
from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.records import metadata_records as r
from kraftlake.replay.reading.replay_base import has_beginning, readable_batches
from kraftlake.runtime.errors import CorruptDataError

if TYPE_CHECKING:
    from kraftlake.api import Source
    from kraftlake.records.batch import RecordBatch

_NAMING_API_KEYS = frozenset(
    record.API_KEY for record in (r.TopicRecord, r.AccessControlEntryRecord, r.DelegationTokenRecord)
)
"""The API keys of the records that give ids a name."""


class LogNames:
    """The names that the log has given to ids: topics by id, ACLs by id, and the principals of ACLs and tokens."""

    def __init__(self) -> None:
        self.topics: dict[str, str] = {}
        self.acls: dict[str, str] = {}
        self.owners: dict[str, str] = {}

    def learn(self, type_: str, data: Mapping[str, Any]) -> None:
        """Remember the name in a record, if it has one."""
        if type_ == "TOPIC_RECORD":
            self.topics[data["topicId"]] = data["name"]
        elif type_ == "ACCESS_CONTROL_ENTRY_RECORD":
            self.acls[data["id"]] = acl_words(data)
            self.owners[data["id"]] = data["principal"]
        elif type_ == "DELEGATION_TOKEN_RECORD":
            self.owners[data["tokenId"]] = data["owner"]

    def topic(self, id_: str) -> str:
        """The topic's name, or its id where the name is unknown."""
        return self.topics.get(id_, id_)


def names_before(source: Source, before: int | None) -> LogNames:
    """The names given before the offset `before`, in snapshots and in the log; None is the log's start.

    For a snapshot file these are all of its names.

    Unreadable batches are skipped: later records are shown without the names in them.
    """
    names = LogNames()
    for type_, data in records_before(source, before, _NAMING_API_KEYS):
        names.learn(type_, data)
    return names


def records_before(
    source: Source, before: int | None, api_keys: Collection[int]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Type and data of the records of some types before the offset `before`, as `names_before` reads them."""
    from kraftlake.records.log_record import log_records
    from kraftlake.records.serde import with_short_frame

    wanted = {bytes((api_key,)) for api_key in api_keys}
    for batch in _batches_before(source, before):
        if not batch.control and any(with_short_frame(value)[1:2] in wanted for value in batch.values):
            for record in log_records(batch):
                if getattr(record.message, "API_KEY", None) in api_keys:
                    yield record.type, record.to_json()["data"]


def _batches_before(source: Source, before: int | None) -> Iterator[RecordBatch]:
    if source.kind is SourceKind.SNAPSHOT:  # whose records have offsets of their own, whatever its name says
        with suppress(CorruptDataError):
            yield from source.batches()
        return
    if before is None or not has_beginning(source.reader) or source.broken_ranges:
        for snapshot in source.snapshots:
            if snapshot.finished and (before is None or snapshot.end_offset <= max(before, source.start_offset)):
                yield from snapshot.batches()
    if before is not None and before > source.start_offset:
        yield from readable_batches(source.reader, source.start_offset, before - 1, lambda *_: None)
