"""kraftlake as a wheel: it holds what it needs, and a cluster runs jobs of it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pyspark
import pytest
from deltalake import DeltaTable

from kraftlake.metadata_log import MetadataLog
from kraftlake.spark_jobs.java import java_home
from tests.spark_cluster import REPOSITORY, SparkCluster, driver_environment
from tests.tables.sample_log import LAST_OFFSET, lake_of

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"


def on_a_cluster(test: Any) -> Any:
    """Two JVMs and four Pythons that import all there is: half a minute each."""
    return pytest.mark.spark(pytest.mark.skipif(not LONG, reason="KRAFTLAKE_TESTS=long")(test))


def test_the_wheel_holds_all_that_the_package_has(wheel: Path) -> None:
    def files_in(folder: Path) -> set[str]:
        return {
            str(path.relative_to(REPOSITORY))
            for path in folder.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }

    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
        (metadata,) = [name for name in archive.namelist() if name.endswith("/METADATA")]
        needs = archive.read(metadata).decode()
        (entries,) = [name for name in archive.namelist() if name.endswith("/entry_points.txt")]
        assert "kraftlake = kraftlake.cli:main" in archive.read(entries).decode()
    expected = files_in(REPOSITORY / "kraftlake") | files_in(REPOSITORY / "pyspark_kraft")
    assert held == expected
    assert {"kraftlake/py.typed", "kraftlake/spark_jobs/log4j2.properties", "pyspark_kraft/__init__.py"} <= held
    unconditional = [line for line in needs.splitlines() if line.startswith("Requires-Dist:") and ";" not in line]
    assert any(line.startswith("Requires-Dist: pyarrow") for line in unconditional)
    assert not re.search("numba|llvmlite|pyspark|delta|pandas|obstore", "".join(unconditional))


@on_a_cluster
def test_spark_submit_runs_jobs_of_the_wheel_on_a_cluster(
    wheel: Path, spark_cluster: SparkCluster, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    lake_of(lake, commits=2)
    package = tmp_path / "kraftlake.zip"
    package.write_bytes(wheel.read_bytes())
    done = subprocess.run(
        [
            str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", spark_cluster.master_url,
            "--py-files", str(package), str(Path(__file__).with_name("packaged_job.py")), str(lake),
        ],
        cwd=tmp_path, capture_output=True, text=True, timeout=560, check=False,
        env=driver_environment() | {"JAVA_HOME": str(java_home()), "PYSPARK_PYTHON": sys.executable},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    # spark-submit shows what the driver's Python says on stderr among what it prints
    seen, snapshot, result = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
    assert "kraftlake.zip" in seen["driver"]
    assert seen["executors"]
    assert all("kraftlake.zip" in origin and origin.endswith(" True") for origin in seen["executors"])
    assert seen["master"] == spark_cluster.master_url
    assert (snapshot["offset"], snapshot["written"]) == (LAST_OFFSET, True)
    assert [snapshot["name"]] == [kept.name for kept in MetadataLog.open(lake).snapshots()]
    assert result["rows"] == {"records": LAST_OFFSET + 1}
    assert DeltaTable(lake / "records").to_pyarrow_table().num_rows == LAST_OFFSET + 1


@on_a_cluster
def test_the_command_runs_a_job_on_the_cluster_that_it_is_given(spark_cluster: SparkCluster, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    lake_of(lake, commits=1, last=400)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "kraftlake.cli", "spark", "records", str(lake)),
            *("--master", spark_cluster.master_url, "--json"),
        ],
        capture_output=True, text=True, timeout=300, check=False, env=driver_environment(), cwd=REPOSITORY,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rows"] == {"records": DeltaTable(lake / "records").to_pyarrow_table().num_rows}
    assert spark_cluster.state()["completedapps"], "the master has seen it"


@on_a_cluster
def test_the_commands_of_the_page_run(spark_cluster: SparkCluster, wheel: Path, tmp_path: Path) -> None:
    page = (REPOSITORY / "docs" / "spark-jobs.md").read_text("utf-8")
    section = page.split("\n## On a cluster\n")[1].split("\n## ")[0]
    scripts = [block.replace("\n    ", "\n") for block in re.findall(r"(?:^    .*\n)+", section, re.MULTILINE)]
    assert len(scripts) == 2
    environment = driver_environment() | {
        "JAVA_HOME": str(java_home()),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PIP_CONSTRAINT": str(REPOSITORY / "constraints.txt"),
        "PIP_NO_BUILD_ISOLATION": "0",  # pip's way to say: without isolation, so without the network
    }
    for number, (script, job) in enumerate(zip(scripts, ("records", "snapshot"), strict=True)):
        lake, folder = tmp_path / f"lake-{number}", tmp_path / f"source-{number}"
        lake_of(lake, commits=1)
        shutil.copytree(wheel.parent / "source", folder, ignore=shutil.ignore_patterns("build", "*.egg-info"))
        names = {"JOB": job, "LAKE": str(lake), "spark://HOST:7077": spark_cluster.master_url}
        for name, value in (names | {"/opt/kraftlake": f"{tmp_path}/opt", "/var/tmp": f"{tmp_path}/cache"}).items():
            script = re.sub(rf"(?<![\w./]){re.escape(name)}\b", value, script)  # noqa: PLW2901
        done = subprocess.run(
            ["bash", "-ec", script], cwd=folder, env=environment, capture_output=True, text=True, timeout=560,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
        environment["PYSPARK_PYTHON"] = sys.executable  # for the second script: kraftlake's dependencies are in it
    assert DeltaTable(tmp_path / "lake-0" / "records").to_pyarrow_table().num_rows == LAST_OFFSET + 1
    assert [kept.end_offset for kept in MetadataLog.open(tmp_path / "lake-1").snapshots()] == [LAST_OFFSET + 1]
    assert any((tmp_path / "cache" / "kraftlake").iterdir()), "the executors' own cache"
