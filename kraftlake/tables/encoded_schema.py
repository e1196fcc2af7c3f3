"""Schemas with strings as dictionaries: Parquet's writer takes these without looking each string up."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa


def encoded(schema: pa.Schema, but: Collection[str] = ()) -> pa.Schema:
    """A schema with its strings, also in lists, as dictionaries (int32 indices), except the columns `but`.

    Readers of a file see the same rows in either schema.
    """
    text = pa.dictionary(pa.int32(), pa.string())
    kinds = {pa.string(): text, pa.list_(pa.string()): pa.list_(text)}
    return pa.schema(
        [field if field.name in but else field.with_type(kinds.get(field.type, field.type)) for field in schema]
    )
