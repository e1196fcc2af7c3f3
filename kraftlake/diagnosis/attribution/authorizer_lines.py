"""The lines of Kafka's logger `kafka.authorizer.logger`, in any layout around them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import attrs

from kraftlake.diagnosis.attribution.line_times import LineTime, time_in, time_of_fields

BEGINS: Final = "Principal = "
_SENTENCE: Final = re.compile(
    r"Principal = (.+) is (Allowed|Denied) [oO]peration = (\w+) from host = (.+) on resource = "
    r"(\w+):(?:(?:LITERAL|PREFIXED):)?(.*) for request = (\w+) with resourceRefCount = -?\d+(?: based on rule (.*))?",
    re.DOTALL,
)
_DECISION: Final = re.compile(r" is (?:Allowed|Denied) [oO]peration = ")
_WORDS: Final = (" from host = ", " on resource = ", " for request = ", " with resourceRefCount = ")
"""The words between names. A name may hold them, too, and could then end at several places."""
_HUMP: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_DEPTH: Final = 4
"""The number of objects within each other in which a message of a JSON layout is looked for."""


@attrs.frozen
class AuthorizerLine:
    """One decision of an authorizer, and the time that its line has, if any.

    `operation` and `resource_type` are in capitals: CREATE, TOPIC. `everywhere`: the rule that decided holds for every
    resource of the type.
    """

    time: LineTime | None
    principal: str
    allowed: bool
    operation: str
    host: str | None
    resource_type: str
    resource: str
    request: str
    everywhere: bool


def parse_line(line: str) -> AuthorizerLine | None:
    """The decision in a line; None where the line is torn, or can be read in more than one way."""
    time, text = _of_json(line) if line.lstrip().startswith("{") else (None, line)
    at = text.find(BEGINS)
    if at < 0 or len(_DECISION.findall(text, at)) != 1 or any(text.count(words, at) != 1 for words in _WORDS):
        return None
    found = _SENTENCE.match(text, at)
    if found is None:
        return None
    principal, decision, operation, host, type_, name, request, rule = found.groups()
    if time is None or not time.has_zone:
        time = time_in(text[:at]) or time
    return AuthorizerLine(
        time=time,
        principal=principal,
        allowed=decision == "Allowed",
        operation=_HUMP.sub("_", operation).upper(),
        host=host,
        resource_type=_HUMP.sub("_", type_).upper(),
        resource=name,
        request=request,
        everywhere=rule is not None and (rule.startswith("SuperUser") or ", resourceName=*," in rule),
    )


def _of_json(line: str) -> tuple[LineTime | None, str]:
    """The time and the message of a line of a JSON layout; any other line as it is."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None, line
    message = next(_texts(fields, _DEPTH), line)
    return time_of_fields(fields), message


def _texts(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str) and BEGINS in value:
        yield value
    elif isinstance(value, dict) and depth:
        for one in value.values():
            yield from _texts(one, depth - 1)
