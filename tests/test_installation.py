"""What a complete installation has: where it is missing other tests may be skipped, but one of these fails."""

from __future__ import annotations

import shutil

from kraftlake.spark_jobs.java import java_home
from tests.chromium import HOW_TO_GET_IT


def test_a_browser_is_here() -> None:
    assert shutil.which("chromium"), HOW_TO_GET_IT
    assert shutil.which("chromedriver"), HOW_TO_GET_IT


def test_a_java_is_here() -> None:
    assert java_home()
