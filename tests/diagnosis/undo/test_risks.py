"""The classes of changes: what deletes records, what widens access."""

from __future__ import annotations

import pytest
from rpds import HashTrieMap

from kraftlake.diagnosis.undo.risks import acl_class, config_class, quota_class
from kraftlake.diagnosis.undo.step import StepClass
from kraftlake.image.acls_image import StandardAcl
from kraftlake.image.client_quotas_image import ClientQuotaEntity, ClientQuotaImage
from kraftlake.image.configurations_image import ConfigResource, ConfigurationImage

TOPIC, BROKER, ALL_BROKERS = ConfigResource(2, "t"), ConfigResource(4, "1"), ConfigResource(4, "")
SAFE, ACCESS, DESTRUCTIVE = StepClass.SAFE, StepClass.ACCESS, StepClass.DESTRUCTIVE


def configs(*sets):
    return {
        resource: ConfigurationImage(resource=resource, data=HashTrieMap(values)) for resource, values in sets if values
    }


@pytest.mark.parametrize(
    ("name", "now", "then", "class_"),
    [
        ("retention.ms", "1000", "2000", SAFE),
        ("retention.ms", "2000", "1000", DESTRUCTIVE),
        ("retention.ms", "-1", "1000", DESTRUCTIVE),
        ("retention.ms", "1000", "-1", SAFE),
        ("retention.ms", None, "3600000", DESTRUCTIVE),  # the default is a week
        ("retention.ms", "3600000", None, SAFE),
        ("retention.bytes", None, "5", DESTRUCTIVE),
        ("retention.bytes", "5", None, SAFE),
        ("cleanup.policy", "compact", "delete", DESTRUCTIVE),
        ("cleanup.policy", "compact", "compact,delete", DESTRUCTIVE),
        ("cleanup.policy", "compact,delete", "compact", SAFE),
        ("cleanup.policy", "compact", None, DESTRUCTIVE),
        ("unclean.leader.election.enable", "false", "true", DESTRUCTIVE),
        ("unclean.leader.election.enable", "true", None, SAFE),
        ("remote.storage.enable", "true", None, DESTRUCTIVE),
        ("remote.storage.enable", None, "true", SAFE),
        ("retention.ms", "2000", "soon", DESTRUCTIVE),
        ("min.insync.replicas", "2", "1", SAFE),
        ("no.such.config", "2", "1", SAFE),
    ],
)
def test_a_config_of_a_topic(name, now, then, class_) -> None:
    sides = [configs((TOPIC, {} if value is None else {name: value})) for value in (now, then)]
    assert config_class(TOPIC, name, *sides) is class_


def test_a_default_of_the_cluster_counts_where_a_topic_has_no_value() -> None:
    default = (ALL_BROKERS, {"log.retention.ms": "1000"})
    now, then = configs(default, (TOPIC, {"retention.ms": "2000"})), configs(default)
    assert config_class(TOPIC, "retention.ms", now, then) is DESTRUCTIVE
    assert config_class(TOPIC, "retention.ms", then, now) is SAFE


def test_a_config_of_brokers_stands_in_for_topics() -> None:
    shorter = configs((ALL_BROKERS, {"log.retention.ms": "1000"}))
    assert config_class(ALL_BROKERS, "log.retention.ms", {}, shorter) is DESTRUCTIVE
    assert config_class(BROKER, "log.retention.ms", shorter, {}) is SAFE
    unclean = configs((BROKER, {"unclean.leader.election.enable": "true"}))
    assert config_class(BROKER, "unclean.leader.election.enable", {}, unclean) is DESTRUCTIVE
    assert config_class(BROKER, "log.cleaner.threads", {}, {}) is SAFE


def test_a_config_of_logins_is_about_access() -> None:
    for name in ("sasl.enabled.mechanisms", "listener.name.x.ssl.keystore.location", "super.users"):
        assert config_class(BROKER, name, {}, {}) is ACCESS


def quotas(*sets):
    return {ClientQuotaEntity(entity): ClientQuotaImage(HashTrieMap({"k": value})) for entity, value in sets}


ALICE, DEFAULT = (("user", "alice"),), (("user", None),)


@pytest.mark.parametrize(
    ("now", "then", "class_"),
    [
        (quotas((ALICE, 1.0)), quotas((ALICE, 2.0)), ACCESS),
        (quotas((ALICE, 2.0)), quotas((ALICE, 1.0)), SAFE),
        (quotas((ALICE, 2.0)), quotas(), ACCESS),
        (quotas(), quotas((ALICE, 2.0)), SAFE),
        (quotas((DEFAULT, 1.0)), quotas((DEFAULT, 1.0), (ALICE, 2.0)), ACCESS),
        (quotas((DEFAULT, 3.0)), quotas((DEFAULT, 3.0), (ALICE, 2.0)), SAFE),
    ],
)
def test_a_quota(now, then, class_) -> None:
    assert quota_class(ClientQuotaEntity(ALICE), "k", now, then) is class_


def acl(permission, name="t"):
    return StandardAcl(
        resource_type=2, resource_name=name, pattern_type=3, principal="User:a", host="*", operation=3,
        permission_type=permission,
    )  # fmt: skip


def test_an_acl() -> None:
    deny, allow, other = acl(2), acl(3), acl(3, "u")
    assert acl_class(allow, is_added=True, then=[allow]) is ACCESS
    assert acl_class(deny, is_added=True, then=[deny]) is SAFE
    assert acl_class(deny, is_added=False, then=[allow]) is ACCESS
    assert acl_class(allow, is_added=False, then=[deny]) is SAFE
    assert acl_class(allow, is_added=False, then=[other]) is ACCESS  # nothing is left on the resource
