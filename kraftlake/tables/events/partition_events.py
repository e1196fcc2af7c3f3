"""The events of partitions: the events between two states of each, and their sentences.

An event is one line below: its kind, the field that changed, a mask of partitions, and its sentence. Imports numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from string import Formatter
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlake.image.topics.partition_registration import NO_LEADER, LeaderRecoveryState
from kraftlake.replay.log.broker_lists import BrokerLists

_RECOVERY_STATES: Final = np.array([state.name for state in sorted(LeaderRecoveryState)])


class Hosts(NamedTuple):
    """The brokers that host n partitions, and those that a reassignment adds and removes."""

    replicas: BrokerLists
    adding: BrokerLists
    removing: BrokerLists

    @property
    def moving(self) -> Any:
        """Whether a reassignment of each is under way (bool[n])."""
        return self.adding.any | self.removing.any

    def staying(self) -> BrokerLists:
        """The replicas without those that a reassignment adds."""
        return self.replicas.without(self.adding)

    def target(self) -> BrokerLists:
        """The replicas without those that a reassignment removes."""
        return self.replicas.without(self.removing)

    def take(self, rows: Any) -> Hosts:
        """The hosts of some partitions (int64[m])."""
        return Hosts(*(lists.take(rows) for lists in self))

    def moves_differ(self, others: Hosts) -> Any:
        """Whether the reassignment of each partition differs (bool[n])."""
        return self.adding.differ_from(others.adding) | self.removing.differ_from(others.removing)

    def differ_from(self, others: Hosts) -> Any:
        """Whether anything of each partition differs (bool[n])."""
        return self.replicas.differ_from(others.replicas) | self.moves_differ(others)


class PartitionColumns(NamedTuple):
    """The states of n partitions; `leader` and `recovery`, the leader recovery state, are int32[n]."""

    leader: Any
    recovery: Any
    isr: BrokerLists
    elr: BrokerLists
    hosts: Hosts


PARTITION_EVENTS: Final = pa.schema(
    [
        pa.field("partition", pa.int64(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("field", pa.string(), nullable=False),
        pa.field("before", pa.string()),
        pa.field("after", pa.string()),
        pa.field("sentence", pa.string(), nullable=False),
    ]
)
"""Events of n partitions: the partition of each, and columns of `events/`.

`sentence` lacks the partition's name at its beginning.
"""


def partition_events(before: PartitionColumns, after: PartitionColumns) -> pa.Table:
    """The events between two states of n partitions (PARTITION_EVENTS), by partition, in the order of the listing."""
    event_functions: tuple[Callable[[Any, Any], Iterator[pa.RecordBatch]], ...] = (
        _leader_events, _recovery_events, _isr_events, _elr_events, _replica_events,
    )  # fmt: skip
    partitions, tables = [np.empty(0, np.int64)], [PARTITION_EVENTS.empty_table()]
    for was, now, events in zip(before, after, event_functions, strict=True):
        differ = was != now if isinstance(was, np.ndarray) else was.differ_from(now)
        changed = np.flatnonzero(differ)
        if not len(changed):
            continue
        table = pa.Table.from_batches([*events(was.take(changed), now.take(changed))], PARTITION_EVENTS)
        partitions.append(changed[table.column("partition").to_numpy()])
        tables.append(table)
    all_partitions = np.concatenate(partitions)
    order = np.argsort(all_partitions, kind="stable")
    rows = pa.concat_tables(tables).take(order).combine_chunks()
    return rows.set_column(0, PARTITION_EVENTS.field(0), pa.array(all_partitions[order]))


def _leader_events(before: Any, after: Any) -> Iterator[pa.RecordBatch]:
    had, has = before != NO_LEADER, after != NO_LEADER
    sides = {"before": before, "after": after}
    yield from _events("leader_moved", "leader", had & has, "is led by {after} instead of {before}", **sides)
    yield from _events("leader_lost", "leader", ~has, "has no leader any more, it was {before}", before=before)
    yield from _events("leader_elected", "leader", ~had, "is led by {after}, it had no leader", after=after)


def _recovery_events(before: Any, after: Any) -> Iterator[pa.RecordBatch]:
    names = {"before": _RECOVERY_STATES[before], "after": _RECOVERY_STATES[after]}
    event, recovering = ("recovery_state_changed", "leader_recovery_state"), after == LeaderRecoveryState.RECOVERING
    yield from _events(*event, recovering, "was given a leader that may lack records", **names)
    yield from _events(*event, ~recovering, "is done with recovering from an unclean election", **names)


def _isr_events(before: BrokerLists, after: BrokerLists) -> Iterator[pa.RecordBatch]:
    """The events of ISRs; another order of the same members is not an event."""
    gone, come = before.without(after), after.without(before)
    sides = {"before": before, "after": after}
    shrank, expanded, both = gone.any & ~come.any, come.any & ~gone.any, gone.any & come.any
    sentence = "has {gone} no longer in sync: {before} → {after}"
    yield from _events("isr_shrank", "isr", shrank, sentence, gone=gone, **sides)
    sentence = "has {come} in sync as well: {before} → {after}"
    yield from _events("isr_expanded", "isr", expanded, sentence, come=come, **sides)
    sentence = "has {come} in sync and no longer {gone}: {before} → {after}"
    yield from _events("isr_changed", "isr", both, sentence, gone=gone, come=come, **sides)


def _elr_events(before: BrokerLists, after: BrokerLists) -> Iterator[pa.RecordBatch]:
    other, sides = ~before.same_members(after), {"before": before, "after": after}
    yield from _events("elr_changed", "elr", other, "has other replicas eligible to lead: {before} → {after}", **sides)


def _replica_events(before: Hosts, after: Hosts) -> Iterator[pa.RecordBatch]:
    was_moving, is_moving, replicas = before.moving, after.moving, after.replicas
    staying, target = before.staying(), before.target()
    ended = was_moving & ~is_moving
    back = replicas.same_members(staying) & ~staying.same_members(target)

    sides = {"before": before.replicas, "after": after.target()}
    started = is_moving & ~was_moving
    yield from _events("reassignment_started", "replicas", started, "is being reassigned: {before} → {after}", **sides)

    sides = {"before": target, "after": after.target()}
    elsewhere = was_moving & is_moving & before.moves_differ(after)
    sentence = "is being reassigned elsewhere: {after} instead of {before}"
    yield from _events("reassignment_changed", "replicas", elsewhere, sentence, **sides)

    sides = {"before": target, "after": replicas}
    sentence = "is no longer reassigned and stays with {after}"
    yield from _events("reassignment_cancelled", "replicas", ended & back, sentence, **sides)

    sides = {"before": staying, "after": replicas}
    yield from _events("reassignment_finished", "replicas", ended & ~back, "has been reassigned to {after}", **sides)

    sides = {"before": before.replicas, "after": replicas}
    other = ~was_moving & ~is_moving
    yield from _events("replicas_changed", "replicas", other, "has other replicas: {before} → {after}", **sides)


def _events(kind: str, field: str, where: Any, sentence: str, **values: Any) -> Iterator[pa.RecordBatch]:
    """Events of the partitions in the mask `where` (bool[n]), if there are any.

    `values` are those of `before`, `after` and other slots of the sentence, of each partition: numbers, names or lists.
    """
    partitions = np.flatnonzero(where)
    if not len(partitions):
        return
    texts = {slot: _texts(slot, value, partitions) for slot, value in values.items()}
    pieces = []
    for literal, slot, *_ in Formatter().parse(sentence):
        pieces += [_repeated(literal, partitions), *([] if slot is None else [texts[slot]])]
    nothing = _repeated(None, partitions)
    columns = {
        "partition": pa.array(partitions),
        "kind": _repeated(kind, partitions),
        "field": _repeated(field, partitions),
        "before": texts.get("before", nothing),
        "after": texts.get("after", nothing),
        "sentence": pc.binary_join_element_wise(*pieces, ""),
    }
    yield pa.RecordBatch.from_arrays([*columns.values()], schema=PARTITION_EVENTS)


def _repeated(text: str | None, partitions: Any) -> pa.StringArray:
    return pa.repeat(pa.scalar(text, pa.string()), len(partitions))


def _texts(slot: str, values: Any, partitions: Any) -> pa.StringArray:
    """The content of a slot: lists `before` and `after` as lists, others in words."""
    if isinstance(values, BrokerLists):
        lists = values.take(partitions)
        return lists.texts() if slot in ("before", "after") else lists.words()
    return pa.array(values[partitions]).cast(pa.string())
