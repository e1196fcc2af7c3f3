"""`kraftlake can`: what it prints, its exit codes, and how it fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import kraftlake
from tests.cli.running import DIRECTORY, fault, run, run_json
from tests.publisher.test_authorizer import acl
from tests.replay import made_logs as log

WRITE = ("User:p523", "write", "transactional-id", "payments")
CONFIGS = ("User:p581", "alter-configs", "topic", "fixed-a")


def test_the_answer_is_a_line_with_the_deciding_acl() -> None:
    allowed = run("can", DIRECTORY, *WRITE)
    assert allowed.stdout == (
        "allowed: allow User:p523 write on transactional_id * from *  acl/dqMBanVnTams6qTBVjyBHw\n"
    )
    denied = run("can", DIRECTORY, "User:nobody", *WRITE[1:], code=3)
    assert denied.stdout == "denied: no ACL of transactional id payments allows it\n"
    assert "super users, who may do everything, are not in the log" in denied.stderr
    assert run("can", DIRECTORY, *WRITE, "--at", 1000, code=3).stdout == (
        "denied: transactional id payments has no ACL\n"
    )


def test_the_hosts_with_another_answer_are_exceptions() -> None:
    printed = run("can", DIRECTORY, *CONFIGS, code=3).stdout.splitlines()
    assert printed == [
        "denied: no ACL of topic fixed-a allows it",
        "  but allowed from 10.0.0.79: allow User:p581 alter_configs on topic * from 10.0.0.79  "
        "acl/z3wjMtPATVCLaJ0OaQqNSA",
    ]
    assert run("can", DIRECTORY, *CONFIGS, "--host", "10.0.0.79").stdout.startswith("allowed: allow User:p581")
    assert "db1 is no IP address" in run("can", DIRECTORY, *CONFIGS, "--host", "db1", code=3).stderr


def test_json_has_the_question_the_answer_and_the_acls() -> None:
    form = run_json("can", DIRECTORY, *WRITE, "--why")
    assert form["allowed"] is True
    assert (form["principal"], form["operation"], form["resourceType"]) == ("User:p523", "WRITE", "TRANSACTIONAL_ID")
    assert form["acl"]["id"] == "dqMBanVnTams6qTBVjyBHw"
    assert [one["effect"] for one in form["acls"] if one["principal"] == "User:p523"] == ["allows"]
    source = kraftlake.open(DIRECTORY)
    assert source.can(*WRITE).to_json().items() <= form.items()
    denied = json.loads(run("can", DIRECTORY, "User:x", "create", "cluster", "--json", code=3).stdout)
    assert (denied["allowed"], denied["acl"], denied["resourceName"]) == (False, None, "kafka-cluster")


def test_who_may_is_a_line_for_each_principal() -> None:
    printed = run("can", DIRECTORY, "--who", "describe", "topic", "fixed-a", "--super-user", "User:admin").stdout
    assert printed.splitlines() == [
        "allowed  User:admin  super user",
        "allowed  User:p1323  allow User:p1323 all on topic * from *  acl/jqqMDjQIShqWl7ivBWLTIg",
        "allowed  User:p515   allow User:p515 describe on topic * from *  acl/6G7tTZVBRTKCX_PjEOMbLQ",
    ]
    source = kraftlake.open(DIRECTORY)
    rows = [
        json.loads(line) for line in run("can", DIRECTORY, "--who", "create", "cluster", "--json").stdout.splitlines()
    ]
    assert [row for access in source.who_may("create", "cluster") for row in access.rows()] == rows
    assert {row["principal"] for row in rows} >= {"User:p1026", "User:p1079"}
    assert run("can", DIRECTORY, "--who", "describe", "token", "x", "--at", 100).stdout == (
        "nobody may describe delegation token x\n"
    )


def test_the_changes_of_an_answer_have_the_records() -> None:
    assert run("can", DIRECTORY, *WRITE, "--changes").stdout.splitlines() == [
        "denied  since the log begins: transactional id payments has no ACL",
        "    3789   2  2026-11-21 07:49:31.238Z  allowed  ACL added: allow User:p523 write on transactional_id * from *"
        "  acl/dqMBanVnTams6qTBVjyBHw",
    ]
    first, last = (
        json.loads(line) for line in run("can", DIRECTORY, *WRITE, "--changes", "--json").stdout.splitlines()
    )
    assert (first["offset"], first["allowed"]) == (None, False)
    assert (last["offset"], last["type"], last["allowed"]) == (3789, "ACCESS_CONTROL_ENTRY_RECORD", True)


def test_a_properties_file_names_super_users_and_whether_everyone_is_allowed(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("super.users=User:root;User:x\n")
    shown = run("can", DIRECTORY, "User:x", *WRITE[1:], "--config", file)
    assert shown.stdout == "allowed: super user\n"
    assert "sets no authorizer.class.name: a node with it allows everything" in shown.stderr
    file.write_text(
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\n"
        "allow.everyone.if.no.acl.found=true\n"
    )
    nothing = log.write_directory(tmp_path, log.log_of(1, [log.metadata_version()], [acl(1, "bar")]))
    open_to_all = run("can", nothing, "User:x", "read", "topic", "foo", "--config", file)
    assert open_to_all.stdout == "allowed: topic foo has no ACL\n"
    assert "there is no topic foo at offset 2" in open_to_all.stderr
    assert run("can", nothing, "User:x", "read", "topic", "foo", code=3).stdout == "denied: topic foo has no ACL\n"
    file.write_text("authorizer.class.name=org.example.Ranger\n")
    assert "there is only org.apache.kafka" in fault("can", DIRECTORY, *WRITE, "--config", file, code=2)
    file.write_text("super.users=\\uZZ\n")
    assert "is no properties file" in fault("can", DIRECTORY, *WRITE, "--config", file, code=2)
    assert "can't be read" in fault("can", DIRECTORY, *WRITE, "--config", tmp_path / "none", code=2)


def test_a_log_without_acls_says_so(tmp_path: Path) -> None:
    source = log.write_directory(tmp_path, log.log_of(1, [log.metadata_version()]))
    shown = run("can", source, "User:x", "create", "cluster", code=3)
    assert "there are no ACLs at offset 1: brokers without an authorizer allow everything" in shown.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("alice", "read", "topic", "a"), "'alice' is no principal: write Type:name, as in User:alice"),
        (("User:alice", "write", "group", "g"), "'write' is no operation on a group: a group has read,"),
        (("User:alice", "read", "topik", "a"), "did you mean topic?"),
        (("User:alice", "read", "topic"), "Name the topic after `read topic`"),
        (("User:alice",), "image SOURCE --principal User:alice has all its ACLs"),
        (("User:alice", "read"), "Ask PRINCIPAL OPERATION RESOURCE [NAME]"),
        (("--who", "read", "topic", "a", "b"), "Ask OPERATION RESOURCE [NAME]"),
        (("--who", "--why", "read", "topic", "a"), "--who lists principals"),
        ((*WRITE, "--why", "--changes"), "Give either --why or --changes"),
        ((*WRITE, "--super-user", "root"), "super.users names 'root', which is no principal"),
    ],
)
def test_what_can_not_be_asked_is_an_error_of_the_command_line(words: tuple[str, ...], sentence: str) -> None:
    assert sentence in fault("can", DIRECTORY, *words, code=2)


def test_an_offset_outside_of_the_log_is_an_error() -> None:
    assert "Offset 9999 is past the end" in fault("can", DIRECTORY, *WRITE, "--at", 9999)
    assert "Offset 9999 is past the end" in fault("can", DIRECTORY, *WRITE, "--changes", "--at", 9999)
