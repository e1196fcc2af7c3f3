"""Changes of topic configs, from the metadata to the logs."""

from __future__ import annotations

import pytest

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.publisher.dynamic_configs import ConfigType, DynamicConfigPublisher
from kraftlake.records import metadata_records as r
from kraftlake.replica_manager.errors import NotEnoughReplicasError
from kraftlake.replica_manager.logs.log_config import LogConfig
from kraftlake.replica_manager.partition.leader import append_records_to_leader
from kraftlake.replica_manager.replication_quota import ReplicationQuota
from kraftlake.replica_manager.requests.log_dir_moves import alter_replica_log_dirs
from kraftlake.replica_manager.topic_config_handler import TopicConfigHandler
from kraftlake.runtime.errors import UsageError
from simulator.data_batches import batch
from tests.replay.loader.test_metadata_loader import Faults
from tests.replica_manager.brokers import BAR, Broker, partition, started, topic, tp


def configure(me: Broker, **configs: str | None) -> Faults:
    """The broker applies configs of topic foo, by names with _ for dots."""
    faults, delta = Faults(), MetadataDelta(me.view.image)
    for name, value in configs.items():
        delta.replay(r.ConfigRecord(resource_type=2, resource_name="foo", name=name.replace("_", "."), value=value))
    me.view.image = image = delta.apply(me.view.image.provenance)
    handler = TopicConfigHandler(1, me.logs, leader_quota=me.quota, follower_quota=None)
    publisher = DynamicConfigPublisher(1, {ConfigType.TOPIC: handler}, faults)
    publisher.on_metadata_update(delta, image, None)
    return faults


def leading() -> Broker:
    me = started(
        topic(),
        partition(leader=1, isr=(1,)),
        topic("bar", BAR),
        partition(leader=1, isr=(1,), topic_id=BAR),
        moving=True,
    )
    me.quota = ReplicationQuota(me.clock)
    return me


def test_a_changed_config_reaches_logs_and_future_logs_and_a_removed_one_has_its_default():
    me = leading()
    alter_replica_log_dirs(me.manager, {tp(): "d2"})
    led = me.partition()
    append_records_to_leader(led, batch(b"x"))
    configure(
        me, min_insync_replicas="2", retention_ms=" 1000 ", cleanup_policy="compact,delete", segment_bytes="1048576"
    )
    assert led.local_log.config == led.future_log.config
    assert led.local_log.config == LogConfig(
        min_insync_replicas=2, retention_ms=1000, cleanup_policy=("compact", "delete"), segment_bytes=1048576
    )
    with pytest.raises(NotEnoughReplicasError):
        append_records_to_leader(led, batch(b"x"))
    configure(me, min_insync_replicas=None, cleanup_policy=None)  # a compacted log would take no record without a key
    append_records_to_leader(led, batch(b"x"))
    assert led.local_log.config.retention_ms == 1000


def test_a_log_created_later_has_the_configs_of_the_newest_metadata():
    me = leading()
    configure(me, min_insync_replicas="3")
    me.hear(partition(1, leader=1, isr=(1,)))
    assert me.partition(1).local_log.config.min_insync_replicas == 3
    assert me.logs.get_log(tp(0, "bar")) is not None
    assert me.logs.get_log(tp(0, "bar")).config == LogConfig()


def test_the_throttled_replicas_of_a_topic_are_set_and_released():
    me = leading()
    name = "leader.replication.throttled.replicas"
    configure(me, **{name: "0:1,1:2"})
    assert me.quota.is_throttled(TopicPartition("foo", 0))
    assert not me.quota.is_throttled(TopicPartition("foo", 1))
    configure(me, **{name: None})
    assert not me.quota.is_throttled(TopicPartition("foo", 0))


def test_an_invalid_value_leaves_the_logs_unchanged_and_is_reported():
    me = leading()
    faults = configure(me, min_insync_replicas="2", retention_ms="1_000")
    assert len(faults.handled) == 1
    assert me.partition().local_log.config == LogConfig()


@pytest.mark.parametrize(
    ("name", "value"),
    [("retention.ms", "soon"), ("preallocate", "yes"), ("min.cleanable.dirty.ratio", "nan"), ("segment.ms", "3\u2003")],
)
def test_values_have_the_type_of_their_config(name, value):
    with pytest.raises(UsageError, match=name):
        LogConfig().overridden({name: value})


def test_values_are_read_by_javas_rules():
    config = LogConfig().overridden({"segment.ms": "\x01\u0663\n", "cleanup.policy": "compact ,\tdelete"})
    assert config == LogConfig(segment_ms=3, cleanup_policy=("compact", "delete"))


def test_configs_without_a_field_are_ignored():
    config = LogConfig().overridden({"preallocate": "TRUE", "min.cleanable.dirty.ratio": "0.1f", "remote.x": "y"})
    assert config == LogConfig(preallocate=True, min_cleanable_dirty_ratio=0.1)
