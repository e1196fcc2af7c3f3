"""The picture of a cluster: a tree of an image's JSON form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from kraftlake.cli.output.drawing import Fitting, PlainTable, branch, table, text, tree
from kraftlake.cli.output.theme import Piece, Style
from kraftlake.cli.output.words import NONE, amount, levels, moment, since_words
from kraftlake.cli.views.topics_view import add_overview, add_since, add_topics
from kraftlake.image.kafka_names import (
    OPERATIONS,
    PATTERN_TYPES,
    PERMISSIONS,
    RESOURCE_TYPES,
    SECURITY_PROTOCOLS,
    name_of,
    quota_entity_words,
)
from kraftlake.records.metadata_records import UserScramCredentialRecord
from kraftlake.records.redaction import REDACTED, secret_names
from kraftlake.runtime.words import counted

if TYPE_CHECKING:
    from kraftlake.image.metadata_image import MetadataImage
    from kraftlake.image.topics_overview import TopicsOverview

FIRST = 6
"""The number of entries of a long part that are drawn without --all."""

FIRST_TOPICS = 12


def overview_of_large(image: MetadataImage) -> TopicsOverview | None:
    """An overview of the topics of a large image, None for a small one."""
    if not image.topics.is_large:
        return None
    from kraftlake.image.topics_overview import overview_of

    return overview_of(image.topics.rows(), FIRST_TOPICS)


def draw_whole(image: MetadataImage, *, show_secrets: bool) -> Tree:
    """The tree of an image, of which long parts show their first entries."""
    overview = overview_of_large(image)
    shown = image.to_json(show_secrets=show_secrets, only_topics=None if overview is None else overview.worst)
    return draw_image(image.provenance.to_json() | shown, everything=False, overview=overview)


def draw_image(
    image: dict[str, Any],
    *,
    everything: bool,
    brokers: dict[str, Any] | None = None,
    one_table: bool = False,
    no_topics: str = "none",
    overview: TopicsOverview | None = None,
) -> Tree:
    """The tree of `image`, which may lack parts that were not requested.

    `image` begins as `Call.head` does. `brokers` are all brokers of the cluster, where `image` has only some of them.
    Without `everything`, a long part shows its first entries and how to see all. With `one_table` all partitions are
    rows of one table. `no_topics` is the text for an image without topics. With an `overview`, `image` has only the
    topics that are drawn.
    """
    since = image.get("since", {})
    day = moment(image["timestamp"])[:10]
    add_since(image.get("topics", {}), since.get("topics", {}), day)
    root = tree(("cluster ", Style.STRONG), (image["clusterId"] or "of unknown id", Style.HEADING))
    offset, epoch, timestamp = image["offset"], image["epoch"], image["timestamp"]
    if offset >= 0:
        at = f"offset {offset}, epoch {epoch}, {moment(timestamp)}"
    else:  # a snapshot file whose name does not say where it ends has a time
        at = "offset −1: before the first record" if timestamp is None else f"an unknown offset, {moment(timestamp)}"
    branch(root, "at", at)
    if skipped := image.get("skippedRecords"):
        summary = f"{counted(len(skipped), 'record')} skipped, the first at offset {skipped[0]['offset']}"
        branch(root, "diverged", (summary, Style.BAD), ": not what the cluster had")
    if "features" in image:
        _add_features(root, image)
    if "brokers" in image:
        _add_brokers(root, image["brokers"], since.get("brokers"), day)
    if "controllers" in image:
        _add_controllers(root, image["controllers"])
    if "topics" in image and overview is not None:
        add_overview(root, image["topics"], overview)
    elif "topics" in image:
        known = image.get("brokers") if brokers is None else brokers
        limit = None if everything else FIRST_TOPICS
        add_topics(root, image["topics"], limit=limit, brokers=known, one_table=one_table, none=no_topics)
    _add_configs(root, image.get("configs", {}), since.get("configs", {}), day, everything)
    _add_quotas(root, image.get("clientQuotas", ()), everything)
    if image.get("nextProducerId", -1) >= 0:
        branch(root, "producer ids", f"next block starts at {image['nextProducerId']:,}")
    _add_acls(root, image.get("acls", {}), everything)
    _add_scram(root, image.get("scram", {}), everything)
    _add_tokens(root, image.get("delegationTokens", {}), everything)
    return root


def _add_features(root: Tree, image: dict[str, Any]) -> None:
    version = image["metadataVersion"]
    name = f"{version['name']} (level {version['level']})" if version else NONE
    branch(root, "metadata.version", name)
    elr: Piece = ("on", Style.GOOD) if image["elrEnabled"] else ("off", Style.QUIET)
    branch(root, "features", levels(image["features"]), ("; ELR ", Style.QUIET), elr)


def _add_brokers(root: Tree, brokers: dict[str, Any], since: dict[str, Any] | None, day: str) -> None:
    if not brokers:
        branch(root, "brokers", ("none", Style.QUIET))
        return
    states = [broker_state(broker) for broker in brokers.values()]
    summary: list[Piece] = [counted(len(brokers), "broker")]
    for state, style in sorted(dict.fromkeys(states)):  # by name: active, fenced, shutting down
        summary += [", ", (f"{states.count((state, style))} {state}", style)]
    node = branch(root, "brokers", *summary)
    if since is None:
        node.add(_broker_table(brokers, None))
        return
    width = max(len("id"), *map(len, brokers))
    lines = [
        text(
            (f"{id_:>{width}}", Style.NAME), "  ", broker_state(broker),
            (f" since {_since_state(broker, since[id_], day)}", Style.QUIET),
        )
        for id_, broker in sorted(brokers.items(), key=_number)
        if since.get(id_)
    ]  # fmt: skip
    node.add(Fitting(_broker_table(brokers, since), Group(_broker_table(brokers, None), *lines)))


def _broker_table(brokers: dict[str, Any], since: dict[str, Any] | None) -> PlainTable:
    headings = ("id", "state", *(() if since is None else ("since",)), "rack", "epoch", "listeners", "log dirs")
    rows = table(*headings, right=("id", "epoch"), whole="listeners")
    for id_, broker in sorted(brokers.items(), key=_number):
        cordoned = len(broker["cordonedDirectories"] or ())
        directories: list[Piece] = [str(len(broker["directories"]))]
        if cordoned:
            directories.append((f" ({cordoned} cordoned)", Style.WARNING))
        rows.add_row(
            text((id_, Style.NAME)),
            text(broker_state(broker)),
            *([] if since is None else [text((_since_state(broker, since.get(id_, {})), Style.QUIET))]),
            text(broker["rack"] or NONE),
            text(str(broker["epoch"])),
            _listeners(broker["listeners"]),
            text(*directories),
        )
    return rows


def broker_state(broker: dict[str, Any]) -> tuple[str, Style]:
    """The state in a broker's JSON form (active, shutting down or fenced), and its style."""
    if broker["fenced"]:
        return "fenced", Style.BAD
    return ("shutting down", Style.WARNING) if broker["inControlledShutdown"] else ("active", Style.GOOD)


def _since_state(broker: dict[str, Any], since: dict[str, Any], day: str = "") -> str:
    """The time since when a broker is active, shutting down or fenced; a time on `day` has no date."""
    known = [since[key] for key in (["fenced"] if broker["fenced"] else _OF_STATE) if key in since]
    return since_words(max(known, key=lambda one: one["offset"]), day) if known else NONE


_OF_STATE = ("fenced", "inControlledShutdown")


def _listeners(listeners: dict[str, Any]) -> Any:
    made = text()
    for index, (name, listener) in enumerate(sorted(listeners.items())):
        protocol = name_of(SECURITY_PROTOCOLS, listener["securityProtocol"])
        label = name if name == protocol else f"{name} ({protocol})"
        if index:
            made.append("\n")
        made.append_text(text((label, Style.QUIET), f" {listener['host']}:{listener['port']}"))
    return made


def _add_controllers(root: Tree, controllers: dict[str, Any]) -> None:
    if not controllers:
        return
    node = branch(root, "controllers", counted(len(controllers), "registered controller"))
    for id_, controller in sorted(controllers.items(), key=_number):
        line = text((id_, Style.NAME), "  ")
        line.append_text(_listeners(controller["listeners"]))
        node.add(line)


def _add_configs(root: Tree, configs: dict[str, Any], since: dict[str, Any], day: str, everything: bool) -> None:
    lines: list[Text | Fitting] = []
    for kind, resources in sorted(configs.items()):
        for name, values in sorted(resources.items()):
            shown = {key: NONE if value is None else str(value) for key, value in values.items()}
            resource = [(kind.lower().replace("_", " ") + " ", Style.QUIET), (name or "(default)", Style.STRONG)]
            known = since.get(kind, {}).get(name, {})
            line = text(*resource, *_settings(shown, known))
            one_by_one = [text(" ", *_settings({key: shown[key]}, known, day)) for key in sorted(shown)]
            lines.append(Fitting(line, Group(text(*resource), *one_by_one)) if known else line)
    _add_lines(
        root,
        "configs",
        f"of {counted(len(lines), 'resource')}",
        lines,
        noun="resources",
        part="configs",
        everything=everything,
    )


def _add_quotas(root: Tree, quotas: Sequence[dict[str, Any]], everything: bool) -> None:
    lines: list[Text] = []
    for quota in quotas:
        shown = {key: amount(value) for key, value in quota["quotas"].items()}
        lines.append(text((quota_entity_words(quota["entity"]), Style.STRONG), *_settings(shown)))
    summary = f"of {counted(len(lines), 'entity', 'entities')}"
    _add_lines(root, "client quotas", summary, lines, noun="entities", part="quotas", everything=everything)


def _settings(values: dict[str, str], since: Mapping[str, Any] = MappingProxyType({}), day: str = "") -> list[Piece]:
    """`key=value, key=value` in the order of the keys, each with the time since when it holds where that is known."""
    pieces: list[Piece] = []
    for key, value in sorted(values.items()):
        pieces += [", " if pieces else " ", (key, Style.NAME), "=", value]
        if key in since:
            pieces.append((f" since {since_words(since[key], day)}", Style.QUIET))
    return pieces


def _add_lines(
    root: Tree, heading: str, summary: str, lines: Sequence[RenderableType], *, noun: str, part: str, everything: bool
) -> None:
    """Add a branch with a line for each entry of a part; nothing for an empty part."""
    if lines:
        node = branch(root, heading, summary)
        for line in _first(lines, everything):
            node.add(line)
        _say_rest(node, len(lines), noun, part, everything)


def _add_acls(root: Tree, acls: dict[str, Any], everything: bool) -> None:
    if not acls:
        return
    names = ("principal", "resourceType", "resourceName", "operation")
    entries = sorted(acls.items(), key=lambda item: [item[1][name] for name in names])
    node = branch(root, "ACLs", counted(len(acls), "entry", "entries"))
    rows = table("", "principal", "operation", "resource", "host", *(("",) if everything else ()))
    for id_, acl in _first(entries, everything):
        permission = name_of(PERMISSIONS, acl["permissionType"]).lower()
        pattern = name_of(PATTERN_TYPES, acl["patternType"]).lower()
        rows.add_row(
            text((permission, Style.GOOD if permission == "allow" else Style.BAD)),
            text((acl["principal"], Style.NAME)),
            text(name_of(OPERATIONS, acl["operation"]).lower()),
            text(
                (name_of(RESOURCE_TYPES, acl["resourceType"]).lower() + " ", Style.QUIET),
                acl["resourceName"],
                ("" if pattern == "literal" else f" ({pattern})", Style.QUIET),
            ),
            text(acl["host"]),
            *((text((f"acl/{id_}", Style.QUIET)),) if everything else ()),
        )
    node.add(rows)
    _say_rest(node, len(acls), "entries", "acls", everything)


def _add_scram(root: Tree, scram: dict[str, Any], everything: bool) -> None:
    if not any(scram.values()):
        return
    total = sum(map(len, scram.values()))
    node = branch(root, "SCRAM", counted(total, "credential"))
    for mechanism, users in sorted(scram.items()):
        if not users:
            continue
        names: list[Piece] = []
        for name in _first(sorted(users), everything):
            credential = users[name]
            names += [", " if names else "", (name, Style.NAME)]
            if everything:
                names.append(f" ({credential['iterations']} iterations")
                names += [
                    f", {key} {credential[key]}"
                    for key in secret_names(UserScramCredentialRecord)
                    if credential.get(key, REDACTED) != REDACTED
                ]
                names.append(")")
        rest = len(users) - FIRST
        if rest > 0 and not everything:
            names.append((f" and {rest:,} more", Style.QUIET))
        branch(node, mechanism, *names)
    if not everything and any(len(users) > FIRST for users in scram.values()):
        node.add(text(("… --part scram --all shows all", Style.QUIET)))


def _add_tokens(root: Tree, tokens: dict[str, Any], everything: bool) -> None:
    lines: list[Text] = []
    for id_, token in sorted(tokens.items()):
        renewers = f", renewable by {', '.join(token['renewers'])}" if token["renewers"] else ""
        rest: Piece = f" of {token['owner']}, expires {moment(token['expiryTimestamp'])}{renewers}"
        lines.append(text((id_, Style.NAME), (f"  {REDACTED}", Style.QUIET) if token["owner"] == REDACTED else rest))
    _add_lines(
        root,
        "delegation tokens",
        counted(len(lines), "token"),
        lines,
        noun="tokens",
        part="tokens",
        everything=everything,
    )


def _number(item: tuple[str, Any]) -> int:
    return int(item[0])


def _first(entries: Iterable[Any], everything: bool) -> Iterator[Any]:
    return iter(entries) if everything else islice(entries, FIRST)


def _say_rest(node: Tree, total: int, noun: str, part: str, everything: bool) -> None:
    if not everything and total > FIRST:
        node.add(text((f"… {total - FIRST:,} more {noun}: --part {part} --all shows them", Style.QUIET)))
