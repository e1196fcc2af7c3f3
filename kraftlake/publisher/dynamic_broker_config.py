"""The settings of a running broker: its property file, overridden by dynamic settings of all brokers and of itself.

Source: kafka.server.DynamicBrokerConfig.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from kraftlake.image.configurations_image import ConfigResource, ConfigurationsImage
from kraftlake.publisher.dynamic_configs import ConfigType
from kraftlake.publisher.effective_settings import EffectiveSettings
from kraftlake.settings.dynamic_settings import sound_settings
from kraftlake.settings.topic_configs import TOPIC_CONFIGS

_IN_UNITS: Final = {
    name: key.synonyms
    for key in TOPIC_CONFIGS.values()
    for name in key.synonyms
    if name != "log.flush.scheduler.interval.ms"
}
"""All settings for the same quantity in different units, by the name of each, the finest unit first."""


def in_units(name: str) -> Sequence[str]:
    """The settings for the same quantity as `name`, including itself."""
    return _IN_UNITS.get(name, (name,))


@attrs.frozen(kw_only=True)
class DynamicBrokerConfig:
    """A broker's settings by source; dynamic settings include only those that a broker uses.

    A controller accepts any setting, so another tool may have set an invalid one: it counts as not set.
    """

    static: Mapping[str, str]
    of_all: Mapping[str, str]
    own: Mapping[str, str]

    @classmethod
    def of(cls, static: Mapping[str, str], broker_id: int, image: ConfigurationsImage) -> DynamicBrokerConfig:
        """The settings of a broker in an image."""
        own, of_all = (image.config_map(ConfigResource(ConfigType.BROKER, name)) for name in (str(broker_id), ""))
        return cls(static=static, of_all=sound_settings(of_all, of_all=True), own=sound_settings(own, of_all=False))

    @property
    def effective(self) -> EffectiveSettings:
        """The effective settings; a dynamic one takes the place of those in other units (overrideProps)."""
        values = dict(self.static)
        for layer in (self.of_all, self.own):
            for name, value in layer.items():
                for other in in_units(name):
                    values.pop(other, None)
                values[name] = value
        return EffectiveSettings(values)

    def while_running(self, name: str) -> Any:
        """The value of a setting that counts only if it was set while the cluster runs; None if not set."""
        made = {**self.of_all, **self.own}
        return EffectiveSettings(made)[name] if name in made else None
