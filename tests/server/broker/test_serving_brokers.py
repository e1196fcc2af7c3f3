"""Which brokers answer the clients of one that serves nobody."""

from __future__ import annotations

from typing import Any

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.protocol.address import Address
from kraftlake.records import metadata_records as r
from kraftlake.server.broker.serving_brokers import SERVES_NOBODY, ServingBrokers
from tests.histories import uuid_of


def broker(
    id_: int, *, fenced: bool = False, protocol: int = 0, name: str = "INSIDE", features: tuple[str, ...] = ()
) -> Any:
    return r.RegisterBrokerRecord(
        broker_id=id_, broker_epoch=id_, incarnation_id=uuid_of(id_), fenced=fenced,
        end_points=(r.BrokerEndpoint(name=name, host="h", port=id_, security_protocol=protocol),),
        features=tuple(
            r.BrokerFeature(name=each, min_supported_version=0, max_supported_version=0)
            for each in features
        ),
    )  # fmt: skip


def image_of(*records: Any) -> MetadataImage:
    delta = MetadataDelta(MetadataImage.EMPTY)
    for record in records:
        delta.replay(record)
    return delta.apply(MetadataProvenance(offset=5, epoch=1, timestamp=0))


def asked(*records: Any) -> set[int] | None:
    image = image_of(*records)
    found = ServingBrokers(7, "INSIDE", lambda: image).addresses()
    return None if found is None else {address.port for address in found}


def test_they_are_the_other_brokers_that_serve_on_such_a_listener() -> None:
    others = (
        broker(1), broker(2, fenced=True), broker(3, protocol=1), broker(4, name="OUTSIDE"),
        broker(5, features=(SERVES_NOBODY,)), broker(6, features=("kraft.version",)), broker(7),
    )  # fmt: skip
    assert asked(*others) == {1, 6}
    assert asked(broker(7)) == set()


def test_they_come_in_any_order() -> None:
    image = image_of(*map(broker, range(1, 5)))
    orders = {tuple(ServingBrokers(7, "INSIDE", lambda: image).addresses() or ()) for _ in range(200)}
    assert len(orders) > 1
    assert {Address("h", 3)} < set(next(iter(orders)))


def test_none_may_be_asked_where_an_acl_or_a_quota_is_for_a_host() -> None:
    acl: dict[str, Any] = {
        "id": uuid_of(9), "resource_type": 2, "resource_name": "foo", "pattern_type": 3, "principal": "User:a",
        "operation": 2, "permission_type": 3,
    }  # fmt: skip
    assert asked(broker(1), r.AccessControlEntryRecord(host="*", **acl)) == {1}
    assert asked(broker(1), r.AccessControlEntryRecord(host="10.0.0.1", **acl)) is None

    def quota(kind: str) -> Any:
        entity = (r.EntityData(entity_type=kind, entity_name="x"),)
        return r.ClientQuotaRecord(entity=entity, key="k", value=1.0)

    assert asked(broker(1), quota("user")) == {1}
    assert asked(broker(1), quota("ip")) is None
