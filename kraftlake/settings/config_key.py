"""The definition of a config: type, default, validator, where it may be set, and what this project does with it.

Source: org.apache.kafka.common.config.ConfigDef, org.apache.kafka.server.config.DynamicBrokerConfig.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Final

import attrs

from kraftlake.runtime.java_values import parse_boolean, parse_double, parse_integer, split_list, trim
from kraftlake.settings.checks import Check
from kraftlake.settings.uses import Heeded, Ignored, Use

_BITS: Final = {"SHORT": 16, "INT": 32, "LONG": 64}


class UpdateMode(Enum):
    """Where a config of a broker may be set beside its property file, under Kafka's names."""

    READ_ONLY = "read-only"
    """Nowhere."""
    PER_BROKER = "per-broker"
    """For one broker."""
    CLUSTER_WIDE = "cluster-wide"
    """For one broker and for all."""


READ_ONLY: Final = UpdateMode.READ_ONLY
PER_BROKER: Final = UpdateMode.PER_BROKER
CLUSTER_WIDE: Final = UpdateMode.CLUSTER_WIDE


@attrs.frozen
class ConfigKey:
    """A config: its type under Kafka's name, its default (or None), its validator and its use here.

    `synonyms` are the broker configs that a topic config falls back on; the first one that is set counts. `update`
    concerns configs of brokers: those of other resources are set in the metadata log alone. One that is `internal` is
    described only where it is set.
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
        """Whether its value is a secret."""
        return self.type == "PASSWORD"

    def parse(self, text: str) -> Any:
        """Parse a value; ValueError with the reason if the config can't have it."""
        value = self.typed(text)
        problem = None if self.check is None else self.check(value)
        if problem is not None:
            raise ValueError(problem)
        return value

    def typed(self, text: str) -> Any:
        """A value of its type, whether or not the config may have it; ValueError for one of another type."""
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
        """Why a value has no effect here; None where it has, or is the default."""
        match self.use:
            case Ignored() as ignored:
                return None if self._is_default(text) else ignored
            case Heeded(but=but):
                values = [trim(value) for value in text.split(",")] if but else []
                return next((but[value] for value in values if value in but), None)
        return None

    def _is_default(self, text: str) -> bool:
        try:
            return self.default is not None and bool(self.typed(text) == self.typed(self.default))
        except ValueError:
            return False
