"""The configs in effect, as nodes describe them, with the paths of what the log sets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from kraftlake.diagnosis.effective.subject import Subject
from kraftlake.diagnosis.things import Thing
from kraftlake.image.configurations_image import BROKER_RESOURCE, ConfigResource
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.publisher.described_configs import ConfigSource, DescribedConfig, NodeConfigs, client_metrics_configs
from kraftlake.publisher.dynamic_broker_config import DynamicBrokerConfig
from kraftlake.records.redaction import REDACTED
from kraftlake.runtime.errors import NoSuchThingError, UsageError
from kraftlake.runtime.name_patterns import matches
from kraftlake.runtime.words import did_you_mean, in_words
from kraftlake.settings.dynamic_settings import problem_of_setting
from kraftlake.settings.group_configs import GROUP_CONFIGS
from kraftlake.settings.tables import BROKER, CLIENT_METRICS, GROUP, TOPIC, key_of
from kraftlake.settings.topic_configs import TOPIC_CONFIGS

_NO_NODE: Final = -1
_FEW: Final = 10


@attrs.frozen(kw_only=True)
class EffectiveConfig:
    """A config in effect; `set_by` is the path of what the log sets, for `blame`, None where it does not."""

    config: DescribedConfig
    set_by: str | None

    def to_json(self, *, show_secrets: bool = False) -> dict[str, Any]:
        """A line of `kraftlake effective --json`; values that may be secrets are `(redacted)` unless `show_secrets`."""
        one = self.config

        def shown(value: str | None) -> str | None:
            return REDACTED if one.is_sensitive and value is not None and not show_secrets else value

        return {
            "name": one.name,
            "value": shown(one.value),
            "source": one.source.name,
            "setBy": self.set_by,
            "readOnly": one.read_only,
            "sensitive": one.is_sensitive,
            "type": None if one.key is None else one.key.type,
            "synonyms": [
                {"name": synonym.name, "value": shown(synonym.value), "source": synonym.source.name}
                for synonym in one.synonyms
            ],
        }


def effective_configs(
    image: MetadataImage,
    subject: Subject,
    *,
    broker: int | None = None,
    static: Mapping[str, str] | None = None,
    names: Sequence[str] = (),
) -> list[EffectiveConfig]:
    """The configs in effect for a subject in an image, all or those that match shell patterns.

    `static` are the settings of a node's properties file; those of topics and groups are as `broker` describes them,
    with None as a broker without configs of its own does. Raises NoSuchThingError for a topic or broker that the image
    lacks, and for patterns that no config matches; UsageError for a setting that can't have its value.
    """
    _check_known(image, subject, broker)
    _check_static(static or {})
    found = [_with_path(subject, broker, one) for one in _described(image, subject, broker, static or {})]
    if not names:
        return found
    known = [one.config.name for one in found]
    for pattern in names:
        if not any(matches(name, [pattern]) for name in known):
            hint = did_you_mean(pattern, known) or "without a name all are shown."
            raise NoSuchThingError(f"There is no config {pattern} of {subject.words}: {hint}")
    return [one for one in found if matches(one.config.name, names)]


def _described(
    image: MetadataImage, subject: Subject, broker: int | None, static: Mapping[str, str]
) -> Iterable[DescribedConfig]:
    configs = image.configs
    if subject.kind == "client-metrics":
        return client_metrics_configs(configs.config_map(ConfigResource(CLIENT_METRICS, subject.name)))
    if subject.kind == "broker" and subject.name:
        broker = int(subject.name)
    node = NodeConfigs(
        DynamicBrokerConfig.of(_of_node(static, broker), _NO_NODE if broker is None else broker, configs)
    )
    match subject.kind:
        case "topic":
            return node.of_topic(configs.config_map(ConfigResource(TOPIC, subject.name)))
        case "group":
            return node.of_group(configs.config_map(ConfigResource(GROUP, subject.name)))
        case _:
            return node.of_node() if subject.name else node.of_all_nodes()


def _of_node(static: Mapping[str, str], broker: int | None) -> Mapping[str, str]:
    """The settings of a file with those that follow from its id. Source: AbstractKafkaConfig.populateSynonyms."""
    return static if broker is None else {**static, "node.id": str(broker), "broker.id": str(broker)}


def _with_path(subject: Subject, broker: int | None, config: DescribedConfig) -> EffectiveConfig:
    node = subject.name if subject.kind == "broker" else str(broker)
    owners = {
        ConfigSource.DYNAMIC_TOPIC_CONFIG: ("TOPIC", subject.name),
        ConfigSource.DYNAMIC_GROUP_CONFIG: ("GROUP", subject.name),
        ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG: ("CLIENT_METRICS", subject.name),
        ConfigSource.DYNAMIC_BROKER_CONFIG: ("BROKER", node),
        ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG: ("BROKER", ""),
    }
    owner = owners.get(config.source)
    set_by = None if owner is None else Thing.config(*owner, config.synonyms[0].name).text
    return EffectiveConfig(config=config, set_by=set_by)


def _check_known(image: MetadataImage, subject: Subject, broker: int | None) -> None:
    where = f"at offset {image.offset}"
    if subject.kind == "topic" and image.topics.get_topic(subject.name) is None:
        near = did_you_mean(subject.name, image.topics.topics_by_name())
        raise NoSuchThingError(f"There is no topic {subject.name} {where}{f': {near}' if near else '.'}")
    nodes = sorted({*image.cluster.brokers, *image.cluster.controllers})
    asked = int(subject.name) if subject.kind == "broker" and subject.name else broker
    if asked is not None and asked not in nodes:
        known = in_words(nodes[:_FEW]) if nodes else "none"
        raise NoSuchThingError(f"There is no broker {asked} {where}: registered nodes are {known}.")


def _check_static(static: Mapping[str, str]) -> None:
    for name, value in static.items():
        key = key_of(BROKER, name)
        try:
            _ = None if key is None else key.typed(value)
        except ValueError as problem:
            raise UsageError(f"{name} can't be {value!r}: {problem}.") from None


def brokers_apart(image: MetadataImage, subject: Subject) -> list[int]:
    """The brokers whose own configs change what they describe of a topic or a group."""
    keys = TOPIC_CONFIGS if subject.kind == "topic" else GROUP_CONFIGS
    inherited = {name for key in keys.values() for name in key.synonyms} | {f"group.{name}" for name in keys}
    apart = (
        int(resource.name)
        for resource, configs in image.configs.resource_data.items()
        if resource.type == BROKER_RESOURCE and resource.name.isdecimal() and inherited & {*configs.data}
    )
    return sorted(apart) if subject.kind in ("topic", "group") else []


def without_effect(image: MetadataImage, broker: int | None) -> Iterator[str]:
    """Sentences on the settings of a broker and of all that the log has and nodes refuse: they count as not set."""
    for name in ("", *([] if broker is None else [str(broker)])):
        for config, value in sorted(image.configs.config_map(ConfigResource(BROKER_RESOURCE, name)).items()):
            problem = problem_of_setting(config, value, of_all=not name)
            if problem is not None:
                owner = f"broker {name}" if name else "all brokers"
                yield f"the log sets {config} of {owner} without effect: {problem.rstrip('.')}"
