"""The states of partitions as texts that a browser parses, each stored once. Imports numpy."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlake.diagnosis.partition_conditions import CONDITIONS
from kraftlake.replay.log.broker_lists import BrokerLists
from kraftlake.replay.log.partition_changes import HAS, PartitionChanges
from kraftlake.tables.events.distinct_changes import distinct_changes, event_columns

FLAGS: Final = ("offline", "under_replicated", "being_reassigned", "recovering")
"""The conditions in the flags of a state: a bit each, the first the lowest."""

LISTS: Final = ("replicas", "isr", "adding_replicas", "removing_replicas", "elr", "last_known_elr")
"""The lists of a partition's row that a state has, behind the leader; the scripts know their places."""

ABSENT: Final = "null"


def states_after(changes: PartitionChanges) -> pa.DictionaryArray:
    """The state of each partition after its change, as JSON.

    It is `null` for a partition that is gone, else a list: the leader, -1 for none, then LISTS, and at the end the
    sum of the bits of FLAGS.
    """
    some, numbers = distinct_changes(changes, np.arange(len(changes)))
    texts = _texts(changes.take(some)).dictionary_encode()
    indices = texts.indices.to_numpy()[numbers]
    gone = np.flatnonzero(changes.flags & HAS == 0)
    indices[gone] = len(texts.dictionary)
    dictionary = pa.concat_arrays([texts.dictionary, pa.array([ABSENT])])
    return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), dictionary)


def _texts(changes: PartitionChanges) -> pa.Array:
    columns = event_columns(changes, changes.after)
    flags = np.zeros(len(changes), np.int32)
    no_min_isr: Any = np.zeros(len(changes), np.int32)
    for bit, name in enumerate(FLAGS):
        flags |= CONDITIONS[name](columns, no_min_isr).astype(np.int32) << bit
    lists = changes.lists(changes.after)
    texts = (BrokerLists(*lists.flat(name)).texts() for name in LISTS)
    leader, met = (pa.array(numbers).cast(pa.string()) for numbers in (columns.leader, flags))
    inner = pc.binary_join_element_wise(leader, *texts, met, ",")
    return pc.binary_join_element_wise("[", inner, "]", "")
