"""What a person reads: every form fits the terminal, and says what it has to."""

from __future__ import annotations

import os
import re
import unicodedata
from pathlib import Path

import pytest
from rich.cells import cell_len

from kraftlake.cli.output.terminal import PIPED_WIDTH, Terminal, wants_colour
from tests.cli.made_logs import HOSTILE, hostile_log
from tests.cli.running import DIRECTORY, LEGACY, TORN, fault, run, run_json
from tests.replay.comparing.odd_quorums import split_brain

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
ANSI = re.compile(r"\x1b\[[0-9;]*m")
FORMS: list[list[object]] = [
    ["image", DIRECTORY],
    ["image", DIRECTORY, "--all"],
    ["image", DIRECTORY, "--at-offset", 3],
    ["image", DIRECTORY, "--at-offset", 1059, "--topic", "*a"],
    ["image", DIRECTORY, "--broker", 3],
    ["image", TORN],
    ["diff", DIRECTORY, -1, 5736, "--all"],
    ["diff", DIRECTORY, 4592, 4639],
    ["diff", DIRECTORY, 5736, 260],
    ["diff", DIRECTORY, 7, 7],
    ["local-changes", DIRECTORY, "--broker", 1, "--from", -1],
    ["local-changes", DIRECTORY, "--broker", 1, "--from", 4592, "--to", 4639],
    ["local-changes", DIRECTORY, "--broker", 1, "--from", 74, "--to", 119],
    ["local-changes", DIRECTORY, "--broker", 99, "--from", -1],
]
COMMANDS_OVER_ONE_SOURCE: list[list[object]] = [
    ["image", "SOURCE", "--all"],
    ["log", "SOURCE"],
    ["diff", "SOURCE", -1, 8, "--all"],
    ["diff", "SOURCE", 8, 0],
    ["local-changes", "SOURCE", "--broker", 1, "--from", -1],
    ["verify", "SOURCE"],
]


def words_of(words: list[object]) -> str:
    return " ".join(str(word) for word in words if not isinstance(word, Path))


def plain(text: str) -> str:
    return ANSI.sub("", text)


@pytest.mark.parametrize("words", FORMS, ids=words_of)
@pytest.mark.parametrize("width", [60, 80, 120] if LONG else [60])
def test_a_form_fits_the_width_of_the_terminal(words: list[object], width: int) -> None:
    printed = run(*words, "--color", "always", width=width).stdout
    widest = max(plain(printed).splitlines(), key=cell_len)
    assert cell_len(widest) <= width, widest
    assert plain(printed) == run(*words, width=width).stdout


@pytest.mark.parametrize(
    "words", [*FORMS[:: 1 if LONG else 3], ["verify", DIRECTORY], ["log", DIRECTORY, "--to", 99]], ids=words_of
)
def test_colours_come_when_asked_for_only(words: list[object]) -> None:
    assert "\x1b[" in run(*words, "--color", "always").stdout
    assert "\x1b" not in run(*words).stdout
    assert "\x1b" not in run(*words, "--color", "never").stdout
    assert "\x1b" not in run(*words, "--json", "--color", "always").stdout


def test_no_color_is_heeded_and_an_option_beats_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class TerminalStream:
        @staticmethod
        def isatty() -> bool:
            return True

    stream: object = TerminalStream()
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert wants_colour("auto", stream)  # type: ignore[arg-type]
    assert not wants_colour("never", stream)  # type: ignore[arg-type]
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_colour("auto", stream)  # type: ignore[arg-type]
    assert wants_colour("always", stream)  # type: ignore[arg-type]
    monkeypatch.setenv("NO_COLOR", "")
    monkeypatch.setenv("TERM", "dumb")
    assert not wants_colour("auto", stream)  # type: ignore[arg-type]


def test_a_pipe_is_wide_and_never_narrower_than_can_be_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert Terminal().width == PIPED_WIDTH
    monkeypatch.setenv("COLUMNS", "3")
    assert Terminal().width == 40


def test_the_picture_of_a_cluster_has_all_its_parts() -> None:
    printed = run("image", DIRECTORY, "--at-offset", 4592).stdout
    for words in (
        "cluster VXUoBgBGTaWWfCM4Toybuw", "offset 4592, epoch 2, 2026-11-21 07:49:",
        "metadata.version  4.4-IV2 (level 33)",
        "group.version 1", "ELR on", "4 brokers, 4 active", "rack-2", "PLAINTEXT 127.0.0.1:19104",
        "3000  CONTROLLER (PLAINTEXT) 127.0.0.1:19180",
        "46 topics with 228 partitions, 19 under-replicated, 19 being reassigned, 12 recovering",
        "1×8 2×19 3×13", "… 34 more topics: --part topics --all", "min.insync.replicas=2",
        "client-id (default), user (default) consumer_byte_rate=30,000,000", "330 entries", "37 credentials",
        "next block starts at", "rPWBVWbES9q4s5sUau3nyg  (redacted)",
    ):  # fmt: skip
        assert words in printed


def test_a_delegation_token_shows_its_owner_on_demand_only() -> None:
    words = ["image", DIRECTORY, "--part", "tokens"]
    assert "User:" not in run(*words).stdout
    assert "rPWBVWbES9q4s5sUau3nyg of User:admin, expires 2026-11-21" in run(*words, "--show-secrets").stdout
    record = ["log", DIRECTORY, "--from", 377, "--to", 377]
    assert run(*record).stdout.endswith("DELEGATION_TOKEN     rPWBVWbES9q4s5sUau3nyg  (redacted)\n")
    assert "rPWBVWbES9q4s5sUau3nyg of User:admin" in run(*record, "--show-secrets").stdout


def test_asked_for_topics_are_drawn_partition_by_partition() -> None:
    printed = run("image", DIRECTORY, "--at-offset", 4592, "--topic", "t-100-14z").stdout
    assert "011NquuWQEiJzpKpjOhuIA" in printed
    assert "under-replicated, adding: 1, removing: 2 4" in printed
    assert "3 1✗ 2 4" in printed
    assert "retention.ms=400000" in printed
    assert "big-a" not in printed
    assert "brokers" not in printed
    offline = run("image", DIRECTORY, "--topic", "elr-a").stdout
    assert "offline, eligible to lead: 4 (fenced)" in offline
    assert "4~" in offline
    assert "2✗" in offline


def test_why_a_partition_has_no_leader_is_explained_by_who_may_lead_it() -> None:
    def partitions(at: int) -> str:
        return run("image", DIRECTORY, "--topic", "t-1-bkq", "--at-offset", at).stdout

    assert "offline, last in sync: 3 (fenced)" in partitions(458)
    assert "offline, last in sync: 2 (shutting down)" in partitions(236)
    assert "offline, last in sync: 3 (not elected)" in partitions(475)


def test_partitions_are_picked_by_what_is_wrong_with_them() -> None:
    def partitions(*words: object) -> set[str]:
        topics = run_json("image", DIRECTORY, "--at-offset", 458, *words)["topics"]
        return {f"{name}-{id_}" for name, topic in topics.items() for id_ in topic["partitions"]}

    everything = run_json("image", DIRECTORY, "--at-offset", 458)["topics"]
    states = {f"{name}-{id_}": one for name, topic in everything.items() for id_, one in topic["partitions"].items()}
    offline = {name for name, one in states.items() if one["leader"] < 0}
    under = {name for name, one in states.items() if len(one["isr"]) < len(one["replicas"])}
    assert (len(offline), len(under)) == (7, 48)
    assert partitions("--unavailable-partitions") == offline
    assert partitions("--under-replicated-partitions") == under
    assert partitions("--unavailable-partitions", "--under-replicated-partitions") == offline | under
    assert partitions("--under-replicated-partitions", "--topic", "fixed-a") == {f"fixed-a-{n}" for n in range(6)}
    assert partitions("--unavailable-partitions", "--broker", 2) == set()
    drawn = run("image", DIRECTORY, "--at-offset", 458, "--unavailable-partitions")
    assert drawn.stdout.count("last in sync: 3 (fenced)") == 7
    assert len(re.findall(r"partition +leader", drawn.stdout)) == 1
    assert "no topic matches" not in run("image", DIRECTORY, "--unavailable-partitions", "--topic", "big-a").stderr


def test_partitions_are_picked_by_how_many_in_sync_they_need() -> None:
    def partitions(*words: object) -> set[str]:
        topics = run_json("image", DIRECTORY, "--at-offset", 4592, *words)["topics"]
        return {f"{name}-{id_}" for name, topic in topics.items() for id_ in topic["partitions"]}

    everything = run_json("image", DIRECTORY, "--at-offset", 4592)
    asked = {
        name: int(values.get("min.insync.replicas", everything["configs"]["BROKER"][""]["min.insync.replicas"]))
        for name, values in ((name, everything["configs"]["TOPIC"].get(name, {})) for name in everything["topics"])
    }
    in_sync = {
        f"{name}-{id_}": (one["leader"], len(one["isr"]) - asked[name])
        for name, topic in everything["topics"].items()
        for id_, one in topic["partitions"].items()
    }
    under = {name for name, (leader, more) in in_sync.items() if leader < 0 or more < 0}
    at = {name for name, (_, more) in in_sync.items() if more == 0}
    assert (len(under), len(at)) == (17, 132)
    assert partitions("--under-min-isr-partitions") == under
    assert partitions("--at-min-isr-partitions") == at
    assert partitions("--under-min-isr-partitions", "--at-min-isr-partitions") == under | at


def test_how_many_in_sync_a_partition_needs_is_shown_where_that_is_asked() -> None:
    words = ("image", DIRECTORY, "--at-offset", 1280, "--topic", "elr-a")
    under = run(*words, "--under-min-isr-partitions").stdout
    assert under.count("under-replicated, under min ISR 2") == 3
    assert "min ISR" not in run(*words).stdout
    one_replica = run("image", DIRECTORY, "--at-offset", 4592, "--topic", "t-1-bkq", "--under-min-isr-partitions")
    assert one_replica.stdout.count("min ISR 2 is more than its 1 replica") == 4
    for option, needed in (("--under-min-isr-partitions", {2}), ("--all", {None})):
        (topic,) = run_json(*words, option)["topics"].values()
        assert {partition.get("minIsr") for partition in topic["partitions"].values()} == needed
    at = run("image", DIRECTORY, "--at-offset", 4592, "--at-min-isr-partitions").stdout
    assert "at min ISR 2" in at
    none = run("image", DIRECTORY, "--at-offset", 4592, "--topic", "big-a", "--under-min-isr-partitions").stdout
    assert none.endswith("topics  no partition is under min ISR\n")


def test_since_when_a_partition_has_no_leader_is_shown_with_who_led_it() -> None:
    shown = run("image", DIRECTORY, "--unavailable-partitions", "--at-offset", 458).stdout
    assert "offline since 2026-11-21 07:46:16.256Z, led by 3 before, last in sync: 3 (fenced)" in shown
    as_json = run_json("image", DIRECTORY, "--unavailable-partitions", "--at-offset", 458)
    partitions = [p for topic in as_json["topics"].values() for p in topic["partitions"].values()]
    assert {"since": 1795247176256, "ledBy": 3, "mayLead": "isr", "states": {"3": "fenced"}} in [
        partition["leaderless"] for partition in partitions
    ]
    assert len(partitions) == shown.count("offline since")


def test_json_says_which_cluster_and_when() -> None:
    at = {"clusterId": "VXUoBgBGTaWWfCM4Toybuw", "offset": 458, "epoch": 1, "timestamp": 1795247176256}
    for command in (["image"], ["image", "--part", "acls"], ["metrics"], ["metrics", "--broker", 1]):
        form = run_json(command[0], DIRECTORY, *command[1:], "--at-offset", 458)
        assert {key: form[key] for key in at} == at
    diff = run_json("diff", DIRECTORY, -1, 458)
    assert (diff["clusterId"], diff["fromTimestamp"], diff["toTimestamp"]) == (at["clusterId"], None, 1795247176256)


def test_json_warns_of_another_cluster_too() -> None:
    assert "is of another cluster" in run("diff", DIRECTORY, "--with", TORN, "--json").stderr


def test_that_no_partition_is_unavailable_is_not_shown_as_having_no_topics() -> None:
    shown = run("image", DIRECTORY, "--unavailable-partitions", "--at-offset", 4592).stdout
    assert shown.endswith("topics  no partition is unavailable\n")


def test_names_of_partitions_stay_whole_and_lines_end_with_their_last_word_on_80_columns() -> None:
    words = ["image", DIRECTORY, "--unavailable-partitions", "--at-offset", 1323]
    lines = run(*words, width=80).stdout.splitlines()
    assert sum("__transaction_state-" in line for line in lines) == 3
    assert not [line for line in lines if line != line.rstrip()]
    assert max(map(len, lines)) <= 80
    narrow = run(*words, width=60).stdout.splitlines()
    assert max(map(len, narrow)) <= 60


def test_a_table_without_room_for_all_topics_begins_with_those_that_want_attention() -> None:
    lines = run("image", DIRECTORY, "--at-offset", 458, "--part", "topics").stdout.splitlines()[5:17]
    names = [line.strip(" │").split()[0] for line in lines]
    assert names[:6] == ["t-1-bkq", "t-10-k3m", "t-23-eln", "t-26-rxb", "t-27-bs9", "t-8-c6v"]
    assert all("under-replicated" in line for line in lines[6:])


def test_a_topic_that_does_not_exist_is_reported() -> None:
    assert fault("image", DIRECTORY, "--topic", "nope") == "no topic matches nope at any offset of this log"
    assert fault("image", DIRECTORY, "--topic", "elr-c").endswith(": did you mean elr-a?")
    gone = run("image", DIRECTORY, "--topic", "t-21-w0f")
    assert "no topic matches t-21-w0f at offset 5736" in gone.stderr


def test_a_topic_is_asked_for_by_its_id() -> None:
    by_id = run_json("image", DIRECTORY, "--topic-id", "95eekTTkQIyb_UAiwezePg")
    assert by_id == run_json("image", DIRECTORY, "--topic", "t-22-3h4")
    gone = run("image", DIRECTORY, "--topic-id", "nANz2uTcTHue83qLIJ1OVA")
    assert "no topic matches nANz2uTcTHue83qLIJ1OVA at offset 5736" in gone.stderr
    assert gone.stdout.endswith("topics  none\n")


def test_a_part_asked_for_is_drawn_alone_and_in_full() -> None:
    short = run("image", DIRECTORY, "--part", "acls").stdout
    full = run("image", DIRECTORY, "--part", "acls", "--all").stdout
    assert "… 324 more entries: --part acls --all shows them" in short
    assert full.count("\n") > 330
    assert "more" not in full
    assert "topics" not in full


def test_a_filter_cuts_the_json_as_well() -> None:
    import json

    form = json.loads(run("image", DIRECTORY, "--broker", 3, "--json").stdout)
    assert set(form) == {"clusterId", "offset", "epoch", "timestamp", "topics", "configs", "brokers"}
    assert list(form["brokers"]) == ["3"]
    partitions = [one for topic in form["topics"].values() for one in topic["partitions"].values()]
    assert partitions
    assert all(3 in partition["replicas"] for partition in partitions)
    assert form["configs"] == {"BROKER": {"3": form["configs"]["BROKER"]["3"]}}


def test_a_record_is_one_aligned_line() -> None:
    lines = run("log", DIRECTORY).stdout.splitlines()
    assert len(lines) == 5737
    assert [int(line[:8]) for line in lines] == list(range(5737))
    pattern = re.compile(r" *\d+ +\d+  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}Z  [A-Z_]+(  .*)?")
    assert all(pattern.fullmatch(line) for line in lines)


@pytest.mark.parametrize(
    ("offset", "words"),
    [
        (0, "LEADER_CHANGE        controller 3000 leads, voters 3000"),
        (18, "TOPIC                + t-1-bkq  id 7vdB8JZGQMGEx6wT5o3Wig"),
        (60, "PARTITION            t-12-g25-1  leader 1, in sync 1 2 3, replicas 1 2 3, epochs 0/0"),
        (83, "CONFIG               topic t-3-dj5  - retention.ms"),
        (130, "CLIENT_QUOTA         user (default)  request_percentage=75.5"),
        (
            142,
            "ACCESS_CONTROL_ENTRY  + allow User:p1200 delete on group res-82460 (prefixed) from *"
            "  acl/KY2xfqJoTdmdTjFnXpWqHw",
        ),
        (
            181,
            "REMOVE_ACCESS_CONTROL_ENTRY  - allow User:p1302 delete on group res-42629 (prefixed) from *"
            "  acl/XrunzGjIQ2CDZZt81Bu1Jg",
        ),
        (195, "PARTITION_CHANGE     fixed-a-2  leader 1, in sync 3 1, replicas 1 3"),
        (296, "USER_SCRAM_CREDENTIAL  + su15  SCRAM-SHA-256, 4242 iterations"),
        (1044, "KRAFT_VOTERS         voters 3000 127.0.0.1:19180"),
        (2940, "REMOVE_TOPIC         - t-34-jhi"),
    ],
)
def test_a_line_says_what_its_record_says_with_names_from_before_it(offset: int, words: str) -> None:
    (line,) = run("log", DIRECTORY, "--from", offset, "--to", offset).stdout.splitlines()
    assert line.endswith("Z  " + words)


def test_every_type_of_every_sample_has_words_of_its_own() -> None:
    silent = {"NO_OP", "END_TRANSACTION", "BEGIN_TRANSACTION", "SNAPSHOT_FOOTER"}
    for directory in (DIRECTORY, LEGACY, TORN):
        for line in run("log", directory).stdout.splitlines():
            type_, _, words = line[39:].partition("  ")
            assert words.strip() or type_.strip() in silent, line
            assert not words.strip().startswith("{"), line


def test_records_are_chosen_by_type_in_any_spelling_and_without_noops() -> None:
    topics = run("log", DIRECTORY, "--type", "TOPIC_RECORD").stdout
    for spelling in ("topic", "Topic-Record", "TopicRecord"):
        assert run("log", DIRECTORY, "--type", spelling).stdout == topics
    both = run("log", DIRECTORY, "--type", "topic", "--type", "LeaderChange").stdout
    assert both.count("\n") == topics.count("\n") + 2
    busy = run("log", DIRECTORY, "--no-noop").stdout
    assert "NO_OP" not in busy
    noops = run("log", DIRECTORY, "--type", "no_op").stdout.count("\n")
    assert noops
    assert busy.count("\n") == 5737 - noops


def test_secrets_are_shown_on_demand_only(tmp_path: Path) -> None:
    key = "ZDsA4pe4rV4gqel8U0kWZOaeybwe3n6F57CoATi+FMA="
    for words in (["log", DIRECTORY, "--from", 296, "--to", 296], ["log", DIRECTORY, "--type", "UserScramCredential"]):
        for form in ([], ["--json"]):
            assert key not in run(*words, *form).stdout
            assert key in run(*words, *form, "--show-secrets").stdout
    stored = "07a7459fe77fbfd47009d3d147b5ab942997e7a9e6301a696ada409417a56749"
    for form in ([], ["--json"], ["--all"]):
        assert stored not in run("image", DIRECTORY, *form).stdout
        assert stored not in run("diff", DIRECTORY, -1, 5736, *form).stdout
    assert stored in run("image", DIRECTORY, "--all", "--show-secrets").stdout
    assert stored in run("diff", DIRECTORY, -1, 5736, "--show-secrets", "--all").stdout
    log = hostile_log(tmp_path)
    assert "markup" in run("image", log, "--show-secrets", "--part", "configs").stdout
    assert "(redacted)" in run("image", log, "--part", "configs").stdout


def test_a_diff_says_what_came_went_and_changed() -> None:
    printed = run("diff", DIRECTORY, 4592, 5736).stdout
    assert "~ broker 1  fenced no → yes, shutting down no → yes" in printed
    assert "+ t-101-h7w  3 partitions" in printed
    assert "- t-21-w0f  3 partitions" in printed
    assert "~ big-a-0  leader 2 → none, in sync 2 3 4 → –, eligible – → 3 4" in printed
    assert "26 removed" in printed
    assert "partitions of topics that came or went: --all shows them" in printed
    assert "t-21-w0f-0" in run("diff", DIRECTORY, 4592, 5736, "--all").stdout
    assert "no difference" in run("diff", DIRECTORY, 7, 7).stdout
    assert "~ metadata.version  3.3-IV3 → 3.4-IV0" in run("diff", DIRECTORY, 3, 260).stdout


def test_the_images_of_two_sources_are_compared() -> None:
    earlier, later = (DIRECTORY / f"{end:020d}-0000000002.checkpoint" for end in (3038, 4593))
    assert run("diff", earlier, "--with", later).stdout == run("diff", DIRECTORY, 3037, 4592).stdout
    assert run("diff", DIRECTORY, "--with", DIRECTORY).stdout.endswith("no difference\n")
    assert run("diff", DIRECTORY, 4592, "--with", later).stdout.endswith("no difference\n")
    from_nothing = run_json("diff", DIRECTORY, -1, 3037, "--with", earlier)
    assert from_nothing.pop("logs")["relation"] == "unknown", "a snapshot has no log"
    assert from_nothing == run_json("diff", DIRECTORY, -1, 3037)
    assert f"{DIRECTORY} and {DIRECTORY} are the same log" in run("diff", DIRECTORY, "--with", DIRECTORY).stdout
    strange = run("diff", DIRECTORY, "--with", TORN)
    assert "is of another cluster, 6Ptohw4ASx6dgm3MBfsbpQ" in strange.stderr
    for words in ([], [5]):
        assert "--with" in run("diff", DIRECTORY, *words, code=2).stderr


def test_two_sources_are_one_history_or_two(tmp_path: Path) -> None:
    one, other, shorter = split_brain(tmp_path)
    shown = run("diff", one, "--with", other).stdout.splitlines()
    assert shown[0] == (
        f"{one} and {other} are two histories: they differ from offset 0 on, the first that both have (other bytes)"
    )
    assert shown[1].startswith(f"  · {one}: alone offsets 0 to 37 in epochs 1 to 3, 20 records besides no-ops")
    assert shown[1].endswith("committed by its own quorum up to offset 32 at least")
    assert "offsets 0 to 43 are the same" in run("diff", other, "--with", shorter).stdout
    logs = run_json("diff", one, "--with", other)["logs"]
    assert (logs["relation"], logs["partsAt"], [held["records"] for held in logs["alone"]]) == ("parted", 0, [20, 1])


def test_local_changes_are_summed_up_and_listed() -> None:
    printed = run("local-changes", DIRECTORY, "--broker", 1, "--from", 4592, "--to", 4639).stdout
    assert "4 partitions to delete, 7 partitions to lead (7 newly elected), 3 partitions to follow" in printed
    lines = [line.split() for line in printed.splitlines()]
    assert ["delete", "t-7-f9j-3"] in [line[:2] for line in lines]
    state = ["elected", "t-7-f9j-0", "1", "1", "4", "1", "4", "8/24"]
    assert [*state, "log", "directory", "wOwVcDUrUs8hEmvD_IidUw"] in lines
    assert ["follow", "t-100-14z-1", "3"] in [line[:3] for line in lines]
    quiet = run("local-changes", DIRECTORY, "--broker", 1, "--from", 74, "--to", 119).stdout
    assert "no record of these offsets is about a topic" in quiet


def test_local_changes_keep_a_partition_on_one_line_of_80_columns() -> None:
    printed = run("local-changes", DIRECTORY, "--broker", 2, "--from", 402, "--to", 458, width=80).stdout
    rows = printed.splitlines()[5:-1]
    assert len(rows) == 12
    assert all(row.endswith("under-replicated") for row in rows)


def test_a_verification_shows_its_checks_and_the_first_bad_offset() -> None:
    sound = run("verify", DIRECTORY).stdout
    assert sound.startswith("✓ 5,737 records in 1,106 batches, offsets 0 to 5736")
    assert "✓ 3 snapshots read, 2 of them compared" in sound
    assert sound.endswith("\nsound\n")
    legacy = run("verify", LEGACY, code=1).stdout
    assert legacy.startswith("✗ 478 records in 167 batches, offsets 0 to 477: 1 problem\n")
    assert legacy.endswith("unsound: the first bad offset is 1\n")


def test_a_verification_calls_a_log_sound_whose_tail_is_cut_and_says_where() -> None:
    torn = run("verify", TORN).stdout
    assert torn.startswith("✓ 3,467 records in 121 batches, offsets 0 to 3466: CRCs, order")
    assert "• 00000000000000002265.log, position 61042, offset 3467: torn tail" in torn
    assert torn.endswith("\nsound\n")


def test_verify_in_json_exits_the_same() -> None:
    import json

    report = json.loads(run("verify", LEGACY, "--json", code=1).stdout)
    assert (report["sound"], report["firstBadOffset"], report["tornTail"]) == (False, 1, None)
    torn = json.loads(run("verify", TORN, "--json").stdout)
    assert (torn["sound"], torn["firstBadOffset"], torn["problems"]) == (True, None, [])
    assert (torn["tornTail"]["offset"], torn["tornTail"]["position"]) == (3467, 61042)


def test_a_torn_tail_is_a_warning_on_stderr() -> None:
    for words in (["image", TORN], ["log", TORN], ["image", TORN, "--json"]):
        assert "warning: 00000000000000002265.log: torn at position 61042, offset 3467" in run(*words).stderr


@pytest.mark.parametrize("words", COMMANDS_OVER_ONE_SOURCE, ids=words_of)
@pytest.mark.parametrize("width", [None, 80])
def test_strings_of_a_log_never_steer_the_terminal(tmp_path: Path, words: list[object], width: int | None) -> None:
    log = hostile_log(tmp_path)
    line = [log if word == "SOURCE" else word for word in words]
    result = run(*line, width=width)
    for output in (result.stdout, result.stderr):
        bad = {character for character in output if character != "\n" and unicodedata.category(character)[0] in "CZ"}
        assert bad <= {" "}, bad
    colourful = run(*line, "--color", "always", width=width).stdout
    assert plain(colourful) == result.stdout
    as_json = run(*line, "--json").stdout
    assert as_json.isascii()
    assert "\x1b" not in as_json


def test_markup_and_emoji_codes_of_a_log_are_shown_as_they_are(tmp_path: Path) -> None:
    log = hostile_log(tmp_path)
    shown = r"\x1b[31mred\x1b]0;title\x07\r\n\t[bold]markup[/bold] [link=http://x]:boom: \u202egnp.exe\x9b2J\u2028end"
    assert shown in run("log", log, "--type", "topic").stdout
    for words in (["image", log, "--part", "quotas"], ["diff", log, -1, 8]):
        joined = re.sub(r"[│└├─\s]+", "", run(*words, width=400).stdout)
        assert re.sub(r"\s+", "", shown) in joined


def test_hostile_strings_come_out_of_json_as_they_went_in(tmp_path: Path) -> None:
    import json

    form = json.loads(run("image", hostile_log(tmp_path), "--json", "--show-secrets").stdout)
    assert list(form["topics"]) == [HOSTILE]
    assert form["configs"]["BROKER"][HOSTILE] == {HOSTILE: HOSTILE}


def test_an_unknown_cluster_is_called_so_until_it_is_named(tmp_path: Path) -> None:
    log = hostile_log(tmp_path)
    assert run("image", log).stdout.startswith("cluster of unknown id")
    assert run("image", log, "--cluster-id", "abc").stdout.startswith("cluster abc")


@pytest.mark.parametrize("at", [1507, 5736])
def test_since_when_things_are_so_is_shown_on_narrow_terminals_too(at: int) -> None:
    """In lines of their own, and times of the image's day without the date."""
    words = ("image", DIRECTORY, "--at", at, "--since", "--part", "brokers", "--part", "configs", "--all")
    wide, narrow = (run(*words, width=width).stdout for width in (300, 80))
    assert max(map(len, narrow.splitlines())) <= 80
    since = re.compile(r"since (\d+) (?:2026-11-21 )?(\d\d:\d\d:\d\d\.\d{3}Z)(?:, |$)", re.MULTILINE)
    configs = [found.groups() for found in since.finditer(wide)]
    brokers = re.findall(r"^│ +\d+ +(?:active|fenced) +(\d+) 2026-11-21 (\S+)", wide, re.MULTILINE)
    assert len(brokers) == 4
    assert sorted(configs + brokers) == sorted(found.groups() for found in since.finditer(narrow))


def test_since_when_a_partition_is_so_stands_below_its_troubles_on_a_narrow_terminal() -> None:
    words = ("image", DIRECTORY, "--topic", "elr-a", "--part", "topics", "--since")
    rows = run(*words, width=80).stdout.partition("─\n")[2].splitlines()
    assert [row.split("  ")[-1].strip() for row in rows[:3]] == [
        "offline, eligible to lead: 4",
        "(fenced)",
        "since 5651 07:50:31.466Z",
    ]
    assert "5651 2026-11-21 07:50:31.466Z  offline, eligible to lead: 4 (fenced)" in run(*words, width=160).stdout
