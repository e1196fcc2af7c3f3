"""tools/ensure_chromium.py on machines without Chromium, with an apt-get that is a script of ours."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path
from types import ModuleType

import pytest

TOOL = Path(__file__).parents[3] / "tools" / "ensure_chromium.py"


@pytest.fixture
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("ensure_chromium", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def programs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of all programs of a machine of which we are root; it is empty."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return folder


def put_apt(programs: Path, brings: str) -> None:
    """An apt-get that notes what it is asked for, and brings some programs."""
    (programs / "env").symlink_to(shutil.which("env", path=os.defpath) or "/usr/bin/env")
    script = f'#!/bin/sh\necho "$@" >> {programs}/asked\n'
    for program in brings.split():
        script += f"echo > {programs}/{program}\n{shutil.which('chmod', path=os.defpath)} +x {programs}/{program}\n"
    (programs / "apt-get").write_text(script)
    (programs / "apt-get").chmod(0o755)


def test_without_apt_one_sentence_says_what_to_install(tool: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert tool.main() == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.count("\n") == 1
    assert "`apt-get install chromium chromium-driver` brings them" in output.err


def test_root_gets_it_by_apt_once(tool: ModuleType, programs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put_apt(programs, "chromium chromedriver")
    assert tool.main() == 0
    asked = (programs / "asked").read_text()
    assert asked.splitlines()[-1].endswith("install -y --no-install-recommends chromium chromium-driver")
    assert capsys.readouterr().err.count("\n") == 1
    assert tool.main() == 0
    assert capsys.readouterr().err == ""
    assert (programs / "asked").read_text() == asked


def test_others_and_a_failing_apt_are_reported(
    tool: ModuleType, programs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    put_apt(programs, "chromium")
    assert tool.main() == 1
    assert "and the tests of `kraftlake page` need them" in capsys.readouterr().err.splitlines()[-1]
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    (programs / "asked").unlink()
    assert tool.main() == 1
    assert not (programs / "asked").exists()
