"""Every block of code in the docs: its commands have these options, its Python imports what there is."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from importlib import import_module

import click
import pytest

from kraftlake.cli.application import application
from tests.cli.running import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
GENERATED = "reference"
CALL = r"^(?:\$ )?(kraftlake [^\n]*)$"


def command_lines() -> Iterator[tuple[str, str]]:
    """The page and the line of a call: in a block, fenced or indented by four spaces."""
    for page in PAGES:
        if page.parent.name != GENERATED:
            text = page.read_text("utf-8").replace("\\\n", " ")
            fenced = "\n".join(re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE))
            for line in [*re.findall(CALL, fenced, re.MULTILINE), *re.findall(f"^    {CALL[1:]}", text, re.MULTILINE)]:
                yield page.name, line.partition("  #")[0].partition(" # ")[0].strip()


def named_calls() -> Iterator[tuple[str, str]]:
    """The page and each call in a sentence, with `kraftlake` or without it where it has an option."""
    names = "|".join(re.escape(name) for name in application.commands)
    for page in PAGES:
        text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
        for span in re.findall(r"`([^`]+)`", text):
            line = " ".join(span.split())
            if line.startswith("kraftlake ") or re.match(rf"(?:{names}) (?:[^`]* )?--[a-z]", line):
                yield page.name, f"kraftlake {line.removeprefix('kraftlake ')}"


LINES = sorted(
    line for line in {*command_lines(), *named_calls()} if not re.match(r"kraftlake ([A-Z]+|spark [A-Z]+)\b", line[1])
)
"""The calls but for those with a placeholder for the command."""


@pytest.mark.parametrize(("page", "line"), LINES, ids=[f"{page}: {line}" for page, line in LINES])
def test_a_command_has_the_options_that_a_page_gives_it(page: str, line: str) -> None:
    words = [word for word in shlex.split(line)[1:] if word != "$"]
    command, words = found(
        application, words[: next((at for at, word in enumerate(words) if word in "|>"), len(words))]
    )
    options = {option for one in command.params for option in (*one.opts, *one.secondary_opts)} | {"--help", "-h"}
    assert {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)} <= options, page


def found(command: click.Command, words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that words name, and the words after it; KeyError where there is none of a name."""
    if not isinstance(command, click.Group) or not words or words[0].startswith("-"):
        return command, words
    two = " ".join(words[:2])
    name = two if two in command.commands else words[0]
    return found(command.commands[name], words[len(name.split()) :])


def python_blocks() -> Iterator[tuple[str, str]]:
    """The page and the program of each block of Python."""
    for page in PAGES:
        for block in re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
            yield page.name, block


BLOCKS = list(python_blocks())


@pytest.mark.parametrize(
    ("page", "block"), BLOCKS, ids=[f"{page}-{number}" for number, (page, _) in enumerate(BLOCKS, start=1)]
)
def test_a_program_imports_what_there_is(page: str, block: str) -> None:
    imports = [node for node in ast.walk(ast.parse(block, page)) if isinstance(node, ast.ImportFrom)]
    names = [
        (node.module, name.name) for node in imports for name in node.names if (node.module or "").startswith("kraft")
    ]
    assert [name for module, name in names if not hasattr(import_module(str(module)), name)] == []


def test_there_are_commands_and_programs() -> None:
    assert len(LINES) > 170
    assert len(BLOCKS) > 15
