"""A source whose changes are attributed to the clients that asked for them, and shown on a page."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING

from kraftlake.api.access import AccessSource
from kraftlake.runtime.arguments import path_text
from kraftlake.runtime.moments import Moment

if TYPE_CHECKING:
    from kraftlake.diagnosis.attribution.attribution import Attribution
    from kraftlake.diagnosis.page.writing import PageReport
    from kraftlake.replay.reading.progress import Progress


class AttributedSource(AccessSource):
    """A source with the questions of `--authorizer-log` and `kraftlake page`; a moment is as in `Source`."""

    def attribution(
        self,
        authorizer_logs: Iterable[str | os.PathLike[str]] = (),
        *,
        audits: Iterable[str | os.PathLike[str]] = (),
        audit_map: Mapping[str, str] | None = None,
        log_zone: tzinfo | None = None,
    ) -> Attribution:
        """The clients whose requests made the records, by authorizer logs of nodes and audit files of tools.

        `of(change.offset)` has the client of a change of `blame`, `of_event(event)` that of an event. `audit_map` is as
        for `--audit-map` of `kraftlake blame`, `log_zone` the time zone of lines that state none. Raises UsageError for
        files without such lines, of another time or without a zone, NotASourceError for an unreadable file.
        """
        from kraftlake.diagnosis.attribution.attribution import Attribution
        from kraftlake.diagnosis.attribution.witnesses import Witnesses

        witnesses = Witnesses(
            authorizer_logs=tuple(map(path_text, authorizer_logs)),
            audits=tuple(map(path_text, audits)),
            audit_map=dict(audit_map or {}),
            log_zone=log_zone,
        )
        return Attribution(self, witnesses)

    def page(
        self,
        path: str | os.PathLike[str] | None = None,
        from_offset: Moment | None = None,
        to_offset: Moment | None = None,
        *,
        lenient: bool = False,
        progress: Progress | None = None,
        attribution: Attribution | None = None,
    ) -> PageReport:
        """One HTML page that shows the cluster at each moment of a range, written to `path`: `kraftlake page`.

        It needs only a browser; secrets are redacted. A file at `path` is replaced; without one, a notebook shows the
        page that is returned. `progress` as for `replay`. With an `attribution` events name the clients that made them.
        Raises as `changes` does, EnvironmentFaultError where the folder does not exist or can't be written to.
        """
        from kraftlake.diagnosis.page.writing import write_page

        self._refuse_snapshot()
        target = None if path is None else Path(path_text(path))
        return write_page(
            self, target, from_offset, to_offset, lenient=lenient, progress=progress, attribution=attribution
        )
