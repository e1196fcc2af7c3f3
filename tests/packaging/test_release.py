"""`make release`: the files that come beside the packages, and the checks that a release passes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.wheel import REPOSITORY
from tools import release

pytestmark = pytest.mark.xdist_group("bare install")  # beside the tests that have the wheel
LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"


def test_checksums_are_those_that_sha256sum_checks(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a.whl", "b.tar.gz")]
    for file in files:
        file.write_bytes(file.name.encode() * 1000)
    (tmp_path / release.SUMS).write_text(release.checksums(files))
    check = ["sha256sum", "--check", "--strict", release.SUMS]
    assert subprocess.run(check, cwd=tmp_path, capture_output=True, check=False, timeout=60).returncode == 0
    files[1].write_bytes(b"another")
    done = subprocess.run(check, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (1, "a.whl: OK\nb.tar.gz: FAILED\n")


def test_a_folder_without_a_wheel_for_this_machine_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / release.SUMS).write_text("of an earlier release")
    assert release.main(tmp_path) == 1
    assert capsys.readouterr().err == f"{tmp_path} has 0 wheels for this machine, not one: run `make wheels`.\n"
    assert not (tmp_path / release.SUMS).exists()


def test_an_installation_that_answers_wrongly_is_no_release(tmp_path: Path) -> None:
    command = tmp_path / "kraftlake"
    command.write_text('#!/bin/sh\necho \'{"topics": {"fixed-a": {"partitions": {"1": {"isr": [1]}}}}}\'\n')
    command.chmod(0o755)
    with pytest.raises(ValueError, match=r"fixed-a-1 has the ISR \[1\] at offset 458, not \[1, 2\]"):
        release.answer(tmp_path / "python", tmp_path)


@pytest.mark.skipif(not LONG, reason="make test-long: it installs the tools of a release")
def test_the_files_of_a_release_are_complete(wheel: Path, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    subprocess.run([sys.executable, "-m", "venv", tools], check=True, timeout=300)
    pip = [tools / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "twine", "cyclonedx-bom"]
    subprocess.run(pip, check=True, timeout=600)
    dist = tmp_path / "dist"
    dist.mkdir()
    shutil.copy(wheel, dist)
    command = [tools / "bin" / "python", "-m", "tools.release", dist]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    bill = wheel.name.split("-cp")[0] + ".cdx.json"
    assert sorted(path.name for path in dist.iterdir()) == sorted([wheel.name, bill, release.SUMS])
    assert '"pyarrow"' in (dist / bill).read_text("utf-8")
