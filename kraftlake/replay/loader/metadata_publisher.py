"""Who is told of new images: by the loader, with everything a publisher may rely on, or by the batch loader alone."""

from __future__ import annotations

from typing import Protocol

from kraftlake.delta import MetadataDelta
from kraftlake.image import MetadataImage
from kraftlake.replay.loader.manifest import LeaderAndEpoch, LoaderManifest, LogDeltaManifest


class MetadataUpdater(Protocol):
    """Who is told of each new image (MetadataBatchLoader.MetadataUpdater)."""

    def __call__(self, delta: MetadataDelta, image: MetadataImage, manifest: LogDeltaManifest) -> None:
        """Called with the change, the image after it and where it came from."""


class MetadataPublisher(Protocol):
    """Who acts on new images. Called on the loader's thread, one call at a time.

    Source: org.apache.kafka.image.publisher.MetadataPublisher.
    """

    @property
    def name(self) -> str:
        """What it is called in messages; no two publishers of a loader share a name."""
        ...

    def on_metadata_update(self, delta: MetadataDelta, new_image: MetadataImage, manifest: LoaderManifest) -> None:
        """Take a new image; `delta` is the change from the image of the last call, at first from the empty one.

        What it raises is reported, and the next publisher is called.
        """
        ...

    def on_controller_change(self, leader_and_epoch: LeaderAndEpoch) -> None:
        """Take note of who leads the quorum."""
        ...

    def close(self) -> None:
        """There will be no more calls."""
        ...
