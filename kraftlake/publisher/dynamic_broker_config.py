"""The settings of a running broker: its property file, overridden by dynamic settings of all brokers and of itself.

Source: kafka.server.DynamicBrokerConfig.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from kraftlake.image.configurations_image import ConfigResource, ConfigurationsImage
from kraftlake.publisher.dynamic_configs import ConfigType
from kraftlake.publisher.effective_settings import EffectiveSettings
from kraftlake.settings.dynamic_settings import sound_settings


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
        """The effective settings."""
        return EffectiveSettings({**self.static, **self.of_all, **self.own})

    def while_running(self, name: str) -> Any:
        """The value of a setting that counts only if it was set while the cluster runs; None if not set."""
        made = {**self.of_all, **self.own}
        return EffectiveSettings(made)[name] if name in made else None
