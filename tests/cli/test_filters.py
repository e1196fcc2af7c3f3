"""The same filters in every command, beside searches by brute force; lines cut short, counted, and paged."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

import kraftlake
from kraftlake.cli.selection.tally import FLOOD, held_lines
from kraftlake.delta.topics.topics_delta import TopicsDelta
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.runtime.errors import OffsetError
from kraftlake.tables.events.events_table import KIND_WORDS, KINDS
from tests.at_least_one import at_least_one
from tests.cli.running import DIRECTORY, fault, run, run_json
from tests.cli.test_interactive import ANSI, on_terminal

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"


def lines(command: str, *words: object) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run(command, DIRECTORY, *words, "--json").stdout.splitlines()]


Replicas = dict[str, dict[str, set[int]]]
"""The replicas of each partition, by topic and the partition's name."""


@pytest.fixture(scope="module")
def hosted() -> dict[int, tuple[Replicas, Replicas]]:
    """By offset of a change, the replicas of the partitions of its topics before and after it."""
    return {
        change.offset: (
            replicas_of(change.delta.image, change.delta.topics_delta),
            replicas_of(change.image, change.delta.topics_delta),
        )
        for change in kraftlake.open(DIRECTORY).changes()
        if change.delta.topics_delta is not None
    }


def replicas_of(image: MetadataImage, delta: TopicsDelta) -> Replicas:
    topics = [image.topics.get_topic_by_id(id_) for id_ in {*delta.changed_topics, *delta.deleted_topic_ids}]
    return {
        topic.name: {f"{topic.name}-{number}": set(one.replicas) for number, one in topic.partitions.items()}
        for topic in topics
        if topic is not None
    }


@pytest.mark.parametrize(
    ("bulk_from", "first", "last"), [(1, 2784, 3085), (10**9, 0, 5736)], ids=["bulk", "one by one"]
)
def test_events_of_hosted_partitions_are_those_of_partitions_with_a_replica_before_or_after(
    hosted: dict[int, tuple[Replicas, Replicas]], monkeypatch: pytest.MonkeyPatch, bulk_from: int, first: int, last: int
) -> None:
    monkeypatch.setattr("kraftlake.replay.reading.chunks.BULK_FROM", bulk_from)
    range_ = ("--from", first, "--to", last)
    everything = lines("events", *range_)

    def is_of(event: dict[str, Any], brokers: set[int]) -> bool:
        if event["broker"] is not None or event["topicId"] is None:
            return event["broker"] in brokers
        before, after = (side.get(event["topic"], {}) for side in hosted[event["offset"]])
        names = {*before, *after} if event["partition"] is None else {event["subject"]}
        if event["partition"] is None:  # of the topic as a whole: what came or went with it
            names = {name for name in names if (name in before) != (name in after)}
        return any(brokers & (before.get(name, set()) | after.get(name, set())) for name in names)

    for brokers in ({3}, {1, 4}):
        given = ",".join(map(str, brokers))
        expected = [event for event in everything if is_of(event, brokers)]
        assert lines("events", "--broker", given, "--hosted", *range_) == expected
        assert expected
    some = lines("events", "--broker", 3, "--hosted", "--topic", "big-a", *range_)
    assert some == [e for e in everything if is_of(e, {3}) and e["topic"] == "big-a"]


def test_records_of_a_broker_are_its_own_and_with_hosted_those_of_its_partitions() -> None:
    everything = lines("log")
    own = [
        record
        for record in everything
        if (record["data"].get("brokerId") == 3 and record["type"] != "PRODUCER_IDS_RECORD")
        or (
            record["type"] == "CONFIG_RECORD"
            and (record["data"]["resourceType"], record["data"]["resourceName"]) == (4, "3")
        )
    ]
    assert lines("log", "--broker", 3) == own
    hosts: set[tuple[str, int]] = set()
    expected = []
    for record in everything:
        data = record["data"]
        key = (data.get("topicId"), data.get("partitionId"))
        if record["type"] in ("PARTITION_RECORD", "PARTITION_CHANGE_RECORD"):
            was = key in hosts
            if data.get("replicas") is not None:
                (hosts.add if 3 in data["replicas"] else hosts.discard)(key)
            wanted = was or key in hosts
        elif record["type"] == "REMOVE_TOPIC_RECORD":
            wanted = any(topic == data["topicId"] for topic, _ in hosts)
            hosts = {one for one in hosts if one[0] != data["topicId"]}
        else:
            wanted = record in own
        if wanted:
            expected.append(record)
    assert lines("log", "--broker", 3, "--hosted") == expected
    later = lines("log", "--broker", 3, "--hosted", "--from", 3500)
    assert later == [record for record in expected if record["offset"] >= 3500]


def test_records_of_a_partition_are_its_own_and_that_its_topic_came_and_went() -> None:
    ids = {record["data"]["topicId"] for record in lines("log", "--type", "topic") if record["data"]["name"] == "big-a"}
    expected = [
        record["offset"]
        for record in lines("log")
        if record["data"].get("topicId") in ids and record["data"].get("partitionId", 7) == 7
    ]
    assert [record["offset"] for record in lines("log", "--partition", "big-a-7")] == expected
    assert "there is no partition big-a-300" in fault("log", DIRECTORY, "--partition", "big-a-300")


def test_a_topic_that_only_the_log_between_two_snapshots_had_is_found_by_the_record_of_its_end() -> None:
    """Its name is in a record of another type than the one asked for."""
    names = {record["data"]["topicId"]: record["data"]["name"] for record in lines("log", "--type", "topic")}
    removed = [(one["offset"], names[one["data"]["topicId"]]) for one in lines("log", "--type", "remove_topic")]
    for offset, name in at_least_one(removed[:: 6 if LONG else 18]):
        found = [record["offset"] for record in lines("log", "--topic", name, "--type", "remove_topic")]
        assert offset in found, name


def test_an_images_partitions_and_brokers_are_those_named() -> None:
    whole = run_json("image", DIRECTORY)
    named = run_json("image", DIRECTORY, "--partition", "big-a-7,elr-a-1", "--partition", "big-a-8")
    assert {(name, number) for name, topic in named["topics"].items() for number in topic["partitions"]} == {
        ("big-a", "7"), ("big-a", "8"), ("elr-a", "1"),
    }  # fmt: skip
    assert named["topics"]["elr-a"]["partitions"]["1"] == whole["topics"]["elr-a"]["partitions"]["1"]
    assert "configs" not in named
    two = run_json("image", DIRECTORY, "--broker", "1,3")
    assert set(two["brokers"]) == {"1", "3"}
    for name, topic in whole["topics"].items():
        expected = {n for n, one in topic["partitions"].items() if {1, 3} & set(one["replicas"])}
        assert set(two["topics"].get(name, {"partitions": ()})["partitions"]) == expected
    with_topic = run_json("image", DIRECTORY, "--partition", "big-a-7", "--topic", "elr-*")
    assert [*with_topic["topics"]["big-a"]["partitions"]] == ["7"]
    assert len(with_topic["topics"]["elr-a"]["partitions"]) == 3


def test_a_diffs_entries_are_those_of_the_partitions_and_brokers_named() -> None:
    before, after = (run_json("image", DIRECTORY, "--at-offset", offset) for offset in (400, 4639))
    whole = run_json("diff", DIRECTORY, 400, 4639)

    def hosts(name: str) -> bool:
        topic, _, number = name.rpartition("-")
        states = [image["topics"].get(topic, {"partitions": {}})["partitions"].get(number) for image in (before, after)]
        return any(3 in state["replicas"] for state in states if state is not None)

    cut = run_json("diff", DIRECTORY, 400, 4639, "--broker", 3, "--hosted")
    for kind, entries in whole["partitions"].items():
        assert cut["partitions"].get(kind, {}) == {name: entry for name, entry in entries.items() if hosts(name)}
    assert set(cut["brokers"]["changed"]) == {"3"}
    assert "partitions" not in run_json("diff", DIRECTORY, 400, 4639, "--broker", 3)
    one = run_json("diff", DIRECTORY, 2500, 4639, "--partition", "big-a-7")
    assert {part for part in one if isinstance(one[part], dict)} == {"topics", "partitions"}
    assert {name for entries in one["partitions"].values() for name in entries} == {"big-a-7"}


def test_values_may_be_repeated_or_have_commas_between_them() -> None:
    some = ("events", "--to", 3000)
    assert lines(*some, "--topic", "elr-a,big-?") == lines(*some, "--topic", "elr-a", "--topic", "big-?")
    assert lines("log", "--type", "topic, remove_topic") == lines("log", "--type", "topic", "--type", "remove_topic")
    assert lines(*some, "--kind", "fenced,unfenced") == lines(*some, "--kind", "broker_*fenced")


@pytest.mark.parametrize("word", KIND_WORDS)
def test_a_word_stands_for_kinds_in_singular_and_plural(word: str) -> None:
    meant = {kind for kind in KINDS for pattern in KIND_WORDS[word] if fnmatchcase(kind, pattern)}
    assert all(any(fnmatchcase(kind, pattern) for kind in KINDS) for pattern in KIND_WORDS[word])
    from kraftlake.cli.options.parameters import KINDS as PARAMETER

    for spelling in (word, word.upper(), f"{word}s"):
        assert set(PARAMETER.convert(spelling, None, None)) == meant


def test_a_name_beside_others_that_the_log_never_had_is_warned_of() -> None:
    result = run("events", DIRECTORY, "--topic", "elr-a,elr-c", "--limit", 3)
    assert result.stderr == "warning: no topic matches elr-c at any offset of this log: did you mean elr-a?\n"
    assert result.stdout.count("\n") == 3
    assert "broker 9 is not registered" in run("log", DIRECTORY, "--broker", "3,9", "--limit", 1).stderr


def test_a_name_that_the_log_never_had_is_warned_of_beside_one_of_another_option() -> None:
    words = ["--topic", "elr-a", "--partition", "nope-1"]
    for command in (["events", DIRECTORY], ["log", DIRECTORY], ["diff", DIRECTORY, 100, 5000]):
        result = run(*command, *words, "--limit", 3)
        assert result.stderr == "warning: there is no partition nope-1 at any offset of this log\n"
        assert result.stdout
    assert run("events", DIRECTORY, "--topic", "elr-a", "--broker", 3, "--hosted", "--limit", 3).stderr == ""


def test_what_the_log_had_but_nothing_happened_to_is_no_mistake() -> None:
    for command in ("events", "log"):
        quiet = run(command, DIRECTORY, "--topic", "elr-a", "--to", 500, "--json")
        assert (quiet.stdout, quiet.stderr) == ("", "")
    assert run("diff", DIRECTORY, 5735, 5736, "--broker", 3).stderr == ""


@pytest.mark.parametrize("command", ["log", "events"])
@pytest.mark.parametrize("words", [["--topic", "elr-?"], ["--from", "5300"]], ids=str)
def test_a_limit_takes_the_first_lines_and_a_tail_the_last(command: str, words: list[str]) -> None:
    everything = lines(command, *words)
    for count in (1, 7, 10**6) if LONG else (7, 10**6):
        assert lines(command, *words, "--limit", count) == everything[:count]
        assert lines(command, *words, "--tail", count) == everything[-count:]
    assert "Give either --limit or --tail" in fault(command, DIRECTORY, "--limit", 1, "--tail", 1, code=2)


def test_a_tail_is_that_of_what_there_is(tmp_path: Path) -> None:
    snapshot = DIRECTORY / "00000000000000003038-0000000002.checkpoint"
    (tmp_path / "alone").mkdir()
    shutil.copy(snapshot, tmp_path / "alone")
    run("format", tmp_path / "lake")
    everything = run("log", snapshot, "--json").stdout.splitlines()
    assert run("log", snapshot, "--tail", 2, "--json").stdout.splitlines() == everything[-2:]
    assert run("log", snapshot, "--to", 10, "--tail", 2, "--json").stdout.splitlines() == everything[9:11]
    for empty in ("alone", "lake"):
        assert run("log", tmp_path / empty, "--tail", 2).stdout == ""
    assert "Offset 9999 is not in" in fault("log", DIRECTORY, "--from", 9999, "--tail", 2)


@pytest.mark.parametrize("by", ["kind", "topic", "broker", "minute"])
def test_counts_are_those_of_the_events(by: str) -> None:
    key = (lambda event: event["timestamp"] // 60_000 * 60_000) if by == "minute" else (lambda event: event[by])
    expected = Counter(key(event) for event in lines("events", "--from", 3000))
    counted = lines("events", "--from", 3000, "--count-by", by)
    assert {line[by]: line["events"] for line in counted} == expected
    assert {line["clusterId"] for line in counted} == {"VXUoBgBGTaWWfCM4Toybuw"}
    numbers = [line[by] if by == "minute" else -line["events"] for line in counted]
    assert numbers == sorted(numbers)
    drawn = run("events", DIRECTORY, "--from", 3000, "--count-by", by).stdout
    assert drawn.startswith(f"{expected.total():,} events of the offsets ")


@pytest.mark.parametrize("cut", ["--limit", "--tail"])
def test_what_is_counted_is_not_cut(cut: str) -> None:
    sentence = fault("events", DIRECTORY, "--count-by", "topic", cut, 3, code=2)
    assert "--count-by counts all: give either" in sentence


def test_a_terminal_gets_counts_in_place_of_very_many_lines_and_all_of_them_on_demand() -> None:
    counts = ANSI.sub("", on_terminal("log", DIRECTORY, width=120))
    assert counts.startswith(
        "5,737 records of the offsets 0 to 5736, 2026-11-21 07:45:27.235Z to 2026-11-21 07:50:33.079Z\n"
    )
    assert "PARTITION_CHANGE_RECORD" in counts
    assert "--all shows each record" in counts
    assert "isr_shrank" in ANSI.sub("", on_terminal("events", DIRECTORY, width=120))
    assert on_terminal("log", DIRECTORY, "--all", width=120).count("\n") == 5737
    assert run("log", DIRECTORY).stdout.count("\n") == 5737, "a pipe gets all"


@pytest.mark.parametrize("count", [0, 1, FLOOD, FLOOD + 1, 2 * FLOOD])
def test_lines_are_held_up_to_a_flood_and_none_is_lost(count: int) -> None:
    held, rest, is_flood = held_lines(range(count), lambda _: 1)
    assert [*held, *rest] == [*range(count)]
    assert is_flood == (count > FLOOD)


def test_what_was_read_before_a_fault_is_shown_before_it() -> None:
    def lines() -> Iterator[int]:
        yield 1
        raise OffsetError("broken")

    held, rest, is_flood = held_lines(lines(), lambda _: 1)
    assert (held, is_flood) == ([1], False)
    with pytest.raises(OffsetError, match="broken"):
        next(rest)


@pytest.fixture
def pager(tmp_path: Path) -> Path:
    """A pager that says what it was given, and how it was asked to behave."""
    program = tmp_path / "pager"
    program.write_text('#!/bin/sh\necho "LESS is $LESS"\nsed "s/^/paged: /"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program


def test_long_answers_of_a_terminal_go_through_the_pager(pager: Path) -> None:
    words = ("log", DIRECTORY, "--to", 100)
    received = on_terminal(*words, PAGER=str(pager))
    assert received.startswith("LESS is FRX\n")
    assert received.count("paged: ") == 102
    assert "paged" not in on_terminal(*words, "--no-pager", PAGER=str(pager))
    assert "paged" not in on_terminal(*words, PAGER=str(pager), TERM="dumb")
    assert on_terminal("image", DIRECTORY, "--all", PAGER=str(pager)).count("paged: ") > 100
    assert "paged" not in on_terminal("image", DIRECTORY, "--part", "brokers", PAGER=str(pager))


def test_a_reader_who_leaves_the_pager_ends_the_command_in_order() -> None:
    received = on_terminal("events", DIRECTORY, "--all", PAGER="head -n 3")
    assert len(received.splitlines()) == 3


def listed(marks: str, text: str) -> list[str]:
    """The lines of changes in the answer of `diff`, without its frame."""
    return [line.lstrip("│├└─ ") for line in text.splitlines() if line.lstrip("│├└─ ")[:2] in marks.split("|")]


@pytest.mark.parametrize("everything", [[], ["--all"]], ids=["", "all"])
def test_a_diff_is_cut_at_either_end_and_says_how_much_of_each_part_is_left_out(everything: list[str]) -> None:
    words = ("diff", DIRECTORY, 402, 1400, *everything)
    whole = run(*words, "--all").stdout
    changes = listed("+ |- |~ ", whole)
    first, last = run(*words, "--limit", 7).stdout, run(*words, "--tail", 3).stdout
    if everything:
        assert listed("+ |- |~ ", first) == changes[:7]
        assert listed("+ |- |~ ", last) == changes[-3:]
    assert len(listed("+ |- |~ ", first)) == 7
    assert [line[:2] for line in listed("+ |- |~ ", last)] == [line[:2] for line in changes[-3:]]
    headings = [line for line in whole.splitlines() if line.startswith(("├── ", "└── "))]
    for cut in (first, last):
        assert [line for line in cut.splitlines() if line.startswith(("├── ", "└── "))] == headings
    assert "3 more changes" in first  # of four brokers
    assert "… 1 more change\n" in last
    assert run(*words, "--limit", 10**6).stdout == (whole if everything else run(*words, "--tail", 10**6).stdout)


def test_local_changes_are_cut_at_either_end() -> None:
    words = ("local-changes", DIRECTORY, "--broker", 1, "--from", 1988)
    head, rows = run(*words, "--all").stdout.split("─\n")
    for cut, expected in ((("--limit", 2), rows.splitlines()[:2]), (("--tail", 3), rows.splitlines()[-3:])):
        shown = run(*words, *cut).stdout.split("─\n")[1].splitlines()
        assert [line.split() for line in shown[:-1]] == [line.split() for line in expected]
        assert shown[-1] == f"… {len(rows.splitlines()) - len(expected)} more partitions"
    assert head.splitlines()[1] in run(*words, "--limit", 1).stdout


@pytest.mark.parametrize("command", [("diff", 402, 458), ("local-changes", "--broker", 2, "--from", 402)])
def test_what_is_one_object_is_never_cut(command: tuple[object, ...]) -> None:
    words = (command[0], DIRECTORY, *command[1:])
    for cut in ("--limit", "--tail"):
        assert "--json prints one whole object" in run(*words, cut, 1, "--json", code=2).stderr
    assert "either --limit or --tail" in run(*words, "--limit", 1, "--tail", 1, code=2).stderr


def test_an_image_takes_hosted_as_the_other_commands_do() -> None:
    words = ("image", DIRECTORY, "--broker", "1,3", "--at-offset", 458)
    assert run(*words, "--hosted").stdout == run(*words).stdout
    assert "--hosted is about the partitions of a broker" in fault("image", DIRECTORY, "--hosted", code=2)
