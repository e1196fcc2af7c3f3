"""Values as Java prints them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.image.endpoint import VersionRange
from kraftlake.image.nodes import kafka_text
from kraftlake.image.provenance import MetadataProvenance


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"), (-0.0, "-0.0"), (1.0, "1.0"), (12.25, "12.25"), (-3.5, "-3.5"), (1e-3, "0.001"),
        (9.99e-4, "9.99E-4"), (9999999.0, "9999999.0"), (1e7, "1.0E7"), (12345678.9, "1.23456789E7"),
        (-1.5e300, "-1.5E300"), (5e-324, "4.9E-324"), (1e22, "1.0E22"), (1e16, "1.0E16"), (100e6, "1.0E8"),
        (math.inf, "Infinity"), (-math.inf, "-Infinity"), (math.nan, "NaN"),
    ],
)  # fmt: skip
def test_a_double(value: float, text: str) -> None:
    assert kafka_text.double_text(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_is_read_back_as_it_was(value: float) -> None:
    assert float(kafka_text.double_text(value)) == value


@pytest.mark.parametrize(
    ("timestamp", "time"),
    [
        (1795247377784, "2026-11-21T07:49:37.784Z[UTC]"), (1795247377700, "2026-11-21T07:49:37.7Z[UTC]"),
        (1795247377000, "2026-11-21T07:49:37Z[UTC]"), (0, "1970-01-01T00:00:00Z[UTC]"), (-1, "unknown"),
        (2**62, f"{2**62} ms"),
    ],
)  # fmt: skip
def test_the_provenance(timestamp: int, time: str) -> None:
    provenance = MetadataProvenance(offset=7, epoch=2, timestamp=timestamp)
    assert kafka_text.provenance_text(provenance) == f"offset 7, epoch 2, time {time}"


@pytest.mark.parametrize(
    ("levels", "text"), [(VersionRange(0, 3), "0-3"), (VersionRange(2, 2), "2"), (VersionRange(1, 32767), "1+")]
)
def test_levels(levels: VersionRange, text: str) -> None:
    assert kafka_text._levels(levels) == text
