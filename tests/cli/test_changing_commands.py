"""The commands that write: import, export, spark replay."""

from __future__ import annotations

import json
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path

import pytest

from kraftlake.protocol.error_code import ErrorCode
from tests.cli.made_logs import hostile_log
from tests.cli.running import DIRECTORY, ROOT, SAMPLE, TORN, fault, run, run_image, run_json, unzipped_json
from tests.protocol.fake_nodes import FakeController, serving
from tests.protocol.observer.fake_quorum import FakeQuorum
from tests.protocol.observer.model_quorum import ModelQuorum

CLUSTER_ID = "VXUoBgBGTaWWfCM4Toybuw"
EXPECTED = SAMPLE / "expected"


def expected_image(offset: int) -> object:
    return unzipped_json(EXPECTED / f"image-{offset}.json.gz")


def test_an_import_says_what_it_appended_and_how_far_it_is_committed(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    printed = run("import", DIRECTORY, lake).stdout
    assert "imported  5,737 records in 1,106 batches, offsets 0 to 5736, 2 snapshots\n" in printed
    assert f"{lake} (new): offsets 0 to 5736 of cluster VXUoBgBGTaWWfCM4Toybuw\n" in printed
    assert "committed offsets below 4593; the last 1,144 records may not be: import again after" in printed
    assert stat.S_IMODE(lake.stat().st_mode) == 0o700
    again = run("import", DIRECTORY, lake).stdout
    assert "nothing: the lake is already up to date" in again
    assert "(new)" not in again


def test_an_import_in_json_says_the_same(tmp_path: Path) -> None:
    first = run_json("import", DIRECTORY, tmp_path / "lake")
    assert (first["created"], first["records"], first["from"], first["to"]) == (True, 5737, 0, 5736)
    assert first["committed_to"] == 4593
    second = run_json("import", DIRECTORY, tmp_path / "lake")
    assert (second["created"], second["records"], second["alreadyThere"]) == (False, 0, 5737)


def test_a_lake_is_held_to_the_link_that_its_import_printed(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    printed = run("import", DIRECTORY, lake).stdout
    link = run_json("import", DIRECTORY, lake)["chain"]
    assert link.startswith("5736:")
    assert f"chain     {link}, for `kraftlake verify --at-least` later\n" in printed
    sound = run("verify", lake, "--at-least", link).stdout
    assert f"ends with {link}" in sound
    assert sound.endswith("\nsound\n")
    short = run("verify", lake, "--at-least", "5737", code=1).stdout
    assert "the log once held offset 5737" in short
    assert "have changed: their hash is" in run("verify", lake, "--at-least", f"5736:{0:016x}", code=1).stdout
    assert "is not OFFSET or OFFSET:HASH" in run("verify", lake, "--at-least", "x", code=2).stderr


def test_an_import_brings_a_lake_up_to_date(tmp_path: Path) -> None:
    directory = tmp_path / "__cluster_metadata-0"
    directory.mkdir()
    for base in (0, 2027):
        shutil.copy(DIRECTORY / f"{base:020d}.log", directory)
    run("import", directory, tmp_path / "lake")
    printed = run("import", DIRECTORY, tmp_path / "lake").stdout
    assert "offsets 3532 to 5736" in printed
    assert "3,532 records already there" in printed
    assert run_image(tmp_path / "lake") == expected_image(5736)


def test_an_import_of_a_torn_log_warns_and_takes_what_is_whole(tmp_path: Path) -> None:
    result = run("import", TORN, tmp_path / "lake")
    assert "warning: 00000000000000002265.log: torn at position 61042, offset 3467" in result.stderr
    assert "everything before it is in the lake" in result.stderr
    assert result.stderr.count("warning") == 1
    assert "offsets 0 to 3466" in result.stdout


def test_a_lake_of_an_unknown_cluster_gets_the_id_that_is_given(tmp_path: Path) -> None:
    log = hostile_log(tmp_path / "log")
    assert "a cluster of unknown id" in run("import", log, tmp_path / "one").stdout
    assert "of cluster abc" in run("import", log, tmp_path / "two", "--cluster-id", "abc").stdout
    assert run("image", tmp_path / "two").stdout.startswith("cluster abc")


@pytest.mark.parametrize("kind", ["lake", "tar.gz", "log directory", "snapshot", "segment"])
def test_every_kind_of_source_gives_the_same_answers(tmp_path: Path, kind: str) -> None:
    source: Path = tmp_path / "source"
    if kind == "lake":
        run("import", DIRECTORY, source)
    elif kind == "tar.gz":
        with tarfile.open(source, "w:gz") as archive:
            archive.add(DIRECTORY.parent, arcname="node-1")
    elif kind == "log directory":
        source = DIRECTORY.parent
    elif kind == "snapshot":
        source = DIRECTORY / "00000000000000004593-0000000002.checkpoint"
    else:
        source = DIRECTORY / "00000000000000000000.log"
    offset = 1059 if kind == "segment" else 4592
    assert run_image(source, "--at-offset", offset) == expected_image(offset)
    run("verify", source)
    assert run("log", source).stdout
    if kind == "snapshot":
        assert "snapshot" in fault("local-changes", source, "--broker", 1, "--from", 1)
        return
    words = ["--broker", 4, "--from", 254, "--to", 867]
    assert run_json("local-changes", source, *words) == run_json("local-changes", DIRECTORY, *words)
    found, expected = run_json("diff", source, 3, 1059), run_json("diff", DIRECTORY, 3, 1059)
    assert found == expected | {"clusterId": found["clusterId"]}


def test_an_exported_snapshot_is_the_image(tmp_path: Path) -> None:
    out = tmp_path / "out.checkpoint"
    printed = run("export", DIRECTORY, out, "--at-offset", 4592).stdout
    assert "the image at offset 4592" in printed
    assert "00000000000000004593-0000000002.checkpoint" in printed
    named = tmp_path / "00000000000000004593-0000000002.checkpoint"
    run("export", DIRECTORY, named, "--at-offset", 4592)
    assert named.stat().st_size == out.stat().st_size
    assert run_image(named) == expected_image(4592)


def test_an_export_refuses_to_overwrite_unless_forced(tmp_path: Path) -> None:
    out = tmp_path / "out.checkpoint"
    out.write_text("mine")
    assert "--force" in fault("export", DIRECTORY, out)
    assert out.read_text() == "mine"
    report = run_json("export", DIRECTORY, out, "--force")
    assert report["offset"] == 5736
    assert out.stat().st_size == report["sizeInBytes"]
    assert "is a folder" in fault("export", DIRECTORY, tmp_path, code=2)
    assert "does not exist" in fault("export", DIRECTORY, tmp_path / "no" / "out.checkpoint")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.checkpoint"]


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_spark_replays_a_lake_into_the_same_image(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    run("import", DIRECTORY, lake)
    result = run("spark", "replay", lake, "--json", "--show-secrets")
    form = json.loads(result.stdout)
    origin = {key: form["image"].pop(key) for key in ("clusterId", "timestamp")}
    assert origin == {"clusterId": "VXUoBgBGTaWWfCM4Toybuw", "timestamp": 1795247433079}
    assert form["image"] == expected_image(5736)
    assert (form["from"], form["offset"]) == (-1, 5736)
    again = run("spark", "replay", lake).stdout
    assert "replayed  nothing: all was replayed before" in again
    assert "cluster VXUoBgBGTaWWfCM4Toybuw" in again


def test_spark_replay_of_what_is_no_lake_starts_no_jvm(tmp_path: Path) -> None:
    assert "nowhere" in fault("spark", "replay", tmp_path / "nowhere")
    fault("spark", "replay", DIRECTORY)


def test_a_renamed_snapshot_has_an_image_and_a_warning_that_its_offset_is_unknown(tmp_path: Path) -> None:
    out = tmp_path / "some-name"
    run("export", DIRECTORY, out, "--at-offset", 458)
    result = run("image", out, "--json")
    assert "warning: some-name is not named END-EPOCH.checkpoint" in result.stderr
    assert json.loads(result.stdout)["offset"] == -1
    assert "at  an unknown offset, 2026-11-21 07:46:16.256Z" in run("image", out).stdout


def test_following_a_directory_takes_what_is_written_until_it_is_interrupted(tmp_path: Path) -> None:
    directory = tmp_path / "__cluster_metadata-0"
    directory.mkdir()
    segments = sorted(DIRECTORY.glob("*.log"))
    shutil.copy(segments[0], directory)
    words = ["import", "--follow", directory, tmp_path / "lake", "--include-uncommitted", "--poll", "0.01", "--json"]
    with subprocess.Popen(
        [sys.executable, "-m", "kraftlake.cli", *map(str, words)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as follower:
        assert follower.stdout is not None
        end = json.loads(follower.stdout.readline())["endOffset"]
        for segment in segments[1:]:
            shutil.copy(segment, tmp_path / "segment")
            (tmp_path / "segment").rename(directory / segment.name)
            while end <= int(segment.stem):
                line = json.loads(follower.stdout.readline())
                assert line["from"] == end
                end = line["endOffset"]
        follower.send_signal(signal.SIGINT)
        assert follower.wait() == 130
    assert run_image(tmp_path / "lake") == expected_image(5736)


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_a_new_lake_of_a_long_log_is_given_up_at_a_signal(tmp_path: Path, end: signal.Signals) -> None:
    model = ModelQuorum(epoch=1)
    for _ in range(4_000):
        model.append()
    model.high_watermark = 4_000
    quorum, begun = FakeQuorum(model), threading.Event()

    def slowly(data: bytes) -> bytes:
        if quorum.fetches > 20:
            begun.set()
        time.sleep(0.02)
        return data

    quorum.spoil = slowly
    with quorum.serving() as addresses:
        words = ["-m", "kraftlake.cli", "import", "--follow", str(addresses[0]), str(tmp_path / "lake")]
        with subprocess.Popen([sys.executable, *words], cwd=ROOT) as follower:
            try:
                assert begun.wait(60)
                follower.send_signal(end)
                assert follower.wait(20) == 128 + end
            finally:
                follower.kill()
    assert not (tmp_path / "lake").exists()


def test_following_says_what_it_takes_and_what_waits(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "kraftlake.cli", "import", "--follow", str(DIRECTORY), str(tmp_path / "lake")],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    line = process.stdout.readline()
    process.terminate()
    _, errors = process.communicate()
    assert process.returncode == 143
    assert "offsets 0 to 4592; 1,144 records not known to be committed yet" in line
    assert "only what the log itself shows to be committed is taken" in errors


def test_what_belongs_to_following_is_refused_without_it(tmp_path: Path) -> None:
    assert "--follow" in fault("import", DIRECTORY, tmp_path / "lake", "--include-uncommitted", code=2)
    assert "only the directory" in fault("import", "--follow", DIRECTORY / f"{0:020d}.log", tmp_path / "l", code=2)
    assert "warning" not in run("import", "--follow", tmp_path / "nothing", tmp_path / "l", code=1).stderr


def test_a_quorum_shows_a_follower_what_is_committed_and_its_absence_is_reported_once(tmp_path: Path) -> None:
    node = FakeController()
    node.cluster_id, node.leader_epoch, node.high_watermark = CLUSTER_ID, 2, 5000
    with serving(node) as address:
        words = ["import", "--follow", "--quorum", address, DIRECTORY, tmp_path / "lake", "--poll", "0.01", "--json"]
        follower = subprocess.Popen(
            [sys.executable, "-m", "kraftlake.cli", *map(str, words)],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        with follower:
            try:
                check_what_it_takes(follower, node)
            finally:
                follower.send_signal(signal.SIGINT)
                follower.wait(timeout=60)
        assert follower.returncode == 130
    assert run_image(tmp_path / "lake") == expected_image(5736)


def check_what_it_takes(follower: subprocess.Popen[str], node: FakeController) -> None:
    assert follower.stdout is not None
    assert follower.stderr is not None
    end = json.loads(follower.stdout.readline())["endOffset"]
    assert 4900 < end <= 5000
    node.shift = 1
    assert "the quorum can't be asked" in follower.stderr.readline()
    node.high_watermark, node.shift = 5100, 0
    assert "the quorum answers again" in follower.stderr.readline()
    line = json.loads(follower.stdout.readline())
    assert line["from"] == end
    assert 5000 < line["endOffset"] == line["committed_to"] <= 5100
    node.high_watermark = 10**6
    assert json.loads(follower.stdout.readline())["endOffset"] == 5737


def test_a_quorum_that_elects_a_leader_at_the_start_is_waited_for(tmp_path: Path) -> None:
    node = FakeController()
    node.cluster_id, node.leader_epoch, node.high_watermark = CLUSTER_ID, 2, 10**6
    node.quorum_error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    with serving(node) as address:
        words = ["import", "--follow", "--quorum", address, DIRECTORY, tmp_path / "lake", "--poll", "0.01", "--json"]
        with subprocess.Popen(
            [sys.executable, "-m", "kraftlake.cli", *map(str, words)],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as follower:  # fmt: skip
            assert follower.stdout is not None
            assert follower.stderr is not None
            try:
                assert "knows no leader" in follower.stderr.readline()
                assert json.loads(follower.stdout.readline())["endOffset"] == 4593, "what the log itself shows"
                node.quorum_error = ErrorCode.NONE
                assert "the quorum answers again" in follower.stderr.readline()
                assert json.loads(follower.stdout.readline())["endOffset"] == 5737
            finally:
                follower.send_signal(signal.SIGINT)
                assert follower.wait(timeout=60) == 130


def test_a_quorum_that_can_not_be_asked_at_the_start_is_one_sentence(tmp_path: Path) -> None:
    words = ["import", "--follow", DIRECTORY, tmp_path / "lake", "--quorum"]
    assert fault(*words, "127.0.0.1:1").endswith(
        "127.0.0.1:1 refuses connections: is a node running, with a listener on it?"
    )
    assert "is no HOST:PORT" in fault(*words, "localhost", code=2)
    config = tmp_path / "client.properties"
    secured = [*words, "127.0.0.1:1", "--command-config", config]
    assert fault(*secured, code=2) == f"{config} can't be read: No such file or directory."
    config.write_text("security.protocol=SASL_SSL\n")
    assert fault(*secured, code=2).startswith(f"{config}: sasl.mechanism is GSSAPI (Kerberos), Kafka's default; ")
    assert "--command-config is for HOST:PORT" in fault(*words[:-1], "--command-config", config, code=2)
    config.write_text("security.protocol=SSL\nssl.endpoint.identification.algorithm=\n")
    errors = run(*secured, code=1).stderr
    assert f"{config} turns the check of host names off" in errors
    assert "refuses connections" in errors
    assert "give one of them" in fault(*words, "localhost:1", "--include-uncommitted", code=2)
    with serving(FakeController()) as address:
        assert "is a node of cluster kraftlakeTestClusterAA, not of " in fault(*words, address)
    lone = tmp_path / "__cluster_metadata-0"
    lone.mkdir()
    shutil.copy(DIRECTORY / f"{0:020d}.log", lone)
    assert "give --cluster-id" in fault("import", "--follow", lone, tmp_path / "l", "--quorum", "localhost:1", code=2)
    assert not (tmp_path / "lake").exists()


def test_a_lake_can_be_named_by_a_file_uri(tmp_path: Path) -> None:
    uri = (tmp_path / "a lake").as_uri()
    run("import", DIRECTORY, uri)
    assert run_image(uri) == expected_image(5736)
