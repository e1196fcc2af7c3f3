"""Registers a broker again if the metadata lacks fields that the controller could not store at the registration."""

from __future__ import annotations

from collections.abc import Callable

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.replay.loader.manifest import LoaderManifest
from kraftlake.replay.loader.metadata_publisher import MetadataPublisher


class BrokerRegistrationTracker(MetadataPublisher):
    """Calls `register_again` if the broker is registered without log directories, and the metadata.version has them.

    This is the case if a metadata.version below 3.7-IV2 is raised while the broker runs: without the directories the
    controller does not know which replicas a failed directory contained. Source:
    org.apache.kafka.image.publisher.BrokerRegistrationTracker.
    """

    def __init__(self, broker_id: int, register_again: Callable[[], None]) -> None:
        self._broker_id = broker_id
        self._register_again = register_again

    @property
    def name(self) -> str:
        """The publisher's name."""
        return f"BrokerRegistrationTracker(id={self._broker_id})"

    def on_metadata_update(self, delta: MetadataDelta, new_image: MetadataImage, manifest: LoaderManifest) -> None:  # noqa: ARG002
        """Check whether a changed registration or metadata.version requires a new registration."""
        changed = delta.cluster_delta is not None and self._broker_id in delta.cluster_delta.changed_brokers
        if delta.metadata_version_changed is None and not changed:
            return
        version, registration = new_image.features.metadata_version, new_image.cluster.brokers.get(self._broker_id)
        if registration is None or version is None or not version.is_directory_assignment_supported:
            return
        if not registration.directories:
            self._register_again()
