"""A quota plug-in is called for changes of topics and brokers only."""

from __future__ import annotations

import attrs

from kraftlake.publisher.cluster_view import Cluster as ClientCluster
from kraftlake.publisher.topic_cluster_quotas import DynamicTopicClusterQuotaPublisher
from kraftlake.records import metadata_records as r
from tests.publisher.updates import broker, cluster, topic_of


@attrs.define
class Plugin:
    """Halves a quota, so to speak, whenever there is more than one node."""

    seen: list[ClientCluster] = attrs.field(factory=list)

    def update_cluster_metadata(self, cluster: ClientCluster) -> bool:
        self.seen.append(cluster)
        return len(cluster.nodes) > 1


def test_a_plugin_is_called_for_each_change_of_topics_and_brokers() -> None:
    plugin, changes = Plugin(), list[int]()
    publisher = DynamicTopicClusterQuotaPublisher("abc", plugin, lambda: changes.append(len(plugin.seen)))
    made = cluster(parts=(publisher,))
    plugin.seen.clear()  # a new metadata.version concerns everything
    made.change(broker(1))
    made.change(r.ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value="1"))
    made.change(*topic_of("orders", 1, (1, (1,))), *topic_of("__consumer_offsets", 2, (-1, (1,))))
    assert len(plugin.seen) == 2, "configs are no business of it"
    assert changes == [], "it said that no quota has changed"
    made.change(broker(2, "PLAINTEXT", "SASL"))
    assert changes == [3], "the third one"
    last = plugin.seen[-1]
    assert (last.cluster_id, [node.id for node in last.nodes]) == ("abc", [1, 2, 2])
    assert [(info.topic, info.leader.id) for info in last.partitions] == [("orders", 1)]
    assert last.internal_topics == frozenset(), "nobody leads it"
