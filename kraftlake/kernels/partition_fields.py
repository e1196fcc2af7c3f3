"""The places of the fields of partition records in a row, as compiled code reads and writes them.

A list has its number among those of a row, the leader the number LEADER_FIELD, the recovery state RECOVERY_FIELD. Each
constant is of hexadecimal digits, the first of them last. `tests/test_record_types.py` compares them with what
`records.metadata_records` declares.
"""

from __future__ import annotations

LEADER_FIELD, RECOVERY_FIELD, NO_FIELD = 7, 8, 15

LISTS_IN_ORDER = 0x3410
"""The lists of a PartitionRecord that have no tag, but for the directories, in the order of its bytes."""
ORDERED = 4
PARTITION_TAGS, CHANGE_TAGS = 0xFFFFFFFFFFFFF658, 0xFFFFFFF265834071
"""The field of each tag, of a PartitionRecord and of a PartitionChangeRecord."""
PARTITION_LAST_TAG, TAGS = 2, 16
FIRST_VERSIONS = 0xF000000002200100
"""The version of both records from which on there is a field; NO_FIELD is in none."""
