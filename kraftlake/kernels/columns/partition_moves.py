"""Folds the versions of partitions, around single records, into their changes by metadata deltas."""

from __future__ import annotations

from kraftlake.kernels.columns import change_buffers as change
from kraftlake.kernels.columns.change_buffers import FoldedChanges, FoldedVersions, PartitionsNow
from kraftlake.kernels.language import Bool, Int64, Ints, Longs, compiled
from kraftlake.kernels.replay.change_state import BLOCK, DIRECTORIES_WRITTEN
from kraftlake.kernels.replay.journal import DID_ELIGIBLE, DID_END, DID_UNCLEAN
from kraftlake.kernels.replay.row_lists import row_differs


@compiled
def fold_versions(
    versions: FoldedVersions, offsets: Longs, times: Longs, deltas: Longs, now: PartitionsNow, base_heap: Ints,
    heap: Ints, changes: FoldedChanges,
) -> tuple[Int64, Int64]:  # fmt: skip
    """Fold versions of partitions into changes: one for each partition and offset at which records take effect.

    `versions` has `places`, the rows `before` and `after` and `did` (uint8, see `Journal`) in the order of the log;
    `offsets`, `times` and `deltas` (int64, ascending but for the times) are those at which each takes effect. `now` has
    by index whether the partition is `there` (uint8), the offset and time at which its state began (`since`,
    `since_times`), and the number of its newest change (`newest`, int64; anything at first); `touched` (int64[1]) is
    working memory. All but the last two are updated.

    `changes` has room for as many changes as there are versions: the `first` and the `last` of its versions (int64),
    `since` and `since_times` of the state before it, `flags` (uint8: HAD, HAS, WRITTEN), `altered` (uint8; 0 where the
    state after it is the one before), and the numbers of elections (int64) that were `unclean`, or from the `eligible`
    leader replicas. They are in the order of their first versions. Returns the number of changes, and the number of
    those whose partition has an earlier one in the same delta.
    """
    count: Int64 = 0
    repeated: Int64 = 0
    ahead: Int64 = 0
    for i in range(len(versions.places)):
        if i >= ahead:
            ahead = min(i + BLOCK, len(versions.places))
            for j in range(i, ahead):  # all of these come from memory at the same time
                near = versions.places[j]
                now.touched[0] = now.newest[near] ^ now.since[near] ^ now.since_times[near] ^ now.there[near]
        place = versions.places[i]
        at = now.newest[place]
        first: Int64 = i
        if 0 <= at < count:
            first = changes.first[at]
        known: Bool = first != i and versions.places[first] == place
        if not known or offsets[first] != offsets[i]:
            if known and deltas[first] == deltas[i]:
                repeated += 1
            at = count
            first = i
            count += 1
            now.newest[place] = at
            changes.first[at] = i
            changes.flags[at] = change.HAD if now.there[place] else 0
            changes.since[at] = now.since[place]
            changes.since_times[at] = now.since_times[place]
            changes.unclean[at] = changes.eligible[at] = 0
        changes.last[at] = i
        flags: Int64 = changes.flags[at] & (change.HAD | change.WRITTEN)
        if versions.did[i] & DIRECTORIES_WRITTEN:
            flags |= change.WRITTEN
        ended: Bool = versions.did[i] & DID_END != 0
        if not ended:
            flags |= change.HAS
        now.there[place] = not ended
        changes.flags[at] = flags
        same: Bool = False
        if flags & change.HAD and flags & change.HAS:
            same = not row_differs(versions.after, i, versions.before, first, base_heap, heap)
        changes.altered[at] = not same
        now.since[place] = changes.since[at] if same else offsets[i]
        now.since_times[place] = changes.since_times[at] if same else times[i]
        if versions.did[i] & DID_UNCLEAN:
            changes.unclean[at] += 1
        if versions.did[i] & DID_ELIGIBLE:
            changes.eligible[at] += 1
    return count, repeated
