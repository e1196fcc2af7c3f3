"""The events that kraftlake logs, read from its sources: their names, levels and fields."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import attrs

PACKAGE = Path(__file__).resolve().parents[1] / "kraftlake"
_LEVELS = ("debug", "info", "warning", "error", "exception")
_CALL = re.compile(rf"\.({'|'.join(_LEVELS)})\(")
"""What a file that logs has: most others need not be parsed."""
_LOGGERS = ("log", "logger", "_log", "_logger")


@attrs.frozen(order=True)
class LogEvent:
    """An event: its name (`{…}` where a part of it varies), its level, its fields, and the room that logs it."""

    name: str
    level: str
    fields: tuple[str, ...]
    room: str


def log_events() -> list[LogEvent]:
    """All events, by name; one that several places log has the fields of all of them."""
    found: dict[tuple[str, str, str], set[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        text, room = path.read_text("utf-8"), path.relative_to(PACKAGE).parts[0]
        for name, level, fields in _events_of(ast.parse(text)) if _CALL.search(text) else ():
            found.setdefault((name, level, room), set()).update(fields)
    return sorted(LogEvent(name, level, tuple(sorted(fields)), room) for (name, level, room), fields in found.items())


def _events_of(tree: ast.Module) -> Iterator[tuple[str, str, set[str]]]:
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            continue
        if node.func.attr in _LEVELS and _is_logger(node.func.value) and (name := _text(node.args[0])) is not None:
            yield name, node.func.attr, {keyword.arg for keyword in node.keywords if keyword.arg is not None}


def _is_logger(value: ast.expr) -> bool:
    """Whether an expression is a logger: one by its name, or `get_logger(…)`."""
    if isinstance(value, ast.Call):
        called = value.func
        return isinstance(called, ast.Name) and called.id == "get_logger"
    name = value.attr if isinstance(value, ast.Attribute) else value.id if isinstance(value, ast.Name) else ""
    return name in _LOGGERS


def _text(value: ast.expr) -> str | None:
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return value.value
    if isinstance(value, ast.JoinedStr):
        parts = (str(part.value) if isinstance(part, ast.Constant) else "{…}" for part in value.values)
        return "".join(parts)
    return None
