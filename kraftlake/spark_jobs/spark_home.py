"""Spark's home folder for sessions of this machine: that of the installed pyspark, whose Python is compiled.

pyspark has its Python twice, as an installed package and as `python/lib/pyspark.zip`, and Spark's Python processes
import the zip. Python keeps no compiled code of a zip's modules: each process that plans a stream compiles pyspark
anew, which takes more CPU time than all that it does. The home folder here has links to all that is in pyspark's, and
in the zip's place a folder with a link to the package.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from kraftlake.runtime.errors import EnvironmentFaultError
from kraftlake.runtime.user_cache import user_cache

_ZIP: Final = Path("python", "lib", "pyspark.zip")


def spark_home() -> Path:
    """The home folder, made in the user's cache if it is not there.

    What SPARK_HOME names if it is set, and pyspark's own folder where that has no zip, or nothing can be written.
    """
    if named := os.environ.get("SPARK_HOME"):
        return Path(named)
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise EnvironmentFaultError("pyspark is not installed: install kraftlake[spark]")
    package = Path(spec.origin).parent
    if not (package / _ZIP).is_file():
        return package
    linked = (*package.iterdir(), *(package / _ZIP).parent.iterdir())
    origin = "\n".join([str(package), *sorted(entry.name for entry in linked)])
    home = user_cache() / f"spark-{sha256(origin.encode()).hexdigest()[:16]}"
    if not home.is_dir():
        try:
            _make(home, package)
        except OSError:
            return package
        _remove_earlier(home, package)
    return home


def _remove_earlier(home: Path, package: Path) -> None:
    """Delete the homes of earlier releases in the same place, and of packages that are gone."""
    for other in home.parent.glob("spark-*"):
        target = other / "__init__.py"
        if other != home and target.is_symlink() and (not target.exists() or target.readlink().parent == package):
            shutil.rmtree(other, ignore_errors=True)


def _make(home: Path, package: Path) -> None:
    """Make a folder of links beside `home` and rename it, so that no process sees a part of it."""
    staging = Path(tempfile.mkdtemp(dir=home.parent, prefix=".spark-"))
    try:
        (staging / _ZIP).mkdir(parents=True)
        (staging / _ZIP / package.name).symlink_to(package)
        for folder in (Path(), *reversed(_ZIP.parents[:-1])):
            for entry in (package / folder).iterdir():
                if not (staging / folder / entry.name).exists():
                    (staging / folder / entry.name).symlink_to(entry)
        with suppress(OSError):  # another process was first
            staging.rename(home)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
