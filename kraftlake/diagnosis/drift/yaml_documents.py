"""YAML from anybody, read within limits: plain data alone, no aliases, no duplicate keys."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from kraftlake.runtime.errors import CorruptDataError, EnvironmentFaultError
from kraftlake.runtime.words import shown

MOST_BYTES: Final = 64 * 1024 * 1024
MOST_DEPTH: Final = 40


def read_yaml(path: Path) -> list[Any]:
    """The documents of a YAML or JSON file that are not empty.

    Raises CorruptDataError with the line at fault for what is no YAML, above the limits, or ambiguous.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as fault:
        raise EnvironmentFaultError(f"{path} can't be read: {fault.strerror or fault}.") from fault
    if len(content) > MOST_BYTES:
        raise CorruptDataError(f"{path} is larger than {MOST_BYTES // 1024 // 1024} MiB: divide it.")
    return parse_yaml(content, str(path))


def parse_yaml(content: bytes, name: str) -> list[Any]:
    """The documents in the bytes of a file of that name, as `read_yaml`."""
    import yaml

    safe: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(safe):  # type: ignore[misc]  # libyaml's, where it is there
        """A safe loader that refuses a key that comes twice."""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            seen: set[str] = set()
            for key, _ in node.value:
                text = str(key.value)
                if text in seen:
                    raise yaml.MarkedYAMLError(None, None, f"the key {shown(text, 60)!r} comes twice", key.start_mark)
                seen.add(text)
            return super().construct_mapping(node, deep=deep)

    try:
        _check_events(yaml.parse(content, Loader=safe))
        return [one for one in yaml.load_all(content, Loader=Loader) if one is not None]
    except yaml.MarkedYAMLError as fault:
        mark = fault.problem_mark or fault.context_mark
        line = "" if mark is None else f", line {mark.line + 1}"
        raise CorruptDataError(f"{name}{line}: {shown(str(fault.problem or fault.context))}.") from None
    except (yaml.YAMLError, ValueError, RecursionError) as fault:
        raise CorruptDataError(f"{name} is no YAML: {shown(str(fault))}.") from None


def _check_events(events: Iterable[Any]) -> None:
    """Raise the error of a YAML reader for aliases, which may multiply a file's size, and for too deep a nesting."""
    import yaml

    depth = 0
    for event in events:
        if isinstance(event, yaml.AliasEvent):
            raise yaml.MarkedYAMLError(
                None, None, "aliases (*NAME) are not read: write the value out", event.start_mark
            )
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MOST_DEPTH:
                problem = f"more than {MOST_DEPTH} levels lie within each other"
                raise yaml.MarkedYAMLError(None, None, problem, event.start_mark)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
