"""The options of a job, and the result of a run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import attrs

from kraftlake.metadata_log.storage.location import Location
from kraftlake.runtime.arguments import instance, text, whole_or_none
from kraftlake.runtime.errors import UsageError

if TYPE_CHECKING:
    from kraftlake.image.metadata_image import MetadataImage

AVAILABLE_NOW: Final = "available-now"

_INTERVAL = re.compile(r"\d+ (millisecond|second|minute|hour)s?")


@attrs.frozen(kw_only=True)
class StreamOptions:
    """The options of a job's run; no option changes the rows that the job writes.

    `trigger` is "available-now", which ends when all records present are in the tables, or an interval such as "2
    seconds", which runs until it is interrupted or the tables have `until_offset`. A micro-batch takes at most
    `max_records` of the log, but always a whole batch; without it, all records present. `master` is the Spark master of
    a session that the run starts itself.
    """

    trigger: str = AVAILABLE_NOW
    max_records: int | None = None
    until_offset: int | None = None
    master: str | None = None

    def check(self) -> None:
        """Raises UsageError for an option that is invalid."""
        if text(self.trigger, "a trigger") != AVAILABLE_NOW and not _INTERVAL.fullmatch(self.trigger):
            raise UsageError(f'a trigger is "{AVAILABLE_NOW}" or an interval such as "2 seconds", not {self.trigger!r}')
        whole_or_none(self.max_records, "a number of records for a micro-batch", least=1)
        whole_or_none(self.until_offset)


def checked(options: StreamOptions | None) -> StreamOptions:
    """The options, by default StreamOptions(); raises UsageError for another type or invalid options."""
    options = StreamOptions() if options is None else instance(options, StreamOptions, "StreamOptions")
    options.check()
    return options


@attrs.frozen(kw_only=True)
class StreamResult:
    """The result of a run.

    `offset` is the last offset that all tables cover at its end, `base_offset` that at its start (-1 for none), and
    `first_offset` the first offset of the log after it. `rows` are the rows that the run has added to each table, by
    name; for a history table the states that ended, and `open_rows` those that are open at its end. `snapshots` are the
    end offsets of the snapshots written; `unwritable` is the reason if the newest image should have one and can't.

    `micro_batches` are those of the stream, of which `executors` executors made the rows in `steps` steps, and the
    driver those of `driver_batches`. All are 0 if there was nothing to do.
    """

    lake: Location = attrs.field(repr=False)
    offset: int
    base_offset: int
    first_offset: int
    rows: Mapping[str, int]
    open_rows: Mapping[str, int] = attrs.field(factory=dict)
    snapshots: tuple[int, ...] = ()
    unwritable: str | None = None
    micro_batches: int = 0
    driver_batches: int = 0
    steps: int = 0
    executors: int = 0

    @property
    def image(self) -> MetadataImage:
        """The image at `offset`, made from the lake in this process; the empty one at -1."""
        from kraftlake.image.metadata_image import MetadataImage
        from kraftlake.metadata_log.log import MetadataLog
        from kraftlake.replay.loader.fold import image_at
        from kraftlake.replay.reading.open_reader import LakeReader

        if self.offset < 0:
            return MetadataImage.EMPTY
        return image_at(LakeReader(MetadataLog.open(self.lake)), self.offset).image

    def up_to(self, offset: int, **counts: int) -> StreamResult:
        """The result at a later offset, with more of what is counted."""
        more = {name: getattr(self, name) + count for name, count in counts.items()}
        return attrs.evolve(self, offset=max(self.offset, offset), **more)

    def with_made(self, rows: Mapping[str, int], snapshots: tuple[int, ...], unwritable: str | None) -> StreamResult:
        """The result with more rows and snapshots."""
        added = {name: count + rows.get(name, 0) for name, count in self.rows.items()}
        return attrs.evolve(self, rows=added, snapshots=(*self.snapshots, *snapshots), unwritable=unwritable)

    def to_json(self) -> dict[str, Any]:
        """The JSON form, without the image."""
        return {
            "from": self.base_offset,
            "firstOffset": self.first_offset,
            "offset": self.offset,
            "rows": dict(self.rows),
            "openRows": dict(self.open_rows),
            "snapshots": list(self.snapshots),
            "microBatches": self.micro_batches,
            "driverBatches": self.driver_batches,
            "steps": self.steps,
            "executors": self.executors,
        }
