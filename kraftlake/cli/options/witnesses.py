"""The options that name authorizer logs and audit files, the same wherever changes are shown."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from datetime import tzinfo
from typing import Any

import click

from kraftlake.cli.options.command import option
from kraftlake.cli.options.parameters import ZONE, PathParameter
from kraftlake.cli.options.shared import pairs_option, together

_SECTION = "Who did it"
_options = together(
    option(
        "--authorizer-log",
        "authorizer_logs",
        type=PathParameter("file"),
        metavar="FILE...",
        multiple=True,
        several=True,
        section=_SECTION,
        help="Show who asked for a change, by these kafka-authorizer.log files: of several nodes, rotated, compressed "
        "or in an archive. All names up to the next option.",
    ),
    option(
        "--audit",
        "audits",
        type=PathParameter("file"),
        metavar="FILE...",
        multiple=True,
        several=True,
        section=_SECTION,
        help="The same by these audit files of a tool: JSON lines.",
    ),
    pairs_option(
        "--audit-map",
        "audit_map",
        section=_SECTION,
        help="Where an audit file has the time, principal, request, resource and host, as in principal=user.name; and "
        "its words for Kafka's requests, as in CreateTopics=topic_created. Repeatable.",
    ),
    option(
        "--log-tz",
        "log_zone",
        type=ZONE,
        section=_SECTION,
        help="The zone of times in these files that state none, such as UTC, +02:00 or Europe/Berlin.",
    ),
)


def witness_options(function: Callable[..., None]) -> Callable[..., None]:
    """The options `--authorizer-log`, `--audit`, `--audit-map` and `--log-tz`; the function gets them as `witnesses`.

    These are None where no file is given.
    """

    @functools.wraps(function)
    def run(
        *args: Any,
        authorizer_logs: tuple[str, ...],
        audits: tuple[str, ...],
        audit_map: Mapping[str, str],
        log_zone: tzinfo | None,
        **options: Any,
    ) -> None:
        if audit_map and not audits:
            raise click.UsageError("--audit-map says how audit files are read: name them with --audit.")
        if log_zone is not None and not (audits or authorizer_logs):
            raise click.UsageError("--log-tz is the zone of authorizer logs and audit files: name some.")
        witnesses = None
        if authorizer_logs or audits:
            from kraftlake.diagnosis.attribution.witnesses import Witnesses

            witnesses = Witnesses(
                authorizer_logs=authorizer_logs, audits=audits, audit_map=audit_map, log_zone=log_zone
            )
        function(*args, witnesses=witnesses, **options)

    return _options(run)
