"""Updates a quota plug-in with topics and brokers, for quotas that depend on the number of led partitions."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Protocol

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.publisher.cluster_view import Cluster, cluster_of
from kraftlake.replay.loader.manifest import LoaderManifest
from kraftlake.replay.loader.metadata_publisher import MetadataPublisher


class ClientQuotaCallback(Protocol):
    """The interface of a quota plug-in. Source: org.apache.kafka.server.quota.ClientQuotaCallback."""

    def update_cluster_metadata(self, cluster: Cluster) -> bool:
        """Update the cluster; returns whether a quota may have changed."""
        ...


class DynamicTopicClusterQuotaPublisher(MetadataPublisher):
    """Calls `callback` with the cluster after each change of topics or brokers, and `on_change` if a quota may change.

    Source: org.apache.kafka.metadata.publisher.DynamicTopicClusterQuotaPublisher.
    """

    name = "DynamicTopicClusterQuotaPublisher"
    """Kafka's name of the publisher."""

    def __init__(
        self,
        cluster_id: str,
        callback: ClientQuotaCallback,
        on_change: Callable[[], None],
        *,
        random: Random | None = None,
    ) -> None:
        self._cluster_id = cluster_id
        self._callback = callback
        self._on_change = on_change
        self._random = random or Random()  # noqa: S311 - any broker will do

    def on_metadata_update(self, delta: MetadataDelta, new_image: MetadataImage, manifest: LoaderManifest) -> None:
        """Call the callback if topics or brokers have changed."""
        if delta.topics_delta is None and delta.cluster_delta is None:
            return
        if self._callback.update_cluster_metadata(cluster_of(new_image, self._cluster_id, self._random)):
            self._on_change()
