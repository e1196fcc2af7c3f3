"""Where our answers differ from Kafka's, each with the row of docs/cluster.md that says so."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import attrs


@attrs.frozen
class Difference:
    """A row of docs/cluster.md, by how its first cell begins, and the answers that it is about.

    `where` is searched in the case, what was asked, and the place in the answer.
    """

    row: str
    where: str

    def holds(self, place: str) -> bool:
        """Whether it is about that place."""
        return re.search(self.where, place) is not None


DIFFERENCES: Final = (
    Difference("Error messages", r"error_message$"),
    Difference(
        "APIs that are not served",
        r"^api_versions: api_versions v\d of \d+ \.api_keys\.(?!produce|api_versions|find_coordinator)",
    ),
    Difference("Coordinators", r"^api_versions: .* \.api_keys\.find_coordinator"),
    Difference("ApiVersions", r"^api_versions: api_versions v\S+ of \d+ (\.api_keys\.api_versions)?"),
    Difference("Produce", r"^api_versions: .* \.api_keys\.produce"),
    Difference("Requests that Kafka fails at", r"^metadata: metadata v1[23] zero id "),
    Difference("Requests that Kafka fails at", r"^incremental_alter_configs: .* unknown operation at 1"),
    Difference("Requests that Kafka fails at", r"^list_offsets: .* (twice|empty), replica -1, isolation 9 "),
    Difference("Batches that Kafka fails at", r"^batches: produce v12 (compression [57]|not \w+) to .*error_code$"),
    Difference(
        "Batches that Kafka fails at",
        r"^batches: produce v12 (epoch −1|producer −5|time −5) to (gz|lz|sn|zs|st).*error_code$",
    ),
    Difference("Offsets within a batch", r"^batches: list_offsets v10 offset delta −1 of "),
    Difference("Offsets within a batch", r"^batches: fetch v12 (key|value) length −2 of .*records$"),
    Difference(
        "Requests that Kafka fails at",
        r"^operations_on_settings: .* (append|subtract) (controller\.listener\.names|process\.roles) ",
    ),
    Difference("Classes of Java", r"^values_of_(brokers|listeners): .*\.class(\.name)?= ?java\.lang\.String "),
    Difference("Loggers", r"^incremental_alter_configs: .* logger at 1"),
    Difference("Documentation of configs", r"^describe_configs: .* with documentation .*documentation$"),
    Difference("A fetch's last batch", r"^fetch: fetch v\d+ half of it .*records"),
    Difference("Long requests", r"^long_requests: 4300 long names"),
    Difference("Requests that Kafka fails at", r"^acls: create_acls v\d (any |match).*error_code$"),
    Difference("Voters", r"^features: .* kraft at \d+ \.(error_code|results)"),
    Difference("Fetch sessions", r"^sessions: fetch v\d+ session, unknown id"),
)


def unknown(found: Iterable[tuple[str, Any, Any]]) -> list[str]:
    """Those of the differences that no row is about, as sentences."""
    return [
        f"{place}: ours {str(ours)[:200]}, Kafka's {str(theirs)[:200]}"
        for place, ours, theirs in found
        if not any(known.holds(place) for known in DIFFERENCES)
    ]


TOOL_DIFFERENCES: Final = (Difference("APIs that are not served", r"^versions: "),)
"""Where tools say other lines."""
