"""The content of a record in a few words; from the JSON form that `kraftlake log --json` prints."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from kraftlake.cli.output.theme import Piece, Style
from kraftlake.cli.output.words import NONE, amount, listed, moment, numbers
from kraftlake.cli.selection.log_names import LogNames
from kraftlake.image.kafka_names import CONFIG_RESOURCES, SCRAM_MECHANISMS, acl_words, name_of
from kraftlake.records.metadata_records import UserScramCredentialRecord
from kraftlake.records.redaction import REDACTED, secret_names
from kraftlake.settings.tables import is_supported

Data = Mapping[str, Any]

_CAME: Piece = ("+ ", Style.GOOD)
_WENT: Piece = ("- ", Style.BAD)


def summary(type_: str, data: Any, names: LogNames) -> list[Piece]:
    """The pieces of one line about a record; a type without a form of its own shows its JSON."""
    if type_ in _SILENT:
        return []
    if type_ in _FORMS:
        return _FORMS[type_](data, names)
    return [json.dumps(data, separators=(", ", ": ")) if data else ""]


def _name(name: str) -> Piece:
    return name, Style.NAME


def _partition_name(data: Data, names: LogNames) -> Piece:
    return _name(f"{names.topic(data['topicId'])}-{data['partitionId']}")


def _partition(data: Data, names: LogNames) -> list[Piece]:
    pieces = [_partition_name(data, names), "  leader ", _leader(data["leader"])]
    pieces += [f", in sync {numbers(data['isr'])}, replicas {numbers(data['replicas'])}"]
    pieces += _optional_lists(data)
    return [*pieces, (f", epochs {data['leaderEpoch']}/{data['partitionEpoch']}", Style.QUIET)]


def _partition_change(data: Data, names: LogNames) -> list[Piece]:
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


def _config(data: Data, _: LogNames) -> list[Piece]:
    kind = name_of(CONFIG_RESOURCES, data["resourceType"]).lower().replace("_", " ")
    resource: list[Piece] = [(kind + " ", Style.QUIET), _name(data["resourceName"] or "(default)"), "  "]
    if data["value"] is None:
        return [*resource, _WENT, data["name"]]
    known = is_supported(data["resourceType"], data["name"])
    ignored: list[Piece] = [] if known else [("  unknown to Kafka 4.4, ignored", Style.QUIET)]
    return [*resource, f"{data['name']}={data['value']}", *ignored]


def _broker(data: Data, _: LogNames) -> list[Piece]:
    rack = f", rack {data['rack']}" if data.get("rack") is not None else ""
    fenced: Piece = (", fenced", Style.BAD) if data.get("fenced") else ""
    return [*_id("broker", data["brokerId"]), f"  epoch {data['brokerEpoch']}{rack}", fenced, _end_points(data)]


def _end_points(data: Data) -> Piece:
    points = data["endPoints"]
    return "".join(f", {point['name']} {point['host']}:{point['port']}" for point in points), Style.QUIET


def _id(word: str, id_: int) -> list[Piece]:
    return [f"{word} ", _name(str(id_))]


def _epoch(epoch: int) -> Piece:
    return f"  epoch {epoch}", Style.QUIET


def _controller(data: Data, _: LogNames) -> list[Piece]:
    incarnation = ("  incarnation " + data["incarnationId"], Style.QUIET)
    return [*_id("controller", data["controllerId"]), incarnation, _end_points(data)]


def _registration_change(data: Data, _: LogNames) -> list[Piece]:
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
    return [*_id("broker", data["brokerId"]), "  ", *listed(pieces), _epoch(data["brokerEpoch"])]


def _quota(data: Data, _: LogNames) -> list[Piece]:
    entity = ", ".join(
        f"{one['entityType']} {'(default)' if one['entityName'] is None else one['entityName']}"
        for one in data["entity"]
    )
    if data["remove"]:
        return [_name(entity), "  ", _WENT, data["key"]]
    return [_name(entity), f"  {data['key']}={amount(data['value'])}"]


def _fencing(data: Data, change: Piece) -> list[Piece]:
    return [*_id("broker", data["id"]), change, _epoch(data["epoch"])]


def _producer_ids(data: Data, _: LogNames) -> list[Piece]:
    return [*_id("broker", data["brokerId"]), f"  the next block starts at {data['nextProducerId']:,}"]


def _acl_path(data: Data) -> list[Piece]:
    """The path of an ACL, as `blame` takes it."""
    return [(f"  acl/{data['id']}", Style.QUIET)]


def _mechanism(data: Data) -> str:
    return name_of(SCRAM_MECHANISMS, data["mechanism"])


def _scram(data: Data, _: LogNames) -> list[Piece]:
    keys = [
        f"{key} {data[key]}" for key in secret_names(UserScramCredentialRecord) if data.get(key, REDACTED) != REDACTED
    ]
    secrets = f", {', '.join(keys)}" if keys else ""
    return [_CAME, _name(data["name"]), f"  {_mechanism(data)}, {data['iterations']} iterations{secrets}"]


def _token(data: Data, _: LogNames) -> list[Piece]:
    if data["owner"] == REDACTED:
        return [_name(data["tokenId"]), (f"  {REDACTED}", Style.QUIET)]
    return [_name(data["tokenId"]), f" of {data['owner']}, expires {moment(data['expirationTimestamp'])}"]


def _leader_change(data: Data, _: LogNames) -> list[Piece]:
    voters = [voter["voterId"] for voter in data["voters"]]
    return ["controller ", (str(data["leaderId"]), Style.STRONG), f" leads, voters {numbers(voters)}"]


def _voter(voter: Data) -> str:
    points = "".join(f" {point['host']}:{point['port']}" for point in voter["endpoints"])
    return f"{voter['voterId']}{points}"


_SILENT = frozenset({"NO_OP_RECORD", "END_TRANSACTION_RECORD", "SNAPSHOT_FOOTER"})
"""Types whose records have nothing to show but the type."""

_FORMS: dict[str, Callable[[Any, LogNames], list[Piece]]] = {
    "TOPIC_RECORD": lambda data, _: [_CAME, _name(data["name"]), ("  id " + data["topicId"], Style.QUIET)],
    "REMOVE_TOPIC_RECORD": lambda data, names: [_WENT, _name(names.topic(data["topicId"]))],
    "PARTITION_RECORD": _partition,
    "PARTITION_CHANGE_RECORD": _partition_change,
    "CONFIG_RECORD": _config,
    "CLEAR_ELR_RECORD": lambda data, _: [_name(data["topicName"] or "all topics")],
    "REGISTER_BROKER_RECORD": _broker,
    "BROKER_REGISTRATION_CHANGE_RECORD": _registration_change,
    "FENCE_BROKER_RECORD": lambda data, _: _fencing(data, ("  fenced", Style.BAD)),
    "UNFENCE_BROKER_RECORD": lambda data, _: _fencing(data, ("  unfenced", Style.GOOD)),
    "UNREGISTER_BROKER_RECORD": lambda data, _: [_WENT, *_id("broker", data["brokerId"]), _epoch(data["brokerEpoch"])],
    "REGISTER_CONTROLLER_RECORD": _controller,
    "UNREGISTER_CONTROLLER_RECORD": lambda data, _: [_WENT, *_id("controller", data["controllerId"])],
    "FEATURE_LEVEL_RECORD": lambda data, _: [_name(data["name"]), f" {data['featureLevel']}"],
    "CLIENT_QUOTA_RECORD": _quota,
    "PRODUCER_IDS_RECORD": _producer_ids,
    "ACCESS_CONTROL_ENTRY_RECORD": lambda data, _: [_CAME, acl_words(data), *_acl_path(data)],
    "REMOVE_ACCESS_CONTROL_ENTRY_RECORD": lambda data, names: [
        _WENT,
        names.acls.get(data["id"], ""),
        *_acl_path(data),
    ],
    "USER_SCRAM_CREDENTIAL_RECORD": _scram,
    "REMOVE_USER_SCRAM_CREDENTIAL_RECORD": lambda data, _: [_WENT, _name(data["name"]), f"  {_mechanism(data)}"],
    "DELEGATION_TOKEN_RECORD": _token,
    "REMOVE_DELEGATION_TOKEN_RECORD": lambda data, _: [_WENT, _name(data["tokenId"])],
    "BEGIN_TRANSACTION_RECORD": lambda data, _: [data.get("name") or ""],
    "ABORT_TRANSACTION_RECORD": lambda data, _: [(data.get("reason") or "", Style.WARNING)],
    "LEADER_CHANGE": _leader_change,
    "SNAPSHOT_HEADER": lambda data, _: [f"log up to {moment(data['lastContainedLogTimestamp'])}"],
    "KRAFT_VERSION": lambda data, _: [_name("kraft.version"), f" {data['kRaftVersion']}"],
    "KRAFT_VOTERS": lambda data, _: ["voters ", ", ".join(map(_voter, data["voters"]))],
    "UNKNOWN": lambda data, _: [(f"{data}", Style.WARNING)],
}
"""The content of a record of each type; the names are those that the log has given to ids."""
