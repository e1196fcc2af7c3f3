"""Marks of metadata transactions in parts of a log that hold many records each. Imports numpy."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from kraftlake.records.metadata_records import AbortTransactionRecord, BeginTransactionRecord

BEGIN: Final = BeginTransactionRecord.API_KEY
"""The api key of the first kind of marks; those of the others follow."""


def marks_among(keys: Any) -> Any:
    """The places (int64) of the marks of metadata transactions among the api keys of records."""
    return np.flatnonzero((keys >= BEGIN) & (keys <= AbortTransactionRecord.API_KEY))


def open_around(marks: Any, in_transaction: bool) -> Any:
    """How many transactions (int64[n + 1]), 0 or 1, are open in front of n marks and behind the last.

    `marks` are the marks' api keys; `in_transaction` says whether one is open in front of the first.
    """
    return int(in_transaction) + np.append(0, np.cumsum(np.where(marks == BEGIN, 1, -1)))
