"""The checksum of record batches and of the lake's own files, by the package `crc32c`."""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec

Checksum = Callable[..., int]


def _compiled_alone() -> Checksum | None:
    """The function from the package's compiled module; None where that does not lie as it did.

    The package's own `__init__` imports importlib.metadata, argparse and more, 25 ms at the start of each process.
    """
    package = find_spec("crc32c")
    if package is None or package.submodule_search_locations is None:
        return None
    spec = PathFinder.find_spec("crc32c._crc32c", package.submodule_search_locations)
    if spec is None or spec.loader is None:
        return None
    try:
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError:
        return None
    found: Checksum | None = getattr(module, "crc32c", None)
    return found


def _of_the_package() -> Checksum:
    from crc32c import crc32c as function

    found: Checksum = function
    return found


crc32c: Checksum = _compiled_alone() or _of_the_package()
"""`crc32c(data, value=0)`: the CRC32C of `data`, going on from `value`."""
