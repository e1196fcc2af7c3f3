"""The configs of client metrics subscriptions: the metrics, the interval and the selected clients.

Source: org.apache.kafka.server.metrics.ClientMetricsConfigs.
"""

from __future__ import annotations

from typing import Final

from kraftlake.controller.configs.java_patterns import check_pattern
from kraftlake.runtime.java_values import trim

INTERVAL: Final = "interval.ms"
SHORTEST_INTERVAL: Final = 100
LONGEST_INTERVAL: Final = 3_600_000
MATCH: Final = "match"
_PARAMETERS: Final = (
    "client_id",
    "client_instance_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)


def problem_of_match(selectors: list[str]) -> str | None:
    """The reason why selectors are invalid, or None: each must be PARAMETER=PATTERN with a Java regular expression."""
    for selector in selectors:
        parts = selector.rstrip("=").split("=")
        if len(parts) != 2 or trim(parts[0]) not in _PARAMETERS:
            return f"{selector!r} is not of the form PARAMETER=PATTERN with one of {', '.join(_PARAMETERS)}"
        try:
            check_pattern(trim(parts[1]))
        except ValueError as problem:
            return f"the pattern of {selector!r} is no regular expression: {problem}"
    return None
