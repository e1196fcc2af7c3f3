"""Settings that a running broker can't get together, or in one step."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kraftlake.publisher.effective_settings import EffectiveSettings
from kraftlake.server.broker.reconfigurations import problem_of_reconfiguration

BEFORE = {
    "listeners": "PLAINTEXT://127.0.0.1:9092", "log.dirs": "/a,/b", "num.io.threads": "5", "node.id": "1",
    "num.network.threads": "4",
}  # fmt: skip


def problem_of(changes: Mapping[str, str]) -> str | None:
    return problem_of_reconfiguration(EffectiveSettings(BEFORE), EffectiveSettings({**BEFORE, **changes}))


@pytest.mark.parametrize("setting", ["num.io.threads", "background.threads", "num.replica.fetchers"])
def test_threads_are_halved_or_doubled_at_most(setting: str) -> None:
    before = EffectiveSettings(BEFORE)[setting]
    taken = [count for count in range(1, 30) if problem_of({setting: str(count)}) is None]
    assert taken == [*range(max(1, before // 2), before * 2 + 1)]


@pytest.mark.parametrize(
    "changes",
    [
        {"log.retention.ms": "0"}, {"log.roll.ms": "0"}, {"log.cleaner.threads": "0"}, {"cordoned.log.dirs": "/c"},
        {"cordoned.log.dirs": "*,/a"}, {"log.local.retention.ms": "-1"}, {"metric.reporters": "x"},
        {"log.retention.ms": "5", "log.local.retention.ms": "6"}, {"max.connections.per.ip": "0"},
        {"log.remote.copy.lag.bytes": "9", "log.local.retention.bytes": "8"}, {"listeners": "OTHER://127.0.0.1:1"},
        {"max.connections.per.ip.overrides": "127.0.0.1"}, {"listener.name.plaintext.max.connections": "0"},
        {"listener.name.plaintext.num.network.threads": "9"}, {"listener.name.plaintext.log.retention.ms": "x"},
        {"listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:SSL"},
        {"listener.name.plaintext.ssl.protocol": "TLS", "sasl.kerberos.kinit.cmd": "x"},
        {"group.share.assignment.interval.ms": "20000"},
    ],
    ids=str,
)  # fmt: skip
def test_some_are_refused(changes: Mapping[str, str]) -> None:
    assert problem_of(changes) is not None


@pytest.mark.parametrize(
    "changes",
    [
        {}, {"log.retention.ms": "-5"}, {"cordoned.log.dirs": "*"}, {"cordoned.log.dirs": "/b"},
        {"log.retention.ms": "5", "log.local.retention.ms": "5"}, {"log.retention.ms": "-1", "log.roll.ms": "1"},
        {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "127.0.0.1:5"},
        {"listener.name.plaintext.num.network.threads": "8"}, {"listener.name.other.log.retention.ms": "x"},
        {"listener.name.plaintext.ssl.protocol": "TLS"}, {"metric.reporters": ""},
        {"listener.name.plaintext.ssl.keystore.type": "JKS", "sasl.kerberos.kinit.cmd": "x"},
    ],
    ids=str,
)  # fmt: skip
def test_others_are_taken(changes: Mapping[str, str]) -> None:
    assert problem_of(changes) is None
