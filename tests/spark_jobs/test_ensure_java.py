"""tools/ensure_java.py on machines without Java, with an apt-get that is a script of ours."""

from __future__ import annotations

import importlib.util
import io
import os
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

from kraftlake.spark_jobs import java

TOOL = Path(__file__).parents[2] / "tools" / "ensure_java.py"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("ensure_java", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without Java and without apt, of which we are root, without a terminal."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(java, "_USUAL_PLACES", (f"{tmp_path}/jvm/*",))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    return tmp_path


def put_apt(machine: Path, offers: str) -> None:
    """An apt-get that knows one package, which brings a Java 17."""
    (machine / "bin" / "env").symlink_to(shutil.which("env", path=os.defpath) or "/usr/bin/env")
    (machine / "bin" / "mkdir").symlink_to(shutil.which("mkdir", path=os.defpath) or "/bin/mkdir")
    home = machine / "jvm" / "seventeen"
    (machine / "bin" / "apt-get").write_text(
        f'#!/bin/sh\necho "$@" >> {machine}/asked\n'
        f'case "$*" in *update) exit 0 ;; *{offers}) ;; *) exit 100 ;; esac\n'
        f"mkdir -p {home}/bin\necho > {home}/bin/java\n"
        f"echo 'JAVA_VERSION=\"17.0.1\"' > {home}/release\n"
    )
    (machine / "bin" / "apt-get").chmod(0o755)


def asked(machine: Path) -> str:
    return (machine / "asked").read_text() if (machine / "asked").exists() else ""


def test_without_apt_one_sentence_says_what_to_install(tool: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert tool.main() == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("no Java was found: install a Java 17")
    assert printed.err.count("\n") == 1


def test_root_without_a_terminal_is_not_asked(
    tool: ModuleType, machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put_apt(machine, "openjdk-17-jre-headless")
    assert tool.main() == 0
    assert capsys.readouterr().err.splitlines()[-1].startswith("Java is installed: /")
    assert tool.main() == 0
    assert capsys.readouterr().err == ""


def test_a_distribution_without_17_gives_its_own_java(tool: ModuleType, machine: Path) -> None:
    put_apt(machine, "default-jre-headless")
    assert tool.main() == 0
    assert "openjdk-17-jre-headless" in asked(machine)


def test_apt_that_has_none_is_reported(tool: ModuleType, machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put_apt(machine, "no-such-package")
    assert tool.main() == 1
    assert capsys.readouterr().err.splitlines()[-1].startswith("apt could not install any of openjdk-17-jre-headless")


@pytest.mark.parametrize(("answer", "installs"), [("n\n", False), ("", False), ("\n", True), ("y\n", True)])
def test_on_a_terminal_the_user_is_asked(
    tool: ModuleType, machine: Path, monkeypatch: pytest.MonkeyPatch, answer: str, installs: bool
) -> None:
    put_apt(machine, "openjdk-17-jre-headless")
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert tool.main() == (0 if installs else 1)
    assert bool(asked(machine)) == installs


def test_nobody_but_root_installs_without_a_terminal(
    tool: ModuleType, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_apt(machine, "openjdk-17-jre-headless")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert tool.main() == 1
    assert not asked(machine)
