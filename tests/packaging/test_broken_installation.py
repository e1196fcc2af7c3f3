"""A kraftlake whose compiled code is missing, damaged or of another version says so in one sentence."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kraftlake.runtime import __version__
from tests.wheel import REPOSITORY

SAMPLE = REPOSITORY / "samples" / "kafka-4.4" / "log" / "__cluster_metadata-0"
EXTENSION = Path("kraftlake", "kernels", "compiled.abi3.so")
REMEDY = "install it again, by `pip install --force-reinstall` and the wheel or folder that it came from."


def missing(folder: Path) -> None:
    (folder / EXTENSION).unlink()


def damaged(folder: Path) -> None:
    (folder / EXTENSION).write_bytes(bytes(1000))


def another_version(folder: Path) -> None:
    home = folder / "kraftlake" / "runtime" / "__init__.py"
    text = home.read_text("utf-8").replace(f'__version__ = "{__version__}"', '__version__ = "9.9.9"')
    assert "9.9.9" in text
    home.write_text(text, "utf-8")


DAMAGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "missing": (missing, r"kraftlake's compiled code can't be loaded \(its file is missing\): "),
    "damaged": (damaged, r"kraftlake's compiled code can't be loaded \(.*compiled\.abi3\.so: .*\): "),
    "of another version": (another_version, rf"kraftlake is 9\.9\.9, its compiled code {re.escape(__version__)}: "),
}
COMMANDS = (
    ("image", SAMPLE),
    ("log", SAMPLE),
    ("import", SAMPLE, "lake"),
    ("local-changes", SAMPLE, "--broker", "1", "--from", "402", "--to", "458"),
)


@pytest.fixture(scope="module", params=DAMAGES)
def broken(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder with a copy of the package, and the sentence's beginning."""
    folder = tmp_path_factory.mktemp("broken")
    shutil.copytree(REPOSITORY / "kraftlake", folder / "kraftlake", ignore=shutil.ignore_patterns("__pycache__"))
    damage, sentence = DAMAGES[request.param]
    damage(folder)
    return folder, sentence


def python(folder: Path, *words: object, package: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(package or folder)}
    return subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_a_command_says_what_is_broken_and_what_to_do(broken: tuple[Path, str], words: tuple[object, ...]) -> None:
    folder, sentence = broken
    done = python(folder, "-m", "kraftlake.cli", *words)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(f"error: {sentence}{re.escape(REMEDY)}\n", done.stderr), done.stderr
    assert not (folder / "lake").exists()


def test_the_api_raises_the_same_sentence(broken: tuple[Path, str]) -> None:
    folder, sentence = broken
    done = python(folder, "-c", f"import kraftlake; kraftlake.open({str(SAMPLE)!r}).image()")
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert re.fullmatch(rf"kraftlake\.runtime\.errors\.EnvironmentFaultError: {sentence}{re.escape(REMEDY)}", last)


def test_help_needs_no_compiled_code(broken: tuple[Path, str]) -> None:
    done = python(broken[0], "-m", "kraftlake.cli", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Usage: kraftlake")


def test_a_package_in_a_zip_names_the_two_ways_to_a_cluster(tmp_path: Path) -> None:
    package = Path(shutil.make_archive(str(tmp_path / "package"), "zip", REPOSITORY, "kraftlake"))
    done = python(tmp_path, "-m", "kraftlake.cli", "image", SAMPLE, package=package)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"error: kraftlake's compiled code can't be loaded from a zip ({package}): install the wheel on each machine "
        "of the cluster, or send a packed environment by Spark's --archives.\n"
    )
