"""Which configs of a log are warned of, and how often."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from kraftlake.publisher.ignored_configs import IgnoredConfigs, IgnoredConfigsPublisher, configs_without_effect
from kraftlake.records import metadata_records as r
from kraftlake.records.schema import Message
from kraftlake.replay.loader.manifest import LeaderAndEpoch
from tests.publisher.updates import Cluster, cluster

TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
NOT_AT_ONCE = "segments grow as they are written"
NO_GROUPS = "consumer, share and streams groups are not served"


def config(kind: int, resource: str, name: str, value: str | None) -> r.ConfigRecord:
    return r.ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=value)


def sentences(made: Cluster, *changes: Message) -> list[str]:
    before = made.image
    made.change(*changes)
    return [one.sentence for one in sorted(configs_without_effect(before, made.image))]


QUOTA = r.ClientQuotaRecord(
    entity=(
        r.EntityData(entity_type="user", entity_name="bob"), r.EntityData(entity_type="client-id", entity_name=None)
    ),
    key="producer_byte_rate", value=1.0, remove=False,
)  # fmt: skip


@pytest.mark.parametrize(
    ("record", "whose", "reason"),
    [
        (config(TOPIC, "a", "preallocate", "true"), "topic a", NOT_AT_ONCE),
        (config(BROKER, "", "log.preallocate", "true"), "all brokers", NOT_AT_ONCE),
        (
            config(BROKER, "1", "num.partitions", "2"), "broker 1",
            "a node heeds it at its start alone, from its properties file",
        ),
        (
            config(BROKER, "", "cordoned.log.dirs", "/x"), "all brokers",
            "cordoned.log.dirs can't be set for all brokers: name one",
        ),
        (config(GROUP, "g", "consumer.session.timeout.ms", "50000"), "group g", NO_GROUPS),
        (config(CLIENT_METRICS, "m", "metrics", "a"), "client metrics m", "client telemetry is not collected"),
    ],
)  # fmt: skip
def test_what_has_no_effect_has_its_reason(record: r.ConfigRecord, whose: str, reason: str) -> None:
    assert sentences(cluster(), record) == [f"{record.name} of {whose} has no effect: {reason}"]


@pytest.mark.parametrize(
    "record",
    [
        config(TOPIC, "a", "cleanup.policy", "compact"), config(TOPIC, "a", "retention.ms", "5"),
        config(TOPIC, "a", "preallocate", "false"), config(TOPIC, "a", "no.such", "1"),
        config(BROKER, "", "log.retention.ms", "5"), QUOTA,
    ],
)  # fmt: skip
def test_what_is_heeded_or_the_default_or_unknown_is_not_warned_of(record: Message) -> None:
    assert sentences(cluster(), record) == []


def test_what_is_removed_or_stays_is_not_given_again() -> None:
    made = cluster(config(TOPIC, "a", "preallocate", "true"), config(TOPIC, "b", "preallocate", "true"))
    assert sentences(made, config(TOPIC, "a", "preallocate", None)) == []
    assert len(sentences(made, config(TOPIC, "a", "preallocate", "true"))) == 1


def test_each_config_of_a_resource_is_given_once() -> None:
    made, configs = cluster(config(TOPIC, "a", "preallocate", "true")), IgnoredConfigs()
    assert [one.resource for one in configs.newly_set(made.image)] == ["topic a"]
    made.change(config(TOPIC, "a", "preallocate", "TRUE"), config(TOPIC, "b", "preallocate", "true"))
    assert [one.resource for one in configs.newly_set(made.image)] == ["topic b"]
    assert configs.newly_set(made.image) == []


def test_a_node_logs_what_it_finds_at_its_start_and_later_what_is_new_while_it_leads() -> None:
    made, publisher = cluster(config(TOPIC, "a", "preallocate", "true")), IgnoredConfigsPublisher(7)
    with capture_logs() as logs:
        made.introduce(publisher)
        made.change(config(TOPIC, "b", "preallocate", "true"))
        publisher.on_controller_change(LeaderAndEpoch(leader_id=7, epoch=3))
        made.change(config(TOPIC, "c", "preallocate", "true"))
    found = [(one["event"], one["log_level"], one["resource"], one["config"], one["why"]) for one in logs]
    event = ("config_without_effect", "warning")
    assert found == [(*event, topic, "preallocate", NOT_AT_ONCE) for topic in ("topic a", "topic c")]
