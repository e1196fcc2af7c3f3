"""The API keys of the record types that compiled code distinguishes.

`records.metadata_records` declares the types; `tests/test_record_types.py` compares these numbers with it.
"""

from __future__ import annotations

TOPIC, PARTITION, CHANGE, REMOVE, NO_OP, CLEAR_ELR = 2, 3, 5, 9, 20, 28
BEGIN_TRANSACTION, END_TRANSACTION, ABORT_TRANSACTION = 23, 24, 25
TYPES = 30
"""A number above every API key."""
