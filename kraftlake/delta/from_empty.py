"""The change from the empty image to another one."""

from __future__ import annotations

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.metadata_image import MetadataImage


def delta_from_empty(image: MetadataImage) -> MetadataDelta:
    """The metadata delta from the empty image to `image`: the first update of a new publisher.

    Equal to replaying `image.write()`, but without records, so that it holds state that the metadata.version can't
    write. Every part has a delta, even if empty.
    Source: org.apache.kafka.image.loader.MetadataLoader.initializeNewPublishers.
    """
    delta = MetadataDelta(MetadataImage.EMPTY)
    features = delta.get_or_create("features")
    features.metadata_version_change = image.features.metadata_version
    features.changes.update(image.features.finalized_versions)
    cluster = delta.get_or_create("cluster")
    cluster.changed_brokers.update(image.cluster.brokers)
    cluster.changed_controllers.update(image.cluster.controllers)
    delta.get_or_create_topics_delta().take_all_of(image.topics)
    configs = delta.get_or_create_configs_delta().changes
    for resource, configuration in image.configs.resource_data.items():
        configs[resource].changes.update(configuration.data)
    quotas = delta.get_or_create("client_quotas").changes
    for entity, quota in image.client_quotas.entities.items():
        quotas[entity].changes.update(quota.quotas)
    delta.get_or_create("producer_ids").next_producer_id = image.producer_ids.next_producer_id
    delta.get_or_create("acls").changes.update(image.acls.acls)
    scram = delta.get_or_create("scram")
    for mechanism, users in image.scram.mechanisms.items():
        scram.changes[mechanism] = dict(users.items())
    delta.get_or_create("delegation_tokens").changes.update(image.delegation_tokens.tokens)
    return delta
