"""The things that a record changes, and the records of a log that may change given things."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kraftlake.diagnosis.things import Thing
from kraftlake.image.client_quotas_image import ClientQuotaEntity
from kraftlake.image.configurations_image import ConfigResource
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.scram_image import known_mechanism
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.metadata_records import METADATA_RECORDS
from kraftlake.records.record_ids import BROKER_FIELDS, TOPIC_ID_AT
from kraftlake.records.schema import Message
from kraftlake.records.serde import decode_value, with_short_frame
from kraftlake.replay.log.log_position import TRANSACTION_MARKS
from kraftlake.replay.reading.chunks import Chunk
from kraftlake.runtime.errors import CorruptDataError

if TYPE_CHECKING:
    from kraftlake.records.batch_values import BatchValues

_KEY_OF: Final[dict[str, dict[type[Message], Callable[[Any], Any]]]] = {
    "broker": {record: attrgetter(field) for record, field in BROKER_FIELDS.items()},
    "config": {r.ConfigRecord: lambda m: (ConfigResource(m.resource_type, m.resource_name), m.name)},
    "feature": {r.FeatureLevelRecord: attrgetter("name")},
    "acl": {r.AccessControlEntryRecord: attrgetter("id"), r.RemoveAccessControlEntryRecord: attrgetter("id")},
    "quota": {r.ClientQuotaRecord: lambda m: (ClientQuotaEntity.from_record(m.entity), m.key)},
    "scram": dict.fromkeys(
        (r.UserScramCredentialRecord, r.RemoveUserScramCredentialRecord),
        lambda m: (m.name, known_mechanism(m.mechanism)),
    ),
    "token": dict.fromkeys((r.DelegationTokenRecord, r.RemoveDelegationTokenRecord), attrgetter("token_id")),
}
"""The types of the records that change a kind of thing, with the key of the thing that a record changes."""

_KIND_OF: Final = {record: (kind, key) for kind, records in _KEY_OF.items() for record, key in records.items()}
_OF_PARTITIONS: Final = (r.PartitionRecord, r.PartitionChangeRecord, r.ClearElrRecord)

_TOPIC: Final = r.TopicRecord.API_KEY
_ID_SIZE: Final = 16
_ID_HEAD: Final = 8
"""The length of the prefix of an id that columns are searched for: other ids may begin with the same bytes."""
_FRAME: Final = 3
"""The number of bytes of a value before its fields: the frame's version, the type and its version."""
_NEWEST: Final = {
    key: newest for key, record in METADATA_RECORDS.items() if (newest := record.VERSIONS.high) is not None
}
"""The newest version of each type that this release knows."""


class FoundRecord(NamedTuple):
    """A record of the log: `time` is its own (epoch ms, -1 for none), `epoch` that of its batch."""

    offset: int
    epoch: int
    time: int
    value: bytes


class WatchedThings:
    """Things whose changes are wanted: `candidates` finds the records that may change them, `changed_by` the things.

    Candidates are also the marks of metadata transactions, and records in a form or of a type that this release does
    not know. Topics are watched by name: their ids are learned from an image, and from the records.
    """

    def __init__(self, things: Iterable[Thing], image: MetadataImage) -> None:
        self._by_key: dict[tuple[str, Any], list[Thing]] = {}
        self._by_topic: dict[str, list[Thing]] = {}
        for thing in dict.fromkeys(things):
            self._by_key.setdefault((thing.kind, thing.key), []).append(thing)
            if thing.topic_name is not None:
                self._by_topic.setdefault(thing.topic_name, []).append(thing)
        kinds = {kind for kind, _ in self._by_key}
        types: list[type[Message]] = [
            *TRANSACTION_MARKS,
            *(record for kind in kinds for record in _KEY_OF.get(kind, ())),
        ]
        types += [r.TopicRecord, r.RemoveTopicRecord] if self._by_topic else []
        types += _OF_PARTITIONS if "partition" in kinds else ()
        self._api_keys = frozenset(record.API_KEY for record in types)
        topics = ((name, image.topics.get_topic(name)) for name in self._by_topic)
        self._names = {topic.id: name for name, topic in topics if topic is not None}

    def changed_by(self, message: Any) -> Sequence[Thing]:
        """The things that a record may change."""
        if isinstance(message, (r.PartitionRecord, r.PartitionChangeRecord)):
            name = self._names.get(message.topic_id)
            return self._by_key.get(("partition", (name, message.partition_id)), ())
        if isinstance(message, r.TopicRecord):
            return self._by_topic.get(message.name, ())
        if isinstance(message, r.RemoveTopicRecord):
            return self._by_topic.get(self._names.get(message.topic_id, ""), ())
        if isinstance(message, r.ClearElrRecord):
            topics = [message.topic_name] if message.topic_name else [*self._by_topic]
            return [thing for name in topics for thing in self._by_topic.get(name, ()) if thing.kind == "partition"]
        kind, key_of = _KIND_OF.get(type(message), ("", None))
        return () if key_of is None else self._by_key.get((kind, key_of(message)), ())

    def candidates(self, chunk: Chunk) -> Iterator[FoundRecord]:
        """The records of a part of the log that may change one of the things, in order; parts come in order, too."""
        if not isinstance(chunk, RecordBatch):
            yield from self._among(chunk)
        elif not chunk.control:
            for offset, time, value in zip(count(chunk.base_offset), chunk.timestamps, chunk.values, strict=False):
                if self._may_change(value):
                    yield FoundRecord(offset, chunk.epoch, time, value)

    def _may_change(self, value: bytes) -> bool:
        value = with_short_frame(value)
        if len(value) < _FRAME or value[0] != 1 or value[2] > _NEWEST.get(value[1], -1):
            return True
        api_key = value[1]
        if api_key not in self._api_keys:
            return False
        if api_key == _TOPIC:
            return self._learn(value)
        at = TOPIC_ID_AT.get(api_key)
        return at is None or value[at : at + _ID_SIZE] in self._names

    def _learn(self, value: bytes) -> bool:
        """Learn the id of a watched topic from a TopicRecord's value; returns whether it is, or can't be read."""
        try:
            message = decode_value(value).message
        except CorruptDataError:
            return True
        if isinstance(message, r.TopicRecord) and message.name in self._by_topic:
            self._names[message.topic_id] = message.name
            return True
        return False

    def _among(self, values: BatchValues) -> Iterator[FoundRecord]:
        """The same as `candidates`, by columns."""
        import numpy as np

        data, lengths = values.data, values.stops - values.starts
        framed = np.flatnonzero(lengths >= _FRAME)
        heads = values.starts[framed]
        keys = data[heads + 1]
        odd = (data[heads] != 1) | (data[heads + 2] > _table(_NEWEST, -1)[keys])
        wanted = _table(dict.fromkeys(self._api_keys, 1), 0)[keys] != 0
        if self._by_topic:
            for place in framed[odd].tolist():
                self._learn(values.value(place))
            topics = np.flatnonzero(~odd & (keys == _TOPIC))
            wanted[topics] = [self._learn(values.value(place)) for place in framed[topics].tolist()]
            ids = np.frombuffer(b"".join(id_[:_ID_HEAD] for id_ in self._names), np.uint64)
            for api_key, at in TOPIC_ID_AT.items():
                some = np.flatnonzero(~odd & (keys == api_key) & (lengths[framed] >= at + _ID_SIZE))
                known = data[(heads[some] + at)[:, None] + np.arange(_ID_HEAD)].view(np.uint64).reshape(-1)
                wanted[some] &= np.isin(known, ids)
        places = np.union1d(np.flatnonzero(lengths < _FRAME), framed[odd | wanted])
        batches = np.searchsorted(values.last_offsets, values.base_offset + places)
        columns = (places, values.epochs[batches], values.times[places])
        for place, epoch, time in zip(*(column.tolist() for column in columns), strict=True):
            yield FoundRecord(values.base_offset + place, epoch, time, values.value(place))


def _table(numbers: Mapping[int, int], otherwise: int) -> Any:
    """Numbers by byte (int16[256])."""
    import numpy as np

    table = np.full(256, otherwise, np.int16)
    table[[*numbers]] = [*numbers.values()]
    return table
