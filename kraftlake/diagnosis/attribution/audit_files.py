"""Audit files of tools that change clusters for their users: JSON lines, read by a mapping that a user declares."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import attrs

from kraftlake.diagnosis.attribution.authorizer_lines import AuthorizerLine
from kraftlake.diagnosis.attribution.causes import REQUESTS
from kraftlake.diagnosis.attribution.line_times import time_of_value
from kraftlake.diagnosis.attribution.log_files import NodeLines, lines_of
from kraftlake.diagnosis.attribution.requests import ANY
from kraftlake.kafka_files.archives.text_files import text_files
from kraftlake.runtime.errors import UsageError
from kraftlake.runtime.words import counted, did_you_mean, in_words, shown

_NEEDED: Final = ("time", "principal", "request")
_FIELDS: Final = (*_NEEDED, "resource", "host")
_MOST_WORDS: Final = 8
_PATH: Final = re.compile(r"(?:[a-z]+:|/).*[/=]([^/=]+)")
"""A resource as tools write it: `kafka:/cluster/ID/topic/NAME`, `crn://…/topic=NAME`."""
_Words: TypeAlias = Mapping[str, Sequence[str]]


def read_audits(paths: Sequence[str], mapping: Mapping[str, str]) -> list[NodeLines]:
    """The entries of each audit file on requests that change metadata.

    Raises UsageError for a mapping that is wrong or matches no entry of a file, else as `text_files`.
    """
    fields, requests = _checked(mapping)
    return [_read(path, fields, requests) for path in paths]


def _checked(mapping: Mapping[str, str]) -> tuple[dict[str, str], _Words]:
    """The path of each field, and the requests that each word stands for; a request's own name stands for it, too."""
    for key in mapping:
        if key not in (*_FIELDS, *REQUESTS):
            hint = did_you_mean(key, (*_FIELDS, *REQUESTS), most=1) or f"the fields are {in_words(_FIELDS)}."
            raise UsageError(f"--audit-map {key}=…: {key!r} is neither a field nor a request of Kafka's; {hint}")
    missing = [field for field in _NEEDED if not mapping.get(field)]
    if missing:
        raise UsageError(
            f"--audit needs to know where an entry has its {in_words(missing)}: give --audit-map {missing[0]}=PATH, "
            "such as time=timestamp or principal=user.name."
        )
    words: dict[str, tuple[str, ...]] = {request: (request,) for request in REQUESTS}
    for key, given in mapping.items():
        if key in REQUESTS:
            for word in given.split("|"):
                words[word] = (*words.get(word, ()), key)
    return {key: path for key, path in mapping.items() if key in _FIELDS}, words


@attrs.define
class _Reading:
    """The entries of an audit file so far: their number, those that have each field, and their words for requests."""

    path: str
    lines: NodeLines
    entries: int = 0
    found: Counter[str] = attrs.field(factory=Counter)
    words: Counter[str] = attrs.field(factory=Counter)


def _read(path: str, fields: Mapping[str, str], requests: _Words) -> NodeLines:
    reading = _Reading(path, NodeLines(path, allowed=True))
    for file in text_files(path, lambda name: "audit" in name.lower()):
        for entry in _entries(lines_of(file), reading.lines, file.name):
            values = {name: value for name, at in fields.items() if (value := _value(entry, at)) is not None}
            _take(reading, values, requests, file.name)
    _check_matches(reading, fields)
    return reading.lines


def _take(reading: _Reading, values: Mapping[str, Any], requests: _Words, file: str) -> None:
    """Take the values of an entry's fields."""
    reading.entries += 1
    reading.found.update(values.keys())
    word = str(values.get("request"))
    reading.words[word] += "request" in values
    time = time_of_value(values.get("time"))
    if time is None:
        reading.lines.dateless += "time" in values
        return
    line = AuthorizerLine(
        time=time, principal=str(values.get("principal")), allowed=True, operation=ANY,
        host=None if "host" not in values else str(values["host"]), resource_type=ANY,
        resource=_name_in(str(values.get("resource", ""))), request=word, everywhere=False,
    )  # fmt: skip
    reading.lines.ends.append(line)
    if "principal" in values:
        reading.lines.lines += [(attrs.evolve(line, request=request), file) for request in requests.get(word, ())]


def _check_matches(reading: _Reading, fields: Mapping[str, str]) -> None:
    """Refuse a mapping that matches no entry."""
    path, lines = reading.path, reading.lines
    if not reading.entries:
        raise UsageError(f"{path} has no line that is a JSON object: an audit file has one on each line.")
    for name, at in fields.items():
        if not reading.found[name]:
            raise UsageError(
                f"--audit-map {name}={at} matches no entry of {path}, which has "
                f"{counted(reading.entries, 'entry', 'entries')}: give the path of a field that they have, with dots "
                "between keys."
            )
    if not lines.ends:
        raise UsageError(
            f"--audit-map time={fields['time']}: what the entries of {path} have there is no time with a date."
        )
    if not lines.lines:
        seen = in_words([repr(shown(word, 40)) for word, _ in reading.words.most_common(_MOST_WORDS)])
        raise UsageError(
            f"No entry of {path} is of a request that changes metadata: {fields['request']} has {seen}; "
            "say which of them is which, as in --audit-map CreateTopics=WORD."
        )


def _entries(lines: Iterator[str], read: NodeLines, file: str) -> Iterator[Any]:
    for line in lines:
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            entry = None
        if isinstance(entry, dict):
            yield entry
        else:
            read.unreadable[file] += 1


def _value(entry: Any, path: str) -> Any:
    """The value at a path of keys and, in lists, of numbers; None for none, and for an object but that of a time."""
    for key in path.removeprefix("$.").split("."):
        if isinstance(entry, dict):
            entry = entry.get(key)
        elif isinstance(entry, list) and key.isdecimal() and int(key) < len(entry):
            entry = entry[int(key)]
        else:
            return None
    return None if isinstance(entry, list) or (isinstance(entry, dict) and "epochSecond" not in entry) else entry


def _name_in(resource: str) -> str:
    """The name of a resource, which may be the end of a path."""
    path = _PATH.fullmatch(resource)
    return resource if path is None else path[1]
