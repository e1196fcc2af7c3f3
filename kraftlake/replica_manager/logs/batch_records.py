"""The records of a batch as they were before they were compressed."""

from __future__ import annotations

from typing import Final

from kraftlake.records.batch_header import COMPRESSIONS

LARGEST_RECORDS: Final = 128 * 1024 * 1024
"""The decompressed bytes of one batch. A compressed batch of a hundred kilobytes may hold gigabytes, and a broker reads
as many batches at a time as it has threads for requests: eight of this size still fit into its memory."""


def unpacked_records(records: bytes, codec: str) -> memoryview:
    """The decompressed records. Raises CorruptDataError where they are not of that codec, or too large."""
    assert codec != COMPRESSIONS[0]
    from kraftlake.records.compression import decompressed  # cramjam is imported when it is needed

    return decompressed(codec, records, LARGEST_RECORDS)
