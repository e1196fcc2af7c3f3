"""The decompressed records of a batch."""

from __future__ import annotations

from typing import Final

from kraftlake.records.batch_header import COMPRESSIONS

LARGEST_RECORDS: Final = 128 * 1024 * 1024
"""The maximum decompressed size of one batch. A compressed batch of a hundred kilobytes may hold gigabytes, and a
broker reads one batch at a time in each request thread: eight batches of this size still fit into its memory."""


def unpacked_records(records: bytes, codec: str) -> memoryview:
    """Return the decompressed records. Raises CorruptDataError for data of another codec, and for too large records."""
    assert codec != COMPRESSIONS[0]
    from kraftlake.records.compression import decompressed  # cramjam is imported when it is needed

    return decompressed(codec, records, LARGEST_RECORDS)
