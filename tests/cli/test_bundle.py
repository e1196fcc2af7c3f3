"""`kraftlake bundle` and `kraftlake translate`, as a person uses them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from kraftlake.cli.application import application
from tests.cli.running import DIRECTORY, ROOT, TORN, fault, run, run_json


def test_a_bundle_is_listed_written_and_asked_and_its_answer_translated(tmp_path: Path) -> None:
    bundle, key = tmp_path / "handover.tar.gz", tmp_path / "ours.key"
    listed = run("bundle", DIRECTORY, "--pseudonyms", key).stdout
    assert "offsets 0 to 5736 of cluster VXUoBgBGTaWWfCM4Toybuw, 2 snapshots" in listed
    assert "replaced" in listed
    assert "blanked" in listed
    assert [*tmp_path.iterdir()] == []
    written = run("bundle", DIRECTORY, "--pseudonyms", key, "-o", bundle, "--yes").stdout
    assert written.startswith(listed)
    assert f"key         {key}, to keep: it has all names" in written
    answer = run("blame", bundle, "topic/topic-x/partition/0", code=1).stderr
    assert "topic-x" in answer
    answer = run("image", bundle, "--topic", "topic-*").stdout
    assert "elr-a" not in answer
    back = CliRunner().invoke(application, ["translate", str(key)], input=answer).stdout
    assert "topic-" not in back
    path = tmp_path / "answer.json"
    path.write_text(json.dumps(run_json("image", bundle, "--part", "topics")))
    topics = json.loads(run("translate", key, path).stdout)["topics"]
    assert topics == run_json("image", DIRECTORY, "--part", "topics")["topics"]


def test_the_form_as_json(tmp_path: Path) -> None:
    form = run_json("bundle", DIRECTORY)
    assert [*form] == [
        "source", "clusterId", "startOffset", "endOffset", "records", "snapshots", "secrets", "names", "pseudonyms",
        "unknownRecords", "unknownTaggedFields", "faults",
    ]  # fmt: skip
    assert form["records"]["TOPIC_RECORD"] == 68
    bundle = tmp_path / "b.tar.gz"
    written = run_json("bundle", DIRECTORY, "-o", bundle, "--yes")
    assert written.items() > (form | {"file": str(bundle), "sizeInBytes": bundle.stat().st_size}).items()
    assert written["keyFile"] is None


def test_a_cut_end_is_shown_as_a_fault() -> None:
    assert "torn at position" in run("bundle", TORN).stdout


def test_bad_input_is_one_sentence_and_writes_nothing(tmp_path: Path) -> None:
    key, taken = tmp_path / "ours.key", tmp_path / "taken"
    taken.write_text("mine")
    bundle = tmp_path / "b.tar.gz"
    assert fault("bundle", DIRECTORY, "--pseudonyms", taken, "--file", bundle, "--yes").startswith(
        f"{taken} exists already: give --extend-key"
    )
    assert "is no key file" in fault("bundle", DIRECTORY, "--pseudonyms", taken, "--extend-key")
    assert "ours.key can't be read" in fault("bundle", DIRECTORY, "--pseudonyms", key, "--extend-key")
    assert "give --force" in fault("bundle", DIRECTORY, "-o", taken, "--yes")
    assert "give --yes" in fault("bundle", DIRECTORY, "-o", bundle, code=2)
    assert "give --pseudonyms KEY" in fault("bundle", DIRECTORY, "--extend-key", code=2)
    assert "does not exist" in fault("bundle", DIRECTORY, "-o", tmp_path / "no" / "b.tar.gz", "--yes")
    assert "can't be read" in run("translate", key, code=1).stderr
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]
    assert taken.read_text() == "mine"


def test_a_disk_that_refuses_leaves_nothing_of_a_bundle(tmp_path: Path) -> None:
    """No file may have more than 20,000 bytes: the log's is larger."""
    bundle = tmp_path / "b.tar.gz"
    command = ["prlimit", "--fsize=20000", sys.executable, "-m", "kraftlake.cli", "bundle", str(DIRECTORY)]
    done = subprocess.run([*command, "-o", str(bundle), "--yes"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == f"error: {bundle} can't be written: File too large.\n"
    assert [*tmp_path.iterdir()] == []
