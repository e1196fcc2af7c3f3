"""The history of the log directories of brokers, by their registrations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import attrs
import pyarrow as pa

from kraftlake.image.broker_registration import BrokerRegistration
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.tables.history.entity_table import Changed, Key, Known, RowTable, State, column

if TYPE_CHECKING:
    from kraftlake.replay.loader.quorum_state import QuorumState
    from kraftlake.replay.log.delta_chunk import DeltaChunk


@attrs.frozen(kw_only=True, eq=False)
class DirectoryTable(RowTable):
    """The table of directories. One that a broker's process had and lost is offline until the broker starts anew."""

    def begins(self, image: MetadataImage, quorum: QuorumState) -> Iterable[tuple[Key, State]]:  # noqa: ARG002 - of quorums
        """The directories that are online in an image, by broker and id."""
        return [one for id_, broker in sorted(image.cluster.brokers.items()) for one in _online(id_, broker).items()]

    def changes(self, chunk: DeltaChunk, known: Known) -> Iterator[Changed]:
        """The states of the directories of brokers that changed."""
        states: dict[Key, State] | None = None
        for other in chunk.others:
            cluster = other.change.cluster_delta
            if cluster is None or not cluster.changed_brokers:
                continue
            states = known() if states is None else states
            changed: dict[Key, State | None] = {}
            for id_, now in cluster.changed_brokers.items():
                before = cluster.image.brokers.get(id_)
                goes_on = before is not None and now is not None and before.incarnation_id == now.incarnation_id
                for key, state in states.items():
                    if key[0] == id_:
                        changed[key] = (*state[:2], False, *state[3:]) if goes_on else None
                changed |= {} if now is None else _online(id_, now)
            yield other.offset, other.time, changed
            states = {key: state for key, state in {**states, **changed}.items() if state is not None}


def _online(id_: int, broker: BrokerRegistration) -> dict[Key, State]:
    cordoned = {*(broker.cordoned_directories or ())}
    ids = ((str(directory), directory in cordoned) for directory in broker.directories)
    return {(id_, directory): (id_, directory, True, is_cordoned) for directory, is_cordoned in ids}


DIRECTORIES: Final = DirectoryTable(
    name="directory_history",
    comment="The log directories that each broker had, from when to when, and since when they were offline",
    key=("broker", "directory"),
    own_columns=(
        column("broker", pa.int32(), "the broker's id"),
        column("directory", pa.string(), "the directory's id, as `directories` of partition_history has it"),
        column("online", pa.bool_(), "whether it is online; false: the broker's process had it, and reported it lost"),
        column("cordoned", pa.bool_(), "whether it gets no new partitions"),
    ),
)
