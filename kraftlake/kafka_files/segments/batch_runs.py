"""The batches of a file many at once, for bulk replay. Imports numpy and numba where it is used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kraftlake.kafka_files.segments.batch_header import size_said
from kraftlake.kafka_files.segments.batch_walk import READ_CHUNK
from kraftlake.kafka_files.stored_file import StoredFile, Window
from kraftlake.records.batch import RecordBatch

if TYPE_CHECKING:
    from kraftlake.kafka_files.segments.segment import LogPosition
    from kraftlake.records.batch_values import BatchValues


def stretches(file: StoredFile, start: int, end: int, at: LogPosition) -> Iterator[BatchValues | RecordBatch]:
    """The batches in the bytes [start, end) of a file, and move `at` behind what was passed.

    It ends without a word in front of the first byte that is not as it should be: reading batch by batch says what is
    wrong there.
    """
    from kraftlake.records.batch_values import BatchValues, read_values

    with Window(file, READ_CHUNK) as window:
        wanted = READ_CHUNK
        while start < end:
            data = window.at(start, min(wanted, end - start))
            before = start
            for part in read_values(data, file=file.name, position=start):
                if at.fault(part.base_offset, part.epoch) is not None:
                    return
                at.pass_by(part.last_offset, part.last_epoch if isinstance(part, BatchValues) else part.epoch)
                start += part.size_in_bytes
                yield part
            if start > before:
                wanted = READ_CHUNK
                continue
            said = size_said(data)
            if said is None or said <= len(data) or start + said > end:
                return
            wanted = said
