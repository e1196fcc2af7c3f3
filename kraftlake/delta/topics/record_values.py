"""Record objects of topics as the values that the object codec makes of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kraftlake.records.serde import encode_value
from kraftlake.runtime.errors import UnwritableMetadataError


def values_of(records: Iterable[Any]) -> tuple[list[bytes], UnwritableMetadataError | None]:
    """The values of the records in front of the first one that Kafka could not write, and its error."""
    values: list[bytes] = []
    try:
        values.extend(encode_value(record, record.VERSIONS.high) for record in records)
    except UnwritableMetadataError as error:
        return values, error
    return values, None
