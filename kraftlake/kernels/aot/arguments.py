"""The arguments of compiled functions as numbers: what they are, and where arrays lie. Imports numpy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np

ARRAY_TYPES: Final = {
    np.dtype(np.uint8): "B",
    np.dtype(np.int32): "i",
    np.dtype(np.int64): "q",
    np.dtype(np.uint64): "Q",
}
"""A letter for each type of element, in the machine's byte order."""


class Flattened:
    """A named tuple of arrays for kernels that are called with the same ones again and again: flattened once.

    The arrays must stay where they are.
    """

    __slots__ = ("numbers", "types", "value")

    def __init__(self, value: tuple[Any, ...]) -> None:
        types: list[str] = []
        self.numbers: list[int] = []
        flatten((value,), types, self.numbers)
        self.types = "".join(types)
        self.value = value


def flatten(arguments: Iterable[Any], types: list[str], numbers: list[int]) -> None:
    """Add the types of `arguments` and their numbers: an int itself; of an array address and shape; a tuple's fields.

    Raises TypeError for what compiled functions don't take. The caller keeps the arrays alive.
    """
    for argument in arguments:
        kind = type(argument)
        if kind is int:
            types.append("n")
            numbers.append(argument)
        elif kind is np.ndarray:
            letter = ARRAY_TYPES.get(argument.dtype)
            if letter is None or not argument.flags.c_contiguous:
                raise TypeError(f"compiled code takes no array of {argument.dtype} with strides {argument.strides}")
            types.append(letter)
            types.append(str(argument.ndim))
            numbers.append(argument.__array_interface__["data"][0])
            numbers.extend(argument.shape)
        elif kind is Flattened:
            types.append(argument.types)
            numbers += argument.numbers
        elif isinstance(argument, tuple):
            types.append(f"{kind.__name__}(")
            flatten(argument, types, numbers)
            types.append(")")
        elif isinstance(argument, np.integer):
            types.append("n")
            numbers.append(int(argument))
        else:
            raise TypeError(f"compiled code takes no {kind.__name__}")
