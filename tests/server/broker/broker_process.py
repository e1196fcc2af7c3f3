"""`kraftlake broker` as a process beside real nodes, and what it logs."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs

import kraftlake
from kraftlake.delta import TopicPartition
from kraftlake.image import MetadataImage, PartitionRegistration
from tests.ports import free_ports
from tests.replica_manager.kafka_follower import PATIENCE, wait_for


def image_of(controller: str) -> MetadataImage:
    """The cluster, by its quorum."""
    return kraftlake.open(controller).image()


def partition_of(controller: str, name: TopicPartition) -> PartitionRegistration:
    """A partition, by the quorum."""
    topic = image_of(controller).topics.get_topic(name.topic)
    assert topic is not None, name
    return topic.partitions[name.partition]


@attrs.define(kw_only=True)
class BrokerProcess:
    """One broker; `folder` holds its log directories and the log of its stderr."""

    controllers: str
    folder: Path
    broker_id: int = 7
    directories: tuple[str, ...] = ("d1", "d2")
    settings: dict[str, str] = attrs.field(factory=dict)
    listener: str = "PLAINTEXT"
    options: tuple[str, ...] = ()
    port: int = attrs.field(factory=lambda: free_ports(1)[0])
    _process: subprocess.Popen[bytes] | None = attrs.field(init=False, default=None)
    _log_start: int = attrs.field(init=False, default=0)

    @property
    def log_file(self) -> Path:
        """What it has said, over all its lives."""
        return self.folder / "broker.jsonl"

    def start(self) -> None:
        """Start a process."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.log_file.touch()
        self._log_start = self.log_file.stat().st_size
        command = [sys.executable, "-m", "kraftlake", "broker", "--json", "--id", str(self.broker_id)]
        command += [
            "--bootstrap",
            self.controllers,
            "--listener",
            f"{self.listener}://127.0.0.1:{self.port}",
            *self.options,
        ]
        command += ["--log-dirs", ",".join(str(self.folder / name) for name in self.directories)]
        command += [word for item in self.settings.items() for word in ("--override", "=".join(item))]
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    @property
    def paths(self) -> list[Path]:
        """Its log directories."""
        return [self.folder / directory for directory in self.directories]

    @property
    def pid(self) -> int:
        """The process id, while it runs."""
        assert self._process is not None
        return self._process.pid

    def events(self, name: str) -> list[dict[str, Any]]:
        """The events of that name in this life."""
        with self.log_file.open("rb") as log:
            log.seek(self._log_start)
            lines = [line for line in log.read().decode().splitlines() if line.startswith("{")]
        return [event for event in map(json.loads, lines) if event["event"] == name]

    def await_event(self, name: str) -> None:
        """Wait until it has logged an event of that name in this life."""

        def is_told() -> bool:
            self.check_alive()
            return bool(self.events(name))

        wait_for(is_told, f"broker {self.broker_id} logs {name}")

    def await_running(self) -> None:
        """Wait until it is unfenced."""
        wait_for(self._is_running, f"broker {self.broker_id} runs")

    def check_alive(self) -> None:
        """It has not ended by itself."""
        assert self._process is not None
        assert self._process.poll() is None, self.log_file.read_text()[-3000:]

    def _is_running(self) -> bool:
        self.check_alive()
        return any(event["state"] == "RUNNING" for event in self.events("broker_state_changed"))

    def stop(self) -> int:
        """SIGTERM; returns its exit code."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def signal(self, number: int) -> None:
        """Send it a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def wait(self) -> int:
        """The exit code, when it has ended by itself."""
        process, self._process = self._process, None
        assert process is not None
        return process.wait(PATIENCE)

    def kill(self) -> None:
        """kill -9; nothing where it does not run."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def check_sound(self) -> None:
        """Nothing that it does not expect has happened in any of its lives."""
        for line in self.log_file.read_text().splitlines():
            assert "Traceback" not in line, line
            assert '"event": "fault"' not in line, line

    def log_of(self, name: TopicPartition) -> bytes:
        """The bytes of a replica's segments, in order."""
        folders = [directory / str(name) for directory in self.paths]
        return b"".join(segments(folder) for folder in folders if folder.is_dir())


def segments(folder: Path) -> bytes:
    """The bytes of all segments in a partition's folder, in order."""
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))
