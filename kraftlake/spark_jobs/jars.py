"""The jars that Spark needs besides its own: resolved once by Spark's resolver (Ivy), then kept in the user's cache.

Later runs only compare the folder with its list, without a resolver or the network. Processes that need jars at the
same time resolve one after another, each into its own Ivy cache that is deleted afterwards: `~/.ivy2` and `~/.m2`,
which other programs write, can't damage the kept jars, and an interrupted resolution leaves nothing.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Final

from kraftlake.runtime.errors import EnvironmentFaultError
from kraftlake.runtime.user_cache import user_cache
from kraftlake.spark_jobs.java import QUICK_COMPILER, java_home
from kraftlake.spark_jobs.spark_home import spark_home

_LIST: Final = "jars.json"
_STAGING: Final = ".filling-"
_TRIES: Final = 2
_AT_MOST: Final = 900
"""The seconds that a resolution takes at most: the first download over a slow line takes minutes."""


def spark_jars(extra_packages: Sequence[str] = ()) -> tuple[Path, ...]:
    """Delta Lake's jars for the installed Spark, and those of `extra_packages` (Maven's `group:name:version`).

    Jars that Spark ships are left out. Raises EnvironmentFaultError when they can't be resolved.
    """
    return kept_jars(
        _folder_name(extra_packages),
        lambda scratch: _not_in_spark(_resolve_delta(extra_packages, scratch)),
    )


def jars_are_cached(extra_packages: Sequence[str] = ()) -> bool:
    """Whether `spark_jars` returns at once, without running the resolver."""
    return _listed_jars(user_cache() / "jars" / _folder_name(extra_packages)) is not None


def kept_jars(name: str, resolve: Callable[[Path], Iterable[Path]]) -> tuple[Path, ...]:
    """The jars in the folder `name` of the cache.

    If they are missing, `resolve` finds them, with a folder for its files that is deleted afterwards; one process at a
    time does so, and the others wait for it. Raises EnvironmentFaultError if the cache can't be written.
    """
    place = user_cache() / "jars"
    folder = place / name
    jars = _listed_jars(folder)
    try:
        if jars is None:
            place.mkdir(mode=0o700, exist_ok=True)
            with (place / ".lock").open("ab") as lock:  # which ends with the process
                fcntl.flock(lock, fcntl.LOCK_EX)
                jars = _listed_jars(folder)  # another process may have resolved them meanwhile
                if jars is None:
                    _fill(folder, resolve)
                    jars = _listed_jars(folder)
    except OSError as fault:
        raise EnvironmentFaultError(f"the jars can't be kept in {place}: {fault.strerror or fault}") from fault
    if jars is None:
        raise EnvironmentFaultError(f"{folder} does not hold the jars that were just copied there: is the disk full?")
    return jars


def _folder_name(extra_packages: Sequence[str]) -> str:
    name = f"spark-{version('pyspark')}-delta-{version('delta-spark')}"
    if not extra_packages:
        return name
    return f"{name}-{sha256(chr(10).join(sorted(extra_packages)).encode()).hexdigest()[:16]}"


def _listed_jars(folder: Path) -> tuple[Path, ...] | None:
    """The jars of a filled folder; None if the folder is missing or differs from its list."""
    try:
        listed: dict[str, int] = json.loads((folder / _LIST).read_text("utf-8"))
        if any((folder / name).stat().st_size != size for name, size in listed.items()):
            return None
    except (OSError, ValueError, AttributeError, TypeError, RecursionError):
        return None
    return tuple(folder / name for name in sorted(listed))


def _fill(folder: Path, resolve: Callable[[Path], Iterable[Path]]) -> None:
    """Resolve, copy next to `folder` and rename: readers without the lock see the whole folder or none."""
    for left_by_a_killed_process in folder.parent.glob(f"{_STAGING}*"):
        shutil.rmtree(left_by_a_killed_process, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=_STAGING, ignore_cleanup_errors=True) as staging:
        scratch, made = Path(staging) / "resolving", Path(staging) / "made"
        scratch.mkdir()
        made.mkdir(mode=0o700)
        jars = [shutil.copyfile(jar, made / jar.name) for jar in resolve(scratch)]
        (made / _LIST).write_text(json.dumps({jar.name: jar.stat().st_size for jar in jars}, indent=1), "utf-8")
        if folder.exists():  # a damaged one, which a rename can't replace
            shutil.rmtree(folder)
        made.rename(folder)


def resolve_jars(packages: Sequence[str], scratch: Path, excluded: Sequence[str] = ()) -> list[Path]:
    """The jars of Maven's `packages` and their dependencies, except `excluded` (`group:name`), below `scratch`.

    Spark's resolver finds them; an interrupted resolution is repeated. Raises EnvironmentFaultError, which names the
    artifact that is not available.
    """
    output = ""
    for number in range(_TRIES):
        folder = scratch / f"try-{number}"
        folder.mkdir()
        resolved, output = _run_resolver(folder, packages, excluded)
        if resolved:
            return [*(folder / "jars").glob("*.jar")]
    raise EnvironmentFaultError(
        f"Spark's resolver can't get {_missing(output) or ', '.join(packages)} ({_reason(output)}): "
        "the first run needs Maven Central or a mirror of it (set DEFAULT_ARTIFACT_REPOSITORY to its URL)"
    )


def _run_resolver(folder: Path, packages: Sequence[str], excluded: Sequence[str]) -> tuple[bool, str]:
    """Have spark-submit resolve packages for a program that does nothing: whether it did, and its output."""
    program = folder / "nothing.py"
    program.touch()
    # Below user.home are the local Maven repository, which may have a POM without its jar, and Ivy's usual caches.
    options = f'{QUICK_COMPILER} {os.environ.get("SPARK_SUBMIT_OPTS", "")} "-Duser.home={folder}"'
    ours = {"JAVA_HOME": str(java_home()), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_SUBMIT_OPTS": options}
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_")} | ours
    settings = {
        "master": "local",
        "jars.packages": ",".join(packages),
        "jars.excludes": ",".join(excluded),
        "jars.ivy": str(folder),
        "pyspark.driver.python": sys.executable,
    }
    words = [word for name, value in settings.items() if value for word in ("--conf", f"spark.{name}={value}")]
    command = [str(spark_home() / "bin" / "spark-submit"), *words, str(program)]
    try:
        # S603: Spark's own program
        done = subprocess.run(  # noqa: S603
            command, env=environment, capture_output=True, text=True, errors="replace", timeout=_AT_MOST, check=False
        )
    except subprocess.TimeoutExpired as fault:
        raise EnvironmentFaultError(
            f"Spark's resolver did not get {', '.join(packages)} within {_AT_MOST} s: is Maven Central reachable?"
        ) from fault
    return done.returncode == 0, done.stdout + done.stderr


def _missing(output: str) -> str:
    """The artifacts that Ivy could not get, as Maven names them: from `group#name;version!name.jar`."""
    found = re.findall(r"(?:unresolved dependency|download failed): ([^\s#]+)#([^\s;]+);([^\s!:,\]]+)", output)
    return ", ".join(dict.fromkeys(":".join(parts) for parts in found))


def _reason(output: str) -> str:
    """The most informative line that the resolver printed."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    for pattern in (
        r"SERVER ERROR|java\.net\.\w+|javax\.net\.\w+",
        r"unresolved dependency|not found|failed",
        r"Exception|Error",
    ):
        for line in lines:
            if re.search(pattern, line):
                return line.lstrip(": ")[:300]
    return (lines or ["it printed nothing"])[0][:300]


def _with_delta(extra_packages: Sequence[str]) -> list[str]:
    """The packages with Delta's artifact for this Spark, which Delta's own function knows."""
    from delta import configure_spark_with_delta_pip
    from pyspark.sql import SparkSession

    builder = configure_spark_with_delta_pip(SparkSession.builder, extra_packages=list(extra_packages))
    return str(builder._options["spark.jars.packages"]).split(",")


def _resolve_delta(extra_packages: Sequence[str], scratch: Path) -> list[Path]:
    """Resolve Delta's jars and those of `extra_packages`.

    A delta-spark of PyPI may lack jars for a release of Spark. The error then names the newest with the same minor
    version that has them.
    """
    packages = _with_delta(extra_packages)
    try:
        return resolve_jars(packages, scratch)
    except EnvironmentFaultError as fault:
        if packages[0] not in str(fault):
            raise
        artifact, _, installed = packages[0].rpartition(":")
        line = installed.rpartition(".")[0]
        others = scratch / "others"
        others.mkdir()
        try:
            found = resolve_jars([f"{artifact}:{line}.+"], others)
        except EnvironmentFaultError:
            raise fault from None
        name = f"{artifact.replace(':', '_')}-"
        newest = next(jar.stem.removeprefix(name) for jar in found if jar.name.startswith(name))
        raise EnvironmentFaultError(
            f"delta-spark {installed} has no jars for Spark {version('pyspark')} ({packages[0]} is not found): install "
            f"delta-spark {newest}, the newest of {line} that has them"
        ) from fault


def _not_in_spark(jars: Iterable[Path]) -> list[Path]:
    """The jars without libraries that Spark ships: two versions of a library on the class path break at random."""
    import pyspark

    shipped = {_artifact(jar.name) for jar in (Path(pyspark.__file__).parent / "jars").glob("*.jar")}
    return [jar for jar in jars if _artifact(jar.name.split("_", 1)[-1]) not in shipped]


def _artifact(file_name: str) -> str:
    """`delta-storage` for `delta-storage-4.4.0.jar`."""
    return re.sub(r"-\d[\w.+-]*\.jar$", "", file_name)
