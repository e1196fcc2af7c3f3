"""The images of real logs are what Kafka 4.4's own classes make of them."""

from __future__ import annotations

import json

import pytest

from kraftlake.image.metadata_image import image_to_json
from kraftlake.records import metadata_records as r
from tests.at_least_one import at_least_one
from tests.image.sample_images import REPLAYABLE, expected, images, one_delta, steps

IMAGES = [
    pytest.param(sample, offset, wanted, id=f"{sample}-{offset}")
    for sample in REPLAYABLE
    for (offset,), wanted in sorted(expected(sample, r"image-(\d+)").items())
]


def test_there_are_images_to_compare_with():
    assert len(IMAGES) == 22


@pytest.mark.parametrize(("sample", "offset", "wanted"), IMAGES)
def test_an_image_replayed_offset_by_offset_is_kafkas(sample, offset, wanted):
    assert json.loads(json.dumps(image_to_json(images(sample)[offset], show_secrets=True))) == wanted


@pytest.mark.parametrize(("sample", "offset", "wanted"), IMAGES)
def test_an_image_replayed_as_one_delta_is_kafkas(sample, offset, wanted):
    step_by_step = images(sample)[offset]
    image = one_delta(sample, -1, offset).apply(step_by_step.provenance)
    assert image == step_by_step
    assert json.loads(json.dumps(image_to_json(image, show_secrets=True))) == wanted


@pytest.mark.parametrize("sample", REPLAYABLE)
def test_neighbouring_images_share_the_parts_that_no_record_touched(sample):
    all_images = images(sample)
    for step in at_least_one(steps(sample)):
        offset = step.provenance.offset
        before, after = all_images[offset - 1], all_images[offset]
        changed = {part for part in PARTS if getattr(before, part) is not getattr(after, part)}
        touched = {PART_OF.get(type(message), "topics") for message in step.messages}
        assert changed <= touched | (
            {"configs"} if any(isinstance(m, r.RemoveTopicRecord) for m in step.messages) else set()
        )
        assert all(getattr(before, part) != getattr(after, part) for part in changed)


PARTS = (
    "features",
    "cluster",
    "topics",
    "configs",
    "client_quotas",
    "producer_ids",
    "acls",
    "scram",
    "delegation_tokens",
)
PART_OF = {
    r.FeatureLevelRecord: "features",
    r.RegisterBrokerRecord: "cluster",
    r.BrokerRegistrationChangeRecord: "cluster",
    r.UnregisterBrokerRecord: "cluster",
    r.RegisterControllerRecord: "cluster",
    r.UnregisterControllerRecord: "cluster",
    r.ConfigRecord: "configs",
    r.ClientQuotaRecord: "client_quotas",
    r.ProducerIdsRecord: "producer_ids",
    r.AccessControlEntryRecord: "acls",
    r.RemoveAccessControlEntryRecord: "acls",
    r.UserScramCredentialRecord: "scram",
    r.RemoveUserScramCredentialRecord: "scram",
    r.DelegationTokenRecord: "delegation_tokens",
    r.RemoveDelegationTokenRecord: "delegation_tokens",
    r.NoOpRecord: None,
}
