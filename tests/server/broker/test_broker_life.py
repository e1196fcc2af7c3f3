"""What ends a broker of a lake, and what it does until then."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from kraftlake.controller.cluster.brokers import register_broker, unregister_broker
from kraftlake.controller.result import ControllerResult
from kraftlake.controller.state import ControllerState
from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.protocol.broker_requests import BrokerRegistrationRequest
from kraftlake.records.metadata_records import BrokerEndpoint, BrokerFeature
from kraftlake.replay.loader.manifest import LeaderAndEpoch, LoaderManifest
from kraftlake.server.broker.broker import Broker
from kraftlake.server.controller.replica_progress import NodeProgress
from kraftlake.server.node_life import NodeEndedError
from tests.controller.controlled_cluster import CLUSTER_ID
from tests.server.broker.lake_cluster import LakeCluster, Member, lake_cluster
from tests.waiting import PATIENCE


def check_replaced(broker: Member) -> None:
    broker.thread.join(PATIENCE)
    with pytest.raises(NodeEndedError, match="another process has registered as broker 1"):
        broker.check()


class Held:
    """A publisher that is not done with its second image before the test says so."""

    name = "held"

    def __init__(self) -> None:
        self.offsets: list[int] = []
        self.released = threading.Event()

    def on_metadata_update(self, delta: MetadataDelta, new_image: MetadataImage, manifest: LoaderManifest) -> None:
        self.offsets.append(new_image.offset)
        if len(self.offsets) == 2:
            assert self.released.wait(PATIENCE)

    def on_controller_change(self, leader_and_epoch: LeaderAndEpoch) -> None:
        pass

    def close(self) -> None:
        pass


def test_heartbeats_report_what_the_broker_has_applied_and_not_what_it_is_about_to(tmp_path: Path) -> None:
    with lake_cluster(tmp_path, brokers=(1,)) as cluster:
        node, held = cluster.members[101].server.node, Held()
        cluster.members[1].server.broker.loader.install_publishers([held])
        cluster.wait_for(lambda: len(held.offsets) == 2, "an image, if it is that of a no-op")

        def progress() -> NodeProgress:
            _, (broker,) = node.progress.described(leader=101, controllers=[101], brokers=[1], end_offset=10_000)
            assert isinstance(broker, NodeProgress)
            return broker

        for _ in range(2):
            before = progress().last_fetch_ms
            cluster.wait_for(lambda before=before: progress().last_fetch_ms > before, "a heartbeat")
        assert progress().log_end_offset <= held.offsets[1]
        held.released.set()
        cluster.wait_for(
            lambda: progress().log_end_offset > held.offsets[1], "a heartbeat with the offset of the image"
        )


def test_a_broker_ends_when_another_process_has_its_id(tmp_path: Path) -> None:
    with lake_cluster(tmp_path, brokers=(1, 2)) as cluster:
        first = cluster.members.pop(1)
        node = cluster.members[101].server.node
        node.run(lambda state: unregister_broker(state, 1), lambda reply: reply).result(PATIENCE)
        cluster.folder = tmp_path / "other"
        cluster.start_broker(1)
        cluster.await_unfenced(1, 2)
        check_replaced(first)


def replace_with_a_late_copy(cluster: LakeCluster) -> None:
    """Register broker 1 as its own request does that comes late, after another process's registration."""
    node = cluster.members[101].server.node
    known = node.controller.read(lambda image: image.cluster.brokers[1]).result(PATIENCE)
    copy = BrokerRegistrationRequest(
        broker_id=1, cluster_id=CLUSTER_ID, incarnation_id=known.incarnation_id, log_dirs=known.directories,
        listeners=tuple(
            BrokerEndpoint(name=name, host=one.host, port=one.port, security_protocol=one.security_protocol)
            for name, one in known.listeners.items()
        ),
        features=tuple(
            BrokerFeature(name=name, min_supported_version=one.min, max_supported_version=one.max)
            for name, one in known.supported_features.items()
        ),
    )  # fmt: skip

    def register(state: ControllerState) -> ControllerResult:
        return register_broker(state, copy)

    node.run(lambda state: unregister_broker(state, 1), lambda reply: reply).result(PATIENCE)
    node.run(register, lambda reply: reply).result(PATIENCE)


def test_a_broker_ends_when_a_late_copy_of_its_registration_has_replaced_it(tmp_path: Path) -> None:
    with lake_cluster(tmp_path, brokers=(1, 2)) as cluster:
        broker = cluster.members.pop(1)
        replace_with_a_late_copy(cluster)
        check_replaced(broker)


def test_a_broker_ends_when_it_was_replaced_before_its_first_image_is_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with lake_cluster(tmp_path, brokers=(2,)) as cluster:
        monkeypatch.setattr(Broker, "install", lambda self: None)
        cluster.start_broker(1)
        broker = cluster.members[1]
        cluster.wait_for(lambda: broker.server.broker and broker.server.broker.lifecycle.broker_epoch >= 0)
        replace_with_a_late_copy(cluster)
        del cluster.members[1]
        check_replaced(broker)
