"""A cluster of a lake as processes: `kraftlake controller` and `kraftlake broker --lake`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

import kraftlake
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.runtime.errors import OffsetError
from kraftlake.runtime.java_properties import parse_properties
from kraftlake.server.cluster_up.cluster_plan import ClusterPlan, NodeKind
from kraftlake.server.cluster_up.cluster_security import ClusterSecurity
from kraftlake.server.cluster_up.cluster_up import secure as secure_cluster
from kraftlake.server.node_config import NodeSettings
from tests.server.broker.lake_cluster import format_lake
from tests.server.node_process import KilledNode
from tests.waiting import PATIENCE, wait_for

QUICK = {
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "3000",
    "controller.quorum.fetch.timeout.ms": "3000",
    "replica.fetch.backoff.ms": "200",
}


class LakeProcesses:
    """The nodes by id, from their start to their end as a context manager; `secure` as `cluster up --secure`."""

    def __init__(
        self,
        folder: Path,
        *,
        brokers: int = 3,
        controllers: int = 2,
        settings: Mapping[str, str] | None = None,
        secure: bool = False,
    ) -> None:
        self.lake = folder / "lake"
        folder.mkdir(parents=True, exist_ok=True)
        format_lake(self.lake)
        values = NodeSettings(values=QUICK | dict(settings or {}))
        security = ClusterSecurity.at(folder / "security") if secure else None
        self.plan = ClusterPlan.of(
            str(self.lake), folder, brokers=brokers, controllers=controllers, settings=values, security=security
        )  # fmt: skip
        if security is not None:
            secure_cluster(self.plan, security)
        self.nodes = {plan.id: KilledNode(plan) for plan in self.plan.nodes}

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
    def brokers(self) -> list[KilledNode]:
        return [self.nodes[plan.id] for plan in self.plan.of_kind(NodeKind.BROKER)]

    @property
    def controllers(self) -> list[KilledNode]:
        return [self.nodes[plan.id] for plan in self.plan.of_kind(NodeKind.CONTROLLER)]

    @property
    def bootstrap(self) -> str:
        return self.plan.addresses(NodeKind.BROKER)

    @property
    def client(self) -> dict[str, str]:
        """What librdkafka's clients take, with the login of the admin where the cluster is secure."""
        security = self.plan.security
        if security is None:
            return {"bootstrap.servers": self.bootstrap}
        return parse_properties(security.librdkafka_properties.read_bytes())

    def create(self, name: str, partitions: int = 1, replicas: int = 3, **configs: str) -> None:
        """A new topic; configs with underscores for dots."""
        admin = AdminClient({**self.client, "log_level": 2})
        config = {name.replace("_", "."): value for name, value in configs.items()}
        admin.create_topics([NewTopic(name, partitions, replicas, config=config)])[name].result(PATIENCE)

    def image(self) -> MetadataImage:
        """The newest image, by the lake; empty before the first controller has written."""
        with suppress(OffsetError):
            return kraftlake.open(self.lake).image()
        return MetadataImage.EMPTY

    def await_alive(self) -> None:
        """Wait until all brokers that run are unfenced."""

        def alive() -> bool:
            for node in self.nodes.values():
                node.check_alive()
            known = self.image().cluster.brokers
            running = [node.id for node in self.brokers if node.is_running]
            return all(id_ in known and not known[id_].fenced for id_ in running)

        wait_for(alive, "all brokers are unfenced")
