"""A cluster of a lake as processes: `kraftlake controller` and `kraftlake broker --lake`."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs
from confluent_kafka.admin import AdminClient, NewTopic

import kraftlake
from kraftlake.image import MetadataImage
from kraftlake.runtime import OffsetError
from tests.ports import free_ports
from tests.server.broker.lake_cluster import format_lake

PATIENCE = 60.0
FIRST_CONTROLLER = 101
BROKER = {"broker.heartbeat.interval.ms": "500", "replica.fetch.backoff.ms": "200"}
CONTROLLER = {"broker.session.timeout.ms": "3000", "controller.quorum.fetch.timeout.ms": "1500"}


@attrs.define(kw_only=True)
class NodeProcess:
    """A node; `folder` has what it has told, and a broker's logs."""

    id: int
    lake: Path
    folder: Path
    settings: dict[str, str]
    port: int = attrs.field(factory=lambda: free_ports(1)[0])
    process: subprocess.Popen[bytes] | None = None

    @property
    def is_broker(self) -> bool:
        return self.id < FIRST_CONTROLLER

    @property
    def pid(self) -> int:
        assert self.process is not None, "it was started"
        return self.process.pid

    @property
    def log_file(self) -> Path:
        return self.folder / "log.jsonl"

    def start(self) -> None:
        """Start a process; what it tells is appended to that of its earlier lives."""
        self.folder.mkdir(parents=True, exist_ok=True)
        kind, listener = ("broker", "PLAINTEXT") if self.is_broker else ("controller", "CONTROLLER")
        command = [sys.executable, "-m", "kraftlake", kind, "--json", "--lake", str(self.lake), "--id", str(self.id)]
        command += ["--listener", f"{listener}://127.0.0.1:{self.port}"]
        command += ["--log-dirs", str(self.folder / "logs")] if self.is_broker else []
        for name, value in self.settings.items():
            command += ["--override", f"{name}={value}"]
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def events(self, name: str) -> list[dict[str, Any]]:
        """What it has told under a name, in all its lives."""
        lines = self.log_file.read_text().splitlines()
        return [found for line in lines if line.startswith("{") and (found := json.loads(line)).get("event") == name]

    def check_alive(self) -> None:
        code = None if self.process is None else self.process.poll()
        assert code is None, f"node {self.id} has ended with {code}: {self.log_file.read_text()[-2000:]}"

    def signal(self, number: int) -> None:
        assert self.process is not None, "it was started"
        self.process.send_signal(number)

    def kill(self) -> None:
        """kill -9."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def stop(self) -> int:
        """SIGTERM, and the exit code."""
        assert self.process is not None, "it was started"
        self.signal(signal.SIGTERM)
        try:
            return self.process.wait(PATIENCE)
        finally:
            self.kill()


class LakeProcesses:
    """The nodes by id, from their start to their end as a context manager."""

    def __init__(
        self,
        folder: Path,
        *,
        brokers: int = 3,
        controllers: int = 2,
        broker: Mapping[str, str] | None = None,
        controller: Mapping[str, str] | None = None,
    ) -> None:
        self.lake = folder / "lake"
        folder.mkdir(parents=True, exist_ok=True)
        format_lake(self.lake)
        self.nodes: dict[int, NodeProcess] = {}
        for number in range(controllers):
            self._add(FIRST_CONTROLLER + number, folder, CONTROLLER | dict(controller or {}))
        for number in range(1, brokers + 1):
            self._add(number, folder, BROKER | dict(broker or {}))

    def _add(self, id_: int, folder: Path, settings: dict[str, str]) -> None:
        self.nodes[id_] = NodeProcess(id=id_, lake=self.lake, folder=folder / f"node-{id_}", settings=settings)

    def __enter__(self) -> LakeProcesses:
        try:
            for node in self.nodes.values():
                node.start()
            self.await_alive()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all of them at once."""
        for node in self.nodes.values():
            node.kill()

    @property
    def brokers(self) -> list[NodeProcess]:
        return [node for node in self.nodes.values() if node.is_broker]

    @property
    def controllers(self) -> list[NodeProcess]:
        return [node for node in self.nodes.values() if not node.is_broker]

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{node.port}" for node in self.brokers)

    def create(self, name: str, partitions: int = 1, replicas: int = 3, **configs: str) -> None:
        """A new topic; configs with underscores for dots."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 2})
        config = {name.replace("_", "."): value for name, value in configs.items()}
        admin.create_topics([NewTopic(name, partitions, replicas, config=config)])[name].result(PATIENCE)

    def image(self) -> MetadataImage:
        """The newest image, by the lake; empty before the first controller has written."""
        with suppress(OffsetError):
            return kraftlake.open(self.lake).image()
        return MetadataImage.EMPTY

    def wait_for(self, holds: Callable[[], Any], what: str, *, patience: float = PATIENCE) -> Any:
        """The first true answer."""
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            found = holds()
            if found:
                return found
            time.sleep(0.05)
        raise AssertionError(f"waited {patience} s in vain: {what}")

    def await_alive(self) -> None:
        """Wait until all brokers that run are unfenced."""

        def alive() -> bool:
            running = [node for node in self.nodes.values() if node.process is not None]
            for node in running:
                node.check_alive()
            known = self.image().cluster.brokers
            return all(node.id in known and not known[node.id].fenced for node in running if node.is_broker)

        self.wait_for(alive, "all brokers are unfenced")
