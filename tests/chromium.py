"""A Chromium that asks nobody for anything by itself, driven by Selenium."""

from __future__ import annotations

import shutil
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

HOW_TO_GET_IT = "needs Chromium and its driver: `make chromium`, or apt-get install chromium chromium-driver"

_OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1440,900",
)  # fmt: skip


def started_chromium(profile: Path) -> webdriver.Chrome | None:
    """A new browser with an empty folder as its profile, to be quit by the caller; None where there is none here."""
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        return None
    options = Options()
    options.binary_location = program
    for option in (*_OPTIONS, f"--user-data-dir={profile}"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=Service(driver))
