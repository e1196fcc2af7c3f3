"""The whole cluster at one offset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import attrs

from kraftlake.image.acls_image import AclsImage
from kraftlake.image.client_quotas_image import ClientQuotasImage
from kraftlake.image.cluster_image import ClusterImage
from kraftlake.image.configurations_image import ConfigurationsImage
from kraftlake.image.delegation_token_image import DelegationTokenImage
from kraftlake.image.features_image import FeaturesImage
from kraftlake.image.producer_ids_image import ProducerIdsImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.image.scram_image import ScramImage
from kraftlake.image.short_repr import counted
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.image.writer_options import ImageWriterOptions
from kraftlake.records.encoded_values import EncodedValues
from kraftlake.records.serde import ApiMessageAndVersion


@attrs.frozen(kw_only=True)
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
        from kraftlake.image.json_form import image_to_json

        return self.provenance.to_json() | image_to_json(self, show_secrets, only_topics=only_topics)

    @property
    def offset(self) -> int:
        """The last offset that the image holds, -1 for none."""
        return self.provenance.offset

    def is_empty(self) -> bool:
        """Whether all parts are empty, at any offset."""
        parts = (getattr(self, field.name) for field in attrs.fields(MetadataImage) if field.name != "provenance")
        return all(part.is_empty() for part in parts)

    def write(self, options: ImageWriterOptions | None = None) -> Iterator[ApiMessageAndVersion]:
        """The records that make this image from the empty image, as in a snapshot, in a fixed order.

        Without `options`, they are written at the image's own metadata.version, and a loss is an error. Raises
        UnwritableMetadataError if there is no metadata.version, or from the loss handler.
        """
        options = options or ImageWriterOptions.for_image(self)
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


MetadataImage.EMPTY = MetadataImage()
