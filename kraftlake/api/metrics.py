"""The metrics of a cluster at one offset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from kraftlake.image.broker_partitions import BrokerCounts, count_partitions_of_brokers
from kraftlake.image.cluster_counts import ClusterCounts, count_cluster
from kraftlake.image.cluster_health import ClusterHealth, count_health
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.runtime.html import html_table
from kraftlake.runtime.json_names import fields_as_json


@attrs.frozen(kw_only=True)
class Metrics:
    """Kafka's controller metrics, what is not as it should be, and the partitions that each broker hosts, by its id."""

    provenance: MetadataProvenance
    cluster: ClusterCounts
    health: ClusterHealth
    brokers: Mapping[int, BrokerCounts]

    @classmethod
    def of(cls, image: MetadataImage) -> Metrics:
        """The metrics of an image."""
        brokers = dict(sorted(count_partitions_of_brokers(image).items()))
        return cls(
            provenance=image.provenance, cluster=count_cluster(image), health=count_health(image), brokers=brokers
        )

    def to_json(self) -> dict[str, Any]:
        """The form of `kraftlake metrics --json`."""
        brokers = {str(id_): fields_as_json(counts) for id_, counts in self.brokers.items()}
        counts = {"metrics": self.cluster.by_metric(), "health": fields_as_json(self.health)}
        return self.provenance.to_json() | counts | {"brokers": brokers}

    def _repr_html_(self) -> str:
        return html_table(self.cluster.by_metric().items(), caption=f"Metrics at offset {self.provenance.offset}")
