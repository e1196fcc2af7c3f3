"""What a command costs before it does anything: the modules that it imports."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import attrs
import pytest

from kraftlake.cli.application import application
from kraftlake.records import metadata_records as r
from kraftlake.replay.reading.chunks import BULK_FROM
from tests.cli.made_logs import TOPIC_ID, batch_of, directory_of
from tests.cli.running import DIRECTORY, ROOT, run

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
ENGINES = ("prompt_toolkit", "pyspark", "py4j", "pandas", "deltalake", "delta", "numpy")
CHECKPOINT = DIRECTORY / "00000000000000004593-0000000002.checkpoint"


def imported_by(*words: object) -> set[str]:
    """The top-level modules in a process after it has run a command line."""
    return imported_by_all(words)


def imported_by_all(*lines: Sequence[object]) -> set[str]:
    """The top-level modules in a process after it has run all of these command lines."""
    return {name.partition(".")[0] for name in modules_after(*lines)}


def modules_after(*lines: Sequence[object]) -> set[str]:
    """All modules in a process after it has run command lines."""
    program = (
        "import sys\n"
        "from kraftlake.cli.application import application\n"
        "for line in sys.argv[1:]:\n"
        "    try:\n"
        "        application.main(line.split('\\x1f'))\n"
        "    except SystemExit as end:\n"
        "        assert end.code == 0, (line, end.code)\n"
        "sys.stderr.write(' '.join(sys.modules))\n"
    )
    arguments = ["\x1f".join(map(str, words)) for words in lines]
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout
    return set(done.stderr.rpartition("\n")[2].split())


def test_a_command_imports_no_other_command() -> None:
    package = "kraftlake.cli.commands."
    commands = {name for name in modules_after(["image", "--help"]) if name.startswith(package)}
    assert commands == {f"{package}image"}


def test_each_command_is_named_as_it_is_listed() -> None:
    names = {name: command.name for name, command in application.commands.items()}
    assert names == {name: name for name in names}
    assert "doctor" in names


def test_help_imports_click_and_nothing_heavy() -> None:
    modules = imported_by_all(["--help"], ["image", "--help"], ["spark", "replay", "--help"], ["--version"])
    assert "click" in modules
    assert not modules & {*ENGINES, "pyarrow", "rich", "attrs", "attr", "structlog", "rpds", "google_crc32c"}


def test_kafkas_files_are_read_without_arrow_and_engines() -> None:
    modules = imported_by_all(
        ["image", DIRECTORY],
        ["image", CHECKPOINT, "--json"],
        ["log", DIRECTORY, "--to", 20],
        ["log", CHECKPOINT, "--json"],
        ["blame", DIRECTORY, "broker/3/fenced", "--all"],
        ["drift", DIRECTORY, CHECKPOINT, "--at", 4592],
        ["recreate", DIRECTORY, "--as", "commands"],
        ["undo", DIRECTORY, "--to", 4000],
        ["bisect", DIRECTORY, "broker(3).fenced"],
        ["ls", DIRECTORY, "/image"],
        ["cat", CHECKPOINT, "/image/topics/byName/elr-a/*"],
        ["shell", DIRECTORY, "-c", "find /", "-c", "diff 4592", "-c", "since /image/cluster/brokers"],
    )
    assert not modules & {*ENGINES, "pyarrow"}


def test_json_and_the_log_are_written_without_rich() -> None:
    assert "rich" not in imported_by_all(["image", DIRECTORY, "--json"], ["log", DIRECTORY, "--to", 20])


def test_no_command_but_spark_imports_an_engine() -> None:
    changes = ["local-changes", DIRECTORY, "--broker", 1, "--from", 3, "--to", 260]
    modules = imported_by_all(["diff", DIRECTORY, 3, 260], changes, ["verify", DIRECTORY])
    assert not modules & {*ENGINES}


@pytest.fixture(scope="module")
def large_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of more records than are replayed as objects."""
    level = r.FeatureLevelRecord(name="metadata.version", feature_level=30)
    partition = r.PartitionRecord(partition_id=0, topic_id=TOPIC_ID, replicas=(1, 2), isr=(1, 2), leader=1)
    messages = [level, r.TopicRecord(name="many", topic_id=TOPIC_ID)]
    messages += [attrs.evolve(partition, partition_id=number) for number in range(BULK_FROM)]
    batches = [batch_of(at, *messages[at : at + 1000]) for at in range(0, len(messages), 1000)]
    return directory_of(tmp_path_factory.mktemp("large"), batches)


@pytest.mark.parametrize("commands", [["image"], ["diff"], ["local-changes"]] if LONG else [["image", "local-changes"]])
def test_large_logs_are_replayed_in_bulk_with_numpy_alone(large_log: Path, commands: list[str]) -> None:
    words: dict[str, list[object]] = {
        "image": ["image", large_log, "--topic", "many"],
        "diff": ["diff", large_log, 1, BULK_FROM],
        "local-changes": ["local-changes", large_log, "--broker", 1, "--from", -1, "--json"],
    }
    assert imported_by_all(*(words[command] for command in commands)) & {*ENGINES} == {"numpy"}


def test_tables_are_made_without_spark_or_pandas(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    run("generate", lake, "--records", 12_000, "--topics", 10)
    assert not imported_by("tables", lake, "partition_history") & {"pyspark", "py4j", "delta", "deltalake", "pandas"}


def test_a_lake_is_made_and_read_without_spark(tmp_path: object) -> None:
    # pyarrow itself imports pandas where it is installed, as soon as an array is made of Python objects.
    engines = {"pyspark", "py4j", "deltalake", "delta"}
    assert not imported_by_all(["import", DIRECTORY, f"{tmp_path}/lake"], ["image", f"{tmp_path}/lake"]) & engines


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in Linux's /proc")
def test_numpy_starts_no_threads_in_a_command() -> None:
    program = (
        "import os, sys, kraftlake.cli\n"
        "sys.argv = ['kraftlake', '--version']\n"
        "try:\n"
        "    kraftlake.cli.main()\n"
        "except SystemExit:\n"
        "    import numpy\n"
        "    sys.stderr.write(str(len(os.listdir('/proc/self/task'))))\n"
    )
    kept = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    ran = subprocess.run([sys.executable, "-c", program], env=kept, capture_output=True, text=True, check=True)
    assert ran.stderr == "1"
