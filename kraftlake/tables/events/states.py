"""The events of a cluster, one metadata delta after the other: a pure function of its records and of a first image.

Compiled code replays most records of topics. From a record on that compiled code can't replay, the rest of a chunk is
replayed as objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa

from kraftlake.delta import MetadataDelta
from kraftlake.image import MetadataImage
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.records import metadata_records as r
from kraftlake.tables.changes.delta_boundaries import DeltaBoundaries
from kraftlake.tables.changes.effective_records import UNKNOWN_KIND, EffectiveRecords
from kraftlake.tables.changes.object_deltas import object_deltas, replay_into
from kraftlake.tables.changes.partition_store import TOPIC_KINDS
from kraftlake.tables.changes.topics_state import TopicsInTurn
from kraftlake.tables.events.entry_events import entry_events
from kraftlake.tables.events.object_events import ObjectEvents
from kraftlake.tables.events.table import Event

ENTRY_KINDS: Final = tuple(
    cls.API_KEY
    for cls in (
        r.RegisterBrokerRecord,
        r.UnregisterBrokerRecord,
        r.ConfigRecord,
        r.FenceBrokerRecord,
        r.UnfenceBrokerRecord,
        r.DelegationTokenRecord,
        r.UserScramCredentialRecord,
        r.FeatureLevelRecord,
        r.ClientQuotaRecord,
        r.BrokerRegistrationChangeRecord,
        r.AccessControlEntryRecord,
        r.RemoveAccessControlEntryRecord,
        r.RemoveUserScramCredentialRecord,
        r.RemoveDelegationTokenRecord,
        r.RegisterControllerRecord,
        r.UnregisterControllerRecord,
    )
)
"""The api keys of the records that make events of all but topics and partitions."""

EVENT_KINDS: Final = (*TOPIC_KINDS, *ENTRY_KINDS)
"""The api keys of the records that make events."""


Rows = Callable[[], tuple[pa.Table, Any]]
"""Makes rows of `events/` (ENCODED_EVENTS), and the numbers of their deltas (int64)."""


class EventStates:
    """The image after a metadata delta; `take` replays further deltas.

    The events depend on the records and deltas alone, not on how these are cut into chunks between two deltas.
    """

    def __init__(
        self, image: MetadataImage = MetadataImage.EMPTY, *, bulk: bool | None = None, show_secrets: bool = False
    ) -> None:
        """Begin with an image; `bulk` says whether to use compiled code, None: where there is enough to do for it."""
        self._show_secrets = show_secrets
        self._topics = TopicsInTurn(image.topics, bulk=bulk)
        self._others = attrs.evolve(image, topics=TopicsImage.EMPTY)

    @property
    def in_columns(self) -> bool:
        """Whether compiled code is at work."""
        return self._topics.in_places

    def take(self, records: EffectiveRecords, heads: DeltaBoundaries) -> Iterator[Rows]:
        """Replay the records of whole deltas, which follow those before.

        Gives functions that make, on any thread, the rows of `events/` in order, without those of elections of
        controllers, and the numbers (int64, ascending) of their deltas. A record is of the first delta whose last
        offset is not less than the offset at which the record takes effect. Records of other kinds than `EVENT_KINDS`
        are left out. Raises ReplayError or CorruptDataError, naming the offset, for a record that contradicts the
        image.
        """
        records = records.of_kinds((*EVENT_KINDS, UNKNOWN_KIND))
        if not len(records):
            return
        deltas = np.searchsorted(heads.offsets, records.effective)
        done = 0
        of_topics = np.flatnonzero(records.are_of((*TOPIC_KINDS, UNKNOWN_KIND)))
        places = self._topics.places(len(of_topics))
        if places is not None:
            from kraftlake.tables.events.bulk_events import bulk_events

            told = bulk_events(places, records.where(of_topics), deltas[of_topics], heads)
            done = len(records)
            if told.done < len(of_topics):
                done = int(np.searchsorted(deltas, deltas[of_topics[told.done]]))
            removed = {int(of_topics[place]): name for place, name in told.removed}
            events = [*self._take_others(records, deltas, done, removed)]
            yield partial(told.rows, events)
        if done < len(records):
            yield partial(self._take_objects(records.where(np.s_[done:]), deltas[done:]).rows, heads)

    def _take_others(
        self, records: EffectiveRecords, deltas: Any, end: int, removed: dict[int, str]
    ) -> Iterator[tuple[int, Event]]:
        """The events of all but topics, of the records before the one numbered `end`, with the numbers of deltas.

        `removed` names the topics that some of the records have removed: their configs go with them.
        """
        some = np.flatnonzero(records.are_of(ENTRY_KINDS)[:end]).tolist()
        numbered = ((int(deltas[number]), number) for number in sorted({*some, *removed}))
        for delta_number, group in groupby(numbered, key=itemgetter(0)):
            before = self._others
            delta = MetadataDelta(before, of_log=True)
            for _, number in group:
                if number in removed:
                    delta.get_or_create_configs_delta().replay_remove_topic(removed[number])
                else:
                    replay_into(delta, records, number, ENTRY_KINDS)
            self._others = delta.apply(before.provenance)
            events = entry_events(delta, self._others, show_secrets=self._show_secrets)
            yield from ((delta_number, event) for event in events)

    def _take_objects(self, records: EffectiveRecords, deltas: Any) -> ObjectEvents:
        """All events of records; `deltas` (int64) are the numbers of their deltas."""

        def image() -> MetadataImage:
            return attrs.evolve(self._others, topics=self._topics.image())

        events = ObjectEvents(show_secrets=self._show_secrets)
        for number, delta in object_deltas(records, deltas, EVENT_KINDS, image):
            after = delta.apply(delta.image.provenance)
            events.add(number, delta, after)
            self._topics.become(after.topics)
            self._others = attrs.evolve(after, topics=TopicsImage.EMPTY)
        return events
