"""Kafka 4.4's command-line tools in one JVM, which saves each of them its start."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import attrs

from tests.interop.jars import kafka_jars
from tests.interop.kafka_classes import KafkaClasses
from tests.java import java_command


@attrs.frozen
class Said:
    """What a tool has printed, and the code that it has ended with; -1 where it threw."""

    out: str
    err: str
    code: int


class KafkaTools:
    """Runs tools one after another; whoever asked for it closes it."""

    def __init__(self) -> None:
        self._jvm = KafkaClasses(Path(__file__).with_name("KafkaTools.java"))

    def run(self, tool: str, *words: object, stdin: str = "") -> Said:
        """Call the main of a class."""
        answer = self._jvm.ask("run", tool, json.dumps([str(word) for word in words]), json.dumps(stdin))
        return Said(answer["out"], answer["err"], int(answer["code"]))

    def close(self) -> None:
        """End the JVM."""
        self._jvm.close()


def tool_command(tool: str, *words: object) -> Sequence[str]:
    """The command that runs a tool in a JVM of its own."""
    class_path = ":".join(map(str, kafka_jars().values()))
    options = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
    return [str(java_command()), *options, "-cp", class_path, tool, *map(str, words)]


def run_tool(tool: str, *words: object, stdin: str = "") -> Said:
    """Run a tool in a JVM of its own."""
    command = tool_command(tool, *words)
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=120, check=False)
    return Said(done.stdout, done.stderr, done.returncode)
