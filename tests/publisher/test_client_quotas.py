from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from kraftlake.publisher.client_quotas import ClientQuotas
from kraftlake.records import metadata_records as r
from kraftlake.runtime.errors import UsageError
from tests.publisher.updates import cluster

KEY = "producer_byte_rate"


def quota(value: float | None, *, key: str = KEY, **entity: str | None) -> r.ClientQuotaRecord:
    data = tuple(
        r.EntityData(entity_type=kind.replace("_", "-"), entity_name=name) for kind, name in sorted(entity.items())
    )
    return r.ClientQuotaRecord(entity=data, key=key, value=value or 0, remove=value is None)


LADDER = [
    {"user": "alice", "client_id": "app"},
    {"user": "alice", "client_id": None},
    {"user": "alice"},
    {"user": None, "client_id": "app"},
    {"user": None, "client_id": None},
    {"user": None},
    {"client_id": "app"},
    {"client_id": None},
]
"""From the strongest to the weakest."""


def test_the_entity_with_the_highest_precedence_wins_and_the_next_one_after_its_removal() -> None:
    quotas = ClientQuotas()
    made = cluster(parts=(quotas,))
    made.change(*(quota(number + 1, **entity) for number, entity in enumerate(LADDER)))
    for number, entity in enumerate(LADDER):
        assert quotas.limit(KEY, user="alice", client_id="app") == number + 1
        made.change(quota(None, **entity))
    assert quotas.limit(KEY, user="alice", client_id="app") is None


def test_others_get_the_defaults() -> None:
    quotas = ClientQuotas()
    made = cluster(parts=(quotas,))
    made.change(quota(1, user="alice"), quota(2, user=None), quota(3, client_id="app"))
    assert quotas.limit(KEY, user="alice", client_id="other") == 1
    assert quotas.limit(KEY, user="bob", client_id="app") == 2
    made.change(quota(None, user=None))
    assert quotas.limit(KEY, user="bob", client_id="app") == 3
    assert quotas.limit(KEY, user="bob", client_id="other") is None


def test_each_quota_key_is_resolved_separately() -> None:
    quotas = ClientQuotas()
    cluster(parts=(quotas,)).change(quota(1, user="alice"), quota(2, key="request_percentage", user=None))
    assert quotas.limit(KEY, user="alice") == 1
    assert quotas.limit("request_percentage", user="alice") == 2
    assert quotas.limit("consumer_byte_rate", user="alice") is None
    with pytest.raises(UsageError, match="no client quota 'bytes'"):
        quotas.limit("bytes", user="alice")


def test_an_address_has_its_own_rate_or_the_default() -> None:
    quotas = ClientQuotas()
    made = cluster(parts=(quotas,))
    made.change(
        quota(5, key="connection_creation_rate", ip="2001:DB8::0:1"), quota(9, key="connection_creation_rate", ip=None)
    )
    assert quotas.connection_rate("2001:db8::1") == 5
    assert quotas.connection_rate("2001:db8:0:0:0:0:0:1") == 5
    assert quotas.connection_rate("10.0.0.1") == 9
    made.change(quota(None, key="connection_creation_rate", ip=None))
    assert quotas.connection_rate("10.0.0.1") is None


def test_unknown_entities_and_keys_are_logged_and_ignored() -> None:
    quotas = ClientQuotas()
    with capture_logs() as logs:
        cluster(parts=(quotas,)).change(
            quota(1, key="bytes", user="alice"), quota(2, ip="10.0.0.1"), quota(3, group="g")
        )
    assert [entry["event"] for entry in logs] == ["quota_ignored"] * 3
    assert quotas.limit(KEY, user="alice") is None
