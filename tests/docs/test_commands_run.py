"""Commands that pages give without their answers run, on the log and the lake of the sample."""

from __future__ import annotations

import re
import shlex
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.at_least_one import at_least_one
from tests.cli.running import DIRECTORY, ROOT, run
from tests.docs.test_blocks import PAGES, command_lines
from tools.samples import beside_samples

PAGES_TO_RUN = ("README.md", "page.md", "spark-jobs.md")
ELSEWHERE = r"kraftlake spark |--follow|\$L|HOST:PORT|c1:9093| L\b|`"
"""What tests of Spark, of quorums and of shown answers run."""
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
