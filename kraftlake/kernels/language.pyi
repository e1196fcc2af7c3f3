"""The words of `language.py` as mypy takes them: numbers are Python's, and a buffer may be anything."""

from collections.abc import Callable
from typing import Any, TypeVar

Int8 = int
UInt8 = int
Int16 = int
Int32 = int
UInt32 = int
Int64 = int
UInt64 = int
Bool = bool

Bytes = Any
Ints = Any
Longs = Any
Hashes = Any
IntRows = Any
LongRows = Any
Ids = Any
ByteRows = Any

BytesOut = Any
IntsOut = Any
LongsOut = Any
HashesOut = Any
IntRowsOut = Any
LongRowsOut = Any
IdsOut = Any

_Function = TypeVar("_Function", bound=Callable[..., object])

def compiled(function: _Function) -> _Function: ...
def inlined(function: _Function) -> _Function: ...
def allocating(function: _Function) -> _Function: ...
