"""The paths of things."""

from __future__ import annotations

import pytest

import kraftlake
from kraftlake.diagnosis.things import Thing, paths_like
from kraftlake.image.client_quotas_image import ClientQuotaEntity
from kraftlake.image.configurations_image import ConfigResource
from kraftlake.runtime.errors import UsageError
from tests.cli.running import DIRECTORY


@pytest.mark.parametrize(
    ("path", "thing"),
    [
        ("topic/foo", Thing.topic("foo")),
        ("topic/foo/partition/3", Thing.partition("foo", 3)),
        ("topic/foo/partitions/3/isr", Thing.partition("foo", 3, "isr")),
        ("broker/2", Thing.broker(2)),
        ("broker/2/fenced", Thing.broker(2, "fenced")),
        ("config/TOPIC/foo/retention.ms", Thing.config("TOPIC", "foo", "retention.ms")),
        ("config/topic/foo/retention.ms", Thing.config("TOPIC", "foo", "retention.ms")),
        ("config/BROKER//log.dirs", Thing.config("BROKER", "", "log.dirs")),
        ("config/broker/<default>/log.dirs", Thing.config("BROKER", "", "log.dirs")),
        ("config/client-metrics/a%2Fb/x%25", Thing.config("CLIENT_METRICS", "a/b", "x%")),
        ("config/UNKNOWN(7)/a/x", Thing("config", (ConfigResource(7, "a"), "x"))),
        ("feature/metadata.version", Thing("feature", "metadata.version")),
        ("quota/user/<default>/rate", Thing("quota", (ClientQuotaEntity((("user", None),)), "rate"))),
        (
            "quota/user/CN=a%2Fb/client-id/c/rate",
            Thing("quota", (ClientQuotaEntity((("client-id", "c"), ("user", "CN=a/b"))), "rate")),
        ),
        ("scram/CN=a%2Fb/SCRAM-SHA-512", Thing.credential("CN=a/b", "SCRAM-SHA-512")),
        ("token/a%2Fb", Thing("token", "a/b")),
        ("voter/3000", Thing("voter", 3000)),
    ],
)
def test_a_path_names_a_thing_and_a_thing_has_a_path(path: str, thing: Thing) -> None:
    parsed = Thing.parse(path)
    assert parsed == thing
    assert parsed.text == path
    assert Thing.parse(thing.text) == thing


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("", "a path is one of topic/NAME"),
        ("brokr/2", "did you mean broker?"),
        ("topic/", "it reads topic/NAME or topic/NAME/partition/N[/FIELD]"),
        ("topic/foo/3", "it reads topic/NAME or"),
        ("topic/foo/partition/x", "'x' is not a partition's number"),
        ("topic/foo/partition/²", "is not a partition's number"),
        ("topic/foo/partition/2147483648", "is not a partition's number"),
        ("topic/foo/partition/1/leader_epoch", "did you mean leaderEpoch?"),
        ("broker/-1", "'-1' is not a broker's id"),
        ("broker/1/x", "the fields are epoch,"),
        ("broker/1/fenced/x", "it reads broker/ID[/FIELD]"),
        ("config/tpic/foo/x", "did you mean TOPIC?"),
        ("config/TOPIC/foo", "it reads config/TYPE/RESOURCE/NAME"),
        ("feature/a/b", "it reads feature/NAME"),
        ("acl/1", "'1' is not an ACL's id"),
        ("quota/group/a/rate", "'group' is no type of entity"),
        ("quota/user/a", "it reads quota/"),
        ("quota/user/a/user/b/rate", "it reads quota/"),
        ("scram/a", "it reads scram/USER/MECHANISM"),
        ("scram/a/PLAIN", "'PLAIN' is no mechanism"),
        ("token/", "it reads token/ID"),
        ("voter/3000/endpoints", "it reads voter/ID"),
        ("voter/x", "'x' is not a voter's id"),
    ],
)
def test_what_is_no_path_is_refused_with_the_way_out(path: str, sentence: str) -> None:
    with pytest.raises(UsageError) as error:
        Thing.parse(path)
    assert sentence in str(error.value)
    assert repr(path) in str(error.value)


def test_no_thing_is_taken_for_a_typing_error_of_itself() -> None:
    """The image at offset 0 has no metadata.version yet, and has it among its features all the same."""
    image = kraftlake.open(DIRECTORY).image(0)
    assert paths_like(Thing.parse("feature/metadata.version"), image) == []
    assert paths_like(Thing.parse("feature/metadata.versio"), image) == ["feature/metadata.version"]
