"""A real Chromium for the tests of a page, driven by Selenium."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

from tests.diagnosis.page.opened import Opened

OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1440,900",
)  # fmt: skip
"""A browser as root, which asks nobody for anything by itself."""


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    """The browser of a worker."""
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("needs Chromium and its driver: `make chromium`, or apt-get install chromium chromium-driver")
    options = Options()
    options.binary_location = program
    for option in (*OPTIONS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(driver))
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
