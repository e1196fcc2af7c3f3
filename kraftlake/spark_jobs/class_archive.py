"""An archive of the classes that a session's JVM loads, in the user's cache: a JVM maps it instead of reading jars.

`python -m kraftlake.spark_jobs.prepare` makes it. An archive is of one Java and of one installation of Spark. Java
itself checks that, and starts without an archive that is of others or damaged.
"""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from kraftlake.runtime.user_cache import user_cache
from kraftlake.spark_jobs.java import java_home
from kraftlake.spark_jobs.spark_home import spark_home

_SILENT: Final = "-Xlog:cds*=off -Xlog:class+path=off"
"""Options for a Java that leaves an archive aside to say nothing of it."""


def class_archive() -> Path:
    """The place of the archive for this Java and the installed Spark."""
    home, jars = java_home().resolve(), spark_home() / "jars"
    origin = [str(home), str(jars)]
    with suppress(OSError):
        origin.append((home / "release").read_text("utf-8", "replace"))
    with suppress(OSError):
        origin.append(str(jars.stat().st_mtime_ns))
    return user_cache() / "classes" / f"spark-{sha256(chr(10).join(origin).encode()).hexdigest()[:16]}.jsa"


def archive_options() -> str:
    """The options for a JVM of this machine to start with the archive, as text; empty where there is none."""
    archive = class_archive()
    return f'"-XX:SharedArchiveFile={archive}" {_SILENT}' if archive.is_file() else ""


def making_options(archive: Path) -> str:
    """The options for a JVM to write the archive when it ends."""
    return f'"-XX:ArchiveClassesAtExit={archive}" {_SILENT}'
