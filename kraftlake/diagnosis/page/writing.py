"""`kraftlake page`: a range of a source's log as one HTML page. Imports numpy."""

from __future__ import annotations

from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any

import attrs

from kraftlake.diagnosis.attribution.attribution import Attribution
from kraftlake.diagnosis.page.document import document
from kraftlake.diagnosis.page.gathered import Gathered, Gatherer
from kraftlake.diagnosis.page.packing import packed
from kraftlake.diagnosis.stability.happenings import Happenings
from kraftlake.diagnosis.stability.stability import by_span
from kraftlake.replay.loader.manifest import SkippedRecord
from kraftlake.replay.queries.source import LogSource
from kraftlake.replay.reading.progress import Progress
from kraftlake.runtime.errors import OffsetError
from kraftlake.runtime.moments import Moment
from kraftlake.runtime.whole_file import check_folder_of, write_readable
from kraftlake.tables.events.log_events import LogEvents


@attrs.frozen(kw_only=True)
class PageReport:
    """A page: the file that it was written to, or else its HTML in UTF-8, its size in bytes, its content in numbers.

    It is of the offsets [from_offset, to_offset]. `skipped` are the records that a lenient reading left out. A notebook
    shows the page itself.
    """

    path: str | None
    html: bytes = attrs.field(repr=False)
    cluster_id: str | None
    size: int
    from_offset: int
    to_offset: int
    brokers: int
    topics: int
    partitions: int
    events: int
    skipped: tuple[SkippedRecord, ...] = ()

    def _repr_html_(self) -> str:
        frame = "width='100%' height='640' style='border: 1px solid #8884'"
        html = self.html if self.path is None else Path(self.path).read_bytes()
        return f"<iframe srcdoc='{escape(html.decode())}' {frame}></iframe>"

    def to_json(self) -> dict[str, Any]:
        """The form of `kraftlake page --json`."""
        return {
            "clusterId": self.cluster_id,
            "path": self.path,
            "bytes": self.size,
            "fromOffset": self.from_offset,
            "toOffset": self.to_offset,
            "brokers": self.brokers,
            "topics": self.topics,
            "partitions": self.partitions,
            "events": self.events,
            "skipped": len(self.skipped),
        }


def write_page(
    source: LogSource,
    target: Path | None = None,
    from_offset: Moment | None = None,
    to_offset: Moment | None = None,
    *,
    lenient: bool = False,
    progress: Progress | None = None,
    attribution: Attribution | None = None,
) -> PageReport:
    """Make one HTML page of a range of a log, and write it to `target`, whole or not at all; a file there is replaced.

    The page shows the cluster at each moment of the range, and needs nothing but a browser. Secrets are redacted.
    `lenient` leaves out records that can't be replayed. `progress` is called while the log is read. With an
    `attribution` events name the clients that made them.

    Raises the errors of `LogChanges`, OffsetError where nothing happened in the range, EnvironmentFaultError where the
    folder does not exist or can't be written to.
    """
    if target is not None:
        check_folder_of(target)
    first, last = source.offset_range(from_offset, to_offset)
    events = LogEvents(source.reader, first, last, lenient=lenient, cluster_id=source.cluster_id)
    begin = events.begin
    from_, to = max(begin.offset + 1, source.start_offset), source.end_offset - 1 if last is None else last
    if to < from_:
        after = f"happened in {source.name} after offset {to}, of which it has its first image"
        raise OffsetError(
            f"Nothing {after if to >= 0 else f'has happened in {source.name} yet'}, so there is nothing to show."
        )
    happenings = Happenings(begin)
    gathered = _gathered(source, events, (Gatherer(begin, attribution), happenings), (from_, to), progress)
    skipped = tuple(events.skipped)
    if not len(gathered.offsets):
        raise OffsetError(
            f"Nothing happened in {source.name} from offset {from_} to {to}, so there is nothing to show."
        )
    about = {
        "cluster": source.cluster_id,
        "source": source.name.rstrip("/").rsplit("/", 1)[-1],
        "from": from_,
        "to": to,
        "begins": not begin.is_empty(),
        "skipped": len(skipped),
        "version": version("kraftlake"),
    }
    parts = document(packed(gathered, about, by_span(happenings)))
    if target is None:
        path, html = None, b"".join(parts)
        size = len(html)
    else:
        path, html = str(target), b""
        size = write_readable(target, parts)
    return PageReport(
        path=path,
        html=html,
        cluster_id=source.cluster_id,
        size=size,
        from_offset=from_,
        to_offset=to,
        brokers=len(gathered.brokers.ids),
        topics=len(gathered.topics),
        partitions=len(gathered.row_topics),
        events=len(gathered.event_moments),
        skipped=skipped,
    )


def _gathered(
    source: LogSource,
    events: LogEvents,
    takers: tuple[Gatherer, Happenings],
    offsets: tuple[int, int],
    progress: Progress | None,
) -> Gathered:
    (first, last), (gatherer, happenings) = offsets, takers
    for chunk in events.chunks(happenings.take):
        gatherer.take(chunk)
        if progress is not None and len(chunk.boundaries):
            progress("replaying", int(chunk.boundaries.offsets[-1]) + 1 - first, last + 1 - first)
    end = source.last_time if last == source.end_offset - 1 else None
    if end is not None:
        gatherer.end(last, round(end.timestamp() * 1000))
    return gatherer.gathered()
