"""Controllers of ours for tests: in threads of this process, or as processes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from kraftlake.controller import BootstrapMetadata, BootstrapSnapshot
from kraftlake.metadata_log import MetadataLog
from kraftlake.metadata_log.append.creation import Contents
from kraftlake.server import ControllerServer, ControllerServerConfig, NodeSettings, parse_listener
from tests.controller.controlled_cluster import CLUSTER_ID
from tests.controller.kafka_rpc import KafkaRpc
from tests.ports import free_ports

PATIENCE = 60.0  # seconds until something is called stuck
QUICK = {"controller.quorum.fetch.timeout.ms": "300", "metadata.max.idle.interval.ms": "100"}
"""A standby claims the log within a second."""


def new_lake(path: Path, cluster_id: str = CLUSTER_ID) -> Path:
    """An empty controlled lake of the newest release."""
    bootstrap = BootstrapSnapshot(metadata=BootstrapMetadata.of(), timestamp=1_700_000_000_000)
    contents = Contents(snapshots=[(bootstrap, bootstrap.batches())])
    MetadataLog.create(path, cluster_id, "controlled", contents=contents, durability="os")
    return path


def await_(holds: Callable[[], Any], what: str) -> Any:
    """Wait until it holds; returns what it returned."""
    deadline = time.monotonic() + PATIENCE
    while not (found := holds()):
        assert time.monotonic() < deadline, f"waited {PATIENCE} s in vain: {what}"
        time.sleep(0.02)
    return found


@attrs.define(kw_only=True)
class ControllerThread:
    """A controller in a thread of this process."""

    server: ControllerServer
    stop: threading.Event
    thread: threading.Thread
    faults: list[BaseException]
    _rpcs: list[KafkaRpc] = attrs.field(init=False, factory=list)

    @property
    def address(self) -> str:
        """HOST:PORT of its listener."""
        return f"127.0.0.1:{self.server.listeners[0].port}"

    @property
    def node(self) -> Any:
        """Its parts."""
        assert self.server.node is not None
        return self.server.node

    def rpc(self) -> KafkaRpc:
        """A new connection, which ends with the controller."""
        self._rpcs.append(KafkaRpc(self.address))
        return self._rpcs[-1]

    def await_active(self) -> None:
        """Wait until it leads, is registered, and its own image says so."""

        def leads() -> bool:
            assert not self.faults, self.faults
            node = self.server.node
            return bool(
                node is not None
                and node.controller.is_active
                and node.view.leader_id == node.node_id
                and node.node_id in node.view.image.cluster.controllers
            )

        await_(leads, "the controller leads")

    def end(self) -> None:
        """Stop it, and wait."""
        self.stop.set()
        self.thread.join(PATIENCE)
        for rpc in self._rpcs:
            rpc.close()
        assert not self.thread.is_alive()


@contextmanager
def started_controller(lake: Path, node_id: int = 100, **settings: str) -> Iterator[ControllerThread]:
    """A controller in a thread, with quick elections; a setting is written with _ in place of the dots."""
    values = {**QUICK, **{name.replace("_", "."): value for name, value in settings.items()}}
    config = ControllerServerConfig(
        lake=str(lake), node_id=node_id, listeners=(parse_listener("CONTROLLER://127.0.0.1:0"),),
        settings=NodeSettings(values=values),
    )  # fmt: skip
    stop, faults = threading.Event(), list[BaseException]()
    server = ControllerServer(config, stop=stop)

    def run() -> None:
        try:
            server.run()
        except BaseException as fault:
            faults.append(fault)

    made = ControllerThread(server=server, stop=stop, thread=threading.Thread(target=run, daemon=True), faults=faults)
    made.thread.start()
    try:
        await_(lambda: server.node is not None or faults, "the controller has started")
        yield made
    finally:
        made.end()


@attrs.define(kw_only=True)
class ControllerProcess:
    """`kraftlake controller` as a process; `folder` keeps what it logs."""

    lake: Path
    folder: Path
    node_id: int = 100
    settings: dict[str, str] = attrs.field(factory=lambda: dict(QUICK))
    port: int = attrs.field(factory=lambda: free_ports(1)[0])
    _process: subprocess.Popen[bytes] | None = attrs.field(init=False, default=None)
    _log_start: int = attrs.field(init=False, default=0)

    @property
    def address(self) -> str:
        """HOST:PORT of its listener."""
        return f"127.0.0.1:{self.port}"

    @property
    def log_file(self) -> Path:
        """What it has said, over all its lives."""
        return self.folder / f"controller-{self.node_id}.jsonl"

    def start(self) -> None:
        """Start a process."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.log_file.touch()
        self._log_start = self.log_file.stat().st_size
        command = [
            sys.executable, "-m", "kraftlake", "controller", "--json", "--lake", str(self.lake),
            "--id", str(self.node_id), "--listener", f"CONTROLLER://{self.address}",
        ]  # fmt: skip
        command += [word for item in self.settings.items() for word in ("--override", "=".join(item))]
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def events(self, *names: str) -> list[dict[str, Any]]:
        """The events of those names in this life."""
        with self.log_file.open("rb") as log:
            log.seek(self._log_start)
            lines = [line for line in log.read().decode().splitlines() if line.startswith("{") and line.endswith("}")]
        return [event for event in map(json.loads, lines) if event["event"] in names]

    def await_event(self, name: str, times: int = 1) -> dict[str, Any]:
        """The event of that name in this life, the `times`th."""

        def told() -> list[dict[str, Any]]:
            assert self.is_running, self.log_file.read_text()[-3000:]
            return self.events(name)[times - 1 :]

        found: list[dict[str, Any]] = await_(told, f"controller {self.node_id} tells {name}")
        return found[0]

    @property
    def is_running(self) -> bool:
        """Whether the process has not ended."""
        return self._process is not None and self._process.poll() is None

    def signal(self, number: int) -> None:
        """Send it a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def wait(self) -> int:
        """The exit code, when it has ended."""
        process, self._process = self._process, None
        assert process is not None
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

    def check_sound(self) -> None:
        """Nothing that it does not expect has happened in any of its lives."""
        for line in self.log_file.read_text().splitlines():
            assert "Traceback" not in line, line
            assert '"event": "fault"' not in line, line
            assert "request_failed" not in line, line
