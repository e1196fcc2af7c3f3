"""One node's copy of the metadata log: its node, its end, the ends of its epochs."""

from __future__ import annotations

from itertools import islice
from typing import Final

import attrs

from kraftlake.kafka_files.directory import NodeFiles
from kraftlake.kafka_files.node.meta_properties import MetaProperties
from kraftlake.kafka_files.node.quorum_state import ElectionState, parse_election_state
from kraftlake.kafka_files.open_source import node_files
from kraftlake.records.batch import RecordBatch
from kraftlake.replay.loader.quorum_state import QuorumState
from kraftlake.replay.reading.chunks import chunks_of
from kraftlake.replay.reading.committed import EpochEnds
from kraftlake.replay.reading.open_reader import LogReader, is_lake, open_reader
from kraftlake.replay.reading.replay_base import usable_snapshots
from kraftlake.runtime.errors import CorruptDataError

_SILENT_MS: Final = 10_000


@attrs.frozen(kw_only=True)
class Fetching:
    """The progress of a node of a running quorum: times in epoch ms by the leader's clock, −1 for unknown.

    The node lacks the offsets from `since_offset` on; it last fetched at `since`. For a node that has not fetched from
    this leader, `since` is the leader's election.
    """

    leads: bool
    now: int
    since: int
    since_offset: int
    caught_up: int

    @property
    def silent_ms(self) -> int:
        """The time since the last Fetch; 0 for the leader, and where it is unknown."""
        return 0 if self.leads or self.since < 0 else max(0, self.now - self.since)

    @property
    def is_silent(self) -> bool:
        """Whether the node has stopped fetching.

        A follower fetches twice a second or more; after two seconds without an answer it gives up its leader.
        """
        return self.silent_ms > _SILENT_MS


@attrs.frozen(kw_only=True)
class LogCopy:
    """One source's copy of the log, and the files of the node beside it.

    `epoch_ends` are the epochs of its batches with the offset after each, in order; a newest snapshot that goes further
    than the log is the last of them. The batches of the log are read up to `read_to`, its end or the broken place.
    `quorum` is the state by the newest control records.
    `fault` describes the damage, None for a sound copy; the other fields describe the part before it. `reader` is the
    log itself, None where it could not be opened. `fetching` is the report of a running quorum's leader on the node,
    None for files.
    """

    path: str
    properties: MetaProperties = MetaProperties()
    election: ElectionState | None = None
    start_offset: int = 0
    epoch_ends: tuple[tuple[int, int], ...] = ()
    read_to: int = 0
    quorum: QuorumState = QuorumState()
    fault: str | None = None
    fetching: Fetching | None = None
    reader: LogReader | None = attrs.field(default=None, repr=False, eq=False)

    @property
    def position(self) -> tuple[int, int]:
        """Last epoch and end offset, (−1, start) of an empty log: a voter votes for copies not behind its own."""
        return self.epoch_ends[-1] if self.epoch_ends else (-1, self.start_offset)

    @property
    def end_offset(self) -> int:
        """The first offset after the copy's end."""
        return self.position[1]


def read_log_copies(path: str) -> tuple[LogCopy, ...]:
    """Read the copies at `path`, one for each node that it holds: all batches, for their epochs and control records.

    Raises NotASourceError and the like where nothing can be opened; damage further in is a copy's `fault`.
    """
    if is_lake(path):
        reader, _ = open_reader(path)
        return (read_copy(LogCopy(path=path, properties=MetaProperties(cluster_id=reader.cluster_id)), reader),)
    try:
        nodes = node_files(path)
    except CorruptDataError as error:
        return (LogCopy(path=path, fault=str(error)),)
    return tuple(_copy_of(path if len(nodes) == 1 else one.folder, one) for one in nodes)


def _copy_of(path: str, node: NodeFiles) -> LogCopy:
    copy = LogCopy(path=path, properties=node.properties)
    try:
        if node.quorum_state is not None:
            copy = attrs.evolve(copy, election=parse_election_state(node.quorum_state))
    except CorruptDataError as error:
        copy = attrs.evolve(copy, fault=str(error))
    try:
        log = node.open()
    except CorruptDataError as error:
        return attrs.evolve(copy, fault=str(error))
    return read_copy(copy, log)


def read_copy(copy: LogCopy, reader: LogReader) -> LogCopy:
    """`copy` with the facts of `reader`: all batches are read, for their epochs and control records."""
    epoch_ends, quorum, read_to, fault = EpochEnds(), QuorumState(), reader.start_offset, copy.fault
    newest = max(usable_snapshots(reader), key=lambda one: one.end_offset, default=None)
    if newest is not None:
        try:
            for head in islice(newest.batches(), 1):
                quorum = quorum.after(head)
            epoch_ends.see(newest.epoch, newest.end_offset)
        except CorruptDataError as error:
            fault = str(error)
    try:
        for chunk in chunks_of(reader, reader.start_offset, reader.end_offset - 1):
            epoch_ends.see_chunk(chunk)
            quorum = quorum.after(chunk) if isinstance(chunk, RecordBatch) else quorum
            read_to = chunk.last_offset + 1
    except CorruptDataError as error:
        fault = str(error)
    return attrs.evolve(
        copy,
        start_offset=reader.start_offset,
        epoch_ends=tuple(sorted(epoch_ends.ends.items())),
        read_to=read_to,
        quorum=quorum,
        fault=fault,
        reader=reader,
    )
