"""The prose of the docs: a fact stands on one page, spelling is British, figures have a command and a date."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.at_least_one import at_least_one
from tests.cli.running import ROOT

RUN = 10
"""So many words in a row are one sentence, and stand on one page."""
DOCS = ROOT / "docs"
WRITTEN_BY_CODE = "reference"
WRITTEN_BY_A_RUN = "test-long"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
SOURCES = [
    path
    for folder in ("kraftlake", "simulator", "tools", "build_backend")
    for path in sorted((ROOT / folder).rglob("*.py"))
]
AMERICAN = (
    r"(?:behavior|colored|coloring|favor|favorite|honor|neighbor|neighboring|canceled|canceling|labeled|labeling|modeled|"
    r"signaled|traveled|gray|"
    r"(?:recogn|optim|initial|normal|serial|deserial|organ|reorgan|summar|synchron|minim|maxim|util|general|special|"
    r"emphas|prior|categor|custom|material|visual|local|central|real|stabil)iz(?:e[ds]?|ing|ation))s?"
)
"""Words whose British spelling is another one; Kafka's own terms (a finalized level, an authorizer) are none."""
RIDDLES = re.compile(
    r"\b(?:those\s+that|that\s+which|be\s+it|so\s+many|somebody|whoever|whichever|in\s+front\s+of|(?:tells?|told)\s+of|"
    r"(?:is|are|was|were|be|been)\s+told)\b",
    re.IGNORECASE,
)
"""Words in the place of a noun; the reader has to find it."""
BENCHMARK, NUMBERS, DATE = r"python -m\s+benchmarks", r"\b\d+\.\d+\b|^\|.*\d", r"\b20\d\d-\d\d-\d\d\b"
IN_PROSE = re.compile(rf"(?<![\w\-.`\"'/$]){AMERICAN}(?![\w=(`\"'])", re.IGNORECASE)


def prose(page: Path) -> list[str]:
    """The words of a page; a mark stands for each block of code."""
    text = re.sub(r"```.*?```", " ␤ ", page.read_text("utf-8"), flags=re.DOTALL)
    text = re.sub(r"^    .*$", " ␤ ", text, flags=re.MULTILINE)
    return re.findall(r"␤|[\w'’/.-]+", re.sub(r"\]\([^)]*\)", "] ", text).lower())


def runs(page: Path) -> Iterator[tuple[str, ...]]:
    words = prose(page)
    for begin in range(len(words) - RUN + 1):
        run = tuple(word.strip(".") for word in words[begin : begin + RUN])
        if "␤" not in run:
            yield run


def test_no_sentence_stands_on_two_pages() -> None:
    home: dict[tuple[str, ...], Path] = {}
    twice = [
        f"{page.relative_to(ROOT)} and {home[run].relative_to(ROOT)}: {' '.join(run)}"
        for page in at_least_one(PAGES)
        if page.parent.name != WRITTEN_BY_CODE
        for run in runs(page)
        if home.setdefault(run, page) != page
    ]
    assert twice == []


def test_spelling_is_british() -> None:
    american = [
        f"{path.relative_to(ROOT)}: {word[0]}"
        for path in at_least_one([*PAGES, *SOURCES])
        for word in IN_PROSE.finditer(path.read_text("utf-8"))
    ]
    assert american == []


def test_prose_names_what_it_speaks_of() -> None:
    found = []
    for page in at_least_one(PAGES):
        text = re.sub(r"```.*?```|`[^`]*`", "`", page.read_text("utf-8"), flags=re.DOTALL)
        if page.stem != WRITTEN_BY_A_RUN:
            found += [f"{page.relative_to(ROOT)}: {riddle[0]}" for riddle in RIDDLES.finditer(text)]
    assert found == []


FIGURES = [page for page in PAGES if re.search(BENCHMARK, page.read_text("utf-8"))]


@pytest.mark.parametrize("page", FIGURES, ids=lambda page: page.stem)
def test_a_section_with_figures_says_when_they_were_taken(page: Path) -> None:
    sections = re.split(r"^##+ ", page.read_text("utf-8"), flags=re.MULTILINE)
    undated = [
        section.splitlines()[0]
        for section in at_least_one(sections)
        if re.search(BENCHMARK, section) and re.search(NUMBERS, section, re.MULTILINE) and not re.search(DATE, section)
    ]
    assert undated == []
