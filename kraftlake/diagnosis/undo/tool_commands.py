"""The steps of a plan as a shell script of Kafka's own tools; every name is quoted, whatever it holds."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from kraftlake.diagnosis.undo.step import Action, Step
from kraftlake.image.kafka_names import (
    OPERATIONS,
    PATTERN_TYPES,
    AclPermissionType,
    ResourceType,
    name_of,
)
from kraftlake.runtime.words import shown

HEAD: Final = """\
#!/bin/sh
# BOOTSTRAP is HOST:PORT of a broker, COMMAND_CONFIG the properties file of the tools, if they need one.
set -eu
: "${BOOTSTRAP:?}"
kafka() {
  tool=$1
  shift
  "$tool" --bootstrap-server "$BOOTSTRAP" ${COMMAND_CONFIG:+--command-config "$COMMAND_CONFIG"} "$@"
}
"""
_MOVED: Final = (
    "until kafka kafka-reassign-partitions.sh --list | grep -q 'No partition reassignments found'; do sleep 1; done"
)
_PLAIN_CONFIG: Final = re.compile(r"[\w.-]+")
_PLAIN_VALUE: Final = re.compile(r"[\w.:/*+-]+")
_ENTITIES: Final[Mapping[str, str]] = {
    "TOPIC": "topics", "BROKER": "brokers", "CLIENT_METRICS": "client-metrics", "GROUP": "groups",
    "user": "users", "client-id": "clients", "ip": "ips",
}  # fmt: skip
_RESOURCES: Final[Mapping[int, str]] = {
    ResourceType.TOPIC: "--topic",
    ResourceType.GROUP: "--group",
    ResourceType.TRANSACTIONAL_ID: "--transactional-id",
    ResourceType.DELEGATION_TOKEN: "--delegation-token",
    ResourceType.USER: "--user-principal",
}


def script_of(steps: Iterable[Step]) -> Iterator[str]:
    """The lines of a script that takes the steps; what no tool takes is a comment."""
    yield from HEAD.splitlines()
    waits = False
    for step in steps:
        if step.ends_throttle and not waits:
            waits = True
            yield _MOVED
        yield from commands_of(step)


def commands_of(step: Step) -> list[str]:
    """The lines of the commands of one step, or of the comment that stands for it."""
    texts = [text for text in _texts(step.to_json()) if "\0" in text]
    if step.action is Action.NONE or texts:
        why = "a name with a NUL byte can't be given to a command" if texts else step.note
        return [f"# {shown(step.path)}: {shown(why)}"]
    if not step.can_run:
        names = ", ".join(change.field for change in step.changes if change.is_redacted)
        return [f"# {shown(step.path)}: the value of {shown(names)} is redacted: --show-secrets shows it"]
    return _MAKERS[step.action](step)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _texts([*value, *value.values()])
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)


def _option(name: str, value: str) -> str:
    """An option with its value, which may begin with a dash."""
    return shlex.quote(f"{name}={value}") if value.startswith("-") else f"{name} {shlex.quote(value)}"


def _line(*words: str) -> str:
    return " ".join(("kafka", *filter(None, words)))


def _literal(topic: str) -> str:
    """A topic's name as a pattern that no other topic matches: other verbs than --create take a pattern."""
    return re.sub(r"[^\w-]", lambda found: f"\\{found[0]}", topic)


def _feature(step: Step) -> list[str]:
    name, after, before = step.subject["feature"], step.after("level") or 0, step.before("level") or 0
    if not after:
        return [_line("kafka-features.sh disable", _option("--feature", name))]
    verb = "downgrade" if after < before else "upgrade"
    return [_line("kafka-features.sh", verb, _option("--feature", f"{name}={after}"))]


def _create_topic(step: Step) -> list[str]:
    replicas = step.after("replicas")
    if replicas is None:
        size = f"--partitions {step.after('partitions')} --replication-factor {step.after('replicationFactor')}"
    else:
        size = f"--replica-assignment {','.join(':'.join(map(str, lists)) for lists in replicas)}"
    return [_line("kafka-topics.sh --create --if-not-exists", _option("--topic", step.subject["topic"]), size)]


def _add_partitions(step: Step) -> list[str]:
    topic = _option("--topic", _literal(step.subject["topic"]))
    return [_line("kafka-topics.sh --alter", topic, f"--partitions {step.after('partitions')}")]


def _delete_topic(step: Step) -> list[str]:
    return [_line("kafka-topics.sh --delete", _option("--topic", _literal(step.subject["topic"])))]


def _reassign(step: Step) -> list[str]:
    moves = [
        {"topic": step.subject["topic"], "partition": int(change.field), "replicas": change.after}
        for change in step.changes
    ]
    command = _line("kafka-reassign-partitions.sh --execute --additional --reassignment-json-file /dev/stdin")
    return _with_input(command, [json.dumps({"version": 1, "partitions": moves})])


def _alter_configs(step: Step) -> list[str]:
    kind, name = step.subject["type"], step.subject["name"]
    if kind not in _ENTITIES:
        return [f"# {shown(step.path)}: the tools have no configs of this type"]
    entity = f"--entity-type {_ENTITIES[kind]} {_option('--entity-name', name) if name else '--entity-default'}"
    return _config_lines(entity, {change.field: change.after for change in step.changes})


def _alter_quotas(step: Step) -> list[str]:
    entity = " ".join(
        f"--entity-type {_ENTITIES[type_]} {'--entity-default' if name is None else _option('--entity-name', name)}"
        for type_, name in step.subject["entity"].items()
    )
    return _config_lines(entity, {c.field: None if c.after is None else repr(float(c.after)) for c in step.changes})


def _config_lines(entity: str, values: Mapping[str, str | None]) -> list[str]:
    """The commands that set and delete configs of an entity: values that the option can't have come from a file."""
    head = f"kafka-configs.sh --alter {entity}"
    deleted = [name for name, value in values.items() if value is None]
    given = {name: value for name, value in values.items() if value is not None}
    plain = {name: value for name, value in given.items() if _PLAIN_CONFIG.fullmatch(name) and _is_plain(value)}
    lines = [_line(head, _option("--delete-config", name)) for name in deleted]
    if plain:
        text = ",".join(f"{name}={f'[{value}]' if ',' in value else value}" for name, value in plain.items())
        lines.append(_line(head, _option("--add-config", text)))
    if len(plain) < len(given):
        properties = [f"{_property(n, key=True)}={_property(v)}" for n, v in given.items() if n not in plain]
        lines += _with_input(_line(head, "--add-config-file /dev/stdin"), properties)
    return lines


def _is_plain(value: str) -> bool:
    return all(_PLAIN_VALUE.fullmatch(part) for part in value.split(","))


def _property(text: str, *, key: bool = False) -> str:
    """A key or a value of a Java properties file, in ASCII and on one line."""
    escaped = []
    for at, one in enumerate(text):
        if one == "\\" or (key and one in "=: #!") or (at == 0 and one == " "):
            escaped.append(f"\\{one}")
        elif one.isascii() and one.isprintable():
            escaped.append(one)
        else:
            units = one.encode("utf-16-be", "surrogatepass")
            escaped += [f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2)]
    return "".join(escaped)


def _with_input(command: str, lines: list[str]) -> list[str]:
    return [f"{command} <<'EOF'", *lines, "EOF"]


def _acl(step: Step) -> list[str]:
    acl = step.subject["acl"]
    is_added = step.action is Action.CREATE_ACL
    side = "deny" if acl["permissionType"] == AclPermissionType.DENY else "allow"
    if acl["resourceType"] == ResourceType.CLUSTER:
        resource = "--cluster"
    else:
        resource = _option(_RESOURCES.get(acl["resourceType"], "--topic"), acl["resourceName"])
    operation = "".join(word.capitalize() for word in name_of(OPERATIONS, acl["operation"]).split("_"))
    pattern = name_of(PATTERN_TYPES, acl["patternType"]).lower()
    words = (
        "--add" if is_added else "--remove --force",
        _option(f"--{side}-principal", acl["principal"]),
        _option(f"--{side}-host", acl["host"]),
        f"--operation {operation}",
        resource,
        "" if pattern == "literal" else f"--resource-pattern-type {pattern}",
    )
    return [_line("kafka-acls.sh", *words)]


def _delete_scram(step: Step) -> list[str]:
    user = _option("--entity-name", step.subject["user"])
    head = f"kafka-configs.sh --alter --entity-type users {user}"
    return [_line(head, _option("--delete-config", step.subject["mechanism"]))]


_MAKERS: Final[Mapping[Action, Callable[[Step], list[str]]]] = {
    Action.UPDATE_FEATURE: _feature,
    Action.CREATE_TOPIC: _create_topic,
    Action.ADD_PARTITIONS: _add_partitions,
    Action.DELETE_TOPIC: _delete_topic,
    Action.REASSIGN: _reassign,
    Action.ALTER_CONFIGS: _alter_configs,
    Action.ALTER_QUOTAS: _alter_quotas,
    Action.CREATE_ACL: _acl,
    Action.DELETE_ACL: _acl,
    Action.DELETE_SCRAM: _delete_scram,
}
