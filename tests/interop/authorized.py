"""Decisions of the authorizer, and those of Kafka's StandardAuthorizer, on the same ACLs and questions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kraftlake.image.acls_image import StandardAcl
from kraftlake.image.json_form import acl_json
from kraftlake.publisher.authorizer import Action, AuthorizerConfig, StandardAuthorizer
from tests.interop.kafka_publishers import ask_broker
from tests.publisher.updates import cluster
from tests.replay.made_logs import uuid_of

SUPER_USER = "User:root"
Question = dict[str, Any]
"""What is asked: `principal`, `host`, `operation`, `resourceType` and `resourceName`."""
Answer = list[Any]
"""Whether it is allowed, and the number of the ACL that decides, None where none does."""


def decisions(acls: Sequence[StandardAcl], asked: Sequence[Question], *, everyone: bool) -> list[Answer]:
    """The answers of the authorizer."""
    authorizer = StandardAuthorizer(
        AuthorizerConfig(super_users=frozenset({SUPER_USER}), allow_everyone_if_no_acl_found=everyone)
    )
    numbers = {uuid_of(number + 1): number for number in range(len(acls))}
    records = [acl.to_record(acl_id).message for acl_id, acl in zip(numbers, acls, strict=True)]
    cluster(*records).introduce(authorizer)
    answers: list[Answer] = []
    for one in asked:
        action = Action(
            operation=one["operation"], resource_type=one["resourceType"], resource_name=one["resourceName"]
        )
        found = authorizer.authorize(one["principal"], one["host"], action)
        answers.append([found.allowed, None if found.acl_id is None else numbers[found.acl_id]])
    return answers


def kafkas_decisions(acls: Sequence[StandardAcl], asked: Sequence[Question], *, everyone: bool) -> list[Answer]:
    """The answers of Kafka's class."""
    request = {
        "acls": list(map(acl_json, acls)),
        "superUsers": SUPER_USER,
        "everyone": str(everyone).lower(),
        "requests": list(asked),
    }
    answers: list[Answer] = ask_broker("authorize", request)
    return answers
