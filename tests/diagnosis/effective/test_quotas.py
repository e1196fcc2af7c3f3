"""The quotas in effect; the limits are held against Kafka's ClientQuotaManager in tests/interop."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.api import Source
from kraftlake.diagnosis.effective.quotas import EffectiveQuota, effective_quotas
from kraftlake.diagnosis.effective.subject import Subject
from kraftlake.image.client_quotas_image import ClientQuotaEntity
from kraftlake.publisher.client_quotas import ClientQuotas
from kraftlake.records import metadata_records as r
from kraftlake.runtime.errors import UsageError
from tests.diagnosis.test_thing_changes import source_of
from tests.publisher.updates import cluster
from tests.replay import made_logs as log

RATE = "producer_byte_rate"


def quota(value: float | None, key: str = RATE, **entity: str | None) -> r.ClientQuotaRecord:
    named = tuple(
        r.EntityData(entity_type=kind.replace("_", "-"), entity_name=name) for kind, name in sorted(entity.items())
    )
    return r.ClientQuotaRecord(entity=named, key=key, value=value or 0.0, remove=value is None)


def source_with(*records: r.ClientQuotaRecord) -> Source:
    return source_of(log.log_of(1, [log.metadata_version()], *([one] for one in records)))


def of(found: list[EffectiveQuota], key: str = RATE) -> EffectiveQuota:
    return next(one for one in found if one.quota == key)


def test_the_quota_of_the_nearest_entity_counts_and_all_that_may_are_shown() -> None:
    source = source_with(
        quota(1, user=None), quota(2, user="alice"), quota(3, client_id="app"), quota(4, user="alice", client_id=None)
    )
    found = of(source.effective_quotas(user="alice", client_id="app"))
    assert (found.value, found.set_by) == (4, f"quota/client-id/<default>/user/alice/{RATE}")
    assert [(dict(layer.entity.entries), layer.value) for layer in found.layers] == [
        ({"client-id": "app", "user": "alice"}, None), ({"client-id": None, "user": "alice"}, 4),
        ({"user": "alice"}, 2), ({"client-id": "app", "user": None}, None), ({"client-id": None, "user": None}, None),
        ({"user": None}, 1), ({"client-id": "app"}, 3), ({"client-id": None}, None),
    ]  # fmt: skip
    assert of(source.effective_quotas(user="bob")).value == 1
    assert of(source.effective_quotas(user="bob"), "request_percentage").value is None
    assert of(source.effective_quotas(user="alice", client_id="app", at=3)).value == 2


def test_an_address_has_a_rate_however_it_is_written() -> None:
    source = source_with(
        quota(7, "connection_creation_rate", ip="2001:db8::5"), quota(9, "connection_creation_rate", ip=None)
    )
    (found,) = source.effective_quotas(ip="2001:db8:0:0:0:0:0:5")
    assert (found.value, found.set_by) == (7, "quota/ip/2001:db8::5/connection_creation_rate")
    (other,) = source.effective_quotas(ip="10.0.0.1")
    assert (other.value, other.set_by) == (9, "quota/ip/<default>/connection_creation_rate")
    assert source_with().effective_quotas(ip="10.0.0.1")[0].value is None


@pytest.mark.parametrize("path", ["client", "client/user", "client/user/", "client/group/a", "client/user/a/user/b"])
def test_a_client_is_named_by_a_user_a_client_id_and_an_address(path: str) -> None:
    with pytest.raises(UsageError, match="it reads client/user/NAME"):
        Subject.parse(path)
    assert Subject.parse("client/ip/::1/user/a%2Fb") == Subject(kind="client", user="a/b", ip="::1")


names = st.sampled_from(["alice", "bob", None])
changes = st.fixed_dictionaries({"value": st.none() | st.integers(1, 99)}, optional={"user": names, "client_id": names})


@given(st.lists(changes.filter(lambda one: len(one) > 1), max_size=10), st.sampled_from(["alice", "carol", ""]))
def test_the_deciding_entity_has_the_value_that_a_broker_holds_the_client_to(found: list[Any], user: str) -> None:
    quotas = ClientQuotas()
    made = cluster(parts=(quotas,))
    for one in found:
        made.change(quota(**one))
    for client_id in ("alice", "carol"):
        effective = of(effective_quotas(made.image, Subject(kind="client", user=user, client_id=client_id)))
        assert effective.value == quotas.limit(RATE, user=user, client_id=client_id)
        set_there = made.image.client_quotas.entities.get(effective.entity or ClientQuotaEntity(()))
        assert effective.value == (None if set_there is None else set_there.quotas.get(RATE))
