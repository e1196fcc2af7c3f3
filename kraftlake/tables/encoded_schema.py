"""Columns of strings as dictionaries: what a Parquet file has for them, and what its writer takes as it is."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa


def encoded(schema: pa.Schema, but: Collection[str] = ()) -> pa.Schema:
    """A schema with its strings, also in lists, as dictionaries, except some columns: the same rows for all readers."""
    text = pa.dictionary(pa.int32(), pa.string())
    kinds = {pa.string(): text, pa.list_(pa.string()): pa.list_(text)}
    return pa.schema(
        [field if field.name in but else field.with_type(kinds.get(field.type, field.type)) for field in schema]
    )
