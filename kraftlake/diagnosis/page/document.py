"""The HTML document: the package's own markup, style and scripts, and the packed columns.

No string of a log is in its markup: all of them are in the columns, which are base64.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Final

SCRIPTS: Final = (
    "columns.js", "words.js", "drawing.js", "history.js", "timeline.js", "matrix.js", "stability.js",
    "panel.js", "page.js",
)  # fmt: skip
"""The scripts in the order in which they are run."""
STYLE: Final = "page.css"
BODY: Final = "body.html"

_LINE_BYTES: Final = 6000
"""The bytes of a line: a multiple of three, so that its base64 has no padding."""


def document(columns: bytes) -> Iterator[bytes]:
    """The parts of the document in their order.

    Its policy allows the page's own style and scripts, by their hashes, and nothing else: it can't load or send
    anything.
    """
    style, scripts = _asset(STYLE), [_asset(name) for name in SCRIPTS]
    policy = (
        f"default-src 'none'; script-src {' '.join(map(_source, scripts))}; style-src {_source(style)}; "
        "base-uri 'none'; form-action 'none'"
    )
    yield (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="robots" content="noindex">\n'
        '<meta name="referrer" content="no-referrer">\n<title>Cluster</title>\n'
        f"<style>{style}</style>\n</head>\n<body>\n{_asset(BODY)}"
        '<script type="application/octet-stream" id="data">\n'
    ).encode()
    for start in range(0, len(columns), _LINE_BYTES):
        yield base64.b64encode(columns[start : start + _LINE_BYTES]) + b"\n"
    yield (
        b"</script>\n" + "".join(f"<script>{script}</script>\n" for script in scripts).encode() + b"</body>\n</html>\n"
    )


@cache
def _asset(name: str) -> str:
    return files(__package__).joinpath("browser", name).read_text(encoding="utf-8")


def _source(text: str) -> str:
    """The CSP source expression of an inline script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
