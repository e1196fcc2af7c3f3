"""Checks the columns of a lake's log against the payloads."""

from __future__ import annotations

from kraftlake.records.batch import gathered
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.replay.verify.findings import Findings
from kraftlake.runtime.errors import KraftlakeError

_RECORDS_AT_ONCE = 50_000


def check_columns(reader: LakeReader, findings: Findings) -> None:
    """Report the first offset of each stretch whose columns (type, api_key, version, …) its payload contradicts."""
    from kraftlake.records.rows import LOG_SCHEMA, to_rows

    try:
        for batches in gathered(reader.batches(reader.start_offset), _RECORDS_AT_ONCE):
            first, last = batches[0].base_offset, batches[-1].last_offset
            stored, made = reader.log.rows(first, last), to_rows(batches)
            for name in LOG_SCHEMA.names:
                if not stored.column(name).equals(made.column(name)):
                    pairs = zip(stored.column(name).to_pylist(), made.column(name).to_pylist(), strict=True)
                    index, (old, new) = next((i, pair) for i, pair in enumerate(pairs) if pair[0] != pair[1])
                    findings.add(f"column {name} says {old}, but the payload {new}.", offset=first + index)
    except KraftlakeError:
        return  # the pass over the batches meets the same and reports it
