"""Changes of partitions as input and output of the kernels of columns: flags, kinds and columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kraftlake.kernels.language import (
        Bytes,
        BytesOut,
        IntRows,
        IntRowsOut,
        Ints,
        IntsOut,
        Longs,
        LongsOut,
    )

HAD, HAS, WRITTEN = 1, 2, 4
"""Flags of a changed partition: it existed before; it exists after; a record has written its directories."""

DELETE, DIRECTORY, FOLLOWER, LEADING, ELECTED = range(5)
"""The kinds of changes, in the order of their names in the table `local_changes/`."""

PARTITIONS, OFFLINE, IMBALANCED, UNDER_REPLICATED, REASSIGNING, RECOVERING, UNCLEAN, ELIGIBLE, COUNTS = range(9)
"""The columns of a delta's counts: the growth of those of partitions, then the elections of each kind."""


class ChangedRows(NamedTuple):
    """The partitions that a change has changed: see `changed_rows.changed_rows`."""

    topics: IntsOut
    partitions: IntsOut
    before: IntRowsOut
    after: IntRowsOut
    flags: BytesOut
    elections: IntRowsOut


class BrokerChanges(NamedTuple):
    """Changes by broker: see `broker_changes.changes_of_brokers`."""

    changed: LongsOut
    brokers: IntsOut
    kinds: BytesOut
    directories: IntsOut


class ListRoom(NamedTuple):
    """Working memory of `changes_of_brokers`."""

    lists: IntRowsOut
    lengths: LongsOut
    before: IntRowsOut
    before_lengths: LongsOut


class ChangedPartitions(NamedTuple):
    """The changed partitions: see `change_columns.fill_change_columns`."""

    rows: IntRows
    deltas: Longs
    topics: Ints
    partitions: Ints


class DeltaHeads(NamedTuple):
    """The deltas: see `fill_change_columns`."""

    offsets: Longs
    epochs: Ints
    times: Longs


class ChangeColumns(NamedTuple):
    """Changes by broker as columns: see `fill_change_columns`."""

    offsets: LongsOut
    times: LongsOut
    epochs: IntsOut
    brokers: IntsOut
    kinds: IntsOut
    directories: IntsOut
    topics: IntsOut
    partitions: IntsOut
    leaders: IntsOut
    leader_epochs: IntsOut
    partition_epochs: IntsOut
    replica_bounds: IntsOut
    replicas: IntsOut
    isr_bounds: IntsOut
    isr: IntsOut


class CountedChanges(NamedTuple):
    """The changes that `cluster_counts.count_changes` takes."""

    deltas: Longs
    before: IntRows
    after: IntRows
    flags: Bytes
    unclean: Longs
    eligible: Longs


class FoldedVersions(NamedTuple):
    """The versions that `partition_moves.fold_versions` takes."""

    places: Longs
    before: IntRows
    after: IntRows
    did: Bytes


class PartitionsNow(NamedTuple):
    """The partitions by index: see `fold_versions`."""

    there: BytesOut
    since: LongsOut
    since_times: LongsOut
    newest: LongsOut
    touched: LongsOut


class FoldedChanges(NamedTuple):
    """Memory for the changes of `fold_versions`."""

    first: LongsOut
    last: LongsOut
    since: LongsOut
    since_times: LongsOut
    unclean: LongsOut
    eligible: LongsOut
    flags: BytesOut
    altered: BytesOut
