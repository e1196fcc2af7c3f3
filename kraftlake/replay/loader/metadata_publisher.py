"""The protocols of receivers of new images: of the loader, and of the batch loader alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.replay.loader.manifest import LeaderAndEpoch, LoaderManifest, LogDeltaManifest

MetadataUpdater: TypeAlias = Callable[[MetadataDelta, MetadataImage, LogDeltaManifest], object]
"""Called with each change, the image after it and its origin (MetadataBatchLoader.MetadataUpdater)."""


class MetadataPublisher(Protocol):
    """Acts on new images. Called on the loader's thread, one call at a time.

    Source: org.apache.kafka.image.publisher.MetadataPublisher.
    """

    @property
    def name(self) -> str:
        """The publisher's name in messages; unique within a loader."""
        ...

    def on_metadata_update(self, delta: MetadataDelta, new_image: MetadataImage, manifest: LoaderManifest) -> None:
        """Take a new image; `delta` is the change from the image of the last call, at first from the empty one.

        An error is reported, and the next publisher is called.
        """
        ...

    def on_controller_change(self, leader_and_epoch: LeaderAndEpoch) -> None:  # noqa: ARG002
        """Take in the quorum's leader; does nothing by default."""
        return

    def close(self) -> None:
        """Called last; does nothing by default."""
        return
