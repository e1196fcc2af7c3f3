"""Where the log of a quorum begins, and the snapshots that its first images need."""

from __future__ import annotations

from typing import Final

import attrs

from kraftlake.protocol import (
    DivergedLogError,
    ObservedLog,
    OffsetAndEpoch,
    QuorumObserver,
    RawBatch,
    SnapshotNeededError,
)

_EPOCHS_TRIED: Final = 64
"""How many epochs are tried to find that of the oldest snapshot, which no answer tells."""


@attrs.frozen(kw_only=True)
class Beginning:
    """The quorum's log from its first offset on; `batches` came already, `snapshots` are still to be fetched."""

    log: ObservedLog
    batches: list[RawBatch]
    snapshots: tuple[OffsetAndEpoch, ...] = ()


def begin(observer: QuorumObserver) -> Beginning:
    """Find the first offset that the leader still has.

    A leader with a snapshot answers a Fetch at offset 0 with its newest one, also where its log starts at 0; there the
    first batch is asked for by its second offset, so a first batch of one record is lost. A log that starts later does
    so where its oldest snapshot ends; that is only given to who knows its epoch. Raises as `QuorumObserver.fetch`.
    """
    log = ObservedLog(OffsetAndEpoch(offset=0, epoch=0))
    try:
        return Beginning(log=log, batches=observer.fetch(log, wait_ms=0))
    except SnapshotNeededError as answer:
        newest, start = answer.snapshot, answer.log_start_offset
    if start <= 0:
        return _from(observer, OffsetAndEpoch(offset=1, epoch=-1), (newest,))
    for epoch in range(newest.epoch, max(newest.epoch - _EPOCHS_TRIED, -1), -1):
        oldest = OffsetAndEpoch(offset=start, epoch=epoch)
        try:
            return _from(observer, oldest, tuple(dict.fromkeys((oldest, newest))))
        except (SnapshotNeededError, DivergedLogError):
            continue
    return _from(observer, newest, (newest,))


def _from(observer: QuorumObserver, start: OffsetAndEpoch, snapshots: tuple[OffsetAndEpoch, ...]) -> Beginning:
    log = ObservedLog(start)
    return Beginning(log=log, batches=observer.fetch(log, wait_ms=0), snapshots=snapshots)
