"""A real Chromium for the tests of a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from selenium import webdriver

from tests.chromium import HOW_TO_GET_IT, started_chromium
from tests.diagnosis.page.opened import Opened


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    """The browser of a worker."""
    browser = started_chromium(tmp_path_factory.mktemp("profile"))
    if browser is None:
        pytest.fail(f"this test {HOW_TO_GET_IT}")
    yield browser
    browser.quit()


@pytest.fixture
def open_page(chromium: webdriver.Chrome) -> Iterator[Callable[..., Opened]]:
    """Opens a page, with what the address adds; at the end nothing may have gone wrong in it or left it."""
    opened: list[Opened] = []

    def open_(file: Path, link: str = "") -> Opened:
        opened.append(Opened(chromium, file, link))
        return opened[-1]

    yield open_
    for page in opened[-1:]:
        page.check_logs()
