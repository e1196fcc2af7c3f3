"""The obstacles of a release: what its nodes do not start on, what they drop, and what must be done before."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote
from typing import Final

from kraftlake.controller.cluster.supported_features import SUPPORTED
from kraftlake.diagnosis.things import Thing
from kraftlake.diagnosis.upgrade.obstacle import Obstacle
from kraftlake.diagnosis.upgrade.target import NEWEST, Target, level_words
from kraftlake.image.configurations_image import ConfigResource
from kraftlake.image.features_image import METADATA_VERSION
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.records.metadata_version import MINIMUM_OF_KAFKA_4
from kraftlake.runtime.words import shown
from kraftlake.settings.tables import CONFIGS, key_of

MIGRATING: Final = {1: "PRE_MIGRATION", 2: "MIGRATION"}
"""The states of a migration from ZooKeeper that has not ended."""
_ENTITIES: Final = {"TOPIC": "topics", "BROKER": "brokers", "CLIENT_METRICS": "client-metrics", "GROUP": "groups"}


def release_obstacles(target: Target, image: MetadataImage) -> Iterator[Obstacle]:
    """The obstacles of the target's release but those of its level."""
    version = image.features.metadata_version
    obstacle = None if version is None else version_obstacle(target, version.level)
    if obstacle is not None:
        yield obstacle
    for id_, broker in sorted(image.cluster.brokers.items()):
        if broker.is_migrating_zk_broker:
            yield Obstacle(
                check="zookeeper_broker",
                sentence=f"broker {id_} is registered as one of ZooKeeper that migrates",
                things=(f"broker {id_}",),
                command=f"restart broker {id_} in KRaft mode, with the release that it runs",
                thing=Thing.broker(id_),
            )
    if target.release == NEWEST:
        yield from _of_features(image)
        yield from _of_configs(image)


def migration_obstacle(state: int) -> Obstacle | None:
    """The obstacle of a migration from ZooKeeper in a state of ZkMigrationStateRecord; None for one that has ended."""
    if state not in MIGRATING:
        return None
    return Obstacle(
        check="zookeeper_migration",
        sentence=f"the migration from ZooKeeper is in the state {MIGRATING[state]}: Kafka 4 can't finish it",
        command="finish the migration with Kafka 3.9: remove zookeeper.metadata.migration.enable from all controllers",
    )


def version_obstacle(target: Target, level: int) -> Obstacle | None:
    """The obstacle of a level of metadata.version that the target's release does not start on; None without one."""
    assert target.release is not None, "a release is asked for"
    current, least = level_words(METADATA_VERSION, level), level_words(METADATA_VERSION, MINIMUM_OF_KAFKA_4.level)
    thing = Thing("feature", METADATA_VERSION)
    if target.release >= "4" and level < MINIMUM_OF_KAFKA_4.level:
        return Obstacle(
            check="metadata_version_too_low",
            sentence=f"{METADATA_VERSION} is {current}, and Kafka 4 starts from {least} on",
            things=(METADATA_VERSION,),
            command="with Kafka 3.9: kafka-features.sh --bootstrap-server $BOOTSTRAP upgrade --metadata 3.9",
            thing=thing,
        )
    if level > target.level:
        return Obstacle(
            check="metadata_version_too_high",
            sentence=f"{METADATA_VERSION} is {current}, which Kafka {target.release} does not know",
            things=(METADATA_VERSION,),
            thing=thing,
        )
    return None


def _of_features(image: MetadataImage) -> Iterator[Obstacle]:
    """The finalized levels that the newest release does not support."""
    for name, level in sorted(image.features.finalized_versions.items()):
        supported = SUPPORTED.get(name)
        if level and (supported is None or not supported.min <= level <= supported.max):
            known = "does not know it" if supported is None else f"supports {supported.min} to {supported.max}"
            yield Obstacle(
                check="unsupported_feature",
                sentence=f"{shown(name)} is {level}: Kafka {NEWEST} {known}",
                things=(name,),
                command=f"kafka-features.sh --bootstrap-server $BOOTSTRAP downgrade --feature {quote(shown(name))}=0",
                thing=Thing("feature", name),
            )


def _of_configs(image: MetadataImage) -> Iterator[Obstacle]:
    """The configs that the newest release ignores, and the values that it refuses."""
    for resource, configs in sorted(image.configs.ignored.items()):
        for name in sorted(configs.data):
            yield Obstacle(
                check="dropped_config",
                refuses=False,
                sentence=f"{_owner(resource)} sets {shown(name)}, which Kafka {NEWEST} does not know and ignores",
                things=(_owner(resource),),
                command=_alter(resource, f"--delete-config {quote(shown(name))}"),
            )
    for resource, configs in sorted(image.configs.resource_data.items()):
        for name, value in sorted(configs.data.items()):
            key = key_of(resource.type, name) if resource.type in CONFIGS else None
            if key is None or key.is_sensitive:
                continue
            try:
                key.parse(value)
            except ValueError as problem:
                yield Obstacle(
                    check="refused_config",
                    sentence=f"{_owner(resource)} sets {name} to {shown(value)}, which Kafka {NEWEST} refuses: "
                    f"{shown(str(problem))}",
                    things=(_owner(resource),),
                    command=_alter(resource, f"--add-config {name}=VALUE"),
                    thing=Thing("config", (resource, name)),
                )


def _owner(resource: ConfigResource) -> str:
    """`topic foo`, `broker (default)`."""
    return f"{resource.type_name.lower().replace('_', ' ')} {shown(resource.name) or '(default)'}"


def _alter(resource: ConfigResource, change: str) -> str:
    entity = _ENTITIES.get(resource.type_name, resource.type_name.lower())
    whose = f"--entity-name {quote(shown(resource.name))}" if resource.name else "--entity-default"
    return f"kafka-configs.sh --bootstrap-server $BOOTSTRAP --alter --entity-type {entity} {whose} {change}"
