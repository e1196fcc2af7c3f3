"""`kraftlake broker` and `kraftlake controller` as processes, and what they tell."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from kraftlake.server import NodeKind, NodePlan
from tests.ports import free_ports
from tests.replica_manager.kafka_follower import PATIENCE, wait_for


@attrs.define(kw_only=True)
class NodeProcess:
    """A node that can be killed and started again; `folder` keeps what it has told in all its lives."""

    id: int
    folder: Path
    settings: Mapping[str, str] = attrs.field(factory=dict)
    port: int = attrs.field(factory=lambda: free_ports(1)[0])
    _process: subprocess.Popen[bytes] | None = attrs.field(init=False, default=None)
    _log_start: int = attrs.field(init=False, default=0)

    @property
    def arguments(self) -> list[str]:
        """Those of `kraftlake`."""
        raise NotImplementedError

    @property
    def address(self) -> str:
        """HOST:PORT of its listener."""
        return f"127.0.0.1:{self.port}"

    @property
    def log_file(self) -> Path:
        """What it has told."""
        return self.folder / "log.jsonl"

    @property
    def pid(self) -> int:
        """The process id, while it runs."""
        assert self._process is not None, "it was started"
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start a process."""
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "kraftlake", *self.arguments]
        with self.log_file.open("ab") as log:
            self._log_start = log.tell()
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def events(self, name: str) -> list[dict[str, Any]]:
        """The events of that name in this life."""
        with self.log_file.open("rb") as log:
            log.seek(self._log_start)
            lines = [line for line in log.read().decode().splitlines() if line.startswith("{") and line.endswith("}")]
        return [event for event in map(json.loads, lines) if event["event"] == name]

    def await_event(self, name: str, times: int = 1) -> dict[str, Any]:
        """The event of that name in this life, the `times`th."""

        def told() -> list[dict[str, Any]]:
            self.check_alive()
            return self.events(name)[times - 1 :]

        found: list[dict[str, Any]] = wait_for(told, f"node {self.id} tells {name}")
        return found[0]

    def check_alive(self) -> None:
        """It runs, or was ended by the test."""
        assert self._process is None or self.is_running, f"node {self.id} has ended: {self.log_file.read_text()[-3000:]}"

    def check_sound(self) -> None:
        """Nothing that it does not expect has happened in any of its lives."""
        for line in self.log_file.read_text().splitlines():
            assert "Traceback" not in line, line
            assert '"event": "fault"' not in line, line
            assert "request_failed" not in line, line

    def signal(self, number: int) -> None:
        """Send it a signal."""
        assert self._process is not None, "it was started"
        self._process.send_signal(number)

    def wait(self) -> int:
        """The exit code, when it has ended."""
        process, self._process = self._process, None
        assert process is not None, "it was started"
        return process.wait(PATIENCE)

    def stop(self) -> int:
        """SIGTERM; returns its exit code."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """kill -9; nothing where it does not run."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()


@attrs.define(kw_only=True)
class LakeNode(NodeProcess):
    """A broker or a controller of a lake."""

    kind: NodeKind
    lake: Path

    @property
    def arguments(self) -> list[str]:
        """As those of a node of `kraftlake cluster up`."""
        return NodePlan(
            kind=self.kind, id=self.id, lake=str(self.lake), port=self.port, folder=self.folder, settings=self.settings
        ).arguments
