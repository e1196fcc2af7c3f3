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
    """The page and the line of each call of kraftlake in a block: fenced, or indented by four spaces."""
    for page in PAGES:
        if page.parent.name != GENERATED:
            text = page.read_text("utf-8").replace("\\\n", " ")
            fenced = "\n".join(re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE))
            for line in [*re.findall(CALL, fenced, re.MULTILINE), *re.findall(f"^    {CALL[1:]}", text, re.MULTILINE)]:
                yield page.name, line.partition("  #")[0].partition(" # ")[0].strip()


LINES = sorted({*command_lines()})


@pytest.mark.parametrize(("page", "line"), LINES, ids=[f"{page}: {line}" for page, line in LINES])
def test_a_command_has_the_options_that_a_page_gives_it(page: str, line: str) -> None:
    words = [word for word in shlex.split(line)[1:] if word != "$"]
    words = words[: next((at for at, word in enumerate(words) if word in ("|", ">")), len(words))]
    command: click.Command = application
    with click.Context(application, info_name="kraftlake") as context:
        while isinstance(command, click.Group) and words and not words[0].startswith("-"):
            two = " ".join(words[:2])
            name = two if command.get_command(context, two) is not None else words[0]
            if name.isupper():  # a placeholder, such as COMMAND or JOB
                return
            found = command.get_command(context, name)
            assert found is not None, f"{page}: there is no command {name}"
            command, words = found, words[len(name.split()) :]
        options = {option for one in command.params for option in (*one.opts, *one.secondary_opts)} | {"--help", "-h"}
        given = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
        assert given <= options, page


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
    for node in ast.walk(ast.parse(block, page)):
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith("kraftlake"):
            module = import_module(node.module)
            assert [name.name for name in node.names if not hasattr(module, name.name)] == []


def test_there_are_commands_and_programs() -> None:
    assert len(LINES) > 90
    assert len(BLOCKS) > 15
