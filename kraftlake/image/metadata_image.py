"""The whole cluster at one offset."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any, ClassVar, Final

import attrs

from kraftlake.image.acls_image import AclsImage
from kraftlake.image.client_quotas_image import ClientQuotasImage
from kraftlake.image.cluster_image import ClusterImage
from kraftlake.image.configurations_image import ConfigurationsImage
from kraftlake.image.delegation_token_image import DelegationTokenImage
from kraftlake.image.features_image import FeaturesImage
from kraftlake.image.producer_ids_image import ProducerIdsImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.image.scram_image import ScramImage, mechanism_name
from kraftlake.image.short_repr import counted
from kraftlake.image.topics.topic_image import TopicImage
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.image.writer_options import ImageWriterOptions, LossHandler, refuse_loss
from kraftlake.records.encoded_values import EncodedValues
from kraftlake.records.fast_construct import mutable_class
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.runtime.errors import UnwritableMetadataError


@attrs.frozen(kw_only=True, weakref_slot=False)
class MetadataImage:
    """The state of the cluster up to `provenance`. Immutable; images share the objects of equal parts.

    Source: org.apache.kafka.image.MetadataImage.
    """

    EMPTY: ClassVar[MetadataImage]

    provenance: MetadataProvenance = MetadataProvenance.EMPTY
    features: FeaturesImage = FeaturesImage.EMPTY
    cluster: ClusterImage = ClusterImage.EMPTY
    topics: TopicsImage = TopicsImage.EMPTY
    configs: ConfigurationsImage = ConfigurationsImage.EMPTY
    client_quotas: ClientQuotasImage = ClientQuotasImage.EMPTY
    producer_ids: ProducerIdsImage = ProducerIdsImage.EMPTY
    acls: AclsImage = AclsImage.EMPTY
    scram: ScramImage = ScramImage.EMPTY
    delegation_tokens: DelegationTokenImage = DelegationTokenImage.EMPTY

    def __repr__(self) -> str:
        held = counted(
            brokers=len(self.cluster.brokers),
            topics=self.topics.topic_count,
            partitions=self.topics.partition_count,
            configured_resources=len(self.configs.resource_data),
            ACLs=len(self.acls.acls),
        )
        return f"<MetadataImage at offset {self.offset}: {held}>"

    def _repr_html_(self) -> str:
        from kraftlake.runtime.html import html_table

        version = self.features.metadata_version
        fenced = sum(broker.fenced for broker in self.cluster.brokers.values())
        facts = {
            "cluster": self.provenance.cluster_id or "unknown",
            "metadata.version": "unknown" if version is None else version.name,
            "brokers": f"{len(self.cluster.brokers):,}" + (f", {fenced:,} fenced" if fenced else ""),
            "controllers": len(self.cluster.controllers),
            "topics": self.topics.topic_count,
            "partitions": self.topics.partition_count,
            "configured resources": len(self.configs.resource_data),
            "ACLs": len(self.acls.acls),
        }
        return html_table(facts.items(), caption=f"MetadataImage at offset {self.offset}")

    def to_json(self, *, show_secrets: bool = False, only_topics: Iterable[str] | None = None) -> dict[str, Any]:
        """The object that `kraftlake image --json` prints: dicts, lists, strings and numbers.

        Secrets are `(redacted)` unless `show_secrets`. With `only_topics`, names of topics, other topics are left out;
        configs of all topics are shown.
        """
        return self.provenance.to_json() | image_to_json(self, show_secrets, only_topics=only_topics)

    @property
    def offset(self) -> int:
        """The last offset that the image holds, -1 for none."""
        return self.provenance.offset

    def is_empty(self) -> bool:
        """Whether all parts are empty, at any offset."""
        return all(part.is_empty() for part in _PARTS_OF(self))

    def with_parts(self, provenance: MetadataProvenance, parts: Mapping[str, Any]) -> MetadataImage:
        """The image at `provenance` with other parts, by their names; the same image if nothing differs."""
        if all(getattr(self, name) is part for name, part in parts.items()) and provenance == self.provenance:
            return self
        made = _new(_Mutable)  # built fast, since every batch of a log makes one
        for name, part in zip(_PARTS, _PARTS_OF(self), strict=True):
            setattr(made, name, part)
        for name, part in parts.items():
            setattr(made, name, part)
        made.provenance = provenance
        made.__class__ = MetadataImage
        return made  # type: ignore[no-any-return]

    def writer_options(self, *, loss_handler: LossHandler = refuse_loss) -> ImageWriterOptions:
        """The options for the image's own features; UnwritableMetadataError if it has no metadata.version."""
        version = self.features.metadata_version
        if version is None:
            raise UnwritableMetadataError(
                f"The image at offset {self.offset} has no metadata.version, which decides how records are written: "
                "take a later offset."
            )
        return ImageWriterOptions(
            metadata_version=version, elr_enabled=self.features.is_elr_enabled, loss_handler=loss_handler
        )

    def write(self, options: ImageWriterOptions | None = None) -> Iterator[ApiMessageAndVersion]:
        """The records that make this image from the empty image, as in a snapshot, in a fixed order.

        Without `options`, they are written at the image's own metadata.version, and a loss is an error. Raises
        UnwritableMetadataError if there is no metadata.version, or from the loss handler.
        """
        options = options or self.writer_options()
        yield from self.write_before_topics(options)
        yield from self.topics.write(options)
        yield from self.write_after_topics(options)

    def write_bulk(self, options: ImageWriterOptions) -> Iterator[ApiMessageAndVersion | EncodedValues]:
        """The records of `write` in the same order, the topics of a large image encoded in bulk; raises as `write`."""
        yield from self.write_before_topics(options)
        yield from self.topics.write_bulk(options)
        yield from self.write_after_topics(options)

    def write_before_topics(self, options: ImageWriterOptions) -> Iterator[ApiMessageAndVersion]:
        """The records of the parts that precede the topics in a snapshot."""
        yield from self.features.write(options)
        yield from self.cluster.write(options)

    def write_after_topics(self, options: ImageWriterOptions) -> Iterator[ApiMessageAndVersion]:
        """The records of the parts that follow the topics in a snapshot."""
        yield from self.configs.write()
        yield from self.client_quotas.write()
        yield from self.producer_ids.write()
        yield from self.acls.write()
        yield from self.scram.write(options)
        yield from self.delegation_tokens.write(options)


_PARTS: Final = tuple(field.name for field in attrs.fields(MetadataImage) if field.name != "provenance")
_PARTS_OF: Final[Callable[[MetadataImage], tuple[Any, ...]]] = attrgetter(*_PARTS)
_Mutable: Any = mutable_class(MetadataImage)
_new: Any = object.__new__
MetadataImage.EMPTY = MetadataImage()


def image_to_json(
    image: MetadataImage, show_secrets: bool = False, *, only_topics: Iterable[str] | None = None
) -> dict[str, Any]:
    """The image as plain dicts, lists, strings and numbers; numbers that are keys are strings.

    Secrets (see `records.redaction`) are `(redacted)` unless `show_secrets`. `only_topics`, if given, has the
    names of the topics to show; configs of all topics are shown.
    """
    from kraftlake.image import json_form as form  # small commands print no image

    version = image.features.metadata_version
    acls = {str(id_): acl for id_, acl in image.acls.acls.items()}
    scram = form.scram_json if show_secrets else form.redacted_scram_json
    token = form.delegation_token_json if show_secrets else form.redacted_token_json
    return {
        "offset": image.provenance.offset,
        "epoch": image.provenance.epoch,
        "metadataVersion": None if version is None else form.metadata_version_json(version),
        "features": dict(sorted(image.features.finalized_versions.items())),
        "elrEnabled": image.features.is_elr_enabled,
        "brokers": {str(id_): form.broker_json(broker) for id_, broker in sorted(image.cluster.brokers.items())},
        "controllers": {str(id_): form.controller_json(c) for id_, c in sorted(image.cluster.controllers.items())},
        "topics": {
            name: {
                "id": str(topic.id),
                "partitions": {str(id_): form.partition_json(p) for id_, p in sorted(topic.partitions.items())},
            }
            for name, topic in _topics(image.topics, only_topics)
        },
        "configs": form.configs_json(image.configs.resource_data, show_secrets),
        "clientQuotas": [form.client_quota_json(entity, quota) for entity, quota in image.client_quotas.in_order()],
        "nextProducerId": image.producer_ids.next_producer_id,
        "acls": {id_: form.acl_json(acls[id_]) for id_ in sorted(acls)},
        "scram": {
            mechanism_name(mechanism): {user: scram(users[user]) for user in sorted(users)}
            for mechanism, users in sorted(image.scram.mechanisms.items(), key=lambda item: item[0])
        },
        "delegationTokens": {
            id_: token(image.delegation_tokens.tokens[id_]) for id_ in sorted(image.delegation_tokens.tokens)
        },
    }


def _topics(topics: TopicsImage, only: Iterable[str] | None) -> Iterator[tuple[str, TopicImage]]:
    """The topics by name."""
    if only is None:
        yield from sorted(topics.topics_by_name().items())
        return
    for name in sorted(only):
        topic = topics.get_topic(name)
        if topic is not None:
            yield name, topic
