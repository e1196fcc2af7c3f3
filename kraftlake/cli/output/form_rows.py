"""The rows of answers that are one JSON object: the list in it that CSV and Markdown have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final

from kraftlake.cli.output.formats import Row, Table
from kraftlake.cli.selection.cut import Cut

Form = dict[str, Any]

FINDING: Final = ("check", "severity", "sentence", "since", "things", "command", "helps", "groups")
EPISODE: Final = ("name", "firstOffset", "lastOffset", "timestamp", "what")
NODE: Final = (
    "source", "nodeId", "directoryId", "role", "startOffset", "endOffset", "lastEpoch", "behind", "otherFrom",
    "leaderEpoch", "leaderId", "votedId", "fault", "history",
)  # fmt: skip
PROBLEM: Final = ("offset", "file", "position", "message", "inSnapshot")
"""The columns of lists, which are there also where a list is empty."""

_RISK: Final = ("rack", "brokers", "leads", "offline", "underMinIsr", "recovering")


def list_of(key: str, columns: Sequence[str]) -> Callable[[Form], Table]:
    """The list of objects under a key."""
    return lambda form: _table(columns, form[key])


def _table(columns: Sequence[str], rows: Iterable[Row]) -> Table:
    """Rows of these columns, and of others that not every answer has."""
    held = list(rows)
    return Table(tuple(dict.fromkeys(chain(columns, *held))), held)


def part_of_image(form: Form, part: str) -> Table:
    """The entries of a part of an image, as `--part` names it; those of topics are their partitions."""
    from kraftlake.image.json_form import acl_json, broker_json, partition_json

    since = form.get("since", {})
    match part:
        case "topics":
            return _table(("topic", "topicId", "partition", *partition_json.keys), _partitions(form, since))
        case "features":
            version = form["metadataVersion"]
            levels = ({"metadata.version": version["level"]} if version else {}) | form["features"]
            return Table(("feature", "level"), ({"feature": name, "level": level} for name, level in levels.items()))
        case "quotas":
            quotas = (
                {"entity": one["entity"], "quota": name, "value": value}
                for one in form["clientQuotas"]
                for name, value in one["quotas"].items()
            )
            return Table(("entity", "quota", "value"), quotas)
        case "producer-ids":
            return Table(("nextProducerId",), [{"nextProducerId": form["nextProducerId"]}])
        case _:
            key, names, fields = _NESTED[part]
            columns = {"acls": acl_json.keys, "brokers": broker_json.keys}.get(part, fields)
            return _table((*names, *columns), _nested(form[key], names, since.get(key, {})))


_NESTED: Final = {
    "brokers": ("brokers", ("broker",), ()),
    "controllers": ("controllers", ("controller",), ("incarnationId", "zkMigrationReady", "listeners", "features")),
    "configs": ("configs", ("type", "resource", "name"), ("value",)),
    "acls": ("acls", ("id",), ()),
    "scram": ("scram", ("mechanism", "user"), ()),
    "tokens": ("delegationTokens", ("tokenId",), ()),
}
"""The place of a part in the JSON form, the meaning of its keys, outermost first, and the columns of its entries."""


def _nested(entries: Any, names: Sequence[str], since: Any) -> Iterator[Row]:
    """A row for each innermost entry of objects within objects, with the keys that lead to it."""
    if not names:
        yield (entries if isinstance(entries, dict) else {"value": entries}) | ({"since": since} if since else {})
        return
    for key, inner in entries.items():
        for row in _nested(inner, names[1:], since.get(key, {})):
            yield {names[0]: key} | dict(row)


def _partitions(form: Form, since: Form) -> Iterator[Row]:
    for name, topic in form["topics"].items():
        known = since.get("topics", {}).get(name, {})
        for number, partition in topic["partitions"].items():
            row = {"topic": name, "topicId": topic["id"], "partition": int(number)} | partition
            yield row | ({"since": known[number]} if number in known else {})


def changes_of(form: Form, cut: Cut) -> Table:
    """The entries of a diff: what each was before and after, of one that changed the fields that differ."""
    rows = []
    for part, kinds in form.items():
        for kind in ("added", "removed", "changed") if isinstance(kinds, dict) else ():
            for key, fields in kinds.get(kind, {}).items():
                rows.append({"part": part, "change": kind, "key": key} | _sides(kind, fields))
    return Table(("part", "change", "key", "before", "after"), cut.of(rows))


def _sides(kind: str, fields: Form) -> Row:
    if kind == "changed":
        before, after = ({name: values[at] for name, values in fields.items()} for at in (0, 1))
        return {"before": before, "after": after}
    return {"after" if kind == "added" else "before": fields}


def local_changes_of(form: Form, cut: Cut) -> Table:
    """The actions of a broker on each partition, in the order of `local_changes`."""
    from kraftlake.image.json_form import partition_json

    rows = []
    for action, name, change, directory in local_changes(form):
        of_partition = {} if change is None else {"topicId": change["topicId"]} | change["partition"]
        rows.append({"action": action, "partition": name} | of_partition | {"directory": directory})
    columns = ("action", "partition", "topicId", *partition_json.keys, "directory")
    return Table(columns, cut.of(rows))


def local_changes(form: Form) -> Iterator[tuple[str, str, Form | None, str]]:
    """Action, partition, what it is led or followed as, log directory of all to delete, lead, follow and assign."""
    directories = {key.partition(":")[2]: directory for key, directory in form["directoryIds"].items()}
    for name in form["deletes"]:
        yield "delete", name, None, directories.pop(name, "")
    for key, action in (("leaders", "lead"), ("followers", "follow")):
        for name, change in sorted(form[key].items()):
            elected = key == "leaders" and name in form["electedLeaders"]
            yield "elected" if elected else action, name, change, directories.pop(name, "")
    for name, directory in sorted(directories.items()):
        yield "assign", name, None, directory


def metrics_of(form: Form) -> Table:
    """The controller's metrics, then the counts of each broker."""
    rows = (
        {"broker": broker, "metric": name, "value": value}
        for broker, metrics in ({None: form["metrics"] | form["health"]} | form["brokers"]).items()
        for name, value in metrics.items()
    )
    return Table(("broker", "metric", "value"), rows)


def hosted_of(form: Form) -> Table:
    """The partitions that a broker hosts, in each of the lists that they are in."""
    lists = (kind for kind, value in form.items() if isinstance(value, list))
    return Table(("kind", "partition"), ({"kind": kind, "partition": name} for kind in lists for name in form[kind]))


def standings_of(form: Form) -> Table:
    """The state of the partitions after each stage of the steps; without steps the effect of each single loss."""
    if not form["steps"]:
        return Table(_RISK, [*(form["eachBroker"] or ()), *(form["eachRack"] or ())])
    names = {"offline": "offlineBefore", "underMinIsr": "underMinIsrBefore", "leaders": "leadersBefore"}
    rows = [{name: form[key] for name, key in names.items()}]
    for step in form["steps"]:
        of_step = {name: step[name] for name in ("step", "brokers", "racks", "partitions")}
        rows += [of_step | stage for stage in step["stages"]]
    return _table(("step", "brokers", "racks", "partitions", "stage"), rows)


def results_of(form: Form) -> Table:
    """The result of each requested change."""
    return _table(("name", "error", "code", "message"), form["results"])


def lakes_of(form: Form) -> Table:
    """The run over each of many lakes."""
    return _table(("lake", "error"), form["lakes"])
