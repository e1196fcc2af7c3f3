"""The configs of client metrics subscriptions.

Source: org.apache.kafka.server.metrics.ClientMetricsConfigs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kraftlake.settings.checks import members
from kraftlake.settings.config_key import ConfigKey
from kraftlake.settings.uses import TELEMETRY

CLIENT_METRICS_CONFIGS: Final[Mapping[str, ConfigKey]] = {
    "interval.ms": ConfigKey("INT", "300000", use=TELEMETRY),
    "match": ConfigKey("LIST", "", members(), use=TELEMETRY),
    "metrics": ConfigKey("LIST", "", members(), use=TELEMETRY),
}
