"""The journal of a replay: each version of a partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kraftlake.kernels.language import BytesOut, IntRowsOut, LongsOut

NO_PLACE = -1
"""The place of a partition that is not there."""

DID_UNCLEAN, DID_ELIGIBLE, DID_END = 4, 8, 16
"""Beside DIRECTORIES_WRITTEN: the record was an unclean election, one from the eligible leader replicas, or an end."""


class Journal(NamedTuple):
    """Versions of partitions, `counts[N_VERSIONS]` of them; without room for any, none is kept.

    Of version v, records[v] is the number of its value.

    places[v] is the partition's place: its row in the base, or the number of these plus its fresh row; it never changes
    while the state lives. before[v] (int32[COLUMNS]; zeros for a new partition) is what the partition is before the
    record, after[v] what it is after it (zeros for one that ended), did[v] says if that has written directories
    (DIRECTORIES_WRITTEN), was an election (DID_UNCLEAN, DID_ELIGIBLE) or its end (DID_END).
    """

    records: LongsOut
    places: LongsOut
    before: IntRowsOut
    after: IntRowsOut
    did: BytesOut
