"""The JVM with Kafka's own classes: compiled once, then asked over its stdin."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import pyspark

from tests.interop.jars import kafka_jars
from tests.java import java_command

SOURCE = Path(__file__).with_name("ImageBench.java")


class KafkaSide:
    """`command` runs the program on its own, `serve` keeps one running; a context manager."""

    def __init__(self, heap: str) -> None:
        spark = Path(pyspark.__file__).parent / "jars"
        jars = [*spark.glob("janino-*.jar"), *spark.glob("commons-compiler-*.jar"), *kafka_jars().values()]
        self._folder = tempfile.TemporaryDirectory()
        self._java = [str(java_command()), f"-Xmx{heap}"]
        self._class_path = ":".join([self._folder.name, *map(str, jars)])
        self._served: subprocess.Popen[str] | None = None
        compiler = ["org.codehaus.janino.SimpleCompiler", str(SOURCE), SOURCE.stem]
        self._run([*self._java, "-cp", self._class_path, *compiler, "compile", str(SOURCE), self._folder.name])

    def command(self, *arguments: object) -> list[str]:
        """The command line of one run from class files."""
        return [*self._java, "-cp", self._class_path, SOURCE.stem, *map(str, arguments)]

    def ask_once(self, *arguments: object) -> Any:
        """What one run prints, None for nothing."""
        printed = self._run(self.command(*arguments))
        return json.loads(printed) if printed.strip() else None

    def serve(self, folder: Path) -> None:
        """Starts the JVM that holds the logs of `folder`."""
        self._served = subprocess.Popen(
            self.command("serve", folder),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._answer()

    def ask(self, *words: object) -> dict[str, Any]:
        """One request to the serving JVM."""
        assert self._served is not None
        assert self._served.stdin is not None
        self._served.stdin.write(" ".join(map(str, words)) + "\n")
        self._served.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._served is not None
        assert self._served.stdout is not None
        line = self._served.stdout.readline()
        if not line:
            raise RuntimeError(f"the JVM ended with {self._served.wait()}: it may need a larger --heap")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def stop_serving(self) -> None:
        if self._served is not None and self._served.stdin is not None and self._served.stdout is not None:
            self._served.stdin.close()
            self._served.wait()
            self._served.stdout.close()
            self._served = None

    def __enter__(self) -> KafkaSide:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None) -> None:
        self.stop_serving()
        self._folder.cleanup()

    @staticmethod
    def _run(command: Sequence[str]) -> str:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"Java failed: {done.stderr[-2000:]}")
        return done.stdout
