"""The target of an upgrade: a release of Kafka, or a level of metadata.version or kraft.version."""

from __future__ import annotations

from typing import Any, Final

import attrs

from kraftlake.image.features_image import KRAFT_VERSION, METADATA_VERSION
from kraftlake.records.metadata_version import ALL, LATEST_PRODUCTION, MINIMUM_OF_KAFKA_4, MetadataVersion
from kraftlake.runtime.errors import UsageError

RELEASES: Final = tuple(
    dict.fromkeys(one.name.split("-")[0] for one in ALL if MINIMUM_OF_KAFKA_4 <= one <= LATEST_PRODUCTION)
)
"""The releases that are known, from 3.3 on."""
NEWEST: Final = RELEASES[-1]
"""The release whose features and configs are known."""


@attrs.frozen(kw_only=True)
class Target:
    """A feature's `level`, and the `release` that sets it by default, None where the level alone is asked for."""

    feature: str
    level: int
    release: str | None = None

    @classmethod
    def of(
        cls, *, release: str | None = None, metadata_version: str | int | None = None, kraft_version: int | None = None
    ) -> Target:
        """The target that one of the three names. Raises UsageError for none or several, or an unknown one."""
        if sum(one is not None for one in (release, metadata_version, kraft_version)) != 1:
            raise UsageError("An upgrade has one target: a release, a metadata.version or a kraft.version.")
        if release is not None:
            if release not in RELEASES:
                raise UsageError(f"{release!r} is no release that is known: these are {', '.join(RELEASES)}.")
            levels = [one.level for one in ALL if one.name.split("-")[0] == release and one <= LATEST_PRODUCTION]
            return cls(feature=METADATA_VERSION, level=max(levels), release=release)
        if metadata_version is not None:
            return cls(feature=METADATA_VERSION, level=_level_of(str(metadata_version)))
        if kraft_version not in (0, 1):
            raise UsageError(f"{kraft_version} is no kraft.version: these are 0 and 1.")
        return cls(feature=KRAFT_VERSION, level=kraft_version)

    def to_json(self) -> dict[str, Any]:
        """The target in `kraftlake upgrade-check --json`."""
        return {"feature": self.feature, "level": self.level, "release": self.release}

    def words(self, level: int) -> str:
        """A level of the feature: `33 (4.4-IV2)`, `1`."""
        return level_words(self.feature, level)


def level_words(feature: str, level: int) -> str:
    """`33 (4.4-IV2)` of metadata.version, else the number."""
    return f"{level} ({ALL[level - 1]})" if feature == METADATA_VERSION and 0 < level <= len(ALL) else str(level)


def _level_of(text: str) -> int:
    """The level of a metadata.version by its number, its name (`4.1-IV0`) or its release (`4.1`)."""
    found: list[MetadataVersion] = [
        one for one in ALL if text in (str(one.level), one.name) or (one.name.split("-")[0] == text)
    ]
    if not found:
        raise UsageError(f"{text!r} is no metadata.version: give a level up to {ALL[-1].level}, or such as {ALL[-2]}.")
    return found[-1].level
