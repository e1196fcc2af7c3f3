from __future__ import annotations

import pytest

from kraftlake.image.client_quotas_image import ClientQuotaEntity, ClientQuotasImage
from kraftlake.publisher.quota_filter import FilterComponent, Match, QuotaFilter, describe_client_quotas
from kraftlake.records import metadata_records as r
from kraftlake.runtime.errors import UsageError
from tests.publisher.updates import cluster


def quota(key: str, value: float, **entity: str | None) -> r.ClientQuotaRecord:
    data = tuple(
        r.EntityData(entity_type=kind.replace("_", "-"), entity_name=name) for kind, name in sorted(entity.items())
    )
    return r.ClientQuotaRecord(entity=data, key=key, value=value)


def test_quotas_are_described_by_a_filter() -> None:
    made = cluster(
        quota("producer_byte_rate", 1, user="alice"),
        quota("producer_byte_rate", 2, user=None),
        quota("producer_byte_rate", 3, user="alice", client_id="app"),
        quota("connection_creation_rate", 4, ip="10.0.0.1"),
    )
    quotas = made.image.client_quotas

    def found(*components: FilterComponent, strict: bool = False) -> list[str]:
        return [entity.text for entity in describe_client_quotas(quotas, QuotaFilter(components, strict))]

    alice = FilterComponent("user", Match.EXACT, "alice")
    assert len(found()) == 4
    assert found(strict=True) == []
    assert found(alice) == ['{"client-id":"app","user":"alice"}', '{"user":"alice"}']
    assert found(alice, strict=True) == ['{"user":"alice"}']
    assert found(FilterComponent("user", Match.DEFAULT)) == ['{"user":null}']
    assert len(found(FilterComponent("user", Match.SPECIFIED))) == 3
    assert found(alice, FilterComponent("client-id", Match.SPECIFIED)) == ['{"client-id":"app","user":"alice"}']
    described = describe_client_quotas(quotas, QuotaFilter((FilterComponent("ip", Match.SPECIFIED),)))
    (values,) = (dict(values.items()) for values in described.values())
    assert values == {"connection_creation_rate": 4}
    assert list(described) == [ClientQuotaEntity((("ip", "10.0.0.1"),))]


@pytest.mark.parametrize(
    "components",
    [
        (FilterComponent("host", Match.SPECIFIED),),
        (FilterComponent("user", Match.EXACT),),
        (FilterComponent("user", Match.DEFAULT, "alice"),),
        (FilterComponent("user", Match.SPECIFIED), FilterComponent("user", Match.DEFAULT)),
        (FilterComponent("user", Match.SPECIFIED), FilterComponent("ip", Match.SPECIFIED)),
    ],
)
def test_a_contradictory_filter_is_refused(components: tuple[FilterComponent, ...]) -> None:
    with pytest.raises(UsageError, match="quota filter"):
        describe_client_quotas(ClientQuotasImage.EMPTY, QuotaFilter(components))
