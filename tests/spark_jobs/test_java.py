from __future__ import annotations

from pathlib import Path

import pytest

from kraftlake.runtime.errors import EnvironmentFaultError
from kraftlake.spark_jobs import java
from kraftlake.spark_jobs.java import java_home

ALL_MODULES = "java.base java.sql jdk.incubator.vector"


@pytest.fixture(autouse=True)
def bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without any Java: what a test wants found, it puts there."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(java, "_USUAL_PLACES", (f"{tmp_path}/jvm/*",))


def installed(home: Path, version: str, modules: str = ALL_MODULES) -> Path:
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text("#!/bin/sh\nexit 1\n")
    (home / "bin" / "java").chmod(0o755)
    (home / "release").write_text(f'IMPLEMENTOR="Test"\nJAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return home


def test_without_java_one_sentence_says_what_to_install() -> None:
    with pytest.raises(EnvironmentFaultError, match=r"^no Java was found: install a Java 17 .*JAVA_HOME to one$"):
        java_home()


def test_java_home_comes_before_the_path_and_the_usual_places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    usual = installed(tmp_path / "jvm" / "java-17", "17.0.1")
    assert java_home() == usual
    on_path = installed(tmp_path / "somewhere", "21.0.2")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(on_path / "bin" / "java")
    assert java_home() == on_path
    monkeypatch.setenv("JAVA_HOME", str(installed(tmp_path / "mine", "17")))
    assert java_home() == tmp_path / "mine"


def test_a_java_that_is_too_old_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(installed(tmp_path / "old", "1.8.0_402")))
    with pytest.raises(EnvironmentFaultError, match=r"old is Java 8\): install"):
        java_home()
    newer = installed(tmp_path / "jvm" / "newer", "21-ea")
    assert java_home() == newer


def test_a_java_without_the_module_that_spark_asks_for_is_named(tmp_path: Path) -> None:
    installed(tmp_path / "jvm" / "cut-down", "17.0.9", modules="java.base")
    with pytest.raises(EnvironmentFaultError, match=r"cut-down lacks the module jdk\.incubator\.vector"):
        java_home()


def test_a_java_without_a_release_file_is_named(tmp_path: Path) -> None:
    home = installed(tmp_path / "jvm" / "odd", "17")
    (home / "release").unlink()
    with pytest.raises(EnvironmentFaultError, match="odd has no file `release`"):
        java_home()
