"""Kafka 4.4's own image classes as the judge: one JVM a test process, asked over its stdin.

`KafkaImages.java` beside this file does the work, asked through `Answers.java`. They are compiled in memory by Janino,
which Spark ships, so a Java runtime without a compiler is enough.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any

import pyspark

from tests.interop.jars import kafka_jars
from tests.java import java_command

_SOURCE = Path(__file__).with_name("KafkaImages.java")
_ANSWERS = Path(__file__).with_name("Answers.java")
# A JVM of the quick profile lives for seconds, most of which the optimising compiler would take for itself.
_QUICK = () if os.environ.get("KRAFTLAKE_TESTS") == "long" else ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


class KafkaClassesError(Exception):
    """What Kafka's own classes threw, or that their JVM does not start."""


class KafkaClasses:
    """A JVM with Kafka's classes, asked in the language of `source`; `ask` is safe from several threads."""

    def __init__(
        self,
        source: Path = _SOURCE,
        *,
        heap: str = "512m",
        options: Sequence[str] = _QUICK,
    ) -> None:
        spark_jars = Path(pyspark.__file__).parent / "jars"
        compiler = [*spark_jars.glob("janino-*.jar"), *spark_jars.glob("commons-compiler-*.jar")]
        if len(compiler) != 2:
            raise KafkaClassesError(f"{spark_jars} holds no Janino, which compiles {source.name}")
        class_path = ":".join(str(jar) for jar in [*compiler, *kafka_jars().values()])
        self._lock = threading.Lock()
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self._unit = tempfile.NamedTemporaryFile("w", suffix=".java", encoding="utf-8")  # noqa: SIM115 - Janino compiles one file
        self._unit.write(source.read_text("utf-8") + _ANSWERS.read_text("utf-8"))
        self._unit.flush()
        self._jvm = subprocess.Popen(
            [
                str(java_command()),
                f"-Xmx{heap}",
                *options,
                "-cp",
                class_path,
                "org.codehaus.janino.SimpleCompiler",
                self._unit.name,
                source.stem,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
        )

    def ask(self, *fields: object) -> dict[str, Any]:
        """One request, one answer; KafkaClassesError with what Kafka threw."""
        assert self._jvm.stdin is not None
        assert self._jvm.stdout is not None
        with self._lock:
            try:
                self._jvm.stdin.write(("\t".join(str(field) for field in fields) + "\n").encode())
                self._jvm.stdin.flush()
            except BrokenPipeError:
                pass  # it died; its last words follow
            line = self._jvm.stdout.readline()
        if not line:
            self._stderr.seek(0)
            raise KafkaClassesError(f"the JVM of Kafka's classes ended: {self._stderr.read().decode()[-2000:]}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise KafkaClassesError(answer["error"])
        return answer

    def close(self) -> None:
        """Ends the JVM by closing its stdin, and its streams."""
        assert self._jvm.stdin is not None
        assert self._jvm.stdout is not None
        self._jvm.stdin.close()
        self._jvm.wait(timeout=120)
        self._jvm.stdout.close()
        self._stderr.close()
        self._unit.close()


@cache
def kafka_classes() -> KafkaClasses:
    """The one JVM of this process, ended with it."""
    classes = KafkaClasses()
    atexit.register(classes.close)
    return classes


def kafka_image_of_log(segments: Sequence[Path], at: int) -> dict[str, Any]:
    """The image at offset `at` in FORMATS.md's JSON form, secrets shown: Kafka's batch loader, one delta a batch."""
    return kafka_classes().ask("image", at, *sorted(segments))


def kafka_image_of_checkpoint(path: Path, *, end_offset: int, epoch: int) -> dict[str, Any]:
    """The image of a snapshot file, read as a broker reads it, and its `lastContainedLogTimestamp`.

    Kafka finds a snapshot by the name `END-EPOCH.checkpoint`: the file is read as a copy of that name.
    """
    with tempfile.TemporaryDirectory() as folder:
        shutil.copyfile(path, Path(folder) / f"{end_offset:020d}-{epoch:010d}.checkpoint")
        return kafka_classes().ask("snapshot", folder, end_offset, epoch)


def kafka_nodes_of_log(segments: Sequence[Path], at: int) -> dict[str, Any]:
    """Each path of Kafka's metadata shell below `/image` at offset `at`, and what its `cat` prints, secrets shown.

    None for a directory, an empty list for a name that has no node: Kafka's `find` ends with an error there.
    """
    return kafka_classes().ask("nodes", at, *sorted(segments))


def kafka_nodes_of_checkpoint(path: Path, *, end_offset: int, epoch: int) -> dict[str, Any]:
    """The same of a snapshot file, which is at END-EPOCH.checkpoint."""
    return kafka_classes().ask("snapshotNodes", path.parent, end_offset, epoch)


def kafka_local_changes(segments: Sequence[Path], *, broker: int, start: int, end: int) -> dict[str, Any]:
    """`TopicsDelta.localChanges` of one delta over the offsets (start, end], in FORMATS.md's JSON form."""
    return kafka_classes().ask("local", broker, start, end, *sorted(segments))


def kafka_history(segment: Path, *, brokers: Sequence[int], ranges: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """All that Kafka makes of a segment, in one request: `published` and `local`.

    `published` has an entry for each image that its batch loader publishes, one delta a batch: `image` in FORMATS.md's
    form, its `timestamp` and `batchAligned`; `metrics` as the controller counts them; and of the image that one delta
    a record makes: `written`, its records in base64 (null without a metadata.version), `configs` and `scram`.
    `local` has the local changes of one delta for each of `ranges`, and in each for every broker.
    """
    of_ranges = ",".join(f"{start}:{end}" for start, end in ranges)
    return kafka_classes().ask("history", ",".join(map(str, brokers)), of_ranges, segment)


def normal(image: dict[str, Any]) -> dict[str, Any]:
    """An image's JSON with what has no order put in one: quotas by entity, renewers by name."""
    ordered = dict(image)
    ordered["clientQuotas"] = sorted(image["clientQuotas"], key=lambda quota: json.dumps(quota, sort_keys=True))
    ordered["delegationTokens"] = {
        key: token | {"renewers": sorted(token["renewers"])} for key, token in image["delegationTokens"].items()
    }
    return ordered
