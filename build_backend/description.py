"""The description of the package for an index: the README with links that lead somewhere.

A link of the README is a path in the repository. Where the address of the site is known, the one that `make docs`
builds, it leads to the page there; elsewhere its text alone stays, for the path leads nowhere from an index.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

HOME_PAGE = os.environ.get("KRAFTLAKE_HOME_PAGE", "").rstrip("/")
"""The address of the site, of the build's environment; empty where there is none."""
_LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<path>(?!\w+://)[^)\s]+)\)")


def description(readme: str, home_page: str) -> str:
    """The README in Markdown with absolute links, or without links where there is no home page."""

    def absolute(link: re.Match[str]) -> str:
        if not home_page:
            return link["text"]
        return f"{link['image']}[{link['text']}]({home_page}/{in_the_site(link['path'])})"

    return _LINK.sub(absolute, readme)


def in_the_site(path: str) -> str:
    """The address of a file of the repository below the home page."""
    file, hash_sign, anchor = path.partition("#")
    inside = Path(file).relative_to("docs").as_posix() if file.startswith("docs/") else file.lower()
    return re.sub(r"\.md$", ".html", inside) + hash_sign + anchor


def project_urls(home_page: str) -> dict[str, str]:
    """The addresses that an index shows beside the description."""
    pages = {"Homepage": "index.html", "Documentation": "tutorial.html", "Changelog": "changelog.html"}
    return {label: f"{home_page}/{page}" for label, page in pages.items()} if home_page else {}
