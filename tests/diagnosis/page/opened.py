"""A page that is open in Chromium."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

from tests.waiting import PATIENCE

_DRAWN = """
const done = arguments[arguments.length - 1];
requestAnimationFrame(() => requestAnimationFrame(() => done(null)));
"""


class Opened:
    """The page in `file`, opened at a link such as `#at=458`; what is asked of it waits until it has been drawn."""

    def __init__(self, browser: webdriver.Chrome, file: Path, link: str = "") -> None:
        self.browser, self.file = browser, file
        browser.get("about:blank")
        browser.get_log("browser")
        browser.get_log("performance")
        browser.get(f"file://{file}{link}")
        WebDriverWait(browser, PATIENCE).until(lambda one: one.execute_script("return !!window.clusterPage"))
        self.drawn()

    def drawn(self) -> None:
        """Wait until what was asked for is drawn."""
        self.browser.execute_async_script(_DRAWN)

    def run(self, script: str, *arguments: object) -> Any:
        """What a script gives; `page`, `history` and `matrix` are the page's."""
        names = "const page = clusterPage, history = page.history, matrix = page.matrix;"
        return self.browser.execute_script(names + script, *arguments)

    def find(self, selector: str) -> WebElement:
        """The element of a CSS selector."""
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def text(self, selector: str) -> str:
        """The text that is seen of an element."""
        self.drawn()
        return self.find(selector).text

    def texts(self, selector: str) -> list[str]:
        """The texts of several elements."""
        self.drawn()
        found: list[str] = self.run(
            "return [...document.querySelectorAll(arguments[0])].map((e) => e.innerText)", selector
        )
        return found

    def keys(self, *keys: str) -> None:
        """Press keys, in nothing."""
        self.find("body").send_keys(*keys)
        self.drawn()

    def slide(self, value: int) -> None:
        """Move the slider as a pointer does."""
        self.run(
            "const s = document.getElementById('slider'); s.value = arguments[0]; s.dispatchEvent(new Event('input'))",
            value,
        )
        self.drawn()

    @property
    def offset(self) -> int:
        """The offset of the moment that is shown, as the page says it."""
        return int(self.text("#offset").split(" ")[1].replace(",", ""))

    @property
    def tiles(self) -> dict[str, int]:
        """The counts that the page shows."""
        self.drawn()
        shown = self.run(
            "return [...document.querySelectorAll('.tile[data-filter]')].map((tile) =>"
            " [tile.dataset.filter, tile.querySelector('strong').innerText])"
        )
        return {name: int(count.replace(",", "")) for name, count in shown}

    @property
    def listed(self) -> list[str]:
        """The names of the partitions that are listed."""
        self.drawn()
        names: list[str] = self.run(
            "return [...matrix.items].filter((item) => item >= 0).map((row) => history.nameOf(row))"
        )
        return names

    def check_logs(self) -> None:
        """Nothing but the file was asked for, and nothing went wrong."""
        assert self.browser.get_log("browser") == []
        asked = set()
        for entry in self.browser.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                asked.add(message["params"]["request"]["url"].partition("#")[0])
        assert asked == {f"file://{self.file}"}
