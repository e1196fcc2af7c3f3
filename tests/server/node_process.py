"""Nodes as processes that a test kills and starts again, and what they log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kraftlake.server.cluster_up.node_process import NodeProcess
from tests.waiting import PATIENCE, wait_for


class KilledNode(NodeProcess):
    """A process as `kraftlake cluster up` starts it, which may have many lives."""

    @property
    def id(self) -> int:
        """The node's id."""
        return self.plan.id

    @property
    def address(self) -> str:
        """HOST:PORT of its listener."""
        return self.plan.address

    @property
    def port(self) -> int:
        """Where it listens on loopback."""
        return int(self.address.rpartition(":")[2])

    @property
    def folder(self) -> Path:
        """Of what it has logged, and a broker's log directories."""
        return self.plan.folder

    def start(self) -> None:
        """Start a process."""
        self.is_asked_to_end = False
        super().start()

    def events(self, name: str) -> list[dict[str, Any]]:
        """The events of that name in this life."""
        with self.plan.log_file.open("rb") as log:
            log.seek(self._log_start)
            lines = [line for line in log.read().decode().splitlines() if line.startswith("{") and line.endswith("}")]
        return [event for event in map(json.loads, lines) if event["event"] == name]

    def await_event(self, name: str, times: int = 1) -> dict[str, Any]:
        """The event of that name in this life, the `times`th."""

        def logged() -> list[dict[str, Any]]:
            self.check_alive()
            return self.events(name)[times - 1 :]

        found: list[dict[str, Any]] = wait_for(logged, f"{self.plan.name} logs {name}")
        return found[0]

    def check_alive(self) -> None:
        """It has not ended by itself."""
        assert self.is_running or self.is_asked_to_end, (self.ending, self.plan.log_file.read_text()[-3000:])

    def check_sound(self) -> None:
        """Nothing that it does not expect has happened in any of its lives."""
        for line in self.plan.log_file.read_text().splitlines():
            assert "Traceback" not in line, line
            assert '"event": "fault"' not in line, line
            assert "request_failed" not in line, line

    def signal(self, number: int) -> None:
        """Send it a signal."""
        self._signal(number)

    def wait(self) -> int:
        """The exit code, when it has ended."""
        assert self._process is not None, "it was started"
        return self._process.wait(PATIENCE)

    def stop(self) -> int:
        """SIGTERM; returns its exit code."""
        self.ask_to_end()
        return self.wait()
