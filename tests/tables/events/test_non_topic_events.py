"""Events of what is neither a topic nor a partition, from one metadata delta."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Any

import pytest

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.diff import EntryChange, diff_entries
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.records import metadata_records as r
from kraftlake.records.metadata_records import ConfigRecord
from kraftlake.records.uuid import Uuid
from kraftlake.tables.events import non_topic_events as module
from kraftlake.tables.events.non_topic_events import non_topic_events

DIRECTORY = Uuid(b"d" * 16)


@pytest.mark.parametrize(
    ("name", "broker"), [("1", 1), ("+1", 1), ("", None), ("--5", None), ("99999999999", None), ("x", None)]
)
def test_configs_of_any_broker_name_have_the_id_that_it_is_if_any(name: str, broker: int | None) -> None:
    delta = MetadataDelta(MetadataImage.EMPTY)
    delta.replay(ConfigRecord(resource_type=4, resource_name=name, name="log.cleaner.threads", value="2"))
    after = delta.apply(MetadataProvenance(offset=0, epoch=1))
    (event,) = non_topic_events([delta], after)
    kind, _, _, _, _, id_, *_ = event
    assert (kind, id_) == ("config_changed", broker)


def started(epoch: int) -> r.RegisterBrokerRecord:
    return r.RegisterBrokerRecord(
        broker_id=1, incarnation_id=Uuid(epoch.to_bytes(16)), broker_epoch=epoch, end_points=(), features=(), rack=None,
        log_dirs=(DIRECTORY,),
    )  # fmt: skip


def heartbeat(epoch: int, *cordoned: Uuid) -> r.BrokerRegistrationChangeRecord:
    return r.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=epoch, cordoned_log_dirs=cordoned)


def test_cordoned_directories_are_an_event_where_there_are_others_not_where_none_are_reported() -> None:
    image, events = MetadataImage.EMPTY, []
    records = [
        started(1), heartbeat(1), started(2), heartbeat(2), heartbeat(2, DIRECTORY), heartbeat(2), started(3),
        heartbeat(3, DIRECTORY), started(4), heartbeat(4),
    ]  # fmt: skip
    for offset, record in enumerate(records):
        delta = MetadataDelta(image)
        delta.replay(record)
        image = delta.apply(MetadataProvenance(offset=offset, epoch=1))
        events += [(offset, kind, field) for kind, _, _, _, _, _, field, *_ in non_topic_events([delta], image)]
    registered, changed = "broker_registered", "broker_changed"
    assert events == [
        (0, registered, None), (2, registered, "incarnationId"), (4, changed, "cordonedDirectories"),
        (5, changed, "cordonedDirectories"), (6, registered, "incarnationId"), (7, changed, "cordonedDirectories"),
        (8, registered, "incarnationId"), (8, changed, "cordonedDirectories"),
    ]  # fmt: skip


def test_a_delta_is_compared_by_what_it_changes_not_by_all_that_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def records_of(name: str) -> list[r.ClientQuotaRecord | r.UserScramCredentialRecord | r.DelegationTokenRecord]:
        entity = (r.EntityData(entity_type="user", entity_name=name),)
        scram = {"salt": b"s", "stored_key": b"k", "server_key": b"k", "iterations": 4096}
        times = {"issue_timestamp": 1, "max_timestamp": 3, "expiration_timestamp": 2}
        return [
            r.ClientQuotaRecord(entity=entity, key="request_percentage", value=float(len(name)), remove=False),
            r.UserScramCredentialRecord(name=name, mechanism=1, **scram),
            r.DelegationTokenRecord(owner="User:a", requester="User:a", renewers=(), token_id=name, **times),
        ]

    first = MetadataDelta(MetadataImage.EMPTY)
    for record in (record for user in range(50) for record in records_of(f"user-{user}")):
        first.replay(record)
    second = MetadataDelta(first.apply(MetadataProvenance(offset=0, epoch=1)))
    for record in records_of("new"):
        second.replay(record)
    compared: list[Mapping[str, Set[Any]]] = []

    def diff(before: MetadataImage, after: MetadataImage, keys: Mapping[str, Set[Any]]) -> Iterator[EntryChange]:
        compared.append(keys)
        return diff_entries(before, after, keys)

    monkeypatch.setattr(module, "diff_entries", diff)
    events = [*non_topic_events([second], second.apply(MetadataProvenance(offset=1, epoch=1)))]
    assert [kind for kind, *_ in events] == ["quota_changed", "scram_changed", "delegation_token_changed"]
    assert [{part: len(found) for part, found in keys.items() if found} for keys in compared] == [
        {"clientQuotas": 1, "scram": 1, "delegationTokens": 1}
    ]
