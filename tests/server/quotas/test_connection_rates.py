"""The connections that an address may create."""

from __future__ import annotations

from kraftlake.publisher.client_quotas import ClientQuotas
from kraftlake.records import metadata_records as r
from kraftlake.runtime.rates import Windows
from kraftlake.server.quotas.connection_rates import ConnectionRates
from tests.publisher.updates import cluster


def quota(rate: float | None, address: str | None) -> r.ClientQuotaRecord:
    entity = (r.EntityData(entity_type="ip", entity_name=address),)
    return r.ClientQuotaRecord(entity=entity, key="connection_creation_rate", value=rate or 0, remove=rate is None)


def test_an_address_may_fill_all_windows_but_one_at_once_and_a_refused_connection_does_not_count() -> None:
    quotas = ClientQuotas()
    made = cluster(parts=(quotas,))
    rates = ConnectionRates(quotas, Windows(number=11, length_ms=1_000))
    assert [rates.record("10.0.0.1", 0) for _ in range(30)] == [0] * 30
    made.change(quota(2, "10.0.0.1"), quota(1, None))
    assert [rates.record("10.0.0.1", 0) for _ in range(21)] == [0] * 20 + [500]
    assert [rates.record("10.0.0.1", 0) for _ in range(3)] == [500] * 3
    assert rates.record("10.0.0.1", 10_499) == 1
    assert rates.record("10.0.0.1", 10_500) == 0
    assert [rates.record("10.0.0.2", 0) for _ in range(11)] == [0] * 10 + [1_000], "no longer than a window"
    made.change(quota(None, None))
    assert rates.record("10.0.0.2", 1) == 0
