"""The kinds of things that have a value at an offset: their keys, states and values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import attrs

from kraftlake.image.features_image import METADATA_VERSION
from kraftlake.image.json_form import (
    JsonForm,
    acl_json,
    broker_json,
    delegation_token_json,
    partition_json,
    scram_json,
)
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.replay.loader.quorum_state import QuorumState, voters_json


@attrs.frozen(kw_only=True)
class Kind:
    """A kind of thing: the form of its paths, its keys and states in an image, and the JSON form of a state."""

    form: str
    keys: Callable[[MetadataImage], Iterable[Any]]
    """The keys in an image; for partitions the names of their topics."""
    look: Callable[[MetadataImage, Any], Any]
    """The state of a key in an image; None where the image does not have the key."""
    json: Callable[[Any], Any] = lambda state: state
    compared: Callable[[Any], Any] = lambda state: state
    """A value that differs between two states where their JSON forms differ, and is quickly made."""
    fields: JsonForm | None = None
    """The fields of a state that are things of their own."""
    in_quorum: Callable[[QuorumState, Any], Any] | None = None
    """The state of a key that no image has, but the quorum."""


def _partition(image: MetadataImage, key: Any) -> Any:
    topic = image.topics.get_topic(key[0])
    return None if topic is None else topic.partitions.get(key[1])


def _feature(image: MetadataImage, name: str) -> int | None:
    if name == METADATA_VERSION:
        version = image.features.metadata_version
        return None if version is None else version.level
    return image.features.finalized_versions.get(name)


def _quota(image: MetadataImage, key: Any) -> float | None:
    quotas = image.client_quotas.entities.get(key[0])
    return None if quotas is None else quotas.quotas.get(key[1])


def _config_keys(image: MetadataImage) -> list[Any]:
    resources = sorted(image.configs.resource_data.items(), key=lambda item: item[0])
    return [(resource, name) for resource, configs in resources for name in configs.data]


KINDS: Final[Mapping[str, Kind]] = {
    "topic": Kind(
        form="topic/NAME",
        keys=lambda image: image.topics.topics_by_name(),
        look=lambda image, name: image.topics.get_topic(name),
        json=lambda _: True,
        compared=lambda _: True,
    ),
    "partition": Kind(
        form="topic/NAME/partition/N[/FIELD]",
        keys=lambda image: image.topics.topics_by_name(),
        look=_partition,
        json=partition_json,
        fields=partition_json,
    ),
    "broker": Kind(
        form="broker/ID[/FIELD]",
        keys=lambda image: sorted(image.cluster.brokers),
        look=lambda image, id_: image.cluster.brokers.get(id_),
        json=broker_json,
        compared=broker_json,
        fields=broker_json,
    ),
    "config": Kind(
        form="config/TYPE/RESOURCE/NAME",
        keys=_config_keys,
        look=lambda image, key: image.configs.config_map(key[0]).get(key[1]),
    ),
    "feature": Kind(
        form="feature/NAME",
        keys=lambda image: (METADATA_VERSION, *sorted(image.features.finalized_versions)),
        look=_feature,
    ),
    "acl": Kind(
        form="acl/ID",
        keys=lambda image: image.acls.acls,
        look=lambda image, id_: image.acls.acls.get(id_),
        json=acl_json,
    ),
    "quota": Kind(
        form="quota/user|client-id|ip/NAME[/…]/QUOTA",
        keys=lambda image: [(entity, key) for entity, one in image.client_quotas.in_order() for key in one.quotas],
        look=_quota,
    ),
    "scram": Kind(
        form="scram/USER/MECHANISM",
        keys=lambda image: [(user, number) for number, users in image.scram.mechanisms.items() for user in users],
        look=lambda image, key: image.scram.mechanisms.get(key[1], {}).get(key[0]),
        json=scram_json,
    ),
    "token": Kind(
        form="token/ID",
        keys=lambda image: image.delegation_tokens.tokens,
        look=lambda image, id_: image.delegation_tokens.tokens.get(id_),
        json=delegation_token_json,
    ),
    "voter": Kind(
        form="voter/ID",
        keys=lambda _: (),
        look=lambda _, __: None,
        in_quorum=lambda quorum, id_: voters_json(quorum.voters).get(id_),
    ),
}

FORMS: Final[Mapping[str, str]] = {name: kind.form for name, kind in KINDS.items()}
"""The form of the paths of each kind of thing."""


def fields_of(kind: str) -> tuple[str, ...]:
    """The fields of a kind of thing, as the image's JSON names them; empty for kinds that are a single value."""
    fields = KINDS[kind].fields
    return () if fields is None else fields.keys
