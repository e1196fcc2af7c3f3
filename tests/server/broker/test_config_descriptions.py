"""What a broker that serves nobody says of its own configs, in the answer of a serving broker."""

from __future__ import annotations

import io
from datetime import timedelta
from typing import Any

import pytest
from kio.serial import entity_writer
from kio.static.primitive import i8, i32Timedelta

from kraftlake.delta.configurations_delta import ConfigurationsDelta
from kraftlake.image.configurations_image import ConfigurationsImage
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records import metadata_records as r
from kraftlake.server.broker.broker_config import BrokerConfig
from kraftlake.server.broker.config_descriptions import with_own_configs
from kraftlake.server.node_config import ListenerAddress
from kraftlake.server.requests.messages import encoded_answer, of_version, request_type, versions_of
from kraftlake.settings.tables import BROKER_CONFIGS
from tests.server.broker.test_refusals import framed, read

TOPIC, BROKER, LOGGER = 2, 4, 8
DYNAMIC, DYNAMIC_DEFAULT, STATIC, DEFAULT = 2, 3, 4, 5
VERSIONS = list(versions_of("describe_configs"))
CONFIG = BrokerConfig(
    broker_id=7, bootstrap="c1:9093", log_dirs=("/d1",),
    listener=ListenerAddress(name="PLAINTEXT", host="b7", port=9092),
    settings={"log.retention.hours": "48", "num.replica.fetchers": "3"},
)  # fmt: skip


def image(**configs: dict[str, str]) -> ConfigurationsImage:
    delta = ConfigurationsDelta(ConfigurationsImage.EMPTY)
    for resource, settings in configs.items():
        for name, value in settings.items():
            record = r.ConfigRecord(resource_type=BROKER, resource_name=resource[1:], name=name, value=value)
            delta.replay(record)
    return delta.apply()


def asked(version: int, *resources: tuple[int, str], names: tuple[str, ...] | None = None) -> bytes:
    kind = request_type("describe_configs", version)
    module = __import__(kind.__module__, fromlist=["x"])
    made = of_version(
        kind, include_synonyms=True, include_documentation=True,
        resources=tuple(
            module.DescribeConfigsResource(resource_type=i8(type_), resource_name=name, configuration_keys=names)
            for type_, name in resources
        ),
    )  # fmt: skip
    body = io.BytesIO()
    entity_writer(kind)(body, made)
    return framed("describe_configs", version, body.getvalue(), flexible=kind.__flexible__)


def of_another(frame: bytes, version: int, *results: tuple[int, str, ErrorCode]) -> bytes:
    module: Any = __import__(f"kio.schema.describe_configs.v{version}.response", fromlist=["x"])
    made = module.DescribeConfigsResponse(
        throttle_time=i32Timedelta.parse(timedelta(milliseconds=5)),
        results=tuple(
            module.DescribeConfigsResult(
                error_code=error, error_message="a message", resource_type=i8(type_), resource_name=name, configs=()
            )
            for type_, name, error in results
        ),
    )
    return encoded_answer(frame, made)


def described(configs: ConfigurationsImage, *names: str) -> dict[str, tuple[str | None, int, list[str]]]:
    frame = asked(4, (BROKER, "7"), names=names or None)
    answer = of_another(frame, 4, (BROKER, "7", ErrorCode.INVALID_REQUEST))
    (result,) = read("describe_configs", 4, with_own_configs(frame, answer, CONFIG, configs)).results
    assert result.error_code == ErrorCode.NONE
    return {
        one.name: (one.value, one.config_source, [f"{each.name}={each.value}:{each.source}" for each in one.synonyms])
        for one in result.configs
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_its_configs_are_described_in_each_version_and_what_the_other_says_of_the_rest_stays(version: int) -> None:
    resources = (TOPIC, "7"), (BROKER, "7"), (LOGGER, "7"), (BROKER, "8")
    frame = asked(version, *resources)
    errors = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, *[ErrorCode.INVALID_REQUEST] * 3
    answer = of_another(frame, version, *((*one, error) for one, error in zip(resources, errors, strict=True)))
    results = read("describe_configs", version, with_own_configs(frame, answer, CONFIG, image())).results
    assert [(one.resource_type, one.resource_name) for one in results] == [*resources]
    none = ErrorCode.NONE
    assert [one.error_code for one in results] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, none, none, errors[3]]
    assert [one.error_message for one in results] == ["a message", None, None, "a message"]
    assert [bool(one.configs) for one in results] == [False, True, False, False]
    assert {one.name for one in results[1].configs} == {
        name for name, key in BROKER_CONFIGS.items() if not key.internal
    }
    secrets = {one.name for one in results[1].configs if one.is_sensitive}
    assert secrets == {name for name, key in BROKER_CONFIGS.items() if key.type == "PASSWORD"}


def test_a_client_that_may_not_ask_learns_nothing() -> None:
    frame = asked(4, (BROKER, "7"))
    answer = of_another(frame, 4, (BROKER, "7", ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    assert with_own_configs(frame, answer, CONFIG, image()) == answer


def test_other_requests_and_those_about_others_are_left_alone() -> None:
    for frame in (framed("metadata", 9, b"", flexible=True), asked(4, (TOPIC, "7"), (BROKER, "8"), (BROKER, ""))):
        assert with_own_configs(frame, b"whatever", CONFIG, image()) == b"whatever"


def test_a_value_has_its_source_and_what_would_be_without_it() -> None:
    configs = image(
        _7={"log.retention.ms": "5", "log.segment.bytes": "2000000"},
        _={"log.retention.ms": "6"},
        _8={"log.roll.ms": "9"},
    )
    entries = described(configs)
    assert entries["log.retention.ms"] == (
        "5", DYNAMIC,
        ["log.retention.ms=5:2", "log.retention.ms=6:3", "log.retention.hours=48:4", "log.retention.hours=168:5"],
    )  # fmt: skip
    assert entries["log.retention.hours"] == ("168", STATIC, ["log.retention.hours=48:4", "log.retention.hours=168:5"])
    assert entries["log.retention.minutes"] == (None, DEFAULT, [])
    assert entries["num.replica.fetchers"] == ("3", STATIC, ["num.replica.fetchers=3:4", "num.replica.fetchers=1:5"])
    assert entries["log.segment.bytes"][:2] == ("2000000", DYNAMIC)
    assert entries["log.roll.ms"] == (None, DEFAULT, [])
    assert entries["log.cleanup.policy"][:2] == ("delete", DEFAULT)
    assert entries["unclean.leader.election.enable"][:2] == ("false", DEFAULT)
    assert described(configs, "log.roll.hours", "unknown").keys() == {"log.roll.hours"}


def test_a_wrong_value_in_the_log_is_not_described() -> None:
    entries = described(image(_7={"log.segment.bytes": "1000", "log.dirs": "/x", "no.such": "x"}, _={"listeners": "x"}))
    assert entries["log.segment.bytes"][:2] == ("1073741824", DEFAULT)
    assert entries["log.dirs"][:2] == ("/d1", STATIC)
    assert entries["listeners"][:2] == ("PLAINTEXT://b7:9092", STATIC)
    assert entries["no.such"] == (None, DYNAMIC, ["no.such=None:2"])


def test_what_is_set_and_not_heeded_is_described_and_secrets_are_not() -> None:
    secret = "listener.name.plaintext.ssl.keystore.password"
    entries = described(image(_={"max.connections": "5"}, _7={secret: "swordfish"}))
    assert entries["max.connections"] == ("5", DYNAMIC_DEFAULT, ["max.connections=5:3", "max.connections=2147483647:5"])
    assert entries[secret] == (None, DYNAMIC, [f"{secret}=None:2"])
