"""Events of what is neither a topic nor a partition, from one metadata delta."""

from __future__ import annotations

import pytest

from kraftlake.delta import MetadataDelta
from kraftlake.image import MetadataImage, MetadataProvenance
from kraftlake.image.diff import ImageDiff, diff_images
from kraftlake.records import metadata_records as r
from kraftlake.records.metadata_records import ConfigRecord
from kraftlake.tables.events import non_topic_events as module
from kraftlake.tables.events.non_topic_events import non_topic_events


@pytest.mark.parametrize(
    ("name", "broker"), [("1", 1), ("+1", 1), ("", None), ("--5", None), ("99999999999", None), ("x", None)]
)
def test_configs_of_any_broker_name_are_told_with_the_id_that_it_is_if_any(name: str, broker: int | None) -> None:
    delta = MetadataDelta(MetadataImage.EMPTY)
    delta.replay(ConfigRecord(resource_type=4, resource_name=name, name="log.cleaner.threads", value="2"))
    after = delta.apply(MetadataProvenance(offset=0, epoch=1))
    (event,) = non_topic_events(delta, after)
    kind, _, _, _, _, told, *_ = event
    assert (kind, told) == ("config_changed", broker)


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
    compared = []

    def diff(before: MetadataImage, after: MetadataImage) -> ImageDiff:
        for image in (before, after):
            users = sum(map(len, image.scram.mechanisms.values()))
            compared.append((len(image.client_quotas.entities), users, len(image.delegation_tokens.tokens)))
        return diff_images(before, after)

    monkeypatch.setattr(module, "diff_images", diff)
    events = [*non_topic_events(second, second.apply(MetadataProvenance(offset=1, epoch=1)))]
    assert [kind for kind, *_ in events] == ["quota_changed", "scram_changed", "delegation_token_changed"]
    assert compared == [(0, 0, 0), (1, 1, 1)]
