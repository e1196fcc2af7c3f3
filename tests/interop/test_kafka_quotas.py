"""The quotas in effect for clients, beside Kafka's ClientQuotaManager, with the quotas of the logs at hand."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from typing import Any

import pytest

import kraftlake
from kraftlake.diagnosis.effective.quotas import effective_quotas
from kraftlake.diagnosis.effective.subject import Subject
from kraftlake.image.client_quotas_image import ClientQuotaEntity, ClientQuotaImage
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.publisher.client_quotas import QUOTA_KEYS
from tests.cli.running import DIRECTORY, TORN
from tests.interop.kafka_publishers import ask_broker

pytestmark = pytest.mark.spark

_CLIENTS = 1_000 if os.environ.get("KRAFTLAKE_TESTS") == "long" else 60


@pytest.mark.parametrize("log", [DIRECTORY, TORN], ids=["kafka-4.4", "crash-torn"])
@pytest.mark.parametrize("quota", QUOTA_KEYS)
def test_a_client_has_the_quotas_that_kafkas_class_holds_it_to(log: Path, quota: str) -> None:
    random = Random(f"{log.parent.parent.name} {quota}")
    source = kraftlake.open(log)
    image = source.image(random.randrange(source.end_offset * 2 // 3, source.end_offset))
    quotas = [(dict(entity.entries), one.quotas[quota]) for entity, one in _of_clients(image) if quota in one.quotas]
    names = {kind: sorted({one[kind] for one, _ in quotas if one.get(kind)}) for kind in ("user", "client-id")}
    clients = [[random.choice([*some, "other", ""]) for some in names.values()] for _ in range(_CLIENTS)]
    steps: list[dict[str, Any]] = [entity | {"value": value} for entity, value in quotas]
    theirs = ask_broker("quotas", {"steps": [*steps, *({"ask": client} for client in clients)]})
    ours = [_value(image, quota, *client) for client in clients]
    assert ours == theirs
    assert {*ours} - {None} or not quotas


def _value(image: MetadataImage, quota: str, user: str, client_id: str) -> float | None:
    """The value in effect, which the deciding entity has."""
    found = effective_quotas(image, Subject(kind="client", user=user, client_id=client_id))
    one = next((one for one in found if one.quota == quota), None)
    if one is None or one.entity is None:
        return None
    assert one.value == image.client_quotas.entities[one.entity].quotas[quota]
    return one.value


def _of_clients(image: MetadataImage) -> list[tuple[ClientQuotaEntity, ClientQuotaImage]]:
    return [item for item in image.client_quotas.in_order() if not any(kind == "ip" for kind, _ in item[0].entries)]
