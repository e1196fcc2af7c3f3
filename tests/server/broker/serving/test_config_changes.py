"""Changes of configs: what a broker refuses before the active controller is asked."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import attrs
import pytest
from kio.static.primitive import i8

from kraftlake.protocol.error_code import ErrorCode
from kraftlake.publisher.metadata_cache import MetadataCache
from kraftlake.server.broker.broker_config import BrokerConfig
from kraftlake.server.broker.serving.config_changes import ConfigChangesHandler
from kraftlake.server.node_config import ListenerAddress
from kraftlake.server.requests.authorization import Authorization
from kraftlake.server.requests.dispatcher import Request
from kraftlake.server.requests.messages import request_type, response_in
from tests.server.requests.test_dispatcher import Node, frame_of

BROKER, SET, DELETE = 4, 0, 1
INCREMENTAL, WHOLE = ("incremental_alter_configs", 1), ("alter_configs", 2)
CONFIG = BrokerConfig(
    broker_id=1, lake="x", log_dirs=("d",), listener=ListenerAddress(name="PLAINTEXT", host="127.0.0.1", port=0)
)


@attrs.frozen
class Context:
    """A broker of a cluster without configs, where everybody may do everything."""

    broker_id: int = 1
    cache: MetadataCache = attrs.field(factory=lambda: MetadataCache(1))
    authorization: Authorization = attrs.field(factory=lambda: Authorization(None))


def refusal(
    name: str, value: str | None, *, by: tuple[str, int] = INCREMENTAL, broker: str = "1", operation: int = SET
) -> Any:
    """The answer to a change of a config of brokers; None for one that is passed on to the controller."""
    api, version = by
    kind = request_type(api, version)
    module = import_module(kind.__module__)
    more = {"config_operation": i8(operation)} if api.startswith("incremental") else {}
    config = module.AlterableConfig(name=name, value=value, **more)
    resource = module.AlterConfigsResource(resource_type=i8(BROKER), resource_name=broker, configs=(config,))
    passed: list[Request] = []
    forwarding: Any = passed.append
    made = Node(ConfigChangesHandler(Context(), CONFIG, forwarding), api=api, versions=range(version, version + 1))
    frame = frame_of(kind(resources=(resource,), validate_only=False))
    made.ask(frame)
    assert made.logged == []
    assert len(passed) + len(made.answers) == 1
    return None if passed else response_in(frame, made.answers[0] or b"").responses[0]


@pytest.mark.parametrize("by", [INCREMENTAL, WHOLE])
@pytest.mark.parametrize("broker", ["1", ""])
@pytest.mark.parametrize("side", ["leader", "follower"])
def test_a_rate_of_throttled_replication_is_a_number(by: tuple[str, int], broker: str, side: str) -> None:
    name = f"{side}.replication.throttled.rate"
    for value in ("10MB", "-1", "inf"):
        refused = refusal(name, value, by=by, broker=broker)
        assert refused.error_code == ErrorCode.INVALID_REQUEST
        assert name in refused.error_message
        assert value in refused.error_message
    assert refusal(name, "100000", by=by, broker=broker) is None


@pytest.mark.parametrize(
    ("name", "value", "is_refused"),
    [
        ("log.retention.ms", "x", True), ("log.retention.ms", "5", False), ("log.dirs", "/x", True),
        ("num.replica.fetchers", "2", False), ("num.replica.fetchers", "3", True), ("no.such", "x", False),
        ("log.local.retention.ms", "-1", True), ("ssl.keystore.type", "JKS", True), ("listeners", "X://:1", True),
        ("listener.name.plaintext.ssl.keystore.type", "JKS", False),
    ],
)  # fmt: skip
def test_settings_are_refused_that_can_not_change_or_have_a_wrong_value(
    name: str, value: str, is_refused: bool
) -> None:
    refused = refusal(name, value)
    assert (refused is not None) is is_refused
    assert is_refused is False or refused.error_code == ErrorCode.INVALID_REQUEST


def test_what_is_deleted_needs_no_value() -> None:
    name = "leader.replication.throttled.rate"
    assert refusal(name, None, operation=DELETE) is None
    assert refusal(name, None).error_code == ErrorCode.INVALID_REQUEST


def test_a_wrong_secret_is_not_shown() -> None:
    refused = refusal("listener.name.plaintext.ssl.keystore.password", "swordfish", broker="")
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert "swordfish" not in refused.error_message
