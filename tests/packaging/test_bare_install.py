"""The wheel without extras, in a virtual environment of its own: the tests of the samples pass there too.

A command or function that needs an extra names it in one sentence.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from kraftlake.generate.lake import generate_lake
from kraftlake.generate.plan import Plan
from kraftlake.replay.reading.chunks import BULK_FROM
from kraftlake.runtime.extras import EXTRAS
from tests.cli.running import run
from tests.wheel import REPOSITORY, Install, install

pytestmark = pytest.mark.xdist_group("bare install")

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
SAMPLE = REPOSITORY / "samples" / "kafka-4.4" / "log" / "__cluster_metadata-0"
TEST_TOOLS = ("pytest", "hypothesis")  # hypothesis for tests/conftest.py
OTHER_TESTS_OF_SAMPLES = (
    "tests/cli/test_diff_topics.py",
    "tests/cli/test_events.py",
    "tests/docs/test_shown.py",
    "tests/replay/test_samples.py",
)
TESTS_OF_SAMPLES = (
    "tests/cli/test_expected_answers.py",
    "tests/cli/test_metrics.py",
    *(OTHER_TESTS_OF_SAMPLES if LONG else ()),
)
COMMANDS = (
    ("image", SAMPLE),
    ("log", SAMPLE, "--from", 400, "--to", 458),
    ("diff", SAMPLE, 402, 458),
    ("events", SAMPLE),
    ("verify", SAMPLE),
    ("metrics", SAMPLE),
    ("local-changes", SAMPLE, "--broker", 2, "--from", 402, "--to", 458),
)
ASKS_FOR_FUNCTIONS = """
import sys
import kraftlake.spark_jobs as jobs
for name in sys.argv[1:]:
    try:
        getattr(jobs, name)
    except Exception as fault:
        print(f"{type(fault).__name__}: {fault}")
"""


@pytest.fixture(scope="session")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Install:
    return install(tmp_path_factory.mktemp("bare"), wheel, *TEST_TOOLS)


def test_no_package_of_an_extra_is_installed(bare: Install) -> None:
    listed = bare.pip("list", "--format", "freeze").stdout
    names = set(re.findall(r"^([\w.-]+)==", listed, re.MULTILINE))
    assert {"kraftlake", "pyarrow", "numpy"} <= names
    assert not names & {"cython", "ziglang", "pyspark", "py4j", "delta-spark", "pandas", "obstore", "cryptography"}
    found = bare.run("-c", "import kraftlake; print(kraftlake.__file__)").stdout
    assert found.startswith(str(bare.folder / "venv")), "the wheel's package, not the repository's"


def test_the_tests_of_the_samples_pass(bare: Install) -> None:
    done = bare.run("-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS_OF_SAMPLES)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed, done.stdout
    assert int(passed[1]) >= (150 if LONG else 95)


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_a_command_prints_the_same(bare: Install, words: tuple[object, ...]) -> None:
    done = bare.kraftlake(*words, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == run(*words, "--json").stdout


@pytest.fixture(scope="module")
def bare_lake(bare: Install, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample, imported there."""
    lake = tmp_path_factory.mktemp("bare") / "lake"
    assert bare.kraftlake("import", SAMPLE, lake).returncode == 0
    return lake


def test_an_imported_lake_holds_the_same(bare: Install, bare_lake: Path) -> None:
    assert bare.kraftlake("verify", bare_lake).returncode == 0
    assert bare.kraftlake("image", bare_lake, "--json").stdout == run("image", SAMPLE, "--json").stdout


def test_a_large_log_gives_the_same(bare: Install, tmp_path: Path) -> None:
    generate_lake(tmp_path / "lake", Plan(topics=500, records=BULK_FROM + 5_000))
    for words in (("image",), ("events", "--kind", "broker_fenced"), ("metrics",)):
        command = (words[0], tmp_path / "lake", *words[1:], "--json")
        done = bare.kraftlake(*command)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == run(*command).stdout


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (("spark", "replay", "{lake}"), "spark"),
        (("spark", "records", "{lake}"), "spark"),
        (("spark", "snapshot", "{lake}"), "spark"),
        (("image", "s3://bucket/lake"), "s3"),
        (("import", SAMPLE, "s3://bucket/lake"), "s3"),
        (("cluster", "up", "{lake}", "--secure"), "tls"),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{value[0]} {value[1]}"[:14],
)
def test_a_command_that_needs_an_extra_names_it_in_one_sentence(
    bare: Install, words: tuple[Any, ...], extra: str, bare_lake: Path
) -> None:
    done = bare.kraftlake(*(str(word).format(lake=bare_lake) for word in words))
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(rf"error: .* the package {EXTRAS[extra][0]}: pip install 'kraftlake\[{extra}\]'\n", done.stderr)


def test_a_function_that_needs_an_extra_names_it(bare: Install) -> None:
    names = ("spark_session", "KraftDataSource", "ReplayListener")
    done = bare.run("-c", ASKS_FOR_FUNCTIONS, *names)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert len(lines) == len(names)
    for name, line in zip(names, lines, strict=True):
        assert re.search(r"^EnvironmentFaultError: .* pip install 'kraftlake\[spark\]'$", line), name


def test_a_page_is_the_same_for_its_scripts_are_in_the_wheel(bare: Install, tmp_path: Path) -> None:
    done = bare.kraftlake("page", SAMPLE, "-o", tmp_path / "bare.html")
    assert done.returncode == 0, done.stderr
    run("page", SAMPLE, "-o", tmp_path / "here.html")
    assert (tmp_path / "bare.html").read_bytes() == (tmp_path / "here.html").read_bytes()
