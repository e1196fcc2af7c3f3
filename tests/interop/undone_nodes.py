"""A Kafka node with an authorizer, and the changes that tests of undo make to it by a client of Kafka's."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
from confluent_kafka import admin as ck
from confluent_kafka.admin import AdminClient

from kraftlake.diagnosis.undo.applying import Pace
from tests.kafka_node import KafkaNode
from tests.server.cluster_up.started import cluster_up
from tests.waiting import wait_for

AUTHORIZED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
FAST = Pace(rate=1000)


@attrs.frozen
class LakeCluster:
    """A cluster of `kraftlake cluster up`, by the addresses of its brokers and of its controllers."""

    bootstrap: str
    controller: str
    admin: AdminClient


@contextmanager
def cluster_on_a_lake(folder: Path, *, brokers: int = 3, controllers: int = 2) -> Iterator[LakeCluster]:
    """A cluster with an authorizer on a lake, of processes."""
    settings = [word for name, value in AUTHORIZED.items() for word in ("--override", f"{name}={value}")]
    with cluster_up(folder, "--brokers", brokers, "--controllers", controllers, *settings) as cluster:
        client = AdminClient({"bootstrap.servers": cluster["bootstrap"], "log_level": 2})
        yield LakeCluster(cluster["bootstrap"], cluster["controllers"], client)


def done(futures: dict[Any, Any]) -> None:
    for future in futures.values():
        future.result(timeout=120)


def acl(principal: str, operation: Any, *, deny: bool = False) -> ck.AclBinding:
    permission = ck.AclPermissionType.DENY if deny else ck.AclPermissionType.ALLOW
    return ck.AclBinding(
        ck.ResourceType.TOPIC, "orders", ck.ResourcePatternType.LITERAL, principal, "*", operation, permission
    )


def set_configs(client: AdminClient, kind: Any, name: str, **values: str | None) -> None:
    entries = [
        ck.ConfigEntry(
            key.replace("_", "."),
            value,
            incremental_operation=ck.AlterConfigOpType.DELETE if value is None else ck.AlterConfigOpType.SET,
        )
        for key, value in values.items()
    ]
    done(client.incremental_alter_configs([ck.ConfigResource(kind, name, incremental_configs=entries)]))


def delete_all_acls(client: AdminClient) -> None:
    any_ = ck.AclBindingFilter(
        ck.ResourceType.ANY, None, ck.ResourcePatternType.ANY, None, None, ck.AclOperation.ANY, ck.AclPermissionType.ANY
    )
    done(client.delete_acls([any_]))


def clean(node: KafkaNode | LakeCluster) -> None:
    client = node.admin
    names = [name for name in client.list_topics(timeout=120).topics if not name.startswith("__")]
    if names:
        done(client.delete_topics(names))
    delete_all_acls(client)


def started(*words: object) -> subprocess.Popen[str]:
    """A command of kraftlake in a process of its own."""
    command = [sys.executable, "-m", "kraftlake", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def ended(*words: object, code: int) -> str:
    """What a command prints, which ends with this exit code."""
    with started(*words) as process:
        printed = process.communicate(timeout=180)[0]
    assert process.returncode == code, printed
    return printed


def await_lines(journal: Path, text: str, count: int) -> None:
    """Wait until a journal has this text in so many lines."""
    wait_for(lambda: journal.exists() and journal.read_text().count(text) >= count)
