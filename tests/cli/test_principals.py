"""`--principal` of `events`, `watch`, `log` and `image`: what is about a principal, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kraftlake.records import metadata_records as r
from tests.cli.running import DIRECTORY, fault, run, run_json
from tests.diagnosis.effective.test_quotas import quota
from tests.publisher.test_authorizer import acl
from tests.replay import made_logs as log

ALICE, CN = "User:alice", "User:CN=a,OU=b"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def scram(name: str) -> r.UserScramCredentialRecord:
        return r.UserScramCredentialRecord(
            name=name, mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v", iterations=4096
        )

    def token(number: int, owner: str) -> r.DelegationTokenRecord:
        return r.DelegationTokenRecord(owner=owner, requester=owner, token_id=f"t{number}", expiration_timestamp=9)

    batches = log.log_of(
        1, [log.metadata_version()], [acl(1), acl(2, principal="User:bob"), acl(3, principal=CN)],
        [scram("alice"), scram("bob")], [quota(1, user="alice", client_id="a")],
        [quota(2, user="bob"), quota(3, user=None)], [token(1, ALICE), token(2, "User:bob")],
        [r.RemoveAccessControlEntryRecord(id=log.uuid_of(1))],
        [r.RemoveAccessControlEntryRecord(id=log.uuid_of(2))],
    )  # fmt: skip
    return log.write_directory(tmp_path_factory.mktemp("principals"), batches)


def lines(*words: object) -> list[str]:
    return run(*words).stdout.splitlines()


def test_events_of_a_principal_have_the_paths_of_its_acls(source: Path) -> None:
    shown = lines("events", source, "--principal", ALICE)
    assert [line.split("Z  ")[1].split(":")[0] for line in shown] == [
        "ACL added", "credential SCRAM-SHA-256 of user alice was set", "quota of client-id a, user alice",
        "ACL removed",
    ]  # fmt: skip
    assert shown[0].endswith(f"  acl/{log.uuid_of(1)}")
    assert len(lines("events", source, "--principal", CN)) == 1
    assert len(lines("events", source, "--principal", CN, "--principal", ALICE, "--kind", "acl")) == 3
    assert lines("events", source, "--principal", "User:*") == ["nothing of that kind happened"]
    assert "as in User:alice" in fault("events", source, "--principal", "alice", code=2)


def test_records_of_a_principal_include_the_removal_of_its_acls(source: Path) -> None:
    def types(*words: object) -> list[str]:
        return [json.loads(line)["type"] for line in lines("log", source, "--principal", ALICE, *words, "--json")]

    of_alice = [
        "ACCESS_CONTROL_ENTRY_RECORD", "USER_SCRAM_CREDENTIAL_RECORD", "CLIENT_QUOTA_RECORD",
        "REMOVE_ACCESS_CONTROL_ENTRY_RECORD",
    ]  # fmt: skip
    assert types() == of_alice
    assert types("--from", 10) == of_alice[-1:]
    assert types("--show-secrets") == [*of_alice[:3], "DELEGATION_TOKEN_RECORD", of_alice[3]]
    assert lines("log", source, "--principal", ALICE)[0].endswith(f"acl/{log.uuid_of(1)}")


def test_an_image_of_a_principal_is_cut_down_to_it(source: Path) -> None:
    form = run_json("image", source, "--principal", ALICE, "--at", 5)
    assert [acl["principal"] for acl in form["acls"].values()] == [ALICE]
    assert {mechanism: [*users] for mechanism, users in form["scram"].items()} == {"SCRAM-SHA-256": ["alice"]}
    assert form["delegationTokens"] == {}
    assert "topics" not in form
    late = run_json("image", source, "--principal", ALICE, "--show-secrets")
    assert late["clientQuotas"] == [
        {"entity": {"client-id": "a", "user": "alice"}, "quotas": {"producer_byte_rate": 1}}
    ]
    assert [*late["delegationTokens"]] == ["t1"]
    assert [*run_json("image", source, "--principal", CN, "--part", "acls")["acls"]] == [str(log.uuid_of(3))]
    assert f"acl/{log.uuid_of(3)}" in run("image", source, "--principal", CN).stdout


def test_an_acl_stands_with_its_path_wherever_acls_are_listed() -> None:
    path = "acl/dqMBanVnTams6qTBVjyBHw"
    assert path in run("image", DIRECTORY, "--part", "acls", "--all").stdout
    assert path in run("log", DIRECTORY, "--from", 3789, "--to", 3789).stdout
    assert path in run("events", DIRECTORY, "--principal", "User:p523").stdout
    assert "ACCESS_CONTROL_ENTRY" in run("blame", DIRECTORY, path).stdout
