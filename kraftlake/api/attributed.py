"""A source whose changes are attributed to the clients that asked for them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import tzinfo
from typing import TYPE_CHECKING

from kraftlake.api.access import AccessSource
from kraftlake.runtime.arguments import path_text

if TYPE_CHECKING:
    from kraftlake.diagnosis.attribution.attribution import Attribution


class AttributedSource(AccessSource):
    """A source whose records are attributed to clients by files beside it."""

    def attribution(
        self,
        authorizer_logs: Iterable[str | os.PathLike[str]] = (),
        *,
        audits: Iterable[str | os.PathLike[str]] = (),
        audit_map: Mapping[str, str] | None = None,
        log_zone: tzinfo | None = None,
    ) -> Attribution:
        """The clients whose requests made the records, by authorizer logs of nodes and audit files of tools.

        `attribution.of(change.offset)` has the client of a change of `blame`, or of an event. `audit_map` is as for
        `--audit-map` of `kraftlake blame`, `log_zone` the time zone of lines that state none. Raises UsageError for
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
