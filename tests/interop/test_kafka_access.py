"""Who may do what, beside Kafka's StandardAuthorizer: random questions about the ACLs of the logs at hand."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from typing import Any

import pytest

import kraftlake
from kraftlake.diagnosis.access.answers import access_of
from kraftlake.diagnosis.access.question import Question
from kraftlake.image.acls_image import StandardAcl
from kraftlake.image.kafka_names import SUPPORTED_OPERATIONS, AclOperation, ResourceType
from kraftlake.publisher.authorizer import AuthorizerConfig, StandardAuthorizer, is_in_range
from tests.cli.running import DIRECTORY, TORN
from tests.interop.authorized import SUPER_USER, kafkas_decisions
from tests.replay.made_logs import uuid_of

pytestmark = pytest.mark.spark

_QUESTIONS = 10_000 if os.environ.get("KRAFTLAKE_TESTS") == "long" else 400
_MOMENTS = 4
RANGES = ("10.0.0.0/8", "10.0.0.64/26", "10.0.0.0/25", "2001:db8::/32")


def acls_of(log: Path, random: Random) -> list[StandardAcl]:
    """The ACLs of a log at some offset, some of them made those of more principals, ranges and shorter prefixes."""
    source = kraftlake.open(log)
    image = source.image(random.randrange(source.end_offset * 2 // 3, source.end_offset))
    found = [acl for _, acl in sorted(image.acls.acls.items(), key=lambda item: bytes(item[0]))]
    made = [
        StandardAcl(
            resource_type=acl.resource_type,
            resource_name=acl.resource_name[: random.randint(1, 6)] if acl.pattern_type == 4 else acl.resource_name,
            pattern_type=acl.pattern_type,
            principal=random.choice((acl.principal, "User:*", random.choice(found).principal)),
            host=random.choice((acl.host, "*", *RANGES)),
            operation=random.choice(
                (acl.operation, random.choice(SUPPORTED_OPERATIONS[ResourceType(acl.resource_type)]))
            ),
            permission_type=random.choice((2, 3, 3, 3)),
        )
        for acl in random.sample(found, len(found) // 2)
    ]
    return [*dict.fromkeys([*found, *made])]


def question(acls: list[StandardAcl], random: Random) -> dict[str, Any]:
    """A question near to what some ACL is about."""
    acl = random.choice(acls)
    name = acl.resource_name if acl.resource_name != "*" else f"res-{random.randint(1, 99_999)}"
    name = random.choice((name, f"{name}-{random.randint(1, 9)}", random.choice(acls).resource_name))
    return {
        "principal": random.choice((acl.principal, acl.principal, random.choice(acls).principal, SUPER_USER))
        .replace("User:*", "User:anyone"),
        "host": acl.host if acl.host.count(".") == 3 and "/" not in acl.host else f"10.0.0.{random.randint(1, 255)}",
        "operation": int(random.choice(SUPPORTED_OPERATIONS[ResourceType(acl.resource_type)])),
        "resourceType": acl.resource_type,
        "resourceName": name,
    }  # fmt: skip


@pytest.mark.parametrize("log", [DIRECTORY, TORN], ids=["kafka-4.4", "crash-torn"])
@pytest.mark.parametrize("everyone", [False, True])
def test_random_questions_are_answered_as_kafkas_authorizer_answers_them(log: Path, everyone: bool) -> None:
    random = Random(f"{log.parent.parent.name} {everyone}")
    outcomes: set[tuple[bool, bool]] = set()
    for _ in range(_MOMENTS):
        acls = acls_of(log, random)
        asked = [question(acls, random) for _ in range(_QUESTIONS // _MOMENTS // 4)]
        theirs = kafkas_decisions(acls, asked, everyone=everyone)
        numbers = {uuid_of(number + 1): number for number in range(len(acls))}
        config = AuthorizerConfig(super_users=frozenset({SUPER_USER}), allow_everyone_if_no_acl_found=everyone)
        authorizer = StandardAuthorizer.of(zip(numbers, acls, strict=True), config)
        for one, (allowed, deciding) in zip(asked, theirs, strict=True):
            wanted = Question(
                AclOperation(one["operation"]), ResourceType(one["resourceType"]), one["resourceName"]
            )  # fmt: skip
            found = access_of(authorizer, one["principal"], wanted, one["host"]).decision
            assert (found.allowed, found.acl_id and numbers[found.acl_id]) == (allowed, deciding), one
            assert of_any_host(authorizer, wanted, one) == allowed, one
            outcomes.add((allowed, deciding is None))
    assert len(outcomes) == 4, "all are met: allowed and denied, by an ACL and without one"


def of_any_host(authorizer: StandardAuthorizer, wanted: Question, one: dict[str, Any]) -> bool:
    """What the answer for any host says of one host."""
    access = access_of(authorizer, one["principal"], wanted)
    allowed = access.allowed
    for exception in access.exceptions:
        if exception.region.pattern == one["host"] or is_in_range(one["host"], exception.region.pattern):
            allowed = exception.decision.allowed
    return allowed
