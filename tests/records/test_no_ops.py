"""No-op records are recognised by their bytes among all other values."""

from __future__ import annotations

import numpy as np

from kraftlake.records.metadata_records import FenceBrokerRecord, NoOpRecord
from kraftlake.records.no_ops import NO_OP_VALUE, are_no_ops
from kraftlake.records.serde import encode_value


def test_the_value_of_a_no_op_is_what_the_codec_writes() -> None:
    assert encode_value(NoOpRecord(), NoOpRecord.VERSIONS.high) == NO_OP_VALUE


def test_values_with_fields_or_of_another_type_or_version_are_no_no_ops() -> None:
    tagged = encode_value(NoOpRecord(unknown_tagged_fields=((7, b"x"),)), 0)
    other = encode_value(FenceBrokerRecord(id=1, epoch=2), 0)
    values = [
        NO_OP_VALUE,
        tagged,
        b"\x01\x14\x01\x00",
        b"\x01\x14\x00\x05",
        b"\x02\x14\x00\x00",
        b"",
        other,
        NO_OP_VALUE,
    ]
    ends = np.cumsum([0, *map(len, values)])
    found = are_no_ops(np.frombuffer(b"".join(values), np.uint8), ends[:-1], ends[1:])
    assert found.tolist() == [True, *[False] * 6, True]
