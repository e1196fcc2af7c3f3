"""A process of `kraftlake broker`, started, stopped and killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from tests.replica_manager.kafka_follower import PATIENCE, wait_for


@attrs.define(kw_only=True)
class KraftlakeBroker:
    """Broker `broker_id` of the controllers `bootstrap`, stopped or running; its stderr is kept in `log`."""

    broker_id: int
    bootstrap: str
    directories: Sequence[Path]
    port: int
    log: Path
    settings: Mapping[str, str] = attrs.field(factory=dict)
    _process: subprocess.Popen[bytes] | None = attrs.field(init=False, default=None)
    _told_before: int = attrs.field(init=False, default=0)
    """The bytes in `log` of the processes before this one."""

    def start(self) -> None:
        """Start the process without waiting for it."""
        assert self._process is None, "it runs already"
        self._told_before = self.log.stat().st_size if self.log.exists() else 0
        words = [
            "broker", "--json", "--id", self.broker_id, "--bootstrap", self.bootstrap,
            "--log-dirs", ",".join(map(str, self.directories)), "--listener", f"PLAINTEXT://127.0.0.1:{self.port}",
        ]  # fmt: skip
        for name, value in self.settings.items():
            words += ["--override", f"{name}={value}"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "kraftlake", *map(str, words)],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log,
            )  # fmt: skip

    @property
    def is_running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def stop(self) -> None:
        """SIGTERM: it leaves in a controlled way, and ends with 0."""
        assert self._process is not None, "it was started"
        self._process.send_signal(signal.SIGTERM)
        assert self.ended() == 0, self.said[-3000:]

    def ended(self) -> int:
        """The exit code, once it has ended."""
        assert self._process is not None, "it was started"
        code = self._process.wait(PATIENCE)
        self._process = None
        return code

    def kill(self) -> None:
        """kill -9; nothing where it does not run."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    @property
    def said(self) -> str:
        """What this process has written to stderr."""
        with self.log.open("rb") as log:
            log.seek(self._told_before)
            return log.read().decode(errors="replace")

    def events(self, name: str) -> list[dict[str, Any]]:
        """What this process has logged under a name."""
        lines = [line for line in self.said.splitlines() if line.startswith("{") and line.endswith("}")]
        return [told for told in map(json.loads, lines) if told["event"] == name]

    def await_event(self, name: str) -> dict[str, Any]:
        """The first event of a name, once it is there."""

        def found() -> list[dict[str, Any]]:
            assert self.is_running, self.said[-3000:]
            return self.events(name)

        told: dict[str, Any] = wait_for(found, f"broker {self.broker_id} logs {name}")[0]
        return told

    def check_sound(self) -> None:
        """No process of it has met what it does not expect."""
        for line in self.log.read_text("utf-8", errors="replace").splitlines():
            assert "Traceback" not in line, line
            assert '"event": "fault"' not in line, line
