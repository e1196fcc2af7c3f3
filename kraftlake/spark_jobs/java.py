"""Finds the Java that Spark runs on; the error without one says what to install."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import attrs

from kraftlake.runtime.errors import EnvironmentFaultError

OLDEST_JAVA = 17
"""Spark 4 starts on Java 17 and later."""

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


@attrs.frozen(kw_only=True)
class Java:
    """One installed Java: its home (the folder above `bin/java`) and its feature release (17, 21, …)."""

    home: Path
    feature: int

    @property
    def executable(self) -> Path:
        """The `java` command itself."""
        return self.home / "bin" / "java"


def java_home() -> Path:
    """The home of a Java that Spark starts on: JAVA_HOME, then the PATH's, then the usual places.

    Raises EnvironmentFaultError, in one sentence that says what to install, when there is none or all are too old.
    """
    return find_java().home


def find_java() -> Java:
    """The first usable Java, in the order of `java_home`. Raises EnvironmentFaultError like it."""
    unusable: list[str] = []
    for home in _candidate_homes():
        java = _inspect(home)
        if isinstance(java, Java):
            return java
        unusable.append(java)
    found = f"no Java that Spark runs on was found ({'; '.join(unusable)})" if unusable else "no Java was found"
    raise EnvironmentFaultError(f"{found}: {_INSTALL}")


def _candidate_homes() -> Iterator[Path]:
    """Existing Java homes, the best first, each once."""
    seen: set[Path] = set()
    for home in _all_homes():
        resolved = home.resolve()
        if resolved not in seen and (resolved / "bin" / "java").exists():
            seen.add(resolved)
            yield resolved


def _all_homes() -> Iterator[Path]:
    if configured := os.environ.get("JAVA_HOME"):
        yield Path(configured)
    if on_path := shutil.which("java"):
        yield _home_of_command(Path(on_path))
    for pattern in _USUAL_PLACES:
        yield from sorted(Path("/").glob(pattern.lstrip("/")))


def _home_of_command(command: Path) -> Path:
    """The home of a `java` on the PATH: the folder above its `bin`, or for a launcher the home that Java prints."""
    home = command.resolve().parent.parent
    if (home / "release").is_file():
        return home
    found = re.search(r"^\s*java\.home = (.+)$", _ask(command), re.MULTILINE)
    return Path(found.group(1).strip()) if found else home


def _inspect(home: Path) -> Java | str:
    """The Java at `home`, or the reason why Spark can't use it."""
    try:
        release = (home / "release").read_text("utf-8", "replace")
    except OSError:
        release = ""
    version = re.search(r'^JAVA_VERSION="([^"]+)"', release, re.MULTILINE)
    modules = re.search(r'^MODULES="([^"]*)"', release, re.MULTILINE)
    feature = _feature(version.group(1) if version else _printed_version(home / "bin" / "java"))
    if feature is None:
        return f"{home} does not start"
    if feature < OLDEST_JAVA:
        return f"{home} is Java {feature}"
    if modules and _MODULE_SPARK_ASKS_FOR not in modules.group(1).split():
        return f"{home} lacks the module {_MODULE_SPARK_ASKS_FOR}"
    return Java(home=home, feature=feature)


def _printed_version(command: Path) -> str:
    found = re.search(r"^\s*java\.version = (\S+)", _ask(command), re.MULTILINE)
    return found.group(1) if found else ""


def _ask(command: Path) -> str:
    """The output of `java` about its version; empty if it can't be run."""
    try:
        answer = subprocess.run(  # noqa: S603 - the command is the machine's own java
            [str(command), "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stderr


def _feature(version: str) -> int | None:
    """The feature release of `17.0.15`, `21-ea` or `1.8.0_402` (which is 8); None for anything else."""
    numbers = re.match(r"(\d+)(?:\.(\d+))?", version)
    if numbers is None:
        return None
    first = int(numbers.group(1))
    return int(numbers.group(2)) if first == 1 and numbers.group(2) else first
