"""Each command has a man page with its options and examples."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from kraftlake.cli.options.command import Command
from tests.at_least_one import at_least_one
from tests.cli.running import run
from tools.commands import commands
from tools.man_pages import write_pages

pytestmark = pytest.mark.filterwarnings("ignore:'click.utils:DeprecationWarning")  # click-man asks for it


def test_each_command_has_a_page_with_its_options_and_examples(tmp_path: Path) -> None:
    pages = {page.stem: page.read_text("utf-8").replace("\\-", "-") for page in write_pages(tmp_path)}
    for name, command in at_least_one(commands()):
        page = pages[name.replace(" ", "-")]
        for option in [one for one in command.params if isinstance(one, click.Option) and not one.hidden]:
            assert option.opts[0] in page
        for example in command.examples if isinstance(command, Command) else ():
            assert example.command in page


def test_the_help_of_a_command_has_its_short_name_whoever_asked_first(tmp_path: Path) -> None:
    """click keeps the option of the first context, and click-man's is not ours."""
    write_pages(tmp_path)
    assert run("topics", "-h").stdout == run("topics", "--help").stdout
