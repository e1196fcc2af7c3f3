"""A quorum that commits records, observed over the network."""

from __future__ import annotations

from collections.abc import Sequence

from kraftlake.kafka_files.directory import MetadataDirectory
from kraftlake.protocol.node_error import NodeError
from kraftlake.protocol.observer.observed_log import ObservedLog
from kraftlake.protocol.observer.quorum_observer import QuorumObserver, SnapshotNeededError
from kraftlake.protocol.observer.requests import OffsetAndEpoch
from kraftlake.records.batch import RecordBatch
from kraftlake.replay.live.fetch_log import decoded, fetch_log
from kraftlake.replay.live.live_directory import epoch_before
from kraftlake.runtime.errors import OffsetError


class LiveQuorum:
    """Returns the batches that a quorum commits, one Fetch in each step; `trouble` says that it does not answer.

    Raises OffsetError where the leader deleted batches that were not read yet, DivergedLogError where the quorum lost
    committed batches.
    """

    def __init__(self, log: MetadataDirectory, observer: QuorumObserver) -> None:
        """Initialize at the end of a quorum's log as it was copied; closes the `observer`."""
        self.reader = log
        self.trouble: str | None = None
        self._observer = observer
        self._observed = ObservedLog(OffsetAndEpoch(offset=log.end_offset, epoch=epoch_before(log.end_offset, log)))

    @property
    def seen_to(self) -> int:
        """The offset after the last batch that the leader sent, committed or not."""
        return self._observed.fetched.offset

    def step(self) -> Sequence[RecordBatch]:
        """The next committed batches; an empty list for none yet."""
        try:
            batches = fetch_log(self._observer, self._observed, wait_ms=0)
        except NodeError as fault:
            self.trouble = f"the quorum can't be asked: {str(fault).rstrip('.')}"
            return []
        except SnapshotNeededError as answer:
            raise OffsetError(
                f"{self.reader.name} starts at offset {answer.log_start_offset} now: what it had from offset "
                f"{self._observed.next_offset} on was deleted there before it was read."
            ) from None
        self.trouble = None
        return decoded(batches)

    def close(self) -> None:
        """Close the connection."""
        self._observer.close()
