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
    """The place of the archive for this Java and the installed Spark: in the folder of links, which ends with it."""
    java, home = java_home().resolve(), spark_home()
    release = ""
    with suppress(OSError):
        release = (java / "release").read_text("utf-8", "replace") + str((home / "jars").stat().st_mtime_ns)
    folder = home if home.is_relative_to(user_cache()) else user_cache()
    return folder / f"classes-{_short(f'{java} {home}')}-{_short(release)}.jsa"


def remove_earlier(archive: Path) -> None:
    """Delete the archives of earlier releases of the same Java and Spark: each has 190 MB."""
    same = archive.name.rpartition("-")[0]
    for earlier in archive.parent.glob(f"{same}-*.jsa"):
        if earlier != archive:
            earlier.unlink(missing_ok=True)


def _short(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def archive_options() -> str:
    """The options for a JVM of this machine to start with the archive, as text; empty where there is none."""
    archive = class_archive()
    return f'"-XX:SharedArchiveFile={archive}" {_SILENT}' if archive.is_file() else ""


def making_options(archive: Path) -> str:
    """The options for a JVM to write the archive when it ends."""
    return f'"-XX:ArchiveClassesAtExit={archive}" {_SILENT}'
