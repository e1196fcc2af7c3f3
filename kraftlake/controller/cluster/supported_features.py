"""The features of Kafka 4.4: their levels, the dependencies of each level, and the defaults of a new cluster.

Source: org.apache.kafka.server.common.Feature and QuorumFeatures.defaultSupportedFeatureMap.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from kraftlake.image.endpoint import VersionRange
from kraftlake.image.features_image import ELR_VERSION, KRAFT_VERSION, METADATA_VERSION
from kraftlake.records.metadata_version import ALL, LATEST_PRODUCTION, MINIMUM_OF_KAFKA_4, MetadataVersion
from kraftlake.runtime.errors import UsageError


@attrs.frozen(kw_only=True)
class FeatureLevel:
    """One level: the default from metadata.version level `since` on; `needs` are the levels that it requires."""

    level: int
    since: int
    needs: Mapping[str, int] = attrs.field(factory=dict)


FEATURES: Final[Mapping[str, tuple[FeatureLevel, ...]]] = {
    ELR_VERSION: (FeatureLevel(level=1, since=26, needs={METADATA_VERSION: 23}),),
    "group.version": (FeatureLevel(level=1, since=22),),
    "share.version": (FeatureLevel(level=1, since=28), FeatureLevel(level=2, since=31)),
    "streams.version": (FeatureLevel(level=1, since=29),),
    "transaction.version": (FeatureLevel(level=1, since=24), FeatureLevel(level=2, since=24)),
}
"""The levels of every feature but metadata.version and kraft.version, by name; level 0 is off."""

SUPPORTED: Final[Mapping[str, VersionRange]] = {
    METADATA_VERSION: VersionRange(MINIMUM_OF_KAFKA_4.level, LATEST_PRODUCTION.level),
    KRAFT_VERSION: VersionRange(0, 1),
    **{name: VersionRange(0, levels[-1].level) for name, levels in FEATURES.items()},
}
"""The levels that this controller supports."""


def default_level(name: str, version: MetadataVersion) -> int:
    """The default level of a feature in a new cluster of that metadata.version."""
    return max((level.level for level in FEATURES[name] if level.since <= version.level), default=0)


def missing_need(name: str, level: int, levels: Mapping[str, int]) -> str | None:
    """The first dependency of a level that `levels` do not meet, in words; None if they meet all."""
    for known in FEATURES.get(name, ()):
        for other, wanted in known.needs.items() if known.level == level else ():
            if levels.get(other, 0) < wanted:
                return f"{name} {level} needs {other} {wanted} or later"
    return None


def version_of_release(text: str) -> MetadataVersion:
    """Return the metadata.version called `text` (`4.1-IV0`), or the latest one of a release (`4.1`).

    Raises UsageError for an unknown one.
    """
    found = [v for v in ALL if v.name == text or v.name.split("-")[0] == text]
    usable = [v for v in found if MINIMUM_OF_KAFKA_4 <= v <= LATEST_PRODUCTION]
    if not usable:
        raise UsageError(
            f"There is no metadata.version of a release {text!r} to begin with: "
            f"{MINIMUM_OF_KAFKA_4} to {LATEST_PRODUCTION} are there."
        )
    return usable[-1]
