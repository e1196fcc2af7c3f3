"""The configs in effect; their layers are held against Kafka's own answers in tests/interop/test_kafka_effective.py."""

from __future__ import annotations

from typing import Any

import pytest

from kraftlake.api import Source
from kraftlake.records import metadata_records as r
from kraftlake.runtime.errors import NoSuchThingError, UsageError
from tests.diagnosis.test_thing_changes import source_of
from tests.replay import made_logs as log

TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32


def config(kind: int, resource: str, name: str, value: str) -> r.ConfigRecord:
    return r.ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=value)


def broker(number: int) -> r.RegisterBrokerRecord:
    return r.RegisterBrokerRecord(broker_id=number, incarnation_id=log.uuid_of(number), broker_epoch=number)


def cluster(*configs: r.ConfigRecord) -> Source:
    return source_of(
        log.log_of(
            1, [log.metadata_version()], [broker(1), broker(2), log.topic(1, "foo")], *([one] for one in configs)
        )
    )


def layers(source: Source, subject: str, name: str, **options: Any) -> list[tuple[str, str | None, str]]:
    """The layers of one config, and its value before them."""
    (found,) = source.effective_configs(subject, [name], **options)
    form = found.to_json()
    assert form["source"] == (form["synonyms"][0]["source"] if form["synonyms"] else "DEFAULT_CONFIG")
    return [
        (name, form["value"], form["setBy"]),
        *((one["name"], one["value"], one["source"]) for one in form["synonyms"]),
    ]


def test_a_topic_has_its_own_configs_then_those_of_the_broker_of_all_of_the_file_and_of_kafka() -> None:
    source = cluster(
        config(BROKER, "", "log.retention.ms", "3000"), config(BROKER, "1", "log.retention.ms", "2000"),
        config(TOPIC, "foo", "retention.ms", "1000"),
    )  # fmt: skip
    static = {"log.retention.hours": "2"}
    assert layers(source, "topic/foo", "retention.ms", broker=1, static=static) == [
        ("retention.ms", "1000", "config/TOPIC/foo/retention.ms"),
        ("retention.ms", "1000", "DYNAMIC_TOPIC_CONFIG"),
        ("log.retention.ms", "2000", "DYNAMIC_BROKER_CONFIG"),
        ("log.retention.ms", "3000", "DYNAMIC_DEFAULT_BROKER_CONFIG"),
        ("log.retention.hours", "2", "STATIC_BROKER_CONFIG"),
        ("log.retention.hours", "168", "DEFAULT_CONFIG"),
    ]
    before = [one.to_json() for one in source.effective_configs("topic/foo", ["retention.ms"], broker=2, at=5)]
    assert [(one["value"], one["setBy"]) for one in before] == [("3000", "config/BROKER//log.retention.ms")]
    (of_file,) = source.effective_configs("topic/foo", ["retention.ms"], static=static, at=4)
    assert (of_file.config.value, of_file.set_by) == ("7200000", None)


def test_a_brokers_configs_are_its_own_then_those_of_all() -> None:
    source = cluster(config(BROKER, "", "num.io.threads", "9"), config(BROKER, "2", "num.io.threads", "7"))
    assert layers(source, "broker/2", "num.io.threads")[0][1:] == ("7", "config/BROKER/2/num.io.threads")
    assert layers(source, "broker/1", "num.io.threads")[0][1:] == ("9", "config/BROKER//num.io.threads")
    assert [one.config.name for one in source.effective_configs("broker/")] == ["num.io.threads"]


def test_what_the_log_sets_and_brokers_refuse_does_not_count() -> None:
    source = cluster(config(BROKER, "", "num.io.threads", "many"), config(BROKER, "", "broker.rack", "a"))
    assert layers(source, "broker/1", "num.io.threads")[0][1] == "8"
    assert source.effective_configs("broker/") == []


def test_groups_and_subscriptions_have_configs() -> None:
    source = cluster(
        config(GROUP, "g", "consumer.session.timeout.ms", "46000"), config(CLIENT_METRICS, "m", "interval.ms", "10000"),
        config(BROKER, "", "group.share.record.lock.duration.ms", "20000"),
    )  # fmt: skip
    assert layers(source, "group/g", "consumer.session.timeout.ms")[0][1] == "46000"
    assert layers(source, "group/other", "consumer.session.timeout.ms")[0][1] == "45000"
    assert layers(source, "client-metrics/m", "interval.ms")[0][1:] == ("10000", "config/CLIENT_METRICS/m/interval.ms")


def test_secrets_are_redacted_and_so_are_settings_of_unknown_plugins() -> None:
    source = cluster(config(BROKER, "1", "listener.name.x.ssl.keystore.password", "hush"))
    static = {"ssl.key.password": "hush", "my.plugin": "hush"}
    found = source.effective_configs("broker/1", static=static)
    assert [one.config.name for one in found if "hush" in str(one.to_json())] == []
    shown = {one.config.name for one in found if "hush" in str(one.to_json(show_secrets=True))}
    assert shown == {"ssl.key.password", "my.plugin", "listener.name.x.ssl.keystore.password"}


@pytest.mark.parametrize(
    ("subject", "options", "error", "sentence"),
    [
        ("topic/fo", {}, NoSuchThingError, "There is no topic fo at offset 4: did you mean foo?"),
        ("broker/9", {}, NoSuchThingError, "There is no broker 9 at offset 4: registered nodes are 1 and 2."),
        ("topic/foo", {"broker": 9}, NoSuchThingError, "There is no broker 9"),
        ("topic/foo", {"names": ["retenton.ms"]}, NoSuchThingError, "did you mean retention.ms"),
        ("topic/foo", {"static": {"log.retention.ms": "x"}}, UsageError, "log.retention.ms can't be 'x'"),
        ("topics/foo", {}, UsageError, "did you mean topic?"),
        ("client/user/a", {}, UsageError, "names nothing that has configs"),
        ("broker/one", {}, UsageError, "'one' is not a broker's id"),
        ("topic/", {}, UsageError, "it reads topic/NAME"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_an_error(subject: str, options: Any, error: type[Exception], sentence: str) -> None:
    source = source_of(log.log_of(1, [log.metadata_version()], [broker(1), broker(2), log.topic(1, "foo")]))
    with pytest.raises(error) as raised:
        source.effective_configs(subject, **options)
    assert sentence in str(raised.value)
