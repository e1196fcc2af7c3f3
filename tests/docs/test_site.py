"""The site is built without a network, its links lead somewhere, it loads nothing from elsewhere, it is whole."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import attrs
import click
import pytest

from kraftlake.tables.jobs import TABLES
from kraftlake.tables.undo_table import UNDO
from tests.at_least_one import at_least_one
from tests.cli.running import ROOT
from tests.docs.built_site import built_site
from tools.architecture_picture import PICTURES as DRAWN
from tools.commands import commands
from tools.json_page import ALIKE, COMMANDS
from tools.page_pictures import PICTURES as OF_PAGES
from tools.reference_pages import DOORS, REFERENCE, door_targets, kept_pages, table_descriptions
from tools.terminal_picture import PICTURES as OF_TERMINALS

pytestmark = pytest.mark.xdist_group("site")  # one worker builds it, and no other waits for it

IMAGES = ROOT / "docs" / "images"
LOADING = {"script": "src", "img": "src", "iframe": "src", "link": "href"}
"""The elements that load a file, and their attribute that names it."""
NO_PAGE_LINKS_THERE = "404.html"
"""Served for addresses at any depth, so that its links begin at the root of a server."""


@attrs.define
class Page(HTMLParser):
    """What a page links to and loads, and the places in it."""

    anchors: set[str] = attrs.field(factory=set)
    links: set[str] = attrs.field(factory=set)
    loads: set[str] = attrs.field(factory=set)

    def __attrs_pre_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attributes if value}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.add(given["href"])
        if LOADING.get(tag) in given:
            self.loads.add(given[LOADING[tag]])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_site(tmp_path_factory)


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    found = {}
    for file in site.rglob("*.html"):
        if file.name != NO_PAGE_LINKS_THERE:
            found[file] = Page()
            found[file].feed(file.read_text("utf-8"))
    return found


def test_every_link_leads_to_a_page_and_a_place_in_it(pages: dict[Path, Page]) -> None:
    for file, page in at_least_one(pages.items()):
        for link in page.links:
            address = urlsplit(link)
            if address.scheme:
                continue
            target = (file.parent / unquote(address.path)).resolve() if address.path else file
            assert target.exists(), f"{file.name} links to {link}"
            assert not address.fragment or unquote(address.fragment) in pages[target].anchors, f"{file.name}: {link}"


def test_no_page_loads_anything_from_another_host(pages: dict[Path, Page]) -> None:
    loaded = {(file.name, address) for file, page in pages.items() for address in page.loads}
    assert loaded
    assert [(name, address) for name, address in loaded if urlsplit(address).netloc] == []


def test_every_page_of_docs_is_reached_from_the_start(site: Path, pages: dict[Path, Page]) -> None:
    named = {(site / unquote(urlsplit(link).path)).resolve() for link in pages[site / "index.html"].links}
    assert named >= set(pages)


def test_the_reference_has_every_command_with_its_options(site: Path) -> None:
    text = (site.parent / "pages" / "reference" / "commands.md").read_text("utf-8")
    for name, command in at_least_one(commands()):
        assert re.search(rf"^##+ {name}$", text, re.MULTILINE) or command.hidden, name


def test_the_reference_has_every_name_of_the_doors(site: Path) -> None:
    text = (site / "reference" / "python.html").read_text("utf-8")
    for door in DOORS:
        for name in at_least_one(door_targets(door)):
            assert f"{door}.{name}</h3>" in re.sub(r"<a class=.headerlink.*?</a>", "", text), name
    assert "kraftlake.open" in text


def test_the_pages_of_commands_tables_and_metrics_are_those_of_the_code() -> None:
    assert sorted(description.name for description in table_descriptions()) == sorted([*TABLES, UNDO.name])
    for name, text in at_least_one(kept_pages().items()):
        assert (REFERENCE / name).read_text("utf-8") == text, "python -m tools.reference_pages"


def test_the_page_of_json_has_every_command() -> None:
    shown = {call for _, call, _ in COMMANDS}
    for name, command in at_least_one(commands()):
        words = name.removeprefix("kraftlake ")
        if not isinstance(command, click.Group):
            alike = {words, words.split()[0]} & {*ALIKE}
            assert alike or any(call.startswith(f"{words} ") for call in shown), name


@pytest.mark.parametrize("name", DRAWN)
def test_the_drawn_pictures_are_those_of_the_code(name: str) -> None:
    assert (IMAGES / name).read_text("utf-8") == DRAWN[name](), "python -m tools.architecture_picture"


@pytest.mark.parametrize("name", OF_TERMINALS)
def test_the_pictures_of_terminals_show_what_the_commands_print(name: str) -> None:
    assert (IMAGES / name).read_text("utf-8") == OF_TERMINALS[name].svg(), "python -m tools.terminal_picture"


def test_each_picture_is_made_by_a_command_and_small() -> None:
    by_commands = {*DRAWN, *OF_TERMINALS, *(f"{name}.webp" for name in OF_PAGES), "history.webp"}
    assert {path.name for path in IMAGES.iterdir()} == by_commands
    assert max(path.stat().st_size for path in IMAGES.iterdir()) < 128 * 1024
