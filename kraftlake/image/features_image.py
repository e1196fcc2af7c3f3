"""The finalized features of the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs
from rpds import HashTrieMap

from kraftlake.image.image_part import ImagePart
from kraftlake.image.writer_options import ImageWriterOptions
from kraftlake.records.metadata_records import FeatureLevelRecord
from kraftlake.records.metadata_version import MetadataVersion
from kraftlake.records.serde import ApiMessageAndVersion

METADATA_VERSION: Final = "metadata.version"
KRAFT_VERSION: Final = "kraft.version"
"""A feature that is in control records of the log, never in an image."""
ELR_VERSION: Final = "eligible.leader.replicas.version"


@attrs.frozen(kw_only=True)
class FeaturesImage(ImagePart):
    """Finalized levels by feature name, without metadata.version. Source: org.apache.kafka.image.FeaturesImage."""

    finalized_versions: HashTrieMap[str, int] = HashTrieMap()
    metadata_version: MetadataVersion | None = None

    @property
    def is_elr_enabled(self) -> bool:
        """Whether eligible leader replicas are enabled (KIP-966)."""
        return self.finalized_versions.get(ELR_VERSION, 0) >= 1

    def write(self, options: ImageWriterOptions) -> Iterator[ApiMessageAndVersion]:
        """The record of metadata.version, then those of the other features by name."""
        levels = {METADATA_VERSION: options.metadata_version.level}
        levels.update(sorted(self.finalized_versions.items()))
        for name, level in levels.items():
            yield ApiMessageAndVersion(FeatureLevelRecord(name=name, feature_level=level), 0)
