"""The pictures of docs/page.md: `python tools/page_pictures.py`, in Chromium, of the log in `samples/kafka-4.4`."""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path

from PIL import Image
from selenium import webdriver

import kraftlake

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.chromium import HOW_TO_GET_IT, started_chromium  # noqa: E402
from tests.diagnosis.page.opened import Opened  # noqa: E402

SAMPLE = ROOT / "samples" / "kafka-4.4" / "log" / "__cluster_metadata-0"
PICTURES = {"page-dark": ("dark", "#at=1396"), "page-light": ("light", "#at=1277&topic=t-1-bkq&partition=1")}


def main() -> int:
    """Write them to docs/images; 1 where there is no Chromium."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        kraftlake.open(SAMPLE).page(page)
        browser = started_chromium(Path(folder) / "profile")
        if browser is None:
            sys.stderr.write(f"The pictures can't be made: this {HOW_TO_GET_IT}.\n")
            return 1
        with browser:
            for name, (theme, link) in PICTURES.items():
                _write(ROOT / "docs" / "images" / f"{name}.webp", browser, page, theme, link)
    return 0


def _write(target: Path, browser: webdriver.Chrome, page: Path, theme: str, link: str) -> None:
    size = {"width": 1360, "height": 850, "deviceScaleFactor": 1.25, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": theme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    Opened(browser, page, link)
    picture = Image.open(io.BytesIO(browser.get_screenshot_as_png())).convert("RGB")
    picture.save(target, "WEBP", quality=72, method=6)


if __name__ == "__main__":
    sys.exit(main())
