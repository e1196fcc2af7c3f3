"""The effective configs of a topic: its own, else a broker's setting or Kafka's default.

Source: ServerTopicConfigSynonyms, org.apache.kafka.metadata.KafkaConfigSchema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kraftlake.controller.config import ControllerConfig
from kraftlake.controller.errors import ControllerApiError
from kraftlake.image.configurations_image import BROKER_RESOURCE, TOPIC_RESOURCE, ConfigResource, ConfigurationsImage
from kraftlake.image.partition_health import MIN_ISR, min_isr_among
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.runtime.java_values import parse_integer, trim
from kraftlake.settings.topic_configs import TOPIC_CONFIGS, unit_ms


def effective_topic_config(configs: ConfigurationsImage, node: ControllerConfig, topic: str, name: str) -> str | None:
    """The effective value: the topic's, else that of the controller, the cluster, the property file or the default."""
    return next(_topic_config_values(configs, node, topic, name), None)


def effective_min_isr(configs: ConfigurationsImage, node: ControllerConfig, topic: str) -> int:
    """The effective `min.insync.replicas` of a topic; a value that is not a number is skipped for the next source."""
    return min_isr_among(_topic_config_values(configs, node, topic, MIN_ISR))


def _topic_config_values(configs: ConfigurationsImage, node: ControllerConfig, topic: str, name: str) -> Iterator[str]:
    own = configs.config_map(ConfigResource(TOPIC_RESOURCE, topic)).get(name)
    if own is not None:
        yield own
    yield from _fallbacks(fallback_sources(configs, node), name)


def fallback_sources(configs: ConfigurationsImage, node: ControllerConfig) -> tuple[Mapping[str, str], ...]:
    """The sources below a topic: the dynamic configs of the controller, those of the cluster, the property file."""
    return (
        configs.config_map(ConfigResource(BROKER_RESOURCE, str(node.node_id))),
        configs.config_map(ConfigResource(BROKER_RESOURCE, "")),
        node.static_configs,
    )


def fallback_topic_configs(sources: tuple[Mapping[str, str], ...]) -> dict[str, str | None]:
    """The effective configs of a topic without own ones, by name, without Kafka's internal configs."""
    return {name: next(_fallbacks(sources, name), None) for name in TOPIC_CONFIGS if not name.startswith("internal.")}


def static_topic_config(node: ControllerConfig, name: str) -> Any:
    """The parsed value of a topic config by the property file and the default alone."""
    return parse_static(TOPIC_CONFIGS[name].typed, name, next(_fallbacks((node.static_configs,), name)))


def parse_static(parse: Callable[[str], Any], name: str, value: str) -> Any:
    """Parse a value of the controller's property file; ControllerApiError if it is malformed."""
    try:
        return parse(value)
    except ValueError as problem:
        raise ControllerApiError(
            ErrorCode.INVALID_CONFIG, f"The controller's static_configs give {name} a malformed value: {problem}."
        ) from None


def _fallbacks(sources: tuple[Mapping[str, str], ...], name: str) -> Iterator[str]:
    key = TOPIC_CONFIGS.get(name)
    if key is None:
        return
    for source in sources:
        synonym = next((synonym for synonym in key.synonyms if synonym in source), None)
        if synonym is not None:
            yield in_milliseconds(synonym, source[synonym])
    if key.default is not None:
        yield key.default


def in_milliseconds(synonym: str, value: str) -> str:
    """Convert the value of a synonym from hours or minutes to ms; 0 for text that is not a number.

    Source: org.apache.kafka.server.config.ConfigSynonym (HOURS_TO_MILLISECONDS, valueToInt).
    """
    unit = unit_ms(synonym)
    if unit == 1:
        return value
    try:
        return str(parse_integer(trim(value), 32) * unit)
    except ValueError:
        return "0"
