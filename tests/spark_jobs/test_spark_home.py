from __future__ import annotations

import os
from importlib.machinery import ModuleSpec
from pathlib import Path

import pyspark
import pytest

from kraftlake.spark_jobs.spark_home import spark_home

PACKAGE = Path(pyspark.__file__).parent


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("KRAFTLAKE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SPARK_HOME", raising=False)
    return tmp_path / "cache"


def files_in(folder: Path) -> set[str]:
    return {
        str(Path(place, name).relative_to(folder))
        for place, _, names in os.walk(folder, followlinks=True)
        for name in names
        if "__pycache__" not in place and "pyspark.zip" not in place and name != "pyspark.zip"
    }


def test_the_home_has_all_that_pyspark_has_but_its_python_as_files(cache: Path) -> None:
    home = spark_home()
    assert home.is_relative_to(cache)
    assert files_in(home) == files_in(PACKAGE)
    assert (home / "jars").resolve() == (PACKAGE / "jars").resolve()
    python = home / "python" / "lib" / "pyspark.zip"
    assert [entry.name for entry in python.iterdir()] == ["pyspark"], "nothing else of site-packages comes first"
    assert (python / "pyspark" / "worker.py").samefile(PACKAGE / "worker.py")
    assert spark_home() == home
    assert {entry.name for entry in cache.iterdir()} == {home.name}


def test_another_release_in_the_same_place_has_a_home_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    package = tmp_path / "site" / "pyspark"
    (package / "python" / "lib").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    for name in ("pyspark.zip", "py4j-1-src.zip"):
        (package / "python" / "lib" / name).write_text("")
    spec = ModuleSpec("pyspark", None, origin=str(package / "__init__.py"))
    monkeypatch.setattr("kraftlake.spark_jobs.spark_home.find_spec", lambda _: spec)
    first = spark_home()
    (package / "python" / "lib" / "py4j-1-src.zip").rename(package / "python" / "lib" / "py4j-2-src.zip")
    assert spark_home() != first
    assert not first.exists(), "two homes of one place are of no use"
    assert (spark_home() / "python" / "lib" / "py4j-2-src.zip").is_file()


def test_a_home_that_the_user_names_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    assert spark_home() == Path("/opt/spark")


def test_pysparks_own_is_taken_where_no_links_can_be_made(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "symlink_to", refuse)
    assert spark_home() == PACKAGE
    assert list(cache.iterdir()) == []
