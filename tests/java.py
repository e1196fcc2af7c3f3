"""The Java that runs Kafka's own classes and tools."""

from __future__ import annotations

from pathlib import Path

from kraftlake.spark_jobs.java import java_home


def java_command() -> Path:
    """The program `java`. Raises EnvironmentFaultError where there is none that Spark runs on."""
    return java_home() / "bin" / "java"
