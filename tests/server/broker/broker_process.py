"""`kraftlake broker` as a process beside real nodes, and what it logs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import attrs

import kraftlake
from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.runtime.free_ports import free_ports
from tests.server.node_process import KilledNode
from tests.waiting import wait_for


def image_of(controller: str) -> MetadataImage:
    """The cluster, by its quorum."""
    return kraftlake.open(controller).image()


def partition_of(controller: str, name: TopicPartition) -> PartitionRegistration:
    """A partition, by the quorum."""
    topic = image_of(controller).topics.get_topic(name.topic)
    assert topic is not None, name
    return topic.partitions[name.partition]


@attrs.frozen(kw_only=True)
class ReplicaPlan:
    """How `kraftlake broker` is started for a cluster of Kafka's; `folder` is to have its logs and its output."""

    id: int
    controllers: str
    folder: Path
    directories: tuple[str, ...]
    settings: Mapping[str, str]
    listener: str
    options: tuple[str, ...]
    port: int = attrs.field(factory=lambda: free_ports(1)[0])

    @property
    def name(self) -> str:
        """Its kind and id."""
        return f"broker {self.id}"

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self.port}"

    @property
    def log_file(self) -> Path:
        """What it has said, over all its lives."""
        return self.folder / "broker.jsonl"

    @property
    def properties_file(self) -> Path:
        """The file of its settings, which a broker without a lake has as options."""
        return self.folder / "broker.properties"

    @property
    def paths(self) -> list[Path]:
        """Its log directories."""
        return [self.folder / directory for directory in self.directories]

    @property
    def arguments(self) -> list[str]:
        """Those of `kraftlake`."""
        made = ["broker", "--json", "--id", str(self.id), "--bootstrap", self.controllers]
        made += ["--listener", f"{self.listener}://{self.address}", *self.options]
        made += ["--log-dirs", ",".join(map(str, self.paths))]
        return made + [word for item in self.settings.items() for word in ("--override", "=".join(item))]


class BrokerProcess(KilledNode):
    """A broker in a cluster of Kafka's."""

    def __init__(
        self,
        *,
        controllers: str,
        folder: Path,
        broker_id: int = 7,
        directories: tuple[str, ...] = ("d1", "d2"),
        settings: Mapping[str, str] | None = None,
        listener: str = "PLAINTEXT",
        options: tuple[str, ...] = (),
    ) -> None:
        plan = ReplicaPlan(
            id=broker_id, controllers=controllers, folder=folder, directories=directories, settings=settings or {},
            listener=listener, options=options,
        )  # fmt: skip
        super().__init__(plan)
        self.paths = plan.paths

    def await_running(self) -> None:
        """Wait until it is unfenced."""
        wait_for(self._is_unfenced, f"{self.plan.name} runs")

    def _is_unfenced(self) -> bool:
        self.check_alive()
        return any(event["state"] == "RUNNING" for event in self.events("broker_state_changed"))

    def log_of(self, name: TopicPartition) -> bytes:
        """The bytes of a replica's segments, in order."""
        folders = [directory / str(name) for directory in self.paths]
        return b"".join(segments(folder) for folder in folders if folder.is_dir())


def segments(folder: Path) -> bytes:
    """The bytes of all segments in a partition's folder, in order."""
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))
