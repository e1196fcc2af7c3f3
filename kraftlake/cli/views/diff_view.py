"""The differences between two images as a tree of + - and ~, from the JSON form of an image diff."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich.tree import Tree

from kraftlake.cli.output.drawing import branch, text, tree
from kraftlake.cli.output.theme import Piece, Style
from kraftlake.cli.output.words import NONE, amount, moment
from kraftlake.cli.selection.cut import Cut
from kraftlake.image.kafka_names import acl_words, quota_entity_words
from kraftlake.records.redaction import REDACTED
from kraftlake.runtime.words import counted

FIRST = 20
"""The number of changes of a part that are drawn without --all."""

_MARKS = {"added": ("+ ", Style.GOOD), "removed": ("- ", Style.BAD), "changed": ("~ ", Style.WARNING)}
_TITLES = {
    "features": "features", "brokers": "brokers", "controllers": "controllers", "topics": "topics",
    "partitions": "partitions", "configs": "configs", "clientQuotas": "client quotas",
    "producerIds": "producer ids", "acls": "ACLs", "scram": "SCRAM", "delegationTokens": "delegation tokens",
}  # fmt: skip
_QUIET_FIELDS = frozenset({"leaderEpoch", "partitionEpoch", "incarnationId", "epoch", "directories"})
"""Fields drawn in a quiet colour where they change, and left out of added or removed entries."""
_LAST = {"leaderEpoch": 1, "partitionEpoch": 2, "directories": 3}
_FIRST = {"leader": -3, "isr": -2, "replicas": -1}
"""The sort keys of the fields of partitions that are not in the order of the JSON."""
_WORDS = {
    "isr": "in sync", "elr": "eligible", "lastKnownElr": "last known eligible", "addingReplicas": "adding",
    "removingReplicas": "removing", "leaderRecoveryState": "recovering", "leaderEpoch": "leader epoch",
    "partitionEpoch": "partition epoch", "inControlledShutdown": "shutting down", "cordonedDirectories": "cordoned",
}  # fmt: skip

Entry = tuple[str, str, dict[str, Any]]
"""(kind of change, key, fields)."""

Sizes = Counter[tuple[str, str]]
"""The number of added, removed or changed partitions, by (kind of change, topic)."""


def draw_diff(
    diff: dict[str, Any],
    cut: Cut,
    *,
    first: int = FIRST,
    rest: str = "--all shows them",
    head: Sequence[Piece] | None = None,
) -> Tree:
    """The tree of `diff` below its `head`: of all changes those that are wanted, else of each part the `first` ones.

    Unless everything is, partitions of topics that came or went are counted, not listed; `rest` says what shows what is
    left out.
    """
    everything = cut.everything
    root = tree(*(_head(diff) if head is None else head))
    parts = {part: diff[part] for part in _TITLES if part in diff}
    sizes: Sizes = Counter(
        (kind, name.rpartition("-")[0]) for kind, names in parts.get("partitions", {}).items() for name in names
    )
    if not parts:
        root.add(text(("no difference", Style.GOOD)))
    entries = {part: _entries(kinds) for part, kinds in parts.items()}
    listed = {part: ones if everything else _of_lasting_topics(part, ones, diff) for part, ones in entries.items()}
    shown = listed if everything else {part: ones[:first] for part, ones in listed.items()}
    if cut.is_cut:
        shown = {part: [] for part in parts}
        for of, entry in cut.of([(part, entry) for part, ones in listed.items() for entry in ones]):
            shown[of].append(entry)
    for part, kinds in parts.items():
        node = branch(root, _TITLES.get(part, part), *_counts(kinds))
        for kind, key, fields in shown[part]:
            node.add(text(_MARKS[kind], *_entry(part, kind, key, fields, sizes, everything=everything)))
        if left_out := len(listed[part]) - len(shown[part]):
            way_out = "" if cut.is_cut else f": {rest}"
            node.add(text((f"… {counted(left_out, 'more change')}{way_out}", Style.QUIET)))
        if passing := len(entries[part]) - len(listed[part]):
            hidden = counted(passing, "partition")
            node.add(text((f"{hidden} of topics that came or went: {rest}", Style.QUIET)))
    return root


def _head(diff: dict[str, Any]) -> list[Piece]:
    cluster = diff["clusterId"] or "of unknown id"
    return [("cluster ", Style.STRONG), (cluster, Style.HEADING), f"  offset {diff['from']} → {diff['to']}"]


def _entries(kinds: dict[str, Any]) -> list[Entry]:
    return [(kind, key, fields) for kind in _MARKS for key, fields in kinds.get(kind, {}).items()]


def _counts(kinds: dict[str, Any]) -> list[Piece]:
    pieces: list[Piece] = []
    for kind, (_, style) in _MARKS.items():
        if kinds.get(kind):
            pieces += [", " if pieces else "", (f"{len(kinds[kind]):,} {kind}", style)]
    return pieces


def _of_lasting_topics(part: str, entries: list[Entry], diff: dict[str, Any]) -> list[Entry]:
    """The entries of a part without the partitions of added or removed topics."""
    if part != "partitions":
        return entries
    topics = diff.get("topics", {})
    passing = {kind: set(topics.get(kind, {})) for kind in ("added", "removed")}
    return [entry for entry in entries if entry[1].rpartition("-")[0] not in passing.get(entry[0], ())]


def _entry(part: str, kind: str, key: str, fields: dict[str, Any], sizes: Sizes, *, everything: bool) -> list[Piece]:
    """An added, removed or changed entry, in the words of its part."""
    if part == "acls" and kind != "changed":
        return [acl_words(fields), (f"  {key}" if everything else "", Style.QUIET)]
    if part == "topics" and fields.keys() == {"id"} and kind != "changed":
        partitions = counted(sizes[kind, key], "partition")
        return [(key, Style.NAME), f"  {partitions}", (f"  id {fields['id']}", Style.QUIET)]
    if part == "features":
        return [(key, Style.NAME), "  ", *_level(kind, fields)]
    if part == "producerIds" and kind == "changed":
        before, after = fields["nextProducerId"]
        return ["the next block starts at ", (amount(before), Style.BAD), " → ", (amount(after), Style.GOOD)]
    return [(_title(part, key), Style.NAME), *field_pieces(kind, fields, everything=everything)]


def _title(part: str, key: str) -> str:
    """The entry's key as a phrase."""
    if part == "configs":
        kind, _, name = key.partition(":")
        return f"{kind.lower().replace('_', ' ')} {name or '(default)'}"
    if part == "scram":
        mechanism, _, user = key.partition(":")
        return f"{user} ({mechanism})"
    if part == "clientQuotas":
        return quota_entity_words(json.loads(key))
    return f"{part.removesuffix('s')} {key}" if part in ("brokers", "controllers") else key


def _level(kind: str, fields: dict[str, Any]) -> list[Piece]:
    """A feature's level, by name where it has one (metadata.version)."""
    value: Any = fields.get("name", fields.get("level"))
    if kind != "changed":
        return [str(value)]
    before, after = (NONE if one is None else str(one) for one in value)
    return [(before, Style.BAD), " → ", (after, Style.GOOD)]


def field_pieces(kind: str, fields: dict[str, Any], *, everything: bool) -> list[Piece]:
    """Fields in words: each with its value before and after where an entry `changed`, else with its value."""
    if kind != "changed" and fields and all(value == REDACTED for value in fields.values()):
        return [("  (redacted)", Style.QUIET)]
    pieces: list[Piece] = []
    for name, value in sorted(fields.items(), key=lambda field: _LAST.get(field[0], _FIRST.get(field[0], 0))):
        quiet = name in _QUIET_FIELDS
        word = _WORDS.get(name, name)
        if name == "directories" and not everything:
            continue
        if kind == "changed":
            before, after = value
            pieces.append(", " if pieces else "  ")
            if quiet:
                pieces.append((f"{word} {value_words(name, before)} → {value_words(name, after)}", Style.QUIET))
            else:
                pieces += [
                    f"{word} ",
                    (value_words(name, before), Style.BAD),
                    " → ",
                    (value_words(name, after), Style.GOOD),
                ]
        elif everything or (not quiet and name != "features" and value not in (None, [], {}, False)):
            pieces += [", " if pieces else "  ", f"{word} {value_words(name, value)}"]
    return pieces


def value_words(name: str, value: Any) -> str:
    """The value of a field of the image's JSON form, in words."""
    if value is None and name == "cordonedDirectories":
        return "unknown"  # a broker of an earlier release: its registration does not have the field
    if value is None or value in ([], {}):
        return NONE
    if isinstance(value, bool) or name == "leaderRecoveryState":
        return "yes" if value else "no"
    if name.endswith("Timestamp"):
        return moment(value)
    if name == "leader" and value == -1:
        return "none"
    if name == "features":
        return " ".join(f"{key}={low}-{high}" for key, (low, high) in value.items())
    if name == "listeners":
        return " ".join(f"{key} {one['host']}:{one['port']}" for key, one in value.items())
    if isinstance(value, list):
        return " ".join(map(str, value))
    if isinstance(value, dict):
        return " ".join(f"{key}={value_words(key, one)}" for key, one in value.items())
    return amount(value) if isinstance(value, int | float) else str(value)
