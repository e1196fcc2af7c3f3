"""The topics that `--topic` asks for: names and shell patterns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kraftlake.runtime.name_patterns import matches

if TYPE_CHECKING:
    from kraftlake.image.topics.topics_image import TopicsImage


def any_matches(image: TopicsImage, patterns: Sequence[str]) -> bool:
    """Whether any topic of the image matches."""
    names: Iterable[str] = image.rows().table.names if image.is_large else image.topics_by_name()
    return any(matches(name, patterns) for name in names)
