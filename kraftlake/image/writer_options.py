"""Options for writing an image as records, and handlers of state that the records can't express."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from kraftlake.records.metadata_version import MINIMUM_OF_KAFKA_4, MetadataVersion
from kraftlake.runtime.errors import UnwritableMetadataError

LossHandler = Callable[[str, MetadataVersion], None]
"""Called with a description of the state to be lost and the metadata.version that can't express it."""


def refuse_loss(loss: str, version: MetadataVersion) -> None:
    """The loss handler that raises UnwritableMetadataError."""
    raise UnwritableMetadataError(
        f"The image holds {loss}, which records at metadata.version {version} and with the image's features can't "
        "express: write it with --allow-loss to leave that out."
    )


class CollectedLosses:
    """The loss handler that accepts losses and collects their descriptions in `losses`, each once, in order."""

    def __init__(self) -> None:
        self._losses: dict[str, None] = {}

    def __call__(self, loss: str, _version: MetadataVersion) -> None:
        """Record the loss."""
        self._losses[loss] = None

    @property
    def losses(self) -> tuple[str, ...]:
        """The descriptions of the losses."""
        return tuple(self._losses)


@attrs.frozen(kw_only=True)
class ImageWriterOptions:
    """The metadata.version to write records for, whether ELR is enabled, and the handler of losses.

    `loss_handler` may raise (the default raises UnwritableMetadataError) or accept the loss and return. Kafka silently
    drops eligible leader replicas while the feature is off; here that is a loss like any other.
    Source: org.apache.kafka.image.writer.ImageWriterOptions.
    """

    metadata_version: MetadataVersion = attrs.field()
    elr_enabled: bool = False
    loss_handler: LossHandler = refuse_loss

    @metadata_version.validator
    def _can_be_written(self, _: object, version: MetadataVersion) -> None:
        if version < MINIMUM_OF_KAFKA_4:
            raise UnwritableMetadataError(
                f"Images are written at metadata.version {MINIMUM_OF_KAFKA_4} or later, not at {version}."
            )

    def handle_loss(self, loss: str) -> None:
        """Report state that records can't express at this metadata.version; returns if the loss is accepted."""
        self.loss_handler(loss, self.metadata_version)
