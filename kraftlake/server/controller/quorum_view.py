"""A controller's view of the log: the newest image, the leader of the quorum, and the controllers' endpoints."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from kraftlake.controller.cluster.supported_features import SUPPORTED
from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.endpoint import Endpoint
from kraftlake.image.features_image import KRAFT_VERSION, METADATA_VERSION
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.replay.loader.manifest import LeaderAndEpoch, LoaderManifest
from kraftlake.replay.loader.metadata_publisher import MetadataPublisher
from kraftlake.server.requests.versions_answers import NodeFeatures

NOBODY: Final = -1


class QuorumView(MetadataPublisher):
    """Holds the newest image and the leader of the log; `listeners` are called after each change of either.

    Source: org.apache.kafka.metadata.publisher.ControllerRegistrationsPublisher and KRaftMetadataCachePublisher.
    """

    name = "QuorumView"

    def __init__(self) -> None:
        self.image = MetadataImage.EMPTY
        self.leader = LeaderAndEpoch.UNKNOWN
        self.published = threading.Event()
        """Set once the first image is available."""
        self.listeners: list[Callable[[], None]] = []

    def on_metadata_update(self, delta: MetadataDelta, new_image: MetadataImage, manifest: LoaderManifest) -> None:  # noqa: ARG002
        """Store the image."""
        self.image = new_image
        self.published.set()
        self._call_listeners()

    def on_controller_change(self, leader_and_epoch: LeaderAndEpoch) -> None:
        """Store the leader."""
        self.leader = leader_and_epoch
        self._call_listeners()

    def _call_listeners(self) -> None:
        for listener in self.listeners:
            listener()

    @property
    def leader_id(self) -> int:
        """The node id of the last controller that claimed the log, −1 without one."""
        return NOBODY if self.leader.leader_id is None else self.leader.leader_id

    def contains(self, topic: str) -> bool:
        """Whether a topic exists."""
        return self.image.topics.get_topic(topic) is not None

    def endpoints(self, listener: str) -> dict[int, Endpoint]:
        """The controllers' endpoints for a listener name, by node id."""
        controllers = sorted(self.image.cluster.controllers.items())
        found = ((id_, registration.listeners.get(listener)) for id_, registration in controllers)
        return {id_: endpoint for id_, endpoint in found if endpoint is not None}

    def features(self) -> NodeFeatures:
        """The features in an ApiVersions response: this controller's supported levels, and the finalized levels."""
        finalized = dict(self.image.features.finalized_versions.items())
        version = self.image.features.metadata_version
        if version is not None:
            finalized[METADATA_VERSION] = version.level
        epoch = self.image.offset if version is not None else -1
        finalized.pop(KRAFT_VERSION, None)
        return NodeFeatures(
            supported=SUPPORTED, finalized={name: level for name, level in finalized.items() if level}, epoch=epoch
        )
