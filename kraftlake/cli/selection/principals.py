"""What is about a principal: its ACLs, and of a user its SCRAM credentials and quotas; its delegation tokens."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kraftlake.records.log_record import LogRecord

_USER = "User:"
PARTS = ("acls", "clientQuotas", "scram", "delegationTokens")
"""The keys of an image's JSON form that are about principals."""


def users_among(principals: Collection[str]) -> frozenset[str]:
    """The names of the users among principals."""
    return frozenset(one.removeprefix(_USER) for one in principals if one.startswith(_USER))


class OfPrincipals:
    """Selects the records about principals; `owners` has the principals of ACLs and tokens that came before, by id.

    The owner of a token is a secret: tokens are selected where `show_secrets` is set, as in an image.
    """

    def __init__(self, principals: Collection[str], owners: dict[str, str], *, show_secrets: bool) -> None:
        self._principals = frozenset(principals)
        self._users = users_among(principals)
        self._owners = owners
        self._owners_of_tokens = self._principals if show_secrets else frozenset()

    def wants(self, record: LogRecord) -> bool:
        """Whether the next record is selected."""
        message: Any = record.message
        match record.type:
            case "ACCESS_CONTROL_ENTRY_RECORD":
                self._owners[str(message.id)] = message.principal
                return message.principal in self._principals
            case "REMOVE_ACCESS_CONTROL_ENTRY_RECORD":
                return self._owners.get(str(message.id)) in self._principals
            case "DELEGATION_TOKEN_RECORD":
                self._owners[message.token_id] = message.owner
                return message.owner in self._owners_of_tokens
            case "REMOVE_DELEGATION_TOKEN_RECORD":
                return self._owners.get(message.token_id) in self._owners_of_tokens
            case "USER_SCRAM_CREDENTIAL_RECORD" | "REMOVE_USER_SCRAM_CREDENTIAL_RECORD":
                return message.name in self._users
            case "CLIENT_QUOTA_RECORD":
                return any(one.entity_type == "user" and one.entity_name in self._users for one in message.entity)
        return False


def parts_of(principals: Collection[str], form: dict[str, Any]) -> dict[str, Any]:
    """The parts of an image's JSON form that are about principals, cut down to them."""
    users = users_among(principals)
    mechanisms = {
        mechanism: {user: one for user, one in of_users.items() if user in users}
        for mechanism, of_users in form["scram"].items()
    }
    return {
        "acls": {id_: acl for id_, acl in form["acls"].items() if acl["principal"] in principals},
        "clientQuotas": [one for one in form["clientQuotas"] if one["entity"].get("user") in users],
        "scram": {mechanism: of_users for mechanism, of_users in mechanisms.items() if of_users},
        "delegationTokens": {id_: one for id_, one in form["delegationTokens"].items() if one["owner"] in principals},
    }


def is_subject(kind: str, subject: str, principals: Collection[str]) -> bool:
    """Whether an event of a kind is about one of the principals, by its subject."""
    if kind in ("acl_added", "acl_removed"):
        return subject in principals
    named = [f"user {user}" for user in users_among(principals)]
    if kind == "quota_changed":  # the entity: `client-id c1, user alice`
        return any(subject == one or subject.endswith(f", {one}") for one in named)
    return kind == "scram_changed" and subject in named
