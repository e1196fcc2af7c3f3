from __future__ import annotations

import os
import shlex
import subprocess
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kraftlake.spark_jobs import prepare
from kraftlake.spark_jobs.class_archive import archive_options, class_archive, making_options, remove_earlier
from kraftlake.spark_jobs.java import java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("KRAFTLAKE_CACHE", str(tmp_path / "a cache"))
    return tmp_path / "a cache"


def java_says(options: str, *arguments: str) -> str:
    """What a JVM prints, but whether it shares classes."""
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_TOOL_OPTIONS"}
    command = [str(java_home() / "bin" / "java"), *shlex.split(options), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return (done.stdout + done.stderr).replace(", sharing", "")


def test_there_are_no_options_without_an_archive(cache: Path) -> None:
    assert class_archive().is_relative_to(cache)
    assert archive_options() == ""


def test_each_java_has_an_archive_of_its_own(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mine = class_archive()
    (tmp_path / "java" / "bin").mkdir(parents=True)
    (tmp_path / "java" / "bin" / "java").symlink_to(java_home() / "bin" / "java")
    (tmp_path / "java" / "release").write_text('JAVA_VERSION="21.0.1"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    other = class_archive()
    assert other not in (mine, None)
    (tmp_path / "java" / "release").write_text('JAVA_VERSION="21.0.2"\n')
    for made in (mine, other, class_archive()):
        made.parent.mkdir(parents=True, exist_ok=True)
        made.touch()
    remove_earlier(class_archive())
    assert [made.exists() for made in (mine, other, class_archive())] == [True, False, True]


@pytest.mark.usefixtures("cache")
def test_an_archive_that_is_damaged_or_of_other_jars_is_left_aside_without_a_word(tmp_path: Path) -> None:
    jars = [tmp_path / name for name in ("one.jar", "two.jar")]
    for jar in jars:
        with zipfile.ZipFile(jar, "w") as made:
            made.writestr("content", jar.name)
    archive = class_archive()
    archive.parent.mkdir(parents=True, exist_ok=True)
    version = java_says("", "-version")
    assert java_says(making_options(archive), "-cp", str(jars[0]), "-version") == version
    assert archive.stat().st_size > 1_000
    for jar in jars:
        assert java_says(archive_options(), "-cp", str(jar), "-version") == version
    archive.chmod(0o600)
    archive.write_bytes(b"no archive")
    assert java_says(archive_options(), "-cp", str(jars[0]), "-version") == version


@pytest.mark.spark
def test_a_session_starts_with_the_archive_of_this_machine_where_there_is_one(spark: SparkSession) -> None:
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    mapped = Path(f"/proc/{jvm.java.lang.ProcessHandle.current().pid()}/maps").read_text()
    assert (class_archive().name in mapped) == class_archive().is_file()


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_nothing_is_prepared_twice(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Path] = []
    monkeypatch.setattr(prepare, "make_archive", made.append)
    assert prepare.main() == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert bool(said.err) == bool(made) == (not class_archive().is_file())
