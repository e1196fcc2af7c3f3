from __future__ import annotations

from collections.abc import Mapping

from kraftlake.publisher.dynamic_configs import ConfigType, DynamicConfigPublisher
from kraftlake.records import metadata_records as r
from tests.publisher.updates import cluster, topic_of
from tests.replay.loader.test_metadata_loader import Faults
from tests.replay.made_logs import uuid_of


def config(kind: int, name: str, key: str, value: str | None) -> r.ConfigRecord:
    return r.ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value)


class RecordingHandler:
    def __init__(self, fail_at: str | None = None) -> None:
        self.changes: list[tuple[str, dict[str, str]]] = []
        self._fail_at = fail_at

    def process_config_changes(self, name: str, configs: Mapping[str, str]) -> None:
        self.changes.append((name, dict(configs.items())))
        if name == self._fail_at:
            raise RuntimeError("secret-value is not a number")


def test_each_type_has_its_handler_and_of_brokers_only_this_one_and_the_default_are_handled() -> None:
    handlers = {kind: RecordingHandler() for kind in ConfigType}
    publisher = DynamicConfigPublisher(3, handlers, Faults())
    made = cluster(parts=(publisher,))
    made.change(
        config(2, "foo", "retention.ms", "1"),
        config(4, "", "log.retention.ms", "2"),
        config(4, "3", "log.retention.ms", "3"),
        config(4, "4", "log.retention.ms", "4"),
        config(16, "metrics", "interval.ms", "5"),
        config(32, "group", "consumer.session.timeout.ms", "6"),
        config(8, "3", "a.logger", "DEBUG"),
    )
    assert handlers[ConfigType.TOPIC].changes == [("foo", {"retention.ms": "1"})]
    assert handlers[ConfigType.BROKER].changes == [("", {"log.retention.ms": "2"}), ("3", {"log.retention.ms": "3"})]
    assert handlers[ConfigType.CLIENT_METRICS].changes == [("metrics", {"interval.ms": "5"})]
    assert handlers[ConfigType.GROUP].changes == [("group", {"consumer.session.timeout.ms": "6"})]


def test_a_handler_gets_all_configs_not_only_the_changed_ones() -> None:
    topics = RecordingHandler()
    made = cluster(parts=(DynamicConfigPublisher(3, {ConfigType.TOPIC: topics}, Faults()),))
    made.change(*topic_of("foo", 1), config(2, "foo", "flush.ms", "1"), config(2, "foo", "segment.ms", "2"))
    made.change(config(2, "foo", "flush.ms", None))
    made.change(r.RemoveTopicRecord(topic_id=uuid_of(1)))
    assert topics.changes == [("foo", {"flush.ms": "1", "segment.ms": "2"}), ("foo", {"segment.ms": "2"}), ("foo", {})]


def test_a_failing_handler_is_named_without_values_and_the_next_resource_is_handled() -> None:
    topics, faults = RecordingHandler(fail_at="foo"), Faults()
    made = cluster(parts=(DynamicConfigPublisher(3, {ConfigType.TOPIC: topics}, faults),))
    made.change(config(2, "foo", "flush.ms", "secret-value"), config(2, "bar", "flush.ms", "1"))
    assert [name for name, _ in topics.changes] == ["foo", "bar"]
    assert [what for what, _ in faults.handled] == ["updating topic foo with new configs of MetadataDelta up to 2"]


def test_a_resource_type_without_a_handler_is_ignored() -> None:
    faults = Faults()
    cluster(parts=(DynamicConfigPublisher(3, {}, faults),)).change(config(2, "foo", "flush.ms", "1"))
    assert faults.handled == []
