"""The topics behind a metadata delta, in that form which the records to come are for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kraftlake import kernels
from kraftlake.image.topics.topics_image import TopicsImage

if TYPE_CHECKING:
    from kraftlake.tables.changes.partition_places import PartitionPlaces


BULK_FROM: Final = 1000
"""From how many records, or partitions, on columns are worth it."""


def in_columns(count: int, wanted: bool | None) -> bool:
    """Whether to use compiled code for so many: what is `wanted`, None where nobody says so."""
    return kernels.pays(count, BULK_FROM) if wanted is None else wanted


class TopicsInTurn:
    """Topics as arrays by place, for compiled code, or as an image."""

    def __init__(self, topics: TopicsImage, *, bulk: bool | None) -> None:
        """Begin with an image; `bulk` says whether to use compiled code, None: where there is enough to do for it."""
        self._wanted = bulk
        self._image = topics
        self._places: PartitionPlaces | None = None

    @property
    def in_places(self) -> bool:
        """Whether compiled code is at work."""
        return self._places is not None

    def places(self, count: int) -> PartitionPlaces | None:
        """The topics by place, where they are, or so many records make that worth it and can be taken by it."""
        if self._places is not None and self._places.is_worn:
            self.become(self._places.topics())
        if self._places is None and in_columns(count, self._wanted):
            from kraftlake.tables.changes.partition_places import PartitionPlaces, fits  # imports numba

            if fits(self._image):
                self._places, self._image = PartitionPlaces(self._image), TopicsImage.EMPTY
        return self._places

    def image(self) -> TopicsImage:
        """The topics as an image, and by place no more."""
        if self._places is not None:
            self.become(self._places.topics())
        return self._image

    def become(self, topics: TopicsImage) -> None:
        """They are others now."""
        self._image, self._places = topics, None
