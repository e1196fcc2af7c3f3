from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from kraftlake.runtime.errors import EnvironmentFaultError
from kraftlake.spark_jobs import jars
from kraftlake.spark_jobs.jars import jars_are_cached, spark_jars, user_cache


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("KRAFTLAKE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def resolved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    """A resolver that answers with two jars, one of which Spark ships itself; the list says what it was asked."""
    asked: list[list[str]] = []
    (tmp_path / "ivy").mkdir()
    names = ["io.delta_delta-storage-4.4.0.jar", "org.apache.logging.log4j_log4j-core-2.0.jar"]
    for name in names:
        (tmp_path / "ivy" / name).write_bytes(b"jar of " + name.encode())

    def resolve(extra_packages: list[str]) -> list[Path]:
        asked.append(list(extra_packages))
        return [tmp_path / "ivy" / name for name in names]

    monkeypatch.setattr(jars, "_resolve", resolve)
    return asked


def test_the_cache_is_for_its_user_alone(cache: Path) -> None:
    assert user_cache() == cache
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700


def test_the_resolver_is_asked_once_and_what_spark_ships_is_left_out(cache: Path, resolved: list[list[str]]) -> None:
    assert not jars_are_cached()
    (jar,) = spark_jars()
    assert jar.name == "io.delta_delta-storage-4.4.0.jar"
    assert jar.is_relative_to(cache)
    assert jars_are_cached()
    assert spark_jars() == (jar,)
    assert resolved == [[]]


def test_other_packages_have_a_folder_of_their_own(cache: Path, resolved: list[list[str]]) -> None:
    assert spark_jars(["a:b:1"])[0].parent != spark_jars()[0].parent
    assert resolved == [["a:b:1"], []]


def test_a_folder_that_lost_bytes_is_filled_again(cache: Path, resolved: list[list[str]]) -> None:
    (jar,) = spark_jars()
    jar.write_bytes(b"")
    assert not jars_are_cached()
    (again,) = spark_jars()
    assert again.read_bytes().startswith(b"jar of io.delta")
    assert len(resolved) == 2
    assert not [entry for entry in jar.parent.parent.iterdir() if entry.name.startswith(".filling")]


@pytest.mark.usefixtures("cache")
def test_a_resolver_that_fails_is_one_sentence_with_its_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = tmp_path / "java"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text(
        "#!/bin/sh\necho ':: unresolved dependency: io.delta#x;1: not found' >&2\nexit 1\n"
    )
    (home / "bin" / "java").chmod(0o755)
    (home / "release").write_text('JAVA_VERSION="17"\n')
    monkeypatch.setenv("JAVA_HOME", str(home))
    with pytest.raises(EnvironmentFaultError, match=r"unresolved dependency: io\.delta#x;1.*needs Maven Central"):
        spark_jars()


def test_a_cache_that_cannot_be_made_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KRAFTLAKE_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(EnvironmentFaultError, match="set KRAFTLAKE_CACHE to a folder of yours"):
        spark_jars()


def test_a_list_that_is_not_ours_is_no_cache(cache: Path, resolved: list[list[str]]) -> None:
    (jar,) = spark_jars()
    (jar.parent / "jars.json").write_text(json.dumps(["a list"]))
    assert not jars_are_cached()
