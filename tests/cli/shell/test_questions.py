"""log, diff, since and blame within the shell: what the commands of that name say."""

from __future__ import annotations

from collections import Counter
from operator import attrgetter
from typing import Any

import pytest

from kraftlake.api import open_source
from kraftlake.cli.selection.log_names import LogNames
from kraftlake.cli.selection.node_parts import of_node, record_filter
from kraftlake.diagnosis.thing_changes import changes_of
from kraftlake.diagnosis.things import Thing
from kraftlake.image.diff import diff_images
from kraftlake.image.nodes.image_nodes import root_node
from kraftlake.image.nodes.node import Directory, Leaf, Node
from kraftlake.image.nodes.paths import FoundNode, matching, path_of
from tests.cli.running import DIRECTORY, run, run_json
from tests.cli.shell.typed import typed, typed_json

TOPIC = "/image/topics/byName/elr-a"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (f"log {TOPIC}", ("log", DIRECTORY, "--topic", "elr-a")),
        (f"log {TOPIC}/1 --from 1700", ("log", DIRECTORY, "--partition", "elr-a-1", "--from", 1700)),
        ("log /image/cluster/brokers/2 --tail 4", ("log", DIRECTORY, "--broker", 2, "--tail", 4)),
        ("log / --no-noop --from 5700", ("log", DIRECTORY, "--no-noop", "--from", 5700)),
        ("log /image/producerIds", ("log", DIRECTORY, "--type", "producer_ids")),
        (f"diff 4592 {TOPIC}", ("diff", DIRECTORY, 4592, 5736, "--topic", "elr-a")),
        ("diff 4592", ("diff", DIRECTORY, 4592, 5736)),
        ("diff -1 --to 260", ("diff", DIRECTORY, -1, 260)),
        ("diff 1059 /image/cluster/brokers/1 --to 4076", ("diff", DIRECTORY, 1059, 4076, "--broker", 1)),
        (f"blame {TOPIC}/0 isr --all", ("blame", DIRECTORY, "topic/elr-a/partition/0/isr", "--all")),
        ("blame /image/features/metadataVersion", ("blame", DIRECTORY, "feature/metadata.version")),
        ("blame '/image/clientQuotas/user(alice)/producer_byte_rate'",
         ("blame", DIRECTORY, "quota/user/alice/producer_byte_rate")),
    ],
)  # fmt: skip
def test_the_same_is_said_as_by_the_command(line: str, words: tuple[Any, ...]) -> None:
    assert typed(line).stdout == run(*words).stdout
    assert typed(line, options=("--json",)).stdout == run(*words, "--json").stdout


def test_the_log_ends_at_the_moment_looked_at() -> None:
    lines = typed(f"cd {TOPIC}", "at 1800", "log --tail 1").stdout.splitlines()
    assert lines[-1].split()[0] == "1768"


def test_since_says_what_the_image_says() -> None:
    since = run_json("image", DIRECTORY, "--topic", "elr-a", "--part", "topics", "--since")["since"]["topics"]["elr-a"]
    topic, *partitions = typed_json(f"since {TOPIC}")
    assert topic["path"] == TOPIC
    assert topic["since"]["value"]["offset"] == 1090
    assert {line["path"].rpartition("/")[2]: line["since"] for line in partitions} == since
    brokers = run_json("image", DIRECTORY, "--part", "brokers", "--since")["since"]["brokers"]
    found = {line["path"].rpartition("/")[2]: line["since"] for line in typed_json("since /image/cluster/brokers")}
    assert {broker: {key: one[key] for key in brokers[broker]} for broker, one in found.items()} == brokers


def test_what_is_gone_is_asked_for_by_its_path() -> None:
    gone = typed("diff 260 /image/topics/byName/t-11-r5m").stdout
    assert "- t-11-r5m" in gone
    assert typed("diff 260 /image/topics/byName/never", code=1).stderr.startswith("error: there is no node")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("blame /image/scram", "/image/scram: since and blame are of topics, partitions, brokers"),
        ("since /local", "/local: since and blame are of topics"),
        ("log /local", "/local is of no record: log and diff take the other paths below /image"),
        (f"blame {TOPIC} isr", "topic/elr-a has no fields: leave isr out."),
        (f"blame {TOPIC}/0 is", "'topic/elr-a/partition/0': 'is' is no field of a partition; did you mean isr?"),
        ("log --limit 1 --tail 1", "Give either --limit or --tail, not both"),
    ],
)
def test_what_can_not_be_asked(line: str, sentence: str) -> None:
    said = typed(line, code=2 if "is no field" in sentence or "no fields" in sentence or "--tail" in line else 1)
    assert said.stderr.startswith(f"error: {sentence}")


def test_the_log_of_each_node_has_the_records_that_blame_names() -> None:
    """Each record that changed a thing is about its node, and about the directories that the node is in."""
    source, at = open_source(DIRECTORY), 4592
    root = root_node(source.image(at), version="")
    of_kind: dict[str, list[FoundNode]] = {}
    for one in FoundNode((), root).below():
        subject = one.node.subject
        if subject is not None and Thing.of_subject(subject) is not None:
            of_kind.setdefault(subject.kind, []).append(one)
    some = [one for found in of_kind.values() for one in found[:: -(-len(found) // 8)]]
    some += matching(root, f"{TOPIC}/*")  # whose ELR is cleared by a record of all topics
    things = {one: thing for one in some if (thing := Thing.of_subject(one.node.subject)) is not None}
    lines = changes_of(source, things.values(), at).lines
    records = list(source.records(to_offset=at))
    logs: dict[str, set[int]] = {}
    compared = 0
    for one, thing in things.items():
        blamed = {change.offset for change in lines[thing] if change.type != "REMOVE_TOPIC_RECORD"}
        node: Node = root
        for count, name in enumerate((*one.names, "")):
            assert node.subject is not None
            path = path_of(one.names[:count])
            if path not in logs:
                logs[path] = {*map(attrgetter("offset"), filter(record_filter(node.subject, LogNames()), records))}
            assert blamed <= logs[path], (one.path, path)
            compared += len(blamed)
            child = node.child(name) if isinstance(node, Directory) else None
            node = node if child is None else child
    assert compared > 500
    assert len(logs["/image/acls"]) < len(logs["/image"]) == len(records)


def test_each_change_is_of_one_part_and_of_one_node() -> None:
    source = open_source(DIRECTORY)
    before, after = source.image(1059), source.image(3223)
    whole = diff_images(before, after)
    roots = [root_node(image, version="") for image in (before, after)]
    parts = {found.path: found.node.subject for found in matching(roots[0], "/image/*") if found.node.subject}
    changes = [change for subject in parts.values() for change in of_node(whole, subject).changes]
    assert Counter(map(str, changes)) == Counter(map(str, whole.changes))
    leaves = {
        one.node.subject
        for root in roots
        for one in FoundNode((), root).below()
        if isinstance(one.node, Leaf) and one.node.subject is not None and one.node.subject.kind != "topic"
    }
    fields = Counter(
        (change.part, change.path, change.kind, field.field)
        for subject in leaves
        for change in of_node(whole, subject).changes
        if change.part != "topics" and (change.part != "configs" or subject.kind == "config")
        for field in change.fields
    )
    assert fields == Counter(
        (change.part, change.path, change.kind, field.field)
        for change in whole.changes
        if change.part != "topics"
        for field in change.fields
    )
    assert len({part for part, *_ in fields}) > 4
