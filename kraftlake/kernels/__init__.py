"""Compiled loops over bytes and numbers, for bulk work: records found in batches, topic records replayed on rows.

One extension module, `kraftlake.kernels.compiled`, is made of this room's files when kraftlake is built
(`build_backend/`); its functions take buffers and release the GIL. Python imports that module, and the files of
constants and named tuples; the others are the source.
"""

from __future__ import annotations

from kraftlake.runtime import __version__
from kraftlake.runtime.errors import EnvironmentFaultError

__all__: list[str] = []

_REMEDY = "install it again, by `pip install --force-reinstall` and the wheel or folder that it came from"

try:
    from kraftlake.kernels import compiled
except ImportError as fault:
    from zipimport import zipimporter

    loader = __spec__.loader
    if isinstance(loader, zipimporter):  # as of a wheel that Spark got by --py-files
        raise EnvironmentFaultError(
            f"kraftlake's compiled code can't be loaded from a zip ({loader.archive}): install the wheel on each "
            "machine of the cluster, or send a packed environment by Spark's --archives."
        ) from fault
    raise EnvironmentFaultError(f"kraftlake's compiled code can't be loaded ({fault}): {_REMEDY}.") from fault
if __version__ != compiled.KRAFTLAKE_VERSION:
    raise EnvironmentFaultError(
        f"kraftlake is {__version__}, its compiled code {compiled.KRAFTLAKE_VERSION}: {_REMEDY}."
    )
