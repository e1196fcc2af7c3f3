"""What pages give without an answer runs, on the log and the lake of the sample: commands, and Python."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.at_least_one import at_least_one
from tests.cli.running import DIRECTORY, ROOT, run
from tests.docs.test_blocks import BLOCKS, PAGES, command_lines
from tools.samples import beside_samples

PAGES_TO_RUN = ("README.md", "page.md", "spark-jobs.md")
ELSEWHERE = r"kraftlake spark |--follow|\$L|HOST:PORT|c1:9093| L\b|`"
"""What tests of Spark, of quorums and of shown answers run."""
PYTHON_RUN_BY = {
    "README.md": (2, "test_readme"),
    "appending.md": (1, "test_embedding"),
    "controller.md": (1, "test_embedding"),
    "following.md": (1, "test_following"),
    "history-sql.md": (3, "test_sql"),
    "images.md": (1, "test_shown"),
    "publishers.md": (1, "test_publishers"),
    "records-sql.md": (1, "test_records_page"),
    "spark-jobs.md": (11, "test_spark_jobs"),  # and tests/spark_jobs: on Connect, and clusters of any size
    "tutorial.md": (1, "test_shown"),
    "undo.md": (1, "test_commands_run"),
    "who.md": (1, "test_who"),
}
"""The pages with Python, with the number of blocks and the test that runs them; a new block needs a test, too."""
NAMES = {"SOURCE": str(DIRECTORY)}


def lines_of(page: str) -> list[str]:
    lines = [line for name, line in dict.fromkeys(command_lines()) if name == page]
    return [line for line in lines if not re.search(ELSEWHERE, line) and {"SOURCE", "LAKE"} & {*shlex.split(line)}]


@pytest.mark.parametrize("page", PAGES_TO_RUN)
def test_the_commands_of_a_page_run_one_after_the_other(page: str) -> None:
    with beside_samples():
        lines = lines_of(page)
        if not any(" import " in line for line in lines):
            run("import", DIRECTORY, "LAKE")
        for line in at_least_one(sorted(lines, key=lambda line: " import " not in line)):
            words = [NAMES.get(word, word) for word in shlex.split(line)[1:]]
            assert run(*words, *(["--yes"] if "trim" in words else [])).stdout.strip(), line
        assert Path("LAKE").exists()


def test_the_python_of_undo_runs() -> None:
    (program,) = (block for page, block in BLOCKS if page == "undo.md")
    with beside_samples():
        exec(compile(program, "docs/undo.md", "exec"), {})


def test_a_test_runs_the_python_of_each_page() -> None:
    assert Counter(page for page, _ in BLOCKS) == {page: number for page, (number, _) in PYTHON_RUN_BY.items()}
    for _, test in PYTHON_RUN_BY.values():
        assert (ROOT / "tests" / "docs" / f"{test}.py").is_file()


def test_every_module_that_a_page_runs_is_there() -> None:
    modules = {
        module.rstrip(".")
        for page in PAGES
        for module in re.findall(r"python -m\s+([a-z_][a-z_.]+)\b(?!\.)", page.read_text("utf-8"))
    }
    assert len(modules) > 15
    assert [name for name in sorted(modules) if find_spec(name) is None] == []


def test_every_file_of_the_tools_that_a_page_runs_is_there() -> None:
    named = {name for page in PAGES for name in re.findall(r"python (tools/\w+\.py)", page.read_text("utf-8"))}
    assert [name for name in at_least_one(sorted(named)) if not (ROOT / name).exists()] == []
