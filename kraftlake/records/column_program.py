"""The program by which compiled code decodes a record type into columns, generated from the type's declaration.

A column is a field, or the elements of one: see `kraftlake.kernels.columns.column_steps` for the steps. Imports numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from kraftlake.kernels.columns import column_steps as step
from kraftlake.records.codec_source import default_of
from kraftlake.records.schema import FieldSpec, Message, Primitive, Struct, field_specs, memoized
from kraftlake.records.uuid import Uuid

NONE = -1
FRAME = 3  # bytes: frame version, api key and version, each below 128

_NUMBERS: dict[Primitive, int] = {
    Primitive.BOOL: step.INT8,
    Primitive.INT8: step.INT8,
    Primitive.INT16: step.INT16,
    Primitive.UINT16: step.UINT16,
    Primitive.INT32: step.INT32,
    Primitive.INT64: step.INT64,
    Primitive.FLOAT64: step.INT64,
}
_LONGS = (Primitive.INT64, Primitive.FLOAT64)
_TEXTS = (Primitive.STRING, Primitive.BYTES)
_SMALLEST: dict[Primitive, int] = {Primitive.INT32: 4, Primitive.UUID: 16}


@attrs.frozen(kw_only=True)
class Column:
    """A column of a field, of a list's elements, or the fields of a struct.

    `number` counts columns as the compiled code does (a struct has none: -1). `smallest` is the minimum size in bytes
    of an element of the list that contains this column; 0 outside lists, where each record has one element.
    """

    name: str
    spec: FieldSpec
    number: int
    nullable: bool
    smallest: int
    is_list: bool
    children: tuple[Column, ...] = ()


@attrs.frozen(kw_only=True, eq=False)
class ColumnProgram:
    """The program that decodes records of `cls` into `columns`, the requested fields.

    `begins` has the first step for each version; `all_columns` are those with a number, by number.
    """

    cls: type[Message]
    columns: tuple[Column, ...]
    all_columns: tuple[Column, ...]
    steps: Any = attrs.field(repr=False)
    begins: Any = attrs.field(repr=False)


@memoized
def column_program(cls: type[Message], fields: tuple[str, ...]) -> ColumnProgram:
    """Return the program that decodes the named fields of a metadata record type, at any of its versions."""
    numbered: list[Column] = []
    columns = tuple(_column(name, spec, 0, numbered) for name, spec in field_specs(cls) if name in fields)
    assert cls.VERSIONS.high is not None, "a record type has a highest version"
    writer = _Writer()
    begins = []
    for version in range(cls.VERSIONS.high + 1):
        begins.append(len(writer.rows))
        writer.struct(cls, columns, version)
        writer.write_pending(version)
    return ColumnProgram(
        cls=cls,
        columns=columns,
        all_columns=tuple(numbered),
        steps=np.array(writer.rows, np.int64).reshape(-1),
        begins=np.array(begins, np.int64),
    )


def _column(name: str, spec: FieldSpec, smallest: int, numbered: list[Column]) -> Column:
    nullable = spec.nullable is not None
    if spec.array:
        number = len(numbered)
        numbered.append(_placeholder(name, spec))
        element = attrs.evolve(spec, array=False, nullable=None)
        size = _SMALLEST.get(spec.type, 1) if isinstance(spec.type, Primitive) else _smallest(spec.type)
        children: tuple[Column, ...] = (_column("element", element, size, numbered),)
        made = Column(name=name, spec=spec, number=number, nullable=nullable, smallest=smallest, is_list=True,
                      children=children)  # fmt: skip
        numbered[number] = made
        return made
    if not isinstance(spec.type, Primitive):
        children = tuple(_column(n, s, smallest, numbered) for n, s in field_specs(spec.type))
        return Column(name=name, spec=spec, number=NONE, nullable=False, smallest=smallest, is_list=False,
                      children=children)  # fmt: skip
    made = Column(name=name, spec=spec, number=len(numbered), nullable=nullable, smallest=smallest, is_list=False)
    numbered.append(made)
    return made


def _placeholder(name: str, spec: FieldSpec) -> Column:
    return Column(name=name, spec=spec, number=NONE, nullable=False, smallest=0, is_list=True)


@memoized
def _smallest(cls: type[Struct]) -> int:
    """The minimum size of a struct in bytes, over all its versions."""
    size = 1  # the count of its tagged fields
    for _, spec in field_specs(cls):
        if spec.tag is not None or spec.versions.low > 0 or spec.versions.high is not None:
            continue
        if spec.array or spec.type in _TEXTS:
            size += 1
        elif isinstance(spec.type, Primitive):
            size += {Primitive.INT64: 8, Primitive.FLOAT64: 8, Primitive.INT32: 4, Primitive.UUID: 16}.get(spec.type, 1)
    return size


class _Writer:
    """The rows of a program: (step, column, argument, target)."""

    def __init__(self) -> None:
        self.rows: list[list[int]] = []
        self._pending: list[tuple[int, FieldSpec, Column | None]] = []

    def struct(self, cls: type[Struct], columns: Sequence[Column], version: int) -> None:
        """Write the steps that read a struct, of which `columns` are wanted."""
        wanted = {column.name: column for column in columns}
        present = [(name, spec) for name, spec in field_specs(cls) if version in spec.versions]
        if issubclass(cls, Message) and version not in cls.VERSIONS:
            present = []
        for name, spec in field_specs(cls):
            if version not in spec.versions and name in wanted:
                self._default(wanted[name], default_of(cls, name))
        for name, spec in present:
            if spec.tag is None:
                self._value(spec, wanted.get(name), version)
        self._add(step.TAGS)
        tagged = [(spec.tag, name, spec) for name, spec in present if spec.tag is not None]
        for tag, name, spec in sorted(tagged, key=lambda field: field[0]):
            if name not in wanted:
                continue  # skipped as an unknown tag
            row = self._add(step.TAG, argument=tag)
            self._value(spec, wanted[name], version)
            done = self._add(step.TAG_DONE)
            self.rows[row][step.TARGET] = len(self.rows)
            self._default(wanted[name], default_of(cls, name))
            self.rows[done][step.TARGET] = len(self.rows)
        skip = self._add(step.TAGS_DONE, argument=step.NO_TAG)
        self.rows[skip][step.TARGET] = len(self.rows)
        self._add(step.END)

    def write_pending(self, version: int) -> None:
        """Write the steps of elements, after the steps that refer to them."""
        while self._pending:
            row, spec, column = self._pending.pop()
            self.rows[row][step.TARGET] = len(self.rows)
            if isinstance(spec.type, Primitive):
                self._value(spec, column, version)
                self._add(step.END)
            else:
                self.struct(spec.type, () if column is None else column.children, version)

    def _add(self, kind: int, column: Column | None = None, argument: int = 0) -> int:
        self.rows.append([kind, NONE if column is None else column.number, argument, 0])
        return len(self.rows) - 1

    def _value(self, spec: FieldSpec, column: Column | None, version: int) -> None:
        nullable = int(spec.nullable is not None and version in spec.nullable)
        if spec.array:
            element = None if column is None else column.children[0]
            if spec.type is Primitive.INT32 or spec.type is Primitive.UUID:
                kind = step.INT32_LIST if spec.type is Primitive.INT32 else step.UUID_LIST
                row = self._add(kind, column, nullable)
                self.rows[row][step.TARGET] = NONE if element is None else element.number
            else:
                row = self._add(step.LIST, column, nullable)
                self._pending.append((row, attrs.evolve(spec, array=False, nullable=None), element))
        elif not isinstance(spec.type, Primitive):
            self._pending.append((self._add(step.STRUCT), spec, column))
        elif spec.type is Primitive.UUID:
            self._add(step.UUID, column)
        elif spec.type in _TEXTS:
            self._add(step.TEXT, column, nullable)
        else:
            self._add(_NUMBERS[spec.type], column)

    def _default(self, column: Column, value: Any) -> None:
        """Write the steps for the default of a missing field."""
        if column.is_list:
            assert not value, "the default of an array is empty or null"
            self._add(step.LIST_DEFAULT, column, int(value is None))
        elif column.children:
            for child in column.children:
                self._default(child, getattr(value, child.name))
        elif column.spec.type is Primitive.UUID:
            assert value == Uuid.ZERO, "the default of a UUID is zero"
            self._add(step.UUID_DEFAULT, column)
        elif column.spec.type in _TEXTS:
            assert not value, "the default of a text is empty or null"
            self._add(step.TEXT_DEFAULT, column, int(value is None))
        elif column.spec.type in _LONGS:
            bits = int(np.float64(value).view(np.int64)) if column.spec.type is Primitive.FLOAT64 else value
            self._add(step.LONG_DEFAULT, column, bits)
        else:
            self._add(step.NUMBER_DEFAULT, column, int(value))
