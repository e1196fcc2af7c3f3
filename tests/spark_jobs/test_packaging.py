"""kraftlake as a wheel: it holds what it needs, and a cluster runs jobs of it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from kraftlake.cli import submit
from kraftlake.spark_jobs.java import java_home
from kraftlake.tables.catch_up.updating import update_tables
from kraftlake.tables.jobs import TABLES, job_named
from tests.spark_cluster import REPOSITORY, SparkCluster, driver_environment, started_cluster
from tests.tables.sample_log import lake_of
from tests.wheel import copy_sources

BARE = str(Path(sys.executable).resolve())  # the Python that this environment was made with
LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"


def on_a_cluster(test: Any) -> Any:
    """Two JVMs and four Pythons that import all there is: half a minute each."""
    return pytest.mark.spark(pytest.mark.skipif(not LONG, reason="KRAFTLAKE_TESTS=long")(test))


ONLY_BUILT_FROM = {".c", ".h", ".pxd"}


def test_the_wheel_holds_all_that_the_package_has(wheel: Path) -> None:
    def files_in(folder: Path) -> set[str]:
        return {
            str(path.relative_to(REPOSITORY))
            for path in folder.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts and path.suffix not in ONLY_BUILT_FROM
        }

    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name and ".data/" not in name}
        (metadata,) = [name for name in archive.namelist() if name.endswith("/METADATA")]
        needs = archive.read(metadata).decode()
        (entries,) = [name for name in archive.namelist() if name.endswith("/entry_points.txt")]
        assert "kraftlake = kraftlake.cli:main" in archive.read(entries).decode()
    expected = files_in(REPOSITORY / "kraftlake") | files_in(REPOSITORY / "pyspark_kraft")
    assert held == expected
    assert {"kraftlake/py.typed", "kraftlake/spark_jobs/log4j2.properties", "pyspark_kraft/__init__.py"} <= held
    unconditional = [line for line in needs.splitlines() if line.startswith("Requires-Dist:") and ";" not in line]
    assert any(line.startswith("Requires-Dist: pyarrow") for line in unconditional)
    assert not re.search("pyspark|delta|pandas|obstore", "".join(unconditional))


@on_a_cluster
def test_the_command_runs_a_job_on_the_cluster_that_it_is_given(spark_cluster: SparkCluster, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    lake_of(lake, commits=1, last=400)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "kraftlake.cli", "spark", "records", str(lake)),
            *("--master", spark_cluster.master_for_another_driver(), "--json"),
        ],
        capture_output=True, text=True, timeout=300, check=False, env=driver_environment(), cwd=REPOSITORY,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rows"] == {"records": DeltaTable(lake / "records").to_pyarrow_table().num_rows}
    assert spark_cluster.state()["completedapps"], "the master has seen it"


def rows_of(lake: Path, tables: Iterable[str]) -> dict[str, list[str]]:
    return {name: sorted(map(str, DeltaTable(lake / name).to_pyarrow_table().to_pylist())) for name in tables}


@pytest.fixture(scope="module")
def bare_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """A cluster whose processes find nothing by PYTHONPATH, and whose Python has no packages that kraftlake needs."""
    folder = tmp_path_factory.mktemp("bare-cluster")
    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            patch.delenv("PYTHONPATH", raising=False)
            for package in ("kraftlake", "pyarrow"):
                asked = subprocess.run([BARE, "-c", f"import {package}"], cwd=folder, capture_output=True, check=False)
                assert f"No module named '{package}'" in asked.stderr.decode()
            cluster = stack.enter_context(started_cluster(folder))
        yield cluster


def run_in(folder: Path, script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script of the page with what is installed here, its pip with the versions of constraints.txt."""
    tools = {
        "JAVA_HOME": str(java_home()),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PIP_CONSTRAINT": str(REPOSITORY / "constraints.txt"),
        "PIP_NO_BUILD_ISOLATION": "0",  # pip's way to say: without isolation, so without the network
        "PYTHONPATH": "",  # may name this repository, where pip would find kraftlake installed
    }
    return subprocess.run(
        ["bash", "-ec", script], cwd=folder, env=driver_environment() | tools | environment, capture_output=True,
        text=True, timeout=900, check=False,
    )  # fmt: skip


@on_a_cluster
def test_the_commands_of_the_page_bring_kraftlake_to_bare_pythons(bare_cluster: SparkCluster, tmp_path: Path) -> None:
    page = (REPOSITORY / "docs" / "spark-jobs.md").read_text("utf-8")
    section = page.split("\n## On a cluster\n")[1].split("\n### ")[0]
    scripts = [block.replace("\n    ", "\n") for block in re.findall(r"(?:^    .*\n)+", section, re.MULTILINE)]
    source = copy_sources(tmp_path / "source")
    one_process = tmp_path / "one-process"
    lake_of(one_process, commits=2)
    update_tables(one_process, TABLES)
    for number, (script, job) in enumerate(zip(scripts, ("records", "all", "records"), strict=True)):
        lake = tmp_path / f"lake-{number}"
        lake_of(lake, commits=2)
        names = {"JOB": job, "LAKE": str(lake), "spark://HOST:7077": bare_cluster.master_for_another_driver()}
        for name, value in (names | {"/opt/kraftlake": f"{tmp_path}/opt"}).items():
            script = re.sub(rf"(?<![\w./]){re.escape(name)}\b", value, script)  # noqa: PLW2901
        done = run_in(source if number < 2 else source / "dist", script)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
        tables = job_named(job).tables
        assert rows_of(lake, tables) == rows_of(one_process, tables)
    assert any(bare_cluster.folder.glob("worker-*/work/app-*/*/environment/bin/python")), "executors have unpacked it"


@on_a_cluster
@pytest.mark.parametrize(
    ("python", "sentence"),
    [
        (BARE, "kraftlake is not installed in the Python of Spark's workers: install the same release there, and name "
         "that Python as PYSPARK_PYTHON"),
        ("./environment/bin/python", "Spark can't run ./environment/bin/python: PYSPARK_PYTHON has to be a Python of "
         "this machine and of the executors"),
    ],
    ids=["bare", "missing"],
)  # fmt: skip
def test_executors_without_kraftlake_are_an_error_in_one_sentence(
    bare_cluster: SparkCluster, tmp_path: Path, python: str, sentence: str
) -> None:
    lake = tmp_path / "lake"
    lake_of(lake, commits=1, last=400)
    master = bare_cluster.master_for_another_driver()
    done = run_in(
        tmp_path, f"{sys.executable} -m kraftlake spark records {lake} --master {master}",
        PYSPARK_PYTHON=python,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(f"error: {sentence}\n", done.stderr)


@on_a_cluster
@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("PYSPARK_SUBMIT_ARGS='--py-files {package} pyspark-shell' kraftlake spark records {lake} --master {master}",
         "error: {sentence}\n"),
        ("spark-submit --master {master} --py-files {package} {program} records {lake} 2>&1 | grep ^error:",
         "error: {sentence}\n"),
    ],
    ids=["kraftlake", "spark-submit"],
)  # fmt: skip
def test_a_wheel_as_a_zip_is_refused_in_one_sentence_that_names_the_two_ways(
    wheel: Path, spark_cluster: SparkCluster, tmp_path: Path, script: str, said: str
) -> None:
    lake, package = tmp_path / "lake", tmp_path / "kraftlake.zip"
    lake_of(lake, commits=1, last=400)
    package.write_bytes(wheel.read_bytes())
    master = spark_cluster.master_for_another_driver()
    names = {"package": package, "lake": lake, "master": master, "program": submit.__file__}
    done = run_in(tmp_path, script.format(**names), PYSPARK_PYTHON=sys.executable)
    sentence = (
        r"kraftlake's compiled code can't be loaded from a zip \(.*\.zip\): install the wheel on each machine of the "
        r"cluster, or send a packed environment by Spark's --archives\."
    )
    assert re.fullmatch(said.format(sentence=sentence), done.stdout + done.stderr), done.stdout + done.stderr
    assert not [*(lake / "records").glob("*.parquet")]
