"""The metrics and the health of a process, over HTTP."""

from __future__ import annotations

import urllib.error
import urllib.request


def asked(port: int, path: str) -> tuple[int, str]:
    """The status and the text of an answer of this machine."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=120) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()
    except urllib.error.URLError:
        return 0, ""


def samples(port: int) -> dict[str, float]:
    """The values by name and labels; empty while nobody answers."""
    lines = asked(port, "/metrics")[1].splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}
