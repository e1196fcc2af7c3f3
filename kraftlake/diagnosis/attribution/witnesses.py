"""The files that show which clients asked for changes: the logs of authorizers, and audit files of tools."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo

import attrs


@attrs.frozen(kw_only=True)
class Witnesses:
    """Files that record clients' requests; `log_zone` is the time zone of lines that state none.

    `audit_map` says where the entries of audit files, JSON lines, have a `time`, a `principal`, a `request`, and
    perhaps a `resource` and a `host`: the path of a field, such as `user.name`. The name of a Kafka request as a key
    has the words for that request in the entries, with | between several.
    """

    authorizer_logs: tuple[str, ...] = ()
    audits: tuple[str, ...] = ()
    audit_map: Mapping[str, str] = attrs.field(factory=dict)
    log_zone: tzinfo | None = None
