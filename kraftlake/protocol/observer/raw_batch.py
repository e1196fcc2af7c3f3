"""Record batches as received over the network: their bytes, and the fields of their headers."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from kraftlake.records.batch_header import batch_headers, parse_header
from kraftlake.runtime.errors import CorruptDataError


@attrs.frozen(kw_only=True)
class RawBatch:
    """A whole record batch with a correct CRC; `data` are its bytes as the leader stores them."""

    base_offset: int
    last_offset: int
    epoch: int
    timestamp: int
    data: bytes = attrs.field(repr=False)


def split_batches(data: bytes) -> Iterator[RawBatch]:
    """Return the whole batches of a Fetch answer; the start of a truncated last batch is dropped.

    Raises CorruptDataError for bytes that are not batches.
    """
    view = memoryview(data)
    end = 0
    for start, header in batch_headers(view):
        end = start + header.size
        if header.base_offset < 0 or not header.crc_is_good(view[start:end]):
            raise CorruptDataError(f"the batch at offset {header.base_offset} is damaged: its CRC is wrong")
        yield RawBatch(
            base_offset=header.base_offset, last_offset=header.last_offset, epoch=header.epoch,
            timestamp=header.max_timestamp, data=bytes(view[start:end]),
        )  # fmt: skip
    rest = parse_header(view, end)
    if rest is not None and not rest.is_possible:
        raise CorruptDataError(
            f"the batch at byte {end} has the length {rest.length} and the offset {rest.base_offset}"
        )
