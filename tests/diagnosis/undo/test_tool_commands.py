"""Scripts of Kafka's tools: run by a shell with tools that say what they were given."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import attrs

from kraftlake.diagnosis.undo.step import Action, Step, StepChange, StepClass
from kraftlake.diagnosis.undo.tool_commands import commands_of, script_of
from kraftlake.image.acls_image import StandardAcl
from kraftlake.image.json_form import acl_json
from kraftlake.runtime.java_properties import parse_properties

TOOLS = ("topics", "configs", "acls", "features", "reassign-partitions")
HOSTILE = (
    "plain", "a b", "$(touch HACKED)", "`touch HACKED`", "'; touch HACKED; '", "a\nEOF\ntouch HACKED", "-x",
    "é\x1b[2J", "*",
)  # fmt: skip
_TOOL = r"""#!/bin/sh
printf '%s\037' "${0##*/}" "$@" >>calls
case "$*" in *"/dev/stdin"*) cat >>calls ;; esac
printf '\036' >>calls
"""
"""Adds the words that it is given to a file, and what comes from stdin."""


def calls_by(tmp_path: Path, *steps: Step) -> list[dict]:
    """What the tools are given by the script of some steps."""
    calls = calls_by_script(tmp_path, "\n".join(script_of(steps)) + "\n")
    for one in calls:
        assert one["words"][:2] == ["--bootstrap-server", "b:9092"]
        one["words"] = one["words"][2:]
    return calls


def calls_by_script(tmp_path: Path, script: str, bootstrap: str = "b:9092") -> list[dict]:
    """The tool, words and input of each command that a script runs."""
    for tool in TOOLS:
        file = tmp_path / f"kafka-{tool}.sh"
        file.write_text(_TOOL)
        file.chmod(0o755)
    (tmp_path / "script").write_text(script)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "BOOTSTRAP": bootstrap}
    subprocess.run(["sh", "script"], cwd=tmp_path, env=environment, check=True, stdin=subprocess.DEVNULL)
    assert not (tmp_path / "HACKED").exists()
    calls = []
    for one in (tmp_path / "calls").read_text().split("\x1e")[:-1]:
        tool, *words, given = one.split("\x1f")
        calls.append({"tool": tool, "words": words, "input": given or None})
    return calls


def step(action: Action, subject: dict, *changes: tuple) -> Step:
    return Step(
        action=action, step_class=StepClass.SAFE, path="a/path", subject=subject,
        changes=tuple(StepChange(field=field, before=before, after=after) for field, before, after in changes),
    )  # fmt: skip


def values(words: list[str], name: str) -> list[str]:
    return [words[at + 1] for at, one in enumerate(words) if one == name] + [
        one.removeprefix(f"{name}=") for one in words if one.startswith(f"{name}=")
    ]


def steps_named(name: str) -> list[Step]:
    acl = StandardAcl(
        resource_type=3, resource_name=name, pattern_type=4, principal=f"User:{name}", host="*", operation=10,
        permission_type=2,
    )  # fmt: skip
    return [
        step(Action.CREATE_TOPIC, {"topic": name}, ("partitions", None, 3), ("replicationFactor", None, 2)),
        step(Action.ALTER_CONFIGS, {"type": "GROUP", "name": name}, (name, None, name), ("gone", "1", None)),
        step(Action.CREATE_ACL, {"acl": acl_json(acl)}, ("acl", None, "words")),
        step(Action.DELETE_SCRAM, {"user": name, "mechanism": "SCRAM-SHA-256"}, ("iterations", 1, None)),
        step(Action.REASSIGN, {"topic": name}, ("0", [1], [2, 3])),
    ]


def test_names_reach_the_tools_as_they_are(tmp_path: Path) -> None:
    calls = calls_by(tmp_path, *(one for name in HOSTILE for one in steps_named(name)))
    for at, name in enumerate(HOSTILE):
        create, delete_config, set_config, add, scram, move = calls[6 * at : 6 * at + 6]
        assert values(create["words"], "--topic") == [name]
        assert values(delete_config["words"], "--entity-name") == [name]
        assert values(delete_config["words"], "--delete-config") == ["gone"]
        if set_config["input"] is None:
            assert values(set_config["words"], "--add-config") == [f"{name}={name}"]
        else:
            assert parse_properties(set_config["input"].encode()) == {name: name}
        assert values(add["words"], "--deny-principal") == [f"User:{name}"]
        assert values(add["words"], "--group") == [name]
        assert values(add["words"], "--operation") == ["DescribeConfigs"]
        assert values(add["words"], "--resource-pattern-type") == ["prefixed"]
        assert values(scram["words"], "--entity-name") == [name]
        assert json.loads(move["input"])["partitions"] == [{"topic": name, "partition": 0, "replicas": [2, 3]}]
    assert [one["input"] is None for one in calls[2::6]].count(True) == 2


def test_a_topic_that_is_deleted_is_no_pattern_of_others(tmp_path: Path) -> None:
    (call,) = calls_by(tmp_path, step(Action.DELETE_TOPIC, {"topic": "a.b-c"}))
    assert values(call["words"], "--topic") == ["a\\.b-c"]


def test_quotas_features_and_assignments_have_the_words_of_the_tools(tmp_path: Path) -> None:
    quotas, created, up, off, down = calls_by(
        tmp_path,
        step(Action.ALTER_QUOTAS, {"entity": {"user": "u", "client-id": None}}, ("producer_byte_rate", None, 2.5)),
        step(Action.CREATE_TOPIC, {"topic": "t"}, ("partitions", None, 2), ("replicas", None, [[1, 2], [2, 1]])),
        step(Action.UPDATE_FEATURE, {"feature": "metadata.version"}, ("level", 25, 26)),
        step(Action.UPDATE_FEATURE, {"feature": "group.version"}, ("level", 1, None)),
        step(Action.UPDATE_FEATURE, {"feature": "x.version"}, ("level", 2, 1)),
    )
    assert " ".join(quotas["words"]) == (
        "--alter --entity-type users --entity-name u --entity-type clients --entity-default "
        "--add-config producer_byte_rate=2.5"
    )
    assert values(created["words"], "--replica-assignment") == ["1:2,2:1"]
    assert up["words"] == ["upgrade", "--feature", "metadata.version=26"]
    assert off["words"] == ["disable", "--feature", "group.version"]
    assert down["words"] == ["downgrade", "--feature", "x.version=1"]


def test_what_no_tool_takes_is_a_comment_of_one_line() -> None:
    impossible = step(Action.NONE, {"user": "a"}, ("iterations", None, 1))
    for one in (impossible, step(Action.DELETE_TOPIC, {"topic": "a\0b"})):
        (line,) = commands_of(one)
        assert line.startswith("# a/path: ")
    (line,) = commands_of(attrs.evolve(impossible, path="a\nrm x"))
    assert line.startswith("# a\\nrm x")
