"""The definition of a config: type, default, validator, dynamic update mode, and use in kraftlake.

Source: org.apache.kafka.common.config.ConfigDef, org.apache.kafka.server.config.DynamicBrokerConfig.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Final

import attrs

from kraftlake.runtime.java_values import parse_boolean, parse_double, parse_integer, split_list, trim
from kraftlake.settings.checks import Check
from kraftlake.settings.uses import Ignored, Use

_BITS: Final = {"SHORT": 16, "INT": 32, "LONG": 64}


class UpdateMode(Enum):
    """The dynamic update mode of a broker's config, under Kafka's names."""

    READ_ONLY = "read-only"
    """The config can't be set dynamically."""
    PER_BROKER = "per-broker"
    """The config can be set for one broker."""
    CLUSTER_WIDE = "cluster-wide"
    """The config can be set for one broker and for all."""


READ_ONLY: Final = UpdateMode.READ_ONLY
PER_BROKER: Final = UpdateMode.PER_BROKER
CLUSTER_WIDE: Final = UpdateMode.CLUSTER_WIDE


@attrs.frozen
class ConfigKey:
    """A config: its type under Kafka's name, its default (or None), its validator and its use in kraftlake.

    `synonyms` are the broker configs that provide the value of a missing topic config; the first one that is set
    counts. `update` concerns configs of brokers: those of other resources are set in the metadata log alone. An
    `internal` config is described only if it is set.
    """

    type: str
    default: str | None
    check: Check | None = None
    synonyms: tuple[str, ...] = ()
    update: UpdateMode = READ_ONLY
    use: Use | None = None
    internal: bool = False

    @property
    def is_sensitive(self) -> bool:
        """Whether the value is a secret."""
        return self.type == "PASSWORD"

    def parse(self, text: str) -> Any:
        """Parse a value; raises ValueError with the reason if the config can't have it."""
        value = self.typed(text)
        problem = None if self.check is None else self.check(value)
        if problem is not None:
            raise ValueError(problem)
        return value

    def typed(self, text: str) -> Any:
        """Convert a value to the config's type, without validation; raises ValueError for one of another type."""
        text = trim(text)
        match self.type:
            case "BOOLEAN":
                return parse_boolean(text)
            case "SHORT" | "INT" | "LONG":
                return parse_integer(text, _BITS[self.type])
            case "DOUBLE":
                return parse_double(text)
            case "LIST":
                return split_list(text) if text else []
            case _:
                return text

    def why_ignored(self, text: str) -> Ignored | None:
        """The reason why a value has no effect here; None if it has one, or is the default."""
        return self.use if isinstance(self.use, Ignored) and not self._is_default(text) else None

    def _is_default(self, text: str) -> bool:
        try:
            return self.default is not None and bool(self.typed(text) == self.typed(self.default))
        except ValueError:
            return False
