"""ls, cd, cat, find, tree, pwd and at, as a script uses them, and `kraftlake ls` and `kraftlake cat`."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest

from kraftlake.replay.imports.import_log import import_source
from tests.at_least_one import at_least_one
from tests.cli.made_logs import HOSTILE, hostile_log
from tests.cli.running import DIRECTORY, SAMPLE, run, run_image
from tests.cli.shell.typed import typed, typed_json
from tests.image.nodes import recorded
from tests.protocol.observer.fake_quorum import FakeQuorum
from tests.protocol.observer.model_quorum import ModelQuorum


def test_a_walk() -> None:
    said = typed(
        "# to the topic",
        "",
        "cd /image/topics/byName",
        "ls elr-?",
        "cd elr-a",
        "pwd",
        "ls",
        "cat name 0",
        "cd ..",
        "pwd",
        "cd",
        "pwd",
        "exit",
        "pwd",
    ).stdout.splitlines()
    names = ["0", "1", "2", "id", "name"]
    partition = next(line for line in said if line.startswith("PartitionRegistration(replicas=[2, 3, 4], "))
    topic = "/image/topics/byName/elr-a"
    assert said == [*names, topic, *names, "elr-a", partition, "/image/topics/byName", "/"]


@pytest.mark.parametrize("sample", recorded.NAMES)
def test_find_prints_what_kafkas_find_prints(sample: str) -> None:
    ours = typed("find /image", source=recorded.checkpoint(sample)).stdout.splitlines()
    assert set(recorded.found(sample)) <= set(ours)
    assert len(ours) == len(set(ours))


def test_cat_prints_what_kafkas_tree_prints() -> None:
    checkpoint = recorded.checkpoint("kafka-4.4")
    kafka = recorded.texts("kafka-4.4")
    patterns = ("/image/cluster/*/*", "/image/acls/byId/*", "/image/topics/byName/*/*", "/image/configs/*/*")
    printed = run("cat", checkpoint, *patterns, "--show-secrets").stdout.splitlines()
    wanted = [text for path, text in kafka.items() if path.split("/")[2] in ("cluster", "acls", "configs")]
    wanted += [text for path, text in kafka.items() if path.startswith("/image/topics/byName/")]
    assert sorted(printed) == sorted(wanted)


def test_one_command_is_one_of_the_shell() -> None:
    assert run("ls", DIRECTORY, "/image/cluster/brokers").stdout.split() == ["1", "2", "3", "4"]
    assert run("ls", DIRECTORY).stdout.split() == ["image", "local"]
    assert run("ls", DIRECTORY, "/image/topics/byName/elr-a", "--at", 1000, code=1).stdout == ""
    value = run("cat", DIRECTORY, "/image/features/metadataVersion", "--at", 260).stdout
    assert value == "Optional[3.4-IV0]\n"
    path = "/image/features/metadataVersion"
    assert run("shell", DIRECTORY, "-c", "at 260", "-c", f"cat {path}").stdout.splitlines()[1] == "Optional[3.4-IV0]"


def test_what_is_not_there_is_reported_after_what_is() -> None:
    said = run("ls", DIRECTORY, "/image/cluster/brokers/1", "/image/topic", "/image/cluster/brokers/1/x", code=1)
    assert said.stdout == "1\n"
    assert said.stderr == (
        "error: there is no node /image/topic at offset 5736: did you mean topics?; there is no node "
        "/image/cluster/brokers/1/x at offset 5736: /image/cluster/brokers/1 has no nodes below it\n"
    )
    said = run("cat", DIRECTORY, "/image/cluster", "/image/topics/byName/elr-a/name", code=1)
    assert said.stdout == "elr-a\n"
    assert said.stderr == "error: /image/cluster is a directory: ls and tree show what is in it\n"


def test_several_directories_are_listed_one_below_the_other() -> None:
    printed = run("ls", DIRECTORY, "/image/cluster/*", "/image/provenance").stdout
    assert printed == "provenance\n\nbrokers:\n1\n2\n3\n4\n\ncontrollers:\n3000\n".replace("\n\nb", "\nbrokers:", 1)[
        :0
    ] + ("provenance\n\nbrokers:\n1\n2\n3\n4\n\ncontrollers:\n3000\n")


def test_a_tree_has_names_and_values() -> None:
    assert typed("tree /image/producerIds").stdout == "nextProducerId:\n  6000\n"
    assert typed("tree /image/configs/BROKER:{2,3}").stdout.splitlines()[:3] == [
        "/image/configs/BROKER:2:", "  leader.replication.throttled.rate:", "    10000002"
    ]  # fmt: skip


def test_find_by_name() -> None:
    found = typed("find /image/configs --name 'min.insync.*'").stdout.splitlines()
    assert found
    assert all(path.endswith("/min.insync.replicas") for path in found)


def test_json_is_that_of_the_image() -> None:
    image = run_image(DIRECTORY, "--at", 4592)
    options = ("--at", "4592", "--show-secrets")
    (tree,) = typed_json("tree /image", options=options)
    value = tree["value"]
    assert tree["path"] == "/image"
    assert value["cluster"] == {"brokers": image["brokers"], "controllers": image["controllers"]}
    assert value["acls"]["byId"] == image["acls"]
    assert value["scram"] == image["scram"]
    assert value["delegationToken"] == image["delegationTokens"]
    assert value["producerIds"] == {"nextProducerId": image["nextProducerId"]}
    topics = {name: {"id": topic["id"], "partitions": {
        number: partition for number, partition in topic.items() if number not in ("id", "name")
    }} for name, topic in value["topics"]["byName"].items()}  # fmt: skip
    assert topics == image["topics"]
    assert typed_json(
        "pwd", "ls /image/producerIds", "cat /image/producerIds/nextProducerId", "at", options=options
    ) == [
        {"path": "/"},
        {"path": "/image/producerIds/nextProducerId", "directory": False},
        {"path": "/image/producerIds/nextProducerId", "value": 6000},
        {"clusterId": "VXUoBgBGTaWWfCM4Toybuw", "offset": 4592, "epoch": 2, "timestamp": 1795247377784},
    ]


def test_at_another_moment_one_is_in_a_directory_that_is_there() -> None:
    said = typed("cd /image/topics/byName/elr-a", "at 1000", "pwd", "at 07:46", "at end", "at today 07:47")
    assert said.stderr == "note: /image/topics/byName/elr-a is not there at offset 1000: this is /image/topics/byName\n"
    moments = said.stdout.splitlines()
    assert moments.pop(1) == "/image/topics/byName"
    offsets = [run_image(DIRECTORY, "--at", at)["offset"] for at in (1000, "07:46", 5736, "today 07:47")]
    assert [line.split(",")[0] for line in moments] == [f"offset {offset}" for offset in offsets]


@pytest.mark.parametrize(
    ("line", "code", "sentence"),
    [
        ("lss", 2, "there is no command lss; did you mean ls?"),
        ("frobnicate", 2, "there is no command frobnicate; `help` lists them"),
        ("ls 'a", 2, "a quote has no end: close it, or write a backslash before it"),
        ("cat", 2, "Missing argument 'PATH...' (see `cat --help`)"),
        ("at never", 2, "'never' is neither an offset nor a time"),
        ("at 5737", 1, "Offset 5737 is past the end of __cluster_metadata-0, which holds offsets 0 to 5736."),
        ("cd /image/provenance", 1, "/image/provenance is not a directory: cat shows it"),
        ("cd /image/*", 2, "/image/* matches 10 nodes: give one"),
        ("cd /image/nope", 1, "there is no node /image/nope at offset 5736"),
        ("ls --what", 2, "No such option"),
        ("man nope", 2, "there is no command nope"),
    ],
)
def test_a_line_that_fails_is_one_sentence_and_the_rest_is_run(line: str, code: int, sentence: str) -> None:
    said = typed("pwd", line, "cat /image/nope" if code == 2 else "lss", "pwd", code=code)
    assert said.stdout == "/\n/\n"
    first, second = said.stderr.splitlines()
    assert first.startswith(f"error: {sentence}")
    assert second.startswith("error: ")


def test_help_man_and_history() -> None:
    said = typed("help", "man since", "history", "history 1").stdout
    assert "  blame    Show which record made a node what it is.\n" in said
    assert "Usage: since [OPTIONS] [PATH]" in said
    assert "since /image/topics/byName/elr-a" in said
    assert said.endswith("    1  help\n    2  man since\n    3  history\n    4  history 1\n")


def test_secrets_are_redacted_unless_they_are_asked_for() -> None:
    line = "cat /image/scram/SCRAM-SHA-256/sm52"
    assert "salt=(redacted), storedKey=(redacted), serverKey=(redacted), iterations=4295" in typed(line).stdout
    assert "salt=7977616c66" in typed(line, options=("--show-secrets",)).stdout


def test_stdin_holds_a_source_or_lines() -> None:
    said = run("shell", "-", code=2)
    assert said.stderr.startswith("error: SOURCE - takes stdin, which lines would be read from: give them with -c")


def test_strings_of_the_log_do_not_steer_the_terminal(tmp_path: Path) -> None:
    log = hostile_log(tmp_path)
    found = typed("find /image", source=log).stdout.splitlines()
    hostile = [path for path in found if "\\x1b[31mred" in path]
    assert len(hostile) > 5
    lines = (
        "tree /",
        "ls /image/*/*",
        "log /image",
        "diff -1",
        "since /image/topics/byName",
        "help",
        "find / --name '*red*'",
    )
    said = typed(*lines, source=log)
    as_json = typed(*lines, source=log, options=("--json",))
    for text in at_least_one((*found, *said.stdout.split("\n"), *said.stderr.split("\n"), *as_json.stdout.split("\n"))):
        assert not [c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp")], text
    missing = typed(f"ls '/image/{HOSTILE.splitlines()[0]}'", source=log, code=1)
    assert "\x1b" not in missing.stderr


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lake") / "lake"
    import_source(DIRECTORY, folder)
    return folder


def test_every_source_is_walked_in(lake: Path, tmp_path: Path) -> None:
    import tarfile

    archive = tmp_path / "log.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(SAMPLE / "log", "log")
    lines = ("find /", "tree /image/topics/byName/elr-a", "at 4592", "tree /image/cluster")
    printed = typed(*lines).stdout
    assert len(printed.splitlines()) > 1_400
    for source in (lake, archive):
        assert typed(*lines, source=source).stdout == printed


def test_a_live_quorum_is_walked_in() -> None:
    model = ModelQuorum()
    model.elect(0, 1)
    model.append(3)
    model.replicate(1, 9)
    fake = FakeQuorum(model)
    with fake.serving():
        address = ",".join(map(str, fake.addresses))
        assert typed("at", "ls /image/cluster", source=address).stdout.splitlines()[1:] == ["brokers", "controllers"]
        assert run("cat", address, "/image/provenance").stdout.startswith("offset 3, epoch 1, time ")
