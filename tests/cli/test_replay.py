"""`kraftlake replay`, as a user and as a program runs it."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys

import pytest

from kraftlake.image.metadata_image import image_to_json
from tests.cli.running import DIRECTORY, ROOT, SAMPLE, fault, process, run, unzipped_json

IMAGES = sorted(int(path.name.split("-")[1].split(".")[0]) for path in (SAMPLE / "expected").glob("image-*.json.gz"))
LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"


def lines(*words: object) -> list[dict]:
    return [json.loads(line) for line in run("replay", DIRECTORY, *words, "--json").stdout.splitlines()]


@pytest.mark.parametrize("offset", IMAGES)
def test_the_summary_is_what_kafkas_own_image_says(offset):
    image = unzipped_json(SAMPLE / "expected" / f"image-{offset}.json.gz")
    for broker in (1, 2, 3, 4) if LONG else (IMAGES.index(offset) % 4 + 1,):
        leads, follows = [], []
        for name, topic in image["topics"].items():
            for number, partition in topic["partitions"].items():
                if broker in partition["replicas"]:
                    (leads if partition["leader"] == broker else follows).append(f"{name}-{number}")
        summary = lines("--broker", broker, "--to", offset)[-1]["summary"]
        assert summary == {
            "broker": broker, "offset": offset, "leaderOf": sorted(leads), "followerOf": sorted(follows),
        }  # fmt: skip


def test_two_runs_print_the_same_in_the_same_order():
    # topics that were deleted, and eligible leader replicas that were cleared, whose partitions come from hash maps
    words = ("replay", DIRECTORY, "--broker", 3, "--from", 1380, "--to", 3100, "--json")
    first, second = (process(*words, PYTHONHASHSEED=seed) for seed in "12")
    assert first.returncode == 0
    assert first.stdout == second.stdout
    deleted = [
        line["partition"] for line in map(json.loads, first.stdout.splitlines()[:-1]) if "log-d" in line["action"]
    ]
    assert sum(name.startswith("big-a-") for name in deleted) > 10


def test_the_summary_is_of_the_offset_asked_for_within_a_metadata_transaction_too():
    log = ROOT / "samples" / "crash-torn" / "log" / "__cluster_metadata-0"
    printed = run("replay", log, "--broker", 1, "--to", 3, "--json").stdout.splitlines()
    assert [json.loads(line) for line in printed] == [
        {"summary": {"broker": 1, "offset": 3, "leaderOf": [], "followerOf": []}}
    ]
    assert run("replay", log, "--broker", 1, "--to", 3).stdout.startswith("broker 1 after offset 3: leads 0")


def test_a_transition_names_what_happened_and_because_of_which_record():
    *transitions, summary = lines("--broker", 2, "--from", 403, "--to", 458)
    assert set(summary) == {"summary"}
    (elected,) = [t for t in transitions if t["action"] == "became-leader" and t["partition"] == "fixed-a-3"]
    assert elected | {"topicId": ""} == {
        "offset": 458, "recordOffset": 438, "recordType": "PARTITION_CHANGE_RECORD", "action": "became-leader",
        "partition": "fixed-a-3", "topicId": "", "leader": 2, "leaderEpoch": 2, "partitionEpoch": 3, "isr": [1, 2],
        "replicas": elected["replicas"], "directory": elected["directory"],
        "previous": {
            "leader": 3, "leaderEpoch": 1, "partitionEpoch": 2, "isr": [1, 2, 3], "replicas": elected["replicas"],
        },
    }  # fmt: skip


def test_a_person_reads_sentences():
    out = run("replay", DIRECTORY, "--broker", 2, "--from", 403, "--to", 458).stdout.splitlines()
    assert out[0] == "offsets 403 to 458  2026-11-21 07:46:16.256Z  epoch 1"
    assert (
        "  became leader of fixed-a-3 at epoch 2, after broker 3, ISR 1 2, no longer fetched by fetcher 0 to broker 3"
        "  because of record 438 (PARTITION_CHANGE_RECORD)"
    ) in out
    assert out[-3] == "broker 2 after offset 458: leads 23 partitions, follows 31 partitions"
    assert out[-2] == "  fetcher 0 to broker 1 (127.0.0.1:19100): 25 partitions"


def test_every_kind_of_transition_of_the_samples_can_be_read():
    for broker in (1, 4):
        out = run("replay", DIRECTORY, "--broker", broker).stdout
        assert "None" not in out.replace("t.None", "")
        for words in ("has no leader", "the broker began to shut down", "the broker started", "log deleted", "stopped"):
            assert words in out, words


def test_a_broker_that_nobody_knows_is_warned_of():
    result = run("replay", DIRECTORY, "--broker", 77, "--to", 80)
    assert result.stdout == "broker 77 after offset 80: leads 0 partitions, follows 0 partitions\n"
    assert result.stderr == (
        "warning: broker 77 is not registered at offset 80 and hosts nothing; registered brokers: 1, 2, 3\n"
    )
    assert lines("--broker", 77, "--to", 80) == [
        {"summary": {"broker": 77, "offset": 80, "leaderOf": [], "followerOf": []}}
    ]


def test_folders_are_compared_with_the_image_at_the_end(tmp_path):
    form = image_to_json(__import__("kraftlake").open(DIRECTORY).image())
    directory = form["brokers"]["1"]["directories"][0]
    (tmp_path / "meta.properties").write_text(f"directory.id={directory}\n")
    (tmp_path / "nobody-0").mkdir()
    *_, report, summary = lines("--broker", 1, "--from", 5736, "--log-dirs", tmp_path)
    hosted = summary["summary"]["leaderOf"] + summary["summary"]["followerOf"]
    assert len(report["logDirs"]["missing"]) == len(hosted)
    assert [finding["partition"] for finding in report["logDirs"]["stray"]] == ["nobody-0"]
    printed = run("replay", DIRECTORY, "--broker", 1, "--from", 5736, "--log-dirs", tmp_path).stdout
    assert "stray: 1 partition" in printed
    assert "nobody-0" in printed


def test_the_clean_and_dirty_bytes_of_compacted_logs_are_shown(tmp_path):
    log = tmp_path / "__transaction_state-0"
    log.mkdir()
    for base, size in ((0, 700), (40, 2_000), (90, 10)):
        (log / f"{base:020}.log").write_bytes(bytes(size))
    (tmp_path / "cleaner-offset-checkpoint").write_text("0\n1\n__transaction_state 0 40\n")
    words = ("--broker", 1, "--from", 5736, "--log-dirs", tmp_path)
    *_, report, _ = lines(*words)
    assert report["logDirs"]["compacted"] == [
        {"path": str(log), "cleanedTo": 40, "cleanBytes": 700, "dirtyBytes": 2_000, "oldestDirtyTimestamp": None}
    ]
    printed = run("replay", DIRECTORY, *words).stdout
    assert f"{log}  700 bytes clean, 2,000 dirty  cleaned up to offset 40" in printed


def test_folders_of_another_cluster_are_refused_and_those_of_another_node_warned_of(tmp_path):
    words = ("replay", DIRECTORY, "--broker", 1, "--to", 19, "--log-dirs")
    (tmp_path / "meta.properties").write_text("cluster.id=4txYLAmrS0uTetc3seN8Pg\nnode.id=1\n")
    result = run(*words, tmp_path, code=2)
    sentence = "is a log directory of cluster 4txYLAmrS0uTetc3seN8Pg, not of cluster VXUoBgBGTaWWfCM4Toybuw."
    assert (result.stdout, result.stderr) == ("", f"error: {tmp_path} {sentence}\n")
    result = run(*words, DIRECTORY.parent)
    assert result.stderr == f"warning: {DIRECTORY.parent} is a log directory of node 3000, not of broker 1\n"
    assert "log directories  0 folders as they should be" in result.stdout


def test_what_cannot_be_met_is_one_sentence():
    assert "runs backwards" in fault("replay", DIRECTORY, "--broker", 1, "--from", 9, "--to", 8, code=2)
    assert "past the end" in fault("replay", DIRECTORY, "--broker", 1, "--to", 99_999)
    assert "Offset 99999 is past the end" in fault("replay", DIRECTORY, "--broker", 1, "--from", 99_999)
    result = run("replay", DIRECTORY, "--broker", 1, "--log-dirs", "nowhere", code=1)
    assert (result.stdout, result.stderr.splitlines()[-1:]) == (
        "", ["error: nowhere is no log directory of a broker: there is no such folder."]
    )  # fmt: skip
    result = run("replay", DIRECTORY, "--broker", 1, "--step", "--json", code=2)
    assert "--step is interactive" in result.stderr
    result = run("replay", DIRECTORY, "--broker", 1, "--step", "--log-dirs", ".", code=2)
    assert "give one of them" in result.stderr


# step by step


def stepped(*commands: str, words: tuple[object, ...] = ("--broker", 2, "--from", 403)) -> list[str]:
    """The answers to commands, in a terminal of their own."""
    main, child = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "kraftlake.cli", "replay", str(DIRECTORY), *map(str, words), "--step"],
        cwd=ROOT, stdin=child, stdout=child, stderr=subprocess.STDOUT, env={**os.environ, "COLUMNS": "200"},
    )  # fmt: skip
    os.close(child)
    answers = [_until_prompt(main)]
    for command in commands:
        os.write(main, command.encode() + b"\n")
        answers.append(_until_prompt(main))
    assert process.wait() == 0
    os.close(main)
    return answers


def _until_prompt(main: int) -> str:
    seen = b""
    while not re.search(rb"(?:start|offset -?\d+)> (?:\x1b\[0m)?$", seen):
        try:
            read = os.read(main, 65536)
        except OSError:
            break
        if not read:
            break
        seen += read
    return re.sub(r"\x1b\[[0-9;]*m", "", seen.decode()).replace("\r\n", "\n")


def test_stepping_goes_forth_and_back_and_looks_around():
    hello, first, second, back, state, to_partition, one, image, to_offset, to_past, wrong, bye = stepped(
        "n", "", "b", "s", "p t-33-zy1-1", "s t-33-zy1-1", "i t-33-zy1", "o 950", "o 458", "x", "q"
    )
    assert "on until something happens to a partition" in hello
    assert hello.endswith("offset 402> ")
    assert "offsets 403 to 458" in first
    assert "offset 484" in second
    assert back.endswith("offset 458> ")
    assert "became leader of fixed-a-3" in back
    assert "broker 2 after offset 458: leads 23 partitions, follows 31 partitions" in state
    assert "became leader of t-33-zy1-1 at epoch 0" in to_partition
    assert "leads t-33-zy1-1: leader epoch 0, partition epoch 0, ISR 2, replicas 2" in one
    assert "t-33-zy1" in image
    assert re.search(r"offset 9[5-9]\d> $", to_offset)
    assert to_past.endswith("offset 458> ")
    assert "'x' is no command" in wrong
    assert bye.strip() == "q"


def test_stepping_ends_where_the_replay_ends_and_begins_where_it_begins():
    _, first, end, back, *_ = stepped("n", "n", "b", "q", words=("--broker", 2, "--from", 403, "--to", 458))
    assert "offsets 403 to 458" in first
    assert "this is the end of the replay" in end
    assert "this is where the replay begins" in back


def test_stepping_back_to_an_offset_before_the_first_delta_says_so():
    _, _, before, _ = stepped("n", "o 450", "q", words=("--broker", 2, "--from", 403, "--to", 458))
    assert "this is where the replay begins" in before
    assert before.endswith("offset 402> ")
