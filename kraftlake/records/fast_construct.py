"""Fast construction of frozen objects, for the few classes with millions of instances."""

from __future__ import annotations

from typing import Any

from kraftlake.records.schema import memoized


@memoized
def mutable_class(cls: type) -> type[Any]:
    """Return a mutable class with the slots of the frozen attrs class `cls`.

    The caller fills an instance's slots and then sets its `__class__` to `cls`, which Python allows between classes of
    the same layout (so `cls` must not have its own weakref slot). This takes 0.25 µs; the constructor of a frozen attrs
    class takes 1.3.
    """
    own = cls.__dict__.get("__slots__", ())
    names = {"__slots__": own, "__setattr__": object.__setattr__, "__delattr__": object.__delattr__}
    return type(f"_Mutable{cls.__name__}", cls.__bases__, names)
