"""ACLs, client quotas, SCRAM credentials, feature levels and delegation tokens, right ones and wrong ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kraftlake.server.requests.messages import response_in
from tests.server.controller.wire_requests import principal
from tests.server.matrix.sides import BROKERS, CONTROLLER, LONG, NODES, SUPER_USER, Side, Sides

_TOPIC, _GROUP, _CLUSTER, _TRANSACTIONAL, _TOKEN, _USER = 2, 3, 4, 5, 6, 7
_ANY, _MATCH, _LITERAL, _PREFIXED = 1, 2, 3, 4
_READ, _DENY, _ALLOW = 3, 2, 3
ACL = {
    "resource_type": _TOPIC, "resource_name": "a", "resource_pattern_type": _LITERAL, "principal": "User:alice",
    "host": "*", "operation": _READ, "permission_type": _ALLOW,
}  # fmt: skip
ACL_FILTER = {
    "resource_type_filter": _ANY, "resource_name_filter": None, "pattern_type_filter": _ANY, "principal_filter": None,
    "host_filter": None, "operation": _ANY, "permission_type": _ANY,
}  # fmt: skip


def _creations(prefix: str) -> Mapping[str, dict[str, Any]]:
    """ACLs to create, by what is special about each."""
    changed: dict[str, dict[str, Any]] = {
        "of a topic": {}, "the same": {}, "prefixed": {"resource_pattern_type": _PREFIXED},
        "of a group": {"resource_type": _GROUP}, "of a transactional id": {"resource_type": _TRANSACTIONAL},
        "of a token": {"resource_type": _TOKEN, "operation": 8}, "of a user": {"resource_type": _USER, "operation": 13},
        "denied": {"permission_type": _DENY}, "of a host": {"host": "10.0.0.1"}, "of a range": {"host": "10.0.0.0/8"},
        "of IPv6": {"host": "fe80::/10"}, "of no range": {"host": "10.0.0.0/99"}, "of a slash": {"host": "a/b"},
        "two-phase commit": {"resource_type": _TRANSACTIONAL, "operation": 15},
        "an operation that does not fit": {"operation": 13}, "no cluster": {"resource_type": _CLUSTER},
        "no name": {"resource_name": ""}, "no principal": {"principal": ""}, "no type": {"principal": "alice"},
        "no host": {"host": ""}, "any type": {"resource_type": _ANY}, "any pattern": {"resource_pattern_type": _ANY},
        "match": {"resource_pattern_type": _MATCH}, "any operation": {"operation": _ANY},
        "any permission": {"permission_type": _ANY}, "unknown type": {"resource_type": 99},
        "unknown pattern": {"resource_pattern_type": 99}, "unknown operation": {"operation": 99},
        "unknown permission": {"permission_type": 99}, "a minus": {"operation": -1},
    }  # fmt: skip
    return {label: {**ACL, "resource_name": f"{prefix}-acl", **one} for label, one in changed.items()}


_FAILING = ("any type", "any pattern", "match", "any operation", "any permission")
"""What Kafka answers with UNKNOWN_SERVER_ERROR for all ACLs of a request."""


def _filters(prefix: str) -> Mapping[str, dict[str, Any]]:
    """Filters of ACLs, by what each asks for."""
    name = {"resource_name_filter": f"{prefix}-acl"}
    changed: dict[str, dict[str, Any]] = {
        "nothing": {"resource_name_filter": "nothing"}, "topics": {**name, "resource_type_filter": _TOPIC},
        "users": {**name, "resource_type_filter": _USER}, "literal": {**name, "pattern_type_filter": _LITERAL},
        "prefixed": {**name, "pattern_type_filter": _PREFIXED}, "match": {**name, "pattern_type_filter": _MATCH},
        "what a prefix matches": {"resource_name_filter": f"{prefix}-acl-more", "pattern_type_filter": _MATCH},
        "alice": {**name, "principal_filter": "User:alice"}, "bob": {**name, "principal_filter": "User:bob"},
        "a host": {**name, "host_filter": "10.0.0.1"}, "denied": {**name, "permission_type": _DENY},
        "operation": {**name, "operation": 13}, "unknown type": {**name, "resource_type_filter": 99},
        "unknown pattern": {**name, "pattern_type_filter": 99}, "unknown operation": {**name, "operation": 99},
        "empty name": {"resource_name_filter": ""}, "empty principal": {**name, "principal_filter": ""},
    }  # fmt: skip
    return {label: ACL_FILTER | one for label, one in changed.items()}


def acls(sides: Sides, side: Side) -> None:
    """What is created, described and deleted."""
    for node in NODES:
        for version in sides.versions("create_acls", node):
            prefix = f"n{node}-v{version}"
            creations = _creations(prefix)
            taken = [one for label, one in creations.items() if label not in _FAILING]
            side.call(f"all at {node}", "create_acls", version, node, creations=taken)
            side.call(f"none at {node}", "create_acls", version, node, creations=[])
            for label in ("of a topic", "no name", "unknown type") if version < 3 else creations:
                side.call(f"{label} at {node}", "create_acls", version, node, creations=[creations[label]])
            mine = {**ACL_FILTER, "resource_name_filter": f"{prefix}-acl"}
            of_users = {**mine, "resource_type_filter": _USER}

            def is_known(broker: int, of_users: dict[str, Any] = of_users) -> bool:
                return bool(side.ask("describe_acls", 3, broker, **of_users).resources)

            for one in (*BROKERS, CONTROLLER):
                side.wait_for(lambda one=one: is_known(one), f"node {one} to know the ACLs of {prefix}")
            for at in sorted({1, *NODES}):
                for label, wanted in _filters(prefix).items():
                    side.call(f"{label} of {prefix} at {at}", "describe_acls", version, at, **wanted)
            filters = _filters(prefix)
            some = [filters[label] for label in ("unknown type", "users", "nothing", "prefixed", "match", "topics")]
            side.call(f"some at {node}", "delete_acls", version, node, filters=some)
            side.call(f"the rest at {node}", "delete_acls", version, node, filters=[mine, mine])
            side.call(f"none at {node}", "delete_acls", version, node, filters=[])
            _unreadable_acls(side, version, node)


def _unreadable_acls(side: Side, version: int, node: int) -> None:
    """The code 0, UNKNOWN, which ends the connection."""
    broken = {
        "create_acls": {"creations": [ACL, {**ACL, "operation": 0}]},
        "delete_acls": {"filters": [ACL_FILTER, {**ACL_FILTER, "pattern_type_filter": 0}]},
        "describe_acls": {**ACL_FILTER, "resource_type_filter": 0},
    }
    for api, values in broken.items():
        side.call_raw(f"{api} v{version} with a zero at {node}", side.frame(api, version, values), node)


def many_acls(_: Sides, side: Side) -> None:
    """As many as a request may create, and one more, of which none is created."""
    for count in (10_001, 10_000):
        creations = [{**ACL, "resource_name": f"many-{number}"} for number in range(count)]
        answer = side.ask("create_acls", 3, creations=creations)
        side.keep(f"{count} ACLs", sorted({one.error_code.name for one in answer.results}))
        side.keep(f"answers to {count} ACLs", len(answer.results))
    every = {**ACL_FILTER, "resource_name_filter": None, "principal_filter": "User:alice"}

    def are_known() -> bool:
        return len(side.ask("describe_acls", 3, CONTROLLER, **every).resources) == 10_000

    side.wait_for(are_known, "the controller to know the ACLs")
    deleted = side.ask("delete_acls", 3, filters=[every]).filter_results
    side.keep("deleted", [(one.error_code.name, len(one.matching_acls)) for one in deleted])
    side.wait_for(
        lambda: not any(side.ask("describe_acls", 3, node, **every).resources for node in (*BROKERS, CONTROLLER)),
        "all nodes to know that they are gone",
    )


_ENTITIES: Mapping[str, list[tuple[str, str | None]]] = {
    "user": [("user", "alice")], "client": [("client-id", "app")], "both": [("client-id", "app"), ("user", "alice")],
    "default user": [("user", None)], "defaults": [("user", None), ("client-id", None)], "ip": [("ip", "10.0.0.1")],
    "default ip": [("ip", None)], "no address": [("ip", "10.0.0.1.2/3")],
    "ip and user": [("ip", "10.0.0.1"), ("user", "alice")], "unknown": [("group", "a")], "empty type": [("", "a")],
    "empty name": [("user", "")], "twice": [("user", "alice"), ("user", "bob")], "nothing": [],
}  # fmt: skip
_OPS: Mapping[str, list[tuple[str, float | None]]] = {
    "one": [("producer_byte_rate", 1000.0)], "more": [("producer_byte_rate", 2.0), ("consumer_byte_rate", 3.0)],
    "percentage": [("request_percentage", 12.5)], "mutations": [("controller_mutation_rate", 0.5)],
    "connections": [("connection_creation_rate", 7.0)], "fraction": [("producer_byte_rate", 1.5)],
    "nearly whole": [("producer_byte_rate", 5.0000000001)], "zero": [("producer_byte_rate", 0.0)],
    "minus": [("consumer_byte_rate", -1.0)], "infinite": [("request_percentage", float("inf"))],
    "no number": [("request_percentage", float("nan"))], "large": [("producer_byte_rate", 1e19)],
    "many connections": [("connection_creation_rate", 3e9)], "unknown": [("bytes", 1.0)], "empty": [("", 1.0)],
    "twice": [("producer_byte_rate", 1.0), ("producer_byte_rate", 2.0)], "removed": [("producer_byte_rate", None)],
    "removed unknown": [("bytes", None)], "nothing": [],
}  # fmt: skip


def quota_entry(entity: list[tuple[str, str | None]], ops: list[tuple[str, float | None]]) -> dict[str, Any]:
    return {
        "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity],
        "ops": [{"key": key, "value": value or 0.0, "remove": value is None} for key, value in ops],
    }


def client_quotas(sides: Sides, side: Side) -> None:
    """What is altered and described, of each entity and with each quota."""
    for node in NODES:
        for version in sides.versions("alter_client_quotas", node):
            entries = [
                (f"{entity} {ops}", quota_entry(_ENTITIES[entity], _OPS[ops]))
                for entity in _ENTITIES
                for ops in _OPS
                if entity in ("user", "ip") or ops in ("one", "connections")
            ]
            for label, entry in entries if version else entries[:5]:
                side.call(f"{label} at {node}", "alter_client_quotas", version, node, entries=[entry])
            checked = [quota_entry([("user", "checked")], _OPS["one"])]
            side.call(f"checked at {node}", "alter_client_quotas", version, node, entries=checked, validate_only=True)
            good = [quota_entry(_ENTITIES[entity], _OPS["more"]) for entity in ("both", "default user", "defaults")]
            side.call(f"several at {node}", "alter_client_quotas", version, node, entries=[*good, good[0]])
            side.call(f"no entries at {node}", "alter_client_quotas", version, node, entries=[])

            def is_known(broker: int) -> bool:
                found = side.ask("describe_client_quotas", 1, broker, components=[], strict=False).entries
                return any(len(one.entity) == 2 and len(one.values) == 2 for one in found)

            for one in BROKERS:
                side.wait_for(lambda one=one: is_known(one), f"broker {one} to know the quotas")
            _described_quotas(sides, side, f"after {node} v{version}")
            gone = [
                quota_entry(_ENTITIES[one], [(key, None) for key in _KEYS])
                for one in ("both", "default user", "defaults")
            ]
            side.call(f"gone at {node}", "alter_client_quotas", version, node, entries=gone)
            rest = ("user", "client", "ip", "default ip", "default user", "both", "defaults", "twice")
            for entity in rest:
                keys = ("connection_creation_rate",) if entity in ("ip", "default ip") else _KEYS
                side.ask(
                    "alter_client_quotas",
                    1,
                    node,
                    entries=[quota_entry(_ENTITIES[entity], [(key, None) for key in keys])],
                )

            def is_empty() -> bool:
                return not side.ask("describe_client_quotas", 1, 1, components=[], strict=False).entries

            side.wait_for(is_empty, "broker 1 to know that there are no quotas")


_KEYS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
_EXACT, _DEFAULT, _SPECIFIED = 0, 1, 2


def _described_quotas(sides: Sides, side: Side, when: str) -> None:
    wanted: Mapping[str, list[tuple[str, int, str | None]]] = {
        "all": [], "alice": [("user", _EXACT, "alice")], "default": [("user", _DEFAULT, None)],
        "users": [("user", _SPECIFIED, None)], "clients of alice": [("user", _EXACT, "alice"), ("client-id", 2, None)],
        "ips": [("ip", _SPECIFIED, None)], "ip and user": [("ip", _SPECIFIED, None), ("user", _SPECIFIED, None)],
        "unknown": [("group", _SPECIFIED, None)], "empty": [("", _SPECIFIED, None)],
        "twice": [("user", _SPECIFIED, None), ("user", _EXACT, "alice")], "no name": [("user", _EXACT, None)],
        "default with a name": [("user", _DEFAULT, "alice")], "any with a name": [("user", _SPECIFIED, "alice")],
        "unknown match": [("user", 9, None)], "unknown match of unknown": [("group", 9, None)],
    }  # fmt: skip
    for version in (versions := sides.versions("describe_client_quotas")):
        for label, components in wanted.items():
            for strict in (False, True) if LONG or version == versions[-1] else (False,):
                side.call(
                    f"{label} {when}, strict {strict}", "describe_client_quotas", version, strict=strict,
                    components=[{"entity_type": kind, "match_type": match, "match": name}
                                for kind, match, name in components],
                )  # fmt: skip


_USERS = {"alice": [2], "bob": [2], "carol": [1]}
"""The mechanisms of the users that are there in the end."""


def scram_credentials(sides: Sides, side: Side) -> None:
    """What is set, removed and described."""

    def upserted(name: str, mechanism: int = 1, iterations: int = 4096, password: bytes = b"p" * 32) -> dict[str, Any]:
        return {"name": name, "mechanism": mechanism, "iterations": iterations, "salt": b"salt",
                "salted_password": password}  # fmt: skip

    def deleted(name: str, mechanism: int = 1) -> dict[str, Any]:
        return {"name": name, "mechanism": mechanism}

    for node in NODES:
        for version in sides.versions("alter_user_scram_credentials", node):
            cases: Mapping[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
                "set": ([], [upserted("alice"), upserted("bob", 2, 8192)]), "set again": ([], [upserted("alice", 1)]),
                "another mechanism": ([], [upserted("alice", 2)]), "unknown mechanism": ([], [upserted("eve", 9)]),
                "mechanism 0": ([], [upserted("eve", 0)]), "few iterations": ([], [upserted("eve", 1, 4095)]),
                "many iterations": ([], [upserted("eve", 1, 16385)]), "no name": ([], [upserted("")]),
                "no password": ([], [upserted("eve", 1, 4096, b"")]), "no user": ([deleted("nobody")], []),
                "no user of it": ([deleted("bob", 1)], []), "unknown to delete": ([deleted("bob", 9)], []),
                "nothing to delete": ([deleted("")], []), "twice": ([], [upserted("eve"), upserted("eve", 2)]),
                "both": ([deleted("alice", 1)], [upserted("alice", 2)]), "none": ([], []),
                "good and bad": ([deleted("nobody")], [upserted("carol"), upserted("dora", 1, 1)]),
                "deleted": ([deleted("alice", 1)], []),
            }  # fmt: skip
            for label, (deletions, upsertions) in cases.items():
                side.call(
                    f"{label} at {node}", "alter_user_scram_credentials", version, node, deletions=deletions,
                    upsertions=upsertions,
                )  # fmt: skip

            def known(broker: int) -> dict[str, list[int]]:
                answer = side.ask("describe_user_scram_credentials", 0, broker, users=None)
                return {one.user: [int(info.mechanism) for info in one.credential_infos] for one in answer.results}

            for one in BROKERS:
                side.wait_for(lambda one=one: known(one) == _USERS, f"broker {one} to know the users")
            for label, users in {
                "all": None, "empty": [], "one": ["bob"], "unknown": ["nobody"], "twice": ["bob", "bob"],
                "several": ["alice", "nobody", "bob", ""],
            }.items():  # fmt: skip
                side.call(
                    f"{label} after {node}", "describe_user_scram_credentials", 0,
                    users=None if users is None else [{"name": one} for one in users],
                )  # fmt: skip
            gone = [deleted("alice", 2), deleted("bob", 2), deleted("carol", 1)]
            side.call(f"gone at {node}", "alter_user_scram_credentials", version, node, deletions=gone, upsertions=[])
            side.wait_for(lambda: not known(1), "broker 1 to know that there are no users")


def features(sides: Sides, side: Side) -> None:
    """Levels that can be, and that can't."""
    upgrade, safe, unsafe = 1, 2, 3
    for node in NODES:
        for version in sides.versions("update_features", node):
            cases: Mapping[str, list[tuple[str, int, int]]] = {
                "nothing": [], "as it is": [("group.version", 1, upgrade)],
                "unknown": [("unknown.version", 1, upgrade)],
                "too high": [("group.version", 99, upgrade)], "minus": [("group.version", -1, safe)],
                "lower, as an upgrade": [("group.version", 0, upgrade)],
                "higher, as a downgrade": [("metadata.version", 99, safe)],
                "unknown type": [("group.version", 0, 9)], "type 0": [("group.version", 0, 0)],
                "metadata down": [("metadata.version", 20, safe)],
                "metadata far down": [("metadata.version", 1, unsafe)],
                **({"kraft": [("kraft.version", 1, upgrade)]} if version else {}),
                "kraft as it is": [("kraft.version", 0, upgrade)],
                "one of two": [("group.version", 1, upgrade), ("share.version", 99, upgrade)],
                "twice": [("group.version", 1, upgrade), ("group.version", 1, upgrade)],
                "empty": [("", 1, upgrade)],
            }  # fmt: skip
            for label, updates in cases.items():
                for validate_only in (True,) if version else (False,):
                    side.call(
                        f"{label} at {node}", "update_features", version, node, timeout=30_000,
                        feature_updates=[
                            {"feature": name, "max_version_level": level, "upgrade_type": kind,
                             "allow_downgrade": kind != upgrade}
                            for name, level, kind in updates
                        ],
                        validate_only=validate_only,
                    )  # fmt: skip
            if not version:
                continue
            for label, level, kind in (("down", 0, safe), ("up", 1, upgrade)):
                side.call(
                    f"{label} at {node}", "update_features", version, node, timeout=30_000, validate_only=False,
                    feature_updates=[{"feature": "group.version", "max_version_level": level, "upgrade_type": kind}],
                )  # fmt: skip


def _as_user(side: Side, user: str, api: str, version: int, values: Mapping[str, Any]) -> bytes:
    """The frame of an answer to a user's request that a broker forwards to the controller."""
    answer = side.ask(
        "envelope", 0, CONTROLLER, request_data=side.frame(api, version, values), request_principal=principal(user),
        client_host_address=bytes([127, 0, 0, 1]),
    )  # fmt: skip
    assert not answer.error_code, answer
    return bytes(answer.response_data)


_HOUR, _DAY = 3_600_000, 86_400_000


def _token(side: Side, user: str, version: int, values: Mapping[str, Any]) -> Any:
    frame = side.frame("create_delegation_token", version, values)
    return response_in(frame, _as_user(side, user, "create_delegation_token", version, values))


def tokens(sides: Sides, side: Side) -> None:
    """What is created, renewed and expired as a broker forwards it, and what is refused over PLAINTEXT."""
    nobody = {"owner_principal_type": None, "owner_principal_name": None, "renewers": [], "max_lifetime": -1}
    renewers = [{"principal_type": "User", "principal_name": name} for name in ("bob", "carol")]
    wrong = [{"principal_type": "Group", "principal_name": "staff"}]
    of_bob = {"owner_principal_type": "User", "owner_principal_name": "bob"}
    for version in (versions := sides.versions("create_delegation_token")):
        for label, values in {
            "default": nobody, "with renewers": {**nobody, "renewers": renewers}, "zero": {**nobody, "max_lifetime": 0},
            "of an hour": {**nobody, "max_lifetime": _HOUR}, "long": {**nobody, "max_lifetime": 99 * _DAY},
            "of bob": {**nobody, **of_bob}, "empty owner": {**nobody, "owner_principal_name": ""},
            "very long": {**nobody, "max_lifetime": 10**16},
        }.items():  # fmt: skip
            if version != versions[-1] and label != "default" and not LONG:
                continue
            made = _token(side, "alice", version, values)
            ms = {
                name: round((getattr(made, name) - made.issue_timestamp).total_seconds())
                for name in ("expiry_timestamp", "max_timestamp")
            }
            owners = {name: getattr(made, name) for name in dir(made) if "principal" in name}
            token = {"error": int(made.error_code), "id": len(made.token_id), "hmac": len(made.hmac), **ms, **owners}
            side.keep(f"create_delegation_token v{version} {label}", token)
        for label, values in {"a group renews": {**nobody, "renewers": wrong}}.items():
            refused = _as_user(side, "alice", "create_delegation_token", version, values)
            side.keep(f"create_delegation_token v{version} {label}", refused)
        for node in (1, CONTROLLER):
            frame = side.frame("create_delegation_token", version, {**nobody, **of_bob})
            side.call_raw(f"create_delegation_token v{version} over PLAINTEXT at {node}", frame, node)
    _changed_tokens(sides, side, nobody | {"renewers": renewers})
    for version in sides.versions("describe_delegation_token"):
        for label, owners in {"all": None, "none": []}.items():
            frame = side.frame("describe_delegation_token", version, {"owners": owners})
            side.call_raw(f"describe_delegation_token v{version} over PLAINTEXT, {label}", frame)


def _changed_tokens(sides: Sides, side: Side, wanted: Mapping[str, Any]) -> None:
    made = _token(side, "alice", 3, wanted)
    lasting = {"hmac": made.hmac, "renew_period": _DAY}

    def is_known() -> bool:
        frame = _as_user(side, "alice", "renew_delegation_token", 2, lasting)
        return not response_in(side.frame("renew_delegation_token", 2, lasting), frame).error_code

    side.wait_for(is_known, "the controller to find the token")
    changes = (("renew_delegation_token", "renew_period"), ("expire_delegation_token", "expiry_time_period"))
    for api, field in changes:
        for version in (versions := sides.versions(api)):
            for label, user, hmac, period in (
                ("by its owner", "alice", made.hmac, _HOUR), ("by a renewer", "bob", made.hmac, 2 * _HOUR),
                ("by a stranger", "eve", made.hmac, _HOUR), ("of no token", "alice", b"no token", _HOUR),
                ("of nothing", "alice", b"", _HOUR), ("of an admin", SUPER_USER, made.hmac, _HOUR),
                ("for long", "alice", made.hmac, 99 * _DAY),
            ):  # fmt: skip
                if version != versions[-1] and label != "by its owner" and not LONG:
                    continue
                values = {"hmac": hmac, field: period}
                frame = _as_user(side, user, api, version, values)
                answer = response_in(side.frame(api, version, values), frame)
                if answer.error_code:
                    side.keep(f"{api} v{version} {label}", frame)
                else:
                    left = round((answer.expiry_timestamp - made.issue_timestamp).total_seconds() / 100)
                    side.keep(f"{api} v{version} {label}", {"error": 0, "left": left})
            for node in (1, CONTROLLER):
                frame = side.frame(api, version, {"hmac": made.hmac, field: _HOUR})
                side.call_raw(f"{api} v{version} over PLAINTEXT at {node}", frame, node)
    values = {"hmac": made.hmac, "expiry_time_period": -1}
    frame = _as_user(side, "alice", "expire_delegation_token", 2, values)
    side.keep("expired at once", int(response_in(side.frame("expire_delegation_token", 2, values), frame).error_code))


CASES = (acls, *((many_acls,) if LONG else ()), client_quotas, scram_credentials, features, tokens)
