"""What a record says, in a few words; from the JSON form that `kraftlake log --json` prints."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from kraftlake.cli.theme import Style
from kraftlake.cli.views.words import NONE, Piece, amount, listed, moment, numbers
from kraftlake.image.kafka_names import CONFIG_RESOURCES, SCRAM_MECHANISMS, acl_words, name_of

REDACTED = "(redacted)"
"""What the rooms below put in place of a secret."""

Data = Mapping[str, Any]


class Names:
    """The names that the log has given to ids: topics by id, ACLs by id."""

    def __init__(self) -> None:
        self.topics: dict[str, str] = {}
        self.acls: dict[str, str] = {}

    def learn(self, type_: str, data: Data) -> None:
        """Remember what a record names."""
        if type_ == "TOPIC_RECORD":
            self.topics[data["topicId"]] = data["name"]
        elif type_ == "ACCESS_CONTROL_ENTRY_RECORD":
            self.acls[data["id"]] = acl_words(data)

    def topic(self, id_: str) -> str:
        """The topic's name, or its id where the name is unknown."""
        return self.topics.get(id_, id_)


def summary(type_: str, data: Any, names: Names) -> list[Piece]:
    """The pieces of one line about a record; a type without a form of its own shows its JSON."""
    if type_ in _SILENT:
        return []
    if type_ in _NAMING_FORMS:
        return _NAMING_FORMS[type_](data, names)
    if type_ in _FORMS:
        return _FORMS[type_](data)
    return [json.dumps(data, separators=(", ", ": ")) if data else ""]


def _name(name: str) -> Piece:
    return name, Style.NAME


def _topic(data: Data) -> list[Piece]:
    return [("+ ", Style.GOOD), _name(data["name"]), ("  id " + data["topicId"], Style.QUIET)]


def _remove_topic(data: Data, names: Names) -> list[Piece]:
    return [("- ", Style.BAD), _name(names.topic(data["topicId"]))]


def _partition_name(data: Data, names: Names) -> Piece:
    return _name(f"{names.topic(data['topicId'])}-{data['partitionId']}")


def _partition(data: Data, names: Names) -> list[Piece]:
    pieces = [_partition_name(data, names), "  leader ", _leader(data["leader"])]
    pieces += [f", in sync {numbers(data['isr'])}, replicas {numbers(data['replicas'])}"]
    pieces += _optional_lists(data)
    return [*pieces, (f", epochs {data['leaderEpoch']}/{data['partitionEpoch']}", Style.QUIET)]


def _partition_change(data: Data, names: Names) -> list[Piece]:
    pieces: list[Piece] = []
    if data.get("leader", -2) != -2:
        pieces += ["leader ", _leader(data["leader"])]
    for key, word in (("isr", "in sync"), ("replicas", "replicas")):
        if data.get(key) is not None:
            pieces.append(f"{', ' if pieces else ''}{word} {numbers(data[key])}")
    pieces += _optional_lists(data, first=not pieces)
    recovery = data.get("leaderRecoveryState", -1)
    if recovery != -1:
        pieces.append((f"{', ' if pieces else ''}{'recovering' if recovery else 'recovered'}", Style.WARNING))
    if data.get("directories") is not None:
        pieces.append((f"{', ' if pieces else ''}directories {' '.join(data['directories'])}", Style.QUIET))
    return [_partition_name(data, names), "  ", *pieces]


def _leader(leader: int) -> Piece:
    return ("none", Style.BAD) if leader < 0 else (str(leader), Style.STRONG)


def _optional_lists(data: Data, *, first: bool = False) -> list[Piece]:
    pieces: list[Piece] = []
    for key, word in (
        ("eligibleLeaderReplicas", "eligible"),
        ("lastKnownElr", "last known eligible"),
        ("addingReplicas", "adding"),
        ("removingReplicas", "removing"),
    ):
        values = data.get(key)
        if values or (values is not None and "leader" not in data and key in data):
            pieces.append((f"{'' if first and not pieces else ', '}{word} {numbers(values)}", Style.WARNING))
    return pieces


def _config(data: Data) -> list[Piece]:
    kind = name_of(CONFIG_RESOURCES, data["resourceType"]).lower().replace("_", " ")
    resource: list[Piece] = [(kind + " ", Style.QUIET), _name(data["resourceName"] or "(default)"), "  "]
    if data["value"] is None:
        return [*resource, ("- ", Style.BAD), data["name"]]
    return [*resource, f"{data['name']}={data['value']}"]


def _broker(data: Data) -> list[Piece]:
    rack = f", rack {data['rack']}" if data.get("rack") is not None else ""
    fenced: Piece = (", fenced", Style.BAD) if data.get("fenced") else ""
    return [*_id("broker", data["brokerId"]), f"  epoch {data['brokerEpoch']}{rack}", fenced, _end_points(data)]


def _end_points(data: Data) -> Piece:
    points = data["endPoints"]
    return "".join(f", {point['name']} {point['host']}:{point['port']}" for point in points), Style.QUIET


def _id(word: str, id_: int) -> list[Piece]:
    return [f"{word} ", _name(str(id_))]


def _controller(data: Data) -> list[Piece]:
    return [*_id("controller", data["controllerId"]), ("  incarnation " + data["incarnationId"], Style.QUIET),
            _end_points(data)]  # fmt: skip


def _registration_change(data: Data) -> list[Piece]:
    pieces: list[Piece] = []
    fenced = data.get("fenced", 0)
    if fenced:
        pieces.append(("fenced", Style.BAD) if fenced > 0 else ("unfenced", Style.GOOD))
    if data.get("inControlledShutdown", 0) > 0:
        pieces.append(("shutting down", Style.WARNING))
    if data.get("logDirs"):
        pieces.append(f"log directories {' '.join(data['logDirs'])}")
    if data.get("cordonedLogDirs") is not None:
        pieces.append(f"cordoned {' '.join(data['cordonedLogDirs']) or NONE}")
    return [*_id("broker", data["brokerId"]), "  ", *listed(pieces), (f"  epoch {data['brokerEpoch']}", Style.QUIET)]


def _fence(data: Data) -> list[Piece]:
    return [*_id("broker", data["id"]), ("  fenced", Style.BAD), (f"  epoch {data['epoch']}", Style.QUIET)]


def _unfence(data: Data) -> list[Piece]:
    return [*_id("broker", data["id"]), ("  unfenced", Style.GOOD), (f"  epoch {data['epoch']}", Style.QUIET)]


def _unregister_broker(data: Data) -> list[Piece]:
    return [("- ", Style.BAD), *_id("broker", data["brokerId"]), (f"  epoch {data['brokerEpoch']}", Style.QUIET)]


def _unregister_controller(data: Data) -> list[Piece]:
    return [("- ", Style.BAD), *_id("controller", data["controllerId"])]


def _feature(data: Data) -> list[Piece]:
    return [_name(data["name"]), f" {data['featureLevel']}"]


def _quota(data: Data) -> list[Piece]:
    entity = ", ".join(
        f"{one['entityType']} {'(default)' if one['entityName'] is None else one['entityName']}"
        for one in data["entity"]
    )
    if data["remove"]:
        return [_name(entity), "  ", ("- ", Style.BAD), data["key"]]
    return [_name(entity), f"  {data['key']}={amount(data['value'])}"]


def _producer_ids(data: Data) -> list[Piece]:
    return [*_id("broker", data["brokerId"]), f"  the next block starts at {data['nextProducerId']:,}"]


def _acl(data: Data) -> list[Piece]:
    return [("+ ", Style.GOOD), acl_words(data)]


def _remove_acl(data: Data, names: Names) -> list[Piece]:
    id_: str = data["id"]
    return [("- ", Style.BAD), names.acls.get(id_, id_)]


def _scram(data: Data) -> list[Piece]:
    keys = [f"{key} {data[key]}" for key in ("salt", "storedKey", "serverKey") if data.get(key) != REDACTED]
    secrets = f", {', '.join(keys)}" if keys else ""
    mechanism = name_of(SCRAM_MECHANISMS, data["mechanism"])
    return [("+ ", Style.GOOD), _name(data["name"]), f"  {mechanism}, {data['iterations']} iterations{secrets}"]


def _remove_scram(data: Data) -> list[Piece]:
    return [("- ", Style.BAD), _name(data["name"]), f"  {name_of(SCRAM_MECHANISMS, data['mechanism'])}"]


def _token(data: Data) -> list[Piece]:
    if data["owner"] == REDACTED:
        return [_name(data["tokenId"]), (f"  {REDACTED}", Style.QUIET)]
    return [_name(data["tokenId"]), f" of {data['owner']}, expires {moment(data['expirationTimestamp'])}"]


def _remove_token(data: Data) -> list[Piece]:
    return [("- ", Style.BAD), _name(data["tokenId"])]


def _begin(data: Data) -> list[Piece]:
    return [data.get("name") or ""]


def _abort(data: Data) -> list[Piece]:
    return [(data.get("reason") or "", Style.WARNING)]


def _clear_elr(data: Data) -> list[Piece]:
    return [_name(data["topicName"] or "all topics")]


def _leader_change(data: Data) -> list[Piece]:
    voters = [voter["voterId"] for voter in data["voters"]]
    return ["controller ", (str(data["leaderId"]), Style.STRONG), f" leads, voters {numbers(voters)}"]


def _snapshot_header(data: Data) -> list[Piece]:
    return [f"log up to {moment(data['lastContainedLogTimestamp'])}"]


def _kraft_version(data: Data) -> list[Piece]:
    return [_name("kraft.version"), f" {data['kRaftVersion']}"]


def _kraft_voters(data: Data) -> list[Piece]:
    return ["voters ", ", ".join(_voter(voter) for voter in data["voters"])]


def _voter(voter: Data) -> str:
    points = "".join(f" {point['host']}:{point['port']}" for point in voter["endpoints"])
    return f"{voter['voterId']}{points}"


def _unknown(data: Any) -> list[Piece]:
    return [(f"{data}", Style.WARNING)]


_SILENT = frozenset({"NO_OP_RECORD", "END_TRANSACTION_RECORD", "SNAPSHOT_FOOTER"})
"""Types that say nothing beyond themselves."""

_NAMING_FORMS: dict[str, Callable[[Data, Names], list[Piece]]] = {
    "PARTITION_RECORD": _partition,
    "PARTITION_CHANGE_RECORD": _partition_change,
    "REMOVE_TOPIC_RECORD": _remove_topic,
    "REMOVE_ACCESS_CONTROL_ENTRY_RECORD": _remove_acl,
}
"""Forms that need the names of ids."""

_FORMS: dict[str, Callable[[Any], list[Piece]]] = {
    "REGISTER_BROKER_RECORD": _broker,
    "UNREGISTER_BROKER_RECORD": _unregister_broker,
    "TOPIC_RECORD": _topic,
    "CONFIG_RECORD": _config,
    "FENCE_BROKER_RECORD": _fence,
    "UNFENCE_BROKER_RECORD": _unfence,
    "DELEGATION_TOKEN_RECORD": _token,
    "USER_SCRAM_CREDENTIAL_RECORD": _scram,
    "FEATURE_LEVEL_RECORD": _feature,
    "CLIENT_QUOTA_RECORD": _quota,
    "PRODUCER_IDS_RECORD": _producer_ids,
    "BROKER_REGISTRATION_CHANGE_RECORD": _registration_change,
    "ACCESS_CONTROL_ENTRY_RECORD": _acl,
    "REMOVE_USER_SCRAM_CREDENTIAL_RECORD": _remove_scram,
    "BEGIN_TRANSACTION_RECORD": _begin,
    "ABORT_TRANSACTION_RECORD": _abort,
    "REMOVE_DELEGATION_TOKEN_RECORD": _remove_token,
    "REGISTER_CONTROLLER_RECORD": _controller,
    "CLEAR_ELR_RECORD": _clear_elr,
    "UNREGISTER_CONTROLLER_RECORD": _unregister_controller,
    "LEADER_CHANGE": _leader_change,
    "SNAPSHOT_HEADER": _snapshot_header,
    "KRAFT_VERSION": _kraft_version,
    "KRAFT_VOTERS": _kraft_voters,
    "UNKNOWN": _unknown,
}
