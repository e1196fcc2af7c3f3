"""The wheel: one for each Python from 3.11 on, and the same bytes for the same sources, from the sdist, too."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from kraftlake.runtime import __version__
from tests.wheel import copy_sources, left_by_earlier_builds
from tools.commands import commands

MEGABYTE = 1_000_000


def test_it_is_for_every_python_from_3_11_on_and_small(wheel: Path) -> None:
    assert wheel.name == f"kraftlake-{__version__}-cp311-abi3-linux_{os.uname().machine}.whl"
    assert wheel.stat().st_size <= 5 * MEGABYTE


def test_it_has_the_compiled_code_and_nothing_that_building_it_left(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "kraftlake/kernels/compiled.abi3.so" in names
    assert "kraftlake/left.py" not in names
    assert {Path(name).suffix for name in names if name.startswith("kraftlake/kernels/")} == {".py", ".pyi", ".so"}
    assert {name.split("/")[0] for name in names} == {
        "kraftlake", "pyspark_kraft", f"kraftlake-{__version__}.dist-info", f"kraftlake-{__version__}.data",
    }  # fmt: skip


def test_it_has_a_man_page_for_each_command(wheel: Path) -> None:
    manual = f"kraftlake-{__version__}.data/data/share/man/man1/"
    pages = {name.removeprefix(manual) for name in zipfile.ZipFile(wheel).namelist() if name.startswith(manual)}
    assert pages == {f"{name.replace(' ', '-')}.1" for name, _ in commands()}


def test_building_it_leaves_a_build_for_the_checkout_as_it_is(wheel: Path) -> None:
    of_checkout, of_wheel = left_by_earlier_builds(wheel.parent.with_suffix(".source"))
    assert of_checkout.exists()
    assert not of_wheel.exists()


def test_its_compiled_code_keeps_to_the_stable_abi(wheel: Path) -> None:
    command = [sys.executable, "-m", "abi3audit", "--strict", "--summary", str(wheel)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 extensions scanned" in done.stdout + done.stderr


@pytest.mark.xdist_group("bare install")  # beside the tests that have the wheel
@pytest.mark.skipif(os.environ.get("KRAFTLAKE_TESTS") != "long", reason="make test-long: it compiles all kernels again")
def test_the_sdist_makes_the_same_wheel_in_another_folder_and_at_another_time(wheel: Path, tmp_path: Path) -> None:
    source = copy_sources(tmp_path / "elsewhere")
    for path in source.rglob("*"):
        os.utime(path, (1_600_000_000, 1_600_000_000))
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(tmp_path / "dist")]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    assert (tmp_path / "dist" / f"kraftlake-{__version__}.tar.gz").exists()
    assert (tmp_path / "dist" / wheel.name).read_bytes() == wheel.read_bytes()


def test_without_a_compiler_the_build_says_what_to_install(tmp_path: Path) -> None:
    source = copy_sources(tmp_path / "source")
    without_zig = "import runpy, sys; sys.modules['ziglang'] = None; runpy.run_path('setup.py', run_name='__main__')"
    environment = {name: value for name, value in os.environ.items() if name != "CC"} | {"PATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", without_zig, "-q", "build_ext", "--inplace"],
        cwd=source, env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("error: there is no C compiler: install one (gcc, clang), or `pip ")
    assert "Traceback" not in done.stderr
