"""`--schemas`: records of a fork are shown with their fields, and every other answer is as without them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import attrs
import pytest

import kraftlake
from kraftlake.records.foreign.registered import FOREIGN_RECORDS
from kraftlake.records.metadata_records import NoOpRecord
from tests.cli.made_logs import batch_of, directory_of
from tests.cli.running import DIRECTORY, fault, process, run, run_json
from tests.foreign_logs import AUTOMQ, SECRET, foreign_log, plain_log, value_of, with_foreign_snapshot

SCHEMAS = ("--schemas", AUTOMQ)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The log with foreign records, and the one with no-ops in their places."""
    return foreign_log(tmp_path_factory.mktemp("with")), plain_log(tmp_path_factory.mktemp("without"))


@pytest.fixture(scope="module")
def lakes(logs: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Both as lakes with their tables."""
    folder = tmp_path_factory.mktemp("lakes")
    for name, log in zip(("foreign", "plain"), logs, strict=True):
        options = SCHEMAS if name == "foreign" else ()
        run("import", log, folder / name, *options)
        run("tables", folder / name, "events", "partition_history", *options)
    return folder / "foreign", folder / "plain"


ANSWERS = (
    ("image",), ("events",), ("doctor",), ("metrics",), ("diff", 100, 3000), ("blame", "broker/1"),
    ("what-if", "--lose-broker", 1), ("local-changes", "--broker", 1, "--from", 100), ("replay", "--broker", 1),
    ("ls", "/"),
)  # fmt: skip


@pytest.mark.parametrize("words", ANSWERS, ids=lambda words: words[0])
def test_an_answer_is_the_same_with_foreign_records_and_without(
    words: tuple[object, ...], logs: tuple[Path, Path]
) -> None:
    name, *rest = words
    code = 3 if name == "doctor" else 0
    with_them = run(name, logs[0], *rest, *SCHEMAS, "--json", code=code)
    without = run(name, logs[1], *rest, "--json", code=code)
    assert with_them.stdout.replace(str(logs[0]), "") == without.stdout.replace(str(logs[1]), "")
    assert with_them.stdout


def test_a_lake_and_its_tables_answer_the_same(lakes: tuple[Path, Path]) -> None:
    for name in ("image", "events", "metrics"):
        shown = [run(name, lake, *options, "--json").stdout for lake, options in zip(lakes, (SCHEMAS, ()), strict=True)]
        assert shown[0] == shown[1]
    assert run_json("verify", lakes[0], *SCHEMAS)["sound"] is True
    assert run_json("log", lakes[0], *SCHEMAS, "--type", "range", "--limit", 1)["data"]["endOffset"] == 9


def test_a_snapshot_with_foreign_records_gives_the_same_image(tmp_path: Path) -> None:
    log = with_foreign_snapshot(tmp_path / "log")
    snapshot = max(log.glob("*.checkpoint"))
    assert run("image", snapshot, *SCHEMAS, "--json").stdout == run("image", DIRECTORY / snapshot.name, "--json").stdout
    assert "is not known to this release" in fault("image", snapshot)
    assert run_json("verify", log, *SCHEMAS)["sound"] is True
    run("import", log, tmp_path / "lake", *SCHEMAS)
    for at in (4592, 5000):
        shown = run("image", tmp_path / "lake", *SCHEMAS, "--at", at, "--json").stdout
        assert shown == run("image", DIRECTORY, "--at", at, "--json").stdout


def test_records_are_shown_with_their_fields_and_without_their_texts(logs: tuple[Path, Path]) -> None:
    text = run("log", logs[0], *SCHEMAS, "--no-noop", "--to", 30).stdout
    assert 'S3_OBJECT            {"objectId": 7, "objectSize": 1099511627776, "objectState": 2' in text
    lines = [json.loads(line) for line in run("log", logs[0], *SCHEMAS, "--to", 30, "--json").stdout.splitlines()]
    shown = {line["type"]: line["data"] for line in lines}
    assert shown["KVRECORD"] == {"keyValues": [{"key": "(redacted)", "value": "(redacted)", "namespace": None}]}
    assert shown["REMOVE_KVRECORD"] == {"keys": ["(redacted)"]}
    assert shown["NODE_WALMETADATA_RECORD"] == {"nodeId": 1, "nodeEpoch": 4, "failoverMode": True}
    assert SECRET not in text
    secrets = run("log", logs[0], *SCHEMAS, "--type", "KVRecord", "--limit", 1, "--json", "--show-secrets").stdout
    assert f'"key":"{SECRET}-1"' in secrets


def test_it_is_said_that_they_have_no_effect(logs: tuple[Path, Path]) -> None:
    said = run("image", logs[0], *SCHEMAS).stderr
    assert "note: records of a type that --schemas declares have no effect: KVRECORD, NODE_WALMETADATA_RECORD, " in said
    assert not run("image", logs[1], *SCHEMAS).stderr


def test_without_schemas_they_are_unknown_as_ever(logs: tuple[Path, Path]) -> None:
    run("image", logs[0], *SCHEMAS)
    assert not FOREIGN_RECORDS
    said = fault("image", logs[0])
    assert "UNKNOWN: record type 509 in version 1 is not known to this release" in said
    assert said.endswith("--lenient goes on without it; --schemas declares a fork's types.")
    assert run_json("log", logs[0], "--type", "unknown", "--limit", 1)["data"] == "(redacted)"
    assert "is not a record type" in fault("log", logs[0], "--type", "kvrecord", code=2)


def test_a_version_that_a_schema_lacks_is_refused_with_the_versions_it_has(tmp_path: Path) -> None:
    payload = value_of("KVRecord", 1, {"KeyValues": []})
    batch = attrs.evolve(batch_of(0, NoOpRecord()), values=(payload[:3] + b"\x02" + payload[4:],))
    log = directory_of(tmp_path, [batch])
    assert fault("image", log, *SCHEMAS).startswith(
        "offset 0, UNKNOWN: record type 516 in version 2 is not known to this release; its schema, KVRecord, has the "
        "versions 0 to 1."
    )


def test_a_snapshot_says_that_it_lacks_what_they_say(logs: tuple[Path, Path], tmp_path: Path) -> None:
    target = tmp_path / "00000000000000000100-0000000001.checkpoint"
    said = run("export", logs[0], target, "--at-offset", 99, "--allow-loss", *SCHEMAS).stderr
    assert f"{target} has no records of the types that --schemas declares" in said


def test_a_bundle_keeps_their_numbers_and_none_of_their_texts(logs: tuple[Path, Path], tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.tar"
    run("bundle", logs[0], "--pseudonyms", tmp_path / "key", "-o", bundle, "--yes", *SCHEMAS)
    with tarfile.open(bundle) as archive:
        contents = b"".join(
            opened.read() for member in archive.getmembers() if (opened := archive.extractfile(member)) is not None
        )
    assert SECRET.encode() not in contents
    assert len(contents) > 100_000
    shown = run("log", bundle, *SCHEMAS, "--type", "s3_object", "--limit", 1, "--json").stdout
    assert shown == run("log", logs[0], *SCHEMAS, "--type", "s3_object", "--limit", 1, "--json").stdout
    assert run_json("image", bundle, *SCHEMAS)["offset"] == run_json("image", logs[0], *SCHEMAS)["offset"]


def test_python_takes_the_folder_too(logs: tuple[Path, Path]) -> None:
    program = (
        "import sys, kraftlake\n"
        "source = kraftlake.open(sys.argv[1], schemas=sys.argv[2])\n"
        "print(next(source.records(types=['RANGE_RECORD'])).message.end_offset, source.image().offset)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, logs[0], AUTOMQ], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["9", str(kraftlake.open(logs[1]).last_image_offset)]


@pytest.mark.parametrize("command", [("image",), ("log",), ("import", "lake")], ids=lambda words: words[0])
def test_schemas_that_contradict_kafka_are_refused_before_anything_is_written(
    command: tuple[str, ...], logs: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "schemas"
    shutil.copytree(AUTOMQ, folder)
    changed = (folder / "KVRecord.json").read_text().replace('"apiKey": 516', '"apiKey": 2')
    (folder / "KVRecord.json").write_text(changed)
    monkeypatch.chdir(tmp_path)
    name, *rest = command
    said = fault(name, logs[0], *rest, "--schemas", folder, code=2)
    assert said == (
        f"{folder}/KVRecord.json: KVRecord is of the apiKey 2, and by Kafka 4.4 TopicRecord is of the apiKey 2: a name "
        "and a number belong together once."
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["schemas"]


def test_a_folder_that_is_not_there_is_one_sentence() -> None:
    done = process("image", "x", "--schemas", "/nowhere")
    assert done.returncode != 0
    assert done.stderr == (
        "error: /nowhere is no folder: name the one that has the JSON files of Kafka's message format.\n"
    )
