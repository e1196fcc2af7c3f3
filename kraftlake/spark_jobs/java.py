"""Finds the Java that Spark runs on; the error without one says what to install."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from kraftlake.runtime.errors import EnvironmentFaultError

OLDEST_JAVA = 17
"""Spark 4 starts on Java 17 and later."""

QUICK_COMPILER: Final = "-XX:TieredStopAtLevel=1"
"""The option for a JVM that runs for seconds, to use its quick compiler alone: it halves the CPU time."""

# Spark's launcher asks for this module on the command line; a Java without it does not start at all.
_MODULE_SPARK_ASKS_FOR = "jdk.incubator.vector"

_INSTALL = (
    "install a Java 17 or later runtime (for example `apt-get install openjdk-17-jre-headless`), "
    "or set JAVA_HOME to one"
)

# Where packages put their Javas; each match is a Java home.
_USUAL_PLACES = (
    "/usr/lib/jvm/*",
    "/usr/local/openjdk*",
    "/opt/java/*",
    "/opt/jdk*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "/opt/homebrew/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
)

# In the file `release` of a Java home; 1.8 is Java 8.
_VERSION = re.compile(r'^JAVA_VERSION="?(?:1\.)?(\d+)', re.MULTILINE)
_MODULES = re.compile(r'^MODULES="([^"]*)"', re.MULTILINE)


def java_home() -> Path:
    """The home (the folder above `bin/java`) of a Java that Spark starts on: JAVA_HOME, the PATH's, the usual places'.

    Raises EnvironmentFaultError, in one sentence that says what to install, when there is none or all are too old.
    """
    unusable: list[str] = []
    for home in dict.fromkeys(home.resolve() for home in _homes()):
        if not (home / "bin" / "java").exists():
            continue
        facts = ""
        with suppress(OSError):
            facts = (home / "release").read_text("utf-8", "replace")
        version, modules = _VERSION.search(facts), _MODULES.search(facts)
        if version is None:
            unusable.append(f"{home} has no file `release` that names its version")
        elif int(version[1]) < OLDEST_JAVA:
            unusable.append(f"{home} is Java {version[1]}")
        elif modules and _MODULE_SPARK_ASKS_FOR not in modules[1].split():
            unusable.append(f"{home} lacks the module {_MODULE_SPARK_ASKS_FOR}")
        else:
            return home
    found = f"no Java that Spark runs on was found ({'; '.join(unusable)})" if unusable else "no Java was found"
    raise EnvironmentFaultError(f"{found}: {_INSTALL}")


def _homes() -> Iterator[Path]:
    """The places of Java homes, the best first."""
    if configured := os.environ.get("JAVA_HOME"):
        yield Path(configured)
    if on_path := shutil.which("java"):
        yield Path(on_path).resolve().parent.parent
    for pattern in _USUAL_PLACES:
        yield from sorted(Path("/").glob(pattern.lstrip("/")))
