"""Plans that are applied to a cluster on a lake, over its brokers and over its controllers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import admin as ck
from confluent_kafka.admin import AdminClient

import kraftlake
from kraftlake.diagnosis.undo.apply_plan import apply_plan
from kraftlake.diagnosis.undo.step import Action, StepClass
from tests.interop.test_undo_on_kafka import LONG, past_state_comes_back
from tests.interop.undone_nodes import FAST, LakeCluster, acl, clean, cluster_on_a_lake, done
from tests.server.matrix.wire import Wire


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LakeCluster]:
    with cluster_on_a_lake(tmp_path_factory.mktemp("up"), brokers=1, controllers=1) as up:
        yield up


@pytest.mark.parametrize("over", ["bootstrap", "controller"] if LONG else ["bootstrap"])
def test_a_past_state_comes_back(cluster: LakeCluster, tmp_path: Path, over: str) -> None:
    past_state_comes_back(cluster, tmp_path, over)


@pytest.mark.parametrize("over", ["bootstrap", "controller"] if LONG else ["controller"])
def test_acls_quotas_and_users_made_since_then_go(cluster: LakeCluster, tmp_path: Path, over: str) -> None:
    clean(cluster)
    set_quota(cluster, 1000.0)
    set_user(cluster.admin, "alice")
    then = kraftlake.open(cluster.controller).end_offset - 1
    done(cluster.admin.create_acls([acl("User:eve", ck.AclOperation.ALL), acl("User:bob", ck.AclOperation.READ)]))
    set_quota(cluster, 7.0)
    set_user(cluster.admin, f"eve-{over}")
    source = kraftlake.open(cluster.controller)
    plan = source.plan_undo(then)
    actions = sorted(step.action.name for step in plan.steps)
    assert actions == ["ALTER_QUOTAS", "DELETE_ACL", "DELETE_ACL", "DELETE_SCRAM"]
    found = apply_plan(
        plan, source, getattr(cluster, over), journal=tmp_path / "journal", pace=FAST, classes=[*StepClass]
    )
    assert {one.outcome for one in found.steps} == {"applied"}
    assert found.left.is_empty()
    source = kraftlake.open(cluster.controller)
    assert source.drift(source, None, then).changes == ()
    again = apply_plan(
        plan, source, getattr(cluster, over), journal=tmp_path / "journal", pace=FAST, classes=[*StepClass]
    )
    assert {one.outcome for one in again.steps} == {"already"}
    assert Action.DELETE_SCRAM in {one.step.action for one in again.steps}


def set_user(client: AdminClient, user: str) -> None:
    info = ck.ScramCredentialInfo(ck.ScramMechanism.SCRAM_SHA_256, 4096)
    done(client.alter_user_scram_credentials([ck.UserScramCredentialUpsertion(user, info, b"secret")]))


def set_quota(cluster: LakeCluster, value: float) -> None:
    """Set a quota, which the client has no request for."""
    host, _, port = cluster.bootstrap.partition(":")
    wire = Wire(host, int(port))
    entry: dict[str, Any] = {
        "entity": [{"entity_type": "user", "entity_name": "alice"}],
        "ops": [{"key": "producer_byte_rate", "value": value, "remove": False}],
    }
    (answer,) = wire.ask("alter_client_quotas", 1, {"entries": [entry], "validate_only": False}).entries
    assert not answer.error_code, answer
    wire.close()
