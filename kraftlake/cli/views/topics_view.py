"""The topics in the picture of a cluster: one row for each topic, or for each partition where they are few."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, TypeAlias

from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from kraftlake.cli.output.drawing import Fitting, PlainTable, branch, table, text
from kraftlake.cli.output.theme import Piece, Style
from kraftlake.cli.output.words import NONE, listed, moment, numbers, since_words
from kraftlake.diagnosis.leadership import MAY_LEAD, may_lead_words
from kraftlake.runtime.words import counted

if TYPE_CHECKING:
    from kraftlake.image.topics_overview import TopicsOverview

Counts: TypeAlias = "tuple[int, int, int, int]"

FEW_PARTITIONS = 24
"""Number of partitions listed without --all."""


def add_topics(
    root: Tree,
    topics: dict[str, Any],
    *,
    limit: int | None,
    brokers: dict[str, Any] | None,
    one_table: bool = False,
    none: str = "none",
) -> None:
    """Add the branch of topics; without a `limit` all of them, partition by partition, in `one_table` or one a topic.

    `brokers` are those of the image: they explain why a partition has no leader. `none` is the text for no topics.
    """
    partitions = [partition for topic in topics.values() for partition in topic["partitions"].values()]
    if not topics:
        branch(root, "topics", (none, Style.QUIET))
        return
    node = _topics_branch(root, len(topics), len(partitions), _health(partitions))
    if limit is None and not one_table:
        _add_partitions(node, topics, brokers)
        return
    if limit is None or len(partitions) <= FEW_PARTITIONS:
        _add_few_partitions(node, topics, brokers)
        return
    _add_worst(node, dict(sorted(topics.items(), key=_worst_first)[:limit]), len(topics))


def add_overview(root: Tree, worst: dict[str, Any], overview: TopicsOverview) -> None:
    """Add the branch of topics for many topics, of which only the first ones are given, in any order."""
    node = _topics_branch(root, overview.topic_count, overview.partition_count, overview.health)
    _add_worst(node, {name: worst[name] for name in overview.worst}, overview.topic_count)


def _topics_branch(root: Tree, topics: int, partitions: int, health: Counts) -> Tree:
    return branch(
        root, "topics", f"{counted(topics, 'topic')} with {counted(partitions, 'partition')}", *_words(health)
    )


def _add_worst(node: Tree, topics: dict[str, Any], of: int) -> None:
    node.add(_topic_table(topics))
    if of > len(topics):
        how = "--part topics --all shows them, --topic NAME one of them"
        node.add(text((f"… {of - len(topics):,} more topics: {how}", Style.QUIET)))
    else:
        node.add(text(("--topic NAME shows a topic's partitions", Style.QUIET)))


def _worst_first(item: tuple[str, dict[str, Any]]) -> tuple[bool, bool, str]:
    """The sort key of a table without room for all topics: topics that need attention first, then by name."""
    name, topic = item
    partitions = topic["partitions"].values()
    offline = any(partition["leader"] < 0 for partition in partitions)
    under = any(len(partition["isr"]) < len(partition["replicas"]) for partition in partitions)
    return not offline, not under, name


def partition_table(
    partitions: dict[str, Any], brokers: dict[str, Any] | None, *, heading: str
) -> PlainTable | Fitting:
    """A row for each partition of {name or number: PARTITION}, in the order given.

    The time since when a state holds is a column of its own, or on narrow terminals below the unusual values.
    """
    states = (heading, "leader", "in sync", "replicas", "epochs")
    right = ("#", "leader")
    plain = table(*states, "", right=right, whole=heading)
    wide = table(*states, "since", "", right=right, whole=heading)
    with_since = any("since" in partition for partition in partitions.values())
    for name, partition in partitions.items():
        cells = [text((name, Style.NAME)), *state_cells(partition)]
        trouble = text(*troubles(partition, brokers))
        if with_since:
            since = partition.get("since", {})
            wide.add_row(*cells, _since_lines(since), trouble)
            below = _since_lines(since, day=since.get("day", ""), word="since ")
            trouble = text(*troubles(partition, brokers)).append("\n" if trouble and below else "").append_text(below)
        plain.add_row(*cells, trouble)
    return Fitting(wide, plain) if with_since else plain


def add_since(topics: dict[str, Any], since: dict[str, Any], day: str) -> None:
    """Add to each PARTITION of the topics since when its state holds, and the day of the image."""
    for name, partitions in since.items():
        for number, fields in partitions.items():
            topics[name]["partitions"][number]["since"] = {**fields, "day": day}


_SINCE = {"leader": "leader", "isr": "in sync", "state": "state"}


def _since_lines(since: dict[str, Any], day: str = "", word: str = "") -> Text:
    """A line for each offset at which a part of a state began: `leader, in sync 5584 2026-11-21 07:50:28.535Z`.

    A time on `day` has no date; `word` precedes each offset.
    """
    of_offset: dict[int, tuple[dict[str, Any], list[str]]] = {}
    for key, of in _SINCE.items():
        if key in since:
            of_offset.setdefault(since[key]["offset"], (since[key], []))[1].append(of)
    made = text()
    for one, words in of_offset.values():
        when = word + since_words(one, day)
        made.append("\n" if made else "")
        made.append_text(text((f"{', '.join(words)} {when}" if len(of_offset) > 1 else when, Style.QUIET)))
    return made


def state_cells(partition: dict[str, Any]) -> list[Text]:
    """The leader, the ISR, the replicas and the epochs of a PARTITION."""
    leader: Piece = ("none", Style.BAD) if partition["leader"] < 0 else (str(partition["leader"]), Style.STRONG)
    epochs = f"{partition['leaderEpoch']}/{partition['partitionEpoch']}"
    return [text(leader), text(numbers(partition["isr"])), _replicas(partition), text((epochs, Style.QUIET))]


def _replicas(partition: dict[str, Any]) -> Text:
    """The replicas of a PARTITION, those out of sync marked: `✗`, or `~` if they may still lead (ELR)."""
    pieces: list[Piece] = []
    for replica in partition["replicas"]:
        if pieces:
            pieces.append(" ")
        if replica in partition["isr"]:
            pieces.append((str(replica), Style.GOOD))
        elif replica in partition["elr"]:
            pieces.append((f"{replica}~", Style.WARNING))
        else:
            pieces.append((f"{replica}✗", Style.BAD))
    return text(*pieces) if pieces else text(NONE)


def troubles(partition: dict[str, Any], brokers: dict[str, Any] | None = None) -> list[Piece]:
    """The problems of a PARTITION in words; with the image's `brokers` also why it has no leader.

    Its optional keys add more: `leaderless` since when, `minIsr` the min.insync.replicas of the topic.
    """
    pieces: list[Piece] = []
    candidates: list[int] = []
    if partition["leader"] < 0:
        pieces.append((f"offline{_since(partition.get('leaderless'))}", Style.BAD))
        candidates = next((partition[key] for key in MAY_LEAD if partition[key]), [])
        pieces.append((may_lead_words(partition, brokers), Style.WARNING))
    elif len(partition["isr"]) < len(partition["replicas"]):
        pieces.append(("under-replicated", Style.WARNING))
    if partition["leader"] >= 0 and "minIsr" in partition:
        pieces += _of_min_isr(partition)
    for key, word in (*list(MAY_LEAD.items())[1:], ("addingReplicas", "adding"), ("removingReplicas", "removing")):
        if partition[key] and partition[key] != candidates:
            pieces.append((f"{word}: {numbers(partition[key])}", Style.WARNING))
    if partition["leaderRecoveryState"]:
        pieces.append(("recovering from an unclean election", Style.WARNING))
    return listed(pieces)


def _of_min_isr(partition: dict[str, Any]) -> list[Piece]:
    """A remark where the ISR of a PARTITION with a leader is not larger than min.insync.replicas."""
    in_sync, replicas, asked = len(partition["isr"]), len(partition["replicas"]), partition["minIsr"]
    if replicas < asked:
        return [(f"min ISR {asked} is more than its {counted(replicas, 'replica')}", Style.WARNING)]
    if in_sync > asked:
        return []
    return [(f"under min ISR {asked}", Style.BAD) if in_sync < asked else (f"at min ISR {asked}", Style.WARNING)]


def _since(leaderless: dict[str, Any] | None) -> str:
    """` since 2026-11-21 07:46:16.256Z, led by 3 before`, as far as that is known."""
    if leaderless is None or leaderless["since"] is None:
        return ""
    led_by = "" if leaderless["ledBy"] is None else f", led by {leaderless['ledBy']} before"
    return f" since {moment(leaderless['since'])}{led_by}"


def _health(partitions: list[dict[str, Any]]) -> Counts:
    """The numbers of partitions that are offline, else under-replicated, reassigned, recovering, as in `Health`."""
    offline = sum(partition["leader"] < 0 for partition in partitions)
    under = sum(
        partition["leader"] >= 0 and len(partition["isr"]) < len(partition["replicas"]) for partition in partitions
    )
    moving = sum(bool(partition["addingReplicas"] or partition["removingReplicas"]) for partition in partitions)
    recovering = sum(bool(partition["leaderRecoveryState"]) for partition in partitions)
    return offline, under, moving, recovering


_HEALTH_WORDS = (
    ("offline", Style.BAD),
    ("under-replicated", Style.WARNING),
    ("being reassigned", Style.WARNING),
    ("recovering", Style.WARNING),
)


def _words(health: Counts) -> list[Piece]:
    """`, 3 offline, 5 under-replicated`, nothing for healthy partitions."""
    pieces: list[Piece] = []
    for count, (word, style) in zip(health, _HEALTH_WORDS, strict=True):
        if count:
            pieces += [", ", (f"{count:,} {word}", style)]
    return pieces or [", ", ("all in sync", Style.GOOD)]


def _topic_table(topics: dict[str, Any]) -> Table:
    rows = table("topic", "partitions", "replicas", "leaders", "", right=("partitions", "replicas"), whole="topic")
    for name, topic in topics.items():
        partitions = list(topic["partitions"].values())
        factors = sorted({len(partition["replicas"]) for partition in partitions})
        rows.add_row(
            text((name, Style.NAME)),
            text(f"{len(partitions):,}"),
            text("–".join(map(str, factors[:: max(1, len(factors) - 1)]))),
            _leaders(partitions),
            text(*_words(_health(partitions))[1:]),
        )
    return rows


def _leaders(partitions: list[dict[str, Any]]) -> Text:
    """The number of partitions that each broker leads: `1×3 2×4`."""
    counts = Counter(partition["leader"] for partition in partitions)
    pieces: list[Piece] = []
    for broker, count in sorted(counts.items()):
        if broker >= 0:
            pieces += [" " if pieces else "", str(broker), (f"×{count}", Style.QUIET)]
    return text(*pieces) if pieces else text(("none", Style.BAD))


def _add_few_partitions(node: Tree, topics: dict[str, Any], brokers: dict[str, Any] | None) -> None:
    """One table of the partitions of all topics."""
    rows = {f"{name}-{id_}": one for name, topic in sorted(topics.items()) for id_, one in _by_number(topic).items()}
    node.add(partition_table(rows, brokers, heading="partition"))
    _explain_marks(node, list(rows.values()))


def _add_partitions(node: Tree, topics: dict[str, Any], brokers: dict[str, Any] | None) -> None:
    """A branch for each topic, with its id and a table of its partitions."""
    for name, topic in sorted(topics.items()):
        partitions = _by_number(topic)
        leaf = branch(node, name, (topic["id"], Style.QUIET))
        if partitions:
            leaf.add(partition_table(partitions, brokers, heading="#"))
    _explain_marks(node, [one for topic in topics.values() for one in topic["partitions"].values()])


def _by_number(topic: dict[str, Any]) -> dict[str, Any]:
    return dict(sorted(topic["partitions"].items(), key=lambda item: int(item[0])))


def _explain_marks(node: Tree, partitions: list[dict[str, Any]]) -> None:
    if any(len(one["isr"]) < len(one["replicas"]) for one in partitions):
        node.add(text(("✗ not in sync   ~ not in sync but eligible to lead (ELR)", Style.QUIET)))
