"""What goes wrong ends in one sentence and the right exit code; nothing is on stdout, nothing is changed."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import attrs
import pytest

from kraftlake.cli.application import application
from kraftlake.records import metadata_records as r
from tests.cli.made_logs import batch_of, data_topic_segment, directory_of, hostile_log, unreplayable_log
from tests.cli.running import DIRECTORY, LEGACY, ROOT, TORN, fault, process, run


def tree_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "command", [["image"], ["log"], ["verify"], ["diff", 1, 2], ["local-changes", "--broker", 1, "--from", 1]]
)
def test_every_command_names_a_missing_path(command: list[object], tmp_path: Path) -> None:
    sentence = fault(command[0], tmp_path / "nowhere", *command[1:])
    assert "nowhere does not exist" in sentence


def test_an_empty_folder_is_named(tmp_path: Path) -> None:
    assert "is an empty folder" in fault("image", tmp_path)


def test_a_data_topics_segment_is_named(tmp_path: Path) -> None:
    assert "data topic" in fault("image", data_topic_segment(tmp_path))


def test_a_producer_snapshot_is_named() -> None:
    assert "producer snapshot" in fault("image", DIRECTORY / "00000000000000005737.snapshot")


def test_a_delta_table_of_another_schema_is_named(tmp_path: Path) -> None:
    import pyarrow as pa
    from deltalake import write_deltalake

    write_deltalake(tmp_path / "table", pa.table({"a": [1]}))
    assert "is a Delta table, but no lake" in fault("image", tmp_path / "table")
    lake = tmp_path / "lake"
    write_deltalake(lake / "log", pa.table({"a": [1]}))
    before = tree_of(tmp_path)
    assert str(lake) in fault("image", lake)
    fault("import", DIRECTORY, lake)
    assert tree_of(tmp_path) == before


def test_an_offset_outside_the_log_is_named() -> None:
    assert "5737 is past the end" in fault("image", DIRECTORY, "--at-offset", 5737)
    assert "5736" in fault("log", DIRECTORY, "--from", 5737)
    assert "9999" in fault("diff", DIRECTORY, 5, 9999)
    assert "after the time asked for" in fault("image", DIRECTORY, "--at-time", "2020-01-01")


def test_an_offset_before_the_first_image_is_named_and_the_log_still_works(tmp_path: Path) -> None:
    shutil.copytree(DIRECTORY, tmp_path / "__cluster_metadata-0")
    cut = tmp_path / "__cluster_metadata-0"
    for base in (0, 2027):
        (cut / f"{base:020d}.log").unlink()
    (cut / "00000000000000003038-0000000002.checkpoint").unlink()
    assert "4592" in fault("image", cut, "--at-offset", 4000)
    assert run("log", cut, "--from", 3532, "--to", 3540).stdout.count("\n") == 9
    assert "3532" in fault("log", cut, "--from", 10)


@pytest.mark.parametrize("hostile", ["../escaped", "/absolute", "link"])
def test_a_malicious_archive_is_refused_and_writes_nothing(tmp_path: Path, hostile: str) -> None:
    segment = (DIRECTORY / "00000000000000000000.log").read_bytes()
    path = tmp_path / "bundle.tar"
    with tarfile.open(path, "w") as archive:
        member = tarfile.TarInfo(f"{hostile}/__cluster_metadata-0/00000000000000000000.log")
        member.size = len(segment)
        if hostile == "link":
            member = tarfile.TarInfo("__cluster_metadata-0/00000000000000000000.log")
            member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(member, io.BytesIO(segment))
    before = sorted(tmp_path.rglob("*"))
    fault("image", path)
    assert sorted(tmp_path.rglob("*")) == before


def test_an_archive_with_two_logs_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "bundle.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for node in ("one", "two"):
            archive.write(
                DIRECTORY / "00000000000000000000.log", f"{node}/__cluster_metadata-0/00000000000000000000.log"
            )
    sentence = fault("image", path)
    assert "one" in sentence
    assert "two" in sentence


def test_another_clusters_log_is_refused_and_the_lake_stays_as_it_was(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    run("import", TORN, lake)
    before = tree_of(lake)
    assert "6Ptohw4ASx6dgm3MBfsbpQ" in fault("import", DIRECTORY, lake)
    assert tree_of(lake) == before


def test_a_refused_import_leaves_no_new_lake(tmp_path: Path) -> None:
    fault("import", tmp_path / "nowhere", tmp_path / "lake")
    assert not (tmp_path / "lake").exists()


def test_a_metadata_version_that_is_too_old_is_named_and_the_records_can_be_listed() -> None:
    assert "3.3-IV3" in fault("image", LEGACY)
    assert run("log", LEGACY).stdout.count("\n") == 478


def test_a_cluster_id_that_contradicts_the_source_is_refused() -> None:
    assert "VXUoBgBGTaWWfCM4Toybuw" in fault("image", DIRECTORY, "--cluster-id", "another", code=2)


def test_a_record_that_cannot_be_replayed_stops_with_its_offset_or_is_skipped(tmp_path: Path) -> None:
    log = unreplayable_log(tmp_path)
    assert "offset 2" in fault("image", log)
    suggest_lenient = ". --at-offset 1 shows the state before it, and --lenient goes on without it."
    for command in (["image", log], ["metrics", log], ["export", log, tmp_path / "out"]):
        assert fault(*command).endswith(suggest_lenient)
    assert run("image", log, "--at-offset", 1).stdout
    assert fault("local-changes", log, "--broker", 1, "--from", -1).endswith(". --lenient goes on without it.")
    for command in (["image", log], ["diff", log, 1, 3], ["local-changes", log, "--broker", 1, "--from", -1]):
        lenient = run(*command, "--lenient")
        assert "warning: 1 record skipped" in lenient.stderr
        assert "offset 2" in lenient.stderr
        assert lenient.stdout


def test_a_record_that_cannot_be_decoded_names_the_way_on_and_a_broken_snapshot_does_not(tmp_path: Path) -> None:
    undecodable = attrs.evolve(batch_of(1, r.NoOpRecord()), values=(b"\x01",))
    log = directory_of(
        tmp_path, [batch_of(0, r.FeatureLevelRecord(name="metadata.version", feature_level=19)), undecodable]
    )
    assert fault("image", log).endswith(". --at-offset 0 shows the state before it, and --lenient goes on without it.")
    snapshot = tmp_path / "00000000000000000002-0000000001.checkpoint"
    content = bytearray((DIRECTORY / "00000000000000004593-0000000002.checkpoint").read_bytes())
    content[400] ^= 1
    snapshot.write_bytes(content)
    assert "--lenient" not in fault("image", snapshot)


def test_an_image_without_a_record_says_that_it_has_diverged(tmp_path: Path) -> None:
    log = unreplayable_log(tmp_path)
    form = json.loads(run("image", log, "--lenient", "--json").stdout)
    assert [(record["offset"], record["type"]) for record in form["skippedRecords"]] == [(2, "PARTITION_CHANGE_RECORD")]
    assert "diverged" in run("image", log, "--lenient").stdout
    assert "skippedRecords" not in json.loads(run("image", DIRECTORY, "--lenient", "--json").stdout)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["nope"], "nope"),
        (["image"], "SOURCE"),
        (["image", DIRECTORY, "--foo"], "--foo"),
        (["image", DIRECTORY, "--at-offset", "x"], "'x' is neither an offset nor a time"),
        (["image", DIRECTORY, "--at-offset", "-1"], "-1 is not an offset"),
        (["image", DIRECTORY, "--at-offset", 1, "--at-time", "2026-01-01"], "not both"),
        (["image", DIRECTORY, "--at-time", "soon"], "is not a time"),
        (["image", DIRECTORY, "--at-time", "9" * 30], "is not a time"),
        (["image", DIRECTORY, "--part", "nope"], "nope"),
        (["image", DIRECTORY, "--at-offset", 2**63], "64 bits"),
        (["image", ""], "it is empty"),
        (["import", DIRECTORY, ""], "it is empty"),
        (["import", DIRECTORY, "gs://bucket/lake"], "a scheme that is not known here"),
        (["image", DIRECTORY, "--broker", -1], "-1 is not a broker's id"),
        (["replay", DIRECTORY, "--broker", 2**31], "is not a broker's id"),
        (["local-changes", DIRECTORY, "--broker", "one", "--from", 1], "'one' is not a broker's id"),
        (["diff", DIRECTORY, 1], "N and M"),
        (["diff", DIRECTORY, -2, 1], "-2 is not an offset"),
        (["local-changes", DIRECTORY, "--from", 1], "--broker"),
        (["local-changes", DIRECTORY, "--broker", 1], "--from"),
        (["local-changes", DIRECTORY, "--broker", 1, "--from", 9, "--to", 3], "backwards"),
        (["log", DIRECTORY, "--from", 9, "--to", 3], "backwards"),
        (["log", DIRECTORY, "--type", "topik"], "did you mean TOPIC_RECORD"),
        (["log", DIRECTORY, "--type", "qqqqqq"], "LEADER_CHANGE"),
        (["spark", "replay", "lake", "--trigger", "never"], "never"),
    ],
    ids=lambda value: " ".join(str(word)[-20:] for word in value) if isinstance(value, list) else "",
)
def test_a_wrong_command_line_exits_with_2_and_says_what_is_wrong(words: list[object], named: str) -> None:
    result = run(*words, code=2)
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert named in result.stderr


@pytest.mark.parametrize(
    "group", ["spark", "topics", "brokers", "configs", "acls", "quotas", "features", "scram", "tokens"]
)
def test_a_group_without_a_command_shows_its_help(group: str) -> None:
    result = run(group, code=2)
    assert result.stdout == ""
    assert result.stderr.startswith(f"Usage: kraftlake {group} [OPTIONS] COMMAND")
    assert result.stderr == run(group, "-h").stdout == run(group, "--help").stdout


def test_a_fault_of_our_own_is_one_sentence_that_asks_for_a_report(monkeypatch: pytest.MonkeyPatch) -> None:
    import kraftlake

    def broken(*_: object, **__: object) -> None:
        raise KeyError("surprise\x1b[2J")

    monkeypatch.setattr(kraftlake, "open", broken, raising=False)
    result = run("image", DIRECTORY, code=1, KRAFTLAKE_TRACEBACK="")
    assert result.stderr.count("\n") == 1
    assert "report" in result.stderr
    assert "surprise" in result.stderr
    assert "\x1b" not in result.stderr


def test_the_traceback_of_such_a_fault_is_shown_on_demand(monkeypatch: pytest.MonkeyPatch) -> None:
    import kraftlake

    def broken(*_: object, **__: object) -> None:
        raise KeyError("surprise")

    monkeypatch.setattr(kraftlake, "open", broken, raising=False)
    monkeypatch.setenv("KRAFTLAKE_TRACEBACK", "1")
    with pytest.raises(KeyError):
        application.main(["image", str(DIRECTORY)])


@pytest.mark.parametrize("folder", ["no-permission", "a-file/below"])
def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, folder: str) -> None:
    (tmp_path / "a-file").touch()
    target = tmp_path / folder if folder.startswith("a-file") else Path("/proc/kraftlake-lake")
    fault("import", DIRECTORY, target)
    assert (tmp_path / "a-file").read_bytes() == b""


def test_a_reader_that_goes_away_ends_the_command_silently() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "kraftlake.cli", "log", str(DIRECTORY)],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as command:  # fmt: skip
        assert command.stdout is not None
        assert command.stderr is not None
        assert command.stdout.readline()
        command.stdout.close()
        assert command.wait(timeout=60) == 141
        assert command.stderr.read() == ""


@pytest.mark.parametrize("command", [["image"], ["metrics"], ["diff", 402, 458]], ids=lambda c: c[0])
def test_a_picture_whose_reader_went_away_ends_like_every_other_answer(command: list[object]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as gone:
        done = subprocess.run(
            [sys.executable, "-m", "kraftlake.cli", str(command[0]), str(DIRECTORY), *map(str, command[1:])],
            cwd=ROOT, stdout=gone, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (141, "")


def test_an_interrupt_ends_the_command_silently() -> None:
    # The signal comes from within, so that it hits the command at work and not its start.
    program = (
        "import os, signal, time, kraftlake\n"
        "from kraftlake.cli.application import application\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell has its jobs in the background ignore it
        "kraftlake.open = lambda *_, **__: (os.kill(os.getpid(), signal.SIGINT), time.sleep(9))\n"
        f"application.main(['image', {str(DIRECTORY)!r}])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (128 + signal.SIGINT, "", "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_request_to_end_leaves_nothing_half_written(number: signal.Signals, tmp_path: Path) -> None:
    # The signal comes from within, when the log has begun to be written.
    program = (
        "import os, signal, kraftlake.generate.lake as lake\n"
        "from kraftlake.cli.application import application\n"
        f"signal.signal({int(number)}, signal.SIG_DFL)\n"  # nohup, for one, has its children ignore SIGHUP
        "made = lake.MetadataLog.create\n"
        "def create(*words):\n"
        "    made(*words)\n"
        f"    os.kill(os.getpid(), {int(number)})\n"
        "lake.MetadataLog.create = create\n"
        f"application.main(['generate', {str(tmp_path / 'lake')!r}, '--records', '10'])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (128 + number, "", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("handler", "stops"), [("SIG_IGN", False), ("SIG_DFL", True)])
def test_a_command_that_waits_for_its_end_goes_on_after_a_hangup_under_nohup_alone(handler: str, stops: bool) -> None:
    program = (
        "import os, signal\n"
        "from kraftlake.cli.faults import stop_at_signals\n"
        f"signal.signal(signal.SIGHUP, signal.{handler})\n"
        "with stop_at_signals(normal=True) as stop:\n"
        "    os.kill(os.getpid(), signal.SIGHUP)\n"
        "    print(stop.wait(1))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{stops}\n", "")


def test_a_signal_is_heard_while_the_main_thread_holds_the_lock_of_what_it_waits_for_and_a_second_one_too() -> None:
    program = (
        "import os, signal, threading\n"
        "from kraftlake.cli.faults import stop_at_signals\n"
        "again = threading.Event()\n"
        "with stop_at_signals(normal=True, again=again) as stop:\n"
        "    with stop._cond:\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    print(stop.wait(9), again.wait(0.6))\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    print(again.wait(9))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "True False\nTrue\n", "")


def test_a_lack_of_memory_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_large(*_: object, **__: object) -> None:
        raise MemoryError("Unable to allocate 1.46 TiB")

    monkeypatch.setattr("kraftlake.open", too_large)
    assert fault("image", DIRECTORY) == "this takes more memory than there is: Unable to allocate 1.46 TiB"


@pytest.mark.parametrize("name", ["-", "/dev/null"])
def test_a_snapshot_is_written_to_a_regular_file_only(name: str) -> None:
    assert "is no regular file" in fault("export", DIRECTORY, name, "--force", code=2)
    assert not Path("-").exists()


def test_an_interrupt_while_the_command_is_still_being_imported_ends_it_silently() -> None:
    program = (
        "import importlib.abc, sys\n"
        "class Interrupting(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'kraftlake.cli.application':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "from kraftlake.cli import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (128 + signal.SIGINT, "", "")


def test_a_closed_stdout_is_reported_and_a_closed_stderr_hides_nothing_but_words() -> None:
    def run_closed(redirection: str, *words: object) -> subprocess.CompletedProcess[str]:
        line = f'"$@" {redirection}'
        command = ["sh", "-c", line, "sh", sys.executable, "-m", "kraftlake.cli", *map(str, words)]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    without_stdout = run_closed(">&-", "image", DIRECTORY)
    assert without_stdout.returncode == 1
    assert without_stdout.stderr == "error: stdout is closed, so the answer can't be written\n"
    without_stderr = run_closed("2>&-", "image", TORN, "--json")
    assert without_stderr.returncode == 0
    assert json.loads(without_stderr.stdout) == json.loads(run("image", TORN, "--json").stdout)
    assert run_closed("2>&-", "image", DIRECTORY / "nowhere").returncode == 1


@pytest.mark.parametrize(
    "command", [["image"], ["metrics"], ["local-changes", "--from", 3], ["replay", "--from", 5730]], ids=lambda c: c[0]
)
def test_a_broker_that_is_not_registered_is_doubted(command: list[object]) -> None:
    doubted = run(*command, DIRECTORY, "--broker", 99, code=1 if command == ["image"] else 0)
    assert "broker 99 is not registered" in doubted.stderr
    assert "registered brokers: 1, 2, 3, 4" in doubted.stderr
    assert "registered" not in run(*command, DIRECTORY, "--broker", 3).stderr


def test_a_listener_that_no_broker_has_is_doubted() -> None:
    words = ["replay", DIRECTORY, "--broker", 1, "--to", 30]
    doubted = run(*words, "--listener", "INTERNAL").stderr
    assert "no broker has a listener INTERNAL at offset 30, so nothing is fetched; there are PLAINTEXT" in doubted
    assert "listener" not in run(*words, "--listener", "PLAINTEXT").stderr


def test_a_full_disk_under_stdout_is_reported() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "kraftlake.cli", "log", str(DIRECTORY)],
            cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False, env={**os.environ},
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1


def test_a_hostile_path_is_made_visible() -> None:
    result = run("image", "no\x1b[2J\nwhere", code=1)
    assert result.stderr.count("\n") == 1
    assert "\x1b" not in result.stderr
    assert r"no\x1b[2J\nwhere" in result.stderr


def test_the_command_works_as_a_process_and_from_a_pipe(tmp_path: Path) -> None:
    done = process("image", hostile_log(tmp_path), "--json")
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout.count("\n") == 1
    assert process("image", tmp_path / "nowhere").returncode == 1
    assert process("image").returncode == 2


def test_an_output_that_only_takes_ascii_gets_escapes() -> None:
    done = process("image", DIRECTORY, "--part", "brokers", PYTHONIOENCODING="ascii", PYTHONUTF8="0", LC_ALL="C")
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout.isascii()
