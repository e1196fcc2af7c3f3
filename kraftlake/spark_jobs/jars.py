"""The jars that Spark needs beyond its own: asked of Spark's resolver (Ivy) once, then kept in a folder of the user's.

Later runs only compare the folder with its list: no resolver, no network, none of the lines that it prints.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

from kraftlake.runtime.errors import EnvironmentFaultError
from kraftlake.spark_jobs.java import java_home

_LIST = "jars.json"
_RESOLVING_TAKES_AT_MOST = 900  # seconds; the first download over a slow line takes minutes


def user_cache() -> Path:
    """kraftlake's cache folder of this user, made when missing, for nobody else to read (0700).

    `$KRAFTLAKE_CACHE`, else `kraftlake` under `$XDG_CACHE_HOME`, else `~/.cache/kraftlake`.
    """
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    cache = Path(os.environ.get("KRAFTLAKE_CACHE") or Path(base) / "kraftlake")
    try:
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        cache.chmod(0o700)
    except OSError as fault:
        raise EnvironmentFaultError(
            f"the cache folder {cache} can't be used ({fault.strerror}): set KRAFTLAKE_CACHE to a folder of yours"
        ) from fault
    return cache


def spark_jars(extra_packages: Sequence[str] = ()) -> tuple[Path, ...]:
    """Delta Lake's jars for the installed Spark, and those of `extra_packages` (Maven's `group:name:version`).

    What Spark ships itself is left out. Raises EnvironmentFaultError when they can't be resolved.
    """
    folder = _folder(extra_packages)
    jars = _listed_jars(folder)
    if jars is None:
        _fill(folder, extra_packages)
        jars = _listed_jars(folder)
        if jars is None:
            raise EnvironmentFaultError(
                f"{folder} does not hold the jars that were just copied there: is the disk full?"
            )
    return jars


def jars_are_cached(extra_packages: Sequence[str] = ()) -> bool:
    """Whether `spark_jars` answers at once, without asking the resolver."""
    return _listed_jars(_folder(extra_packages)) is not None


def _folder(extra_packages: Sequence[str]) -> Path:
    cache = user_cache() / "jars"
    cache.mkdir(mode=0o700, exist_ok=True)
    return cache / _folder_name(extra_packages)


def _folder_name(extra_packages: Sequence[str]) -> str:
    name = f"spark-{version('pyspark')}-delta-{version('delta-spark')}"
    if not extra_packages:
        return name
    return f"{name}-{sha256(chr(10).join(sorted(extra_packages)).encode()).hexdigest()[:16]}"


def _listed_jars(folder: Path) -> tuple[Path, ...] | None:
    """The jars of a filled folder; None where the folder is missing or is not what its list says."""
    try:
        listed: dict[str, int] = json.loads((folder / _LIST).read_text("utf-8"))
        if any((folder / name).stat().st_size != size for name, size in listed.items()):
            return None
    except (OSError, ValueError, AttributeError):
        return None
    return tuple(folder / name for name in sorted(listed))


def _fill(folder: Path, extra_packages: Sequence[str]) -> None:
    """Resolves, copies beside `folder` and renames: another process sees all of it or nothing."""
    resolved = _not_in_spark(_resolve(extra_packages))
    staging = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".filling-"))
    try:
        for jar in resolved:
            shutil.copyfile(jar, staging / jar.name)
        sizes = {jar.name: (staging / jar.name).stat().st_size for jar in resolved}
        (staging / _LIST).write_text(json.dumps(sizes, indent=1), "utf-8")
        # A folder can't be renamed over a full one: an unsound one goes first, and one that another process has
        # just finished is as good as ours.
        if folder.exists() and _listed_jars(folder) is None:
            shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            staging.rename(folder)
    except OSError as fault:
        if _listed_jars(folder) is None:
            raise EnvironmentFaultError(f"the jars can't be kept in {folder}: {fault.strerror or fault}") from fault
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _resolve(extra_packages: Sequence[str]) -> list[Path]:
    """Runs Spark's resolver in a process of its own, so that what it prints is kept away."""
    environment = dict(os.environ, JAVA_HOME=str(java_home()), SPARK_LOCAL_IP="127.0.0.1")
    environment.pop("PYSPARK_GATEWAY_PORT", None)
    environment.pop("PYSPARK_SUBMIT_ARGS", None)
    command = [sys.executable, "-m", "kraftlake.spark_jobs.resolve_jars", *extra_packages]
    with tempfile.TemporaryDirectory() as scratch:
        answer = Path(scratch) / "answer.json"
        try:
            done = subprocess.run(  # noqa: S603 - this Python, our own module
                command,
                env=environment | {"KRAFTLAKE_ANSWER": str(answer)},
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_RESOLVING_TAKES_AT_MOST,
                check=False,
            )
            paths = [Path(path) for path in json.loads(answer.read_text("utf-8"))]
        except subprocess.TimeoutExpired as fault:
            raise EnvironmentFaultError(
                f"Spark's resolver did not finish within {_RESOLVING_TAKES_AT_MOST} s: is Maven Central reachable?"
            ) from fault
        except (OSError, ValueError) as fault:
            raise EnvironmentFaultError(
                f"Spark's resolver found no jars for Delta Lake ({_reason(done.stdout + done.stderr)}): "
                "the first run needs Maven Central or a mirror of it (set DEFAULT_ARTIFACT_REPOSITORY to its URL)"
            ) from fault
    return paths


def _reason(said: str) -> str:
    """The line that tells most of what the resolver printed."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    telling = [line for line in lines if re.search(r"unresolved dependency|not found:|Exception|Error", line)]
    return (telling or lines or ["it said nothing"])[0].lstrip(": ")[:300]


def _not_in_spark(jars: Iterable[Path]) -> list[Path]:
    """Leaves out what Spark ships in another version: two versions of one library on a class path make odd faults."""
    import pyspark

    shipped = {_artifact(jar.name) for jar in (Path(pyspark.__file__).parent / "jars").glob("*.jar")}
    return [jar for jar in jars if _artifact(jar.name.split("_", 1)[-1]) not in shipped]


def _artifact(file_name: str) -> str:
    """`delta-storage` for `delta-storage-4.4.0.jar`."""
    return re.sub(r"-\d[\w.+-]*\.jar$", "", file_name)
