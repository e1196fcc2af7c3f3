"""The records that are of no topic, replayed once for images, tables and questions. Imports numpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import Final

import attrs
import numpy as np

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.delta.topics.bulk_change import TOPIC_KINDS
from kraftlake.image.configurations_image import TOPIC_RESOURCE, ConfigResource
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.records.foreign.registered import is_passed_over
from kraftlake.records.metadata_records import NoOpRecord
from kraftlake.records.serde import AnyMessage
from kraftlake.replay.loader.record_faults import RECORD_FAULTS
from kraftlake.replay.log.effective_records import EffectiveRecords
from kraftlake.replay.log.partition_store import Fault, Skip

_PASSED_OVER: Final = frozenset((*TOPIC_KINDS, NoOpRecord.API_KEY))


@attrs.frozen(kw_only=True, eq=False)
class OtherChange:
    """The effect of the records of one offset on all parts of the image but the topics.

    `delta` is the number of their metadata delta, `time` that of the offset's batch (epoch ms, -1 for none). `change`
    has led from `change.image` to `image`, both without topics; `messages` are the records. The configs of a topic are
    deleted with it: a change without messages is that of a removed topic with configs.
    """

    delta: int
    offset: int
    time: int
    change: MetadataDelta
    image: MetadataImage
    messages: Sequence[AnyMessage]

    @cached_property
    def racks(self) -> dict[int, str | None]:
        """The racks of the brokers that get another one, by id: None for none, and for a broker that is gone."""
        cluster = self.change.cluster_delta
        if cluster is None:
            return {}
        before, changed = cluster.image.brokers, cluster.changed_brokers
        racks = {broker: None if now is None else now.rack for broker, now in changed.items()}
        return {broker: rack for broker, rack in racks.items() if rack != getattr(before.get(broker), "rack", None)}


class OtherRecords:
    """Replays the records of no topic. `image` is the image without topics after those that were replayed."""

    def __init__(self, image: MetadataImage = MetadataImage.EMPTY) -> None:
        """Begin with an image."""
        self.image = attrs.evolve(image, topics=TopicsImage.EMPTY)

    def replay(
        self,
        records: EffectiveRecords,
        deltas: Sequence[int],
        removed: Mapping[int, str],
        end: int,
        skip: Skip | None,
    ) -> tuple[list[OtherChange], Fault | None]:
        """Replay records that follow those before; `deltas` are the numbers of their deltas.

        `removed` has the names of removed topics by the numbers of the records that removed them. A record that can't
        be replayed is left out and passed to `skip` with its number; without `skip` it ends the replay: the changes of
        the deltas before its own are given, and the fault. Nothing is to be replayed after that. Of the deltas from
        `end` on nothing but such a record is wanted.
        """
        places = np.flatnonzero(~(records.are_of(TOPIC_KINDS) | records.are_no_ops())).tolist()
        if removed:
            places = sorted({*places, *removed})
        found, before = list[OtherChange](), self.image
        effective = records.effective[places].tolist()
        for offset, group in groupby(zip(effective, places, strict=True), key=itemgetter(0)):
            change, messages = MetadataDelta(self.image, of_log=True), list[AnyMessage]()
            for _, place in group:
                try:
                    _replay(change, messages, records, place, removed.get(place))
                except RECORD_FAULTS as error:
                    if skip is None:
                        return self._back_to(found, int(deltas[place]), before), (place, error)
                    skip(place, error)
            if not messages and change.configs_delta is None:
                continue
            self.image = change.apply(self.image.provenance)
            number, time = int(deltas[place]), int(records.times[place])
            found.append(
                OtherChange(delta=number, offset=offset, time=time, change=change, image=self.image, messages=messages)
            )
        return self._back_to(found, end, before), None

    def _back_to(self, found: Sequence[OtherChange], end: int, before: MetadataImage) -> list[OtherChange]:
        """Undo the changes of the deltas from `end` on; gives those that stay, and have led on from an image."""
        kept = [change for change in found if change.delta < end]
        self.image = kept[-1].image if kept else before
        return kept


def _replay(
    change: MetadataDelta, messages: list[AnyMessage], records: EffectiveRecords, place: int, removed: str | None
) -> None:
    """Replay a record into the change at its offset, and add it to the messages; it removes the topic `removed`."""
    if removed is not None:
        resource, configs = ConfigResource(TOPIC_RESOURCE, removed), change.image.configs
        if change.configs_delta is not None or resource in configs.resource_data or resource in configs.ignored:
            change.get_or_create_configs_delta().replay_remove_topic(removed)
        return
    message = records.message(place)
    if getattr(message, "API_KEY", None) not in _PASSED_OVER and not is_passed_over(message):
        change.replay(message, int(records.offsets[place]))
        messages.append(message)
