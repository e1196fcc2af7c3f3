"""The commands that change a controlled lake, as its controller for a moment."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import threading
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kraftlake.cli.application import application
from kraftlake.controller.config import ControllerConfig
from kraftlake.controller.quorum.embedded import EmbeddedController
from kraftlake.controller.quorum.quorum_controller import QuorumController
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.publisher.snapshot_generator import LakeSnapshotEmitter
from kraftlake.replay.loader.quorum_state import QuorumState
from kraftlake.runtime.clock import SystemClock
from kraftlake.runtime.errors import LakeError
from tests.cli.running import DIRECTORY, fault, run, run_json


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    path = tmp_path / "lake"
    run("format", path, "--feature", "eligible.leader.replicas.version=0")
    for broker, rack in ((1, "a"), (2, "b"), (3, "a")):
        run("brokers", "register", broker, "--rack", rack, "--unfence", "--lake", path)
    return path


def change(*words: object) -> dict[str, Any]:
    """The one result of a command that changes a lake."""
    report = run_json(*words)
    (result,) = report["results"]
    return dict(result)


def partition(lake: Path, topic: str, number: int = 0) -> dict[str, Any]:
    return dict(run_json("image", lake)["topics"][topic]["partitions"][str(number)])


def test_a_day_in_the_life_of_a_cluster(lake: Path) -> None:
    made = change("topics", "create", "orders", "--assign", "1,2", "--assign", "2,3", "--lake", lake)
    assert (made["error"], made["partitions"], made["replicas"]) == (None, 2, 2)
    assert change("brokers", "fence", 1, "--lake", lake)["fenced"] is True
    assert (partition(lake, "orders")["leader"], partition(lake, "orders")["isr"]) == (2, [2])
    assert change("brokers", "unfence", 1, "--lake", lake)["fenced"] is False
    assert change("topics", "isr", "orders-0", "2,1", "--lake", lake)["isr"] == [2, 1]
    assert change("topics", "elect", "orders-0", "--lake", lake)["leader"] == 1
    assert change("topics", "reassign", "orders-0", "--replicas", "3,2", "--lake", lake)["adding"] == [3]
    assert change("topics", "reassign", "orders-0", "--cancel", "--lake", lake)["adding"] == []
    assert change("topics", "grow", "orders", "--partitions", 3, "--lake", lake)["partitions"] == 3
    assert change("brokers", "shutdown", 2, "--lake", lake) == {
        "name": "2", "error": None, "fenced": True, "inControlledShutdown": True,
    }  # fmt: skip
    assert partition(lake, "orders", 1)["leader"] == 3
    assert change("brokers", "unregister", 2, "--lake", lake)["unregistered"] is True
    assert change("topics", "delete", "orders", "--lake", lake)["deleted"] is True
    assert run_json("verify", lake)["sound"] is True
    assert run_json("image", lake)["topics"] == {}


def test_what_has_no_effect_is_warned_of(lake: Path) -> None:
    made = run("topics", "create", "orders", "--config", "preallocate=true", "--lake", lake)
    warning = "warning: preallocate of topic orders has no effect: segments grow as they are written\n"
    assert made.stderr == warning
    alter = ("configs", "alter", "topic:orders", "--lake", lake)
    assert run(*alter, "--set", "retention.ms=60000").stderr == ""
    assert run(*alter, "--set", "preallocate=TRUE", "--json").stderr == warning
    quota = run("quotas", "alter", "--user", "alice", "--set", "request_percentage=50", "--lake", lake)
    assert quota.stderr == ""


def test_settings_are_changed(lake: Path) -> None:
    run("topics", "create", "orders", "--config", "flush.ms=7", "--lake", lake)
    alter = ("configs", "alter", "topic:orders", "--lake", lake)
    assert change(*alter, "--set", "retention.ms=60000", "--delete", "flush.ms")["configs"] == ["retention.ms"]
    assert change(*alter, "--append", "cleanup.policy=compact")["configs"] == ["cleanup.policy", "retention.ms"]
    run("configs", "alter", "broker:", "--set", "log.retention.ms=259200000", "--lake", lake)
    quota = change(
        "quotas", "alter", "--user", "alice", "--client-id", "", "--set", "request_percentage=50", "--lake", lake
    )
    assert quota == {"name": '{"client-id":null,"user":"alice"}', "error": None, "quotas": ["request_percentage"]}
    acl = ("--principal", "User:alice", "--operation", "read", "--topic", "orders", "--lake", lake)
    assert change("acls", "add", *acl)["acls"] == 1
    assert change("acls", "add", *acl)["acls"] == 1
    image = run_json("image", lake)
    assert image["configs"]["TOPIC"]["orders"] == {"retention.ms": "60000", "cleanup.policy": "delete,compact"}
    assert image["configs"]["BROKER"][""]["log.retention.ms"] == "259200000"
    assert image["clientQuotas"] == [
        {"entity": {"client-id": None, "user": "alice"}, "quotas": {"request_percentage": 50.0}}
    ]
    assert len(image["acls"]) == 1
    assert change("acls", "remove", *acl)["removed"] == 1
    assert change("features", "update", "group.version=0", "--downgrade", "--lake", lake)["level"] == 0


def with_typed(typed: str, *words: object) -> list[dict[str, Any]]:
    """The results of a command that reads stdin."""
    result = CliRunner().invoke(application, [*map(str, words), "--json"], input=typed)
    assert result.exit_code == 0, result.stderr
    assert "secret" not in result.stdout
    return list(json.loads(result.stdout)["results"])


def test_users_get_passwords_that_no_command_line_has(lake: Path, tmp_path: Path) -> None:
    file = tmp_path / "alice.txt"
    file.write_text("secret\n# alice's\n")
    made = with_typed("", "scram", "set", "alice", "--password-file", file, "--lake", lake)
    assert [(one["mechanism"], one["error"]) for one in made] == [("SCRAM-SHA-256", None), ("SCRAM-SHA-512", None)]
    bobs = ("--mechanism", "scram-sha-512", "--iterations", 8192, "--lake", lake)
    assert [one["iterations"] for one in with_typed("secret\n", "scram", "set", "bob", *bobs)] == [8192]
    kept = {
        (mechanism, user): credential
        for mechanism, users in run_json("image", lake, "--show-secrets")["scram"].items()
        for user, credential in users.items()
    }
    assert {*kept} == {("SCRAM-SHA-256", "alice"), ("SCRAM-SHA-512", "alice"), ("SCRAM-SHA-512", "bob")}
    for (mechanism, _), credential in kept.items():
        name = mechanism[6:].replace("-", "").lower()
        salted = hashlib.pbkdf2_hmac(name, b"secret", bytes.fromhex(credential["salt"]), credential["iterations"])
        server_key = hmac.digest(salted, b"Server Key", name)
        assert bytes.fromhex(credential["serverKey"]) == server_key
    assert change("scram", "delete", "bob", "--lake", lake)["deleted"] is True
    deleted = run_json("scram", "delete", "alice", "--lake", lake)["results"]
    assert [one["mechanism"] for one in deleted] == ["SCRAM-SHA-256", "SCRAM-SHA-512"]
    assert run_json("image", lake)["scram"] == {}
    assert "RESOURCE_NOT_FOUND" in run("scram", "delete", "alice", "--lake", lake, code=1).stderr
    assert (
        "UNACCEPTABLE_CREDENTIAL"
        in run("scram", "set", "eve", "--iterations", 1, "--password-file", file, "--lake", lake, code=1).stderr
    )


def test_a_password_is_not_empty(lake: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\nsecret")
    at = MetadataLog.open(lake).end_offset
    assert "has no password" in fault(
        "scram", "set", "alice", "--password-file", tmp_path / "empty", "--lake", lake, code=2
    )
    assert "on stdin" in fault("scram", "set", "alice", "--lake", lake, code=2)
    assert MetadataLog.open(lake).end_offset == at


def test_tokens_live_as_long_as_the_settings_of_nodes_let_them(lake: Path, tmp_path: Path) -> None:
    config = tmp_path / "node.properties"
    config.write_text("delegation.token.secret.key=a key\ndelegation.token.expiry.time.ms=3600000\n")
    more = ("--config", config, "--lake", lake)
    made = change("tokens", "create", "--owner", "User:alice", "--renewer", "User:bob", *more)
    id_ = made["name"]
    assert b64decode(made["hmac"]) == hmac.digest(b"a key", id_.encode(), "sha512")
    assert made["lastsUntil"] - made["expires"] == (7 * 24 - 1) * 3_600_000
    known = run_json("image", lake, "--show-secrets")["delegationTokens"][id_]
    assert (known["owner"], known["renewers"]) == ("User:alice", ["User:bob"])
    renewed = change("tokens", "renew", id_, "--period-ms", 60_000, *more)
    assert renewed["expires"] < made["expires"]
    assert change("tokens", "renew", "--owner", "User:alice", *more)["expires"] > renewed["expires"]
    assert run_json("tokens", "expire", "--owner", "User:bob", *more)["results"] == []
    assert "DELEGATION_TOKEN_NOT_FOUND" in run("tokens", "expire", "nothing", *more, code=1).stderr
    change("tokens", "expire", id_, *more)
    assert run_json("image", lake)["delegationTokens"] == {}
    group = run("tokens", "create", "--owner", "User:alice", "--renewer", "Group:g", *more, code=1)
    assert "INVALID_PRINCIPAL_TYPE" in group.stderr
    config.write_text("delegation.token.secret.key=\n")
    assert "no delegation.token.secret.key" in fault("tokens", "create", "--owner", "User:alice", *more, code=2)


def test_what_is_refused_says_so_with_kafkas_error_and_exits_with_1(lake: Path) -> None:
    result = run("topics", "create", "a b", "--lake", lake, code=1)
    assert result.stderr.startswith("error: a b: INVALID_TOPIC_EXCEPTION: ")
    assert result.stdout == ""
    printed = run("topics", "delete", "nobody", "--lake", lake, "--json", code=1).stdout
    assert '"error":"UNKNOWN_TOPIC_OR_PARTITION","code":3' in printed
    assert "BROKER_ID_NOT_REGISTERED" in fault("brokers", "fence", 9, "--lake", lake)
    assert "DUPLICATE_BROKER_REGISTRATION" in fault("brokers", "register", 1, "--lake", lake)


def test_results_are_rows_of_csv_and_what_is_refused_is_one_too(lake: Path) -> None:
    made = run("topics", "create", "orders", "--partitions", 2, "--lake", lake, "--output", "csv").stdout.splitlines()
    assert made[0] == "name,error,code,message,id,partitions,replicas"
    assert re.fullmatch(r"orders,,,,[\w-]{22},2,1", made[1])
    refused = run("topics", "delete", "nobody", "--lake", lake, "--output", "csv", code=1)
    assert refused.stdout.splitlines()[1] == "nobody,UNKNOWN_TOPIC_OR_PARTITION,3,There is no topic 'nobody'."
    assert refused.stderr == "error: nobody: UNKNOWN_TOPIC_OR_PARTITION: There is no topic 'nobody'.\n"


@pytest.mark.parametrize(
    "words",
    [
        ("topics", "create", "x", "--assign", "one"),
        ("topics", "create", "x", "--config", "retention.ms"),
        ("topics", "isr", "orders", "1"),
        ("topics", "isr", "orders-0", "one"),
        ("topics", "elect", "orders"),
        ("topics", "reassign", "orders-0", "--replicas", "one"),
        ("topics", "reassign", "orders-0"),
        ("configs", "alter", "nonsense:x", "--set", "a=b"),
        ("configs", "alter", "topic:x"),
        ("configs", "alter", "topic:x", "--set", "a=b", "--delete", "a"),
        ("configs", "alter", "topic:x", "--set", "a=b", "--set", "a=c"),
        ("configs", "alter", "broker:", "--set", "log.retention.hours=72"),
        ("configs", "alter", "broker:1", "--set", "num.io.threads=x"),
        ("configs", "alter", "broker:", "--set", "listeners=PLAINTEXT://:1"),
        ("quotas", "alter", "--user", "a"),
        ("quotas", "alter", "--user", "a", "--set", "request_percentage=much"),
        ("acls", "add", "--principal", "User:a", "--operation", "read"),
        ("quotas", "alter", "--user", "a", "--set", "request_percentage=1_0"),
        ("features", "update", "group.version=new"),
        ("features", "update", "group.version=--1"),
    ],
)
def test_a_wrong_command_line_is_told_with_2_and_nobody_claims(lake: Path, words: tuple[str, ...]) -> None:
    before = MetadataLog.open(lake).end_offset
    assert run(*words, "--lake", lake, code=2).stderr.count("\n") == 1
    assert MetadataLog.open(lake).end_offset == before


def test_an_isr_that_can_not_be_is_refused_with_a_reason(lake: Path) -> None:
    run("topics", "create", "orders", "--assign", "1,2", "--lake", lake)
    assert (
        "has the leader 1 and others of the replicas 1,2"
        in run("topics", "isr", "orders-0", "1,3", "--lake", lake, code=1).stderr
    )
    run("brokers", "fence", 2, "--lake", lake)
    assert "fenced" in run("topics", "isr", "orders-0", "1,2", "--lake", lake, code=1).stderr


def test_an_isr_that_completes_a_reassignment_may_have_another_leader(lake: Path) -> None:
    run("topics", "create", "orders", "--assign", "1", "--lake", lake)
    run("topics", "reassign", "orders-0", "--replicas", "2", "--lake", lake)
    done = change("topics", "isr", "orders-0", "1,2", "--lake", lake)
    assert (done["error"], done["isr"], done["leader"]) == (None, [2], 2)


def test_an_election_that_nobody_needs_says_so(lake: Path) -> None:
    assert run("topics", "elect", "--lake", lake).stdout == "nothing to do\n"
    assert run_json("topics", "elect", "--lake", lake)["results"] == []


def test_an_imported_lake_is_refused(tmp_path: Path) -> None:
    run("import", DIRECTORY, tmp_path / "imported")
    sentence = fault("topics", "create", "orders", "--lake", tmp_path / "imported")
    assert "is an imported lake" in sentence
    assert "kraftlake fork" in sentence


def test_a_fork_can_be_changed(tmp_path: Path) -> None:
    run("fork", DIRECTORY, tmp_path / "fork", "--at-offset", 4592)
    run("topics", "create", "what-if", "--assign", "3000", "--lake", tmp_path / "fork", code=1)
    assert run_json("verify", tmp_path / "fork")["sound"] is True


@contextmanager
def active_controller(lake: Path) -> Iterator[QuorumController]:
    """Controller 7, which writes a no-op record every 20 ms."""
    log = MetadataLog.open(lake, durability="os")
    config = ControllerConfig(node_id=7, cluster_id=log.cluster_id or "", max_idle_interval_ms=20)
    controller = QuorumController(log, config, claim_at_once=True)
    try:
        while not controller.is_active:
            threading.Event().wait(0.01)
        yield controller
    finally:
        controller.close()


def test_an_active_controller_is_left_alone_unless_it_is_taken_over_from(lake: Path) -> None:
    with active_controller(lake):
        with pytest.raises(LakeError, match="Controller 7 is active"):
            EmbeddedController(MetadataLog.open(lake))
        run("topics", "create", "mine", "--take-over", "--lake", lake)
        assert "mine" in run_json("image", lake)["topics"]


def test_an_active_controller_is_left_alone_when_the_newest_snapshot_is_of_its_epoch(lake: Path) -> None:
    with active_controller(lake) as controller:
        image = controller.read(lambda image: image).result(60)
        LakeSnapshotEmitter(lake, SystemClock()).maybe_emit(image, QuorumState())
        with pytest.raises(LakeError, match="Controller 7 is active"):
            EmbeddedController(MetadataLog.open(lake))


def test_a_command_that_loses_its_claim_to_another_says_what_to_do(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claimed = EmbeddedController.__init__

    def claimed_and_lost(self: EmbeddedController, *args: Any, **options: Any) -> None:
        claimed(self, *args, **options)
        MetadataLog.open(str(lake)).claim(node_id=7)

    monkeypatch.setattr(EmbeddedController, "__init__", claimed_and_lost)
    errors = run("topics", "create", "orders", "--lake", lake, code=1).stderr
    assert "Another command or controller has claimed" in errors
    assert "run the command again" in errors


def test_a_cluster_begins_with_the_users_that_format_was_given(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    run("format", lake, "--release-version", "4.0", "--add-scram", "SCRAM-SHA-256=[name=alice,password=secret]")
    run("brokers", "register", 1, "--lake", lake)
    image = run_json("image", lake)
    assert image["metadataVersion"]["name"] == "4.0-IV3"
    assert set(image["scram"]["SCRAM-SHA-256"]) == {"alice"}


def test_format_reads_passwords_that_are_not_given_from_stdin(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    users = [word for name in ("alice", "bob") for word in ("--add-scram", f"SCRAM-SHA-512=[name={name}]")]
    result = CliRunner().invoke(application, ["format", str(lake), *users], input="secret\nother\n")
    assert result.exit_code == 0, result.stderr
    run("brokers", "register", 1, "--lake", lake)
    found = run_json("image", lake, "--show-secrets")["scram"]["SCRAM-SHA-512"]
    for user, password in (("alice", b"secret"), ("bob", b"other")):
        salted = hashlib.pbkdf2_hmac("sha512", password, bytes.fromhex(found[user]["salt"]), 4096)
        assert bytes.fromhex(found[user]["serverKey"]) == hmac.digest(salted, b"Server Key", "sha512")


@pytest.mark.parametrize(
    "words",
    [
        ("--release-version", "9.9"),
        ("--feature", "nonsense=1"),
        ("--feature", "group.version"),
        ("--feature", "group.version=x"),
        ("--add-scram", "SCRAM-SHA-256=[name=alice]"),
        ("--add-scram", "MD5=[name=alice,password=x]"),
        ("--add-scram", "SCRAM-SHA-256=[name=alice,password=x,salt=!]"),
        ("--add-scram", "SCRAM-SHA-256=[name=alice,saltedpassword=YQ==]"),
        ("--add-scram", "SCRAM-SHA-256=[name=alice,saltedpassword=YQ==,salt=YQ==,password=x]"),
        ("--add-scram", "SCRAM-SHA-256=[name=alice,password=x,iterations=4095]"),
        ("--add-scram", "SCRAM-SHA-256=[name=alice,password=x,iterations=x]"),
        ("--release-version", "3.4", "--add-scram", "SCRAM-SHA-256=[name=alice,password=x]"),
    ],
)
def test_a_beginning_that_can_not_be_makes_no_lake(tmp_path: Path, words: tuple[str, ...]) -> None:
    run("format", tmp_path / "lake", *words, code=2)
    assert not (tmp_path / "lake").exists()
