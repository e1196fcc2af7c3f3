"""The authorizer's answers about a principal, with the ACLs behind them, and about everybody."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any

import attrs

from kraftlake.diagnosis.access.host_regions import ANY_OTHER, HostRegion, host_regions
from kraftlake.diagnosis.access.question import Question
from kraftlake.image.acls_image import StandardAcl
from kraftlake.image.json_form import acl_json
from kraftlake.image.kafka_names import AclPermissionType
from kraftlake.publisher.acl_cache import WILDCARD
from kraftlake.publisher.authorizer import (
    WILDCARD_PRINCIPAL,
    Decision,
    StandardAuthorizer,
    is_of_host,
    is_of_operation,
    is_of_principal,
)
from kraftlake.records.uuid import Uuid

_Item = tuple[Uuid, StandardAcl]


class Effect(Enum):
    """What an ACL of the resource does to the question."""

    ALLOWS = "allows"
    DENIES = "denies"
    OTHER_HOST = "is of other hosts"
    OTHER_OPERATION = "is of another operation"
    OTHER_PRINCIPAL = "is of another principal"


@attrs.frozen(kw_only=True)
class ResourceAcl:
    """An ACL of the resource, and what it does to the question."""

    acl_id: Uuid
    acl: StandardAcl
    effect: Effect

    def to_json(self) -> dict[str, Any]:
        """The ACL with its id and its effect."""
        return acl_form(self.acl_id, self.acl) | {"effect": self.effect.value}


@attrs.frozen(kw_only=True)
class HostAnswer:
    """The decision for the hosts of a region where it differs from that for the hosts around it."""

    region: HostRegion
    decision: Decision

    def to_json(self) -> dict[str, Any]:
        """The region's pattern with the decision."""
        return {"host": self.region.pattern} | decision_form(self.decision)


@attrs.frozen(kw_only=True)
class Access:
    """Whether a principal may do something: the decision, and the hosts for which it is another one.

    `host` is the client's address; `*` is any host, and then `exceptions` has the hosts that have another answer.
    """

    principal: str
    question: Question
    host: str
    decision: Decision
    exceptions: tuple[HostAnswer, ...] = ()

    @property
    def allowed(self) -> bool:
        """Whether it is allowed, from all hosts but the exceptions."""
        return self.decision.allowed

    @property
    def answer(self) -> tuple[Any, ...]:
        """What is allowed from where, without the ACLs behind it."""
        return (self.allowed, *((one.region.pattern, one.decision.allowed) for one in self.exceptions))

    def to_json(self) -> dict[str, Any]:
        """The question, and the answer with the deciding ACLs."""
        question = self.question
        return {
            "principal": self.principal,
            "operation": question.operation.name,
            "resourceType": question.resource_type.name,
            "resourceName": question.resource_name,
            "host": self.host,
            **decision_form(self.decision),
            "exceptions": [one.to_json() for one in self.exceptions],
        }

    def rows(self) -> Iterator[dict[str, Any]]:
        """A row for the host asked for, and one for each exception."""
        for host, decision in (
            (self.host, self.decision),
            *((one.region.pattern, one.decision) for one in self.exceptions),
        ):
            yield {"principal": self.principal, "host": host} | decision_form(decision)


def acl_form(acl_id: Uuid, acl: StandardAcl) -> dict[str, Any]:
    """An ACL in JSON, as in an image, with its id."""
    return {"id": str(acl_id)} | acl_json(acl)


def decision_form(decision: Decision) -> dict[str, Any]:
    """A decision in JSON."""
    acl = None if decision.acl is None or decision.acl_id is None else acl_form(decision.acl_id, decision.acl)
    return {"allowed": decision.allowed, "rule": decision.rule, "acl": acl}


def access_of(authorizer: StandardAuthorizer, principal: str, question: Question, host: str | None = None) -> Access:
    """Whether a principal may do something from a host, or with None from any host."""
    action = question.action
    if host is not None:
        return Access(
            principal=principal, question=question, host=host, decision=authorizer.authorize(principal, host, action)
        )
    general = authorizer.authorize(principal, ANY_OTHER, action)
    found = [*authorizer.acls_of(action)]
    concerned: dict[str, list[_Item]] = {}
    for item in found:
        if is_of_principal(item[1], principal) and is_of_operation(item[1], question.operation):
            concerned.setdefault(item[1].host, []).append(item)
    of_many = [item for host, items in concerned.items() if host == WILDCARD or "/" in host for item in items]
    allowed = {WILDCARD: general.allowed}
    exceptions = []
    for region in host_regions(concerned):
        # by the ACLs of this host: there may be as many hosts as ACLs; one ACL says that the resource has some
        few = authorizer.among([*found[:1], *of_many, *concerned.get(region.host, ())])
        decision = few.authorize(principal, region.host, action)
        allowed[region.pattern] = decision.allowed
        if decision.allowed != allowed[region.within]:
            exceptions.append(HostAnswer(region=region, decision=decision))
    return Access(
        principal=principal, question=question, host=WILDCARD, decision=general, exceptions=tuple(exceptions)
    )  # fmt: skip


def acls_behind(
    authorizer: StandardAuthorizer, principal: str, question: Question, host: str | None = None
) -> list[ResourceAcl]:
    """The ACLs of the resource in the order in which the authorizer searches them, each with its effect."""
    return [
        ResourceAcl(acl_id=acl_id, acl=acl, effect=_effect(acl, principal, question, host))
        for acl_id, acl in authorizer.acls_of(question.action)
    ]


def _effect(acl: StandardAcl, principal: str, question: Question, host: str | None) -> Effect:
    if not is_of_principal(acl, principal):
        return Effect.OTHER_PRINCIPAL
    if not is_of_operation(acl, question.operation):
        return Effect.OTHER_OPERATION
    if host is not None and not is_of_host(acl, host):
        return Effect.OTHER_HOST
    return Effect.ALLOWS if acl.permission_type == AclPermissionType.ALLOW else Effect.DENIES


def who_may(authorizer: StandardAuthorizer, question: Question, host: str | None = None) -> list[Access]:
    """All principals that may do something from a host, or with None from any.

    The first is `User:*`, all principals that no ACL of the resource names, if they may; then the principals that are
    named, and the super users. Where all others may, the list has those that may not, too.
    """
    others = access_of(authorizer, WILDCARD_PRINCIPAL, question, host)
    of_all: list[_Item] = []
    named: dict[str, list[_Item]] = {principal: [] for principal in authorizer.super_users}
    for item in authorizer.acls_of(question.action):
        of_one = of_all if item[1].principal == WILDCARD_PRINCIPAL else named.setdefault(item[1].principal, [])
        of_one.append(item)
    found = [  # each by its own ACLs: there may be as many principals as ACLs
        access_of(authorizer.among([*of_all, *acls]), principal, question, host)
        for principal, acls in sorted(named.items())
    ]
    if others.allowed or others.exceptions:
        return [others, *found]
    return [one for one in found if one.allowed or one.exceptions]
